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

PODS = ("exported_pod", "pod", "pod_name")


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
    every = [(native, exporter.canonical(native)) for native in series_of(metric)]
    if len({frozenset(place.items()) for _, place in every}) == len(every):
        return replace(exporter, users=())
    return replace(exporter, pods=_pods(every))


def _pods(every: Iterable[tuple[Mapping[str, str], Mapping[str, str]]]) -> dict[str, str]:
    """The one host of each pod, which no answer tells once the pieces are one series."""
    on: dict[str, set[str]] = {}
    for native, place in every:
        for pod in filter(None, map(native.get, PODS)):
            if "host" in place:
                on.setdefault(pod, set()).add(place["host"])
    return {pod: min(hosts) for pod, hosts in on.items() if len(hosts) == 1}
