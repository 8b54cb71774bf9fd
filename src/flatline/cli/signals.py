"""
Show which signals metrics carry, and which families are blind.

For every canonical signal: the exporter that carries it, the metric's own name
and unit, and how many of the hosts it covers. Families are listed that lack a
number they need before they may be ruled out.

examples:
  flatline signals ./outputs/8308
  flatline signals metrics.prom --json
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from flatline.cli import HEALTHY, UNDETERMINED, Engine, look_of, say
from flatline.wording.columns import wrap
from flatline.wording.untrusted import neutral

if TYPE_CHECKING:
    from flatline.collect.telemetry import Telemetry
    from flatline.render.text import Look

USAGE = "TARGET... [--json]"
HOSTS_SHOWN = 3


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("targets", nargs="+", metavar="TARGET", help="a folder or metrics files")
    parser.add_argument("--json", action="store_true", help="the same as a JSON document")


def run(options: argparse.Namespace, engine: Engine) -> int:
    from flatline.collect.telemetry import telemetry  # imports the arithmetic

    found = telemetry(tuple(options.targets), engine.families())
    if options.json:
        say(json.dumps(_document(found), indent=1, sort_keys=True) + "\n")
    else:
        say(_page(found, look_of(sys.stdout)))
    return HEALTHY if found.carried else UNDETERMINED


def _document(found: Telemetry) -> dict[str, object]:
    return {
        "hosts": list(found.hosts),
        "signals": [
            {
                "signal": entry.signal,
                "exporter": entry.exporter,
                "metric": entry.metric,
                "unit": entry.unit,
                "hosts": list(entry.hosts),
            }
            for entry in found.carried
        ],
        "absent": [signal.name for signal in found.absent],
        "blind": [
            {"code": b.code, "family": b.family, "missing": [list(group) for group in b.missing]}
            for b in found.blind
        ],
        "gaps": [{"need": g.need, "reason": g.reason, "where": g.where} for g in found.gaps],
    }


def _page(found: Telemetry, look: Look) -> str:
    lines = [look.paint("bold", f"{len(found.carried)} signals, {len(found.hosts)} hosts"), ""]
    rows = [
        (
            e.signal,
            f"{e.exporter}: {neutral(e.metric)} [{e.unit}]",
            _coverage(e.hosts, found.hosts),
        )
        for e in found.carried
    ]
    wide = max((len(row[0]) for row in rows), default=0)
    for name, carrier, hosts in rows:
        line = f"{name:<{wide}}  {carrier}{hosts}"
        apart = (name, f"    {carrier}{hosts}")
        lines.extend((line,) if len(line) <= look.width else apart)
    if found.blind:
        lines += ["", look.paint("bold", "Blind, and what would let them see")]
    for blind in found.blind:
        wanted = "; ".join(" or ".join(group) for group in blind.missing)
        told = wrap(f"{blind.code} {blind.family}: {wanted}", look.width - 2)
        lines += [told[0], *("  " + line for line in told[1:])]
    for gap in found.gaps:
        where = f" ({neutral(gap.where)})" if gap.where else ""
        lines += ["", *wrap(f"gap: {neutral(gap.need)}: {neutral(gap.reason)}{where}", look.width)]
    return "\n".join(lines) + "\n"


def _coverage(hosts: tuple[str, ...], known: tuple[str, ...]) -> str:
    """`, not on n3`; nothing where every host has it or the signal belongs to none."""
    lacking = [neutral(host) for host in known if host not in hosts]
    if not lacking or not hosts:
        return ""
    more = f" and {len(lacking) - HOSTS_SHOWN} more" if len(lacking) > HOSTS_SHOWN else ""
    return f", not on {', '.join(lacking[:HOSTS_SHOWN])}{more}"
