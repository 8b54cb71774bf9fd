"""
A job that was told to resume where the one before it was not, and began with a new model.

A program that goes on from whatever is in its folder begins anew, without a word, where the folder
is another or bears a misspelt name.  Who always asks so may mean a new run by another folder; who
asks now, behind a job of the same name that its limit ended, means that one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from flatline.facts import Facts, Marker, Point
from flatline.judging.begun_alike import (
    ALONE,
    LEFT,
    SHARE,
    Begun,
    as_a_new_model,
    launch,
    plain,
)
from flatline.judging.fresh_start import ASKS, FILE, misspelt, names, saved_steps, sibling
from flatline.judging.settings import settings, stated
from flatline.model import LogCite

_RESUME = re.compile(
    r"(?:auto_?)?resume(?:_(?:from_checkpoint|training|run|ckpt))?|continue_training"
)
_YES, _NO = (
    frozenset(("true", "yes", "auto", "latest", "last")),
    frozenset(("false", "no", "none")),
)
_OPTION = re.compile(
    r"\s--?(?:auto[-_]?resume|resume(?:[-_]from[-_]checkpoint)?)"
    r"(?:[= ](?:auto|latest|last|true|1)\b|(?=\s|$))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Told:
    """What asks, what had been saved, and the losses; `place` is the folder that was given for
    that of the other, and `sure` whether it can be no other that was meant."""

    asks: LogCite
    begun: Begun
    place: str | None
    sure: bool


def newly_asked(facts: Facts, first: Point) -> Told | None:
    """None where the job before this one asked as well, or need not be gone on from."""
    parent = facts.parent
    if parent is None or parent.chosen != ALONE or len(facts.attempts) > 1:
        return None
    if parent.disposition not in LEFT - {"completed"} or parent.reached_plan or facts.reached_plan:
        return None
    asks = _asks(facts, parent)
    saved = max(saved_steps(parent), key=lambda m: m.progress.step or 0, default=None)
    if asks is None or saved is None or first.step is None:
        return None
    begun = as_a_new_model(parent, saved, first)
    if begun is None or first.step >= SHARE * (saved.progress.step or 0):
        return None
    return None if set_otherwise(facts, parent) else _where(facts, saved, asks, begun)


def _asks(facts: Facts, parent: Facts) -> LogCite | None:
    """The setting or the command that asks for a resume, which the other denied or left out."""
    theirs = stated(parent)
    for key, said in stated(facts).items():
        before = theirs.get(key)
        if _RESUME.fullmatch(key) is None or before is None:
            continue
        if (said.value or "").lower() in _YES and (before.value or "").lower() in _NO:
            return said.cite
    mine, other = launch(facts), launch(parent)
    if mine is None or other is None or not ASKS.search(mine.text) or _OPTION.search(other.text):
        return None
    return mine


def set_otherwise(facts: Facts, parent: Facts) -> bool:
    """Whether a setting or the command is known to be another, but for the resume, what a job is
    numbered by, and its folders."""
    differ, _ = settings(facts, parent)
    shown = [(run, one) for run in (facts, parent) if (one := launch(run)) is not None]
    commands = {FILE.sub("/", _OPTION.sub("", plain(run, one.text))).strip() for run, one in shown}
    return len(commands) > 1 or any(
        found.weight in ("work", "learning", "start", "other")
        and found.name != "seed"
        and _RESUME.fullmatch(found.name) is None
        and not (found.weight == "other" and _a_folder(found.ours) and _a_folder(found.theirs))
        for found in differ
    )


def _a_folder(value: str | None) -> bool:
    return FILE.match(value or "") is not None


def _where(facts: Facts, saved: Marker, asks: LogCite, begun: Begun) -> Told | None:
    """By the folders that the line which asks names: another by a number is that of a sweep."""
    line = facts.text(asks.source, asks.line)
    places = [place for place in FILE.findall(line) if not place.endswith(".py")]
    wrong = [place for place in places if misspelt(saved.cite.text, place)]
    same = any(names(saved, place.rstrip("/")) for place in places)
    if not wrong and not same and any(sibling(saved.cite.text, place) for place in places):
        return None
    return Told(asks, begun, next(iter(wrong), None), bool(wrong) or same)
