"""
Training steps by the column: a loop prints one line thousands of times, with other digits.

Lines that agree in every byte but their digits, digit for digit, have one *layout*: what labels,
clock and parser make of one of them they make of all, in the same places.  The second line of a
layout shows where stamp and numbers stand; from then on they are cut out there, which costs an
eighth of reading a line in full.  What stands before the first number may be a rank or a host, and
is compared as it is.  A line that breaks what its layout promises is read in full.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from flatline.collect.events import LogEvents
from flatline.facts import Track
from flatline.logs.clock import Clock
from flatline.logs.hits import Hit
from flatline.logs.labels import CUT_BYTES, Labelled, Labels
from flatline.logs.layout import ALIKE, OTHER
from flatline.logs.reading import BLANKS
from flatline.parsers import Columns, LineReader

LAYOUTS = 4_096
"""Layouts of a file that are remembered; beyond it all are met anew."""
STREAMS = 64
"""Beginnings of a layout that are remembered; of more, what differs is no label."""
COUNT_CHARS = 15
"""A longer count of steps may be one that no run counts to."""
ROWS = 512
"""Lines of a track that are held before they go into its columns."""
NAN = float("nan")

Says = tuple[tuple[str, ...], str, bool]


@dataclass(slots=True)
class Stream:
    """When, and in which line, a stream last said a time."""

    at: datetime | None = None
    line: int = 0


@dataclass(slots=True)
class _Rows:
    """Lines of a track that are not in its columns yet; all of them say the same things."""

    track: Track
    says: Says
    rows: list[tuple[float, ...]] = field(default_factory=list)


@dataclass(slots=True)
class _Layout:
    """The stamp stands from `begin` to `end`, both 0 where there is none, the first number at
    `first`; `streams` are told by what else stands before that."""

    says: Says
    numbers: tuple[tuple[int, int, float, float], ...]
    begin: int
    end: int
    first: int
    plain: tuple[tuple[int, int], ...]
    """The places of the numbers, where each is what stands there."""
    streams: dict[bytes, tuple[Stream, _Rows]] = field(default_factory=dict)


_NONE = _Layout(((), "", True), (), 0, 0, 0, ())
"""Of lines that have to be read in full."""


class StepLines:
    """
    The step lines of one file.

    `take` reads a line of a layout that is known.  What it does not take is read in full and
    shown to `learn`.  A track holds all that was taken once it is settled, which has to be before
    anything else is added to it.
    """

    def __init__(
        self, events: LogEvents, labels: Labels, clock: Clock, attempt: int, most: int
    ) -> None:
        """A track that holds nearly `most` points is filled by its owner alone."""
        self._events = events
        self._labels = labels
        self._clock = clock
        self._attempt = attempt
        self._most = most - ROWS
        self._layouts: dict[tuple[tuple[int, ...], bytes], _Layout | None] = {}
        self._rows: dict[tuple[str, str], _Rows] = {}
        self._says: dict[Says, Says] = {}

    def take(self, hit: Hit) -> bool:
        """Whether the line was read."""
        line, segment, text, ids, _ = hit
        layout = self._layouts.get((ids, text.translate(ALIKE)))
        if layout is None or segment:
            return False
        begin, end = layout.begin, layout.end
        known = layout.streams.get(text[:begin] + text[end : layout.first])
        if known is None:
            return False
        numbers = (
            [float(text[a:b]) for a, b in layout.plain]
            if layout.plain
            else [float(text[a:b].replace(b",", b"")) * by / of for a, b, by, of in layout.numbers]
        )
        stream, rows = known
        if not numbers[0].is_integer():
            return False
        if rows.says is not layout.says or len(rows.rows) >= ROWS:
            self._turn(rows, layout.says)
        if len(rows.track) > self._most:
            return False
        at = self._clock.dated(text[begin:end].decode()) if end else None
        if at is not None:
            self._seen(at, line, stream)
        elif end:
            return False
        rows.rows.append((line, NAN if at is None else at.timestamp(), *numbers))
        return True

    def learn(
        self, hit: Hit, labelled: Labelled, form: str, reader: LineReader, stream: Stream
    ) -> None:
        """A line that the first of its formats took, after which its track is there."""
        text = hit.text
        if hit.segment or len(text) >= CUT_BYTES or not text.isascii():
            return
        key = hit.ids, text.translate(ALIKE)
        if key not in self._layouts:
            if len(self._layouts) >= LAYOUTS:
                self._layouts.clear()
            self._layouts[key] = None
            return
        layout = self._layouts[key]
        if layout is None:
            layout = self._layouts[key] = self._laid_out(text.decode(), labelled, reader) or _NONE
        if layout is _NONE or len(layout.streams) >= STREAMS:
            return
        to = labelled.key, form
        rows = self._rows.get(to)
        if rows is None:
            rows = self._rows[to] = _Rows(self._events.tracks[to], layout.says)
        layout.streams[text[: layout.begin] + text[layout.end : layout.first]] = stream, rows

    def settle(self, key: tuple[str, str]) -> None:
        """Puts what was taken of a track into its columns."""
        rows = self._rows.get(key)
        if rows is not None and rows.rows:
            self._turn(rows, rows.says)

    def settle_all(self) -> None:
        for key in self._rows:
            self.settle(key)

    def _seen(self, at: datetime, line: int, stream: Stream) -> None:
        stream.at, stream.line = at, line
        last = self._events.last_seen
        if last is None or at > last:
            self._events.last_seen = at

    def _turn(self, rows: _Rows, says: Says) -> None:
        """To rows that say something else."""
        if rows.rows:
            names, loss_name, falling = rows.says
            lines, at, *columns = zip(*rows.rows, strict=True)
            named = dict(zip(names, columns, strict=True))
            rows.track.extend(lines, at, named, self._attempt, loss_name, falling)
            rows.rows.clear()
        rows.says = says

    def _laid_out(self, text: str, labelled: Labelled, reader: LineReader) -> _Layout | None:
        """Where stamp and numbers stand in all lines of a layout; None where it takes reading a
        line to tell."""
        look: Callable[[str], Columns | None] | None = getattr(reader, "columns", None)
        columns = look(labelled.text) if look is not None else None
        stamp = self._clock.steady(text)
        if columns is None or stamp is None:
            return None
        counts = zip(columns.names, columns.numbers, strict=True)
        if any(b - a > COUNT_CHARS for name, (a, b, *_) in counts if name in ("step", "planned")):
            return None
        if not stamp[1] and self._clock.steady(labelled.text) != stamp:
            return None
        off = len(text.rstrip(BLANKS)) - len(labelled.text)
        numbers = tuple((a + off, b + off, by, over) for a, b, by, over in columns.numbers)
        says = columns.names, columns.loss_name, columns.falling
        first = min(number[0] for number in numbers)
        whole = all(by == over == 1 and "," not in text[a:b] for a, b, by, over in numbers)
        plain = tuple((a, b) for a, b, _, _ in numbers) if whole else ()
        layout = _Layout(self._says.setdefault(says, says), numbers, *stamp, first, plain)
        if stamp[1] > first or not self._labelled_alike(text, labelled, layout):
            return None
        return layout

    def _labelled_alike(self, text: str, labelled: Labelled, layout: _Layout) -> bool:
        """Whether no label changes with the digits that are not compared, all of which are others
        here; the first of a year is not, of which a label takes notice."""
        begin, end, first = layout.begin, layout.end, layout.first
        raw = text.encode()
        changed = raw[:begin] + raw[begin : begin + bool(end)]
        changed += raw[begin + bool(end) : end].translate(OTHER)
        changed += raw[end:first] + raw[first:].translate(OTHER)
        other = self._labels.split(changed.decode().rstrip(BLANKS))
        said = labelled.place, labelled.key, labelled.local_rank, len(labelled.text)
        return said == (other.place, other.key, other.local_rank, len(other.text))
