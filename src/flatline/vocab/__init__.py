"""
Vocabularies: what carries a canonical signal at a site, one exporter a TOML file.

A vocabulary names the exporter, the metrics it is recognised by, which of its labels say host
and GPU, and for each signal the metric, the extra matchers, the unit and the factor to the
canonical unit.  Alternatives (an exporter renames things between versions) stand in order of
preference; `bind` takes the first that the data holds.

    name = "dcgm-exporter"
    recognised_by = ["DCGM_FI_DEV_GPU_UTIL"]      any of these; "node_*": any carried one so called
    references = ["https://..."]

    [[labels.host]]
    label = "Hostname"            with `port = true` the value carries ":9400" behind the host
    [[labels.gpu]]
    label = "gpu"                 `spells = "uuid"` where the value is no index

    [[carriers]]
    signal = "gpu_sm_clock_hertz"
    metric = "DCGM_FI_DEV_SM_CLOCK"
    unit = "MHz"
    scale = 1e6
    matchers = 'clock_type="system"'              optional
    collapse = ["clock_index"]                    optional: labels averaged over
    equals = 4                                    optional: a flag that is 1 at this value
    labels = { gpu = "gpu_power" }                optional: where this metric alone has another

A host that stands in its data as an address gets its name from `Exporter.hosts`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from flatline.errors import CatalogueError, QueryRejected
from flatline.model import Gap
from flatline.series.matching import Matcher
from flatline.series.promql.parse import parse
from flatline.series.promql.tree import Selector
from flatline.signals import SIGNALS

UNITS: Mapping[str, tuple[str, float]] = MappingProxyType(
    {
        "ratio": ("ratio", 1.0),
        "percent": ("ratio", 0.01),
        "W": ("watts", 1.0),
        "mW": ("watts", 0.001),
        "uW": ("watts", 1e-6),
        "J": ("joules", 1.0),
        "mJ": ("joules", 1e-3),
        "uJ": ("joules", 1e-6),
        "C": ("celsius", 1.0),
        "mC": ("celsius", 0.001),
        "Hz": ("hertz", 1.0),
        "MHz": ("hertz", 1e6),
        "B": ("bytes", 1.0),
        "MiB": ("bytes", 1048576.0),
        "dword": ("bytes", 4.0),
        "B/s": ("bytes/s", 1.0),
        "s": ("seconds", 1.0),
        "ms": ("seconds", 1e-3),
        "us": ("seconds", 1e-6),
        "ns": ("seconds", 1e-9),
        "bitmask": ("bitmask", 1.0),
        "code": ("code", 1.0),
        "count": ("count", 1.0),
        "flag": ("flag", 1.0),
        "step": ("step", 1.0),
        "1/s": ("1/s", 1.0),
        "value": ("value", 1.0),
    }
)
"""Units an exporter may use: the canonical one and the factor to it."""
LABELS = ("host", "gpu", "device", "port", "exporter", "model")
"""Labels a vocabulary may map: the places, who was scraped, and the model, so that like is
compared with like."""


@dataclass(frozen=True, slots=True)
class LabelRule:
    """Which label of the data carries a canonical one, and how it is spelled there."""

    label: str
    port: bool = False
    spells: Literal["index", "uuid", "name"] = "name"

    def value(self, native: str) -> str:
        """The canonical value: a host without the port of its exporter."""
        if not self.port:
            return native
        host, colon, tail = native.rpartition(":")
        return host if colon and tail.isdigit() else native


@dataclass(frozen=True, slots=True)
class Carrier:
    """What carries one signal."""

    signal: str
    metric: str
    unit: str
    scale: float
    matchers: tuple[Matcher, ...] = ()
    collapse: tuple[str, ...] = ()
    equals: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """One exporter as its file describes it."""

    name: str
    recognised_by: frozenset[str]
    labels: Mapping[str, tuple[LabelRule, ...]]
    carriers: tuple[Carrier, ...]
    users: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mend:
    """What is to be done to the readings of one host: `factors` has by what a metric's numbers are
    divided, `served` when an old page was served again, `blanks` when a metric's samples say that
    there is no value; from and to in seconds since 1970."""

    factors: Mapping[str, float] = field(default_factory=dict)
    served: tuple[float, float] | None = None
    blanks: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exporter:
    """A vocabulary bound to data: the one label and the one metric that are there.

    `hosts` names those hosts that the data has under another value (an address), `gpus` has the
    index of those GPUs that it has under a UUID.  `users` are labels that say who uses a device:
    where they come and go, one device has several series, one after the other."""

    name: str
    labels: Mapping[str, LabelRule]
    carriers: Mapping[str, Carrier]
    gaps: tuple[Gap, ...] = ()
    hosts: Mapping[str, str] = field(default_factory=dict)
    gpus: Mapping[str, str] = field(default_factory=dict)
    users: tuple[str, ...] = ()
    pods: Mapping[str, str] = field(default_factory=dict)
    """The host of each pod that is one of its `users`, on that host alone."""
    spellings: tuple[LabelRule, ...] = ()
    """All labels that name the host of some series, where there are several."""
    mends: Mapping[str, Mend] = field(default_factory=dict)
    """What is wrong with the readings of a host, by what the data calls it."""

    def canonical(self, native: Mapping[str, str]) -> dict[str, str]:
        """The canonical labels native ones come to."""
        found = {
            name: rule.value(native[rule.label])
            for name, rule in self.labels.items()
            if native.get(rule.label)
        }
        if "host" in found:
            found["host"] = self.host(native[self.labels["host"].label])
        if "gpu" in found:
            found["gpu"] = self.gpus.get(found["gpu"], found["gpu"])
        return found

    def host(self, native: str) -> str:
        """The host a native value of its label means."""
        rule = self.labels.get("host")
        return self.hosts.get(native) or (native if rule is None else rule.value(native))


def bind(vocabulary: Vocabulary, names: Mapping[str, frozenset[str]]) -> Exporter | None:
    """
    The exporter as it stands in data that has these metrics with these labels.

    None where it is not there.  Where some of its series spell a label one way and some another,
    only the first is read and a gap says so.
    """
    if not _recognised(vocabulary, names):
        return None
    carriers: dict[str, Carrier] = {}
    for carrier in vocabulary.carriers:
        if carrier.metric in names:
            carriers.setdefault(carrier.signal, _as_spelled(carrier, names[carrier.metric]))
    present = frozenset().union(*(names[carrier.metric] for carrier in carriers.values()))
    labels: dict[str, LabelRule] = {}
    gaps: list[Gap] = []
    for name, rules in vocabulary.labels.items():
        own = any(name in carrier.labels for carrier in carriers.values())
        found = [rule for rule in rules if rule.label in present] or list(rules[:1] if own else ())
        if found:
            labels[name] = found[0]
        gaps += [
            two_spellings(vocabulary.name, name, found[0], other)
            for other in found[1:]
            if not found[0].port and not other.port
        ]
    for name in ("host", "gpu"):
        if name in vocabulary.labels and name not in labels and carriers:
            known = ", ".join(rule.label for rule in vocabulary.labels[name])
            gaps.append(Gap(f"the {name} of {vocabulary.name} metrics", f"no label {known}"))
    users = tuple(label for label in vocabulary.users if label in present)
    spelled = tuple(rule for rule in vocabulary.labels.get("host", ()) if rule.label in present)
    return Exporter(vocabulary.name, labels, carriers, tuple(gaps), users=users,
                    spellings=spelled if len(spelled) > 1 else ())  # fmt: skip


def _as_spelled(carrier: Carrier, present: frozenset[str]) -> Carrier:
    """The carrier with labels of its own as the data has them: what passes metrics on may write
    the names of labels in lower case."""
    own = {name: next((one for one in present if one.lower() == label.lower()), label)
           if label not in present else label
           for name, label in carrier.labels.items()}  # fmt: skip
    return replace(carrier, labels=own) if own != carrier.labels else carrier


def _recognised(vocabulary: Vocabulary, names: Mapping[str, frozenset[str]]) -> bool:
    """By a metric of its own, or by one it carries whose prefix is its own."""
    prefixes = tuple(name[:-1] for name in vocabulary.recognised_by if name.endswith("*"))
    return bool(vocabulary.recognised_by & names.keys()) or any(
        carrier.metric in names and carrier.metric.startswith(prefixes)
        for carrier in vocabulary.carriers
        if prefixes
    )


def two_spellings(exporter: str, name: str, first: LabelRule, other: LabelRule) -> Gap:
    """That the series which spell a label in the other way were left out."""
    return Gap(
        f"the {name} of every {exporter} series",
        f"some name it {first.label}, others {other.label}; only the former were read",
    )


# --- reading the files --------------------------------------------------------------------------


@cache
def vocabularies(extra: tuple[Path, ...] = ()) -> tuple[Vocabulary, ...]:
    """Those that come with the installation, those of a site before them."""
    own = sorted(Path(__file__).parent.glob("*.toml"))
    return tuple(load(path) for path in (*extra, *own))


def load(path: Path) -> Vocabulary:
    """One vocabulary file. Raises CatalogueError, naming the file and what is wrong in it."""
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
        return _vocabulary(table)
    except (OSError, ValueError, KeyError, TypeError, QueryRejected) as fault:
        said = f"it lacks {fault}" if isinstance(fault, KeyError) else str(fault)
        raise CatalogueError(f"vocabulary {path.name}: {said}") from fault


def _vocabulary(table: Mapping[str, Any]) -> Vocabulary:
    _known(table, {"name", "recognised_by", "references", "labels", "carriers", "users"})
    labels = {}
    for name, rules in table.get("labels", {}).items():
        if name not in LABELS:
            raise ValueError(f"there is no canonical label {name!r}")
        labels[name] = tuple(_rule(rule) for rule in rules)
    carriers = tuple(_carrier(entry) for entry in table["carriers"])
    if not carriers or not table["recognised_by"]:
        raise ValueError("it carries nothing, or is recognised by nothing")
    users = tuple(map(str, table.get("users", ())))
    return Vocabulary(
        str(table["name"]), frozenset(table["recognised_by"]), labels, carriers, users
    )


def _rule(table: Mapping[str, Any]) -> LabelRule:
    _known(table, {"label", "port", "spells"})
    spells = table.get("spells", "name")
    if spells not in ("index", "uuid", "name"):
        raise ValueError(f"a label spells an index, a uuid or a name, not {spells!r}")
    return LabelRule(str(table["label"]), bool(table.get("port", False)), spells)


def _carrier(table: Mapping[str, Any]) -> Carrier:
    _known(
        table,
        {"signal", "metric", "unit", "scale", "matchers", "collapse", "equals", "labels"},
    )
    signal = SIGNALS.get(table["signal"])
    if signal is None:
        raise ValueError(f"there is no signal {table['signal']!r}")
    unit, scale = table["unit"], float(table["scale"])
    if UNITS.get(unit) != (signal.unit, scale):
        raise ValueError(
            f"{signal.name} is in {signal.unit}: {scale:g} is no factor from {unit!r}"
        )
    return Carrier(
        signal=signal.name,
        metric=str(table["metric"]),
        unit=unit,
        scale=scale,
        matchers=_matchers(table["metric"], table.get("matchers", "")),
        collapse=tuple(table.get("collapse", ())),
        equals=float(table["equals"]) if "equals" in table else None,
        labels={str(k): str(v) for k, v in table.get("labels", {}).items()},
    )


def _matchers(metric: str, text: str) -> tuple[Matcher, ...]:
    selector = parse(f"{metric}{{{text}}}")
    if not isinstance(selector, Selector) or selector.name != metric:
        raise ValueError(f"{text!r} are no matchers")
    return selector.matchers


def _known(table: Mapping[str, Any], keys: set[str]) -> None:
    unknown: Sequence[str] = sorted(table.keys() - keys)
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no key of a vocabulary")
