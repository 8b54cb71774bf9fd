"""The knowledge base as the investigator's tools ask it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flatline.agent.seams import Passage, Shelf
from flatline.errors import FlatlineError
from flatline.knowledge.index import Index

LEAST_SHARE = 0.4
"""Of the weight of the words that were asked with: below it a record fits by chance."""


@dataclass(frozen=True)
class Records:
    """Incident records by BM25, the shipped ones and the site's own."""

    index: Index

    def search(self, words: str, most: int) -> Sequence[Passage]:
        return [
            Passage(
                id=hit.incident.id,
                title=hit.incident.problem,
                text=f"Cause: {hit.incident.cause} Fix: {hit.incident.fix}",
                source=hit.incident.source,
                families=tuple(hit.incident.families),
            )
            for hit in self.index.search(words, None, most)
            if hit.share >= LEAST_SHARE
        ]


def shelf() -> Shelf | None:
    """None where the records of the site cannot be read."""
    from flatline.knowledge.site import folder, index

    try:
        found, _ = index(folder())
    except (FlatlineError, OSError):
        return None
    return Records(found)
