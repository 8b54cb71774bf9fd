"""
Incident records and what a search found, as a page for a person and a document for a program.

What a site wrote is untrusted: secrets are masked, and nothing in it steers a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence

from flatline.knowledge.incident import KEYS, LIST_KEYS, Incident
from flatline.knowledge.index import Hit
from flatline.knowledge.outcome import Outcome, outcome_said
from flatline.knowledge.related import LEAST_SHARE
from flatline.knowledge.site import folder, index
from flatline.redact import mask
from flatline.wording.columns import wrap
from flatline.wording.untrusted import sentence

SHOWN = ("symptom", "environment", "cause", "fix", "function", "families", "signatures",
         "source", "settled")  # fmt: skip
WIDE = 13
NOTHING = (
    "No record fits. Try other words or fewer, or a line of the log; "
    "`flatline diagnose` reads the whole run."
)


BESIDE = 3
"""Records named beside the explanation of a line."""


def lookup(word: str) -> Incident | None:
    """The record of that id, shipped or the site's."""
    found, _ = index(folder())
    return next((i for i in found.incidents if i.id == word.strip()), None)


def record_here(incident: Incident, width: int) -> str:
    """The whole record, with what this site found of it."""
    found, _ = index(folder())
    return record(incident, found.outcomes.get(incident.id, Outcome()), width)


def beside_line(text: str, width: int) -> str:
    """Records that a line resembles, a line each; empty where none."""
    found, _ = index(folder())
    hits = [hit for hit in found.search(text, limit=BESIDE) if hit.share >= LEAST_SHARE]
    if not hits:
        return ""
    rows = [_hung("", f"{hit.incident.id}: {hit.incident.problem}", width, 2) for hit in hits]
    head = "Incidents on record with such words (none of them is evidence):"
    return "\n".join(["", head, *(line for row in rows for line in row)]) + "\n"


def document(incident: Incident, outcome: Outcome) -> dict[str, object]:
    """One record with what this site found of it."""
    held = {
        key: [mask(text) for text in value] if key in LIST_KEYS else mask(value)
        for key, value in ((key, getattr(incident, key)) for key in KEYS)
    }
    here = {"confirmed_here": outcome.confirmed, "wrong_here": outcome.wrong}
    return {**held, "origin": incident.origin, **here}


def hits_document(hits: Sequence[Hit]) -> list[dict[str, object]]:
    """The records found, the best first, with `score` and `share`."""
    return [
        {**document(hit.incident, hit.outcome), "score": hit.score, "share": hit.share}
        for hit in hits
    ]


def record(incident: Incident, outcome: Outcome, width: int) -> str:
    """The whole record."""
    lines = [_safe(incident.id), *_hung("problem", incident.problem, width)]
    lines += [line for at in incident.lines for line in _hung("line", at, width)]
    for key in SHOWN:
        value = getattr(incident, key)
        said = ", ".join(value) if key in LIST_KEYS else value
        lines += _hung(key, said, width) if said else []
    told = outcome_said(outcome.confirmed, outcome.wrong)
    lines += _hung("here", told, width) if told else []
    return "\n".join(lines) + "\n"


def hits(found: Sequence[Hit], width: int) -> str:
    """The records found, each in a few lines."""
    if not found:
        return "\n".join(wrap(NOTHING, width)) + "\n"
    lines: list[str] = []
    for number, hit in enumerate(found, 1):
        i = hit.incident
        told = outcome_said(hit.outcome.confirmed, hit.outcome.wrong)
        lines += _hung(f"{number}.", i.problem, width, 4)
        lines += _hung("", f"{', '.join(i.families)}  {i.id}  {told}".rstrip(), width, 4)
        lines += _hung("", f"cause: {i.cause}", width, 4)
        lines += _hung("", f"fix: {i.fix}", width, 4)
    return "\n".join([*lines, "", "flatline kb show ID shows one whole."]) + "\n"


def _hung(label: str, text: str, width: int, wide: int = WIDE) -> list[str]:
    lines = wrap(_safe(text), max(width - wide, 20)) or [""]
    return [f"{label if not at else '':<{wide}}{line}" for at, line in enumerate(lines)]


def _safe(text: str) -> str:
    return sentence(mask(text))
