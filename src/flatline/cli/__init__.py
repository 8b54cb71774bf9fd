"""
The command line: one command a file; the folder is the registry.

A command module's docstring is its help: the first line stands in the list of commands, the
rest on its own page.  It has `USAGE`, `arguments(parser)` and `run(options, engine)`, which
returns the exit status: 0 healthy, 1 a fault was found, 2 the call was wrong, 3 undetermined,
4 Flatline itself failed.  Nothing uncaught ever ends in 1.  What a command needs for its work it
imports there: the list of commands must come at once.
"""

from __future__ import annotations

import argparse
import atexit
import difflib
import gc
import importlib
import os
import pkgutil
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TextIO, cast

from flatline import __version__
from flatline.errors import FlatlineError, FormatError, ManyJobs, UsageError
from flatline.wording.untrusted import neutral, sentence

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from flatline.collect import Request
    from flatline.collect.files import OnProgress
    from flatline.collect.stores import Question, Reply
    from flatline.exhibit import Exhibit
    from flatline.families import Family
    from flatline.model import State, Verdict
    from flatline.render.text import Look
    from flatline.triage import Ask, Listing
    from flatline.verify import Check
    from flatline.wording.progress import Progress

HEALTHY, FOUND, WRONG_CALL, UNDETERMINED, FAILED = range(5)
INTERRUPTED, PIPE_CLOSED = 130, 141
"""128 + SIGINT and 128 + SIGPIPE, as a shell reports them."""
JOBS = 40
"""Jobs listed before the rest is counted."""
_EPOCH = re.compile(r"\d{1,12}(\.\d{1,9})?")
_DATE = re.compile(r"(19|20)\d{6}")
WIDTH, WIDEST = 80, 120
"""Columns where there is no terminal, and the most that are used of one."""

HELP = """\
usage: flatline COMMAND ...

Why did my GPU training run fail, hang, slow down or learn nothing?
Flatline reads what the run left behind (logs, Slurm records, metrics, dumps)
and answers with a verdict whose every claim carries its evidence.

commands:
{commands}

examples:
  flatline diagnose ./outputs/8308         logs, records, whatever lies there
  flatline diagnose 8308                   a Slurm job, where Slurm is
  flatline diagnose ./outputs/8308 --format html --output report.html
  flatline jobs --since 24h                every job that ended, a verdict each
  flatline query ./outputs/8308 'max by (host) (DCGM_FI_DEV_GPU_TEMP)'
  flatline demo                            see it work on runs it brings along

exit status: 0 healthy, 1 a fault was found, 2 the call was wrong,
             3 undetermined, 4 Flatline itself failed

`flatline COMMAND --help` says more; `flatline --version` says which this is.
"""


# --- what the commands call -------------------------------------------------------------------


def _diagnose(request: Request, on_progress: OnProgress | None) -> Verdict:
    from flatline.collect import collect

    facts = collect(request, _prepared(on_progress))
    from flatline.diagnose import diagnose
    from flatline.knowledge.related import with_related

    return with_related(diagnose(facts))


def _prepared(on_progress: OnProgress | None) -> OnProgress:
    """The same, and what judges imported once logs are being read, which other processes do."""

    def told(stage: str, done: int, total: int) -> None:
        from flatline.families import all_families

        importlib.import_module("flatline.diagnose")
        all_families()
        if on_progress is not None:
            on_progress(stage, done, total)

    return told


def _exhibit(request: Request, on_progress: OnProgress | None) -> tuple[Verdict, Exhibit]:
    from flatline.collect import collect

    facts = collect(request, _prepared(on_progress))
    from flatline.diagnose import diagnose
    from flatline.exhibit import exhibit
    from flatline.knowledge.related import with_related

    verdict = with_related(diagnose(facts))
    return verdict, exhibit(facts, verdict)


def _investigate(
    request: Request, on_progress: Progress | None, options: argparse.Namespace, drawn: bool
) -> tuple[Verdict, Exhibit | None]:
    from flatline.agent.session import investigated
    from flatline.wording.telling import Teller

    teller = Teller(sys.stderr, complain, options.quiet)
    try:
        verdict, facts = investigated(request, on_progress, options, teller, os.environ)
    finally:
        teller.clear()
    if not drawn:
        return verdict, None
    from flatline.exhibit import exhibit

    return verdict, exhibit(facts, verdict)


def _verify(
    document: Mapping[str, Any],
    targets: tuple[str, ...],
    prometheus: str | None,
    baseline: str | None = None,
) -> tuple[Check, ...]:
    from flatline.verify import verify

    return verify(document, targets, prometheus, baseline)


def _families() -> tuple[Family, ...]:
    from flatline.families import all_families

    return all_families()


def _jobs(ask: Ask, on_progress: OnProgress | None) -> Listing:
    from flatline.triage.listing import listing

    return listing(ask, on_progress)


def _query(question: Question) -> Reply:
    from flatline.collect.stores import ask

    return ask(question)


def _demos() -> Traversable:
    from importlib import resources

    return resources.files("flatline") / "demo"


@dataclass(frozen=True, slots=True)
class Engine:
    """
    Everything a command calls; whoever calls `main` may bring another.

    The defaults import when they are called: the scanner and the arithmetic are most of the
    start-up, and `--help` needs neither.
    """

    diagnose: Callable[[Request, OnProgress | None], Verdict] = _diagnose
    exhibit: Callable[[Request, OnProgress | None], tuple[Verdict, Exhibit]] = _exhibit
    verify: Callable[..., tuple[Check, ...]] = _verify
    """(document, targets, server or None[, baseline])"""
    query: Callable[[Question], Reply] = _query
    families: Callable[[], tuple[Family, ...]] = _families
    demos: Callable[[], Traversable] = _demos
    jobs: Callable[[Ask, OnProgress | None], Listing] = _jobs
    investigate: Callable[
        [Request, Progress | None, argparse.Namespace, bool], tuple[Verdict, Exhibit | None]
    ] = _investigate


class Command(Protocol):
    __doc__: str | None
    USAGE: str

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare what the command takes."""

    def run(self, options: argparse.Namespace, engine: Engine) -> int:
        """Do it; the exit status."""


# --- speaking ---------------------------------------------------------------------------------


def say(text: str, encoding: str | None = None) -> None:
    """To standard output, in its own encoding or the one asked for; a reader that has left is
    no error, since what was found stays true."""
    out = sys.stdout
    try:
        out.flush()
        data = text.encode(encoding or out.encoding or "utf-8", "backslashreplace")
        out.buffer.write(data)
        out.flush()
    except BrokenPipeError:
        _silence(out)


def complain(text: str) -> None:
    """To standard error, where anybody still listens; with secrets masked, since what was typed
    and what was read stand in errors."""
    from flatline.redact import mask  # only where something is wrong

    try:
        data = mask(text).encode(sys.stderr.encoding or "utf-8", "backslashreplace")
        sys.stderr.flush()
        sys.stderr.buffer.write(data + b"\n")
        sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)


def _silence(stream: TextIO) -> None:
    """Let the interpreter's own last flush go nowhere."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, stream.fileno())
    os.close(sink)


def look_of(stream: TextIO, brief: bool = False) -> Look:
    """How a page may look on this stream: a terminal's size and colours, else 80 plain columns."""
    from flatline.render.text import Look

    try:
        "✗✓…".encode(stream.encoding or "utf-8")
        unicode = True
    except UnicodeEncodeError:
        unicode = False
    if not stream.isatty():
        return Look(WIDTH, None, False, unicode, brief)
    size = shutil.get_terminal_size((WIDTH, 24))
    colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Look(min(size.columns, WIDEST), size.lines, colour, unicode, brief)


# --- listening --------------------------------------------------------------------------------


def instant_said(said: str | None, option: str) -> datetime | None:
    """An instant as people give it. A time without a zone is UTC, as all of Flatline's are."""
    if said is None:
        return None
    try:
        if _EPOCH.fullmatch(said) and not _DATE.fullmatch(said):
            return datetime.fromtimestamp(float(said), UTC)
        at = datetime.fromisoformat(said.strip())
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError) as fault:
        raise UsageError(
            f"{option} {said!r} is no time; give ISO 8601, as 2026-03-01T04:12:55Z or "
            "2026-03-01T05:12:55+01:00 (UTC where no zone is said), or seconds since 1970, "
            "as 1772338375"
        ) from fault


STATUS: dict[State, int] = {"healthy": HEALTHY, "found": FOUND, "undetermined": UNDETERMINED}
"""The exit status that a verdict has."""


def declare_run(parser: argparse.ArgumentParser) -> None:
    """The options of `diagnose` and `ask` that say which run is meant, beside its targets."""
    add = parser.add_argument
    add("--job", metavar="ID", help="which job, where a TARGET holds several")
    add("--baseline", metavar="TARGET", help="a sound run to compare with")
    add("--prometheus", metavar="URL", help="a server that speaks Prometheus's API")
    add("--start", metavar="T", help="beginning of the run: ISO 8601 or epoch seconds")
    add("--end", metavar="T", help="end of the run, likewise")
    add("--hosts", metavar="LIST", help="hosts of the run, as node[01-16],login1")


@contextmanager
def progress_shown(quiet: bool, unit: str = "") -> Iterator[Progress | None]:
    """A line of progress on standard error while something is read, gone afterwards; None where
    it was asked to be quiet."""
    from flatline.wording.progress import Progress

    progress = None if quiet else Progress(sys.stderr, unit=unit)
    try:
        yield progress
    finally:
        if progress is not None:
            progress.clear()


def request_said(options: argparse.Namespace) -> Request:
    """The run that the options of `diagnose` and `ask` name. Raises `UsageError`."""
    start, end = instant_said(options.start, "--start"), instant_said(options.end, "--end")
    if start and end and start >= end:
        raise UsageError(f"--start {options.start} is not before --end {options.end}")
    if options.prometheus and not re.match(r"https?://[^/\s]", options.prometheus):
        raise UsageError(f"--prometheus {options.prometheus!r}: give it as http://HOST:PORT")
    hosts = _hosts(options.hosts)
    from flatline.collect import Request  # after the checks: it is most of the start-up

    return Request(
        tuple(options.target), options.job, options.baseline, options.prometheus, start, end, hosts
    )


def _hosts(listed: str | None) -> tuple[str, ...]:
    if not listed:
        return ()
    from flatline.logs.hostlists import expand

    try:
        return expand(listed)
    except FormatError as fault:
        raise UsageError(f"--hosts: {fault}") from fault


# --- dispatch ---------------------------------------------------------------------------------


def command_names() -> tuple[str, ...]:
    """Every command, the one this is for first."""
    names = [found.name for found in pkgutil.iter_modules(__path__) if found.name[0] != "_"]
    return tuple(sorted(names, key=lambda name: (name != "diagnose", name)))


def _command(name: str) -> Command:
    return cast(Command, importlib.import_module(f"{__name__}.{name}"))


def _help() -> str:
    lines = []
    for name in command_names():
        first = (_command(name).__doc__ or "").strip().partition("\n")[0]
        lines.append(f"  {name:<10} {first[:1].lower()}{first[1:].rstrip('.')}")
    return HELP.format(commands="\n".join(lines))


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with a call where all else is said: masked, and on one line."""

    def error(self, message: str) -> NoReturn:
        complain(f"{self.format_usage()}{self.prog}: error: {neutral(message)}")
        sys.exit(WRONG_CALL)


def _parser(name: str, command: Command) -> argparse.ArgumentParser:
    said, heading, examples = (command.__doc__ or "").strip().partition("example")
    return _Parser(
        prog=f"flatline {name}",
        usage=f"flatline {name} {command.USAGE}",
        description=said,
        epilog=heading + examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _parsed(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """
    The words as options and targets, in any order; what stands behind `--` is never an option.

    argparse's own reading of mixed words forgets that on its second pass, so those words go
    through it under names that no argument can have.
    """
    end = words.index("--") if "--" in words else len(words)
    held = {f"\0{number}": word for number, word in enumerate(words[end + 1 :])}
    options = parser.parse_intermixed_args([*words[:end], *held])
    for name, value in vars(options).items():
        if isinstance(value, list):
            setattr(options, name, [held.get(word, word) for word in value])
        elif isinstance(value, str):
            setattr(options, name, held.get(value, value))
    return options


def _unknown(word: str) -> str:
    names = command_names()
    if Path(word).exists() or word.isdigit():
        return f"{word!r} is no command; meant is perhaps: flatline diagnose {neutral(word)}"
    close = difflib.get_close_matches(word, names, 1)
    hint = f"; meant is perhaps {close[0]!r}" if close else ""
    return f"there is no command {word!r}{hint}: there are {', '.join(names)}"


def _dispatch(argv: Sequence[str], engine: Engine) -> int:
    if not argv:
        complain(_help().rstrip())
        return WRONG_CALL
    word, rest = argv[0], argv[1:]
    if word in ("-h", "--help", "help"):
        say(_help())
        return HEALTHY
    if word in ("-V", "--version"):
        say(f"flatline {__version__}\n")
        return HEALTHY
    if word not in command_names():
        raise UsageError(_unknown(word))
    command = _command(word)
    parser = _parser(word, command)
    command.arguments(parser)
    return command.run(_parsed(parser, rest), engine)


def _listed(fault: ManyJobs) -> str:
    rows = [tuple(sentence(part)[:40] for part in job) for job in fault.jobs[:JOBS]]
    wide = [max(len(row[at]) for row in [*rows, ("job", "name", "state")]) for at in range(2)]
    table = [("job", "name", "state"), *rows]
    lines = [f"  {job:<{wide[0]}}  {name:<{wide[1]}}  {state}" for job, name, state in table]
    left = len(fault.jobs) - JOBS
    more = [f"  and {left:,} more"] if left > 0 else []
    head = f"flatline: the target holds {len(fault.jobs)} jobs; name one with --job ID"
    return "\n".join([head, "", *lines, *more])


def _broken(fault: Exception) -> str:
    if os.environ.get("FLATLINE_DEBUG") == "1":
        import traceback

        return "".join(traceback.format_exception(fault)).rstrip()
    what = sentence(f"{type(fault).__name__}: {fault}")[:300]
    return (
        f"flatline: it failed itself, and says nothing about the run: {what}\n"
        "This is a fault of Flatline. FLATLINE_DEBUG=1 shows where; please report that."
    )


def answer(argv: Sequence[str], engine: Engine) -> int:
    """The exit status of a call, everything said that is to be said."""
    try:
        status = _dispatch(argv, engine)
        sys.stdout.flush()
    except SystemExit as ended:  # argparse has said what was wrong, or has shown its help
        status = ended.code if isinstance(ended.code, int) else WRONG_CALL
    except ManyJobs as fault:
        complain(_listed(fault))
        status = WRONG_CALL
    except UsageError as fault:
        complain(f"flatline: {neutral(str(fault))}")
        status = WRONG_CALL
    except KeyboardInterrupt:
        complain("flatline: interrupted")
        status = INTERRUPTED
    except BrokenPipeError:
        _silence(sys.stdout)
        status = PIPE_CLOSED
    except FlatlineError as fault:
        complain(f"flatline: {neutral(str(fault))}")
        status = FAILED
    except Exception as fault:  # noqa: BLE001 - the rim: an unforeseen fault must not exit 1
        complain(_broken(fault))
        status = FAILED
    return status


def _end_tidily() -> None:
    """SIGTERM and SIGHUP (`timeout`, scancel, a terminal that is closed) end the process as an
    error would: what it made for a while, an unpacked capsule say, goes with it."""
    import signal

    def told(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    for one in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        try:
            if signal.getsignal(one) is signal.SIG_DFL:  # nohup ignores one of them
                signal.signal(one, told)
        except ValueError:  # called in a thread, whose process is somebody else's
            return


def main(argv: Sequence[str] | None = None, engine: Engine | None = None) -> NoReturn:
    """Run the command line and end the process with its status."""
    _end_tidily()
    gc.set_threshold(100_000, 20, 100)  # a fleet's rows are millions of tuples, and no cycles
    atexit.register(gc.freeze)  # nor are they to be gone over once more as the process ends
    sys.exit(answer(sys.argv[1:] if argv is None else argv, engine or Engine()))
