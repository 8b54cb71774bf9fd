"""What cited evidence says: its numbers with units, times, ranks, GPUs, and words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from flatline.claims.measuring import asked
from flatline.claims.model import Evidence, Known
from flatline.claims.units import COUNTED, NUMBER, converted, number_of, same, unit_named
from flatline.errors import FormatError
from flatline.logs.hostlists import expand

STAMP = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)(?:[T_ ]{1,2}(?P<time>\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?))?"
    r"(?:\s?(?P<zone>Z\b|UTC\b|GMT\b|[+-]\d\d:?\d\d))?"
)
_MEASURED = (
    r"(?!\d|[.,:]\d|\s?(?:%|°|[munµ]?s\b|min\b|h\b|[kMGT]?i?B\b|[kMG]?Hz\b|m?W\b|steps?\b|lines?\b"
    r"|seconds?\b|minutes?\b|hours?\b|watts?\b|times\b))"
)
_LIST = rf"\d{{1,7}}(?:\s?(?:-|–|to|through|, and|,|and|or|&)\s?\d{{1,7}}{_MEASURED})*"
LABELLED = re.compile(
    r"(?i)(?<![A-Za-z0-9])(?<!local)(?<!local[_ -])(?P<label>rank|gpu|task|device|process)(?:e?s)?"
    rf"(?:\s(?:is|was|number|no\.|id)\b)?[\"'\]]?[\s:=#\"'-]{{0,3}}(?P<list>{_LIST})(?![\w.]*\d)"
)
MEASURE = re.compile(
    rf"(?<![\w.])(?P<number>{NUMBER.pattern})"
    r"(?:[\s-]?(?P<unit>%|°[CF]|[A-Za-zµμ]{1,12}(?:/[A-Za-z]{1,8})?))?(?![A-Za-z0-9_])"
)
HOSTLIST = re.compile(r"(?<![\w.-])[A-Za-z][\w.-]*\[[\d,\s-]+\](?:[\w.-]*\w)?")
MOST_HOSTS = 4_096
QUOTED = 8
"""Characters of a quotation that is one: what is shorter may be chance."""
_BEHIND = re.compile(r"([A-Za-z%°µ]+(?:/[A-Za-z]+)?)[\s:=]{1,3}\Z")


@dataclass(frozen=True, slots=True)
class Said:
    """A number of the evidence, its unit where it has one, and the word it stands behind."""

    value: float
    unit: str | None
    behind: str = ""

    @property
    def bare(self) -> bool:
        """Whether it may be said without a unit: what is measured in watts is not just 390."""
        known = unit_named(self.unit)
        return known is None or known.dimension in ("plain", "ratio", COUNTED, f"{COUNTED}/s")


@dataclass(slots=True)
class Spoken:
    """Everything of some evidence that prose may repeat."""

    numbers: list[Said] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)
    dates: set[date] = field(default_factory=set)
    labelled: set[tuple[str, str]] = field(default_factory=set)
    text: str = ""
    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, evidence: Known) -> Spoken:
        spoken = cls()
        parts: list[str] = []
        for name, item in evidence.items():
            words = " \n ".join(_texts(item))
            parts += [words, str(name), *_hosts(words)]
            spoken._add(item, words)
        spoken.text = "\n".join(parts).lower()
        spoken._count(evidence)
        return spoken

    def _add(self, item: Evidence, words: str) -> None:
        value, unit = item.get("value"), item.get("unit")
        number = number_of(str(value)) if not isinstance(value, bool) else None
        if number is not None:
            self.numbers.append(Said(number, unit))
        self.numbers += [Said(float(n), None) for n in _whole_numbers(item)]
        bare = LABELLED.sub(" ", STAMP.sub(" ", words))
        for found in MEASURE.finditer(bare):
            number = number_of(found["number"])
            if number is not None:
                said = found["unit"]
                real = said is not None and unit_named(said) is not None
                behind = _BEHIND.search(bare, max(found.start() - 24, 0), found.start())
                word = behind[1].lower() if behind else ""
                self.numbers.append(Said(number, said if real else None, word))
        self.labelled |= set(labels_in(words))
        place = item.get("place") or {}
        for part in ("rank", "task", "gpu", "device"):
            if place.get(part) is not None:
                self.labelled.add((part, str(place[part])))
        for key in ("at", "start", "end"):
            self._time(str(item.get(key)))
        if item.get("kind") == "query":
            for start, _ in asked(item):
                self._time(start.isoformat())
        for stamp in STAMP.finditer(words):
            self._time(stamp[0].replace(",", "."))

    def _time(self, text: str) -> None:
        try:
            at = datetime.fromisoformat(text.replace("_", "T").removesuffix(" UTC"))
        except ValueError:
            return
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        self.times.append(at)
        self.dates.add(at.date())

    def _count(self, evidence: Known) -> None:
        """How many there are of what has a name."""
        places = [item.get("place") or {} for item in evidence.values()]
        for noun, part in (("host", "host"), ("node", "host"), ("machine", "host"),
                           ("rank", "rank"), ("process", "rank"), ("task", "task")):  # fmt: skip
            self.counts[noun] = len({p[part] for p in places if p.get(part) is not None})
        gpus = {(p.get("host"), p["gpu"]) for p in places if p.get("gpu") is not None}
        self.counts["gpu"] = len(gpus)
        kinds = [item.get("kind") for item in evidence.values()]
        self.counts["line"] = kinds.count("log")
        self.counts["query"] = kinds.count("query")
        self.counts["file"] = self.counts["log"] = len(
            {item.get("source") for item in evidence.values() if item.get("kind") == "log"}
        )

    # --- what prose asks ---

    def number(self, said: str, unit: str | None) -> bool:
        """Whether a number, in a unit where one is named, is among those of the evidence."""
        wanted = unit_named(unit) if unit else None
        if wanted is None or wanted.dimension == "count":
            return any(self._same(said, one.value) for one in self.numbers if one.bare)
        for one in self.numbers:
            shown = converted(one.value, one.unit, unit)
            if shown is not None and self._same(said, shown):
                return True
            if one.behind == str(unit).lower() and self._same(said, one.value):
                return True  # `tok/s 148486`
        return False

    @staticmethod
    def _same(said: str, value: float) -> bool:
        return same(said, value, exact=value == round(value) if abs(value) < 1e15 else False)

    def seconds(self, total_s: float) -> bool:
        """Whether a length of time of several parts (`1 min 5 s`) is one of the evidence's."""
        spans = (converted(one.value, one.unit, "s") for one in self.numbers)
        return any(span is not None and abs(span - total_s) <= 0.5 for span in spans)

    def time(self, found: re.Match[str]) -> bool:
        """Whether a stamp or a clock time (groups date, time, zone) is one of the evidence's."""
        day, clock, zone = found["date"], found["time"], found["zone"]
        if clock is None:
            return date.fromisoformat(day) in self.dates
        if zone and zone not in ("Z", "UTC", "GMT"):
            moment = datetime.fromisoformat(
                f"{day or '2000-01-01'}T{clock.replace(',', '.')}{zone}"
            )
            shifted = moment.astimezone(UTC)
            day, clock = (f"{shifted:%Y-%m-%d}" if day else None), f"{shifted:%H:%M:%S}"
        return any(_is_at(at, day, clock) for at in self.times)

    def quotes(self, words: str) -> bool:
        """Whether a quotation stands in the evidence letter by letter."""
        said = " ".join(words.lower().split())
        return len(said) >= QUOTED and said in " ".join(self.text.split())

    def word(self, token: str) -> bool:
        """Whether a word stands in the evidence as a word of its own."""
        return re.search(
            rf"(?<![a-z0-9_]){re.escape(token.lower())}(?![a-z0-9_])", self.text
        ) is not None  # fmt: skip


def labels_in(text: str) -> Iterator[tuple[str, str]]:
    """`ranks 0-2 and 5` as (rank, 0) (rank, 1) (rank, 2) (rank, 5)."""
    for found in LABELLED.finditer(text):
        label = found["label"].lower()
        for number in listed(found["list"]):
            yield ("task" if label == "process" else label), number


def listed(text: str) -> Iterator[str]:
    """The numbers of a list with ranges; of a range too long to mean it, its ends."""
    for found in re.finditer(r"(\d{1,7})(?:\s?(?:-|–|to|through)\s?(\d{1,7}))?", text):
        first, last = int(found[1]), int(found[2] or found[1])
        if first <= last <= first + 65_536:
            yield from map(str, range(first, last + 1))
        else:
            yield from (str(first), str(last))


def _texts(item: Evidence) -> Iterator[str]:
    for key in ("text", "query", "pointer", "source", "unit", "method", "kind"):
        if item.get(key):
            yield str(item[key])
    if isinstance(item.get("value"), str):
        yield str(item["value"])
    for part, value in (item.get("place") or {}).items():
        if value is not None:
            yield f"{part} {value}"
    searched = item.get("searched") or {}
    yield from map(str, searched.get("patterns", ()))
    yield from map(str, searched.get("files", ()))


def _hosts(words: str) -> Iterator[str]:
    """The hosts of lists, each by its name."""
    for found in HOSTLIST.finditer(words):
        try:
            yield from expand(found[0])[:MOST_HOSTS]
        except FormatError:
            continue


def _whole_numbers(item: Evidence) -> Iterator[int]:
    searched = item.get("searched") or {}
    every: list[object] = [item.get("line"), searched.get("lines")]
    if searched.get("files"):
        every.append(len(searched["files"]))
    params = item.get("params")
    every += list(params.values()) if isinstance(params, Mapping) else []
    yield from (n for n in every if isinstance(n, int) and not isinstance(n, bool))


def _is_at(at: datetime, day: str | None, clock: str) -> bool:
    """To the minute or the second, as it was written."""
    if day and f"{at:%Y-%m-%d}" != day:
        return False
    whole, _, part = clock.replace(",", ".").partition(".")
    if whole.count(":") == 1:
        return f"{at:%H:%M}" == whole
    same_second = f"{at:%H:%M:%S}" == whole
    return same_second and (not part or f"{at:%f}".startswith(part.rstrip("0")[:6]))
