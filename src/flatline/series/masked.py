"""
A store whose label values stand in it with secrets masked.

Text files are masked as they are read; a database is read in place, so that its values are
spelled anew on their way out, and what is asked for is compared with that spelling: no query can
find out, letter by letter, what a secret is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from flatline.model import Gap
from flatline.redact import mask_value
from flatline.series.matching import Matcher, accepts
from flatline.series.storage import Labels, Series, Store


class Listing(Store, Protocol):
    """A store that can say what values its labels have."""

    def values(self) -> Mapping[str, frozenset[str]]:
        """Every value a label has anywhere, by the label's name."""
        ...

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What could not be had so far."""
        ...


L = TypeVar("L", bound=Listing)


def masked(store: L) -> L | Masked:
    """The store with its secrets masked; itself where it has none."""
    spelled: dict[str, dict[str, str]] = {}
    for name, values in store.values().items():
        taken: dict[str, int] = {}
        for value in sorted(values):
            new = mask_value(name, value)
            if new == value:
                continue
            taken[new] = taken.get(new, 0) + 1
            if taken[new] > 1:
                new = f"{new}~{taken[new]}"  # two secrets stay two series
            spelled.setdefault(name, {})[value] = new
    return Masked(store, spelled) if spelled else store


class Masked:
    """`spelled` has, for each label with secrets, the masked form of those values."""

    def __init__(self, store: Listing, spelled: Mapping[str, Mapping[str, str]]) -> None:
        self._store = store
        self._spelled = spelled

    def select(self, matchers: Sequence[Matcher], start: float, end: float) -> Series:
        found = self._store.select(self._outside(matchers), start, end)
        labels = tuple(map(self._shown, found.labels))
        tests = self._tests(matchers)
        rows = [row for row, pairs in enumerate(labels) if _satisfies(pairs, tests)]
        shown = Series(labels, found.times, found.values, found.offsets)
        return shown if len(rows) == len(labels) else shown.take(rows)

    def labels(self, matchers: Sequence[Matcher]) -> Sequence[Labels]:
        tests = self._tests(matchers)
        shown = map(self._shown, self._store.labels(self._outside(matchers)))
        return [pairs for pairs in shown if _satisfies(pairs, tests)]

    def names(self) -> Mapping[str, frozenset[str]]:
        return self._store.names()

    @property
    def span(self) -> tuple[float, float] | None:
        """First and last time any sample has; None where there is none."""
        return self._store.span

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return self._store.gaps

    def _outside(self, matchers: Sequence[Matcher]) -> tuple[Matcher, ...]:
        """The matchers of labels that hold no secret: the store itself may judge those."""
        return tuple(matcher for matcher in matchers if matcher.name not in self._spelled)

    def _tests(self, matchers: Sequence[Matcher]) -> list[tuple[str, Matcher]]:
        return [(m.name, m) for m in matchers if m.name in self._spelled]

    def _shown(self, labels: Labels) -> Labels:
        return tuple(
            (name, self._spelled[name].get(value, value) if name in self._spelled else value)
            for name, value in labels
        )


def _satisfies(labels: Labels, tests: Sequence[tuple[str, Matcher]]) -> bool:
    of = dict(labels) if tests else {}
    return all(accepts(matcher)(of.get(name, "")) for name, matcher in tests)
