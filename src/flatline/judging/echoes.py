"""What the other ranks said once one had failed: cited as consequence, never as cause."""

from __future__ import annotations

from flatline.facts import Facts
from flatline.judging.claims import claim, distinct, name_places, same_rank
from flatline.judging.crashes import Failure
from flatline.model import Claim, Match, Place


def echoes_of(facts: Facts, place: Place, attempt: int) -> tuple[Match, ...]:
    """Cascade lines of other ranks in an attempt; a kernel speaks for no rank."""
    return tuple(
        match
        for match in facts.matches
        if match.attempt == attempt
        and (match.signature.role == "cascade" or "timeout" in match.signature.tags)
        and match.cite.place
        and match.cite.source not in facts.kernel_files
        and not same_rank(match.cite.place, place)
    )


def echo_claim(facts: Facts, first: Failure) -> Claim | None:
    """That the others only lost their peer; None where no other rank said anything."""
    if not first.place:
        return None
    echoes = echoes_of(facts, first.place, first.attempt)
    if not echoes:
        return None
    where = name_places(distinct(match.cite.place for match in echoes))
    once = {match.cite.place: match.cite for match in reversed(echoes)}
    return claim(
        f"{where[:1].upper()}{where[1:]} lost a peer and failed after it: victims, not causes.",
        *list(once.values())[:3],
    )
