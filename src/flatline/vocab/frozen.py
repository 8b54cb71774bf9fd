"""
Hosts whose exporter went on serving one old reading.

A collector that died leaves its last page: a hang behind it looks like work.  Where the page says
that GPUs were busy, and nothing on it moves, what was served again is left out, as if the exporter
had fallen silent; an idle card may truly stand still.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from flatline.model import Gap
from flatline.series.quality import STILL_SAMPLES, Sampled, longest_still, stood_still
from flatline.series.storage import NAME, Floats, Series, each
from flatline.signals import ACTIVITY, RESTLESS
from flatline.vocab import Exporter

BUSY = 0.2
"""Of the time a kernel ran, or of the SMs, by every reading served again: a fifth is no card at
rest, and no card at work draws the same power to the last digit for minutes."""
NOISY = ("gpu_power_watts", "gpu_energy_joules_total", "gpu_sm_active_ratio")
"""One of these must be read: memory and clocks of a card at work may hold."""
CHANGES = 0.8
"""Of the samples: power is read to the milliwatt, and differs each time."""
Span = tuple[float, float]
Read = tuple[str, Floats, Floats]


class Frozen:
    """What stood still of each exporter's hosts."""

    def __init__(self, series: Series, exporters: Sequence[Exporter]) -> None:
        self._series = series
        self._carried: dict[str, list[tuple[Exporter, str, float]]] = {}
        for exporter in exporters:
            for signal, carrier in exporter.carriers.items():
                told = exporter, signal, carrier.scale
                self._carried.setdefault(carrier.metric, []).append(told)
        self.gaps: list[Gap] = []
        self._spans: dict[str, dict[str, Span]] = {}
        for name, hosts in self._by_host().items():
            self._look(name, hosts)

    @property
    def late(self) -> frozenset[str]:
        """The exporters that fell silent so: another one is asked first."""
        return frozenset(name for name, spans in self._spans.items() if spans)

    def spans(self, exporter: str) -> Mapping[str, Span]:
        """When each host of an exporter was served an old page that is to be left out."""
        return self._spans.get(exporter, {})

    def without(self) -> Series:
        """The series without what was served again."""
        kept = np.ones(len(self._series.times), dtype=bool)
        for row, labels in enumerate(self._series.labels):
            of = dict(labels)
            for exporter, *_ in self._carried.get(of.get(NAME, ""), ()):
                span = self._spans[exporter.name].get(_host(exporter, of) or "")
                if span is not None:
                    part = slice(self._series.offsets[row], self._series.offsets[row + 1])
                    times = self._series.times[part]
                    kept[part] &= (times <= span[0]) | (times >= span[1])
        ends = np.concatenate(([0], np.cumsum(kept)))
        return Series(self._series.labels, self._series.times[kept], self._series.values[kept],
                      ends[self._series.offsets])  # fmt: skip

    def _look(self, name: str, hosts: Mapping[str, Sequence[Read]]) -> None:
        moves = {host: of for host, read in hosts.items() if (of := _of(read, RESTLESS))}
        beside = stood_still(moves)
        spans = self._spans.setdefault(name, {})
        for host, read in hosts.items():
            busy = _of(read, ACTIVITY)
            every = [(times, values) for _, times, values in read]
            noisy = _of(read, NOISY)
            still = longest_still(every) if busy and noisy else None
            if still is not None and _busy(busy, still) and _restless(noisy, still):
                spans[host] = _whole(every, still)
                beside.setdefault(host, still)
        for host, (start, end) in beside.items():
            where = "while GPUs work" if host in spans else "on other hosts"
            self.gaps.append(Gap(
                f"{name} metrics of every host at every time",
                f"nothing that moves {where} moved from {_clock(start)} to {_clock(end)} UTC: an"
                " old reading, served again" + ("; left out" if host in spans else ""),
                host,
            ))  # fmt: skip

    def _by_host(self) -> dict[str, dict[str, list[Read]]]:
        """Signal, times and values of every series, by exporter and host."""
        found: dict[str, dict[str, list[Read]]] = {}
        for labels, times, values in each(self._series):
            of = dict(labels)
            for exporter, signal, scale in self._carried.get(of.get(NAME, ""), ()):
                host = _host(exporter, of)
                if host is not None:
                    hosts = found.setdefault(exporter.name, {})
                    hosts.setdefault(host, []).append((signal, times, values * scale))
        return found


def _of(read: Sequence[Read], signals: Sequence[str]) -> list[Sampled]:
    return [(times, values) for signal, times, values in read if signal in signals]


def _host(exporter: Exporter, of: Mapping[str, str]) -> str | None:
    rule = exporter.labels.get("host")
    native = None if rule is None else of.get(rule.label)
    return exporter.host(native) if native else None


def _busy(series: Sequence[Sampled], still: Span) -> bool:
    """Whether every GPU that was read then was at work by all that was read of it."""
    read = [values[(times >= still[0]) & (times <= still[1])] for times, values in series]
    told = [float(values[-1]) for values in read if len(values)]
    return bool(told) and min(told) >= BUSY


def _restless(series: Sequence[Sampled], still: Span) -> bool:
    """Whether what is noisy changed from one sample to the next as long as it was read: an
    exporter that rounds, or a reading that truly holds, shows one value for several."""
    moved = known = 0
    for times, values in series:
        outside = values[(times < still[0]) | (times > still[1])]
        moved += int(np.count_nonzero(np.diff(outside)))
        known += max(0, len(outside) - 1)
    return known >= STILL_SAMPLES * len(series) and moved >= CHANGES * known


def _whole(series: Sequence[Sampled], still: Span) -> Span:
    """To the end of what was served, where nothing moved again."""
    last = max(float(times[-1]) for times, _ in series if len(times))
    return (still[0], np.inf) if still[1] >= last else still


def _clock(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%H:%M:%S}"
