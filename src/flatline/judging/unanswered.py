"""What a verdict that found no cause says: how the run ended and fared, and its last lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from flatline.facts import LOG, Facts, FileRead
from flatline.judging.claims import claim
from flatline.judging.throughput import clock, course_to_tell, shown, steps_of
from flatline.model import Claim, Finding, LogCite

_WORD = re.compile(r"\w")
LINES, LOOKED_AT = 3, 40
"""Lines that are shown, and how far back they are looked for behind blank ones."""


def speaking(facts: Facts) -> FileRead | None:
    """The log of the stream that speaks for the run, or the longest without one."""
    track = facts.main_track()
    logs = [file for file in facts.files if file.kind == LOG]
    spoken = [file for file in logs if track is not None and file.source == track.source]
    return max(spoken or logs, key=lambda file: file.lines, default=None)


def lastly(facts: Facts) -> tuple[Claim, ...]:
    """The last lines of the stream that speaks for the run."""
    chosen = speaking(facts)
    if chosen is None:
        return ()
    first = max(1, chosen.lines + 2 - LOOKED_AT)
    numbered = enumerate(facts.lines(chosen.source, first, LOOKED_AT), first)
    last = [number for number, text in numbered if _WORD.search(text)][-LINES:]
    cites = [LogCite(chosen.source, n, text) for n in last
             if (text := facts.text(chosen.source, n)).strip()]  # fmt: skip
    return (claim("The log ends so; nothing in it was decisive", *cites),) if cites else ()


@dataclass(frozen=True, slots=True)
class Fell:
    """That a run became slower, and what shows it."""

    text: str
    shows: tuple[Claim, ...]


def fell(facts: Facts) -> Fell | None:
    """None where throughput is not known or stayed; a slow beginning is no fall."""
    run = course_to_tell(facts)
    later = [phase for phase in run.slow if phase.begins >= run.best.begins] if run else []
    if run is None or not later:
        return None
    worst = max(later, key=lambda phase: (1 - phase.part) * (phase.ends - phase.begins))
    since = (
        f"from {clock(worst.begins)} UTC"
        if run.pace.clocked
        else f"from step {steps_of(run, worst)[0]} on"
    )
    text = f"Throughput fell by {1 - worst.part:.0%} {since}; nothing that was read says why"
    return Fell(text, (shown(facts, run, worst),))


def _nothing_left(facts: Facts) -> str | None:
    """Where it went on from, of a run that says it was done without a step since."""
    n = facts.last.n
    if facts.disposition not in ("unknown", "completed"):
        return None
    if any(track.of_attempt(n) for track in facts.tracks):
        return None
    done = {m.cite.source: m.cite.line for m in facts.markers_of("finished") if m.attempt == n}
    for marker in reversed(facts.markers_of("resume")):
        said = marker.progress
        begun = f"step {said.step}" if said.step else f"epoch {said.epoch:g}" if said.epoch else ""
        if begun and marker.attempt == n and marker.cite.line < done.get(marker.cite.source, 0):
            return f"The run went on from {begun} and says it was done; no step since was read"
    return None


def why_open(
    facts: Facts, healthy: Finding | None, doubts: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """The headline by how the run ended, and what cannot be decided."""
    if healthy is not None:
        going = facts.disposition in ("running", "unknown")
        so_far = "is still going" if going else "completed"
        return f"The run {so_far}; whether it trained well cannot be told", tuple(doubts)
    ended = {
        "cancelled": "The run was cancelled; nothing decisive was wrong before it",
        "timeout": "The time limit ended the run; nothing read shows whether it was advancing",
        "failed": "The run failed; nothing that was read says why",
        "running": "The run is still going; nothing decisive is wrong",
        "pending": "The run has not begun",
        "completed": "The run completed; it printed no progress that is recognised",
    }.get(facts.disposition, "No line or number that was recognised shows a fault, or the end")
    if facts.disposition == "completed" and facts.stops_short:
        ended = (
            f"The record says that the run completed; its log stops at step {facts.last_step}"
            f" of {facts.planned_steps}"
        )
    ended = _nothing_left(facts) or ended
    failing = [e for e in facts.exits if e.exit_code or e.signal not in (None, 15)]
    if facts.disposition == "failed" and failing:
        first = failing[0]
        how = f"signal {first.signal}" if first.signal else f"exit code {first.exit_code}"
        where = f" on {first.place}" if first.place else ""
        done = f" after its planned {facts.planned_steps} steps" if facts.reached_plan else ""
        ended = (
            f"The run failed{done} ({first.reporter} reports {how}{where}); nothing read says why"
        )
    cannot = ["Why, or whether anything was wrong: no decisive line, record or number was read."]
    if not facts.has_progress:
        cannot.append("Training correctness is unverifiable: no progress line was recognised.")
    if not facts.log_lines:
        cannot.append("The job's own log was not read; it is where most causes are named.")
    return ended, tuple(cannot)
