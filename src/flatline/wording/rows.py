"""The rows that open every surface, and instants and values as a person reads them."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from flatline.model import Attribution, Impact, Resubmit, Run, Scalar, State, Verdict
from flatline.wording.places import counted, fold_hosts, fold_places
from flatline.wording.untrusted import neutral, sentence

GLYPHS: dict[State, str] = {"found": "✗", "healthy": "✓", "undetermined": "?"}
STATES: dict[State, str] = {
    "found": "FAULT",
    "healthy": "HEALTHY",
    "undetermined": "UNDETERMINED",
}
BLAMES: dict[Attribution, str] = {
    "job": "the job",
    "infrastructure": "infrastructure",
    "scheduler": "the scheduler",
    "training": "the training itself",
    "none": "nobody",
    "unknown": "cannot be told",
}
RESUBMITS: dict[Resubmit, str] = {
    "as_is": "yes, as it is",
    "exclude": "yes, but not on",
    "fix_first": "no, fix it first",
    "wait": "not yet, wait",
    "unnecessary": "not needed",
    "unknown": "cannot be told",
}
CONFIDENT = 0.8
"""From here on a verdict may be called confident: the contract of the JSON document."""

_UNITS = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


# --- numbers and instants --------------------------------------------------------------------


def instant(at: datetime) -> str:
    """ISO 8601 in UTC with Z; parts of a second only where there are any."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def moment(at: datetime, day: datetime | None = None) -> str:
    """An instant for reading, to the millisecond; without its date where that is `day`'s."""
    utc = at.astimezone(UTC)
    date = (
        "" if day is not None and utc.date() == day.astimezone(UTC).date() else f"{utc:%Y-%m-%d} "
    )
    fraction = f".{utc.microsecond // 1000:03d}" if utc.microsecond >= 1000 else ""
    return f"{date}{utc:%H:%M:%S}{fraction}Z"


def duration(seconds: float) -> str:
    """`42 s`, `3 min 20 s`, `5 h 2 min`, `3 d 4 h`: two units at most."""
    whole = round(seconds)
    for size, unit, part, lesser in _UNITS:
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {lesser}" if rest else "")
    return f"{whole} s"


def value_text(value: Scalar) -> str:
    """A value as a person writes it: four digits of a fraction, NaN and infinity by name."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "none"}[value]
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else f"{value:.4g}"
    return neutral(str(value))


def confidence_text(confidence: float) -> str:
    """Two digits, rounded down: 0.799 is never shown as confident."""
    return f"{math.floor(confidence * 100 + 1e-9) / 100:.2f}"


# --- the rows that open every surface --------------------------------------------------------


def _family(verdict: Verdict) -> str:
    if verdict.code is None:
        return ""
    said = f"{verdict.code} {verdict.family or ''}".strip()
    said += f", {sentence(verdict.fault_class)}" if verdict.fault_class else ""
    said += f", {verdict.severity}" if verdict.severity in ("degraded", "warning") else ""
    doubt = "" if verdict.confidence >= CONFIDENT else f", below {CONFIDENT:.2f}: not confident"
    return f"{said} (confidence {confidence_text(verdict.confidence)}{doubt})"


def _blame(verdict: Verdict) -> str:
    known = verdict.state != "undetermined" and verdict.attribution != "none"
    return BLAMES[verdict.attribution] if known else ""


def _where(verdict: Verdict) -> str:
    folded = fold_places(verdict.culprits) if verdict.culprits else ""
    if verdict.scope == "all":
        return "every place alike" + (f": {folded}" if folded else "")
    if verdict.scope == "shared" and verdict.domain:
        return f"shared by many: {sentence(verdict.domain)}" + (f" ({folded})" if folded else "")
    return folded


def _since(at: datetime | None, step: int | None) -> str:
    said = [moment(at)] if at else []
    return ", ".join([*said, f"step {step:,}"] if step is not None else said)


def _impact(verdict: Verdict) -> str:
    """What was lost; of a run that made steps and told of no checkpoint, at most how much."""
    impact, made = verdict.impact or Impact(), verdict.run.last_step
    parts = []
    if impact.gpu_hours_lost is not None:
        parts.append(f"{impact.gpu_hours_lost:,.1f} GPU-hours lost")
    if impact.steps_lost is not None:
        parts.append(f"{counted(impact.steps_lost, 'step')} lost")
    elif verdict.severity == "fatal" and made:
        parts.append(f"at most {counted(made, 'step')} lost: no line read tells of a checkpoint")
    if impact.last_checkpoint_step is not None:
        parts.append(f"last checkpoint at step {impact.last_checkpoint_step:,}")
    if impact.slowdown_ratio is not None:
        parts.append(f"slowed {value_text(impact.slowdown_ratio)} times")
    return ", ".join(parts)


def _resubmit(verdict: Verdict) -> str:
    said = RESUBMITS[verdict.resubmit]
    if verdict.resubmit != "exclude":
        return said
    hosts = fold_hosts(p.host for p in verdict.culprits if p.host is not None)
    return f"{said} {hosts or 'the places named here'}"


def _period(run: Run) -> str:
    start, end = run.started_at, run.ended_at
    if start and end:
        lasted = duration((end - start).total_seconds())
        return f"{moment(start)} to {moment(end, start)} ({lasted})"
    if end:
        return f"until {moment(end)}"
    heard = f"last heard of {moment(run.now, start)}" if run.now else ""
    return ", ".join(part for part in (f"since {moment(start)}" if start else "", heard) if part)


def _extent(run: Run) -> str:
    size = counted(run.world_size, "rank") if run.world_size is not None else ""
    hosts = fold_hosts(run.hosts)
    return f"{size} on {hosts}" if size and hosts else size or hosts


def _reached(run: Run) -> str:
    if run.last_step is None:
        return ""
    plan = f" of {run.planned_steps:,}" if run.planned_steps is not None else ""
    return f"to step {run.last_step:,}{plan}"


def _named(run: Run) -> str:
    """Which run it was: id, how it ended, software, size."""
    name = f"job {sentence(run.id)}" if run.id else "no job id"
    ended = "how it ended is unknown" if run.disposition == "unknown" else run.disposition
    software = " under ".join(sentence(part) for part in (run.framework, run.launcher) if part)
    parts = (f"{name}, {ended.replace('_', ' ')}", software, _extent(run))
    return "; ".join(part for part in parts if part)


def rows(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """What is read first, as (label, words); what is not known has no row."""
    every = (
        ("family", _family(verdict)),
        ("blame", _blame(verdict)),
        ("where", _where(verdict)),
        ("cleared", fold_places(verdict.cleared) if verdict.cleared else ""),
        ("since", _since(verdict.onset, verdict.onset_step)),
        ("impact", _impact(verdict)),
        ("resubmit", _resubmit(verdict)),
        ("run", _named(verdict.run)),
        ("ran", ", ".join(part for part in (_period(verdict.run), _reached(verdict.run)) if part)),
    )
    return tuple((label, words) for label, words in every if words)
