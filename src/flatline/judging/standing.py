"""
An accuracy that stands still, digit for digit, where no loss shows whether anything was learnt.

Weights that move give other answers for some of the cases, so an accuracy of four digits moves as
well.  One that is the same to the last digit in epoch after epoch is that of a model which answers
all cases alike: at the share of one class in so many.  Few digits, few cases and a model that was
good from the start stand still too, and say nothing.

Half as many epochs do where the loss says the same: it has come to the logarithm of as many cases;
or where the same accuracy had been better: then the model has lost what it had learnt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import isfinite, log
from statistics import median

from flatline.facts import LOG, Facts, FileRead
from flatline.judging.shapes import FALLING_POINTS
from flatline.model import LogCite

LEAST_EPOCHS, LEAST_STEPS = 10, 20
"""Of one accuracy at chance. Two of different cases need half as many, wherever they stand."""
DECIMALS = 4
"""Of a fraction; two fewer of a percentage."""
CHANCES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 50, 100, 200, 1000)
"""Classes that tasks have."""
NEAR = 0.02
"""Of chance: classes are seldom quite of one size."""
ABOUT = 0.1
"""Of chance: how far an accuracy of cases that are drawn anew each epoch may wander from it."""
LEVEL, SCATTER = 1e-3, 0.02
"""Of a loss at the logarithm of so many cases: how far its median, and any of its values, may lie
from it. A judgement: batches of unequal classes move it by a hundredth."""
FEW_CASES = 100
"""An accuracy that so many cases may give moves in steps too coarse to see small changes by."""
ABOVE, ABOVE_BY = 1.3, 0.1
"""Times chance, and by how much beyond it, an accuracy was that had learnt something."""
GOOD = 0.3
"""A score from which a fall to nought is one: a metric that is rarely above nought may come back
to it.  A judgement."""
LINES, CHUNK, LINE_CHARS, MOST_LOGS = 4_000, 500, 400, 8
_HELD_OUT = re.compile(r"(?i)^(?:val|test|dev|eval)")
_NAMED = re.compile(
    r"(?i)(?<![a-z@])(?P<name>(?:(?:train(?:ing)?|val(?:id(?:ation)?)?|test(?:ing)?|dev|eval)"
    r"[ _./-]{1,3})?(?:acc(?:uracy)?|top-?1(?:[ _-]acc(?:uracy)?)?|(?:acc|prec)@1))"
    r"[ =:|]{1,20}(?P<value>\d{1,3}\.(?P<decimals>\d{2,12}))(?P<percent> ?%)?(?![\d.e-])"
)
_BEST = re.compile(r"(?i)\b(?:best|highest|max|target|baseline)\W{0,3}(?:\w{1,12}\W{1,3}){0,2}$")
_COUNTED = re.compile(
    r"(?i)(?<![a-z])(?P<what>epoch|step|iter(?:ation)?s?)s?[ :=#\[(]{0,4}(?P<n>\d{1,9})"
)
_ADVERSARIAL = re.compile(r"(?i)\b(?:[dg]|gen|disc|generator|discriminator|adv)_?loss\b")
"""A discriminator that calls half of its cases right is where it should be."""
_REWARDED = re.compile(r"(?i)\b(?:reward|episode|rollout|return_mean|ep_len|advantage)s?\b")


@dataclass(slots=True)
class _Row:
    """One accuracy as it was printed, of as many epochs (or steps); `texts` are its spellings."""

    name: str
    texts: set[str] = field(default_factory=set)
    value: float = 0.0
    low: float = 1.0
    high: float = 0.0
    fine: bool = True
    """Whether it has enough digits in every line."""
    counts: list[int] = field(default_factory=list)
    epochs: bool = True
    lines: list[int] = field(default_factory=list)
    """The first and the last."""

    def add(self, found: re.Match[str], count: tuple[str, int], line: int) -> None:
        part = bool(found["percent"]) or float(found["value"]) > 1
        self.texts.add(found["value"])
        self.value = float(found["value"]) / (100 if part else 1)
        self.low, self.high = min(self.low, self.value), max(self.high, self.value)
        self.fine = self.fine and len(found["decimals"]) >= DECIMALS - 2 * part
        self.epochs = self.epochs and count[0].startswith("epoch")
        self.lines = [*self.lines[:1], line]
        if not self.counts or self.counts[-1] != count[1]:
            self.counts.append(count[1])

    def stands(self, share: float = 1.0) -> bool:
        """Whether it has not moved for long enough, or for so much of that."""
        enough = share * (LEAST_EPOCHS if self.epochs else LEAST_STEPS)
        rising = all(b > a for a, b in zip(self.counts, self.counts[1:], strict=False))
        still = len(self.texts) == 1 and 0 < self.value < 1
        return still and self.fine and rising and len(self.counts) >= enough

    @property
    def chance(self) -> int | None:
        """Of how many classes one is as likely as this."""
        return next((k for k in CHANCES if abs(self.value * k - 1) <= NEAR), None)

    @property
    def of_few_cases(self) -> bool:
        half = 0.5 * 10 ** -(len(next(iter(self.texts)).partition(".")[2]) + 2 * (self.value < 1))
        return any(abs(round(self.value * n) / n - self.value) <= half
                   for n in range(1, FEW_CASES + 1))  # fmt: skip

    def about(self, classes: int) -> bool:
        """Whether it never left what chance gives by much."""
        return max(abs(classes * self.low - 1), abs(classes * self.high - 1)) <= ABOUT


@dataclass(frozen=True, slots=True)
class Standing:
    """An accuracy that did not move; `chance` is of how many classes, None where two stand still
    elsewhere. `cites` show it, and the loss where that says the same."""

    name: str
    value: str
    chance: int | None
    count: int
    unit: str
    held_out: bool
    cites: tuple[LogCite, ...]
    loss: float | None = None
    """What the loss had come to, where it is the logarithm of as many cases."""
    best: float | None = None
    """What it had been, where it was better."""


def both_at_chance(facts: Facts) -> Standing | None:
    """An accuracy that stands at chance beside a loss that has come to the logarithm of as many
    cases; None where one of them shows anything else, or an accuracy moved from there."""
    track = facts.main_track(facts.last.n)
    if track is None or not track.falling:
        return None
    own = [i for i in track.of_attempt(facts.last.n) if track.has_loss[i]]
    tail = own[len(own) // 2 :]
    losses = [track.loss[i] for i in tail]
    if len(tail) < FALLING_POINTS or not all(map(isfinite, losses)):
        return None
    middle = median(losses)
    if not any(abs(middle - log(cases)) <= LEVEL for cases in CHANCES):
        return None  # of most runs, whose logs need not be read for it
    for read in facts.log_files():
        rows = _rows(facts, read) if read.source == track.source else []
        for row in rows:
            cases = row.chance
            if cases is None or not row.stands(0.5) or not all(o.about(cases) for o in rows):
                continue
            level = log(cases)
            if abs(middle - level) > LEVEL or max(abs(n - level) for n in losses) > SCATTER:
                continue
            if min(track.loss[i] for i in own) < level - SCATTER:
                return None  # it had learnt something
            still = _standing(facts, read, row, cases)
            shown = (facts.point(track, i).cite for i in (tail[0], tail[-1]))
            return replace(still, loss=middle, cites=(*still.cites, *shown))
    return None


def standing_still(facts: Facts) -> Standing | None:
    """None where each accuracy moved, was read too seldom, or says nothing by standing still."""
    for read in [one for one in facts.files if one.kind == LOG and one.lines][:MOST_LOGS]:
        rows = _rows(facts, read)
        at_chance = [one for one in rows if one.chance is not None and one.stands()]
        both = [one for one in rows if one.stands(0.5) and not one.of_few_cases]
        moved = [one for one in rows if one.fine and len(one.texts) > 1]
        if moved:
            continue
        if at_chance:
            best = min(at_chance, key=lambda one: bool(_HELD_OUT.match(one.name)))
            return _standing(facts, read, best, best.chance)
        if len({bool(_HELD_OUT.match(one.name)) for one in both}) == 2:
            return _standing(facts, read, both[0], None)
    return None


def fell_to_chance(facts: Facts) -> Standing | None:
    """An accuracy of held-out cases that stands at chance, as all others do about it, though it
    had been better in this run: by a line of it, or by the best that each line repeats. None where
    it stands there from its first epochs on, for the best may then be another run's."""
    for read in [one for one in facts.files if one.kind == LOG and one.lines][:MOST_LOGS]:
        tails, best = _tails(facts, read)
        for name, row in tails.items():
            cases = row.chance
            if cases is None or not _HELD_OUT.match(name) or not row.stands(0.5):
                continue
            high, line = best.get(name, (0.0, 0))
            late = row.counts[0] > (LEAST_EPOCHS if row.epochs else LEAST_STEPS)
            learnt = max(ABOVE * row.value, row.value + ABOVE_BY) <= high <= 1
            if late and learnt and all(other.about(cases) for other in tails.values()):
                still = _standing(facts, read, row, cases)
                cite = LogCite(read.source, line, facts.text(read.source, line), read.place)
                return replace(still, best=high, cites=tuple(dict.fromkeys((cite, *still.cites))))
    return None


def fell_to_nought(facts: Facts) -> Standing | None:
    """A score of held-out cases that is exactly nought in the last evaluations, and had been good:
    the model answers none of them any more."""
    told = [m for m in facts.markers_of("eval") if m.attempt == facts.last.n
            and m.progress.loss is not None and not m.progress.falling
            and "loss" not in m.progress.loss_name]  # fmt: skip
    told = [m for m in told if m.progress.loss_name == told[-1].progress.loss_name]
    tail = len(told) - 1 - max((n for n, m in enumerate(told) if m.progress.loss), default=-1)
    best = max(told, key=lambda m: m.progress.loss or 0.0, default=None)
    if tail < LEAST_EPOCHS // 2 or best is None or (best.progress.loss or 0.0) < GOOD:
        return None
    cites = (best.cite, told[-tail].cite, told[-1].cite)
    return Standing(best.progress.loss_name, "0", None, tail, "last evaluations", held_out=True,
                    cites=cites, best=best.progress.loss)  # fmt: skip


def _tails(facts: Facts, read: FileRead) -> tuple[dict[str, _Row], dict[str, tuple[float, int]]]:
    """Each accuracy of a log since it moved last, if by so much that it matters, and the best it
    was said to be or to have been, with the line of it; nothing where rewards are told of."""
    rows: dict[str, _Row] = {}
    best: dict[str, tuple[float, int]] = {}
    count: tuple[str, int] | None = None
    for line, text in _lines(facts, read):
        if _REWARDED.search(text) or _ADVERSARIAL.search(text):
            return {}, {}
        if counted := _COUNTED.search(text):
            count = counted["what"].lower(), int(counted["n"])
        for found in _NAMED.finditer(text) if count is not None else ():
            name = " ".join(re.split(r"[ _./-]+", found["name"].lower()))
            value = float(found["value"])
            value /= 100 if found["percent"] or value > 1 else 1
            if value > best.get(name, (0.0, 0))[0]:
                best[name] = value, line
            if count is None or _BEST.search(text[: found.start()]):
                continue
            if name in rows and found["value"] not in rows[name].texts:
                held = _HELD_OUT.match(name) or abs(value - rows[name].value) > NEAR
                rows[name] = _Row(name) if held else rows[name]
            rows.setdefault(name, _Row(name)).add(found, count, line)
    return rows, best


def _standing(facts: Facts, read: FileRead, row: _Row, chance: int | None) -> Standing:
    return Standing(
        name=row.name,
        value=next(iter(row.texts)),
        chance=chance,
        count=len(row.counts),
        unit="epochs" if row.epochs else "evaluations",
        held_out=bool(_HELD_OUT.match(row.name)),
        cites=tuple(LogCite(read.source, line, facts.text(read.source, line), read.place)
                    for line in row.lines),
    )  # fmt: skip


def _rows(facts: Facts, read: FileRead) -> list[_Row]:
    """The accuracies of one log by their names; none where rewards are told of as well."""
    rows: dict[str, _Row] = {}
    count: tuple[str, int] | None = None
    for line, text in _lines(facts, read):
        if _REWARDED.search(text):
            return []
        if counted := _COUNTED.search(text):
            count = counted["what"].lower(), int(counted["n"])
        for found in _NAMED.finditer(text) if count is not None else ():
            if count is not None and not _BEST.search(text[: found.start()]):
                name = " ".join(re.split(r"[ _./-]+", found["name"].lower()))
                rows.setdefault(name, _Row(name)).add(found, count, line)
    return list(rows.values())


def _lines(facts: Facts, read: FileRead) -> Iterator[tuple[int, str]]:
    """The last lines of a log, numbered."""
    first = max(1, read.lines + 2 - LINES)
    while said := facts.lines(read.source, first, CHUNK, LINE_CHARS):
        yield from enumerate(said, first)
        first += len(said)
