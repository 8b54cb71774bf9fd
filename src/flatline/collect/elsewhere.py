"""Whether the end that one rank's log tells of is denied by another's."""

from __future__ import annotations

from collections.abc import Sequence

from flatline.model import Crash, Match
from flatline.tracks import Track

FATAL, SURE = ("A2", "B1", "C2"), 0.8
"""Families whose lines tell of an end, and how sure a line of them must be."""


def died_elsewhere(
    ended: str, crashes: Sequence[Crash], tracks: Sequence[Track], attempt: int
) -> bool:
    """Whether a traceback ends another stream's file: one rank's end is not its peers'."""
    return any(
        crash.complete
        and not crash.caught
        and crash.attempt == attempt
        and crash.cite.source != ended
        and all(
            track.source != crash.cite.source
            or not len(track)
            or track.lines[-1] < crash.cite.line
            for track in tracks
        )
        for crash in crashes
    )


def failed_elsewhere(
    ended: str, matches: Sequence[Match], tracks: Sequence[Track], attempt: int
) -> bool:
    """Whether another rank's file, below all its steps, tells of a hang, a kill or a full card."""
    last = {track.source: track.lines[-1] for track in tracks if len(track)}
    return any(
        match.signature.role == "root"
        and match.signature.family in FATAL
        and match.signature.strength >= SURE
        and match.attempt == attempt
        and match.cite.source != ended
        and last.get(match.cite.source, match.cite.line) < match.cite.line
        for match in matches
    )
