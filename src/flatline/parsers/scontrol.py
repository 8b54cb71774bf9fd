"""
`scontrol show job` and `scontrol show node` as text, any number of records, also with `-o`.

A record is a run of `Key=Value`.  Values are cut at the next space, except those of `FREE`,
which hold text: in the usual form such a value reaches to the end of its line, in the one-line
form to the next key that scontrol prints.  A user may have written `JobState=COMPLETED` into a
job's name; where a key of a one-line record stands twice with two values, it is left out.

Times carry no zone and are read as UTC (`ZONE_ASSUMED`).  A running job's EndTime and a pending
job's StartTime are plans and are not taken.  A node's `NodeEvent.at` is when its Reason was set,
which may be before its present state began; `BootTime` gives a second event, state "BOOTED".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from flatline.errors import FormatError
from flatline.model import Job, NodeEvent, Place, RecordCite, Records, Scalar
from flatline.parsers._rows import decoded
from flatline.parsers._slurm import (
    BOOTED,
    ENDED,
    cancelled_by,
    count,
    devices,
    disposition,
    duration_s,
    exit_pair,
    given,
    gpus,
    hosts,
    latest,
    named_once,
    node_states,
    oldest_first,
    read_time,
    state_words,
)

FORMAT = "scontrol"
ZONE_ASSUMED = True
JOB_KEYS = (
    "JobId ArrayJobId ArrayTaskId ArrayTaskThrottle HetJobId HetJobOffset HetJobIdSet JobName "
    "UserId GroupId MCS_label Priority Nice Account QOS WCKey JobState Reason FailedNode "
    "Dependency Requeue Restarts BatchFlag Reboot ExitCode DerivedExitCode RunTime TimeLimit "
    "TimeMin SubmitTime EligibleTime AccrueTime StartTime EndTime Deadline PreemptEligibleTime "
    "PreemptTime SuspendTime SecsPreSuspend ResizeTime LastSchedEval Scheduler Partition "
    "AllocNode:Sid ReqNodeList ExcNodeList NodeList SchedNodeList BatchHost NumNodes NumCPUs "
    "NumTasks CPUs/Task ReqB:S:C:T TRES ReqTRES AllocTRES Socks/Node NtasksPerN:B:S:C CoreSpec "
    "ThreadSpec JOB_GRES Nodes CPU_IDs Mem GRES MinCPUsNode MinMemoryNode MinMemoryCPU "
    "MinTmpDiskNode Features Prefer ClusterFeatures DelayBoot Reservation OverSubscribe "
    "Contiguous Licenses LicensesAlloc Network Switches GresEnforceBind KillOInInvalidDependent "
    "CronJob SegmentSize Command WorkDir AdminComment SystemComment Comment Extra Container "
    "StdErr StdIn StdOut BatchScript SubmitLine Power TresPerJob TresPerNode TresPerSocket "
    "TresPerTask TresBind TresFreq NtasksPerTRES MailUser MailType CpusPerTres MemPerTres "
    "BurstBuffer BurstBufferState FedOrigin FedViableSiblings FedActiveSiblings SELinuxContext"
)
NODE_KEYS = (
    "NodeName Arch CoresPerSocket CPUAlloc CPUEfctv CPUTot CPULoad AvailableFeatures "
    "ActiveFeatures Gres GresDrain GresUsed NodeAddr NodeHostName Port BcastAddr Version OS "
    "RealMemory AllocMem FreeMem Sockets Boards CoreSpecCount CPUSpecList MemSpecLimit State "
    "ThreadsPerCore TmpDisk Weight Owner MCS_label Partitions NextState BootTime "
    "SlurmdStartTime LastBusyTime ResumeAfterTime CfgTRES AllocTRES CapWatts CurrentWatts "
    "AveWatts ExtSensorsJoules ExtSensorsWatts ExtSensorsTemp EnergyJoules Extra Comment Reason "
    "ReservationName InstanceId InstanceType GpuSpec CertFlags Topology"
)
KEYS = frozenset((JOB_KEYS + " " + NODE_KEYS).split())
FREE_KEYS = (
    "JobName Command WorkDir AdminComment SystemComment Comment Extra Container StdErr StdIn "
    "StdOut SubmitLine BatchScript OS Network"
)
FREE = frozenset(FREE_KEYS.split())
OF_A_JOB, BEHIND = {"UserId", "JobState"}, 4
"""One of them stands in every record, on these lines: scripts print `JobId=7 JobName=gpt` too."""
OF_A_NODE = {"Arch", "CoresPerSocket", "State", "CPUTot"}
_KEY = re.compile(r"(?:^|(?<=[ \t]))([A-Z][A-Za-z_]{0,40}(?:[:/][A-Za-z:]{1,20})?)=")
_FIRST = re.compile(r"\s*(JobId|NodeName)=\S")
_HELD = re.compile(r"\bNodes=(\S{1,400}) CPU_IDs=\S{0,400} Mem=\d{0,12} GRES=(\S{1,400})")
_POINTER = re.compile(r"record (\d{1,9}), (\S{1,60})")
_SET_BY = re.compile(r"\s*\[([^\[\]@]{0,80})@([^\[\]@]{1,40})\]\s*$")


@dataclass(frozen=True, slots=True)
class Block:
    """One record: its number from 1, its keys and values, whether a job's or a node's."""

    number: int
    values: Mapping[str, str]
    held: tuple[tuple[str, str], ...] = ()
    """Nodes with what each gave of its GRES, as `scontrol -d` has them."""

    def __getitem__(self, key: str) -> str:
        return self.values.get(key, "")

    def pointer(self, key: str) -> str:
        return f"record {self.number}, {key}"


def _pairs(line: str, node: bool, single: bool) -> Iterator[tuple[str, str]]:
    """The keys and values of one line; `single` where the line is a whole record."""
    found = [mark for mark in _KEY.finditer(line) if mark[1] in KEYS]
    ends = [*(mark.start() for mark in found), len(line)][1:]
    swallowed = -1
    for mark, end in zip(found, ends, strict=True):
        if mark.start() < swallowed:
            continue
        key = mark[1]
        free = key in FREE or (key == "Reason" and node)
        if free and not single:
            swallowed = end = len(line)
        value = line[mark.end() : end].strip()
        yield key, value if free else value.split(" ")[0]


def _block(number: int, lines: Sequence[str]) -> Block:
    node = lines[0].lstrip().startswith("NodeName")
    single = len(lines) == 1
    pairs = [pair for line in lines for pair in _pairs(line, node, single)]
    values = named_once(pairs) if single else dict(reversed(pairs))
    return Block(number, values, tuple(p for line in lines for p in _HELD.findall(line)))


def _blocks(data: bytes) -> Iterator[Block]:
    """Records in their order. A record ends at an empty line or where the next begins."""
    number = 0
    gathered: list[str] = []
    for line in [*decoded(data).split("\n"), ""]:
        starts = _FIRST.match(line) is not None
        if gathered and (starts or not line.strip()):
            number += 1
            yield _block(number, gathered)
            gathered = []
        if starts or (gathered and line.strip()):
            gathered.append(line)


# --- jobs ---


def _job_id(block: Block) -> str:
    array, task = block["ArrayJobId"], block["ArrayTaskId"]
    if array and task:
        return f"{array}_{task}" if task.isdecimal() else f"{array}_[{task}]"
    het, offset = block["HetJobId"], block["HetJobOffset"]
    return f"{het}+{offset}" if het and offset else block["JobId"]


def _job(block: Block, source: str) -> Job:
    state = block["JobState"]
    ending = disposition(state_words(state))
    over = ending in ENDED or not state
    code, sign = exit_pair(block["ExitCode"], ending) if over else (None, None)
    derived, derived_sign = exit_pair(block["DerivedExitCode"], "failed")  # keeps the OOM mark
    ended = read_time(block["EndTime"]) if ending in ENDED else None
    job_id = _job_id(block)
    key = "JobState" if state else "JobId"
    shown = [f"{k}={block[k]}" for k in ("JobState", "Reason", "ExitCode") if block[k]]
    return Job(
        id=job_id,
        name=given(block["JobName"]),
        disposition=ending,
        state=state,
        cite=RecordCite(
            source=source,
            pointer=block.pointer(key),
            value=block[key],
            text=" ".join((f"JobId={job_id}", *shown)),
            at=ended,
        ),
        reason=given(block["Reason"]),
        exit_code=code,
        signal=sign,
        derived_exit_code=derived,
        derived_signal=derived_sign,
        submitted_at=read_time(block["SubmitTime"]),
        started_at=read_time(block["StartTime"]) if ending != "pending" else None,
        ended_at=ended,
        limit_s=duration_s(block["TimeLimit"]),
        nodes=hosts(block["NodeList"]),
        node_count=count(block["NumNodes"].split("-")[0]),
        tasks=count(block["NumTasks"]),
        gpus=gpus(block["AllocTRES"] or block["TRES"]) or gpus(block["ReqTRES"]),
        restarts=count(block["Restarts"]),
        dependency=given(block["Dependency"]),
        submit_line=given(block["SubmitLine"]),
        work_dir=given(block["WorkDir"]),
        std_out=given(block["StdOut"]),
        std_err=given(block["StdErr"]),
        cancelled_by=cancelled_by(state),
        failed_node=given(block["FailedNode"]),
        user=given(block["UserId"].partition("(")[0]),
        partition=given(block["Partition"]),
        devices=devices(block.held),
    )


def _job_vouched(block: Block) -> datetime | None:
    ending = disposition(state_words(block["JobState"]))
    moments = [read_time(block["SubmitTime"]), read_time(block["LastSchedEval"])]
    start, ran = read_time(block["StartTime"]), duration_s(block["RunTime"])
    if ending in ENDED:
        moments += [start, read_time(block["EndTime"])]
    if start and ran and ending == "running":
        moments.append(start + timedelta(seconds=min(ran, 1e9)))
    return latest(moments)


# --- nodes ---


def _node_events(block: Block, source: str) -> Iterator[NodeEvent]:
    host = block["NodeName"]
    reason = block["Reason"]
    found = _SET_BY.search(reason)
    why = given(reason[: found.start()] if found else reason)
    since = read_time(found[2]) if found else None
    state = block["State"]
    if state:
        text = f"NodeName={host} State={state}" + (f" Reason={reason}" if why else "")
        cite = RecordCite(source, block.pointer("State"), state, text, Place(host=host), since)
        yield NodeEvent(host, node_states(state), why, cite, at=since)
    booted = read_time(block["BootTime"])
    if booted:
        text = f"NodeName={host} BootTime={block['BootTime']}"
        pointer = block.pointer("BootTime")
        cite = RecordCite(source, pointer, block["BootTime"], text, Place(host=host), booted)
        yield NodeEvent(host, (BOOTED,), None, cite, at=booted, until=booted)


def _node_vouched(block: Block) -> datetime | None:
    found = _SET_BY.search(block["Reason"])
    keys = ("BootTime", "SlurmdStartTime", "LastBusyTime")
    return latest([read_time(found[2]) if found else None, *(read_time(block[k]) for k in keys)])


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` where no record begins with JobId= or NodeName=."""
    jobs: list[Job] = []
    events: list[NodeEvent] = []
    names: list[tuple[str, str]] = []
    moments: list[datetime | None] = []
    for block in _blocks(data):
        if block["JobId"]:
            jobs.append(_job(block, source))
            moments.append(_job_vouched(block))
        elif block["NodeName"]:
            events.extend(_node_events(block, source))
            host = block["NodeName"]
            names += [(block[key], host) for key in ("NodeAddr", "NodeHostName")]
            moments.append(_node_vouched(block))
    if not jobs and not events:
        raise FormatError("no record of scontrol: none begins with JobId= or NodeName=")
    return Records(
        jobs=oldest_first(jobs),
        node_events=tuple(events),
        now=latest(moments),
        addresses=named_once(pair for pair in names if pair[0] not in ("", pair[1])),
    )


def recognise(name: str, head: bytes) -> bool:
    """Whether one of the first lines begins a job's or node's record as scontrol prints it."""
    if b"\0" in head:
        return False
    first = b"\n".join(head.split(b"\n", 40)[:40])
    if b"JobId=" not in first and b"NodeName=" not in first:
        return False
    lines = first.decode("utf-8-sig", "replace").splitlines()[:40]
    for at, line in enumerate(lines):
        if _FIRST.match(line):
            keys = {mark[1] for mark in _KEY.finditer(" ".join(lines[at : at + BEHIND]))}
            return bool(keys & (OF_A_JOB if "JobId" in keys else OF_A_NODE))
    return False


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value at `record 3, JobState`; records count from 1."""
    found = _POINTER.fullmatch(pointer)
    if found is None:
        raise FormatError(f"no pointer into scontrol's records: {pointer[:80]!r}")
    for block in _blocks(data):
        if block.number == int(found[1]) and found[2] in block.values:
            return block.values[found[2]]
    raise FormatError(f"nothing at {pointer!r}")
