"""
List every job that ended in a window of time, a verdict each.

Jobs that did not complete are diagnosed from their records and logs; then what
their failures share is named (a node, a leaf switch, a file system), always
with how many completed jobs touched it, and only where chance does not explain
it. Slurm is asked, or files that sacct printed are read with --from. Nothing
is ever cancelled, requeued or drained.

A user sees the own jobs, as sacct has it; -a shows everybody's, which is what
a node can be judged by. Exit status: 0 no failure, 1 at least one, 2 the call
was wrong, 3 none was found but some job stays undetermined, 4 Flatline failed.

examples:
  flatline jobs                            what ended in the last 24 hours
  flatline jobs -a --since 7d --partition train
  flatline jobs --from sacct.json --logs /shared/logs --since 24h
  flatline jobs --from ./cluster-logs --name 'pretrain-*' --json
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from flatline.cli import FOUND, HEALTHY, UNDETERMINED, Engine, look_of, progress_shown, say
from flatline.errors import UsageError

if TYPE_CHECKING:
    from flatline.triage import Ask

USAGE = "[--since SPAN|TIME] [--from FILE|FOLDER] [options]"


def arguments(parser: argparse.ArgumentParser) -> None:
    from flatline.triage import LIMIT

    add = parser.add_argument
    add("--since", metavar="T", help="90min, 24h, 7d, or ISO 8601; live: 24h, files: all of it")
    add("--until", metavar="T", help="the end of the window, likewise")
    add("--from", dest="sources", metavar="FILE", action="append", default=[],
        help="what sacct or slurmrestd printed, or a folder of it; repeatable")  # fmt: skip
    add("--logs", metavar="FOLDER", action="append", default=[],
        help="with --from: where logs lie, told by the job id in their names")  # fmt: skip
    add("--follow-paths", action="store_true",
        help="with --from: open the log paths it names; only for a file of yours")  # fmt: skip
    add("-a", "--allusers", action="store_true", help="everybody's jobs, not only your own")
    add("--user", metavar="LIST", help="these users' jobs, by comma")
    add("--partition", metavar="LIST", help="only these partitions, by comma")
    add("--name", metavar="LIST", help="only these job names, by comma; * and ? stand for any")
    add("--state", metavar="LIST", help="show only these states, as FAILED,TIMEOUT or F,TO")
    add("--limit", metavar="N", type=int, default=LIMIT,
        help=f"diagnose at most N jobs, the latest ({LIMIT})")  # fmt: skip
    add("--json", action="store_true", help="the document of docs/jobs.schema.json")
    add("--quiet", action="store_true", help="no progress")


def run(options: argparse.Namespace, engine: Engine) -> int:
    ask = _ask(options)
    with progress_shown(options.quiet, "jobs") as progress:
        listing = engine.jobs(ask, progress)
    if options.json:
        from flatline.triage import document

        say(document.render(listing), "utf-8")
    else:
        from flatline.triage import page

        say(page.render(listing, look_of(sys.stdout)))
    if listing.failed:
        return FOUND
    return UNDETERMINED if listing.undetermined else HEALTHY


def _ask(options: argparse.Namespace) -> Ask:
    if options.limit < 1:
        raise UsageError(f"--limit {options.limit}: give 1 or more")
    if not options.sources and (options.logs or options.follow_paths):
        raise UsageError("--logs and --follow-paths belong to --from; Slurm knows where logs lie")
    from flatline.triage import Ask

    return Ask(
        sources=tuple(options.sources),
        logs=tuple(options.logs),
        follow=options.follow_paths,
        since=options.since,
        until=options.until,
        users=_list(options.user),
        everyone=options.allusers,
        partitions=_list(options.partition),
        names=_list(options.name),
        states=_list(options.state),
        limit=options.limit,
    )


def _list(said: str | None) -> tuple[str, ...]:
    return tuple(word for word in (said or "").split(",") if word)
