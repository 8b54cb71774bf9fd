"""How often a record was found right or wrong at this site, in words and as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """How often a record was found right and wrong at this site."""

    confirmed: int = 0
    wrong: int = 0


def outcome_said(confirmed: int, wrong: int) -> str:
    """`confirmed 3 times at this site`; empty where nothing is known."""
    told = [
        f"{word} {number} time{'s' * (number != 1)} at this site"
        for word, number in (("confirmed", confirmed), ("wrong", wrong))
        if number
    ]
    return ", ".join(told)
