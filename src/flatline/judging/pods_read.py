"""Which node a pod was on, by the labels of what an exporter read of its GPUs."""

from __future__ import annotations

from collections.abc import Mapping

from flatline.facts import Facts
from flatline.judging.addresses import read_last

LABELS = ("exported_pod", "pod")
"""The pod that holds the GPU.  Where a scrape lays its own labels over the exporter's, `pod` is
the exporter's, by which no log of a run is named."""


def pods_read(facts: Facts) -> Mapping[str, str]:
    """The node of each pod that held GPUs of one node alone."""
    return facts.memo("pods_read", _read)


def _read(facts: Facts) -> Mapping[str, str]:
    answer, nodes = read_last(facts), dict[str, set[str]]()
    for holder, host in {}.items() if answer is None else answer.pods.items():
        nodes.setdefault(holder, set()).add(facts.node_of(host))
    for row in () if answer is None else answer.rows:
        for label in LABELS:
            if (pod := row.native.get(label)) and row.place.host:
                nodes.setdefault(pod, set()).add(facts.node_of(row.place.host))
    return {pod: min(on) for pod, on in nodes.items() if len(on) == 1}
