"""
When a line was printed, as far as the line itself says.

Only a stamp at the start of the line counts, or behind labels, brackets and levels that stand
there: a date inside a message or a path says nothing of the line.  What a stamp leaves out (the
year of glog, the day of a bare time, the zone of nearly all) is taken from what is known of the
run, and the stamp is marked as assumed.  Impossible dates give None, never an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

from flatline.logs.inside import inside, runs_on
from flatline.logs.layout import layouts
from flatline.logs.zones import NAMED_H, offset_beside

FIRST_YEAR, LAST_YEAR = 2010, 2100
"""No log of GPU training is older, none is younger; other years are not dates of lines."""
LEAD_CHARS, ROW_CHARS = 240, 2000
INDENTED = 8
"""Blanks behind which no stamp is looked for: behind forty all leads take a tenth of a second."""
HALF_YEAR = timedelta(days=183)
BACK = timedelta(minutes=10)
"""Merged lines of ranks are out of order by less."""

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_LEAD = (
    r"(?:\[[^\[\]]{1,100}\][:.]?(?:<std(?:out|err)>:)?\s{0,2}"  # [rank0]: or [1,3]<stdout>:
    r"|\s{0,6}(?:P\d{1,4}\s{1,3})?\d{1,6}:\s"  # srun --label
    r"|\([^()]{1,120}\)\s"  # (Actor pid=1, ip=10.0.0.2)
    r"|[A-Z]{4,8}[: ](?:root:|\s{0,2}(?:-\s)?)"  # INFO: or INFO:root:
    r"|<\d{1,3}>|\s{1,8}|[=#*-]{2,8}\s"  # printk's level; indentation; a heading
    r"|[A-Za-z\d.-]{1,64}?\d[A-Za-z\d.-]{0,20}: "  # pdsh, mpirun: the host
    r"(?=\[?(?:[IWEF]\d{3,4} \d\d:|20\d\d[-/]\d\d))"
    r"){0,5}?"
)
_OPEN = (
    r"(?:\[?(?:NeMo [A-Z] |[A-Z]{4,8}\|)?"
    r"|\{\"(?:@?timestamp|time|asctime|ts|at|text)\": ?\"|(?:time|ts|t|at)=\"?|\()"
)
_TIME = r"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
_MINUTES = r"(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?![\w:])"
_MINUTE = re.compile(r"\d[-.]\d{4} \d\d:\d|\d{6}[-_T]\d{6}")
_DATED = r"(\d{4})[-/.](\d\d)[-/.](\d\d)[T_ ,-]" + _TIME
_FIELD = (
    r"\{(?=\")[^{}\n]{0,1900}?\"_?(?:@?timestamp|(?:wall_?|event_?)?time|asctime|datetime|date|ts|at|t"
    r"|created|wall|when|now|logged_at|utc|unix)\": ?"
)
"""Of a row of JSON as loggers write one: structlog has its time last, others its level first."""
_SLURM = re.compile(r"\*\*\* .{0,200}? AT " + _DATED + r"(?!\d)")
_ABSL = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d{10}\.")
"""The one shape that asks for certain digits."""
_CLOCK = re.compile(r":\d\d:\d")
_COUNTED = re.compile(r"\[ *\d+\.\d{3}")
_SINCE_1970 = re.compile(r"[^\d\n]{0,40}\d{10}(?:\.\d|[^\w.])")
_SAYS_WHEN = r"(?:@|(?:ts|time|t|at)[=:])"
_UTC_NAMES = ("Z", "UTC", "GMT")
_Groups = tuple[str | Any, ...]  # as `re.Match.group` is typed: an optional group may be None


@dataclass(frozen=True, slots=True)
class Stamp:
    """An instant in UTC; `assumed` where its zone or its year was not stated."""

    at: datetime
    assumed: bool


class Clock:
    """
    Reads the stamps of one file.

    `year` serves stamps without one; from then on a stamp is put into the year that brings it
    nearest to the last fully known time, so a run over New Year stays in order, and a time without
    a date into the day.  `lacks_year` says that a stamp was met that no year is known for,
    `lacks_day` that it was no more than a time.  `zone` serves
    stamps without a zone, `boot` those that count from the start of the kernel, which without it
    are no times.
    """

    def __init__(
        self,
        year: int | None = None,
        zone: tzinfo = UTC,
        zone_stated: bool = False,
        *,
        boot: datetime | None = None,
    ) -> None:
        self.year = year
        self.zone = zone
        self.zone_stated = zone_stated
        self.boot = boot
        self.lacks_year = self.lacks_day = False
        self.named: frozenset[float] = frozenset()
        self._near: datetime | None = None
        self._in_order = False
        """Whether `_near` is what stands above."""
        self._anchor: datetime | None = None
        """What the caller knows of when it began; a date farther down says less of it."""
        self._elapsed = False
        self._day_first = False
        self._inside = False
        """Whether times stand within the lines, and nothing else says when."""

    @classmethod
    def learn(
        cls,
        sample: Iterable[str],
        year: int | None = None,
        boot: datetime | None = None,
        near: datetime | None = None,
        zone: tzinfo = UTC,
        same: Sequence[bytes] | None = None,
    ) -> Clock:
        """
        The clock of a file, from lines of it; `same` are their layouts, where they are known.

        `year` is used where no line is fully dated, or the one that brings stamps nearest to
        `near`.  The zone counts as stated where stamps give
        an offset other than UTC's, which a program takes from its surroundings, and all the same
        one, where `date` printed UTC, or where lines beside them count from 1970; a bare `Z` says
        nothing of the other stamps.
        """
        clock = cls(zone=zone, boot=boot)
        offsets: set[str] = set()
        dated: list[str] = []
        forms: dict[bytes, str] = {}
        lines, counted = list(sample), False
        for line, alike in zip(lines, same or layouts(lines), strict=True):
            form = forms.get(alike)
            if form is None:
                form = forms[alike] = _form(_lead(line))
            if form == "dated":  # of many in a row only the last date counts
                dated.append(line)
            elif form == "other":
                text = _lead(line)
                if found := _found(text) or _cancelled(text):
                    counted = counted or found[0] in _COUNT
                    clock._look(text, found, dated, offsets)
        clock._last_of(dated)
        clock._inside = not (dated or clock._near or "other" in forms.values()) and runs_on(lines)
        zones = {_zone(offset) if offset else UTC for offset in offsets}
        if len(zones) == 1 and (UTC not in zones or offsets == {""}):
            clock.zone, clock.zone_stated = zones.pop(), True
        elif counted and zone is UTC:
            clock._beside(lines)
        clock.year = clock._near.year if clock._near is not None else year
        clock._near, clock._anchor, clock._in_order = clock._near or near, near, False
        clock.lacks_year = clock.lacks_day = clock._elapsed = False
        return clock

    def _beside(self, lines: Sequence[str]) -> None:
        """Takes the zone that stamps have beside lines which count from 1970."""
        read = Clock(self._near.year if self._near else self.year)
        read._day_first = self._day_first
        stamps = [stamp for line in lines if (stamp := read.read(line))]
        offset = offset_beside((stamp.at, stamp.assumed) for stamp in stamps)
        if offset is not None:
            self.zone, self.zone_stated = timezone(offset), True

    def _look(
        self, text: str, found: tuple[str, _Groups], dated: list[str], offsets: set[str]
    ) -> None:
        """Learns from one line, and before that from those with a date that came before it."""
        shape, groups = found
        if shape == "iso" and groups[8] not in (None, *_UTC_NAMES):
            offsets.add(groups[8])
        elif shape == "named" and groups[7] in _UTC_NAMES:
            offsets.add("")
        elif shape == "named":
            self.named |= NAMED_H.get(groups[7] or "", frozenset())
        elif shape == "us" and int(groups[0]) > 12:
            self._day_first = True
        if shape == "iso":
            dated.append(text)
            return
        self._last_of(dated)
        dated.clear()
        _SHAPES[shape][0](self, groups)

    def _last_of(self, dated: list[str]) -> None:
        """Takes the last date that may be one from lines that begin with one."""
        for line in reversed(dated):
            text = _lead(line)
            shape, groups = _found(text) or _cancelled(text) or ("", ())
            if shape == "iso" and _plausible(groups):
                self._iso(groups)
                return

    def read(self, text: str) -> Stamp | None:
        """The stamp of a line, with or without its labels; None where it has none."""
        text = _lead(text)
        found = _found(text) or _cancelled(text)
        if found is None:
            within = inside(text) if self._inside else None
            return self._of_day(within) if within is not None else None
        shape, groups = found
        return _SHAPES[shape][0](self, groups)

    def either(self, text: str, bare: str) -> Stamp | None:
        """The stamp of a line, else that of what stands behind its labels."""
        return self.read(text) or (None if bare == text else self.read(bare))

    def first(self, lines: Iterable[str]) -> datetime | None:
        """When the first of these lines was printed that says so."""
        self._in_order = self._elapsed = False
        return next((stamp.at for line in lines if (stamp := self.read(line))), None)

    def steady(self, text: str) -> tuple[int, int] | None:
        """
        Where the stamp stands that `dated` reads, in this line and in every one that differs from
        it in digits alone; (0, 0) where none of them has a stamp, None where it takes `read` to
        tell.
        """
        text = _lead(text)
        form = _form(text)
        if form == "none" and not self._inside:
            return 0, 0
        match = _STAMP.match(text) if form == "dated" else None
        if match is None:
            return None
        _, numbers = _SHAPES["iso"]
        begin, end = match.start(numbers[0]), max(map(match.end, numbers[:7]))
        stamp = self.read(text)
        return (begin, end) if stamp and stamp.at == self.dated(text[begin:end]) else None

    def dated(self, stamp: str) -> datetime | None:
        """The instant of a full date and time without a zone; None where it takes `read`."""
        utc = self.zone is UTC
        try:
            at = datetime.fromisoformat(stamp + "+00:00" if utc else stamp)
        except ValueError:
            return None
        if not FIRST_YEAR <= at.year <= LAST_YEAR:
            return None
        self._near = at = at if utc else at.replace(tzinfo=self.zone).astimezone(UTC)
        return at

    # --- one shape each ---

    def _iso(self, groups: _Groups) -> Stamp | None:
        year, month, day, hour, minute, second, part, half, zone = groups
        return self._full(year, month, day, (_hour(hour, half), minute, second, part), zone)

    def _elastic(self, groups: _Groups) -> Stamp | None:
        return self._iso((*groups, None, None))

    def _row(self, groups: _Groups) -> Stamp | None:
        return self._iso((*groups[:7], None, groups[7]))

    def _us(self, groups: _Groups) -> Stamp | None:
        first, second, year, hour, minute, sec, part, half = groups
        month, day = (second, first) if self._day_first else (first, second)
        time = (_hour(hour, half), minute, sec, part)
        stamp = self._full(year, month, day, time, None)
        return None if stamp is None else Stamp(stamp.at, True)

    def _dotted(self, groups: _Groups) -> Stamp | None:
        """The day first, as where dates have dots; between dashes the month, where it must be."""
        first, between, second, year, hour, minute, sec, part = groups
        month_first = between == "-" and int(second) > 12
        month, day = (first, second) if month_first else (second, first)
        return self._full(year, month, day, (hour, minute, sec or "00", part), None)

    def _compact(self, groups: _Groups) -> Stamp | None:
        year, month, day, *time = groups
        return self._full(f"20{year}", month, day, tuple(time), None)

    def _apache(self, groups: _Groups) -> Stamp | None:
        day, month, year, *time = groups
        return self._full(year, str(_MONTHS[month]), day, tuple(time), None)

    def _glog(self, groups: _Groups) -> Stamp | None:
        year, month, day, *time = groups
        if year is not None:
            return self._full(year, month, day, tuple(time), None)
        return self._yearless(int(month), int(day), tuple(time))

    def _short(self, groups: _Groups) -> Stamp | None:
        month, day, *time = groups
        return self._yearless(int(month), int(day), tuple(time))

    def _named(self, groups: _Groups) -> Stamp | None:
        month, day, hour, minute, second, part, half, zone, year = groups
        time = (_hour(hour, half), minute, second, part)
        if year is None:
            return self._yearless(_MONTHS[month], int(day), time)
        return self._full(
            year, str(_MONTHS[month]), day, time, zone if zone in _UTC_NAMES else None
        )

    def _millis(self, groups: _Groups) -> Stamp | None:
        return self._epoch_s(int(groups[0] or 0) / 1000)

    def _seconds(self, groups: _Groups) -> Stamp | None:
        """Since 1970 where that is a date, else since the kernel started."""
        seconds = float(groups[0] or 0)
        if seconds >= 1e9:
            return self._epoch_s(seconds)
        if self.boot is None:
            return None
        return Stamp(self.boot.astimezone(UTC) + timedelta(seconds=seconds), True)

    def _since_1970(self, groups: _Groups) -> Stamp | None:
        said = groups[0] or "0"
        return self._epoch_s(float(said) / (1000 if said.isdigit() and len(said) == 13 else 1))

    def _epoch_s(self, seconds: float) -> Stamp | None:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        return self._known(at, False) if FIRST_YEAR <= at.year <= LAST_YEAR else None

    def _full(
        self, year: str, month: str, day: str, time: _Groups, zone: str | None
    ) -> Stamp | None:
        stated = zone is not None and zone != ""
        given = _zone(zone) if stated and zone else self.zone
        at = _instant(int(year), int(month), int(day), time, given)
        return None if at is None else self._known(at, not (stated or self.zone_stated))

    def _known(self, at: datetime, assumed: bool) -> Stamp:
        self._near, self._in_order = at, True
        return Stamp(at, assumed)

    def _of_day(self, time: _Groups) -> Stamp | None:
        """A time alone, in the day that brings it nearest.  What runs on from nothing at the start
        of a file, or goes back by minutes, counts what has passed: it is no time of a day."""
        near = self._near if self._in_order else self._anchor
        if near is None:
            self.lacks_day = self.lacks_year = True
        if near is None or self._elapsed:
            return None
        local = near.astimezone(self.zone)
        days = (local.date() + timedelta(days=way) for way in (-1, 0, 1))
        tried = (_instant(d.year, d.month, d.day, time, self.zone) for d in days)
        at = min((one for one in tried if one), key=lambda one: abs(one - near), default=None)
        if at is None:
            return None
        early = time[0] == "00"  # loading and compiling may take half an hour of what has passed
        if (early and not self._in_order) or (self._in_order and near - at > BACK):
            self._elapsed = True
            return None
        self.lacks_day = True
        return self._known(at, True)

    def _yearless(self, month: int, day: int, time: _Groups) -> Stamp | None:
        near = self._near
        year = near.year if near is not None else self.year
        if year is None:
            self.lacks_year = True
            return None
        at = _instant(year, month, day, time, self.zone)
        if near is not None and (at is None or abs(at - near) > HALF_YEAR):
            others = (_instant(year + way, month, day, time, self.zone) for way in (-1, 1))
            candidates = [one for one in (at, *others) if one is not None]
            at = min(candidates, key=lambda one: abs(one - near), default=None)
        if at is not None:
            self._near = at
        return None if at is None else Stamp(at, True)


def _inner(first: int, count: int) -> tuple[int, ...]:
    """The numbers of a shape's groups; always two, for `Match.group` gives a tuple only then."""
    return tuple(range(first, first + count)) if count > 1 else (first, first)


_PATTERNS: tuple[tuple[str, str, Callable[[Clock, _Groups], Stamp | None]], ...] = (
    (
        "iso",
        _OPEN + _DATED + r"(?: ([AP]M)\b)?(?:\s?(Z|UTC|GMT|[+-]\d\d:?\d\d))?(?!\w|:\d)",
        Clock._iso,
    ),
    ("mllog", r":::MLLOGG? {1,2}\{.{0,120}?\"time_ms\": ?(\d{13})\b", Clock._millis),
    ("absl", r"[IWEF]0000 00:00:(\d{10}\.\d{1,9})(?=[ \]])", Clock._seconds),
    ("glog", r"\[?[IWEFD](?:(\d{4})(?=\d{4} ))?(\d{1,2})(\d\d) {1,2}" + _TIME + r"(?=[ \]])",
     Clock._glog),
    ("epoch", r"\[ {0,8}(\d{1,10}\.\d{3,9})\]", Clock._seconds),
    (
        "named",
        r"\[?(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? {1,2})?(" + "|".join(_MONTHS)
        + r") {1,2}(\d{1,2}) {1,2}" + _TIME.replace(r"\d\d", r"\d{1,2}", 1)
        + r"(?: ([AP]M))?(?: ([A-Z]{3,5}))?(?: (\d{4})\b)?",
        Clock._named,
    ),
    ("us", _OPEN + r"(\d\d)/(\d\d)/(\d{4})[ ,T]{1,2}" + _TIME + r"( [AP]M)?\b", Clock._us),
    ("dotted", _OPEN + r"(\d\d)([-.])(\d\d)[-.](\d{4})[ ,T]{1,2}" + _MINUTES, Clock._dotted),
    ("apache", r"\[?(\d{1,2})[/ -](" + "|".join(_MONTHS) + r")[/ -](\d{4})[: ]" + _TIME
     + r"(?![\w:])", Clock._apache),
    ("counted", r"(?:" + _SAYS_WHEN + r"|\[)?(\d{10}\.\d{1,9})(?=[\s\])|,:])", Clock._since_1970),
    ("marked", _SAYS_WHEN + r"(\d{10})(?=[\s\])|,:])", Clock._since_1970),
    ("short_year", r"\[?(2\d)[/.-](0[1-9]|1[0-2])[/.-]([0-3]\d)[ T-]" + _TIME, Clock._compact),
    ("short", _OPEN + r"(\d\d)[-/](\d\d) " + _TIME + r"(?![\w:])", Clock._short),
    ("of_day", r"\[?" + _TIME + r"(?=\]|\s|[|;,])", Clock._of_day),
    ("compact", r"\[?(?:20)?(\d\d)(0[1-9]|1[0-2])([0-3]\d)(?:[-_T]| (?=\d\d:))([0-2]\d):?([0-5]\d)"
     r":?([0-5]\d)(?:[.,](\d{1,9}))?(?=[\s\]|:,Z])", Clock._compact),
    ("elastic", r"time {1,8}: " + _DATED + r"(?!\d)", Clock._elastic),
    ("row", _FIELD + r"\"" + _DATED + r"(?:\s?(Z|UTC|GMT|[+-]\d\d:?\d\d))?\"", Clock._row),
    ("counted_row", _FIELD + r"(\d{10}(?:\.\d{1,9})?|\d{13})(?=[,}])", Clock._since_1970),
)  # fmt: skip
_STAMP = re.compile(
    _LEAD + "(?:" + "|".join(f"(?P<{name}>{pattern})" for name, pattern, _ in _PATTERNS) + ")"
)
_SHAPES = {
    name: (read, _inner(_STAMP.groupindex[name] + 1, re.compile(pattern).groups))
    for name, pattern, read in _PATTERNS
}


_ISO = re.compile(_PATTERNS[0][1])
_COUNT = ("mllog", "absl", "epoch", "counted_row", "counted", "marked")
"""The shapes that may count from 1970."""


def _lead(line: str) -> str:
    """As much of a line as may hold its stamp."""
    return line[: ROW_CHARS if line.startswith('{"') else LEAD_CHARS]


def _found(text: str) -> tuple[str, _Groups] | None:
    """The shape of a line's stamp, and its groups.  Most lines begin with a date or hold no time
    at all, which is told without trying every shape behind every lead."""
    if text[:1].isdigit() and (found := _ISO.match(text)):
        return "iso", found.groups()
    counted = _COUNTED.search(text) or _SINCE_1970.match(text)
    timed = counted or _CLOCK.search(text) or _MINUTE.search(text) or text.startswith('{"')
    if (not timed and '"time_ms"' not in text) or text[:INDENTED].isspace():
        return None
    found = _STAMP.match(text)
    if found is None:
        return None
    shape = found.lastgroup or ""
    return shape, found.group(*_SHAPES[shape][1])


def _form(text: str) -> str:
    """What all lines of this layout have: "dated" in full without a zone, "none" has no stamp,
    "other" has to be read line by line."""
    found = _found(text) or _cancelled(text)
    if _ABSL.search(text):
        return "other"
    if found is None:
        return "none"
    return "dated" if found[0] == "iso" and found[1][7:] == (None, None) else "other"


def _cancelled(text: str) -> tuple[str, _Groups] | None:
    """The time in slurmstepd's last word, which stands in the middle of its line."""
    found = _SLURM.search(text) if "*** " in text else None
    return None if found is None else ("iso", (*found.groups(), None, None))


def _hour(hour: str, half: str | None) -> str:
    """The hour of a day of 24."""
    if half is None:
        return hour
    return str(int(hour) % 12 + (12 if half.strip() == "PM" else 0))


def _plausible(iso: _Groups) -> bool:
    year, month, day = iso[:3]
    return FIRST_YEAR <= int(year) <= LAST_YEAR and "01" <= month <= "12" and "01" <= day <= "31"


def _zone(text: str) -> tzinfo:
    if text in _UTC_NAMES:
        return UTC
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    if not offset or offset >= timedelta(hours=24):
        return UTC
    return timezone(-offset if text[0] == "-" else offset)


def _instant(year: int, month: int, day: int, time: _Groups, zone: tzinfo) -> datetime | None:
    """UTC; None for a date that is none. Leap seconds and 24:00 run over into what follows."""
    if not FIRST_YEAR <= year <= LAST_YEAR:
        return None
    hour, minute, second, part = time
    hours, seconds = int(hour or 0), int(second or 0)
    micros = int((part or "0")[:6].ljust(6, "0"))
    over = timedelta()
    if seconds == 60:
        seconds, over = 59, timedelta(seconds=1)
    if hours == 24 and int(minute or 0) == seconds == micros == 0:
        hours, over = 0, timedelta(days=1)
    try:
        local = datetime(year, month, day, hours, int(minute or 0), seconds, micros, zone)
    except ValueError:
        return None
    at = local if zone is UTC else local.astimezone(UTC)
    return at + over if over else at
