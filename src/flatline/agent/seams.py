"""What others may bring beside the run: a shelf of knowledge."""

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
