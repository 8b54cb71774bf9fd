"""Runs that read as something they are not: each was once given a wrong verdict."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

T0 = datetime(2026, 3, 14, 9, tzinfo=UTC)
SACCT = "JobID|JobName|User|Partition|State|ExitCode|Start|End|Elapsed|Timelimit|NNodes|NodeList\n"


def at(seconds: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return (T0 + timedelta(seconds=seconds)).strftime(form)


def steps(first: int, last: int, planned: int = 1000, begin: float = 60) -> list[str]:
    return [
        f"{at(begin + 3 * (n - first))},000 INFO step {n}/{planned} loss {2 + 60 / (9 + n):.3f}"
        for n in range(first, last + 1, 10)
    ]


def traceback(exception: str, prefix: str = "") -> list[str]:
    return [
        f"{prefix}{line}"
        for line in (
            "Traceback (most recent call last):",
            '  File "/home/ana/train.py", line 230, in main',
            "    loss.backward()",
            exception,
        )
    ]


def accounting(state: str, end: float, code: str = "0:0", *rows: str, begin_s: float = 0) -> str:
    nodes = "gpu[01-02]"
    begin, close = at(begin_s, "%Y-%m-%dT%H:%M:%S"), at(end, "%Y-%m-%dT%H:%M:%S")
    job = f"9|lm|ana|train|{state}|{code}|{begin}|{close}|00:30:00|1-00:00:00|2|{nodes}\n"
    own = (f"9.{row}|{begin}|{close}|00:30:00||2|{nodes}\n" for row in rows)
    return SACCT + job + "".join(own)


def said(folder: Path, **files: str | list[str]) -> Verdict:
    for name, text in files.items():
        lines = text if isinstance(text, str) else "\n".join(text) + "\n"
        (folder / f"{name}.log").write_text(lines)
    return diagnose(collect(Request((str(folder),))))


# --- a record of a completed job is the status of its script's last command ---

DEATHS = {
    "a traceback": (traceback("KeyError: 'labels'", "[rank3]: "), "A3"),
    "a shell's report": (["job.sh: line 22: 44121 Killed    python train.py"], "A2"),
    "a launcher's report": (
        [*traceback("KeyError: 'labels'"), "srun: error: gpu01: task 0: Exited with exit code 1"],
        "A3",
    ),
}


@pytest.mark.parametrize("how", DEATHS)
def test_a_completed_record_does_not_outweigh_a_death_in_the_log(tmp_path: Path, how: str) -> None:
    lines, code = DEATHS[how]
    verdict = said(
        tmp_path, train=[*steps(1, 500), *lines, "copied"], sacct=accounting("COMPLETED", 1600)
    )

    assert verdict.code == code
    assert verdict.run.disposition == "failed"


def test_an_import_that_failed_in_a_script_that_went_on(tmp_path: Path) -> None:
    lines = ["loading", *traceback("ModuleNotFoundError: No module named 'flash_attn'"), "done"]

    assert said(tmp_path, train=lines, sacct=accounting("COMPLETED", 30)).code == "A1"


def test_a_completed_record_of_half_the_planned_steps_is_not_healthy(tmp_path: Path) -> None:
    verdict = said(tmp_path, train=steps(1, 500), sacct=accounting("COMPLETED", 1600))

    assert verdict.state == "undetermined"
    assert "stops at step 491 of 1000" in verdict.headline


def test_a_step_that_failed_under_a_completed_job_is_not_healthy(tmp_path: Path) -> None:
    lines = [line.replace("/1000", "") for line in steps(1, 500)]
    record = accounting("COMPLETED", 1600, "0:0", "0|python|||FAILED|1:0")

    assert said(tmp_path, train=lines, sacct=record).state == "undetermined"


def test_a_completed_record_of_a_run_that_ended_is_still_healthy(tmp_path: Path) -> None:
    lines = [*steps(1, 1000), f"{at(3090)},000 INFO training finished: 1000 steps"]

    assert said(tmp_path, train=lines, sacct=accounting("COMPLETED", 3100)).state == "healthy"


# --- kernel lines of a shared node ---

KILLED = [
    "R invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0-1,"
    "oom_memcg=/slurm/uid_{uid}/job_{job},task_memcg=/slurm/uid_{uid}/job_{job}/step_0/task_0,"
    "task=R,pid=991,uid={uid}",
    "Memory cgroup out of memory: Killed process 991 (R) total-vm:8812kB, anon-rss:6412kB,"
    " file-rss:1kB, shmem-rss:0kB, UID:{uid} pgtables:1kB oom_score_adj:0",
]


def kernel_log(second: float, job: int) -> list[str]:
    stamp = at(second, "%a %b %d %H:%M:%S %Y")
    return [f"[{stamp}] {line.format(uid=5521, job=job)}" for line in KILLED]


@pytest.mark.parametrize(("job", "code"), [(4410, "A3"), (9, "A2")])
def test_the_memory_limit_of_another_job_is_not_this_ones(
    tmp_path: Path, job: int, code: str
) -> None:
    lines = [*steps(1, 500), *(traceback("KeyError: 'labels'") if job != 9 else [])]
    (tmp_path / "dmesg-gpu01.txt").write_text("\n".join(kernel_log(1555, job)))
    verdict = said(tmp_path, train=lines, sacct=accounting("FAILED", 1600, "1:0"))

    assert verdict.code == code


# --- ranks that share a file ---

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total"
    " capacity of 79.15 GiB of which 1.05 GiB is free."
)
SILENT_PEER = [
    "gpu02:4412:4490 [3] transport/net_ib.cc:2120 NCCL WARN NET/IB : Got completion from peer"
    " 10.1.0.2<44121> with status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_3"
]


def watchdog(rank: int, sequence: int = 901, kind: str = "ALLREDUCE") -> str:
    return (
        f"[rank{rank}]:[E314 09:36:00.000000001 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog"
        f" caught collective operation timeout: WorkNCCL(SeqNum={sequence}, OpType={kind},"
        " NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran for 600012 milliseconds before timing"
        " out."
    )


@pytest.mark.parametrize("others", ["timeouts", "network"])
def test_a_rank_whose_traceback_was_written_out_last_is_still_the_first(
    tmp_path: Path, others: str
) -> None:
    victims = [watchdog(r) for r in range(8) if r != 3] if others == "timeouts" else SILENT_PEER
    verdict = said(tmp_path, train=[*steps(1, 300), *victims, *traceback(OOM, "[rank3]: ")])

    assert verdict.code == "B1"
    assert [place.rank for place in verdict.culprits] == [3]


def test_a_rank_that_told_of_its_wait_first_did_not_fail_first(tmp_path: Path) -> None:
    lines = [*(watchdog(r) for r in range(8)), *traceback("KeyError: 'x'", "[rank3]: ")]

    assert said(tmp_path, train=[*steps(1, 300), *lines]).code == "C2"


def test_a_lone_reporter_of_a_silent_peer_is_not_named(tmp_path: Path) -> None:
    verdict = said(tmp_path, train=[*steps(1, 300), *SILENT_PEER])

    assert (verdict.code, verdict.culprits) == ("C5", ())
    assert "gpu02" not in verdict.headline


# --- pauses ---


def evaluating(last: int, pause_s: float) -> tuple[list[str], float]:
    lines: list[str] = []
    begin = 60.0
    for block in range(last):
        lines += steps(500 * block + 1, 500 * block + 500, 100_000, begin)
        begin += 1500 + (pause_s if block < last - 1 else 0.0)
    return lines, begin


@pytest.mark.parametrize(("waited_s", "code"), [(900, "F3"), (9000, "C2")])
def test_a_pause_like_those_before_is_no_standstill(
    tmp_path: Path, waited_s: float, code: str
) -> None:
    """The limit fell into an evaluation of the kind the run had come back from."""
    lines, end = evaluating(4, 1200)
    stamp = at(end + waited_s, "%Y-%m-%dT%H:%M:%S")
    ended = f"slurmstepd: error: *** JOB 9 ON gpu01 CANCELLED AT {stamp} DUE TO TIME LIMIT ***"
    record = accounting("TIMEOUT", end + waited_s)
    verdict = said(tmp_path, train=[*lines, ended], sacct=record)

    assert verdict.code == code
    assert verdict.confidence < 0.8


# --- after the end ---


def test_what_the_tracker_could_not_send_is_no_failure_of_the_run(tmp_path: Path) -> None:
    lines = [
        *steps(1, 991),
        f"{at(3090)},000 - INFO - train - training finished: 1000 steps, final loss 2.01",
        "wandb: ERROR Failed to sync run: requests.exceptions.ReadTimeout: Read timed out.",
    ]

    assert said(tmp_path, train=lines).state == "healthy"


def test_an_error_among_the_answers_of_an_evaluation_is_no_failure(tmp_path: Path) -> None:
    lines = [
        *steps(1, 991),
        "sample 0, answer:",
        *traceback(OOM),
        f"{at(3090)},000 - INFO - train - training finished: 1000 steps, final loss 2.01",
    ]

    assert said(tmp_path, train=lines).state == "healthy"


# --- where ---


def test_a_task_is_on_the_host_its_launcher_names(tmp_path: Path) -> None:
    lines = [
        *(f"0: {line}" for line in steps(1, 300)),
        *traceback(
            "RuntimeError: CUDA error: uncorrectable ECC error encountered", "1: [rank9]: "
        ),
        "srun: error: gpu02: task 1: Exited with exit code 1",
    ]
    verdict = said(tmp_path, train=lines)

    assert (verdict.code, verdict.resubmit) == ("B2", "exclude")
    assert [(place.rank, place.host) for place in verdict.culprits] == [(9, "gpu02")]


def test_a_rank_is_on_the_host_whose_kernel_names_the_same_fault(tmp_path: Path) -> None:
    lines = traceback("RuntimeError: CUDA error: uncorrectable ECC error encountered", "[rank1]: ")
    xid = "NVRM: Xid (PCI:0000:9b:00): 94, pid=44123, name=python, Contained: SM (0x1)."
    stamp = at(955, "%a %b %d %H:%M:%S %Y")
    (tmp_path / "dmesg-gpu01.txt").write_text(f"[{stamp}] {xid}\n")
    launcher = ["srun: error: gpu02: task 1: Terminated"]  # one task a node: no rank
    verdict = said(tmp_path, train=[*steps(1, 300), *lines, *launcher])

    assert (verdict.code, verdict.resubmit) == ("B2", "exclude")
    assert [(place.rank, place.host) for place in verdict.culprits] == [(1, "gpu01")]


# --- failures after the last planned step ---


@pytest.mark.parametrize("record", [True, False])
def test_a_save_that_fails_after_the_last_step_is_a_failure(tmp_path: Path, record: bool) -> None:
    """The model was never written: the run lost all it had done."""
    lines = [*steps(1, 991), *traceback("AttributeError: no attribute 'state_dict'"), "bye"]
    files = {"sacct": accounting("COMPLETED", 3100)} if record else {}

    assert said(tmp_path, train=lines, **files).code == "A3"


@pytest.mark.parametrize(
    "noise",
    [
        ["Error in atexit._run_exitfuncs:", *traceback("BrokenPipeError: [Errno 32] Broken pipe")],
        ["Exception in thread Thread-7 (_upload):", *traceback("ConnectionResetError: reset")],
        ["job.sh: line 45:  4421 Killed                  python monitor.py"],
    ],
    ids=["at exit", "thread", "helper"],
)
def test_what_a_completed_job_prints_after_its_end_is_no_failure(
    tmp_path: Path, noise: list[str]
) -> None:
    record = accounting("COMPLETED", 3100)

    assert said(tmp_path, train=[*steps(1, 991), *noise], sacct=record).state == "healthy"


# --- beginnings that are meant ---

FRESH = f"{at(41)},000 INFO no checkpoint found in /scratch/ckpt, starting from scratch"
SAVED = "{}000 INFO saved checkpoint to /scratch/ckpt/step_991"
DONE = "{}000 INFO training finished: 1000 steps"


@pytest.mark.parametrize(
    ("asked", "state"),
    [("--resume auto", "healthy"), ("--resume /scratch/ckpt/step_500", "found")],
)
def test_a_first_run_that_would_resume_if_it_could_is_sound(
    tmp_path: Path, asked: str, state: str
) -> None:
    record = accounting("COMPLETED", 3100).splitlines()
    record = [record[0] + "|SubmitLine", record[1] + f"|sbatch run.sh {asked}", ""]
    verdict = said(tmp_path, train=[FRESH, *steps(1, 991)], sacct="\n".join(record))

    assert verdict.state == state


def test_seeds_one_after_the_other_are_no_resumes(tmp_path: Path) -> None:
    lines: list[str] = []
    for seed in range(3):
        begin = 60 + 4000 * seed
        end = at(begin + 3000) + ","
        lines += [*steps(1, 991, begin=begin), SAVED.format(end), DONE.format(end)]

    assert said(tmp_path, train=lines).state == "healthy"


def test_a_crash_of_the_rerun_is_not_the_preemption_before_it(tmp_path: Path) -> None:
    second = accounting("FAILED", 4010, "1:0", begin_s=1990).splitlines()[1]
    stamp = at(1300, "%Y-%m-%dT%H:%M:%S")
    lines = [
        *steps(1, 400),
        f"slurmstepd: error: *** JOB 9 ON gpu01 CANCELLED AT {stamp} DUE TO PREEMPTION ***",
        f"{at(2041)},000 INFO resumed from /scratch/ckpt/step_391",
        *steps(401, 600, begin=2060),
        *traceback("KeyError: 'labels'"),
    ]
    record = accounting("PREEMPTED", 1300) + second + "\n"

    assert said(tmp_path, train=lines, sacct=record).code == "A3"


# --- what is not of the run ---


@pytest.mark.parametrize("days", [-3, 3])
def test_a_fault_days_before_or_after_the_run_did_not_end_it(tmp_path: Path, days: int) -> None:
    stamp = at(955 + 86400 * days, "%a %b %d %H:%M:%S %Y")
    xid = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off"
    (tmp_path / "dmesg-gpu01.txt").write_text(f"[{stamp}] {xid} the bus.\n")
    lines = ["srun: error: gpu01: task 0: Exited with exit code 1"]
    verdict = said(tmp_path, train=lines, sacct=accounting("FAILED", 60, "1:0"))

    assert verdict.state == "undetermined"


def test_ranks_that_all_chose_one_card_are_no_stray_processes(tmp_path: Path) -> None:
    full = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB. GPU 0 has a"
        " total capacity of 79.15 GiB of which 20.81 MiB is free. Process 442 has 30.90 GiB memory"
        " in use. Process 4421 has 15.90 GiB memory in use. Including non-PyTorch memory, this"
        " process has 9.20 GiB memory in use."
    )
    lines = [line for rank in (5, 6) for line in traceback(full, f"[rank{rank}]: ")]
    verdict = said(tmp_path, train=lines)

    assert (verdict.code, verdict.attribution) == ("B1", "unknown")


FELL_OFF = (
    "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
)


@pytest.mark.parametrize(
    ("host", "code"), [("gpu77", None), ("gpu02", "B2"), ("ip-10-0-0-7", "B2")]
)
def test_the_kernel_of_a_host_the_job_did_not_hold_is_left_out(
    tmp_path: Path, host: str, code: str | None
) -> None:
    """A node may go by another name in its kernel log, but not by one of its neighbours'."""
    stamp = at(1555, "%a %b %d %H:%M:%S %Y")
    (tmp_path / f"dmesg-{host}.txt").write_text(f"[{stamp}] {FELL_OFF}\n")
    lines = [*steps(1, 500), "srun: error: gpu01: task 0: Exited with exit code 1"]

    assert said(tmp_path, train=lines, sacct=accounting("FAILED", 1600, "1:0")).code == code


def test_a_helper_at_the_memory_limit_after_the_end_took_nothing(tmp_path: Path) -> None:
    record = accounting("OUT_OF_MEMORY", 3200, "0:125", "1|zip|||OUT_OF_MEMORY|0:125")

    assert said(tmp_path, train=steps(1, 991), sacct=record).state == "undetermined"


def test_silence_after_the_end_is_no_standstill(tmp_path: Path) -> None:
    record = accounting("CANCELLED by 1000", 9200)

    assert said(tmp_path, train=steps(1, 991), sacct=record).state == "undetermined"


# --- causes that cannot be ---


def test_a_lost_node_is_not_why_a_key_was_missing_an_hour_before(tmp_path: Path) -> None:
    stamp = at(5000, "%Y-%m-%dT%H:%M:%S")
    ended = f"slurmstepd: error: *** JOB 9 ON gpu01 CANCELLED AT {stamp} DUE TO NODE FAILURE ***"
    lines = [*steps(1, 500), *traceback("KeyError: 'labels'"), ended]
    verdict = said(tmp_path, train=lines, sacct=accounting("NODE_FAIL", 5000))

    assert verdict.confidence < 0.8
    assert verdict.resubmit != "exclude"  # no node is named


def test_a_task_that_slept_in_the_kernel_did_not_lose_a_key(tmp_path: Path) -> None:
    stamp = at(1800, "%a %b %d %H:%M:%S %Y")
    slept = "INFO: task kworker/u512:1:8811 blocked for more than 120 seconds."
    (tmp_path / "dmesg-gpu01.txt").write_text(f"[{stamp}] {slept}\n")
    lines = [*steps(1, 500), *traceback("KeyError: 'labels'")]

    assert said(tmp_path, train=lines, sacct=accounting("FAILED", 1600, "1:0")).code == "A3"


# --- an error stream of its own ---


@pytest.mark.parametrize(
    ("state", "ended", "allowed"),
    [
        ("COMPLETED", True, "healthy"),  # caught, or after all that mattered
        ("COMPLETED", False, "found"),
        ("FAILED", False, "found"),
    ],
)
def test_a_traceback_in_a_stream_of_its_own_beside_the_last_step(
    tmp_path: Path, state: str, ended: bool, allowed: str
) -> None:
    done = [f"{at(3090)},000 INFO training finished: 1000 steps"] if ended else []
    verdict = said(
        tmp_path,
        out=[*steps(1, 991), *done],
        err=traceback("AttributeError: no attribute 'state_dict'"),
        sacct=accounting(state, 3100, "0:0" if state == "COMPLETED" else "1:0"),
    )

    assert verdict.state == allowed
    assert (verdict.confidence >= 0.8) is (state == "FAILED")


def test_a_host_is_excluded_by_the_name_the_scheduler_knows(tmp_path: Path) -> None:
    stamp = at(1555, "%b %d %H:%M:%S")
    (tmp_path / "syslog").write_text(f"{stamp} gpu02.cluster.local kernel: {FELL_OFF}\n")
    lines = [*steps(1, 500), "srun: error: gpu01: task 0: Exited with exit code 1"]
    verdict = said(tmp_path, train=lines, sacct=accounting("FAILED", 1600, "1:0"))

    assert verdict.actions[0].command == "sbatch --exclude=gpu02"


# --- steps that move nothing ---


@pytest.mark.parametrize(("skipped", "state"), [(70, "found"), (2, "healthy")])
def test_a_run_that_skips_every_step_to_its_end_learned_nothing_more(
    tmp_path: Path, skipped: int, state: str
) -> None:
    lines = []
    for n in range(10, 1001, 10):
        lost = n > 1000 - 10 * skipped
        loss = "" if lost else f" lm loss: {2 + 60 / (9 + n):.6E} |"
        lines.append(
            f" [{at(60 + 4 * n)}] iteration {n:8d}/    1000 | consumed samples: {n * 512:12d} |"
            f" elapsed time per iteration (ms): 4000.0 | learning rate: 1.000000E-04 |{loss}"
            f" loss scale: 1.0 | number of skipped iterations: {10 * lost:3d} |"
            " number of nan iterations:   0 |"
        )
    verdict = said(
        tmp_path, train=["training ...", *lines, "[after training is done] datetime: x"]
    )

    assert verdict.state == state
    assert verdict.code == ("E1" if state == "found" else "G1")


@pytest.mark.parametrize(("skipped", "state"), [(90, "found"), (3, "healthy")])
def test_a_scaler_that_prints_for_itself_is_heard_beside_the_loss(
    tmp_path: Path, skipped: int, state: str
) -> None:
    lines = steps(1, 300) if skipped > 9 else steps(1, 991)
    lines += [
        f"[{at(3100 + n)},123] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW!"
        " Rank 0 Skipping step. Attempted loss scale: 1, reducing to 1"
        for n in range(skipped)
    ]
    done = f"{at(3400)},000 INFO training finished: 1000 steps"

    assert said(tmp_path, train=[*lines, done]).state == state


@pytest.mark.parametrize(("speaks", "code"), [("gpu01", None), ("ip-10-0-0-4", "B2")])
def test_a_syslog_that_calls_the_nodes_by_their_names_calls_no_other_host_one(
    tmp_path: Path, speaks: str, code: str | None
) -> None:
    def stamp(seconds: float) -> str:
        return at(seconds, "%b %d %H:%M:%S")

    (tmp_path / "messages").write_text(
        f"{stamp(1500)} {speaks} kernel: [  812.000001] audit: type=1400\n"
        f"{stamp(1555)} ip-10-0-0-7 kernel: [81234.000002] {FELL_OFF}\n"
    )
    lines = [*steps(1, 500), "srun: error: gpu01: task 0: Exited with exit code 1"]

    assert said(tmp_path, train=lines, sacct=accounting("FAILED", 1600, "1:0")).code == code


@pytest.mark.parametrize("page", ["README.md", "notes.txt", "Known-Issues.txt", "TODO"])
def test_errors_on_a_page_for_readers_beside_the_log_are_not_the_runs(
    tmp_path: Path, page: str
) -> None:
    (tmp_path / page).write_text(
        "If it prints\n\n    OSError: [Errno 28] No space left on device\n"
    )

    verdict = said(tmp_path, train=["loading", *traceback("KeyError: 'labels'")])

    assert (verdict.code, len(verdict.findings)) == ("A1", 1)


def test_a_page_that_is_all_there_is_is_the_log(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("\n".join(["loading", *traceback("KeyError: 'labels'")]))

    assert said(tmp_path).code == "A1"


def test_a_kernel_of_a_host_that_may_not_be_a_node_is_doubted(tmp_path: Path) -> None:
    stamp = at(1555, "%a %b %d %H:%M:%S %Y")
    lines = [*steps(1, 500), "srun: error: gpu01: task 0: Exited with exit code 1"]
    record = accounting("FAILED", 1600, "1:0")
    sure = {}
    for host in ("rack7-a4", "gpu02"):
        folder = tmp_path / host
        folder.mkdir()
        (folder / f"dmesg-{host}.txt").write_text(f"[{stamp}] {FELL_OFF}\n")
        sure[host] = said(folder, train=lines, sacct=record).confidence

    assert sure["rack7-a4"] < 0.8 <= sure["gpu02"]
