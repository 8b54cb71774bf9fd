"""What a run lived past does not end it; what was made before it died is told by its traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

NO_GPU = (
    "2023-05-10 12:03:17.602190: E tensorflow/stream_executor/cuda/cuda_driver.cc:271] failed call"
    " to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected\n"
)
KILLED = (
    "/var/spool/job22/slurm_script: line 22: 443552 Killed                  python main.py a.ini\n"
    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=22.batch. Some of your processes"
    " may have been killed by the cgroup out-of-memory handler.\n"
)
NO_ACTIVATE = "/var/spool/job64/slurm_script: line 12: activate: No such file or directory\n"
HISTORY = "wandb: Run history:\nwandb:  acc ▁▆█▇▆█▇█\nwandb: loss █▆▅▂▁▁▂▁\nwandb: \n"


def said(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def raised(*frames: tuple[str, str], what: str) -> str:
    rows = "".join(
        f'  File "/w/main.py", line 7, in {name}\n    {code}\n' for name, code in frames
    )
    return f"Traceback (most recent call last):\n{rows}{what}\n"


def test_a_program_that_goes_on_without_gpus_is_killed_for_its_memory(tmp_path: Path) -> None:
    """TensorFlow falls back to the CPU; the kernel's kill is what ended it."""
    verdict = said(tmp_path, NO_GPU + KILLED)

    assert (verdict.code, verdict.fault_class) == ("A2", "cgroup-oom")
    assert verdict.confidence >= 0.8


def test_where_nothing_follows_the_missing_gpu_is_the_cause(tmp_path: Path) -> None:
    """And where a launcher was missing, a helper's end is none of it."""
    verdict = said(tmp_path, NO_GPU)
    missed = "run.sh: line 3: torchrun: command not found\nrun.sh: line 4: 42 Killed  ./watch.sh\n"

    assert (verdict.code, verdict.fault_class) == ("A1", "env")
    assert said(tmp_path, missed).code == "A1"


def test_a_script_goes_on_after_what_it_could_not_open(tmp_path: Path) -> None:
    """The program was run: its traceback shows what it lacked."""
    text = raised(
        ("main", "data = Cyclegta5(root)"),
        ("__init__", "self.ids = loadmat(split)"),
        what="FileNotFoundError: [Errno 2] No such file or directory: '/images/gta5/split.mat'",
    )
    verdict = said(tmp_path, NO_ACTIVATE + text)

    assert (verdict.code, verdict.fault_class) == ("A1", "data")


@pytest.mark.parametrize(
    ("above", "frames", "code"),
    [
        ("", [("main", "saveAgent(agent, name)"),
              ("saveAgent", "pickle.dump(agent, open(f'out/{name}.obj', 'wb'))")], "A3"),
        ("", [("main", "readAgent(agent, name)"),
              ("readAgent", "pickle.load(open(f'out/{name}.obj', 'rb'))")], "A1"),
        ("", [("main", "save_model(net, epoch=0)"),
              ("save_model", "torch.save(net, open(path, 'wb'))")], "A1"),
        (HISTORY, [("main", "write(result)"), ("write", "open(path, 'w')")], "A1"),
        ("", [("main", "write_config(cfg)"),
              ("save_model", "json.dump(cfg, open(p, 'w'))")], "A1"),
    ],
)  # fmt: skip
def test_a_model_that_is_written_down_and_losses_that_were_logged_were_trained(
    tmp_path: Path, above: str, frames: list[tuple[str, str]], code: str
) -> None:
    """No format of their steps is known, and none is needed for that."""
    what = "FileNotFoundError: [Errno 2] No such file or directory: 'out/a/b.obj'"

    assert said(tmp_path, above + raised(*frames, what=what)).code == code


def test_losses_that_a_tracker_lists_below_were_logged_by_this_run(tmp_path: Path) -> None:
    """Those above may be an earlier run's."""
    text = raised(("main", "write(result)"), what="ValueError: no such axis")

    assert said(tmp_path, text + HISTORY).code == "A3"


def report(job: int, why: str) -> str:
    return (
        f"\nSender: LSF System <lsfadmin@n-1>\nSubject: Job {job}: <t> in cluster <d> Exited\n\n"
        f"{why}\nExited with exit code 140.\n\nResource usage summary:\n\n"
        "    CPU time :                                   581.00 sec.\n\n"
        "The output (if any) is above this job summary.\n\n"
    )


MEMORY = "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit."
WALL = "TERM_RUNLIMIT: job killed after reaching LSF run time limit."


def test_what_lsf_appends_to_a_file_is_another_jobs(tmp_path: Path) -> None:
    """The last one is judged, and the ones before are its history."""
    verdict = said(tmp_path, report(10, MEMORY) + report(11, WALL))

    assert verdict.state == "undetermined"
    assert [(a.n, a.disposition) for a in verdict.run.attempts] == [(0, "failed"), (1, "timeout")]
    assert said(tmp_path, report(10, WALL) + report(11, MEMORY)).code == "A2"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("    Exit Status:    -17 (Job execution failed due to hook rejection; delete the job)",
         "F4"),
        ("=>> PBS: job killed: mem 4208516kb exceeded limit 4194304kb", "A2"),
        ("=>> PBS: job killed: mem 42gb exceeded limit 40gb", "A2"),
    ],
)  # fmt: skip
def test_pbs_says_what_it_did(tmp_path: Path, line: str, code: str) -> None:
    """At the end of the output, as LSF and Slurm do."""
    assert said(tmp_path, f"loading\n{line}\n").code == code


def test_rows_of_the_record_and_tries_in_one_log_are_the_same_tries(tmp_path: Path) -> None:
    """A requeued job appends to its log: the last try is the last row's, and none is made up."""
    row = "26|ft|{}|0:0|2026-02-11T{}|2026-02-11T{}|2026-02-11T{}|4|n[1-4]\n"
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Submit|Start|End|NNodes|NodeList\n"
        + row.format("PREEMPTED", "10:00:00", "10:00:10", "10:10:00")
        + row.format("COMPLETED", "10:10:00", "10:12:00", "10:40:00")
    )
    first = [f"step {n}/60 loss {4 - n / 30:.3f} step_time 10.0 s" for n in range(1, 41)]
    again = ["Resuming from checkpoint at step 30"]
    again += [f"step {n}/60 loss {4 - n / 30:.3f} step_time 10.0 s" for n in range(31, 61)]
    verdict = said(tmp_path, "\n".join(first + again) + "\n")

    assert [(a.n, a.disposition, a.first_step, a.last_step) for a in verdict.run.attempts] == [
        (0, "preempted", 1, 40),
        (1, "completed", 31, 60),
    ]


DIED = (
    "(raylet) A worker died or was killed while executing a task by an unexpected system error."
    " To troubleshoot the problem, check the logs for the dead worker. Worker PID: 4156\n"
)
TIMED_OUT = (
    "(RefActor pid=4347, ip=10.1.4.17) [rank1]:[E317 03:27:31.594678338 ProcessGroupNCCL.cpp:616]"
    " [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41,"
    " OpType=_ALLGATHER_BASE, NumelIn=110336, NumelOut=220672, Timeout(ms)=600000) ran for 600033"
    " milliseconds before timing out.\n"
)


def test_a_loaders_worker_is_ended_by_no_watchdog(tmp_path: Path) -> None:
    """It was gone first, and the others waited."""
    gone = (
        "[rank1]: RuntimeError: DataLoader worker (pid(s) 4242) exited unexpectedly\n"
        + TIMED_OUT.replace("[rank1]", "[rank0]").replace("[Rank 1]", "[Rank 0]")
    )

    assert said(tmp_path, gone).code == "A2"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (DIED + TIMED_OUT, "C2"),
        (TIMED_OUT + DIED, "C2"),
        (DIED, "A2"),
        (DIED + "(RefActor pid=4347) loading shard\n" * 40 + TIMED_OUT, "A2"),
    ],
)
def test_the_watchdog_that_ends_a_process_is_told_beside_its_end(
    tmp_path: Path, text: str, code: str
) -> None:
    """Ray prints the lines of many processes, and their order is nobody's: neither is sure."""
    verdict = said(tmp_path, text)

    assert verdict.code == code
    assert verdict.confidence < 0.8


LOADER = (
    "stage 1/50\nTraceback (most recent call last):\n"
    '  File "/venv/torch/utils/data/dataloader.py", line 990, in _try_get_data\n'
)


@pytest.mark.parametrize(
    ("words", "code", "fault_class"),
    [("Out Of Memory", "A2", "cgroup-oom"), ("Exited with exit code 1", "A1", "data")],
)
def test_srun_names_the_limit_that_a_task_met(
    tmp_path: Path, words: str, code: str, fault_class: str
) -> None:
    """Above it the loader tells of a worker that is gone."""
    verdict = said(tmp_path, LOADER + f"srun: error: gpu001: task 0: {words}\n")

    assert (verdict.code, verdict.fault_class) == (code, fault_class)


def test_aborts_of_all_tasks_without_a_word_of_the_program_are_not_sure(tmp_path: Path) -> None:
    """A watchdog or a coordination service aborts them all, and says so in logs not read here."""
    aborted = "".join(f"srun: error: n{n}: task {n}: Aborted (core dumped)\n" for n in range(4))
    alone = said(tmp_path, aborted)
    printed = "".join(f"loading shard {n}\n" for n in range(60))
    heard = said(tmp_path, printed + aborted)

    assert (alone.code, alone.confidence < 0.8) == ("A2", True)
    assert (heard.code, heard.confidence >= 0.8) == ("A2", True)


@pytest.mark.parametrize(
    ("aborted", "more", "sure"),
    [(4, "", False), (3, "", True), (4, "terminate called after throwing an instance of"
                                        " 'std::bad_alloc'\n  what():  std::bad_alloc\n", True)],
    ids=["every node's task", "one of them did not", "one says why"],
)  # fmt: skip
def test_aborts_of_every_nodes_task(tmp_path: Path, aborted: int, more: str, sure: bool) -> None:
    """However much else was printed: what takes all down at once is nobody's own doing."""
    (tmp_path / "train.log").write_text(
        "".join(f"loading shard {n}\n" for n in range(60)) + more
        + "".join(f"srun: error: n{n}: task {n}: Aborted (core dumped)\n" for n in range(aborted))
    )  # fmt: skip
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        "18|t|FAILED|134:0|2026-11-20T09:59:00|2026-11-20T10:14:00|4|n[0-3]\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.confidence >= 0.8) == ("A2", sure)


def test_a_limit_that_bears_no_time_is_no_proof_of_progress_up_to_it(tmp_path: Path) -> None:
    """PBS names the limit alone: a hang may have run into it."""
    steps = "".join(
        f"2026-03-01 10:{n // 60:02d}:{n % 60:02d} INFO step {n}/9000 loss {4 - n / 800:.3f}\n"
        for n in range(1, 800, 5)
    )
    limit = "=>> PBS: job killed: walltime 14441 exceeded limit 14400\n"

    assert said(tmp_path, steps + limit).confidence < 0.8


def test_a_kernels_line_is_of_the_try_that_ran_then(tmp_path: Path) -> None:
    """By the rows of the record: what broke under the first is no sign of the second."""
    row = "18|t|{}|0:0|2026-11-20T09:59:00|2026-11-20T{}|2026-11-20T{}|1|gpu1\n"
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Submit|Start|End|NNodes|NodeList\n"
        + row.format("REQUEUED", "10:00:00", "10:14:10")
        + row.format("TIMEOUT", "10:14:15", "14:00:00")
    )
    (tmp_path / "dmesg.txt").write_text(
        "[Fri Nov 20 10:14:01 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=42, name=python, GPU has"
        " fallen off the bus.\n"
    )
    steps = [f"2026-11-20 10:{n // 60:02d}:{n % 60:02d} INFO step {n}/2000 loss {4 - n / 400:.3f}"
             for n in range(1, 800, 10)]  # fmt: skip
    again = ["2026-11-20 10:14:20 INFO Resuming from checkpoint step 600"]
    again += [
        f"2026-11-20 10:15:{n % 60:02d} INFO step {n}/2000 loss 2.4" for n in range(601, 640, 9)
    ]
    verdict = said(tmp_path, "\n".join(steps + again) + "\n")

    assert verdict.code == "B2"
    assert next(f.finding.attempt for f in verdict.findings if f.finding.code == "B2") == 0


def test_what_ended_an_earlier_try_stays_the_cause_where_the_last_met_the_wall(
    tmp_path: Path,
) -> None:
    """A card that fell off the bus is no less broken for a second try that hung."""
    steps = [
        f"2026-03-02 0{1 + n // 60}:{n % 60:02d}:00 INFO step {n}/900 loss {4 - n / 300:.3f}"
        for n in range(1, 300)
    ]
    again = [f"2026-03-02 07:0{n}:00 INFO step {n}/900 loss 2.9" for n in range(1, 5)]
    xid = "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=9, GPU has fallen off the bus."
    wall = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-02T11:04:58 DUE TO TIME LIMIT"
    verdict = said(tmp_path, "\n".join([*steps, xid, "Resuming from step 200", *again, wall]))

    assert verdict.code == "B2"


@pytest.mark.parametrize(("told", "code"), [(TIMED_OUT, "C2"), ("", "G1")])
def test_one_ranks_end_is_not_its_peers(tmp_path: Path, told: str, code: str) -> None:
    """It is done while another waits for it in a collective."""
    steps = "".join(
        f"step {n}/400 loss {4 - n / 100:.3f} step_time 1.0 s\n" for n in range(1, 301)
    )
    (tmp_path / "rank1.log").write_text(steps + "Training complete\n")
    (tmp_path / "rank0.log").write_text(steps + (told or "Training complete\n"))

    assert diagnose(collect(Request((str(tmp_path),)))).code == code
