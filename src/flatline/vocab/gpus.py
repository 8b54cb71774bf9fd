"""
The index of a GPU on its host, where an exporter names its GPUs by UUID alone.

Whatever else was read of the same GPUs may carry both: nvidia_gpu_exporter's own
`nvidia_smi_gpu_info` and `nvidia_smi_index`, dcgm-exporter's `UUID` beside `gpu`.  UUIDs are
spelled with and without `GPU-` (NVML has it, nvidia_gpu_exporter cuts it off).

Source: docs/METRICS.md of utkuozdemir/nvidia_gpu_exporter; dcgm-exporter's default labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from flatline.vocab import Exporter

VALUED = "nvidia_smi_index"
"""Its value is the index."""
LABELLED = (("nvidia_smi_gpu_info", "uuid", "index"), ("DCGM_FI_DEV_POWER_USAGE", "UUID", "gpu"),
            ("DCGM_FI_DEV_GPU_TEMP", "UUID", "gpu"),
            ("DCGM_FI_DEV_SM_CLOCK", "UUID", "gpu"))  # fmt: skip
"""Metrics whose labels carry both."""
_LONGEST = 3
"""Digits of an index."""


def key(uuid: str) -> str:
    """A UUID however it is spelled."""
    return uuid.lower().removeprefix("gpu-")


def indexes(pairs: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """UUID -> index, from (UUID, index) pairs; one that had two indexes has none."""
    found: dict[str, set[str]] = {}
    for uuid, index in pairs:
        if uuid and index.isdecimal() and len(index) <= _LONGEST:
            found.setdefault(key(uuid), set()).add(index)
    return {uuid: index.pop() for uuid, index in found.items() if len(index) == 1}


def indexed(exporter: Exporter, natives: Iterable[str], known: Mapping[str, str]) -> Exporter:
    """The exporter with the indexes of those of its GPUs that are known."""
    rule = exporter.labels.get("gpu")
    if rule is None or rule.spells != "uuid" or not known:
        return exporter
    found = {native: known[key(native)] for native in natives if key(native) in known}
    return replace(exporter, gpus=found) if found else exporter
