"""
Ask the metrics of a run in PromQL.

A TARGET is a folder or a file; several are parts of one run. The names are
those of the exporters, or the canonical ones that `flatline signals` prints.
Where a record tells the run's hosts and time only theirs are asked; --all asks
everything. Semantics are Prometheus 3. Without times the query is answered in
at most 240 steps; --time asks at one time. Status 0 where the query could be
answered, be it with nothing.

examples:
  flatline query ./outputs/8308 'max by (host) (DCGM_FI_DEV_GPU_TEMP)'
  flatline query ./outputs/8308 'min by (host, gpu) (gpu_power_watts)'
  flatline query ./outputs/8308 'deriv(node_load1[5m])' --step 1m
  flatline query node.prom 'up == 0' --time 2026-03-01T04:12:55Z --json
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from flatline.cli import HEALTHY, WRONG_CALL, Engine, complain, instant_said, look_of, say
from flatline.errors import QueryRejected, UsageError
from flatline.wording.untrusted import neutral

if TYPE_CHECKING:
    from flatline.collect.stores import Question, Reply
    from flatline.model import Gap

USAGE = "TARGET... PROMQL [options]"
_STEP = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|[smhd])?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, None: 1.0}


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("words", nargs="+", metavar="TARGET... PROMQL", help="what holds the metrics; the query")
    add("--time", "--at", metavar="T", help="answer at this time: ISO 8601 or epoch seconds")
    add("--start", metavar="T", help="beginning of the range, likewise")
    add("--end", metavar="T", help="end of the range, likewise")
    add("--step", metavar="S", help="from one point to the next: 15s, 1m, 0.5h")
    add("--format", choices=("table", "json"), default="table", help="default: table")
    add("--json", action="store_true", help="as Prometheus's HTTP API answers; --format json")
    add("--all", action="store_true", help="also the hosts and times of other runs")
    add("--job", metavar="ID", help="whose hosts and time, where records tell of several jobs")
    add("--promql-compat", choices=("2", "3"), default="3", metavar="2|3",
        help="answer as this major release of Prometheus; default: 3")  # fmt: skip


def run(options: argparse.Namespace, engine: Engine) -> int:
    question = _question(options)
    as_json = options.json or options.format == "json"
    try:
        reply = engine.query(question)
    except QueryRejected as fault:
        if not as_json:
            raise UsageError(str(fault)) from fault
        from flatline.redact import mask
        from flatline.series.promql import response

        _say_json(response.failure("bad_data", mask(str(fault))))
        return WRONG_CALL
    if as_json:
        _say_json(_document(reply))
    else:
        _say_table(question, reply)
    return HEALTHY


# --- what was asked ---------------------------------------------------------------------------


def _question(options: argparse.Namespace) -> Question:
    query, targets = _told_apart(options.words)
    at = instant_said(options.time, "--time")
    if at is not None and (options.start or options.end or options.step):
        raise UsageError("--time asks at one time; --start, --end and --step over a range")
    start, end = instant_said(options.start, "--start"), instant_said(options.end, "--end")
    step_s = _seconds(options.step)
    from flatline.collect import own  # after the checks, for it is slower
    from flatline.collect.stores import Question

    old = options.promql_compat == "2"
    of = None if options.all else own(targets, options.job)
    return Question(query, targets, start, end, step_s, at, 2 if old else 3, of)


def _told_apart(words: list[str]) -> tuple[str, tuple[str, ...]]:
    """The query, which comes last or first, and the targets, which exist."""
    if len(words) < 2:
        raise UsageError("give a TARGET and a query, as: flatline query ./outputs/8308 'up'")
    if not _exists(words[-1]) or _exists(words[0]):
        return words[-1], tuple(words[:-1])
    return words[0], tuple(words[1:])


def _exists(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):
        return False


def _seconds(said: str | None) -> float | None:
    if said is None:
        return None
    found = _STEP.fullmatch(said.strip())
    if found is None or float(found["number"]) == 0:
        raise UsageError(f"--step {said!r} is no step; give it as 15s, 1m or 0.5h")
    return float(found["number"]) * _UNITS[found["unit"]]


# --- what is answered -------------------------------------------------------------------------


def _document(reply: Reply) -> dict[str, object]:
    from flatline.series.promql import response
    from flatline.series.promql.evaluate import Matrix

    said = [*_noted(reply), *(_said(gap) for gap in reply.gaps)]
    if isinstance(reply.found, str):
        return response.success(response.of_text(reply.found, reply.end), said)
    if not isinstance(reply.found, Matrix):
        return response.success(response.of_samples(reply.found), said)
    if reply.step_s is None:
        return response.success(response.at_once(reply.found), said)
    return response.success(response.over_range(reply.found), said)


def _say_json(document: dict[str, object]) -> None:
    import orjson

    say(orjson.dumps(document).decode() + "\n", "utf-8")


def _say_table(question: Question, reply: Reply) -> None:
    from flatline.series.promql.evaluate import Matrix
    from flatline.wording import plots

    look = look_of(sys.stdout)
    for note in (*_noted(reply), *map(_said, reply.gaps)):
        complain(f"flatline: {neutral(note)}")
    if isinstance(reply.found, str):
        lines = [neutral(reply.found)]
    elif not isinstance(reply.found, Matrix):
        lines = plots.of_samples(reply.found, look.width)
    elif reply.step_s is None:
        lines = plots.at_once(reply.found, look.width)
    else:
        lines = plots.over_time(reply.found, reply.step_s, look.width, unicode=look.unicode)
    say("\n".join(lines or [_nothing(question, reply)]) + "\n")


def _noted(reply: Reply) -> list[str]:
    """What was asked in the place of what was written."""
    told = []
    if reply.meant.rewritten:
        told.append(f"asked as {reply.meant.text}")
    if reply.meant.left_out:
        told.append(f"{reply.meant.left_out:,} series of other hosts left out; --all has them")
    return told


def _said(gap: Gap) -> str:
    where = f"{gap.where}: " if gap.where else ""
    return f"{where}{gap.need}: {gap.reason}"


def _nothing(question: Question, reply: Reply) -> str:
    """That no series answers, and which metric was perhaps meant."""
    from flatline.wording.plots import clock

    if not reply.metrics:
        return "there is no sample that says when it was taken"
    when = f"at {clock(reply.end)}"
    if reply.start != reply.end:
        when = f"from {clock(reply.start)} to {clock(reply.end)}"
    said = f"no series {when}"
    words = [w for w in re.findall(r"[a-zA-Z_:][\w:]*", question.query) if w in reply.metrics]
    if words:
        return said
    close = difflib.get_close_matches(question.query.split("{")[0], list(reply.metrics), 3)
    known = close or sorted(reply.metrics)[:3]
    return f"{said}; of {len(reply.metrics):,} metrics: {neutral(', '.join(known))}"
