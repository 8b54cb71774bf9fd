"""
Prometheus's test notation, read: `load`, `clear` and `eval` lines, run against our engine.

Only what our own checks need is read: native histograms are noted by metric and not loaded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from flatline.errors import QueryRejected
from flatline.series.matching import Matcher, accepts
from flatline.series.promql.evaluate import Matrix, Settings, instant, kind, over, samples
from flatline.series.promql.parse import parse
from flatline.series.promql.tree import Selector, walk
from flatline.series.storage import (
    STALE,
    MemoryStore,
    Series,
    SeriesBuilder,
    each,
    labels_of,
    seconds,
)

Metric = tuple[tuple[str, str], ...]
SETTINGS = Settings(experimental=True)
"""Upstream's runner has the experimental functions switched on."""
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}
_POINT = re.compile(r"\{\{.*?\}\}(?:[+-]\{\{.*?\}\})?(?:x\d+)?|\S+")
_SHORT = re.compile(r"(?P<first>[+-]?[^x+-]+(?:e[+-]?\d+)?)(?P<step>[+-][^x]+)?x(?P<count>\d+)")


def time(text: str) -> float:
    """Seconds of `1h30m`, `15s` or `90`."""
    if re.fullmatch(r"-?[\d.]+", text):
        return float(text)
    sign = -1.0 if text.startswith("-") else 1.0
    parts = re.findall(r"([\d.]+)(ms|[smhdwy])", text)
    return sign * sum(float(count) * _UNITS[unit] for count, unit in parts)


def points(text: str) -> tuple[list[float | None], bool]:
    """Values of the short notation (None is a gap), and whether histograms stand in it."""
    out: list[float | None] = []
    histogram = False
    for point in _POINT.findall(text):
        if point.startswith("{{"):
            histogram = True
        elif point == "_":
            out.append(None)
        elif point == "stale":
            out.append(STALE)
        elif point.startswith("_x"):
            out += [None] * int(point[2:])
        elif found := _SHORT.fullmatch(point):
            first, step = float(found["first"]), float(found["step"] or 0)
            out += [first + step * i for i in range(int(found["count"]) + 1)]
        else:
            out.append(float(point))
    return out, histogram


def metric(text: str) -> tuple[Metric, str]:
    """Labels of `name{a="b"} …` and the text behind them."""
    found = re.match(r'\s*([a-zA-Z_:][\w:.]*)?\s*(\{(?!\{)(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?', text)
    assert found is not None
    if found[1] and not found[2] and re.match(r"\s*[+-]?(inf|nan)\b", text, re.IGNORECASE):
        return (), text
    labels = {"__name__": found[1] or ""}
    quoted = r'"((?:[^"\\]|\\.)*)"'
    for a, b, value in re.findall(rf"(?:{quoted}|([\w.]+))\s*=\s*{quoted}", found[2] or ""):
        labels[a or b] = re.sub(r"\\(.)", r"\1", value)
    bare = re.match(rf"\{{\s*{quoted}\s*[,}}]", found[2] or "")
    if bare:
        labels["__name__"] = bare[1]
    return labels_of(labels), text[found.end() :]


@dataclass
class Eval:
    """One `eval` and what it expects."""

    line: int
    query: str
    start: float
    end: float
    step: float | None
    fails: bool = False
    kind: str = "vector"
    expected: list[tuple[Metric, list[float | None]]] = field(default_factory=list)
    histogram: bool = False
    ordered: bool = False
    grid: tuple[float, float, float] = (0, 0, 1)
    """Start, end and step of an expected range vector."""


@dataclass
class Data:
    """What was loaded since the last `clear`."""

    builder: SeriesBuilder = field(default_factory=SeriesBuilder)
    beyond: list[Metric] = field(default_factory=list)
    """Series with native histograms or start timestamps, which are not loaded."""

    def load(self, interval: float, lines: list[str]) -> None:
        """One `load` block; of two lines for one series the later counts."""
        block: dict[Metric, list[float | None]] = {}
        for line in lines:
            labels, rest = metric(line)
            if rest.startswith("@st"):
                self.beyond.append(labels)
                continue
            values, histogram = points(rest)
            if histogram:
                self.beyond.append(labels)
            else:
                block[labels] = values
        for labels, values in block.items():
            row = self.builder.row(labels)
            for index, value in enumerate(values):
                if value is not None:
                    self.builder.add(row, seconds(index * interval * 1000), value)

    def touched(self, query: str) -> bool:
        """Whether the query reads a series that was not loaded."""
        for part in walk(parse(query)):
            if isinstance(part, Selector):
                matchers = part.matchers
                if part.name is not None:
                    matchers = (Matcher("__name__", "=", part.name), *matchers)
                for labels in map(dict, self.beyond):
                    if all(accepts(m)(labels.get(m.name, "")) for m in matchers):
                        return True
        return False


def evals(text: str) -> Iterator[tuple[Eval, Data]]:
    """Every `eval` of a file with the data it runs on."""
    data = Data()
    for number, block in _blocks(text):
        command, *rest = block
        head = command.split()[0]
        if head == "clear":
            data = Data()
        elif head == "load":
            data.load(time(command.split()[1]), rest)
        elif head == "load_with_nhcb":
            data.load(time(command.split()[1]), rest)
            data.beyond += map(_base, rest)
        else:
            case = _eval(command, number)
            for line in rest:
                _expect(case, line)
            yield case, data


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Each command with the lines that belong to it, and the number of its first."""
    block: list[str] = []
    begun = 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if re.match(r"(clear|load|load_with_nhcb|eval\w*)\b(?!\{)", line):
            if block:
                yield begun, block
            block, begun = [], number
        block.append(line)
    if block:
        yield begun, block


def _base(line: str) -> Metric:
    """The series a classic histogram's buckets are also loaded under."""
    labels = dict(metric(line)[0])
    labels.pop("le", None)
    labels["__name__"] = re.sub(r"_(bucket|count|sum)$", "", labels["__name__"])
    return labels_of(labels)


def _eval(line: str, number: int) -> Eval:
    fails = line.startswith("eval_fail")
    found = re.match(r"eval\w*\s+instant\s+(?:at\s+(\S+)\s+)?(.*)", line)
    if found:
        at = time(found[1] or "0")
        return Eval(number, found[2], at, at, None, fails)
    found = re.match(r"eval\w*\s+range\s+from\s+(\S+)\s+to\s+(\S+)\s+step\s+(\S+)\s+(.*)", line)
    assert found is not None, line
    return Eval(number, found[4], time(found[1]), time(found[2]), time(found[3]), fails)


def _expect(current: Eval, line: str) -> None:
    if line.startswith("expect"):
        words = line.split()
        current.fails |= words[1] == "fail"
        current.ordered |= words[1] == "ordered"
        if words[1] in ("range", "string"):
            current.kind = words[1]
        if words[1] == "range":
            start, end, step = map(time, (words[4], words[6], words[8]))
            current.grid = start, end, step
        return
    if current.kind == "string" or re.match(r"expected_fail", line):
        return
    labels, rest = metric(line)
    values, histogram = points(rest)
    current.histogram |= histogram
    current.expected.append((labels, values))


def outcome(case: Eval, data: Data) -> str:
    """`pass`, `refused: why`, `beyond` (data of a kind that is not read), or what differs."""
    try:
        if data.touched(case.query):
            return "beyond"
        store = MemoryStore(data.builder.build())
        if case.step is not None:
            found = over(case.query, store, case.start, case.end, case.step, SETTINGS)
        elif kind(case.query) == "matrix":
            found = _ragged(samples(case.query, store, case.start, SETTINGS), case.grid)
        elif kind(case.query) == "string":
            return "pass" if case.kind == "string" else "differs: it is a string"
        else:
            found = instant(case.query, store, case.start, SETTINGS)
    except QueryRejected as fault:
        return "pass" if case.fails else f"refused: {fault}"
    if case.fails:
        return f"differs: answered {found.labels} where a failure was expected"
    return _compared(case, found)


def _ragged(series: Series, grid: tuple[float, float, float]) -> Matrix:
    """Samples of a range vector on the grid on which they are expected."""
    times = np.arange(grid[0], grid[1] + grid[2] / 2, grid[2])
    values = np.full((len(series), times.size), np.nan)
    for row, (_, at, column) in enumerate(each(series)):
        places = np.rint((at - grid[0]) / grid[2]).astype(int)
        values[row, places] = column
    return Matrix(series.labels, times, values, ~np.isnan(values))


def _compared(case: Eval, found: Matrix) -> str:
    wanted = {
        labels: values for labels, values in case.expected if any(v is not None for v in values)
    }
    got = {}
    for row, labels in enumerate(found.labels):
        column = zip(found.values[row].tolist(), found.present[row].tolist(), strict=True)
        got[labels] = [value if there else None for value, there in column]
    if set(wanted) != set(got):
        return f"differs: series {sorted(got)} where {sorted(wanted)} were expected"
    if case.ordered and [labels for labels, _ in case.expected] != list(found.labels):
        return "differs: in order"
    for labels, values in wanted.items():
        padded = values + [None] * (len(got[labels]) - len(values))
        if len(padded) != len(got[labels]) or not all(map(_alike, padded, got[labels])):
            return f"differs: {labels} is {got[labels]} where {values} was expected"
    return "pass"


def _alike(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or math.isclose(a, b, rel_tol=1e-6, abs_tol=0.0)
