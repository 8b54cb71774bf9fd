"""A database on disk as one store: its blocks, and what was not yet in one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import ceil, floor
from pathlib import Path

from flatline.errors import FormatError
from flatline.model import Gap
from flatline.series.matching import Matcher
from flatline.series.storage import NAME, Labels, Series
from flatline.series.tsdb.block import Block, is_block
from flatline.series.tsdb.files import listed
from flatline.series.tsdb.head import Head
from flatline.series.tsdb.pieces import Damage, Selection

REMEMBERED = 16_000_000
"""Samples of selections that are remembered: a family asks the same series several times."""


class Database:
    """
    A folder that Prometheus, or what shares its format, writes; or one block of it.

    Read-only: nothing is written or locked, and where the system allows it access times stay.
    What is damaged or not read stands in `gaps`, which asking can add to.
    """

    def __init__(self, folder: Path, source: str) -> None:
        self._source = source
        self._damage = Damage()
        self._blocks: list[Block] = []
        names = [""] if is_block(folder) else listed(folder)
        for name in names:
            if "." in name or not is_block(folder / name):
                continue  # one that is being written or deleted has a suffix
            try:
                self._blocks.append(Block(folder / name, self._damage))
            except (FormatError, OSError) as fault:
                reason = getattr(fault, "strerror", None) or str(fault)
                self._damage.add(f"a block cannot be read: {reason}", name)
        self._blocks.sort(key=lambda block: block.span)
        self._head = Head(folder, self._damage)
        self._selected: dict[tuple[tuple[Matcher, ...], int, int], Series] = {}
        self._remembered = 0

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return self._damage.gaps(self._source)

    def select(self, matchers: Sequence[Matcher], start: float, end: float) -> Series:
        """Samples of the series that satisfy every matcher, within start..end."""
        first = max(floor(start * 1000), -(1 << 61))
        last = min(ceil(end * 1000), 1 << 61)
        key = (tuple(matchers), first, last)
        if key not in self._selected:
            found = self._select(matchers, first, last)
            self._remembered += found.times.size
            if self._remembered > REMEMBERED:
                self._selected.clear()
                self._remembered = found.times.size
            self._selected[key] = found
        return self._selected[key]

    def _select(self, matchers: Sequence[Matcher], first: int, last: int) -> Series:
        into = Selection((first, last), self._damage)
        for block in self._blocks:
            if block.span[0] <= last and block.span[1] >= first:
                try:
                    block.select(matchers, into)
                except (FormatError, OSError) as fault:
                    self._unread(block, fault)
        self._head.select(matchers, into)
        return into.series()

    def labels(self, matchers: Sequence[Matcher]) -> Sequence[Labels]:
        found: dict[Labels, None] = {}
        for block in self._blocks:
            try:
                found.update(dict.fromkeys(block.labels(matchers)))
            except (FormatError, OSError) as fault:
                self._unread(block, fault)
        found.update(dict.fromkeys(self._head.labels(matchers)))
        return sorted(found)

    def names(self) -> Mapping[str, frozenset[str]]:
        """Metrics; the label names of one are looked up when they are asked for."""
        return _Names(self)

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        found: set[str] = set(self._head.names())
        for block in self._blocks:
            try:
                found.update(block.names())
            except (FormatError, OSError) as fault:
                self._unread(block, fault)
        return tuple(sorted(found - {""}))

    def values(self) -> Mapping[str, frozenset[str]]:
        """Every value a label has anywhere, by the label's name."""
        found: dict[str, set[str]] = {}
        for block in self._blocks:
            try:
                for name, table in block.values():
                    found.setdefault(name, set()).update(table)
            except (FormatError, OSError) as fault:
                self._unread(block, fault)
        for labels in self._head.labels(()):
            for name, value in labels:
                found.setdefault(name, set()).add(value)
        return {name: frozenset(values) for name, values in found.items()}

    @cached_property
    def span(self) -> tuple[float, float] | None:
        """First and last time a sample has; the first of a block is where the block begins."""
        firsts, lasts = [], []
        if self._head.span is not None:
            firsts.append(self._head.span[0])
            lasts.append(self._head.span[1])
        for block in self._blocks:
            if lasts and block.span[1] <= max(lasts):
                firsts.append(block.span[0])
                continue
            try:
                lasts.append(block.last_ms)
                firsts.append(block.span[0])
            except (FormatError, OSError) as fault:
                self._unread(block, fault)
        return (min(firsts) / 1000.0, max(lasts) / 1000.0) if firsts and lasts else None

    def _unread(self, block: Block, fault: FormatError | OSError) -> None:
        reason = getattr(fault, "strerror", None) or str(fault)
        self._damage.add(f"a block cannot be read: {reason}", block.name)


class _Names(Mapping[str, frozenset[str]]):
    """Metrics with their label names, found when they are asked for."""

    def __init__(self, store: Database) -> None:
        self._store = store
        self._known = dict.fromkeys(store.metrics)

    def __getitem__(self, metric: str) -> frozenset[str]:
        if metric not in self._known:
            raise KeyError(metric)
        labels = self._store.labels((Matcher(NAME, "=", metric),))
        return frozenset(name for pairs in labels for name, _ in pairs) - {NAME}

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, metric: object) -> bool:
        return metric in self._known
