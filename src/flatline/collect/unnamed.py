"""
What to look for in a log in which no format found a step: lines of a loop whose words nothing
knows, learned from a sample of it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from math import isfinite
from types import SimpleNamespace
from typing import cast

from flatline.collect.catalogue import Catalogue
from flatline.logs.clock import Clock
from flatline.logs.labels import Labels
from flatline.logs.scan import Scanner
from flatline.parsers import LineFormat, plain, unnamed
from flatline.parsers import headed as headed_rows
from flatline.parsers._learned.curves import Curve, Seen, learn, told_times
from flatline.parsers._learned.numbered import LONGEST, headed, row
from flatline.tracks import Track

LEAST_ROWS, ALIKE = 5, 3
"""Lines of one shape, at least, and those that agree in all but digits, as few of a shape do."""
FIRST, OTHERS = 40, 20
"""Of lines that agree so many are looked at, at their beginning, in their middle and at their end:
what a count does is seen where lines follow one another."""
MOST = 3
"""Kinds of lines of a file that are learned: one has several where a part of them says more."""
HEAD_BYTES = 16_384
HEADING_WITHIN = 6
"""Lines above a table's first row in which its heading stands."""
_HEADING = re.compile(r"[A-Za-z][\w/()% .|-]{0,30}(?:\s{2,}|\||,|\t)\s*[A-Za-z|(]")
_COUNTS = re.compile(r"(?<![\w.])[0-9]+(?:\.[0-9]+)?(?![\w])")
_DIGITS = re.compile(r"[0-9]+")
_WORD = re.compile(r"[a-z]{2,}")
_NUMBERED = r"^[ |]{0,8}[0-9]{1,9}[ |,]"
"""Rows of a table in which no word stands."""
FAR_MORE = 4
"""Times the steps that a format read, as where saves alone were told of.  A judgement."""
NAN = float("nan")
HAND_WRITTEN = (plain.FORMAT, headed_rows.FORMAT)
ADDED = ("step_s", "data_s", "sync_s", "since_s", "throughput")
"""Columns that are taken over where a track of another format has none."""


def unnamed_steps(sample: Sequence[str], labels: Labels, clock: Clock) -> Catalogue | None:
    """What finds such lines in a file of which a sample is given; None where none stand there."""
    curves: list[Curve] = []
    for streams, heading in _alike(sample, labels, copy(clock)):
        curve = learn(streams, heading)
        if curve is not None and all(curve.head != one.head for one in curves):
            curves.append(curve)
        if len(curves) == MOST:
            break
    if not curves:
        return None
    patterns = list(dict.fromkeys(map(_pattern, curves)))
    form = SimpleNamespace(
        FORMAT=unnamed.FORMAT, FRAMEWORK=None, TRIGGERS=(),
        Reader=partial(unnamed.Reader, tuple(curves)),
    )  # fmt: skip
    return Catalogue(
        scanner=Scanner(patterns, slow=True),
        signatures=(),
        formats=dict.fromkeys(range(len(patterns)), cast(LineFormat, form)),
        traceback_id=-1,
        bare_id=-1,
        digest="",
    )


def rows_of_steps(head: bytes) -> bool:
    """Whether a file of rows begins with steps of a loop: a data set does not."""
    rows = head[:HEAD_BYTES].decode("utf-8", "replace").split("\n")[:-1]
    second = rows[1] if len(rows) > 1 else ""  # the first may be a heading
    if len(rows) < LEAST_ROWS or len(second) > LONGEST or len(_COUNTS.findall(second)) < 2:
        return False
    return any(learn(*one) is not None for one in _alike(rows, Labels(), Clock()))


def _alike(
    sample: Sequence[str], labels: Labels, clock: Clock
) -> Iterator[tuple[list[list[Seen]], str | None]]:
    """Lines of one shape, by stream, and the heading above them; the most common shape first."""
    groups: dict[tuple[str, ...], dict[str, list[Seen]]] = defaultdict(lambda: defaultdict(list))
    first: dict[tuple[str, ...], int] = {}
    for n in _often(sample):
        text = sample[n]
        labelled = labels.split(text)
        line = row(labelled.text)
        if not line.numbers:
            continue
        stamp = clock.either(text, labelled.text)
        at = stamp.at.timestamp() if stamp is not None else NAN
        groups[line.shape][labelled.key].append(Seen(line, at))
        first.setdefault(line.shape, n)
    count = {shape: sum(map(len, streams.values())) for shape, streams in groups.items()}
    for shape in sorted(groups, key=lambda one: (-count[one], first[one])):
        if count[shape] < LEAST_ROWS:
            return
        yield list(groups[shape].values()), _heading(sample, first[shape], labels)


def _often(sample: Sequence[str]) -> list[int]:
    """Which lines stand there several times with other numbers; of very many those of three
    stretches."""
    alike: dict[str, list[int]] = defaultdict(list)
    for n, text in enumerate(sample):
        if text and len(text) <= LONGEST:
            digits = _DIGITS.sub("0", " ".join(text.split()))
            if "0" in digits:
                alike[digits].append(n)
    chosen: list[int] = []
    for lines in alike.values():
        if len(lines) >= ALIKE:
            middle = len(lines) // 2
            chosen += {*lines[:FIRST], *lines[middle : middle + OTHERS], *lines[-OTHERS:]}
    return sorted(chosen)


def _heading(sample: Sequence[str], first: int, labels: Labels) -> str | None:
    """The line of a table's names above its first row, with as many cells."""
    line = row(labels.split(sample[first]).text)
    for text in reversed(sample[max(0, first - HEADING_WITHIN) : first]):
        bare = labels.split(text).text
        if len(line.numbers) > 1 and _HEADING.search(bare) and headed(line, bare) is not None:
            return bare
    return None


def _pattern(curve: Curve) -> str:
    """What finds a curve's lines: the longest word before the count, or behind it."""
    for gaps in (curve.head, curve.shape):
        words = [word for gap in gaps for word in _WORD.findall(gap)]
        if words:
            return f"(?i:{max(words, key=len)})"
    return _NUMBERED


def lacking(
    tracks: Mapping[tuple[str, str], Track], line: Callable[[int], str], labels: Labels
) -> bool:
    """Whether a file may say more of its steps than was read: nothing, no loss, or not how they
    went in time, or a line of a hand-written loop names a time that its track has not."""
    for track in tracks.values():
        if track.format not in HAND_WRITTEN or not len(track):
            continue
        if track.format == headed_rows.FORMAT and not any(map(isfinite, track.step_s)):
            return True
        text = labels.split(line(track.lines[len(track) // 2])).text
        for what in told_times(row(text)):
            if not any(map(isfinite, getattr(track, what))):
                return True
    clocked = any(_clocked(track) for track in tracks.values())
    return not clocked or not any(any(track.has_loss) for track in tracks.values())


def _clocked(track: Track) -> bool:
    """Whether anything says how the steps of a track went in time."""
    return any(any(map(isfinite, clock)) for clock in (track.at, track.step_s, track.since_s))


def filled(tracks: dict[tuple[str, str], Track]) -> None:
    """Puts what was learned of the lines of hand-written loops into their own tracks."""
    for key in [key for key in tracks if key[1] == unnamed.FORMAT]:
        more = tracks[key]
        own = next((tracks[key[0], one] for one in HAND_WRITTEN if (key[0], one) in tracks), None)
        if own is None:
            continue
        at = {line: n for n, line in enumerate(more.lines)}
        both = [(i, at[line]) for i, line in enumerate(own.lines) if line in at]
        if not both:
            continue
        for name in ADDED:
            mine, its = getattr(own, name), getattr(more, name)
            for i, n in both:
                if not isfinite(mine[i]):
                    mine[i] = its[n]
        del tracks[key]


def telling(tracks: Iterable[Track]) -> list[Track]:
    """The tracks that speak for a run: where another format read its steps, of these only those
    that say what part of a step was spent waiting, or a loss of far more steps than the others
    tell of, and those none."""
    told = list(tracks)
    named = [track for track in told if track.format != unnamed.FORMAT]
    learned = max((sum(t.has_loss) for t in told if t.format == unnamed.FORMAT), default=0)
    known = 0 if any(any(track.has_loss) for track in named) else max(map(len, named), default=0)
    if not any(map(len, named)) or learned > FAR_MORE * known > 0:
        return told
    waits = [t for t in told if t.format == unnamed.FORMAT and any(map(isfinite, t.sync_s))]
    return [*named, *waits]
