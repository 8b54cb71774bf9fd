"""A rank that was waited for and that took SIGKILL to end: what sleeps in the kernel, in its GPU's
driver or a file system, does not act upon SIGTERM, nor does a program that handles it."""

from __future__ import annotations

from dataclasses import replace

from flatline.facts import Facts
from flatline.judging.claims import number
from flatline.judging.health import signs
from flatline.judging.kills import BY_LAUNCHER
from flatline.judging.named_logs import host_of_log
from flatline.judging.waited_for import Suspect
from flatline.judging.waiting import Waiting
from flatline.model import LogCite, Place, ProcessExit

MOST = 0.79
KILLED, CPU_ALONE = 9, "gloo"
DOUBT = (
    "Whether its GPU's driver or its storage held it: it did not end by SIGTERM, and neither its"
    " host's kernel log nor its GPU's health was read."
)


def outlived(facts: Facts, suspect: Suspect, victims: Waiting) -> Suspect:
    """The suspect, with the doubt where one is due: gloo's collectives hold no GPU."""
    if all(match.signature.origin == CPU_ALONE for match in victims.matches):
        return suspect
    place = suspect.places[0] if len(suspect.places) == 1 else None
    if place is None or number(place) is None or suspect.doubt or suspect.most < MOST:
        return suspect
    forced = [event for event in facts.exits if _forced(facts, event, place)]
    hosts = {facts.on_host(one).host for one in (place, *(event.place for event in forced))}
    read = {host_of_log(facts, source) for source in facts.kernel_files}
    if not forced or signs(facts) is not None or (hosts & read) - {None}:
        return suspect
    return replace(suspect, most=MOST, doubt=DOUBT)


def _forced(facts: Facts, event: ProcessExit, place: Place) -> bool:
    """Whether it was that process, which its launcher or the scheduler had asked to end."""
    if event.signal != KILLED or number(event.place) != number(place):
        return False
    if event.reporter.endswith(BY_LAUNCHER[1]):
        return True
    asked = (m.cite for m in facts.tagged("cancelled") if m.attempt == event.attempt)
    return isinstance(event.cite, LogCite) and any(
        cite.source == event.cite.source and cite.line < event.cite.line for cite in asked
    )
