"""
What was looked at: which stores were read to where, and what a need still lacks.

A need is written by a family in words; `a|b` is met by either.  A need no store is known for is
never met, so that an unknown word cannot rule anything out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from flatline.facts import DUMPS, KERNEL, LOG, METRICS, SCHEDULER, Facts
from flatline.judging.throughput import pace
from flatline.model import AbsenceCite, Cite, DerivedCite, QueryCite, RecordCite
from flatline.signals import NEEDS

_ENDED = ("completed", "failed", "cancelled", "timeout", "node_fail", "out_of_memory",
          "preempted", "boot_fail", "deadline")  # fmt: skip


def missing(facts: Facts, needs: Sequence[str]) -> tuple[str, ...]:
    """The needs that are not met, in words."""
    return tuple(
        need.replace("|", " or ")
        for need in needs
        if not any(_met(facts, part) for part in need.split("|"))
    )


def _met(facts: Facts, need: str) -> bool:
    check = _CHECKS.get(need)
    if check is not None and check(facts):
        return True
    return METRICS in facts.stores and need in NEEDS and facts.measured(need)


def _log(facts: Facts) -> bool:
    return facts.log_lines > 0


def _log_to_its_end(facts: Facts) -> bool:
    """
    Whether the log was read to the end of the run, errors included.

    A log without errors proves nothing unless it is known to hold the error stream and the end:
    it does where the run completed, or where a launcher's or the scheduler's words on the end
    stand in it.
    """
    if not facts.log_lines or not facts.whole_logs:
        return False
    if facts.disposition == "completed":
        return True
    told = any("end-ok" in m.signature.tags or m.signature.role == "marker" for m in facts.matches)
    return bool(facts.exits or facts.crashes or told) and facts.disposition in _ENDED


def _records(facts: Facts) -> bool:
    return facts.job is not None


def _node_events(facts: Facts) -> bool:
    job = facts.job
    return bool(facts.node_events) or (job is not None and job.disposition == "completed")


def _progress(facts: Facts) -> bool:
    return facts.has_progress


def _throughput(facts: Facts) -> bool:
    return pace(facts) is not None


def _baseline(facts: Facts) -> bool:
    return facts.baseline is not None


def _loss(facts: Facts) -> bool:
    track = facts.main_track(facts.last.n)
    return track is not None and any(track.has_loss)


_CHECKS: dict[str, Callable[[Facts], bool]] = {
    "job log": _log,
    "job log to its end": _log_to_its_end,
    "scheduler records": _records,
    "node events": _node_events,
    "kernel log": lambda facts: KERNEL in facts.stores,
    "flight-recorder dumps": lambda facts: DUMPS in facts.stores,
    "training progress": _progress,
    "training throughput over time": _throughput,
    "a baseline run": _baseline,
    "training progress with a loss": _loss,
}


def stores_of(facts: Facts, cites: Iterable[Cite]) -> frozenset[str]:
    """The independent stores a set of citations comes from."""
    kinds = {read.source: read.kind for read in facts.files}
    found: set[str] = set()
    for cite in cites:
        if isinstance(cite, AbsenceCite):
            continue
        if isinstance(cite, DerivedCite):
            found |= stores_of(facts, cite.inputs)
        elif isinstance(cite, RecordCite):
            found.add(SCHEDULER)
        elif isinstance(cite, QueryCite):
            found.add(METRICS)
        else:
            found.add(kinds.get(cite.source, LOG))
    return frozenset(found)
