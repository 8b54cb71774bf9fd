"""A run that has every metric of an exporter."""

from __future__ import annotations

from collections.abc import Iterator

from flatline.series.matching import Matcher
from flatline.series.storage import MemoryStore, series_of
from flatline.signals import SIGNALS
from flatline.vocab import Carrier, Vocabulary

T0, EVERY_S, POINTS = 1_767_225_600.0, 15.0, 80
Row = tuple[dict[str, str], list[tuple[float, float]]]


def rows(vocabulary: Vocabulary) -> Iterator[Row]:
    """Two hosts with two GPUs each, twenty minutes; counters rise, gauges stand at 4."""
    for carrier in vocabulary.carriers:
        for host in ("n1", "n2"):
            for part in ("0", "1"):
                yield _labels(vocabulary, carrier, host, part), _samples(carrier)


def _samples(carrier: Carrier) -> list[tuple[float, float]]:
    rising = SIGNALS[carrier.signal].kind == "counter"
    return [(T0 + EVERY_S * n, float(n * n if rising else 4)) for n in range(POINTS)]


def _labels(vocabulary: Vocabulary, carrier: Carrier, host: str, part: str) -> dict[str, str]:
    found = {"__name__": carrier.metric}
    for name, rules in vocabulary.labels.items():
        label = carrier.labels.get(name, rules[0].label)
        value = host if name == "host" else part
        found[label] = f"{value}:9100" if rules[0].port else value
    for matcher in carrier.matchers:
        found[matcher.name] = _satisfying(matcher)
    return found


def _satisfying(matcher: Matcher) -> str:
    """A value a vocabulary's matcher accepts: of alternatives the first."""
    return matcher.value.partition("|")[0] if matcher.op in ("=", "=~") else "other"


def store(vocabulary: Vocabulary) -> MemoryStore:
    return MemoryStore(series_of(rows(vocabulary)))
