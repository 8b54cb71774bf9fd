"""
Order by value: `topk`, `bottomk`, `sort`, `sort_desc`.

NaN stands behind every number, whichever way.  Of equal values at the edge of a `topk`, those
are kept which Prometheus's heap leaves: where there are such, the heap is run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan

import numpy as np

from flatline.series.promql.vector import Bools, Vector, empty
from flatline.series.storage import Floats, Ints

Before = Callable[[int, int], bool]


def best(
    vector: Vector, members: Sequence[Sequence[int]], wanted: Ints, *, largest: bool, old: bool
) -> Vector:
    """The first `wanted` of each group by value at each step; at one step, in that order."""
    steps = vector.values.shape[1]
    keep = np.zeros(vector.present.shape, dtype=np.bool_)
    order: list[int] = []
    heaps: dict[tuple[bytes, int], list[int]] = {}
    for rows in members:
        index = np.asarray(rows)
        keys = -vector.values[index] if largest else vector.values[index]
        present = vector.present[index]
        ranks = _ranks(keys, present)
        kept = present & (ranks < wanted)
        for step in _tied(keys, present, ranks, wanted).tolist():
            there = np.flatnonzero(present[:, step])
            column = keys[there, step]
            asked = column.tobytes(), int(wanted[step])
            if asked not in heaps:  # what stands still does so for many steps
                heaps[asked] = _heap(column.tolist(), asked[1], old=old)
            kept[:, step] = False
            kept[there[heaps[asked]], step] = True
        keep[index] = kept
        order += index[np.argsort(ranks[:, -1], kind="stable")].tolist()
    if steps > 1:
        order = list(range(len(vector)))
    alive = [row for row in order if keep[row].any()]
    if not alive:
        return empty(steps)
    return Vector(tuple(vector.labels[r] for r in alive), vector.values[alive], keep[alive])


def ordered(vector: Vector, *, descending: bool) -> Vector:
    """A vector of one step in order of value; with more steps, as it is."""
    if vector.values.shape[1] != 1:
        return vector
    keys = -vector.values if descending else vector.values
    ranks = _ranks(keys, vector.present)
    return vector.rows(np.argsort(ranks[:, 0], kind="stable").tolist())


def _ranks(keys: Floats, present: Bools) -> Ints:
    """The place of each sample at its step, least key first, NaN behind, absent last."""
    unknown = np.isnan(keys)
    plain = not unknown.any() and bool(present.all())
    if plain:
        order = np.argsort(keys, axis=0, kind="stable")
    else:
        order = np.lexsort((np.where(unknown, 0.0, keys), unknown, ~present), axis=0)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(keys.shape[0])[:, None], axis=0)
    return ranks


def _tied(keys: Floats, present: Bools, ranks: Ints, wanted: Ints) -> Ints:
    """The steps at which the last sample kept has the value of the first that is not."""
    size = len(keys)
    edge = (wanted > 0) & (wanted < size)
    if not edge.any():
        return np.empty(0, dtype=np.int64)
    last = np.where(edge, wanted - 1, 0)
    by_rank = np.argsort(ranks, axis=0)
    inside = np.take_along_axis(by_rank, last[None, :], axis=0)
    outside = np.take_along_axis(by_rank, np.minimum(last + 1, size - 1)[None, :], axis=0)
    a = np.take_along_axis(keys, inside, axis=0)[0]
    b = np.take_along_axis(keys, outside, axis=0)[0]
    both = np.take_along_axis(present, outside, axis=0)[0]
    return np.flatnonzero(edge & both & ((a == b) | (np.isnan(a) & np.isnan(b))))


def _heap(keys: list[float], size: int, *, old: bool) -> list[int]:
    """
    Which of some keys a heap of the least `size` holds after all have passed through it in turn.

    Its root is the greatest.  A lesser key takes the root's place and sinks; in Prometheus 2 the
    root left, and the new key rose from the end.
    """
    heap: list[int] = []

    def before(a: int, b: int) -> bool:
        return isnan(keys[a]) or keys[a] > keys[b]

    for item, key in enumerate(keys):
        if len(heap) < size:
            heap.append(item)
            _rise(heap, before)
            continue
        root = keys[heap[0]]
        replaces = root > key or (isnan(root) and (old or not isnan(key)))
        if not replaces:
            continue
        if old and size > 1:
            heap[0], heap[-1] = heap[-1], heap[0]
            heap.pop()
            _sink(heap, before)
            heap.append(item)
            _rise(heap, before)
        else:
            heap[0] = item
            _sink(heap, before)
    return heap


def _rise(heap: list[int], before: Before) -> None:
    """The last item up to where its parent stands before it (`container/heap`)."""
    child = len(heap) - 1
    while child > 0:
        parent = (child - 1) // 2
        if not before(heap[child], heap[parent]):
            break
        heap[child], heap[parent] = heap[parent], heap[child]
        child = parent


def _sink(heap: list[int], before: Before) -> None:
    """The first item down to where it stands before its children."""
    at = 0
    while (child := 2 * at + 1) < len(heap):
        if child + 1 < len(heap) and before(heap[child + 1], heap[child]):
            child += 1
        if not before(heap[child], heap[at]):
            break
        heap[at], heap[child] = heap[child], heap[at]
        at = child
