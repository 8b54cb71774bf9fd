"""What others may bring: a shelf of knowledge, and a comparison with a sound run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Passage:
    """What was learnt elsewhere of a like failure: never evidence of this run."""

    id: str
    title: str
    text: str
    source: str
    families: tuple[str, ...] = ()


class Shelf(Protocol):
    """Retrieval over incident records, runbooks, pages."""

    def search(self, words: str, most: int) -> Sequence[Passage]:
        """The passages that fit best, the best first; none where none fits."""


class Comparison(Protocol):
    """Differences against a baseline: configuration, then signals."""

    def rows(self) -> Sequence[str]:
        """One difference each, the largest first; none where the runs are alike."""
