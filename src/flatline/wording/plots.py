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
NARROWEST = 16
"""Columns that labels and a plot have at least."""


def over_time(found: Matrix, step_s: float, width: int, *, unicode: bool) -> list[str]:
    """A line for each series: labels, last, least and greatest value, and its shape."""
    if not found.labels:
        return []
    kept = _farthest(found)
    labels = [found.labels[row] for row in kept]
    shared = _shared(found.labels)
    low, high = _scale(found, kept)
    texts = [_apart(own, shared) for own in labels]
    numbers = [("last", "min", "max"), *(_numbers(found, row) for row in kept)]
    taken = max(map(cells, texts)) + sum(
        2 + max(map(len, one)) for one in zip(*numbers, strict=True)
    )
    parts = min(max(width - taken - 2, NARROWEST), PLOT)
    rows = [(_named(shared), *numbers[0], "")]
    for row, text, three in zip(kept, texts, numbers[1:], strict=True):
        rows.append((text, *three, _line(found, row, (low, high), parts, unicode=unicode)))
    lines = _under_title(rows, width)
    left = len(found.labels) - SHOWN
    lines += [f"and {left:,} more, whose means are nearer to the median"] if left > 0 else []
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
    shared = _shared(found.labels)
    rows = [(_named(shared), f"at {clock(float(found.times[0]))}")]
    for row in range(min(len(found.labels), SHOWN)):
        value = number(float(found.values[row, 0]))
        rows.append((_apart(found.labels[row], shared), value))
    return _under_title(rows, width) + _more(len(found.labels)) if found.labels else []


def of_samples(found: Series, width: int) -> list[str]:
    """A line for each series: labels, how many samples, the first and the last."""
    shared = _shared(found.labels)
    rows: list[tuple[str, ...]] = [(_named(shared), "samples", "first", "", "last", "")]
    for row in range(min(len(found), SHOWN)):
        part = slice(found.offsets[row], found.offsets[row + 1])
        times, values = found.times[part].tolist(), found.values[part].tolist()
        ends = [part for i in (0, -1) for part in (clock(times[i]), number(values[i]))]
        rows.append((_apart(found.labels[row], shared), str(len(values)), *ends))
    return _under_title(rows, width) + _more(len(found)) if len(found) else []


def _farthest(found: Matrix) -> list[int]:
    """The rows to show: all, or those whose means lie farthest from the median of means."""
    count = len(found.labels)
    if count <= SHOWN:
        return list(range(count))
    means = []
    for row in range(count):
        values = found.values[row][found.present[row]].tolist()
        finite = [v for v in values if math.isfinite(v)]
        means.append(sum(finite) / len(finite) if len(finite) == len(values) else math.inf)
    middle = sorted(means)[count // 2]
    order = sorted(range(count), key=lambda row: -abs(means[row] - middle))
    return sorted(order[:SHOWN])


def _shared(labels: Sequence[Labels]) -> Labels:
    """The labels all series have alike."""
    common = set(labels[0]) if labels else set()
    for own in labels:
        common &= set(own)
    return tuple(sorted(common))


def _named(shared: Labels) -> str:
    return spelled(_ordered(shared)) if shared else ""


def _ordered(labels: Iterable[tuple[str, str]]) -> Labels:
    """Those that say where it was first: what follows is cut before them."""
    places = {name: at for at, name in enumerate(PLACES)}
    return tuple(sorted(labels, key=lambda label: places.get(label[0], len(places))))


def _apart(labels: Labels, shared: Labels) -> str:
    """What tells a series from the others."""
    own = _ordered(label for label in labels if label not in shared)
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


def _scale(found: Matrix, rows: Sequence[int]) -> tuple[float, float]:
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
