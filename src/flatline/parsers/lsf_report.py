"""
LSF's report on a job: what it mails at its end, or writes above the output in `bsub -o`'s file.

The head says which job it was, where it ran and when; below the script stand how it ended
(`Successfully completed.`, `Exited with exit code 1.`, a termination reason) and what it used.
The output may follow: the lines are searched as a log's are as well.  A file to which several
jobs' reports and outputs were appended is no record of one; a report below the output is told by
the signatures of its lines.

Source: IBM Spectrum LSF 10.1, bsub -o, -N; "Termination reasons displayed by bacct, bhist, and
bjobs".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from flatline.errors import FormatError
from flatline.model import Disposition, Job, RecordCite, Records, Scalar
from flatline.parsers._exits import ended
from flatline.parsers._lsf import ended_by, hosts, moment
from flatline.parsers._rows import decoded
from flatline.parsers._slurm import count, given, latest, oldest_first

FORMAT = "lsf-report"
ZONE_ASSUMED = True
IN_LINES = True
_SUBJECT = re.compile(
    r"Subject: Job (\d{1,12}(?:\[\d{1,9}\])?): <(.{0,400})> in cluster <([^>]{0,200})>"
    r" (\w{1,20})\s*"
)
_BEGINS = re.compile(
    rb"\A\s{0,80}(?:-{20,80}\r?\n)?(?:[A-Z][A-Za-z-]{1,30}(?::| [^\n]{1,80}@)[^\n]{0,400}\r?\n)"
    rb"{0,20}?Sender: LSF System "
)
"""Headers of a mail, or the line that parts mails in a box, may stand above it."""
_WHERE = re.compile(r"\s{0,60}(?:Job was executed on host\(s\) )?((?:<[^>]{1,300}>[, ]{0,2})+)")
_HOST = re.compile(r"<([^>]{1,300})>")
_QUEUE = re.compile(r"in queue <([^>]{1,200})>")
_BY = re.compile(r" by user <([^>]{1,200})>.{0,300}? at (\S.{1,40})$")
_STATED = re.compile(r"(Started|Terminated|Results reported) at (\S.{1,40})$")
_SCRIPT = re.compile(r"-{40,80}\s*")
_LIMIT = re.compile(r"#BSUB\s(?:.{0,200}\s)?-W\s{0,4}(?:(\d{1,4}):)?(\d{1,5})(?![\d:.])")
_EXIT = re.compile(r"Exited with exit code (\d{1,4})\.")
_SIGNAL = re.compile(r"Exited (?:by signal|with signal termination:?) (\d{1,3})\b")
_ABOVE = b"The output (if any) is above this job summary."
_FOLLOWS = "The output (if any) follows:"
_OF_STDERR = re.compile(r"PS:|Read file <.{1,400}> for (?:stderr|stdout) output of this job\.")
_POINTER = re.compile(r"job (\S{1,40}), ([a-z ]{1,20})")
HEAD_BYTES = 4_096
MOST_LINES = 4_000
"""Of a report with the job's script in it; the output below may be of any length."""
Told = Mapping[str, str]


def recognise(name: str, head: bytes) -> bool:
    """Whether it begins with the sender's line of LSF's and names one job below it.  Reports of
    several whose output stands above each are the end of a log of several tries."""
    if _BEGINS.match(head) is None:
        return False
    try:
        named = any(map(_SUBJECT.fullmatch, decoded(head[:HEAD_BYTES]).split("\n")))
        subjects = map(_SUBJECT.fullmatch, decoded(head).split("\n"))
    except FormatError:
        return False
    jobs = {told[1] for told in subjects if told is not None}
    return named and (len(jobs) == 1 or _ABOVE not in head)


def holds_output(head: bytes) -> bool:
    """Whether what the job printed begins below the report, be it a line of the shell's alone."""
    below = head.partition(_FOLLOWS.encode())[2].decode("utf-8", "replace")
    return any(map(_is_output, below.split("\n")))


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` where no job is named, or the outputs of several are in it."""
    told = list(_reports(data))
    if not told:
        raise FormatError("no report of LSF's: no line names a job")
    if len({one["job"] for one in told}) > 1 and any(one.get("output") for one in told):
        raise FormatError("the reports and outputs of several jobs: split it to have them read")
    jobs = oldest_first([_job(one, source) for one in told])
    return Records(jobs=jobs, now=latest(moment(one.get("reported", "")) for one in told))


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value at `job 123, ended`."""
    found = _POINTER.fullmatch(pointer)
    for one in _reports(data) if found else ():
        if found and one["job"] == found[1] and found[2] in one:
            return one[found[2]]
    raise FormatError(f"{pointer!r} is no place in this record")


def _reports(data: bytes) -> Iterator[Told]:
    lines = decoded(data).split("\n")
    begun = [n for n, line in enumerate(lines) if _SUBJECT.fullmatch(line)]
    for n, until in zip(begun, [*begun[1:], len(lines)], strict=True):
        yield _told(lines[n:until])


def _told(lines: list[str]) -> Told:
    """What one report says; the words of the script that stands in it are no part of that."""
    subject = _SUBJECT.fullmatch(lines[0])
    if subject is None:
        return {}
    told = {"job": subject[1], "name": subject[2], "status": subject[4]}
    place = list[str]()
    within = 0
    for n, line in enumerate(lines[1:MOST_LINES], 1):
        if line.strip() == _FOLLOWS:
            told["output"] = "x" if any(map(_is_output, lines[n + 1 :])) else ""
            break
        if _SCRIPT.fullmatch(line):
            within += 1
        elif within == 1:
            limit = _LIMIT.match(line)
            if limit is not None:
                told["limit"] = str(int(limit[1] or 0) * 60 + int(limit[2]))
        elif within == 0:
            place += _above(line, told, place)
        else:
            _below(line, told)
    told["hosts"] = " ".join(place)
    return told


def _above(line: str, told: dict[str, str], place: list[str]) -> list[str]:
    """Takes what the lines above the script say; returns the hosts that one names."""
    if (stated := _STATED.match(line)) is not None:
        told[{"Started": "started", "Terminated": "ended"}.get(stated[1], "reported")] = stated[2]
    elif " was submitted from host " in line and (by := _BY.search(line)) is not None:
        told["user"], told["submitted"] = by.groups()
    elif line.startswith("Job was executed on host(s) ") or (place and line.startswith("  ")):
        if (queue := _QUEUE.search(line)) is not None:
            told["queue"] = queue[1]
        found = _WHERE.match(line)
        return _HOST.findall(found[1]) if found else []
    return []


def _below(line: str, told: dict[str, str]) -> None:
    """Takes what the lines below the script say of how it ended."""
    if line.startswith("TERM_"):
        told["reason"] = line.strip()
    elif line.startswith(("Successfully completed.", "Exited ")):
        told.setdefault("outcome", line.strip())


def _is_output(line: str) -> bool:
    return bool(line.strip()) and _OF_STDERR.fullmatch(line.strip()) is None


def _job(told: Told, source: str) -> Job:
    by, reason = ended_by(told.get("reason", ""))
    outcome = told.get("outcome", "")
    code, sign = _EXIT.match(outcome), _SIGNAL.match(outcome)
    left = ended(int(code[1])) if code else (None, int(sign[1]) if sign else None)
    key = next(k for k in ("reason", "outcome", "status") if k in told)
    end = moment(told.get("ended", ""))
    nodes = hosts(told["hosts"].split())
    limit = count(told.get("limit"))
    return Job(
        id=told["job"].replace("[", "_").rstrip("]"),
        name=given(told["name"]),
        disposition=_disposition(told, by),
        state=told["status"],
        cite=RecordCite(source, f"job {told['job']}, {key}", told[key],
                        f"Job {told['job']}: {told[key]}", at=end),
        reason=reason,
        exit_code=left[0],
        signal=left[1],
        submitted_at=moment(told.get("submitted", "")),
        started_at=moment(told.get("started", "")),
        ended_at=end,
        limit_s=60.0 * limit if limit else None,
        nodes=nodes,
        node_count=len(nodes) or None,
        user=given(told.get("user")),
        partition=given(told.get("queue")),
        scheduler="lsf",
    )  # fmt: skip


def _disposition(told: Told, by: Disposition | None) -> Disposition:
    """The termination reason goes before how the script left: a limit may let it exit with 0."""
    if by is not None:
        return by
    if told.get("outcome", "").startswith("Successfully") or told["status"] == "Done":
        return "completed"
    return "failed" if told["status"] == "Exited" else "unknown"
