"""
Hosts that some of an exporter's series name by one label and some by another.

Exporters are upgraded a host at a time, and a new version may spell a label in another way
(dcgm-exporter's `Hostname` became `hostname`).  A query can group by one label alone: by the one
that Prometheus adds to every series, as long as it says the same as the names do.

An exporter that runs in a container names that one, and is scraped at the address of its host.

Where Slurm's daemons run in pods (Soperator, SUNK), Slurm knows a node by the name of its pod, and
an exporter by that of the machine beneath.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from flatline.vocab import Exporter, two_spellings
from flatline.vocab.hosts import bare

POD = ("pod", "exported_pod", "pod_name")
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


def of_containers(
    exporter: Exporter,
    natives: Iterable[str],
    series: Callable[[str], Iterable[Mapping[str, str]]],
    names: Mapping[str, str],
    known: Iterable[str],
) -> Mapping[str, str]:
    """
    The hosts behind the names that are no host's: who answers at the address of the scrape.

    `names` has the host of each address, `known` are hosts of the run beside these.  Nothing of a
    name that was scraped at several addresses, nor of an address that goes with several names: a
    gateway hands on what other hosts measured, and stands on one of its own.
    """
    scrape = next((rule for rule in exporter.spellings if rule.port), None)
    rule = exporter.labels.get("host")
    hosts = {_short(host) for host in (*names.values(), *known)}
    if scrape is None or rule is None or rule == scrape or not names:
        return {}
    strange = {native for native in natives if native and _short(native) not in hosts}
    targets: dict[str, set[str]] = {}
    held: dict[str, set[str]] = {}
    for metric in {carrier.metric: None for carrier in exporter.carriers.values()}:
        if strange <= targets.keys():
            break
        for labels in series(metric):
            name, target = labels.get(rule.label, ""), bare(labels.get(scrape.label, ""))
            targets.setdefault(name, set()).add(target)
            held.setdefault(target, set()).add(name)
    alone = {name: next(iter(targets[name])) for name in strange & targets.keys()
             if len(targets[name]) == 1}  # fmt: skip
    return {name: names[target] for name, target in alone.items()
            if target in names and len(held[target]) == 1}  # fmt: skip


def of_pods(
    exporter: Exporter,
    series: Callable[[str], Iterable[Mapping[str, str]]],
    labels_of: Mapping[str, frozenset[str]],
    known: Iterable[str],
) -> Mapping[str, str]:
    """
    The hosts of the run, `known` by the names of their pods, behind the names of machines.

    `labels_of` has the labels of each metric: the series of one that names pods are looked at.
    Nothing where one of them names such a host itself, or a pod was on several machines or a
    machine had several of them.
    """
    rule, own = exporter.labels.get("host"), {_short(host): host for host in known}
    if rule is None or not own:
        return {}
    found: dict[str, set[str]] = {}
    carried = {carrier.metric: None for carrier in exporter.carriers.values()}
    metric = next(
        (one for one in carried if not labels_of.get(one, frozenset()).isdisjoint(POD)), None
    )
    for labels in series(metric) if metric is not None else ():
        native = labels.get(rule.label, "")
        if _short(native) in own:
            return {}
        pods = {own[pod] for label in POD if (pod := _short(labels.get(label, ""))) in own}
        if native and pods:
            found.setdefault(native, set()).update(pods)
    told = Counter(pod for pods in found.values() for pod in pods)
    return {native: min(pods) for native, pods in found.items()
            if len(pods) == 1 and told[min(pods)] == 1}  # fmt: skip


def _short(host: str) -> str:
    return host.partition(".")[0].lower()
