"""
The search for the record that fits: BM25 over weighted fields (`bm25s`), outcomes, embeddings.

A field's weight is how often its tokens are counted, as BM25F does for one set of parameters
(Robertson, Zaragoza and Taylor, CIKM 2004).  A hit carries two numbers: `score` orders the hits of
one query, `share` is comparable between queries, and thresholds stand on it: of what the words of
the query weigh together, the share that the record holds.

An `Embedder` is a plug-in (an entry point of the group `flatline.embedders`); none is shipped.
Its order and that of BM25 are merged by reciprocal ranks.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from flatline import signatures
from flatline.errors import UsageError
from flatline.knowledge.incident import Incident
from flatline.knowledge.outcome import Outcome
from flatline.knowledge.tokens import asked, tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

WEIGHTS = {"problem": 3, "lines": 3, "symptom": 2, "environment": 1, "cause": 1, "fix": 1,
           "id": 1, "function": 1}  # fmt: skip
"""lab/score_knowledge.py compares others; docs/design/knowledge.md has the numbers."""
K1, B = 1.2, 0.6
PRIOR = 10
"""Outcomes that a record is taken to have had before the first at this site, half of them good."""
RANK_CONSTANT = 60
"""Of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""
GROUP = "flatline.embedders"


class Embedder(Protocol):
    """Turns texts into vectors whose inner product is their likeness."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[texts x dimensions], rows of length 1."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A record, its `score` among the hits of this query, the `weight` of the words of the query
    that it holds, and the `share` (0..1) of the query's whole weight that this is."""

    incident: Incident
    score: float
    share: float
    weight: float
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Words:
    """The tokens of a record: its own, each as often as its field weighs, and those of what the
    catalogue says of its signatures."""

    own: list[str]
    signs: list[str]


@dataclass(frozen=True)
class Index:
    """Records that can be searched. Built when it is first asked, in some tens of ms."""

    incidents: tuple[Incident, ...]
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    embedder: Embedder | None = None
    prepared: tuple[Words, ...] = ()
    """Of the first of the records, where their words are known already (`kept`)."""

    def search(self, text: str, family: str | None = None, limit: int = 5) -> list[Hit]:
        """The records that fit best, those with no word of the query never among them."""
        words = [word for word in asked(text) if word in self._weight]
        allowed = [
            n for n, i in enumerate(self.incidents) if family is None or family in i.families
        ]
        if not words or not allowed:
            return []
        scores = np.asarray(self._engine.get_scores(words), dtype=np.float64)
        for n in allowed:
            scores[n] *= self._trust(self.incidents[n].id)
        order = self._merged(
            [n for n in np.argsort(-scores, kind="stable") if scores[n] > 0], text
        )
        kept = set(allowed)
        asked_weight = sum(self._weight[word] for word in words)
        hits = []
        for n in [n for n in order if n in kept][:limit]:
            weight = sum(self._weight[word] for word in words if word in self._tokens[n])
            hits.append(
                Hit(
                    self.incidents[n],
                    round(float(scores[n]), 3),
                    round(weight / asked_weight, 3),
                    round(weight, 2),
                    self._outcome(self.incidents[n].id),
                )
            )
        return hits

    def _merged(self, order: Sequence[Any], text: str) -> list[int]:
        ranked = [int(n) for n in order]
        if self.embedder is None:
            return ranked
        likeness = self._vectors @ self.embedder.embed([text])[0]
        merged: dict[int, float] = {}
        for ranking in (ranked, [int(n) for n in np.argsort(-likeness, kind="stable")]):
            for rank, n in enumerate(ranking):
                merged[n] = merged.get(n, 0.0) + 1.0 / (RANK_CONSTANT + rank)
        return sorted(merged, key=lambda n: (-merged[n], n))

    def _outcome(self, name: str) -> Outcome:
        return self.outcomes.get(name, Outcome())

    def _trust(self, name: str) -> float:
        outcome = self._outcome(name)
        return (PRIOR + outcome.confirmed) / (PRIOR + outcome.wrong)

    @cached_property
    def _words(self) -> list[Words]:
        return [*self.prepared, *map(words_of, self.incidents[len(self.prepared) :])]

    @cached_property
    def _tokens(self) -> list[frozenset[str]]:
        """A record's own words, without its signatures': those fit every run that has the line."""
        return [frozenset(words.own) for words in self._words]

    @cached_property
    def _weight(self) -> dict[str, float]:
        """The inverse document frequency of every token (Lucene's form, never negative)."""
        counts: dict[str, int] = {}
        for held in (frozenset((*words.own, *words.signs)) for words in self._words):
            for token in held:
                counts[token] = counts.get(token, 0) + 1
        n = len(self.incidents)
        return {t: float(np.log1p((n - c + 0.5) / (c + 0.5))) for t, c in counts.items()}

    @cached_property
    def _engine(self) -> Any:
        import bm25s

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it speaks of every index at DEBUG
        made = bm25s.BM25(k1=K1, b=B, method="lucene")
        made.index([[*words.own, *words.signs] for words in self._words], show_progress=False)
        return made

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        assert self.embedder is not None
        return self.embedder.embed([prose(incident) for incident in self.incidents])


def prose(incident: Incident) -> str:
    """What an embedder is given of a record."""
    return " ".join((incident.problem, incident.symptom, *incident.lines, incident.cause))


def words_of(incident: Incident) -> Words:
    """The tokens of a record."""
    own: list[str] = []
    for name, weight in WEIGHTS.items():
        value = getattr(incident, name)
        text = value.replace("-", " ") if name == "id" else value
        own += tokens(text if isinstance(text, str) else " \n ".join(text)) * weight
    return Words(own, [word for name in incident.signatures for word in _of_signature(name)])


@cache
def _of_signature(name: str) -> tuple[str, ...]:
    """The words of what the catalogue says of a signature: whole lines, as programs print them,
    are what a record's own shapes are too short for."""
    known = next((s for s in signatures.load() if s.id == name), None)
    if known is None:
        return ()
    said = (known.meaning, known.not_proof, known.action or "", *known.samples)
    return tuple(tokens(" \n ".join(said)))


def embedder_named(name: str) -> Embedder:
    """The plug-in of that name. Raises `UsageError` where none is installed."""
    from importlib.metadata import entry_points

    found = {point.name: point for point in entry_points(group=GROUP)}
    if name not in found:
        known = f"; there are {', '.join(sorted(found))}" if found else ""
        raise UsageError(
            f"no embedder is called {name!r}{known}: Flatline ships none, a package offers one as "
            f"an entry point of the group {GROUP}"
        )
    made: Embedder = found[name].load()()
    return made
