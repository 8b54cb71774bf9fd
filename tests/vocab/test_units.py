"""One host's exporter writes numbers in another unit than those of the others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from flatline.sources.metrics import MetricsSource

T0 = 1_700_000_000
OFF = "n2"
UTIL = "nvidia_smi_utilization_gpu_ratio"
HERTZ = "nvidia_smi_clocks_current_sm_clock_hz"
ACTIVE, POWER, CLOCK, USED, TEMP = (
    "DCGM_FI_PROF_SM_ACTIVE",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_SM_CLOCK",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_GPU_TEMP",
)


def labels(metric: str, host: str) -> str:
    if metric in (UTIL, HERTZ):
        return f'instance="{host}:9835",uuid="GPU-{host}"'
    return f'Hostname="{host}",gpu="0",UUID="GPU-{host}"'


def read(
    folder: Path, metric: str, signal: str, values: Mapping[str, float]
) -> tuple[dict[str, float], list[tuple[str, str | None, str]]]:
    """What is read of each host in the signal's unit, and the gaps that tell of a unit."""
    file = folder / "m.prom"
    file.write_text("".join(
        f"{metric}{{{labels(metric, host)}}} {value} {(T0 + 15 * n) * 1000}\n"
        for host, value in values.items() for n in range(6)
    ))  # fmt: skip
    source = MetricsSource([(file, file.name)])
    rows = source.ask(signal).rows
    gaps = [(gap.need, gap.where, gap.reason) for gap in source.gaps if "unit" in gap.need]
    return {str(row.place.host): row.last for row in rows}, gaps


@pytest.mark.parametrize(
    ("metric", "signal", "off", "right", "native"),
    [
        (UTIL, "gpu_utilization_ratio", 27, 0.27, 0.31),
        (ACTIVE, "gpu_sm_active_ratio", 88.5, 0.885, 0.9),
        (POWER, "gpu_power_watts", 640e3, 640.0, 650.0),
        (POWER, "gpu_power_watts", 640e-6, 640.0, 650.0),
        (TEMP, "gpu_temperature_celsius", 64e3, 64.0, 61.0),
        (TEMP, "gpu_temperature_celsius", 0.064, 64.0, 61.0),
        (CLOCK, "gpu_sm_clock_hertz", 1.98e9, 1.98e9, 1965.0),
        (CLOCK, "gpu_sm_clock_hertz", 1.98e6, 1.98e9, 1965.0),
        (HERTZ, "gpu_sm_clock_hertz", 1980, 1.98e9, 1.965e9),
        (HERTZ, "gpu_sm_clock_hertz", 1.98e6, 1.98e9, 1.965e9),
        (USED, "gpu_memory_used_bytes", 120 * 2**30, 120.0 * 2**30, 118 * 2**10),
        (USED, "gpu_memory_used_bytes", 120 * 2**20, 120.0 * 2**30, 118 * 2**10),
    ],
    ids=[
        "per cent",
        "per cent of activity",
        "mW",
        "MW",
        "m°C",
        "k°C",
        "Hz",
        "kHz",
        "MHz as Hz",
        "kHz as Hz",
        "bytes",
        "KiB",
    ],
)
def test_it_is_read_in_the_unit_of_its_metric(
    tmp_path: Path, metric: str, signal: str, off: float, right: float, native: float
) -> None:
    """With a gap that names the host; the others stay as they are."""
    scale = {CLOCK: 1e6, USED: 2.0**20}.get(metric, 1.0)
    found, gaps = read(tmp_path, metric, signal, {"n1": native, OFF: off, "n3": native})

    assert found == pytest.approx({"n1": native * scale, OFF: right, "n3": native * scale})
    ((need, where, reason),) = gaps
    assert (need, where) == (f"{metric} in one unit", OFF)
    assert ("multiplied by" if off < right else "divided by") in reason or scale > 1


def test_each_host_by_its_own_factor(tmp_path: Path) -> None:
    """One in mW, one in µW."""
    values = {"n1": 640.0, "n2": 640e3, "n3": 640e6}
    found, gaps = read(tmp_path, POWER, "gpu_power_watts", values)

    assert found == pytest.approx(dict.fromkeys(values, 640.0))
    assert [(where, reason.rpartition(" ")[2]) for _, where, reason in gaps] == [
        ("n2", "1,000"), ("n3", "1,000,000"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "signal", "value"),
    [
        (UTIL, "gpu_utilization_ratio", 1.0),
        (UTIL, "gpu_utilization_ratio", 1.4),
        (UTIL, "gpu_utilization_ratio", 2.0),
        (UTIL, "gpu_utilization_ratio", 5e4),
        (POWER, "gpu_power_watts", 1400.0),
        (POWER, "gpu_power_watts", 3900.0),
        (POWER, "gpu_power_watts", 9e12),
        (CLOCK, "gpu_sm_clock_hertz", 2985.0),
        (CLOCK, "gpu_sm_clock_hertz", 1.8e18),
        (HERTZ, "gpu_sm_clock_hertz", 1.32e8),
        (HERTZ, "gpu_sm_clock_hertz", 19.0),
        (USED, "gpu_memory_used_bytes", 280 * 2**10),
        (TEMP, "gpu_temperature_celsius", 105.0),
        ("DCGM_FI_DEV_MEM_CLOCK", "gpu_memory_clock_hertz", 64e9),
    ],
    ids=["all of it", "a little above", "less than any factor leaves", "far beyond a share",
         "the most that is sold", "above that", "far beyond a power", "the fastest clock",
         "far beyond a clock", "a clock at rest", "far below a clock",
         "the largest memory", "a hot card", "a signal without a range"],
)  # fmt: skip
def test_near_misses(tmp_path: Path, metric: str, signal: str, value: float) -> None:
    """In range, or off by no such factor: a host is read as it wrote."""
    megahertz = (CLOCK, "DCGM_FI_DEV_MEM_CLOCK")
    scale = 1e6 if metric in megahertz else {USED: 2.0**20}.get(metric, 1.0)
    usual = {CLOCK: 1500.0, HERTZ: 1.5e9}.get(metric, 1.0)
    found, gaps = read(tmp_path, metric, signal, {"n1": usual, OFF: value})

    assert found[OFF] == pytest.approx(value * scale)
    assert gaps == []


def test_an_index_in_a_label_that_was_passed_on_in_lower_case(tmp_path: Path) -> None:
    """amd_smi_exporter calls each metric's label by the metric; a newer library gives it watts."""
    file = tmp_path / "m.prom"
    file.write_text("".join(
        f'{metric}{{{label}="{gpu}",instance="n1:2021",productname="MI250X"}} {value}'
        f" {(T0 + 15 * n) * 1000}\n"
        for metric, label, value in (("amd_gpu_SCLK", "gpu_sclk", 1.65e9),
                                     ("amd_gpu_power", "gpu_power", 480))
        for gpu in range(2) for n in range(6)
    ))  # fmt: skip
    source = MetricsSource([(file, file.name)])
    found = {signal: [(row.place.gpu, row.last) for row in source.ask(signal).rows]
             for signal in ("gpu_sm_clock_hertz", "gpu_power_watts")}  # fmt: skip

    assert found["gpu_sm_clock_hertz"] == [("0", 1.65e9), ("1", 1.65e9)]
    assert found["gpu_power_watts"] == [("0", pytest.approx(480)), ("1", pytest.approx(480))]
