"""The nouns of claims: what is claimed, what a check found, what was struck, what was ruled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from flatline.errors import UsageError
from flatline.model import NOWHERE, Place, Scalar

Evidence = Mapping[str, Any]
"""One piece of evidence as the JSON document of a verdict has it (`evidence[]`)."""
Known = Mapping[str, Evidence]
"""Evidence by its id: the verdict's own, and what tools returned since."""
Window = tuple[datetime, datetime]
Comparator = Literal[
    "=", "!=", "<", "<=", ">", ">=", "approx", "contains", "absent", "first", "last", "before",
    "after",
]  # fmt: skip
COMPARATORS: tuple[Comparator, ...] = get_args(Comparator)
LARGEST_TOLERANCE_RATIO = 0.2
"""About as much as `approx` may be off: beyond it the words mean nothing any more."""


@dataclass(frozen=True, slots=True)
class Claim:
    """
    One thing that is said of one piece of evidence.

    evidence    its id
    quantity    what is measured: a canonical signal (`gpu_power_watts`), PromQL or the native
                metric; of a log line "line" (its text), "line number", or the name of a number it
                prints ("step", "loss", "exit code"); of a record its field ("State"); of an
                absence "line" or "count of lines"; of anything placed "host", "rank", "task",
                "gpu", "device"; of anything dated "time"
    comparator  `approx` wants `tolerance_ratio`; `contains` and `absent` speak of text; `first`
                and `last` say that the cited line is the first (last) of its file with the text
                `value`, or that a query's first (last) value in the window is `value`; `before`
                and `after` compare times, with an instant or with another piece of evidence
    value       a number, a text, an instant in ISO 8601 with its zone, or an evidence id
    unit        as written: "W", "mW", "%", "GiB", "ms"; None where the quantity has none
    place       only the parts that are claimed
    window      (start, end), aware: for a query what it was asked over, else when it happened

    Raises `UsageError` where it cannot mean anything.
    """

    evidence: str
    quantity: str
    comparator: Comparator
    value: Scalar
    unit: str | None = None
    place: Place = NOWHERE
    window: Window | None = None
    tolerance_ratio: float | None = None

    def __post_init__(self) -> None:
        if self.comparator not in COMPARATORS:
            raise UsageError(f"{self.comparator!r} compares nothing; use {', '.join(COMPARATORS)}")
        if not self.evidence or not self.quantity:
            raise UsageError("a claim names its evidence and its quantity")
        if (self.comparator == "approx") != (self.tolerance_ratio is not None):
            raise UsageError("approx, and nothing else, goes with a tolerance_ratio")
        most = LARGEST_TOLERANCE_RATIO
        if self.tolerance_ratio is not None and not 0.0 < self.tolerance_ratio <= most:
            raise UsageError(f"tolerance_ratio {self.tolerance_ratio} is not in (0, {most}]")
        if self.window is not None and any(at.tzinfo is None for at in self.window):
            raise UsageError("the window's times need a zone, as in 2026-03-01T04:00:00Z")


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether a claim holds, why or why not, and what the evidence gives now."""

    claim: Claim
    holds: bool
    reason: str
    measured: Scalar = None
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Struck:
    """A sentence that was taken out, and the word in it that stands in no cited evidence."""

    sentence: str
    token: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ruling:
    """
    What stands after an answer was weighed against the verdict.

    `code` is the family that stands, None where none does; `overturned` whether that is the
    answer's and not the verdict's.
    """

    code: str | None
    family: str | None
    overturned: bool
    reason: str
