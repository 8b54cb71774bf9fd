"""
Hosts whose exporter writes a number in another unit than its metric is of.

Versions of one exporter differ between the hosts of a site: a share as per cent, watts as
milliwatts, megahertz as hertz, or hertz as megahertz; amd_smi_exporter over the newer of AMD's
libraries gave watts and degrees where it gives millionths and thousandths over the older.  Where
what a host reads is beyond what any card can be, and one such factor explains it, it is divided by
that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flatline.model import Gap
from flatline.series.storage import NAME, Series
from flatline.vocab import Exporter


@dataclass(frozen=True, slots=True)
class Range:
    """What the highest reading of a host's cards may be, in the signal's unit, and the factors by
    which it may be off."""

    most: float
    factors: tuple[float, ...]
    least: float = 0.02
    """Of the bound, what is left must be: a factor that leaves less explains nothing."""
    floor: float = 0.0
    """What the highest reading of a card that is there is at least."""


RANGES = {
    "gpu_sm_active_ratio": Range(1.5, (100.0,)),
    "gpu_engine_active_ratio": Range(1.5, (100.0,)),
    "gpu_utilization_ratio": Range(1.5, (100.0,)),
    "gpu_power_watts": Range(4e3, (1e3, 1e6, 1e-3, 1e-6), 0.005, floor=0.1),
    "gpu_power_limit_watts": Range(4e3, (1e3, 1e6, 1e-3, 1e-6), 0.005, floor=0.1),
    "gpu_temperature_celsius": Range(200.0, (1e3, 1e-3), 0.05, floor=1.0),
    "gpu_sm_clock_hertz": Range(1e10, (1e3, 1e6, 1e-3, 1e-6), floor=5e7),
    "gpu_memory_used_bytes": Range(2.0**42, (2.0**10, 2.0**20, 2.0**30), 1e-4),
    "gpu_memory_total_bytes": Range(2.0**42, (2.0**10, 2.0**20, 2.0**30), 1e-4),
}
"""Far from what is sold: a card draws some 1,400 W at most and some watts at rest, is no colder
than the air it is cooled by, clocks below 3 GHz, at rest above 100 MHz, and holds less than a
terabyte."""


def in_their_unit(series: Series, exporters: Sequence[Exporter]) -> tuple[Series, list[Gap]]:
    """The series with such numbers in their metric's unit, and the gaps that say so."""
    carried = {carrier.metric: (exporter, signal, carrier.scale)
               for exporter in exporters for signal, carrier in exporter.carriers.items()
               if signal in RANGES}  # fmt: skip
    rows: dict[tuple[str, str, str], list[int]] = {}
    for row, labels in enumerate(series.labels):
        of = dict(labels)
        exporter, signal, _ = carried.get(of.get(NAME, ""), (None, "", 1.0))
        rule = None if exporter is None else exporter.labels.get("host")
        if exporter is not None and rule is not None and (native := of.get(rule.label)):
            rows.setdefault((of[NAME], signal, exporter.host(native)), []).append(row)
    values, gaps = series.values, list[Gap]()
    for (metric, signal, host), own in rows.items():
        factor = _factor(series, own, carried[metric][2], RANGES[signal])
        if factor is None:
            continue
        values = values.copy() if values is series.values else values
        for row in own:
            values[series.offsets[row] : series.offsets[row + 1]] /= factor
        gaps.append(told(metric, factor, host))
    return Series(series.labels, series.times, values, series.offsets), gaps


def _factor(series: Series, rows: Sequence[int], scale: float, known: Range) -> float | None:
    """By what the highest reading of a host is off; None where it may be right or nothing fits."""
    highest = 0.0
    for row in rows:
        part = series.values[series.offsets[row] : series.offsets[row + 1]]
        finite = part[np.isfinite(part)]
        highest = max(highest, float(finite.max()) * scale if finite.size else 0.0)
    return factor_of(highest, known)


def factor_of(highest: float, known: Range) -> float | None:
    """By what a highest reading is off; None where it may be right, or nothing fits."""
    if known.floor <= highest <= known.most or highest <= 0:
        return None
    least = max(known.floor, known.least * known.most)
    fits = [f for f in known.factors if least <= highest / f <= known.most]
    return fits[0] if fits else None


def told(metric: str, factor: float, host: str) -> Gap:
    """What is said of a host whose readings were divided by that."""
    how = f"divided by {factor:,.0f}" if factor > 1 else f"multiplied by {1 / factor:,.0f}"
    return Gap(f"{metric} in one unit", f"beyond what any card can be; {how}", host)
