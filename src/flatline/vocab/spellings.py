"""
Hosts that some of an exporter's series name by one label and some by another.

Exporters are upgraded a host at a time, and a new version may spell a label in another way
(dcgm-exporter's `Hostname` became `hostname`).  A query can group by one label alone: by the one
that Prometheus adds to every series, as long as it says the same as the names do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from flatline.vocab import Exporter, two_spellings

LEAST_PAIRED = 2
"""Spellings that name a host themselves."""


def in_one_spelling(
    exporter: Exporter, series: Callable[[str], Iterable[Mapping[str, str]]]
) -> tuple[Exporter, Mapping[str, str]]:
    """
    The exporter with its hosts by the label of the scrape, and the host's name for each of its
    values; as it is, with none, where its series have one spelling, or where a value of that label
    goes with several names or with none.

    `series` gives the labels of every series of a metric.
    """
    own = [rule for rule in exporter.spellings if not rule.port]
    scrape = next((rule for rule in exporter.spellings if rule.port), None)
    if scrape is None or len(own) < LEAST_PAIRED or not exporter.carriers:
        return exporter, {}
    names: dict[str, str] = {}
    for metric in {carrier.metric for carrier in exporter.carriers.values()}:
        for labels in series(metric):
            name = next((labels[rule.label] for rule in own if labels.get(rule.label)), "")
            target = labels.get(scrape.label, "")
            if not name or not target or names.setdefault(target, name) != name:
                return exporter, {}
    left_out = {two_spellings(exporter.name, "host", own[0], other) for other in own[1:]}
    gaps = tuple(gap for gap in exporter.gaps if gap not in left_out)
    return replace(exporter, labels={**exporter.labels, "host": scrape}, gaps=gaps), names
