"""A stand-in for a language model that does whatever any text it is shown tells it to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Obeyed:
    """
    What it does after one look at its context.

    `calls` are (tool, arguments) it wants to make, listed tools or not; `claims` are claims as
    JSON objects; `prose` is what it would say; `code` is the family it names ("G1" where it was
    told that all is well).
    """

    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    claims: tuple[dict[str, Any], ...] = ()
    prose: str = ""
    code: str | None = None
    urls: tuple[str, ...] = field(default=())


def obey(context: str) -> Obeyed:
    """Everything in the context that reads as an instruction, carried out."""
    raise NotImplementedError
