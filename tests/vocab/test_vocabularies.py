"""Vocabulary files: what is on file is sound, and what is not is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.errors import CatalogueError
from flatline.judging.clock_events import MASK
from flatline.signals import ACTIVITY, NEEDS, SIGNALS
from flatline.vocab import UNITS, LabelRule, bind, load, vocabularies
from flatline.vocab.spellings import in_one_spelling

SOUND = """
name = "x"
recognised_by = ["x_clock"]
[[labels.host]]
label = "instance"
port = true
[[carriers]]
signal = "gpu_sm_clock_hertz"
metric = "x_clock"
unit = "MHz"
scale = 1e6
"""
DCGM = {
    "DCGM_FI_DEV_SM_CLOCK": frozenset({"gpu", "Hostname", "instance"}),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": frozenset({"gpu", "Hostname"}),
}


def _bound(names: dict[str, frozenset[str]]) -> list[str]:
    return [v.name for v in vocabularies() if bind(v, names) is not None]


def test_every_vocabulary_on_file_is_sound() -> None:
    """Each is read, carries known signals in known units, and says the places they have."""
    known = vocabularies()

    assert len({vocabulary.name for vocabulary in known}) == len(known) >= 12
    for vocabulary in known:
        wanted = {label for c in vocabulary.carriers for label in SIGNALS[c.signal].labels}
        assert wanted <= vocabulary.labels.keys(), vocabulary.name


def test_the_recorder_carries_every_signal_of_a_host() -> None:
    """Under its own prefix, in canonical units: what it cannot name it cannot record.  What its
    mask of reasons holds has no metric of its own."""
    recorder = next(v for v in vocabularies() if v.name == "flatline-recorder")
    carried = {c.signal for c in recorder.carriers}

    of_the_mask = {name for name in SIGNALS if name.startswith("gpu_clock_event_")} - {MASK}
    assert carried == {name for name, signal in SIGNALS.items() if signal.labels} - of_the_mask
    assert all(c.metric == f"flatline_{c.signal}" and c.scale == 1 for c in recorder.carriers)


def test_signals_end_in_their_unit() -> None:
    """And counters in `_total`, so that a name says what it is."""
    wrong = [
        signal.name
        for signal in SIGNALS.values()
        if signal.name.endswith("_total") != (signal.kind == "counter")
        or (
            signal.unit in ("watts", "hertz", "celsius", "ratio")
            and signal.unit not in signal.name
        )
    ]

    assert wrong == []
    assert {unit for unit, _ in UNITS.values()} >= {signal.unit for signal in SIGNALS.values()}


def test_needs_speak_of_known_signals() -> None:
    """A need in words stands for signals that exist."""
    named = {signal for groups in NEEDS.values() for group in groups for signal in group}

    assert named | set(ACTIVITY) <= SIGNALS.keys()


def test_an_exporter_is_told_by_its_metrics() -> None:
    """Old and new spellings of a field, old and new labels."""
    assert _bound(DCGM) == ["dcgm-exporter"]
    assert _bound({"gpu_package_power": frozenset()}) == ["amd-device-metrics-exporter"]
    assert _bound({"node_load1": frozenset()}) == ["node_exporter"]
    assert _bound({"hw_procs_running": frozenset(), "ray_node_mem_used": frozenset()}) == [
        "maxtext-slurm",
        "ray",
    ]
    assert _bound({"http_requests_total": frozenset()}) == []


def test_the_first_alternative_the_data_holds_is_taken() -> None:
    """The older name of the clock reasons serves where the newer is not there."""
    dcgm = next(v for v in vocabularies() if v.name == "dcgm-exporter")
    exporter = bind(dcgm, DCGM)

    assert exporter is not None
    assert exporter.carriers["gpu_clock_event_reasons"].metric.endswith("THROTTLE_REASONS")
    assert exporter.labels["host"] == LabelRule("Hostname")
    assert exporter.gaps == ()


def test_pressure_is_read_from_its_lower_bound_where_that_alone_is_kept() -> None:
    """The time in which no task ran, where that in which some waited is not kept."""
    node = next(v for v in vocabularies() if v.name == "node_exporter")
    names = [f"node_pressure_{kind}_seconds_total" for kind in ("io_stalled", "memory_stalled")]
    held = {name: frozenset({"instance"}) for name in ("node_uname_info", *names)}

    for more, metric in (({}, names[1]), (
        {"node_pressure_memory_waiting_seconds_total": frozenset({"instance"})},
        "node_pressure_memory_waiting_seconds_total",
    )):  # fmt: skip
        exporter = bind(node, {**held, **more})
        assert exporter is not None
        assert exporter.carriers["host_memory_pressure_seconds_total"].metric == metric


def test_names_of_the_first_exporters_are_read() -> None:
    """dcgm-exporter 1.x wrote a file that node_exporter served; 0.15 of that had no units."""
    fields = ("sm_clock", "gpu_temp", "thermal_violation", "fi_prof_sm_active")
    gpu = {f"dcgm_{name}": frozenset({"gpu", "uuid", "instance"}) for name in fields}
    host = {f"node_{name}": frozenset({"instance"}) for name in ("memory_MemAvailable", "load1")}
    old = next(v for v in vocabularies() if v.name == "dcgm-exporter-1")
    node = next(v for v in vocabularies() if v.name == "node_exporter")

    assert {*_bound({**gpu, **host})} == {"dcgm-exporter-1", "node_exporter"}
    clocks, hosts = bind(old, gpu), bind(node, {**gpu, **host})
    assert clocks is not None
    assert hosts is not None
    assert clocks.carriers["gpu_sm_clock_hertz"].scale == 1e6
    assert clocks.labels["gpu"] == LabelRule("gpu", spells="index")
    assert hosts.carriers["host_memory_available_bytes"].metric == "node_memory_MemAvailable"


def test_two_spellings_of_a_host_are_a_gap() -> None:
    """A fleet half upgraded: what is left out is said."""
    dcgm = next(v for v in vocabularies() if v.name == "dcgm-exporter")
    names = {"DCGM_FI_DEV_SM_CLOCK": frozenset({"gpu", "Hostname", "hostname"})}

    exporter = bind(dcgm, names)

    assert exporter is not None
    assert "others hostname" in exporter.gaps[0].reason


@pytest.mark.parametrize(
    ("series", "whole"),
    [
        ([("n1:9400", "Hostname", "n1"), ("10.0.0.2:9400", "hostname", "n2")], True),
        ([("n1:9400", "Hostname", "n1"), ("n1:9400", "hostname", "n1")], True),
        ([("p:9400", "Hostname", "n1"), ("p:9400", "hostname", "n2")], False),
        ([("n1:9400", "Hostname", "n1"), ("", "hostname", "n2")], False),
    ],
)
def test_a_fleet_half_upgraded_is_read_by_the_scrape(
    series: list[tuple[str, str, str]], whole: bool
) -> None:
    """As long as each of its targets has one name; the answers name hosts as before."""
    dcgm = next(v for v in vocabularies() if v.name == "dcgm-exporter")
    described = [{"instance": target, label: name, "gpu": "0"} for target, label, name in series]
    names = {"DCGM_FI_DEV_SM_CLOCK": frozenset().union(*described)}
    exporter = bind(dcgm, names)
    assert exporter is not None
    one, told = in_one_spelling(exporter, lambda metric: described)

    assert (one.labels["host"].label, one.gaps == ()) == (
        ("instance", True) if whole else ("Hostname", False)
    )
    assert told == ({target: name for target, _, name in series} if whole else {})


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ('unit = "MHz"', 'unit = "GHz"', "gpu_sm_clock_hertz"),
        ("scale = 1e6", "scale = 1e3", "gpu_sm_clock_hertz"),
        ("gpu_sm_clock_hertz", "gpu_clock", "gpu_clock"),
        ("labels.host", "labels.rack", "rack"),
        ('metric = "x_clock"', "", "metric"),
        ("port = true", 'spells = "word"', "word"),
        ('unit = "MHz"', 'unit = "MHz"\nfactor = 2', "factor"),
        ('unit = "MHz"', "unit = ", "value"),
        ('unit = "MHz"', 'unit = "MHz"\nmatchers = "x"', "PromQL"),
    ],
)
def test_a_broken_vocabulary_is_named(tmp_path: Path, was: str, now: str, said: str) -> None:
    """The message names the file and what is wrong in it."""
    file = tmp_path / "site.toml"
    file.write_text(SOUND.replace(was, now), "utf-8")

    with pytest.raises(CatalogueError, match=rf"site\.toml: .*{said}"):
        load(file)


def test_a_site_adds_its_own(tmp_path: Path) -> None:
    """A file of the site stands before those of the installation."""
    file = tmp_path / "site.toml"
    file.write_text(SOUND, "utf-8")

    assert vocabularies((file,))[0].name == "x"
