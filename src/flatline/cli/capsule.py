"""
Seal a run into one file or folder that diagnoses the same anywhere.

What `flatline diagnose` would read of the TARGETs goes in, secrets masked:
logs line for line, records, dumps, metrics in columnar files, and a manifest
with a hash of each and what could not be had. Nothing is written into a
TARGET and nothing is overwritten. A capsule is a TARGET like any other.

An --output that ends in .capsule or .tar is one file (a plain tar), any other
a folder; without one it is NAME.capsule here. With --prometheus the metrics
Flatline reads of the run are fetched from a server.

examples:
  flatline capsule ./outputs/8308
  flatline capsule ./cluster-logs --job 8308 --output 8308.capsule
  flatline capsule 8308 --prometheus http://prometheus:9090
  flatline diagnose 8308.capsule
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from flatline.cli import HEALTHY, Engine, complain, instant_said, say
from flatline.errors import FormatError, UsageError
from flatline.wording.places import counted
from flatline.wording.progress import Progress
from flatline.wording.untrusted import neutral

if TYPE_CHECKING:
    from flatline.capsule.sealing import Sealed

USAGE = "TARGET... [options]"
FILES = (".capsule", ".tar")
GAPS = 8
"""Gaps told one by one."""


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("target", nargs="+", metavar="TARGET", help="folder, file or Slurm job id")
    add("--output", metavar="PATH", help="what to make; default: NAME.capsule here")
    add("--job", metavar="ID", help="which job, where a TARGET holds several")
    add("--prometheus", metavar="URL", help="a server that holds metrics of the run")
    add("--start", metavar="T", help="beginning of the run: ISO 8601 or epoch seconds")
    add("--end", metavar="T", help="end of the run, likewise")
    add("--hosts", metavar="LIST", help="hosts of the run, as node[01-16],login1")
    add("--quiet", action="store_true", help="no progress, no notes")


def run(options: argparse.Namespace, engine: Engine) -> int:
    start, end = instant_said(options.start, "--start"), instant_said(options.end, "--end")
    if start and end and start >= end:
        raise UsageError(f"--start {options.start} is not before --end {options.end}")
    if options.prometheus and not re.match(r"https?://[^/\s]", options.prometheus):
        raise UsageError(f"--prometheus {options.prometheus!r}: give it as http://HOST:PORT")
    output, one_file = _output(options)
    hosts = _hosts(options.hosts)
    from flatline.capsule.sealing import seal  # after the checks: it is most of the start-up
    from flatline.collect import Request

    request = Request(
        tuple(options.target), options.job, None, options.prometheus, start, end, hosts
    )
    bytes_, counts = Progress(sys.stderr), Progress(sys.stderr, unit="metrics")

    def tell(stage: str, done: int, total: int) -> None:
        if not options.quiet:
            (counts if stage.endswith("metrics") else bytes_)(stage, done, total)

    try:
        sealed = seal(request, output, one_file, tell)
    finally:
        bytes_.clear()
        counts.clear()
    if not options.quiet:
        _tell(sealed)
    say(f"{output}\n")
    return HEALTHY


def _tell(sealed: Sealed) -> None:
    complain(
        f"flatline: {counted(sealed.files, 'file')} ({counted(sealed.masked_lines, 'line')}"
        f" masked), {counted(sealed.samples, 'sample')} of {sealed.series:,} series,"
        f" {sealed.size:,} bytes"
    )
    for gap in sealed.gaps[:GAPS]:
        where = f"{gap.where}: " if gap.where else ""
        complain(f"flatline: not had: {neutral(f'{where}{gap.need}: {gap.reason}')}")
    if len(sealed.gaps) > GAPS:
        complain(f"flatline: and {len(sealed.gaps) - GAPS:,} more, in its manifest")


def _output(options: argparse.Namespace) -> tuple[Path, bool]:
    """What to make and whether it is one file, refused before any work where it must not or
    cannot be made."""
    named = options.output
    if named is None:
        name = options.job or Path(options.target[0]).resolve().name or "run"
        named = f"{name.removesuffix('.capsule')}.capsule"
    output = Path(named).resolve()
    if os.path.lexists(output):
        raise UsageError(f"--output {named} is there already; nothing is overwritten")
    if not output.parent.is_dir() or not os.access(output.parent, os.W_OK):
        raise UsageError(f"--output {named}: {output.parent} is no folder to write in")
    for target in options.target:
        try:
            inside = Path(target).is_dir() and output.is_relative_to(Path(target).resolve())
        except OSError:  # a name too long or a folder closed to us: reading it says so
            continue
        if inside:
            raise UsageError(
                f"--output {named} lies in the target {target}, into which nothing is ever"
                " written; name it elsewhere with --output"
            )
    return output, output.suffix in FILES and not str(named).endswith("/")


def _hosts(listed: str | None) -> tuple[str, ...]:
    if not listed:
        return ()
    from flatline.logs.hostlists import expand

    try:
        return expand(listed)
    except FormatError as fault:
        raise UsageError(f"--hosts: {fault}") from fault
