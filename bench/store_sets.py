"""
A cluster's metrics as exporters say them, made up: the sets the store is measured on.

Names and digits are those of dcgm-exporter and node_exporter.  Of 40 metrics of a GPU some twenty
are counters of errors and limits, which hardly ever move, and the rest move as a training run
moves them: temperatures and clocks by a step now and then, power and the PROF ratios at every
scrape, energy without end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flatline.series.matching import Matcher
from flatline.series.storage import Floats, Ints, Labels, Series, labels_of

START_S = 1_795_000_000.0
STEP_S = 15.0
CONSTANT = {
    "DCGM_FI_DEV_XID_ERRORS": 0, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 0,
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": 0, "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": 0,
    "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL": 3, "DCGM_FI_DEV_ROW_REMAP_FAILURE": 0,
    "DCGM_FI_DEV_ROW_REMAP_PENDING": 0, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": 0,
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": 1, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 0,
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": 0,
    "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": 0,
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": 0,
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 0,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0, "DCGM_FI_DEV_MAX_SM_CLOCK": 1980,
    "DCGM_FI_DEV_MEM_CLOCK": 2619, "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": 700,
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": 700, "DCGM_FI_DEV_FB_TOTAL": 81559,
    "DCGM_FI_DEV_FB_RESERVED": 551, "DCGM_FI_DEV_THERMAL_VIOLATION": 0,
}  # fmt: skip
STEPPED = {
    "DCGM_FI_DEV_GPU_TEMP": 61, "DCGM_FI_DEV_MEMORY_TEMP": 74, "DCGM_FI_DEV_GPU_UTIL": 97,
    "DCGM_FI_DEV_MEM_COPY_UTIL": 48, "DCGM_FI_DEV_FB_USED": 71_204, "DCGM_FI_DEV_FB_FREE": 9_804,
}  # fmt: skip
NOISY = {
    "DCGM_FI_DEV_POWER_USAGE": (640.0, 12.0, 3), "DCGM_FI_PROF_GR_ENGINE_ACTIVE": (0.97, 0.01, 6),
    "DCGM_FI_PROF_SM_ACTIVE": (0.83, 0.01, 6), "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": (0.41, 0.01, 6),
    "DCGM_FI_PROF_DRAM_ACTIVE": (0.52, 0.01, 6), "DCGM_FI_DEV_SM_CLOCK": (1755.0, 9.0, 0),
}  # fmt: skip
COUNTED = {
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 9.6e6, "DCGM_FI_DEV_POWER_VIOLATION": 2.0e3,
    "DCGM_FI_PROF_PCIE_TX_BYTES": 3.1e10, "DCGM_FI_PROF_PCIE_RX_BYTES": 1.2e10,
    "DCGM_FI_PROF_NVLINK_TX_BYTES": 9.0e11, "DCGM_FI_PROF_NVLINK_RX_BYTES": 9.0e11,
}  # fmt: skip
METRICS = (*CONSTANT, *STEPPED, *NOISY, *COUNTED)


class Cluster:
    """Hosts with 8 GPUs each as a store; the samples of a metric are made when it is asked for,
    the same every time."""

    def __init__(
        self, hosts: int, hours: float, metrics: Sequence[str] = METRICS, gpus: int = 8
    ) -> None:
        self.names_ = tuple(sorted(metrics))
        self.hosts, self.gpus = hosts, gpus
        self.steps = round(hours * 3600 / STEP_S)
        self.gaps = ()

    @property
    def span(self) -> tuple[float, float]:
        return START_S, START_S + (self.steps - 1) * STEP_S + 14.0

    def names(self) -> dict[str, frozenset[str]]:
        carried = frozenset(("Hostname", "gpu", "instance", "job", "modelName", "UUID"))
        return dict.fromkeys(self.names_, carried)

    def labels(self, matchers: Sequence[Matcher]) -> list[Labels]:
        return [self._labels(matchers[0].value, row) for row in range(self.hosts * self.gpus)]

    def _labels(self, metric: str, row: int) -> Labels:
        host, gpu = divmod(row, self.gpus)
        return labels_of({
            "__name__": metric, "Hostname": f"node{host:04d}", "gpu": str(gpu), "job": "dcgm",
            "instance": f"node{host:04d}:9400", "modelName": "NVIDIA H100 80GB HBM3",
            "UUID": f"GPU-{row * 2654435761 % (1 << 32):08x}-{row:04x}",
        })  # fmt: skip

    def select(self, matchers: Sequence[Matcher], start: float, end: float) -> Series:
        """One metric within start..end; scrapes of a host are at a time of its own."""
        metric, count = matchers[0].value, self.hosts * self.gpus
        values = made(metric, count, self.steps)
        shift = np.repeat(np.arange(self.hosts) % 14_000, self.gpus) / 1000.0
        times = np.round(START_S + shift[:, None] + np.arange(self.steps) * STEP_S, 3)
        inside = (times[0] >= start - STEP_S) & (times[0] <= end + STEP_S)
        values, times = values[:, inside], times[:, inside]
        offsets: Ints = np.arange(count + 1, dtype=np.int64) * values.shape[1]
        labels = tuple(self._labels(metric, row) for row in range(count))
        return Series(labels, times.ravel(), values.ravel(), offsets)


def made(metric: str, count: int, steps: int) -> Floats:
    """Values of `count` series of a metric, [series x steps]."""
    chance = np.random.default_rng(abs(hash_of(metric)))
    shape = (count, steps)
    if metric in CONSTANT:
        return np.full(shape, float(CONSTANT[metric]))
    if metric in STEPPED:
        moves = chance.integers(0, 40, shape, dtype=np.int8)
        walk = (moves == 1).astype(np.int8) - (moves == 2).astype(np.int8)
        base = STEPPED[metric]
        return np.maximum(base + np.cumsum(walk, axis=1, dtype=np.float64), 0.0)
    if metric in NOISY:
        mean, spread, digits = NOISY[metric]
        drawn = chance.standard_normal(shape, dtype=np.float32)
        return np.round(mean + spread * drawn.astype(np.float64), digits)
    rate = COUNTED[metric]
    grown = np.rint(rate * (1 + 0.02 * chance.standard_normal(shape, dtype=np.float32)))
    return np.cumsum(grown.astype(np.float64), axis=1) + 1e12


def hash_of(text: str) -> int:
    """The same in every process."""
    value = 0
    for char in text.encode():
        value = (value * 131 + char) % (1 << 61)
    return value


Maker = Callable[[str], Floats]
