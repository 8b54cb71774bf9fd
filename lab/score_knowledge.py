"""
How often the search finds the record that settles a problem: recall at 1 and 5, by kind of query.

    python lab/score_knowledge.py [--misses] [--weights problem=3,lines=3]

The queries are `lab/knowledge_queries*.toml`.  `--misses` lists those whose record is not among
the first five, with what stood first; `--weights` tries other weights of the fields.
"""

from __future__ import annotations

import argparse
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from flatline.knowledge import index as searching
from flatline.knowledge.incident import load
from flatline.knowledge.index import Index

FOLDER = Path(__file__).parent
KINDS = {
    "report": "from another public report",
    "paraphrase": "told anew by the record's author",
}
FIRST = 5


@dataclass(frozen=True, slots=True)
class Query:
    record: str
    kind: str
    text: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """`rank` counts from 1; None where the record is not found at all."""

    query: Query
    rank: int | None
    first: str | None
    share: float
    """What the right record holds of the query's weight; 0 where it is not found."""
    rival: float
    """The same of the best wrong record of the right one's families; 0 where there is none."""


def queries() -> list[Query]:
    """All of the lab's, in the order of files and tables."""
    made = []
    for file in sorted(FOLDER.glob("knowledge_queries*.toml")):
        made += [Query(**table) for table in tomllib.loads(file.read_text("utf-8"))["query"]]
    return made


def scored(index: Index, asked: list[Query]) -> list[Scored]:
    """Each query with the rank of its record among all records."""
    families = {incident.id: incident.families for incident in index.incidents}
    made = []
    for query in asked:
        hits = index.search(query.text, limit=len(index.incidents))
        ids = [hit.incident.id for hit in hits]
        rank = ids.index(query.record) + 1 if query.record in ids else None
        rivals = [
            hit.share
            for hit in hits
            if hit.incident.id != query.record
            and set(hit.incident.families) & set(families[query.record])
        ]
        share = hits[rank - 1].share if rank else 0.0
        made.append(Scored(query, rank, ids[0] if ids else None, share, max(rivals, default=0.0)))
    return made


def recall(results: list[Scored], first: int) -> float:
    """The share of queries (0..1) whose record stands among the first."""
    return sum(1 for r in results if r.rank is not None and r.rank <= first) / len(results)


def _weights(said: str | None) -> None:
    for part in (said or "").split(","):
        if part:
            name, _, value = part.partition("=")
            searching.WEIGHTS[name] = int(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--weights")
    options = parser.parse_args()
    _weights(options.weights)
    index = Index(load())
    results = scored(index, queries())
    by_kind: dict[str, list[Scored]] = defaultdict(list)
    for result in results:
        by_kind[result.query.kind].append(result)
    asked = {result.query.record for result in results}
    print(f"{len(index.incidents)} records, {len(results)} queries about {len(asked)} of them")
    print(f"{'kind':<36} {'n':>4} {'recall@1':>9} {'recall@5':>9}")
    for kind, name in KINDS.items():
        if held := by_kind.get(kind):
            print(f"{name:<36} {len(held):>4} {recall(held, 1):>9.1%} {recall(held, FIRST):>9.1%}")
    print(
        f"{'all':<36} {len(results):>4} {recall(results, 1):>9.1%} {recall(results, FIRST):>9.1%}"
    )
    if options.misses:
        for result in results:
            if result.rank is None or result.rank > FIRST:
                print(f"\n{result.query.record} (rank {result.rank}, first {result.first})")
                print(f"  {result.query.text}")


if __name__ == "__main__":
    main()
