"""Verdicts built by hand: what `diagnose` hands to every surface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta

from flatline.model import (
    AbsenceCite,
    Action,
    Attempt,
    Claim,
    DerivedCite,
    DumpCite,
    Explained,
    Finding,
    Gap,
    Impact,
    Judged,
    LogCite,
    Place,
    QueryCite,
    RecordCite,
    RuledOut,
    Run,
    Undetermined,
    Verdict,
)

START = datetime(2026, 3, 1, 1, 10, 2, tzinfo=UTC)
OURS = {
    "action",
    "attribution",
    "code",
    "disposition",
    "family",
    "id",
    "kind",
    "resubmit",
    "role",
    "scope",
    "severity",
    "state",
}
"""Fields that hold words of Flatline's own, never of the run's."""
ONSET = datetime(2026, 3, 1, 4, 12, 55, 120_000, tzinfo=UTC)
END = datetime(2026, 3, 1, 4, 43, 11, tzinfo=UTC)
CULPRIT = Place(host="node07", gpu="3", rank=59)

XID = LogCite(
    "node07/dmesg.txt",
    20331,
    "[1209311.441902] NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, "
    "GPU has fallen off the bus.",
    Place(host="node07", device="0000:9b:00"),
    ONSET,
)
CRASH = LogCite(
    "logs/8308/node07/rank59.err",
    10234,
    "[rank59]:[2026-03-01 04:12:57,004] [megatron/core/pipeline_parallel/schedules.py:1432] "
    "[INFO] iteration 18200 forward_backward_pipelining_with_interleaving raised "
    "torch.AcceleratorError: CUDA error: unspecified launch failure; CUDA kernel errors might be "
    "asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
    CULPRIT,
    ONSET + timedelta(seconds=2),
)
POWER = QueryCite(
    "http://prometheus.cluster:9090",
    'min_over_time(DCGM_FI_DEV_POWER_USAGE{Hostname="node07",gpu="3"}[10m])',
    "prometheus 3.1.0",
    ONSET,
    ONSET + timedelta(minutes=10),
    15.0,
    0.0,
    "watts",
    "the card draws nothing from the onset to the end; its peers draw 310 W and more",
    CULPRIT,
)
WAIT = DumpCite(
    "dumps/nccl_trace_rank_12",
    "rank 12/group default_pg/sequence 88123",
    "started",
    "ALLREDUCE 88123 was started by rank 12 and never completed",
    Place(host="node02", rank=12),
    ONSET + timedelta(seconds=4),
)
LAG = DerivedCite(
    "flatline.judging.lag@1",
    (WAIT, XID),
    (("quantile", 0.5), ("peers", 127)),
    4.1,
    "the others stopped 4.1 s after the GPU was lost",
    "seconds",
)
STATE = RecordCite("sacct.json", "jobs/0/state/current", "FAILED", "State=FAILED", at=END)
NO_TRACEBACK = AbsenceCite(
    "logs/8308",
    (r"Traceback \(most recent call last\)", r"MemoryError", r"oom-kill", r"Killed process"),
    tuple(f"logs/8308/node{n:02d}.out" for n in range(1, 17)),
    1_203_441,
    "no other rank raised anything before the onset",
)

SHOWS = (
    Claim("The kernel of node07 lost GPU 0000:9b:00 (Xid 79) in step 18,200.", (XID,)),
    Claim("Rank 59, which holds that GPU, raised a CUDA launch failure 2 s later.", (CRASH,)),
    Claim("The power of that GPU fell to 0 W and stayed there; its peers kept 310 W.", (POWER,)),
    Claim("No other rank raised anything before that.", (NO_TRACEBACK,)),
)
IMPLIES = (
    Claim(
        "The card or its link failed under the job. The 127 other ranks waited in an all-reduce "
        "until their watchdogs ended them: they are victims.",
        (XID, WAIT, LAG),
    ),
)
ACTIONS = (
    Action(
        "exclude",
        "Submit again without node07, from the checkpoint of step 17,788.",
        "sbatch --exclude=node07 train.sbatch",
        ("node07",),
    ),
    Action(
        "escalate",
        "Drain node07 and have the card and its riser looked at.",
        "scontrol update NodeName=node07 State=DRAIN "
        "Reason='Xid 79 on 0000:9b:00, job 8308, see the verdict of Flatline'",
        ("node07",),
    ),
)

OWN = Judged(
    "f1",
    "gpu-hardware-fault",
    Finding(
        "B2",
        "GPU 3 of node07 fell off the bus (Xid 79) in step 18,200.",
        "infrastructure",
        SHOWS,
        IMPLIES,
        0.93,
        fault_class="off-bus",
        culprits=(CULPRIT,),
        onset=ONSET,
        onset_step=18200,
        resubmit="exclude",
    ),
    "cause",
    0.96,
)
HANG = Judged(
    "f2",
    "collective-hang",
    Finding(
        "C2",
        "127 ranks waited in ALLREDUCE 88123 for rank 59.",
        "unknown",
        (Claim("ALLREDUCE 88123 was started by 127 ranks and completed by none.", (WAIT, LAG)),),
        (),
        0.8,
        fault_class="lost-peer",
        culprits=(CULPRIT,),
        onset=ONSET + timedelta(seconds=4),
    ),
    "consequence",
    0.91,
    (Explained("f1", "a rank whose GPU is gone can no longer join the collective"),),
)
LATENT = Judged(
    "f3",
    "gpu-hardware-fault",
    Finding(
        "B2",
        "GPU 5 of node03 has 3 uncorrectable row remaps from before this run.",
        "infrastructure",
        (Claim("The counter stood at 3 throughout.", (STATE,)),),
        (),
        0.6,
        role="warning",
        severity="warning",
        fault_class="latent",
        culprits=(Place(host="node03", gpu="5"),),
        ended_run=False,
    ),
    "warning",
    0.71,
)

RUN = Run(
    "8308",
    ("./outputs/8308",),
    "failed",
    "Megatron-LM",
    "torchrun",
    tuple(f"node{n:02d}" for n in range(1, 17)),
    128,
    START,
    END,
    END,
    18200,
    50000,
    (Attempt(0, "failed", START, END, 1, None, ("node07",), 0, 18200),),
)


def found() -> Verdict:
    """A GPU fell off the bus, a hang followed, a latent warning stands beside."""
    return Verdict(
        run=RUN,
        state="found",
        headline="GPU 3 of node07 fell off the bus (Xid 79); "
        "the 127 other ranks froze waiting for it.",
        code="B2",
        family="gpu-hardware-fault",
        fault_class="off-bus",
        attribution="infrastructure",
        confidence=0.96,
        scope="place",
        culprits=(CULPRIT,),
        cleared=(),
        severity="fatal",
        onset=ONSET,
        onset_step=18200,
        impact=Impact(64.5, 412, 17788),
        resubmit="exclude",
        shows=SHOWS,
        implies=IMPLIES,
        cannot_decide=(
            "Whether the card or the riser is bad: the PCIe errors of the host (reported in "
            "its kernel log) would tell.",
        ),
        actions=ACTIONS,
        findings=(HANG, OWN, LATENT),
        ruled_out=(
            RuledOut("A2", "signal-kill", "no signal ended a process before it", (NO_TRACEBACK,)),
            RuledOut(
                "B1",
                "gpu-out-of-memory",
                "no allocation failed in 1,203,441 lines",
                (NO_TRACEBACK,),
            ),
            RuledOut("F1", "node-down", "node07 stayed up until after the end", (STATE,)),
        ),
        undetermined=(
            Undetermined("B3", "clock-throttling", ("GPU clocks",)),
            Undetermined("D1", "input-starvation", ("GPU activity (SM active)",)),
            Undetermined("D3", "straggler", ("GPU activity (SM active)",)),
            Undetermined("D4", "network-degradation", ("link counters of the fabric",)),
        ),
        gaps=(
            Gap("kernel log", "permission denied", "node03/dmesg.txt"),
            Gap("kernel log", "permission denied", "node04/dmesg.txt"),
            Gap(
                "flight-recorder dump",
                "truncated after 1,048,576 bytes",
                "dumps/nccl_trace_rank_59",
            ),
        ),
        catalogue="sha256:0f3a",
    )


def healthy() -> Verdict:
    """A run that reached its plan."""
    reached = LogCite("train.log", 50211, "step 50000/50000 | loss 2.113", at=END)
    return replace(
        found(),
        run=replace(RUN, disposition="completed", last_step=50000),
        state="healthy",
        headline="The run reached its 50,000 planned steps with a falling loss.",
        code="G1",
        family="healthy",
        fault_class=None,
        attribution="none",
        confidence=0.79,
        scope="none",
        culprits=(),
        severity="none",
        onset=None,
        onset_step=None,
        impact=None,
        resubmit="unnecessary",
        shows=(Claim("The last step is the last planned one.", (reached,)),),
        implies=(),
        cannot_decide=(),
        actions=(),
        findings=(LATENT,),
        gaps=(),
    )


def undetermined() -> Verdict:
    """Nothing was recognised: every optional part is empty."""
    return Verdict(
        run=Run(None, ("run.log",), "unknown"),
        state="undetermined",
        headline="Nothing in 12 lines of one file says how the run ended.",
        code=None,
        family=None,
        fault_class=None,
        attribution="unknown",
        confidence=0.0,
        scope="none",
        culprits=(),
        cleared=(),
        severity=None,
        onset=None,
        onset_step=None,
        impact=None,
        resubmit="unknown",
        shows=(),
        implies=(),
        cannot_decide=("How the run ended: the scheduler's record (`sacct -j JOB`) would tell.",),
        actions=(
            Action("collect", "Add the scheduler's record.", "sacct -P -j JOB -o ALL > sacct.psv"),
        ),
        findings=(),
        ruled_out=(),
        undetermined=(),
        gaps=(),
    )


def huge() -> Verdict:
    """Everything by the thousand: places, citations, claims, gaps, families."""
    places = tuple(
        Place(host=f"node{rank // 8 + 1:04d}", gpu=str(rank % 8), rank=rank)
        for rank in range(16_384)
    )
    cites = tuple(LogCite("all.log", n, f"line {n}") for n in range(1, 1001))
    every = DerivedCite("flatline.judging.spread@1", cites, (), 0.4, "spread over all ranks")
    return replace(
        found(),
        culprits=places,
        shows=tuple(Claim(f"claim {n}", (cite,)) for n, cite in enumerate(cites[:40])),
        implies=(Claim("all of them", (*cites, every)),),
        findings=(OWN, *(replace(HANG, id=f"f{n}") for n in range(2, 40))),
        gaps=tuple(Gap("log", f"reason {n % 20}", f"rank{n}.log") for n in range(5000)),
        ruled_out=tuple(RuledOut(f"X{n}", f"family-{n}", "no", (STATE,)) for n in range(30)),
        undetermined=tuple(
            Undetermined(f"Y{n}", f"blind-{n}", (f"store {n % 20}",)) for n in range(30)
        ),
    )


def poisoned(value: object, payload: str) -> object:
    """The same value with `payload` behind every text that a run could have written."""
    if isinstance(value, str):
        return value + payload
    if isinstance(value, tuple):
        return tuple(poisoned(item, payload) for item in value)
    if isinstance(value, Mapping) or not is_dataclass(value) or isinstance(value, type):
        return value
    changes = {
        field.name: poisoned(getattr(value, field.name), payload)
        for field in fields(value)
        if field.name not in OURS
    }
    return replace(value, **changes)


def hostile(payload: str) -> Verdict:
    """The verdict of `found` made from a run that wrote `payload` wherever it could."""
    made = poisoned(found(), payload)
    assert isinstance(made, Verdict)
    return made
