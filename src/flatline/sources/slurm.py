"""
A live Slurm: what its commands say of a job, as the bytes they print, and where its logs are.

Commands run without a shell, with a time limit and an output limit, in UTC and in the C locale,
and only to read (`sacct`, `scontrol show`, `sacctmgr show`).  Job ids and node names are checked
before they become arguments.  What the bytes mean is the parsers' business.
"""

from __future__ import annotations

import glob
import os
import re
import selectors
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from subprocess import CompletedProcess

from flatline.errors import (
    FormatError,
    SourceError,
    SourceRefused,
    SourceUnreachable,
    UsageError,
)
from flatline.model import Job, Records
from flatline.parsers import sacct_parsable, scontrol

Run = Callable[[Sequence[str]], CompletedProcess[bytes]]

LIMIT_S = 30.0  # slurmctld answers in seconds or is overloaded; sacct may scan a large database
LIMIT_BYTES = 64 << 20
DELIMITER = "|#|"  # job names and submit lines may hold a plain bar, and nothing is quoted
NODES_A_CALL = 512  # keeps one argument below Linux's 128 KiB
AROUND = timedelta(hours=1)
JOB_ID = re.compile(r"(\d{1,12}(?:_\d{1,12})?(?:\+\d{1,6})?)(?:\.\w{1,20})?")
MOST = 1024  # log files of one job: one a rank
SCRIPT_LINES = 2000
_NODE = re.compile(r"[A-Za-z0-9][\w.-]{0,254}")
_REFUSED = re.compile(r"denied|not permitted|permission|unauthori[sz]ed|authenticat", re.I)
_ABSENT = re.compile(r"connect|contact|timed? ?out|unreachable|refused|not running|down", re.I)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one command printed; `name` is the command, fit to be cited as a source."""

    name: str
    data: bytes


def available(which: Callable[[str], str | None] = shutil.which) -> bool:
    """Whether Slurm's commands are on the PATH; whether it answers is another matter."""
    return which("scontrol") is not None or which("sacct") is not None


def plain_id(job_id: str) -> str:
    """The job's id without a step. Raises `UsageError` for what is no Slurm job id."""
    found = JOB_ID.fullmatch(job_id.strip())
    if found is None:
        raise UsageError(f"{job_id[:40]!r} is no Slurm job id: give a number, 16_2 or 20+1")
    return found[1]


# --- running a command ---


def _environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("SACCT_FORMAT", "SLURM_TIME_FORMAT")}
    return kept | {"LC_ALL": "C", "TZ": "UTC0", "SLURM_TIME_FORMAT": "standard"}


def _drained(child: subprocess.Popen[bytes], ends: float, limit: int) -> tuple[bytes, bytes]:
    """What the child prints until it closes both streams, the time is up or there is too much."""
    out, err = bytearray(), bytearray()
    with selectors.DefaultSelector() as ready:
        for stream, into in ((child.stdout, out), (child.stderr, err)):
            if stream is not None:
                ready.register(stream, selectors.EVENT_READ, into)
        while ready.get_map():
            left = ends - time.monotonic()
            if left <= 0:
                raise TimeoutError
            for key, _ in ready.select(left):
                chunk = os.read(key.fd, 1 << 16)
                if not chunk:
                    ready.unregister(key.fileobj)
                key.data.extend(chunk)
            if len(out) + len(err) > limit:
                raise OverflowError
    return bytes(out), bytes(err)


def run_command(
    argv: Sequence[str], limit_s: float = LIMIT_S, limit_bytes: int = LIMIT_BYTES
) -> CompletedProcess[bytes]:
    """
    Runs one command to its end.

    Raises `SourceUnreachable` where it is not installed or takes longer than `limit_s`, and
    `SourceError` where it prints more than `limit_bytes`; the child is killed then.
    """
    try:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
        )
    except OSError as fault:
        raise SourceUnreachable(
            f"{argv[0]} cannot be run ({fault.strerror}): load Slurm's commands into the PATH"
        ) from fault
    ends = time.monotonic() + limit_s
    with child:
        try:
            out, err = _drained(child, ends, limit_bytes)
            child.wait(max(0.1, ends - time.monotonic()))
        except (TimeoutError, subprocess.TimeoutExpired) as fault:
            child.kill()
            raise SourceUnreachable(
                f"{argv[0]} gave no answer in {limit_s:g} s: try again, or give the files"
            ) from fault
        except OverflowError as fault:
            child.kill()
            raise SourceError(
                f"{argv[0]} printed more than {limit_bytes >> 20} MiB: save its output and name it"
            ) from fault
    return CompletedProcess(list(argv), child.returncode, out, err)


def answer(argv: Sequence[str], run: Run) -> Fetched:
    """What the command prints. Raises a `SourceError` with its own words where it fails."""
    done = run(argv)
    name = " ".join(argv)
    if done.returncode == 0 and done.stdout.strip():
        return Fetched(name, done.stdout)
    words = done.stderr.decode("utf-8", "replace").strip().splitlines()
    said = words[-1][:200] if words else f"exit status {done.returncode}, nothing printed"
    message = f"{name[:120]}: {said}"
    if _REFUSED.search(said):
        raise SourceRefused(f"{message}; ask an operator, or give saved output")
    if _ABSENT.search(said):
        raise SourceUnreachable(f"{message}; is Slurm up, and this machine part of it?")
    raise SourceError(message)


# --- what is known of a job ---


class _Asked:
    """Answers gathered so far, and the failures among the questions."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.files: list[Fetched] = []
        self.failures: list[SourceError] = []

    def ask(self, *argv: str) -> bytes | None:
        try:
            found = answer(argv, self.run)
        except SourceError as fault:
            self.failures.append(fault)
            return None
        self.files.append(found)
        return found.data


def _jobs(data: bytes | None, read: Callable[[bytes, str], Records]) -> tuple[Job, ...]:
    if data is None:
        return ()
    try:
        return read(data, "").jobs
    except FormatError:
        return ()


def _node_lists(jobs: Sequence[Job]) -> Iterator[str]:
    """The jobs' nodes as arguments; a name that could be taken for an option is left out."""
    names = [n for n in dict.fromkeys(n for job in jobs for n in job.nodes) if _NODE.fullmatch(n)]
    for start in range(0, len(names), NODES_A_CALL):
        yield ",".join(names[start : start + NODES_A_CALL])


def _span(jobs: Sequence[Job]) -> tuple[str, str] | None:
    """From an hour before the first start to an hour after the last end, as sacctmgr reads it."""
    starts = [job.started_at for job in jobs if job.started_at]
    if not starts:
        return None
    ends: list[datetime | None] = [job.ended_at for job in jobs]
    known = [end for end in ends if end is not None]
    last = "now" if len(known) < len(ends) else f"{max(known) + AROUND:%Y-%m-%dT%H:%M:%S}"
    return f"{min(starts) - AROUND:%Y-%m-%dT%H:%M:%S}", last


def fetch(
    job_id: str, run: Run = run_command, failures: list[SourceError] | None = None
) -> list[Fetched]:
    """
    What Slurm holds of a job: accounting as text (every column, all runs of a requeued job) and
    as JSON, the controller's record, its nodes now, and the nodes' events around the job.

    Commands that fail are appended to `failures`; the controller forgets a job minutes after its
    end (MinJobAge) and an older sacct knows no --json, so single failures are common.  Raises
    `UsageError` for a bad id and `SourceError`, the first failure, where no record was found.
    """
    wanted = plain_id(job_id)
    asked = _Asked(run)
    table = asked.ask(
        "sacct", "-j", wanted, "-P", f"--delimiter={DELIMITER}", "-D", "--format=ALL"
    )
    jobs = _jobs(table, sacct_parsable.parse)
    if jobs:
        asked.ask("sacct", "-j", wanted, "-D", "--json")
    elif table is not None:
        asked.files.pop()
        asked.failures.append(SourceError(f"sacct knows no job {wanted}: is the id right?"))
    shown = asked.ask("scontrol", "show", "job", "-d", wanted)
    jobs = (*jobs, *_jobs(shown, scontrol.parse))
    if not jobs:
        raise asked.failures[0]
    _ask_nodes(asked, jobs)
    if failures is not None:
        failures.extend(asked.failures)
    return asked.files


# --- what is known of a window of time ---

COLUMNS = (
    "JobID", "JobIDRaw", "JobName", "User", "Partition", "State", "ExitCode", "DerivedExitCode",
    "Submit", "Start", "End", "Elapsed", "Timelimit", "NNodes", "NTasks", "NodeList", "AllocTRES",
    "ReqTRES", "Reason", "WorkDir", "SubmitLine", "FailedNode", "Restarts", "StdOut", "StdErr",
)  # fmt: skip
WINDOW_S, WINDOW_BYTES = 300.0, 1 << 30  # a day of a large cluster is some hundred thousand rows


def fetch_window(
    since: datetime,
    until: datetime | None = None,
    users: Sequence[str] = (),
    everyone: bool = False,
    run: Run | None = None,
) -> Fetched:
    """
    Accounting rows, with their steps, of all jobs that were in some state in a window of time.

    Without `users` or `everyone` those sacct shows by default: the caller's own, for root all.
    Only columns this sacct knows are asked for.  Raises `SourceError`.
    """
    ask = run or (lambda argv: run_command(argv, WINDOW_S, WINDOW_BYTES))
    known = set(answer(["sacct", "--helpformat"], ask).data.decode("utf-8", "replace").split())
    columns = ",".join(column for column in COLUMNS if column in known)
    argv = ["sacct", "-P", f"--delimiter={DELIMITER}", "-D", f"--format={columns}"]
    argv += ["-S", f"{since:%Y-%m-%dT%H:%M:%S}"]
    argv += ["-E", f"{until:%Y-%m-%dT%H:%M:%S}"] if until is not None else []
    argv += ["-a"] if everyone else []
    argv += [f"--user={','.join(users)}"] if users else []
    return answer(argv, ask)


def fetch_nodes(
    jobs: Sequence[Job], run: Run = run_command, failures: list[SourceError] | None = None
) -> list[Fetched]:
    """The state of the jobs' nodes now, and their events around the jobs."""
    asked = _Asked(run)
    _ask_nodes(asked, jobs)
    if failures is not None:
        failures.extend(asked.failures)
    return asked.files


def fetch_topology(run: Run = run_command) -> bytes | None:
    """What `scontrol show topology` prints; None where there is none to print."""
    try:
        return answer(["scontrol", "show", "topology"], run).data
    except SourceError:
        return None


def _ask_nodes(asked: _Asked, jobs: Sequence[Job]) -> None:
    span = _span(jobs)
    for names in _node_lists(jobs):
        asked.ask("scontrol", "show", "node", names)
        if span is not None:
            when = (f"start={span[0]}", f"end={span[1]}")
            asked.ask("sacctmgr", "-P", "show", "event", f"nodes={names}", *when)


# --- its logs ---

_JOB = re.compile(r"(\d+)(?:_(\d+))?(?:\+(\d+))?")
_FIELD = re.compile(r"%(\d{0,2})([%A-Za-z])")
_OPTION = re.compile(r"(?:-[oe]|--(?:output|error))(?:=(.+))?|-([oe])(.+)", re.DOTALL)
_DIRECTIVE = re.compile(r"#SBATCH\s+(.+)")
_ANY = frozenset("nNstubJ")
"""Fields that differ between the files of one job, or that the records do not hold."""


def _values(job: Job, raw_id: str | None) -> dict[str, str]:
    """What the fields of sbatch's file name patterns stand for (sbatch(1), "filename pattern")."""
    found = _JOB.match(job.id)
    number, task = (found[1], found[2]) if found else (job.id, None)
    alone = found is not None and found[2] is None and found[3] is None
    raw = raw_id or (number if alone else None)
    values = {"A": number, "x": job.name or "", "a": task or "4294967294"}
    return values | ({"j": raw} if raw else {})


def expanded(pattern: str, job: Job, raw_id: str | None = None) -> str | None:
    """
    A file name pattern of sbatch as a glob: fields of the job filled in, those that vary between
    its files made `*`; None where a field of this job is not known.  A backslash in the pattern
    turns fields off, as sbatch has it.
    """
    values = _values(job, raw_id)
    if "\\" in pattern:
        return glob.escape(pattern.replace("\\", ""))
    parts: list[str] = []
    end = 0
    for found in _FIELD.finditer(pattern):
        parts.append(glob.escape(pattern[end : found.start()]))
        end = found.end()
        width, field = found.groups()
        if field == "%":
            parts.append("%")
        elif field in _ANY:
            parts.append("*")
        elif field in values:
            value = values[field]
            parts.append(glob.escape(value.zfill(int(width or 0)) if value.isdigit() else value))
        else:
            return None
    return "".join(parts) + glob.escape(pattern[end:])


def _options(words: Sequence[str]) -> Iterator[str]:
    """The values of -o, -e, --output and --error before the script's name."""
    wanted = False
    for word in words:
        if wanted:
            yield word
        found = None if wanted else _OPTION.fullmatch(word)
        wanted = found is not None and found[1] is None and found[3] is None
        if found is not None and not wanted:
            yield found[1] or found[3]


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=False)
    except ValueError:
        return line.split()


def _script_patterns(job: Job, run: Run) -> Iterator[str]:
    """The file names that the job's batch script asks for, as Slurm kept it."""
    number = job.id.split("+")[0]
    try:
        done = run(["scontrol", "write", "batch_script", number, "-"])
    except SourceError:
        return
    if done.returncode:
        return
    for line in done.stdout.decode("utf-8", "replace").splitlines()[:SCRIPT_LINES]:
        found = _DIRECTIVE.match(line)
        if found:
            yield from _options(_split(found[1]))


def _places(job: Job, run: Run) -> Iterator[tuple[str, list[str]]]:
    """Kinds of places, the surest first: why, and the file name patterns to try."""
    yield "the record's StdOut and StdErr", [p for p in (job.std_out, job.std_err) if p]
    yield "the submit line", list(_options(_split(job.submit_line or "")))
    yield "the batch script", list(_script_patterns(job, run))
    yield "sbatch's default name", ["slurm-%A_%a.out" if "_" in job.id else "slurm-%j.out"]


def _globbed(pattern: str, folders: Sequence[str]) -> list[Path]:
    """Regular files the glob names, looked for in `folders` where it is relative."""
    wholes = [pattern] if pattern.startswith("/") else [f"{f}/{pattern}" for f in folders]
    found: list[Path] = []
    for whole in wholes:
        relative = whole.strip("/")
        if relative:
            found += islice(Path("/").glob(relative), MOST)
    return sorted(path for path in found if path.is_file())


def find_logs(
    job: Job, roots: Sequence[Path], run: Run = run_command, raw_id: str | None = None
) -> tuple[list[Path], list[str]]:
    """
    The job's log files, and where was looked, in words.

    The record's paths are taken alone where one of them exists; else the submit line, the batch
    script, sbatch's default name in the working directory and `roots`, then folders named after
    the job.  `raw_id` is an array task's own job id (`%j`), which its `16_2` does not tell.

    Only for records that Slurm itself gave: a path in a record from elsewhere could name any
    file of the user who runs this.
    """
    whole_roots = [str(root.absolute()) for root in roots]
    folders = [glob.escape(f) for f in ([job.work_dir] if job.work_dir else []) + whole_roots]
    looked: list[str] = []
    for why, patterns in _places(job, run):
        found: dict[Path, None] = {}
        for pattern in patterns:
            whole = expanded(pattern, job, raw_id)
            if whole is None:
                looked.append(f"{pattern} ({why}: the job's own id is not known)")
                continue
            looked.append(f"{whole} ({why})")
            found.update(dict.fromkeys(_globbed(whole, folders)))
        if found:
            return list(found)[:MOST], looked
    named = [glob.escape(job.id) + rest for rest in ("/*", "[-_.]*", "[-_.]*/*")]
    for pattern in [f"{sub}{name}" for sub in ("", "outputs/", "logs/") for name in named]:
        looked.append(f"{pattern} (named after the job)")
        hits = _globbed(pattern, folders)
        if hits:
            return hits[:MOST], looked
    return [], looked
