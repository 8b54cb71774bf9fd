"""What a check may ask: the readers, masks and engine that `verify` uses, over the same target."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol, Self

from flatline.claims.model import Evidence, Known, Window
from flatline.model import Scalar
from flatline.verify import Check


class Ask(Protocol):
    """Executes evidence again. Each raises `FlatlineError` where it cannot."""

    def holds(self, item: Evidence, known: Known) -> Check:
        """Whether a piece of evidence says today what it said."""

    def line(self, source: str, number: int) -> str:
        """The whole line, masked."""

    def time(self, item: Evidence) -> datetime | None:
        """The instant the line itself prints, None where it prints none."""

    def numbers_of(self, source: str, text: str) -> tuple[int, ...]:
        """Numbers of all lines of a file that hold a text."""

    def field(self, source: str, pointer: str) -> Scalar:
        """A field of a scheduler record or dump."""

    def value(self, item: Evidence) -> float:
        """What a query gives now, at its end and its place."""

    def series(self, item: Evidence, window: Window) -> tuple[float, ...]:
        """What a query gives over a window, in order."""


class Rerun:
    """`Ask` over the targets of a verdict. Answers are kept: a claim is seldom alone."""

    @classmethod
    def of(
        cls, document: Mapping[str, Any], targets: tuple[str, ...], prometheus: str | None = None
    ) -> Self:
        """For a verdict's document; a server is asked only where the caller names it."""
        raise NotImplementedError
