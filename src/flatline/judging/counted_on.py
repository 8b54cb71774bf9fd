"""
A count that went up to a moment, behind the last step: an evaluation that was at work.

No step is made while a program evaluates, but most print how much of it is done.  A count that
goes up by and by towards its total, to within two of its lines' distances of the moment, was work;
one that counts what was waited for is none.
"""

from __future__ import annotations

import re
from datetime import datetime
from itertools import pairwise
from statistics import median

from flatline.facts import Facts
from flatline.logs.clock import Clock
from flatline.model import LogCite, Place

MOST_LINES, MOST_CHARS = 4_000, 400
LEAST, IN_WINDOW = 4, 2
"""Lines in all, and of these while it was accused: one alone may be a thread's last word."""
APART = 2.0
_COUNT = re.compile(
    r"(?<![\w.:/-])(\d{1,9})(?:\s?/\s?|\"?,? ?\"?(?:of|total)\"?\s?[:=]? ?)(\d{1,9})(?![\w.:/-])"
)
_WAITS = re.compile(
    r"(?i)wait|retr(?:y|ies)|attempt|sleep|time[d ]?-?out|heartbeat|alive|poll|\bsec"
)


def counted_until(
    facts: Facts, source: str, first: int, at: datetime, window_s: float
) -> tuple[LogCite, LogCite] | None:
    """The first and the last line of such a count, from one line of a log on to that moment."""
    clock, told = Clock(), list[tuple[datetime, int, int, LogCite]]()
    for n, text in enumerate(facts.lines(source, first, MOST_LINES, MOST_CHARS), first):
        stamp = clock.read(text)
        if stamp is None or stamp.at > at:
            continue
        counts = [(int(done), int(total)) for done, total in _COUNT.findall(text)]
        if len(counts) == 1 and counts[0][0] <= counts[0][1] and not _WAITS.search(text):
            told.append((stamp.at, *counts[0], LogCite(source, n, text, Place(), stamp.at)))
    if len(told) < LEAST or len({total for _, _, total, _ in told}) != 1:
        return None
    apart_s = [(b[0] - a[0]).total_seconds() for a, b in pairwise(told)]
    rises = all(b[1] > a[1] for a, b in pairwise(told))
    late_s = (at - told[-1][0]).total_seconds()
    within = [one for one in told if (at - one[0]).total_seconds() <= window_s]
    if not rises or late_s > APART * median(apart_s) or len(within) < IN_WINDOW:
        return None
    return within[0][3], within[-1][3]
