"""What was excluded, what stays open, what could not be read, and the tries of the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from flatline.model import Attempt, Verdict
from flatline.render.html.evidence import Anchors
from flatline.render.html.markup import Child, h, more, prose, section
from flatline.wording.gaps import troubles
from flatline.wording.places import fold_hosts
from flatline.wording.rows import duration, moment

ROWS = 100
WHERES = 5


def table(heads: Sequence[str], rows: Iterable[Sequence[Child]], ids: Sequence[str]) -> ET.Element:
    """Rows whose cells say their heading themselves, for where there is room for one column."""
    body = [
        h(
            "tr",
            [h("td", cell, data_of=head) for head, cell in zip(heads, row, strict=True)],
            id=name,
        )
        for row, name in zip(rows, ids, strict=False)
    ]
    return h(
        "table",
        h("thead", h("tr", [h("th", head, scope="col") for head in heads])),
        h("tbody", body),
    )


def ruled_out_section(verdict: Verdict, anchors: Anchors) -> ET.Element | None:
    """Every family that was measured and excluded, and why."""
    ruled = verdict.ruled_out
    if not ruled:
        return None
    names = [f"ruled-{n}" for n in range(1, len(ruled) + 1)]
    rows: list[tuple[Child, ...]] = [
        (
            [h("b", r.code), f" {r.family}"],
            prose(r.why),
            anchors.chips(r.cites, name, f"{r.code} ruled out"),
        )
        for r, name in zip(ruled, names, strict=True)
    ]
    return section(
        "ruled-out",
        f"Ruled out ({len(ruled):,})",
        h("p.note", "All that these need was read, and each of their signs was measured."),
        table(("family", "why", "evidence"), rows[:ROWS], names),
        more(len(rows) - ROWS, "families"),
    )


def undetermined_section(verdict: Verdict) -> ET.Element | None:
    """Every family that stays open, and what would decide it."""
    open_ = verdict.undetermined
    if not open_:
        return None
    rows: list[tuple[Child, ...]] = [
        ([h("b", u.code), f" {u.family}"], prose("; ".join(u.missing))) for u in open_
    ]
    names = [f"open-{n}" for n in range(1, len(rows) + 1)]
    return section(
        "open",
        f"Not decidable ({len(open_):,})",
        h("p.note", "Neither found nor excluded: what is named was not there to be read."),
        table(("family", "missing"), rows[:ROWS], names),
        more(len(rows) - ROWS, "families"),
    )


def gaps_section(verdict: Verdict) -> ET.Element | None:
    """What could not be had; the same trouble in many places is one entry."""
    every = troubles(verdict)
    if not every:
        return None
    entries = []
    for one in every[:ROWS]:
        told: list[Child] = [[h("code", where), " "] for where in one.wheres[:WHERES]]
        left = len(one.wheres) - WHERES
        told.append(f"and {left:,} more" if left > 0 else None)
        entries.append(h("li", h("b", one.need), ": ", prose(one.reason), " ", told))
    return section(
        "gaps",
        f"Gaps ({len(every):,})",
        h("p.note", "What was needed or lay there and could not be read."),
        h("ul", entries),
        more(len(every) - ROWS, "gaps"),
    )


def attempts_section(verdict: Verdict, anchors: Anchors) -> ET.Element | None:
    """The tries of the run, where there are several."""
    attempts = verdict.run.attempts
    if len(attempts) < 2:
        return None
    shown = attempts[-ROWS:]
    names = [f"attempt-{attempt.n}" for attempt in shown]
    rows = [_attempt(attempt, verdict, anchors) for attempt in shown]
    heads = ("attempt", "when", "how it ended", "steps", "where", "evidence")
    return section(
        "attempts",
        f"Attempts ({len(attempts):,})",
        table(heads, rows, names),
        more(len(attempts) - ROWS, "earlier attempts"),
    )


def _attempt(attempt: Attempt, verdict: Verdict, anchors: Anchors) -> tuple[Child, ...]:
    start, end = attempt.started_at, attempt.ended_at
    when = " to ".join(moment(at, start if at is end else None) for at in (start, end) if at)
    lasted = f" ({duration((end - start).total_seconds())})" if start and end else ""
    ended = attempt.disposition.replace("_", " ")
    if attempt.signal:
        ended += f", signal {attempt.signal}"
    elif attempt.exit_code:
        ended += f", exit status {attempt.exit_code}"
    code = verdict.attempt_codes.get(attempt.n)
    steps = ""
    if attempt.last_step is not None:
        first = f"{attempt.first_step:,} to " if attempt.first_step is not None else ""
        steps = f"{first}{attempt.last_step:,}"
    return (
        h("b", str(attempt.n)),
        (when + lasted) or "not recorded",
        [ended, h("b", f" {code}") if code else None],
        steps or "none seen",
        fold_hosts(attempt.hosts) if attempt.hosts else "not recorded",
        anchors.chips(attempt.cites, f"attempt-{attempt.n}", f"attempt {attempt.n}") or "none",
    )
