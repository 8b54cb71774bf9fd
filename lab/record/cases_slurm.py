"""Jobs of a real Slurm: time limits, cancels, lost nodes, memory limits, requeues, failed launches."""

from __future__ import annotations

import signal
import time

from lab.record.case import Case, listed
from lab.record.data import dump_records, index_for, write_records
from lab.record.slurm_lab import slurm, task_pid
from lab.record.stage import HOME, Stage

CASES: list[Case] = []
PROJECT = HOME / "proj"
SRUN = "srun --label --kill-on-bad-exit=1 bash launch.sh"


def everyone_but(task: int) -> tuple[dict[str, object], ...]:
    """The other ranks, tasks and hosts of a job of four."""
    others = [i for i in range(4) if i != task]
    names = [*({"rank": i} for i in others), *({"task": i} for i in others)]
    return (*names, *({"host": f"gpu{i + 1}"} for i in others))


def data() -> None:
    write_records(PROJECT / "data" / "train.jsonl", 12_000)


@listed(CASES, origin="slurm", about=("G1", "F3"), state="healthy", attribution="none")
def slurm_completed(stage: Stage) -> None:
    """Four nodes train to the planned 300 steps; Slurm says COMPLETED."""
    lab = slurm()
    data()
    job = lab.submit(stage, f"{SRUN} --steps 300")
    lab.until(job, ["COMPLETED"])
    lab.keep(stage, job)


@listed(
    CASES, origin="slurm", about=("F3", "C2"), code="F3", attribution="job", demo="time-limit",
    title="The job ran into its time limit with training still advancing: it needed more time, not a repair.",
)  # fmt: skip
def slurm_time_limit_with_progress(stage: Stage) -> None:
    """--time is one minute and the run would need much longer; it makes progress to the last second."""
    lab = slurm()
    data()
    job = lab.submit(
        stage, f"{SRUN} --steps 50000 --log-every 50 --save-every 500", limit="00:01:00"
    )
    lab.until(job, ["TIMEOUT"])
    lab.keep(stage, job)


@listed(
    CASES, origin="slurm", about=("C2", "F3"), code="C2", state=("found", "undetermined"),
    not_culprits=everyone_but(2),
)  # fmt: skip
def slurm_hang_until_time_limit(stage: Stage) -> None:
    """Rank 2 gets SIGSTOP some 15 s after the first step; the rest of the minute of --time nobody moves.

    Slurm says TIMEOUT; the log's dated lines show when progress ended, long before the limit.
    """
    lab = slurm()
    data()
    job = lab.submit(stage, f"{SRUN} --steps 50000 --log-every 20", limit="00:01:00")
    lab.line(stage, job, "step 400/")
    stage.kill(task_pid(job, 2), signal.SIGSTOP, "the process of rank 2")
    lab.until(job, ["TIMEOUT"])
    lab.keep(stage, job)


@listed(CASES, origin="slurm", about=("F3", "C2"), state="undetermined")
def slurm_cancelled_while_sound(stage: Stage) -> None:
    """The user cancels a job that trains well; what for, only they know."""
    lab = slurm()
    data()
    job = lab.submit(stage, f"{SRUN} --steps 50000 --log-every 50")
    lab.line(stage, job, "step 600/")
    lab.user("scancel", str(job))
    stage.note(f"scancel {job} by its user")
    lab.until(job, ["CANCELLED"])
    lab.keep(stage, job)


@listed(
    CASES, origin="slurm", about=("C2", "F3"), code="C2", state=("found", "undetermined"),
    not_culprits=everyone_but(1),
)  # fmt: skip
def slurm_hung_then_cancelled(stage: Stage) -> None:
    """Rank 1 gets SIGSTOP; 80 s later the user gives up and cancels the job.

    A step took some 30 ms before.  The cancel is dated in the log and by Slurm; nothing names a rank.
    """
    lab = slurm()
    data()
    job = lab.submit(stage, f"{SRUN} --steps 50000 --log-every 20")
    lab.line(stage, job, "step 300/")
    stage.kill(task_pid(job, 1), signal.SIGSTOP, "the process of rank 1")
    time.sleep(80)
    lab.user("scancel", str(job))
    stage.note(f"scancel {job} by its user")
    lab.until(job, ["CANCELLED"])
    lab.keep(stage, job)


@listed(CASES, origin="slurm", about=("A2",), code="A2", not_culprits=everyone_but(1))
def slurm_task_killed(stage: Stage) -> None:
    """The process of task 1 on gpu2 gets SIGKILL from outside."""
    lab = slurm()
    data()
    job = lab.submit(stage, f"{SRUN} --steps 50000 --log-every 20")
    lab.line(stage, job, "step 200/")
    stage.kill(task_pid(job, 1), signal.SIGKILL, "the process of task 1")
    lab.until(job, ["FAILED", "CANCELLED", "COMPLETED"])
    lab.keep(stage, job)


@listed(
    CASES,
    origin="slurm",
    about=("A3",),
    code="A3",
    attribution="job",
    not_culprits=everyone_but(3),
)
def slurm_bad_record(stage: Stage) -> None:
    """The record that rank 3 reads at step 90 has no `text`; the step ends with exit status 1."""
    lab = slurm()
    records = write_records(PROJECT / "data" / "train.jsonl", 12_000)
    bad = records[index_for(3, 90, 4, 8)]
    bad["body"] = bad.pop("text")
    dump_records(PROJECT / "data" / "train.jsonl", records)
    job = lab.submit(stage, f"{SRUN} --steps 400")
    lab.until(job, ["FAILED"])
    lab.keep(stage, job)


@listed(
    CASES, origin="slurm", about=("A2", "B1"), code="A2", fault_class="cgroup-oom",
    attribution="job", not_culprits=everyone_but(2),
)  # fmt: skip
def slurm_step_out_of_memory(stage: Stage) -> None:
    """--mem is 900 MB a node; the cache of rank 2 grows beyond it and the step's cgroup kills it.

    The batch script ends with the status of srun, so the job and the step need not agree.
    """
    lab = slurm()
    records = write_records(PROJECT / "data" / "train.jsonl", 12_000)
    for step in range(40, 300):
        records[index_for(2, step, 4, 8)]["attachment_mb"] = 8
    dump_records(PROJECT / "data" / "train.jsonl", records)
    job = lab.submit(
        stage,
        f'{SRUN} --steps 600 --cache\nstatus=$?\necho "srun ended with $status"\nexit $status',
    )
    lab.until(job, ["FAILED", "OUT_OF_MEMORY"])
    lab.keep(stage, job)


@listed(
    CASES, origin="slurm", about=("F1", "C2"), code="F1", attribution="infrastructure",
    culprits=({"host": "gpu3"},), not_culprits=({"host": "gpu1"}, {"host": "gpu2"}, {"host": "gpu4"}),
    demo="node-lost", title="A node stopped answering in the middle of training and Slurm ended the job with NODE_FAIL.",
)  # fmt: skip
def slurm_node_lost(stage: Stage) -> None:
    """The network link of gpu3 is cut; Slurm gives the node up some 30 s later and ends the job.

    node.txt is `scontrol show node` right after.  --no-requeue.
    """
    lab = slurm()
    data()
    job = lab.submit(stage, f"{SRUN} --steps 50000 --log-every 20", "--no-requeue")
    lab.line(stage, job, "step 300/")
    lab.root("ip link set slv3 down")
    stage.note("the link of gpu3 was set down")
    try:
        lab.until(job, ["NODE_FAIL"])
        lab.keep(stage, job, nodes=True)
    finally:
        lab.root("ip link set slv3 up")


@listed(
    CASES, origin="slurm", about=("F1",), code="F1", attribution="infrastructure",
    culprits=({"host": "gpu2"},), not_culprits=({"host": "gpu1"}, {"host": "gpu3"}, {"host": "gpu4"}),
    args=("--job", "{job}"),
)  # fmt: skip
def slurm_node_set_down(stage: Stage) -> None:
    """An administrator sets gpu2 DOWN ("power supply failed") under a running job.

    The node answers all the while, so Slurm takes it back within seconds (ReturnToService=2): node.txt,
    read after that, shows four idle nodes.  sacct.txt holds every job of this cluster so far.
    """
    lab = slurm()
    data()
    job = lab.submit(stage, f"{SRUN} --steps 50000 --log-every 20", "--no-requeue")
    lab.line(stage, job, "step 300/")
    lab.root('scontrol update nodename=gpu2 state=down reason="power supply failed"')
    stage.note("gpu2 was set DOWN by the administrator")
    lab.until(job, ["NODE_FAIL"])
    lab.keep(stage, job, nodes=True, every_job=True)
    lab.root("scontrol update nodename=gpu2 state=resume || true")


@listed(
    CASES, origin="slurm", about=("G1", "F1"), state="healthy", attribution="none",
    not_culprits=({"host": "gpu4"},),
)  # fmt: skip
def slurm_node_drained_while_running(stage: Stage) -> None:
    """gpu4 is drained while the job runs; a drain lets jobs run, and the job reaches its planned end."""
    lab = slurm()
    data()
    job = lab.submit(stage, f"{SRUN} --steps 600")
    lab.line(stage, job, "step 100/")
    lab.root('scontrol update nodename=gpu4 state=drain reason="firmware update"')
    stage.note("gpu4 was set to DRAIN by the administrator")
    lab.until(job, ["COMPLETED"])
    lab.keep(stage, job, nodes=True)
    lab.root("scontrol update nodename=gpu4 state=resume")


@listed(CASES, origin="slurm", about=("F4", "A1"), code=("F4", "A1"), attribution="job")
def slurm_command_not_found(stage: Stage) -> None:
    """srun is given a program that does not exist."""
    lab = slurm()
    data()
    job = lab.submit(stage, "srun --label trian-lm --steps 300")
    lab.until(job, ["FAILED"])
    lab.keep(stage, job)


@listed(CASES, origin="slurm", about=("F4",), code="F4")
def slurm_mpi_plugin_missing(stage: Stage) -> None:
    """srun is told to use an MPI plug-in that this cluster does not have."""
    lab = slurm()
    data()
    job = lab.submit(stage, "srun --label --mpi=pmix_v4 bash launch.sh --steps 300")
    lab.until(job, ["FAILED", "CANCELLED", "COMPLETED"])
    lab.keep(stage, job)


@listed(CASES, origin="slurm", about=("F4",), code="F4", attribution=("job", "unknown"))
def slurm_step_asks_too_much(stage: Stage) -> None:
    """The batch script's srun asks for more nodes than the job has been given."""
    lab = slurm()
    data()
    job = lab.submit(
        stage, "srun --label --nodes=4 --ntasks=4 bash launch.sh --steps 300", nodes=2
    )
    lab.until(job, ["FAILED", "CANCELLED", "COMPLETED"])
    lab.keep(stage, job)


@listed(
    CASES, origin="slurm", about=("F4",), code="F4", attribution="infrastructure",
    not_culprits=({"host": "gpu1"}, {"host": "gpu3"}, {"host": "gpu4"}),
)  # fmt: skip
def slurm_prolog_failed(stage: Stage) -> None:
    """The prolog of gpu2 fails; Slurm drains the node, requeues the job and holds it.

    The batch script had begun on gpu1 by then, so there is a job log, and it speaks of a requeue.
    No rank ever started.  node.txt is `scontrol show node` right after.
    """
    lab = slurm()
    data()
    lab.root("touch /srv/slurm/etc/scratch_missing.gpu2")
    stage.note("the prolog was made to fail on gpu2")
    job = lab.submit(stage, f"{SRUN} --steps 300")
    for _ in range(120):
        if "DRAIN" in lab.user("scontrol", "show", "node", "gpu2"):
            break
        time.sleep(0.5)
    time.sleep(8)
    lab.keep(stage, job, nodes=True)
    lab.user("scancel", str(job))
    lab.root("rm /srv/slurm/etc/scratch_missing.gpu2; scontrol update nodename=gpu2 state=resume")


@listed(CASES, origin="slurm", about=("A1", "A3"), state="undetermined")
def slurm_failed_without_a_log(stage: Stage) -> None:
    """The job's output went to /dev/null; Slurm's records say FAILED with exit status 1 and no more."""
    lab = slurm()
    data()
    job = lab.submit(stage, f"{SRUN} --steps 300 --data data/trian.jsonl", "--output=/dev/null")
    lab.until(job, ["FAILED"])
    lab.keep(stage, job)


@listed(
    CASES, origin="slurm", about=("F2", "G1"), code=("F2", "G1"), state=("found", "healthy"),
    attribution=("scheduler", "none"), answers={"E2": "ruled_out"},
)  # fmt: skip
def slurm_requeued_and_resumed(stage: Stage) -> None:
    """The administrator requeues the job in mid-run; it starts again, resumes from its newest
    checkpoint and reaches the planned end.  Both runs append to one log (--open-mode=append)."""
    lab = slurm()
    data()
    body = f"{SRUN} --steps 900 --resume auto --save-every 100 --log-every 20"
    job = lab.submit(stage, body, "--requeue", "--open-mode=append")
    lab.line(stage, job, "step 440/")
    lab.root(f"scontrol requeue {job}")
    stage.note(f"scontrol requeue {job} by the administrator")
    lab.until(job, ["COMPLETED"], 400)
    lab.keep(stage, job)


@listed(
    CASES, origin="slurm", about=("F2",), code=("F2", "G1"), state=("found", "healthy"),
)  # fmt: skip
def slurm_preempted_log_lost(stage: Stage) -> None:
    """A job of the urgent partition takes the nodes; the first job is preempted, requeued, and runs
    to its planned end later.  Slurm truncates its log at the second start: only that run is in it.

    The second start resumes from step 200 or later and says so.
    """
    lab = slurm()
    data()
    body = f"{SRUN} --steps 700 --resume auto --save-every 100 --log-every 20"
    job = lab.submit(stage, body, "--requeue")
    lab.line(stage, job, "step 320/")
    urgent = lab.submit(
        stage,
        "srun sleep 12",
        "--partition=urgent",
        "--output=urgent.out",
        name="urgent-eval",
        script="urgent.sh",
    )
    stage.note(f"job {urgent} was submitted to the urgent partition")
    lab.until(urgent, ["COMPLETED"])
    lab.until(job, ["COMPLETED"], 400)
    lab.keep(stage, job)


@listed(CASES, origin="slurm", about=("A1", "F4"), state="undetermined")
def slurm_never_started(stage: Stage) -> None:
    """The job waits for nodes that another job holds; it has not started when its records are read."""
    lab = slurm()
    data()
    holder = lab.submit(
        stage, "srun sleep 600", "--output=holder.out", name="sweep-7", script="holder.sh"
    )
    lab.until(holder, ["RUNNING"])
    job = lab.submit(stage, f"{SRUN} --steps 300")
    time.sleep(6)
    lab.keep(stage, job)
    lab.user("scancel", str(job), str(holder))
