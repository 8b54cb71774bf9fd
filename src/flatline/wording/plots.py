"""
Series in columns of a terminal: a line each, with its shape over time.

All lines share one scale, so that a series that differs from its peers stands out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from flatline.wording.columns import cells
from flatline.wording.untrusted import neutral

if TYPE_CHECKING:
    from flatline.series.promql.evaluate import Matrix
    from flatline.series.storage import Labels, Series

SHOWN = 24
"""Series shown before the rest is counted: a terminal's page."""
PLOT = 40
LEVELS, PLAIN_LEVELS = "▁▂▃▄▅▆▇█", "_.-=+*#%"
OFF, PLAIN_OFF = "×", "x"
"""Stands for a value that is not finite."""
PLACES = (
    "host", "Hostname", "hostname", "node", "nodename", "instance", "gpu", "GPU", "gpu_id",
    "rank", "task", "device", "minor_number", "UUID", "uuid", "pci_bus_id",
)  # fmt: skip
"""Labels that say which host, GPU, rank or device, in the order in which a person asks."""
ALWAYS = ("__name__", "gpu", "GPU", "gpu_id")
"""Labels that are shown wherever they differ, though others may tell the series apart."""
NARROWEST = 16
"""Columns that labels and a plot have at least."""


def over_time(found: Matrix, step_s: float, width: int, *, unicode: bool) -> list[str]:
    """A line for each series: labels, last, least and greatest value, and its shape."""
    if not found.labels:
        return []
    kept = farthest(found, SHOWN)
    shared, names = shared_labels(found.labels), telling(found.labels)
    low, high = scale(found, kept)
    texts = [_apart(found.labels[row], names) for row in kept]
    numbers = [("last", "min", "max"), *(_numbers(found, row) for row in kept)]
    taken = max(map(cells, texts)) + sum(
        2 + max(map(len, one)) for one in zip(*numbers, strict=True)
    )
    parts = min(max(width - taken - 2, NARROWEST), PLOT)
    rows = [(_named(shared), *numbers[0], "")]
    for row, text, three in zip(kept, texts, numbers[1:], strict=True):
        rows.append((text, *three, _line(found, row, (low, high), parts, unicode=unicode)))
    lines = _under_title(rows, width)
    lines += _rest(found, kept)
    lines.append(_span(found, step_s))
    if math.isfinite(low):
        lines.append(f"every line from {number(low)} to {number(high)}")
    return lines


def _numbers(found: Matrix, row: int) -> tuple[str, str, str]:
    """The last value of a series, and the least and greatest that are finite."""
    values = found.values[row][found.present[row]].tolist()
    finite = [v for v in values if math.isfinite(v)] or [math.nan]
    return number(values[-1]), number(min(finite)), number(max(finite))


def at_once(found: Matrix, width: int) -> list[str]:
    """A line for each series: labels and value, in the order of the answer."""
    if not found.labels:
        return []
    kept, names = farthest(found, SHOWN), telling(found.labels)
    rows = [(_named(shared_labels(found.labels)), f"at {clock(float(found.times[0]))}")]
    rows += [
        (_apart(found.labels[row], names), number(float(found.values[row, 0]))) for row in kept
    ]
    return _under_title(rows, width) + _rest(found, kept)


def of_samples(found: Series, width: int) -> list[str]:
    """A line for each series: labels, how many samples, the first and the last."""
    shared, names = shared_labels(found.labels), telling(found.labels)
    rows: list[tuple[str, ...]] = [(_named(shared), "samples", "first", "", "last", "")]
    for row in range(min(len(found), SHOWN)):
        part = slice(found.offsets[row], found.offsets[row + 1])
        times, values = found.times[part].tolist(), found.values[part].tolist()
        ends = [part for i in (0, -1) for part in (clock(times[i]), number(values[i]))]
        rows.append((_apart(found.labels[row], names), str(len(values)), *ends))
    return _under_title(rows, width) + _more(len(found)) if len(found) else []


def farthest(found: Matrix, most: int) -> list[int]:
    """The rows to show: all, or those with the least and the greatest value and those whose means
    lie farthest from the median of means."""
    count = len(found.labels)
    if count <= most:
        return list(range(count))
    means, lows, highs = [], [], []
    for row in range(count):
        values = found.values[row][found.present[row]].tolist()
        finite = [v for v in values if math.isfinite(v)]
        means.append(sum(finite) / len(finite) if len(finite) == len(values) > 0 else math.inf)
        lows.append(min(finite, default=math.inf))
        highs.append(max(finite, default=-math.inf))
    middle = sorted(means)[count // 2]
    order = [lows.index(min(lows)), highs.index(max(highs))]
    order += sorted(range(count), key=lambda row: -abs(means[row] - middle))
    return sorted(list(dict.fromkeys(order))[:most])


def _rest(found: Matrix, kept: Sequence[int]) -> list[str]:
    left = rest(found, kept)
    if not left:
        return []
    low, high = scale(found, left)
    return [f"and {len(left):,} more, from {number(low)} to {number(high)}"]


def rest(found: Matrix, kept: Sequence[int]) -> list[int]:
    """The rows that are not shown."""
    return sorted(set(range(len(found.labels))) - set(kept))


def shared_labels(labels: Sequence[Labels]) -> Labels:
    """The labels all series have alike."""
    common = set(labels[0]) if labels else set()
    for own in labels:
        common &= set(own)
    return tuple(sorted(common))


def telling(labels: Sequence[Labels]) -> tuple[str, ...]:
    """The names of the fewest labels that tell all series apart, found one after the other, those
    that say where a series was first; the metric's name and the GPU wherever they differ."""
    shared = set(shared_labels(labels))
    differing = {key: "" for own in labels for key, value in own if (key, value) not in shared}
    series = [dict(own) for own in labels]
    names: list[str] = []
    apart = 1
    for name, _ in ordered(differing.items()):
        told = len({tuple(own.get(key) for key in (*names, name)) for own in series})
        if told > apart or name in ALWAYS:
            names.append(name)
            apart = told
    return tuple(names)


def _named(shared: Labels) -> str:
    return spelled(ordered(shared)) if shared else ""


def ordered(labels: Iterable[tuple[str, str]]) -> Labels:
    """Those that say where it was first: what follows is cut before them."""
    places = {name: at for at, name in enumerate(PLACES)}
    return tuple(sorted(labels, key=lambda label: places.get(label[0], len(places))))


def _apart(labels: Labels, names: Sequence[str]) -> str:
    """What tells a series from the others."""
    own = ordered(label for label in labels if label[0] in names)
    if any(key == "__name__" for key, _ in own):
        return spelled(own)
    return neutral(" ".join(f"{key}={value}" for key, value in own)) if own else "{}"


def _under_title(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """The columns, with what all series share on a line of its own above them."""
    title, *others = rows[0]
    lines = columns([("", *others), *rows[1:]], width)
    return [_cut(title, width), *lines] if title else lines


def clock(at: float) -> str:
    """`2026-03-01 04:12:55Z`, with milliseconds where there are any."""
    moment = datetime.fromtimestamp(round(at, 3), UTC)
    spec = "milliseconds" if moment.microsecond else "seconds"
    return moment.isoformat(" ", spec).replace("+00:00", "Z")


def spelled(labels: Labels) -> str:
    """`name{label="value"}`, steering characters spelled out."""
    name = next((value for key, value in labels if key == "__name__"), "")
    inside = ", ".join(f'{key}="{value}"' for key, value in labels if key != "__name__")
    return neutral(f"{name}{{{inside}}}" if inside or not name else name)


def number(value: float) -> str:
    """Six digits, as people read them."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return f"{value:.6g}"


def columns(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Rows in columns, numbers to the right; labels are cut at their end where they must."""
    wide = [max(cells(row[at]) for row in rows) for at in range(len(rows[0]))] if rows else []
    rest = sum(wide[1:]) + 2 * len(wide[1:])
    first = max(min(wide[0], width - rest), NARROWEST) if wide else 0
    lines = []
    for label, *others in rows:
        text = _cut(label, first)
        text += " " * (first - cells(text))
        for at, cell in enumerate(others, 1):
            last = at == len(others) and len(others) > 3
            text += "  " + (cell if last else cell.rjust(wide[at]))
        lines.append(text.rstrip())
    return lines


def _cut(text: str, width: int) -> str:
    return text if cells(text) <= width else text[: width - 3] + "..."


def _more(count: int) -> list[str]:
    return [f"and {count - SHOWN:,} more"] if count > SHOWN else []


def scale(found: Matrix, rows: Sequence[int]) -> tuple[float, float]:
    """The least and the greatest finite value of these rows; NaN where there is none."""
    values = found.values[list(rows)][found.present[list(rows)]].tolist()
    finite = [v for v in values if math.isfinite(v)]
    return (min(finite), max(finite)) if finite else (math.nan, math.nan)


def _span(found: Matrix, step_s: float) -> str:
    first, last = (clock(float(found.times[at])) for at in (0, -1))
    return f"{first} to {last} every {number(step_s)} s"


def _line(
    found: Matrix, row: int, scale: tuple[float, float], parts: int, *, unicode: bool
) -> str:
    """The means of equal parts of the range; a blank where there is nothing."""
    levels, off = (LEVELS, OFF) if unicode else (PLAIN_LEVELS, PLAIN_OFF)
    size = found.times.size
    parts = min(size, parts)
    low, high = scale
    out = []
    for part in range(parts):
        span = slice(part * size // parts, (part + 1) * size // parts)
        values = found.values[row][span][found.present[row][span]].tolist()
        if not values:
            out.append(" ")
        elif not all(map(math.isfinite, values)):
            out.append(off)
        else:
            share = (sum(values) / len(values) - low) / (high - low) if high > low else 0.0
            out.append(levels[min(int(share * len(levels)), len(levels) - 1)])
    return "".join(out).rstrip()
