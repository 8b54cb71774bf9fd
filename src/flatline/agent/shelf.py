"""The knowledge base as the investigator's tools ask it, where this Flatline has one."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flatline.agent.seams import Passage, Shelf

LEAST_SHARE = 0.3
"""Of the weight of the words that were asked with: below it a record fits by chance."""


@dataclass(frozen=True)
class Records:
    """Incident records by BM25, the shipped ones and the site's own."""

    index: Any

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
    """None where there is no knowledge base in this installation."""
    try:
        site = importlib.import_module("flatline.knowledge.site")
        found, _ = site.index(site.folder())
    except (ImportError, AttributeError):
        return None
    return Records(found)
