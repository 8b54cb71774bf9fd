"""
Say what a signature, a failure family, or a line of a log means.

WHAT is a signature's id, a family's code or name, or a line of a log in quotes
(- reads it from standard input). A signature: what a match means, what it does
not prove, its role, near misses, source, what to do. A family: its page, what
it can cause and be caused by, the telemetry it needs, its signatures. A line:
which signatures match it. Nothing is diagnosed: one line is no run.

Exit status: 0 explained, 2 nothing is called so, 3 no signature matches the
line, 4 Flatline itself failed.

examples:
  flatline explain torch-oom
  flatline explain C2
  flatline explain 'RuntimeError: CUDA error: device-side assert triggered'
  tail -1 slurm-8308.out | flatline explain - --json
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from flatline.cli import HEALTHY, UNDETERMINED, Engine, look_of, say
from flatline.errors import UsageError

if TYPE_CHECKING:
    from flatline.reference import LineEntry

USAGE = "WHAT [--json]"
MOST = 256 << 10
"""Bytes of a line that are read."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", metavar="WHAT", help="id, code, name, or a quoted line; - is stdin"
    )
    parser.add_argument("--json", action="store_true", help="for a program")


def run(options: argparse.Namespace, engine: Engine) -> int:
    from flatline import reference

    what = options.what
    if what == "-":
        what = sys.stdin.buffer.read(MOST).decode("utf-8", "replace")
        return _line(reference.line_entry(what), options.json)
    if not what.strip():
        raise UsageError("nothing was given to explain: name an id, a code, or quote a line")
    family, signature = reference.family_named(what), reference.signature_named(what)
    if family is not None:
        from flatline.reference import document, page

        entry = reference.family_entry(family)
        _say(document.family(entry) if options.json else page.family(entry, look_of(sys.stdout)))
    elif signature is not None:
        from flatline.reference import document, page

        made = page.signature(signature, look_of(sys.stdout))
        _say(document.signature(signature) if options.json else made)
    elif reference.looks_like_a_line(what):
        return _line(reference.line_entry(what[:MOST]), options.json)
    else:
        raise reference.unknown(what)
    return HEALTHY


def _line(entry: LineEntry, as_json: bool) -> int:
    from flatline.reference import document, page

    _say(document.line(entry) if as_json else page.line(entry, look_of(sys.stdout)))
    return HEALTHY if entry else UNDETERMINED


def _say(made: str | dict[str, object]) -> None:
    if isinstance(made, str):
        say(made)
        return
    import orjson

    from flatline.render.json import plain

    written = orjson.dumps(plain(made), option=orjson.OPT_INDENT_2).decode()
    say(written + "\n", "utf-8")
