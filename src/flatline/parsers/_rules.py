"""
Formats as tables: a line's head says what it is, its fields are looked for behind it.

A `Rule` is one kind of line.  Named groups of its head and the groups of its fields carry what
is said: `step` and `planned` count the whole run; `n`, `of`, `epoch` and `epochs` a place inside
an epoch, from which step and plan follow by the rule's `zero`, the number its framework gives the
first epoch; `loss`, `norm`, `lr`, `s`, `ms`, `data` (seconds of `s` spent waiting for data),
`speed` and `per_s` (steps a second) are numbers.

Numbers may carry thousands commas and a suffix K, M, G or B.  NaN and inf are values; what is no
number is not said.  A rule of kind None refuses the line for its format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from flatline.model import Progress, ProgressKind

NUMBER = r"[-+]?(?:[0-9][0-9,]*(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,3})?|nan|inf|NaN|Infinity)"
LONGEST = 4_096
"""Characters of a line that are read."""
_SUFFIX = {"K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9}
_LONGEST_COUNT = 15


def number(text: str | None) -> float | None:
    """The number a text is, None where it is none."""
    if not text:
        return None
    factor = _SUFFIX.get(text[-1])
    if factor is not None:
        text = text[:-1]
    try:
        value = float(text.replace(",", "") if "," in text else text)
    except ValueError:
        return None
    return value if factor is None else value * factor


def count(text: str | None) -> int | None:
    """The whole number a text is, None where it is none or longer than any count."""
    if not text or len(text) > _LONGEST_COUNT:
        return None
    text = text.replace(",", "")
    return int(text) if text.isdecimal() else None


class Late:
    """A pattern that is compiled when it is first used: most runs print one format."""

    __slots__ = ("_found", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: re.Pattern[str] | None = None

    def pattern(self) -> re.Pattern[str]:
        if self._found is None:
            self._found = re.compile(self._text)
        return self._found

    def search(self, text: str) -> re.Match[str] | None:
        return self.pattern().search(text)

    def match(self, text: str) -> re.Match[str] | None:
        return self.pattern().match(text)


_SYNCED = re.compile(
    r"(?<![\w-])sync(?:_time|_wait|_s|hronize)?[=: ]{1,3}([0-9]{1,6}\.[0-9]{1,9})(?! ?ms)(?![\w.])"
)
"""Seconds of a step in which a rank waits for the others, beside its other parts."""
_WAITED = Late(
    r"(?<![\w/])(?:data|data[ _]?time|data[ _]?load(?:ing|er)?(?:[ _]time)?)\s{0,3}"
    rf"(?:[:=]\s{{0,3}})?({NUMBER}) ?s(?:ec)?(?![\w/%])"
)
"""What programs add to the lines of a framework: seconds waited for data, with their unit."""
Fields = tuple[tuple[str, str], ...]


def fields(**named: str) -> Fields:
    """Patterns by name; `#` in one stands for a number, which is its group."""
    return tuple(named.items())


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of line of a format, in texts: they are compiled when a line of it is met."""

    kind: ProgressKind | None
    head: str
    zero: int
    unit: str | None
    loss_name: str
    says: Fields
    falling: bool = True


def rule(
    kind: ProgressKind | None,
    head: str,
    *,
    zero: int = 0,
    unit: str | None = None,
    loss_name: str = "loss",
    says: Fields = (),
    falling: bool = True,
) -> Rule:
    """A rule; `<#>` in its head stands for a number."""
    return Rule(kind, head, zero, unit, loss_name, says, falling)


Compiled = tuple[tuple[Rule, re.Pattern[str], tuple[tuple[str, re.Pattern[str]], ...]], ...]


@cache
def _compiled(rules: tuple[Rule, ...]) -> Compiled:
    """Once for all streams of a format."""
    return tuple(
        (
            one,
            re.compile(one.head.replace("<#>", NUMBER)),
            tuple((name, re.compile(text.replace("#", f"({NUMBER})"))) for name, text in one.says),
        )
        for one in rules
    )


class RuleReader:
    """Reads lines by a table of rules, the first whose head is found; no other state."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = _compiled(rules)

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        text = text[:LONGEST]
        for one, pattern, says in self._rules:
            head = pattern.search(text)
            if head is not None:
                return () if one.kind is None else (_read(one, head, says, text),)
        return ()


class EpochReader(RuleReader):
    """Rules whose step counts within an epoch of unknown length: it is counted on over the epochs
    that were read, from the last count of each and the distance between two."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        super().__init__(rules)
        self._epoch: float | None = None
        self._base = self._n = 0
        self._stride = 1

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        return tuple(self._counted(said) for said in super().feed(text))

    def _counted(self, said: Progress) -> Progress:
        if said.kind != "train" or said.step is None or said.epoch is None:
            return said
        if self._epoch is not None and said.epoch < self._epoch:
            self._base = 0  # begun again
        elif self._epoch is not None and said.epoch > self._epoch and said.step < self._n:
            self._base += self._n + self._stride
        elif said.epoch == self._epoch and said.step > self._n:
            self._stride = said.step - self._n
        self._epoch, self._n = said.epoch, said.step
        return replace(said, step=self._base + said.step)


def _read(
    one: Rule, head: re.Match[str], says: Iterable[tuple[str, re.Pattern[str]]], text: str
) -> Progress:
    """What a line says whose head was found."""
    said: dict[str, str | None] = head.groupdict()
    for name, pattern in says:
        found = pattern.search(text, head.end())
        if found is not None:
            said[name] = found[1]
    step, planned, per_epoch = _position(one, said)
    step_s = number(said.get("s"))
    if step_s is None and (ms := number(said.get("ms"))) is not None:
        step_s = ms / 1e3
    if step_s is None and (rate := number(said.get("per_s"))):
        step_s = 1 / rate
    if one.kind == "train" and "data" not in said and "data" in text:
        waited = _WAITED.search(text)
        said["data"] = None if waited is None else waited[1]
    synced = _SYNCED.search(text, head.end()) if one.kind == "train" and "sync" in text else None
    speed = number(said.get("speed"))
    return Progress(
        one.kind or "train",
        step=step,
        planned=planned,
        epoch=number(said.get("epoch")),
        loss=number(said.get("loss")),
        loss_name=one.loss_name,
        falling=one.falling,
        grad_norm=number(said.get("norm")),
        lr=number(said.get("lr")),
        step_s=step_s,
        throughput=speed,
        throughput_unit=one.unit if speed is not None else None,
        epochs=number(said.get("epochs")),
        per_epoch=per_epoch,
        data_s=number(said.get("data")),
        sync_s=None if synced is None else number(synced[1]),
    )


def _position(
    one: Rule, said: Mapping[str, str | None]
) -> tuple[int | None, int | None, int | None]:
    """(step, planned steps, steps of an epoch)."""
    step, planned = count(said.get("step")), count(said.get("planned"))
    n, of, epoch = count(said.get("n")), count(said.get("of")), count(said.get("epoch"))
    if of is None:
        return step, planned, None
    epochs = count(said.get("epochs"))
    if planned is None and epochs is not None:
        planned = epochs * of
    if step is None and n is not None and epoch is not None and epoch >= one.zero:
        step = (epoch - one.zero) * of + n
    return step, planned, of
