"""Whether a run is known to have come to an end of its own: the planned one, or a stop before it
as it learnt no more, which the record of a completed job bears out."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from flatline.collect.runs import reached_end
from flatline.facts import Marker, Track
from flatline.model import Crash, Disposition, Job, Match, ProcessExit
from flatline.tracks import GOES_ON_AFTER

_NOT_SAID = re.compile(
    r"(?i)\b(?:if|when|unless|until|once|no|not|never|will|would|should|may(?![ ,/-]{1,2}[0-9]))\b"
)


def shows_end(
    job: Job | None,
    ended: Disposition,
    matches: Sequence[Match],
    crashes: Sequence[Crash],
    exits: Sequence[ProcessExit],
    tracks: Sequence[Track],
    markers: Sequence[Marker],
    attempt: int,
) -> bool:
    """By its log; or by its word that it stopped early and its record.  Without one a fold or a
    stage may have, and what failed then may not have been read."""
    if reached_end(matches, crashes, exits, tracks, markers, attempt) is not None:
        return True
    if job is None or not job.disposition == ended == "completed":
        return False
    said = [m for m in matches if "stopped-early" in m.signature.tags and m.attempt == attempt]
    return any(_stopped(match, tracks) for match in said)


def _stopped(said: Match, tracks: Sequence[Track]) -> bool:
    """Whether steps were made before it in its file and none to speak of behind."""
    cite = said.cite
    if _NOT_SAID.search(cite.text.replace("did not improve", "")):
        return False
    spans = [t.lines[r.start : r.stop] for t in tracks
             if t.source == cite.source and (r := t.of_attempt(said.attempt))]  # fmt: skip
    counts = [(bisect_right(lines, cite.line), len(lines)) for lines in spans]
    return any(before for before, _ in counts) and all(
        made - before <= GOES_ON_AFTER for before, made in counts
    )
