"""
Tell how a verdict turned out, for the next time.

VERDICT.json is what `flatline diagnose --format json` printed. --outcome
confirmed makes a record of the incident in the site's folder, or counts again
where this problem was learnt before; --outcome wrong is counted as well. With
--record ID the outcome counts for a record that is known already. Records that
held here are ranked higher and say so. Once a run: a second call is no second
vote.

examples:
  flatline learn verdict.json --outcome confirmed --cause 'a bent fibre'
  flatline learn verdict.json --outcome confirmed --record nccl-shm-too-small
  flatline learn verdict.json --outcome wrong
"""

from __future__ import annotations

import argparse
from pathlib import Path

from flatline.cli import HEALTHY, Engine, say
from flatline.errors import UsageError
from flatline.wording.untrusted import neutral

USAGE = "VERDICT.json --outcome confirmed|wrong [options]"


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("verdict", metavar="VERDICT.json", help="what diagnose printed with --format json")
    add("--outcome", choices=("confirmed", "wrong"), required=True, help="how it turned out")
    add("--cause", metavar="TEXT", help="what the cause was")
    add("--fix", metavar="TEXT", help="what cured it")
    add("--record", metavar="ID", help="the known record that it was")
    add("--to", metavar="FOLDER", help="write there and not to the site's folder")


def run(options: argparse.Namespace, engine: Engine) -> int:
    from flatline.knowledge.learn import learn
    from flatline.knowledge.site import folder

    if options.outcome == "wrong" and (options.cause or options.fix):
        raise UsageError(
            "--cause and --fix describe a confirmed incident; for what it was instead write a "
            "record and `flatline kb add` it"
        )
    done = learn(
        Path(options.verdict), options.outcome, folder(options.to),
        options.cause, options.fix, options.record,
    )  # fmt: skip
    say("".join(f"{neutral(line)}\n" for line in done))
    return HEALTHY
