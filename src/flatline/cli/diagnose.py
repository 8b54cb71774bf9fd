"""
Say why a run failed, hung, slowed down or learned nothing.

A TARGET is a folder, a file, or a Slurm job id where Slurm is; several are
parts of one run. Files are told by their content. Nothing is written into a
TARGET and no process is touched. --baseline names a run to compare with; where
accounting knows a completed one of the same name, nodes and GPUs, the last of
them is taken by itself, and the verdict says so.

Exit status: 0 healthy, 1 a fault was found, 2 the call was wrong, 3
undetermined, 4 Flatline itself failed (130 interrupted). With --format json,
verdict.resubmit says whether running it again helps: as_is, exclude,
fix_first, wait, unnecessary, unknown.

examples:
  flatline diagnose ./outputs/8308
  flatline diagnose slurm-8308.out sacct.psv dmesg.txt
  flatline diagnose ./cluster-logs --job 8308 --format json --output 8308.json
  flatline diagnose ./outputs/8308 --format html --output report.html
  flatline diagnose 8308 --prometheus http://prometheus:9090
  flatline diagnose ./outputs/8309 --baseline ./outputs/8308
  flatline diagnose ./outputs/8308 --agent --model anthropic:NAME
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from flatline.cli import (
    STATUS,
    Engine,
    complain,
    declare_run,
    look_of,
    progress_shown,
    request_said,
    say,
)
from flatline.errors import UsageError

if TYPE_CHECKING:
    from flatline.collect import Request
    from flatline.exhibit import Exhibit
    from flatline.model import Verdict
    from flatline.wording.progress import Progress

USAGE = "TARGET... [options]"


def arguments(parser: argparse.ArgumentParser) -> None:
    from flatline.agent.options import declare
    from flatline.render import format_names

    add = parser.add_argument
    add("target", nargs="+", metavar="TARGET", help="folder, file or Slurm job id")
    declare_run(parser)
    add("--format", choices=format_names(), default="text", help="default: text")
    add("--output", metavar="FILE", help="write the verdict there, never inside a TARGET")
    add("--quiet", action="store_true", help="text in one line; no progress, no notes")
    add("--agent", action="store_true", help="have a model investigate too; it changes nothing")
    declare(parser)


def run(options: argparse.Namespace, engine: Engine) -> int:
    output = None if options.output in (None, "-") else _output(options)
    request = request_said(options)
    with progress_shown(options.quiet) as progress:
        verdict, exhibit = _answer(request, options, engine, progress)
    page = _page(verdict, exhibit, options, to_file=output is not None)
    if output is None:
        say(page, None if options.format == "text" else "utf-8")
    else:
        write_whole(output, page)
        if not options.quiet:
            complain(f"flatline: {verdict.state}; the verdict is in {output}")
    return STATUS[verdict.state]


def _answer(
    request: Request, options: argparse.Namespace, engine: Engine, progress: Progress | None
) -> tuple[Verdict, Exhibit | None]:
    """The verdict; with what can be shown of the run where the format draws it."""
    from flatline.render import Drawn, format_named

    drawn = isinstance(format_named(options.format), Drawn)
    if options.agent:
        return engine.investigate(request, progress, options, drawn)
    if drawn:
        return engine.exhibit(request, progress)
    return engine.diagnose(request, progress), None


def _page(
    verdict: Verdict, exhibit: Exhibit | None, options: argparse.Namespace, to_file: bool
) -> str:
    from flatline.render import Drawn, format_named, text

    shown = format_named(options.format)
    if isinstance(shown, Drawn) and exhibit is not None:
        return shown.illustrate(verdict, exhibit)
    if options.format != "text":
        return shown.render(verdict)
    look = text.Look(brief=options.quiet) if to_file else look_of(sys.stdout, options.quiet)
    return text.render(verdict, look)


# --- where the verdict goes -------------------------------------------------------------------


def _output(options: argparse.Namespace) -> Path:
    """The file to write, refused before any work where it must not or cannot be written."""
    output = Path(options.output).resolve()
    for named in (*options.target, *([options.baseline] if options.baseline else [])):
        target = Path(named)
        try:
            if not target.exists():
                continue
        except OSError:  # a name too long or a folder closed to us: `collect` says so
            continue
        inside = target.is_dir() and output.is_relative_to(target.resolve())
        if inside or (output.exists() and output.samefile(target)):
            raise UsageError(
                f"--output {options.output} lies in the target {named}, into which nothing is "
                "ever written; name a file elsewhere"
            )
    if output.is_dir():
        raise UsageError(f"--output {options.output} is a folder; name a file")
    if not os.access(output.parent, os.W_OK):
        raise UsageError(f"--output {options.output}: {output.parent} is no folder to write in")
    return output


def write_whole(path: Path, page: str) -> None:
    """The whole file or none of it: written beside and moved there. What is no regular file (a
    device, a pipe) is written to, never replaced. Raises `UsageError` where that fails."""
    data = page.encode("utf-8", "backslashreplace")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        beside = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as fault:
        raise UsageError(f"--output {path}: {fault.strerror or fault}") from fault
