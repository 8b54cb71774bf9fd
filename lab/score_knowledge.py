"""
How often the search finds the record that settles a problem: recall at 1 and 5, by kind of query.

    python lab/score_knowledge.py [--misses] [--threshold] [--weights problem=3,lines=3] [--test]

The queries are `lab/knowledge_queries*.toml`.  They were looked at while the search was made, in
part: it was tuned on the half whose record's name has an even digest, so the halves are given
apart as well.  `--misses` lists the queries whose record is not among the first five, with what
stood first; `--threshold` says what other thresholds would set beside a verdict; `--weights` tries
other weights of the fields; `--test` asks with `lab/knowledge_test.toml` instead, which was kept
apart while the search and the records were changed.
"""

from __future__ import annotations

import argparse
import hashlib
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from flatline.knowledge import index as searching
from flatline.knowledge.incident import load
from flatline.knowledge.index import Index
from flatline.knowledge.related import fitting

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


TUNED, KEPT_APART = "knowledge_queries*.toml", "knowledge_test.toml"


def queries(files: str = TUNED) -> list[Query]:
    """All of the lab's files of that name, in the order of files and tables."""
    made = []
    for file in sorted(FOLDER.glob(files)):
        made += [Query(**table) for table in tomllib.loads(file.read_text("utf-8"))["query"]]
    return made


def scored(index: Index, asked: list[Query]) -> list[Scored]:
    """Each query with the rank of its record among all records."""
    made = []
    for query in asked:
        ids = [hit.incident.id for hit in index.search(query.text, limit=len(index.incidents))]
        rank = ids.index(query.record) + 1 if query.record in ids else None
        made.append(Scored(query, rank, ids[0] if ids else None))
    return made


def tuned_on(query: Query) -> bool:
    """Whether the query is of the half that was looked at while the search was tuned."""
    return int(hashlib.sha256(query.record.encode()).hexdigest(), 16) % 2 == 0


def thresholds(index: Index, asked: list[Query]) -> None:
    """What is set beside a verdict, as if each query were its lines: how often the right record,
    and how often another where the right one is taken out of the index."""
    families = {incident.id: incident.families[0] for incident in index.incidents}
    print("share  weight  right shown  another shown without it  right of those shown")
    for share in (0.4, 0.5, 0.6, 0.7):
        for weight in (0.0, 8.0, 12.0, 16.0):
            right = shown = wrong = 0
            for query in asked:
                at = (query.text, families[query.record], share, weight)
                ids = [hit.incident.id for hit in fitting(index, *at)]
                right, shown = right + (query.record in ids), shown + bool(ids)
                wrong += bool(fitting(index, *at, without=query.record))
            n = len(asked)
            print(f"{share:<6} {weight:<7} {right / n:<12.0%} {wrong / n:<25.0%} "
                  f"{right / max(shown, 1):.0%} of {shown}")  # fmt: skip


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
    parser.add_argument("--threshold", action="store_true")
    parser.add_argument("--weights")
    parser.add_argument("--test", action="store_true")
    options = parser.parse_args()
    _weights(options.weights)
    index = Index(load())
    results = scored(index, queries(KEPT_APART if options.test else TUNED))
    by_kind: dict[str, list[Scored]] = defaultdict(list)
    for result in results:
        by_kind[result.query.kind].append(result)
    asked = {result.query.record for result in results}
    print(f"{len(index.incidents)} records, {len(results)} queries about {len(asked)} of them")
    print(f"{'kind':<36} {'n':>4} {'recall@1':>9} {'recall@5':>9}")
    parts = [(name, by_kind.get(kind, [])) for kind, name in KINDS.items()]
    parts += [
        ("the half that was tuned on", [r for r in results if tuned_on(r.query)]),
        ("the other half", [r for r in results if not tuned_on(r.query)]),
        ("all", results),
    ]
    for name, part in parts:
        if part:
            print(f"{name:<36} {len(part):>4} {recall(part, 1):>9.1%} {recall(part, FIRST):>9.1%}")
    if options.threshold:
        thresholds(index, [result.query for result in results])
    if options.misses:
        for result in results:
            if result.rank is None or result.rank > FIRST:
                print(f"\n{result.query.record} (rank {result.rank}, first {result.first})")
                print(f"  {result.query.text}")


if __name__ == "__main__":
    main()
