"""
What Megatron's timers say a step waited for its batches, on the lines below it.

`--timing-log-level 2` prints each timer in milliseconds an iteration, the least and the most of
all ranks, or in older versions the last rank's.  The device is synchronised where a timer begins
and ends, so this one holds no other work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from flatline.facts import Facts
from flatline.model import LogCite
from flatline.tracks import Track

FORMAT = "megatron"
BEHIND, SOME = 40, 200
"""Lines below a step on which its timers stand, and steps of a run that are looked at."""
_TIMER = re.compile(
    r"^(?:.{0,40}[ :])?\s{2,8}batch-generator \.{5,80}: \((\d{1,9}\.\d{1,6}), (\d{1,9}\.\d{1,6})\)"
    r"|\btime \(ms\) .{0,2000}\| batch-generator: (\d{1,9}\.\d{1,6})"
)


def batch_waits(facts: Facts, track: Track) -> Mapping[int, tuple[float, LogCite]]:
    """Seconds by point of a track, and the line that says so; of the least, for which all ranks
    waited: a stage amid a pipeline needs no batch, and then nothing is known of the others."""
    if track.format != FORMAT:
        return {}
    span = track.of_attempt(facts.last.n)
    out = {}
    for i in span[:: max(1, len(span) // SOME)]:
        first = track.lines[i] + 1
        after = track.lines[i + 1] if i + 1 < len(track) else first + BEHIND
        lines = facts.lines(track.source, first, max(0, min(after - first, BEHIND)))
        for line, text in enumerate(lines, first):
            if found := _TIMER.search(text):
                cite = LogCite(track.source, line, text, track.place, track.time(i))
                out[i] = float(found[1] or found[3]) / 1e3, cite
                break
    return out
