"""
Devices whose series are cut in pieces by who uses them.

dcgm-exporter in Kubernetes puts `pod`, `namespace` and `container` on a GPU's series while a pod
holds it, AMD's exporter the job besides: before, during and after a pod one GPU has three series.

Source: dcgm-exporter's Kubernetes mode (README, internal/pkg/transformation/kubernetes.go);
device-metrics-exporter docs/configuration/configmap.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from flatline.signals import GPU, SIGNALS
from flatline.vocab import Exporter


def in_pieces(
    exporter: Exporter, series_of: Callable[[str], Iterable[Mapping[str, str]]]
) -> Exporter:
    """The exporter, with its `users` only where they cut a GPU's series in pieces: a query that
    needs no joining keeps its plain text."""
    metric = next(
        (
            c.metric
            for name, c in exporter.carriers.items()
            if SIGNALS[name].labels == GPU and not c.collapse and not c.matchers
        ),
        None,
    )
    if not exporter.users or metric is None:
        return replace(exporter, users=())
    seen: set[frozenset[tuple[str, str]]] = set()
    for native in series_of(metric):
        place = frozenset(exporter.canonical(native).items())
        if place in seen:
            return exporter
        seen.add(place)
    return replace(exporter, users=())
