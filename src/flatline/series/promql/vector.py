"""
What an expression is worth: an instant vector or a scalar, at every step of a query at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flatline.errors import QueryRejected
from flatline.series.storage import NAME, Floats, Labels

Bools = NDArray[np.bool_]
METRIC_LABELS = frozenset({NAME, "__type__", "__unit__"})
"""Labels that say which metric a series is of (`schema.IsMetadataLabel` of Prometheus)."""
MAX_CELLS = 12_000_000
"""Most samples an expression may hold at each of its nodes: 8,192 series at 1,440 steps, 96 MB
an array (Prometheus stops at 50 million in all, `--query.max-samples`)."""
SAME_LABELS = "vector cannot contain metrics with the same labelset"


@dataclass(frozen=True, slots=True)
class Vector:
    """Series by steps: `values[i, j]` counts where `present[i, j]`."""

    labels: tuple[Labels, ...]
    values: Floats
    present: Bools

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, keep: Sequence[int]) -> Vector:
        """Some of the series, in the order given."""
        index = np.asarray(keep, dtype=np.int64)
        labels = tuple(self.labels[i] for i in keep)
        return Vector(labels, self.values[index], self.present[index])

    def with_values(self, values: Floats) -> Vector:
        """Other values under the same labels without the metric's name."""
        return Vector(tuple(map(nameless, self.labels)), values, self.present)


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number a step."""

    values: Floats


@dataclass(frozen=True, slots=True)
class String:
    value: str


Value = Vector | Scalar | String


def empty(steps: int) -> Vector:
    """A vector without series."""
    return Vector((), np.empty((0, steps)), np.empty((0, steps), dtype=np.bool_))


def nameless(labels: Labels) -> Labels:
    """Labels without those that say which metric it is."""
    return tuple([pair for pair in labels if pair[0] not in METRIC_LABELS])


def only(labels: Labels, names: Iterable[str]) -> Labels:
    """The labels among these names."""
    wanted = frozenset(names)
    return tuple([pair for pair in labels if pair[0] in wanted])


def without(labels: Labels, names: Iterable[str]) -> Labels:
    """The labels not among these names."""
    unwanted = frozenset(names)
    return tuple([pair for pair in labels if pair[0] not in unwanted])


def settled(vector: Vector) -> Vector:
    """
    A vector whose series differ in labels: those alike are joined.

    Raises QueryRejected where two of them have a sample at the same step, as Prometheus does.
    Series without any sample are dropped.
    """
    groups: dict[Labels, list[int]] = {}
    alive = vector.present.any(axis=1)
    for row in np.flatnonzero(alive).tolist():
        groups.setdefault(vector.labels[row], []).append(row)
    if len(groups) == len(vector):
        return vector
    values = np.empty((len(groups), vector.values.shape[1]))
    present = np.empty(values.shape, dtype=np.bool_)
    for place, rows in enumerate(groups.values()):
        there = vector.present[rows]
        if len(rows) > 1 and (there.sum(axis=0) > 1).any():
            raise QueryRejected(f"{SAME_LABELS}: {shown(vector.labels[rows[0]])}")
        present[place] = there.any(axis=0)
        values[place] = vector.values[rows[0]]
        for row in rows[1:]:
            values[place] = np.where(vector.present[row], vector.values[row], values[place])
    return Vector(tuple(groups), values, present)


def distinct(vector: Vector) -> Vector:
    """The vector, if no two of its series have the same labels at all; QueryRejected if so."""
    if len(set(vector.labels)) < len(vector):
        again = next(labels for labels in vector.labels if vector.labels.count(labels) > 1)
        raise QueryRejected(f"{SAME_LABELS}: {shown(again)}")
    return vector


def shown(labels: Labels) -> str:
    """Labels as text, for messages."""
    return "{" + ", ".join(f'{name}="{value}"' for name, value in labels) + "}"


def spelled(value: float) -> str:
    """The shortest decimal that reads back as the value, never with an exponent."""
    text = repr(value)
    if text.endswith(".0"):
        return text[:-2]
    if "n" in text:  # nan, inf
        return {"nan": "NaN", "inf": "+Inf"}.get(text, "-Inf")
    return np.format_float_positional(value, unique=True, trim="-") if "e" in text else text
