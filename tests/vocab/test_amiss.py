"""What is wrong with readings that lie elsewhere is put right in what is asked for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from flatline.model import Gap
from flatline.series.engine import Embedded
from flatline.series.matching import Matcher
from flatline.series.storage import MemoryStore, Series, SeriesBuilder
from flatline.sources.metrics import MetricsSource, read_file
from flatline.vocab.rewrite import Scope
from sources.test_frozen import FROZEN, LONG_S, SERVED, STOPS, T0, noisy, page, smi, when

AMD = ('gpu_clock{{gpu_id="0",hostname="{}",clock_index="{}",clock_type="GPU_CLOCK_TYPE_SYSTEM"}}'
       " {} {}\n")  # fmt: skip


class Elsewhere:
    """A store that gives its samples to questions alone."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.labels, self.names, self.span = store.labels, store.names, store.span
        self.asked: list[tuple[Matcher, ...]] = []

    def select(self, matchers: Sequence[Matcher], start: float, end: float) -> Series:
        self.asked.append(tuple(matchers))
        return self._store.select(matchers, start, end)


def far(folder: Path, lines: Sequence[str], hosts: tuple[str, ...] = ()) -> MetricsSource:
    path, builder, gaps = folder / "m.prom", SeriesBuilder(), list[Gap]()
    path.write_text("".join(lines), "utf-8")
    assert read_file(path, path.name, builder, gaps)
    store = Elsewhere(MemoryStore(builder.build()))
    return MetricsSource(engine=Embedded(store, "a server"), scope=Scope(hosts))


def near(folder: Path, lines: Sequence[str]) -> MetricsSource:
    path = folder / "m.prom"
    path.write_text("".join(lines), "utf-8")
    return MetricsSource([(path, path.name)])


def row(metric: str, labels: str, values: Sequence[float]) -> list[str]:
    return [f"{metric}{{{labels}}} {v} {(T0 + 15 * n) * 1000}\n" for n, v in enumerate(values)]


def card(metric: str, host: str, values: Sequence[float]) -> list[str]:
    return row(metric, f'gpu="0",UUID="GPU-{host}",Hostname="{host}"', values)


def test_an_old_page_is_left_out(tmp_path: Path) -> None:
    """From when it was served for the first time; the others are answered all along."""
    source = far(tmp_path, [*FROZEN, *page("n1", noisy)])
    (gap,) = (gap for gap in source.gaps if SERVED in gap.reason)
    seen = {
        at: {r.place.host for r in source.ask("gpu_power_watts", end=when(at), step_s=0).rows}
        for at in (STOPS - 30, STOPS + 30)
    }

    assert (gap.where, gap.reason.endswith("; left out")) == ("n2", True)
    assert seen == {STOPS - 30: {"n1", "n2"}, STOPS + 30: {"n1"}}


def test_it_is_answered_again_once_it_reads_again(tmp_path: Path) -> None:
    """Of ranges those that lie within the standstill are left out, and no others."""
    goes_on = STOPS + 450
    source = far(tmp_path, page("n2", noisy, until=STOPS, goes_on=goes_on))

    def there(at: float, query: str) -> bool:
        return bool(source.ask(query, end=when(at), step_s=0).rows)

    over = "max_over_time(gpu_power_watts[120s])"
    assert [there(at, "gpu_power_watts") for at in (STOPS + 30, goes_on + 30)] == [False, True]
    assert [there(at, over) for at in (STOPS + 30, STOPS + 200, goes_on + 30)] == [
        True, False, True,
    ]  # fmt: skip
    assert there(LONG_S - 15, f"max_over_time(gpu_power_watts[{LONG_S - 15}s])")


@pytest.mark.parametrize(
    "pages",
    [
        page("n2", lambda at: 612.0, until=STOPS),
        page("n2", noisy, busy=0.02, until=STOPS),
        page("n2", noisy, until=STOPS, goes_on=STOPS + 270),
        [line for line in FROZEN if "POWER" not in line],
        [line for line in FROZEN if 'gpu="1"' not in line]
        + [line for line in page("n2", noisy) if 'gpu="1"' in line],
        [line for line in page("n2", noisy) if int(line.split()[-1]) < (T0 + STOPS) * 1000],
    ],
    ids=["one value all along", "an idle card", "for four minutes", "nothing noisy is read",
         "another card moves", "it ends"],
)  # fmt: skip
def test_near_misses_are_answered(tmp_path: Path, pages: list[str]) -> None:
    """As the data has them."""
    source = far(tmp_path, [*pages, *page("n1", noisy)])
    shown = source.ask("gpu_engine_active_ratio", end=when(STOPS - 15), step_s=0)

    assert not [gap for gap in source.gaps if "left out" in gap.reason]
    assert {r.place.host for r in shown.rows} == {"n1", "n2"}


def test_another_exporter_answers_instead(tmp_path: Path) -> None:
    """Of the cards whose first one fell silent in truth."""
    source = far(tmp_path, [*page("n2", noisy, until=STOPS, gpus=3), *smi("n2", 300.0)])
    query = "avg by (host) (avg_over_time(gpu_power_watts[120s]))"
    (told,) = source.ask(query, end=when(LONG_S - 60), step_s=0).rows

    assert told.exporter == "nvidia_gpu_exporter"


OFF = [
    ("DCGM_FI_DEV_POWER_USAGE", "gpu_power_watts", 650.0, 640e3),
    ("DCGM_FI_DEV_SM_CLOCK", "gpu_sm_clock_hertz", 1965.0, 1.98e9),
    ("DCGM_FI_DEV_SM_CLOCK", "gpu_sm_clock_hertz", 1965.0, 1.98),
    ("DCGM_FI_PROF_SM_ACTIVE", "gpu_sm_active_ratio", 0.9, 88.5),
]


@pytest.mark.parametrize(
    ("metric", "signal", "native", "off"), OFF, ids=[f"{o[1]} as {o[3]:g}" for o in OFF]
)
def test_a_number_in_another_unit(
    tmp_path: Path, metric: str, signal: str, native: float, off: float
) -> None:
    """It is read as a file of the same lines is, with the same gap, and can be cited."""
    lines = [line for host, v in (("n1", native), ("n2", off), ("n3", native))
             for line in card(metric, host, [v] * 40)]  # fmt: skip
    one, other = far(tmp_path, lines), near(tmp_path, lines)
    asked = [signal, f"max_over_time({signal}[60s])", f"avg ({signal})"]

    def told(source: MetricsSource, query: str) -> dict[str | None, float]:
        return {r.place.host: r.last for r in source.ask(query).rows}

    for query in asked:
        assert told(one, query) == pytest.approx(told(other, query))
    assert told(one, f"changes({signal}[60s])") == dict.fromkeys(("n1", "n2", "n3"), 0.0)
    assert [g for g in one.gaps if "unit" in g.need] == [g for g in other.gaps if "unit" in g.need]
    answer = one.ask(f"max_over_time({signal}[60s])")
    for told_row in answer.rows:
        assert one.replay(answer.cite(told_row, "it")) == pytest.approx(told_row.last)


def test_a_clock_that_is_low_for_a_while_is_none_of_another_unit(tmp_path: Path) -> None:
    values = [*[1965.0] * 60, *[2.0] * 20, *[1965.0] * 60]
    lines = [line for host in ("n1", "n2") for line in card("DCGM_FI_DEV_SM_CLOCK", host, values)]
    source = far(tmp_path, lines)

    assert source.ask("min_over_time(gpu_sm_clock_hertz[1500s])").rows[0].last == 2e6
    assert not [gap for gap in source.gaps if "unit" in gap.need]


def test_two_metrics_of_one_host(tmp_path: Path) -> None:
    """And a signal that is one of the series of its metric."""
    lines = [
        *(AMD.format(h, die, v, (T0 + 15 * n) * 1000)
          for h, v in (("n1", 2100), ("n2", 2_050_000_000)) for die in range(2)
          for n in range(40)),
        *row("gpu_package_power", 'gpu_id="0",hostname="n1"', [640.0] * 40),
        *row("gpu_package_power", 'gpu_id="0",hostname="n2"', [610e3] * 40),
    ]  # fmt: skip
    source = far(tmp_path, lines)
    told = {
        signal: {r.place.host: r.last for r in source.ask(signal).rows}
        for signal in ("gpu_sm_clock_hertz", "gpu_power_watts")
    }

    assert told["gpu_sm_clock_hertz"] == pytest.approx({"n1": 2.1e9, "n2": 2.05e9})
    assert told["gpu_power_watts"] == pytest.approx({"n1": 640, "n2": 610})


def test_numbers_that_stand_for_none(tmp_path: Path) -> None:
    """They are not answered, nor a range that reaches them; the other times and hosts are."""
    values = [600.0 + n % 7 for n in range(120)]
    blank = [*values[:50], *[float(2**64 - 1)] * 10, *values[60:]]
    name = "DCGM_FI_DEV_POWER_USAGE"
    source = far(tmp_path, [*card(name, "n1", values), *card(name, "n2", blank)])
    gaps = [gap for gap in source.gaps if "has none" in gap.reason]

    def hosts(at: int, query: str) -> set[str | None]:
        return {r.place.host for r in source.ask(query, end=when(15 * at), step_s=0).rows}

    assert [(gap.need, gap.where) for gap in gaps] == [(f"{name} at every time", "n2")]
    assert hosts(55, "gpu_power_watts") == {"n1"}
    assert hosts(30, "gpu_power_watts") == hosts(110, "gpu_power_watts") == {"n1", "n2"}
    assert hosts(65, "max_over_time(gpu_power_watts[300s])") == {"n1"}
    assert hosts(110, "max_over_time(gpu_power_watts[300s])") == {"n1", "n2"}


def test_sound_readings_are_asked_for_as_they_are(tmp_path: Path) -> None:
    """A query has no parts for hosts with which nothing is wrong."""
    source = far(tmp_path, [*page("n1", noisy), *page("n2", noisy)], ("n1", "n2"))
    query = source.ask("avg by (host) (gpu_power_watts)").query

    assert query == 'avg by (Hostname) (DCGM_FI_DEV_POWER_USAGE{Hostname=~"n1|n2"})'


def test_a_host_that_is_not_the_runs_is_not_looked_at(tmp_path: Path) -> None:
    source = far(tmp_path, [*page("n1", noisy), *FROZEN], ("n1",))

    assert not [gap for gap in source.gaps if SERVED in gap.reason]
