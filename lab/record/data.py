"""Small made-up data sets: sentences of a tiny grammar, textures with classes."""

from __future__ import annotations

import json
import random
from pathlib import Path

_WHO = ("the miller", "a sailor", "my neighbour", "the old clerk", "a young painter", "the baker")
_DID = ("carried", "sold", "mended", "painted", "counted", "borrowed", "found")
_WHAT = ("seven lanterns", "a grey coat", "the long rope", "two barrels", "a broken clock")
_WHERE = ("by the harbour", "in the attic", "before noon", "near the bridge", "after the rain")


def sentence(rng: random.Random) -> str:
    return f"{rng.choice(_WHO)} {rng.choice(_DID)} {rng.choice(_WHAT)} {rng.choice(_WHERE)}."


def write_records(path: Path, count: int, seed: int = 0) -> list[dict[str, object]]:
    """JSON lines with `id`, `text` and `n` (its length); returns them for editing."""
    rng = random.Random(seed)
    records: list[dict[str, object]] = []
    for i in range(count):
        text = sentence(rng) + " " + sentence(rng)
        records.append({"id": i, "text": text, "n": min(len(text), 64)})
    dump_records(path, records)
    return records


def dump_records(path: Path, records: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in records))


def write_corpus(path: Path, sentences: int, seed: int = 1) -> None:
    rng = random.Random(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(sentence(rng) for _ in range(sentences)) + "\n")


def index_for(rank: int, step: int, world: int, batch: int, place: int = 2) -> int:
    """The record that `rank` reads at `step` (from 1) under DistributedSampler without shuffle."""
    return ((step - 1) * batch + place) * world + rank
