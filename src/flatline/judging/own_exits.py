"""Processes that left with an error code of their own."""

from __future__ import annotations

from flatline.facts import Facts
from flatline.judging.kills import BY_LAUNCHER
from flatline.model import LogCite, Place

SIGNALLED = 128
"""Codes from here on are a shell's word on a signal."""
LAST_CODE = 255
"""Of -1, with which container runtimes and ssh leave; no signal is so high."""


def own_exits(facts: Facts, attempt: int) -> dict[Place, LogCite]:
    """The places of processes that left with an error code of their own, and the lines that say
    so: none that the launcher ended, nor any of which it names no place."""
    return {
        event.place: event.cite
        for event in facts.exits
        if event.attempt == attempt
        and event.place != Place()
        and (0 < (event.exit_code or 0) < SIGNALLED or event.exit_code == LAST_CODE)
        and not event.reporter.endswith(BY_LAUNCHER)
    }
