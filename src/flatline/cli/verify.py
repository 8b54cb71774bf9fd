"""
Check that a verdict's evidence says what the verdict claims.

Every citation of VERDICT.json (written by `flatline diagnose --format json`,
- for standard input) is read, run or computed again in TARGET. Status 0 where
all hold, 1 where one does not.

examples:
  flatline verify 8308.json ./outputs/8308
  flatline verify 8308.json ./outputs/8308 --prometheus http://prometheus:9090
  flatline verify b.json ./outputs/b --baseline ./outputs/a
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flatline.cli import FOUND, HEALTHY, Engine, look_of, say
from flatline.errors import UsageError
from flatline.redact import mask
from flatline.wording.columns import wrap
from flatline.wording.untrusted import sentence

if TYPE_CHECKING:
    from flatline.verify import Check

USAGE = "VERDICT.json TARGET..."
SCHEMA_VERSION = 1
LISTED = 50
"""Failures listed before the rest is counted."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verdict", metavar="VERDICT.json", help="the document to check")
    parser.add_argument("target", nargs="+", metavar="TARGET", help="what it was made from")
    parser.add_argument("--prometheus", metavar="URL", help="the server it was made with")
    parser.add_argument("--baseline", metavar="TARGET", help="the run it was compared with")


def run(options: argparse.Namespace, engine: Engine) -> int:
    document = _document(options.verdict)
    beside = (options.baseline,) if options.baseline else ()
    checks = engine.verify(document, tuple(options.target), options.prometheus, *beside)
    shown = tuple(replace(check, evidence=mask(check.evidence)) for check in checks)
    say(_report(shown, look_of(sys.stdout).width))
    return HEALTHY if all(check.ok for check in checks) else FOUND


def _document(name: str) -> Mapping[str, Any]:
    """Raises `UsageError` for anything that is not a verdict of this schema."""
    import orjson

    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        document: Any = orjson.loads(data)
    except OSError as fault:
        raise UsageError(f"{name}: {fault.strerror or fault}") from fault
    except orjson.JSONDecodeError as fault:
        raise UsageError(f"{name} is no JSON: {fault}") from fault
    if not isinstance(document, dict) or not isinstance(document.get("evidence"), list):
        raise UsageError(f"{name} is no verdict: it has no list of evidence")
    version = document.get("schema_version")
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"{name} has schema_version {version!r}; this Flatline reads {SCHEMA_VERSION}"
        )
    return dict(document)


def _report(checks: tuple[Check, ...], width: int) -> str:
    failed = [check for check in checks if not check.ok]
    if not checks:
        return "The verdict cites nothing: there is nothing to check.\n"
    if not failed:
        return f"All {len(checks):,} citations hold.\n"
    lines = [f"{len(failed):,} of {len(checks):,} citations do not hold:", ""]
    for check in failed[:LISTED]:
        mark = f"  {sentence(check.evidence):<5} "
        said = wrap(sentence(check.said), width - len(mark))
        lines += [mark + said[0], *(" " * len(mark) + line for line in said[1:])]
    if len(failed) > LISTED:
        lines.append(f"  and {len(failed) - LISTED:,} more")
    return "\n".join(lines) + "\n"
