"""An exporter that serves one page of a busy host on and on is read as one that fell silent."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.model import Gap, Place
from flatline.sources.metrics import MetricsSource

T0, LONG_S = 1_700_000_000, 1800
STOPS = 900
"""When a page is served for the first time that is served on."""
SERVED = "an old reading, served again"
Watts = Callable[[float], float]
_DICE = random.Random(7)
NOISE = [_DICE.gauss(600, 15) for _ in range(LONG_S)]


def noisy(at: float) -> float:
    return NOISE[int(at)]


def page(
    host: str,
    watts: Watts,
    busy: float = 0.97,
    until: float = LONG_S,
    goes_on: float = LONG_S,
    every: int = 15,
    gpus: int = 2,
) -> list[str]:
    """Two cards by dcgm-exporter; what was read at `until` is served from then on."""
    lines = []
    for at in range(0, LONG_S, every):
        seen = until if until <= at < goes_on else at
        for gpu in range(gpus):
            labels = f'gpu="{gpu}",UUID="GPU-{host}-{gpu}",Hostname="{host}"'
            for metric, value in (
                ("DCGM_FI_DEV_POWER_USAGE", watts((seen + 31 * gpu) % LONG_S)),
                ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", busy),
                ("DCGM_FI_DEV_FB_USED", 61_000),
            ):
                lines.append(f"{metric}{{{labels}}} {value} {(T0 + at) * 1000}\n")
    return lines


def smi(host: str, watts: float) -> list[str]:
    """The power of the same cards by nvidia_gpu_exporter."""
    return [
        f'{metric}{{uuid="{host}-{gpu}",instance="{host}:9835"{more}}} {value}'
        f" {(T0 + at) * 1000}\n"
        for at in range(0, LONG_S, 15)
        for gpu in range(2)
        for metric, more, value in (
            ("nvidia_smi_power_draw_watts", "", watts + at % 60 / 10),
            ("nvidia_smi_gpu_info", f',index="{gpu}"', 1.0),
        )
    ]


def read(folder: Path, *pages: list[str]) -> MetricsSource:
    path = folder / "metrics.prom"
    path.write_text("".join(line for page in pages for line in page), "utf-8")
    return MetricsSource([(path, path.name)])


def when(at: float) -> datetime:
    return datetime.fromtimestamp(T0 + at, UTC)


def samples(source: MetricsSource, host: str, since: float, until: float = LONG_S) -> int:
    """How many of a card's activity there are within."""
    query = f"count_over_time(gpu_engine_active_ratio[{int(until - since)}s])"
    row = source.ask(query, end=when(until), step_s=0).of(Place(host=host, gpu="0"))
    return 0 if row is None else int(row.last)


def served(source: MetricsSource) -> list[Gap]:
    return [gap for gap in source.gaps if SERVED in gap.reason]


@pytest.mark.parametrize("others", [("n1", "n3"), ()], ids=["beside others", "alone"])
def test_what_is_served_again_is_left_out(tmp_path: Path, others: tuple[str, ...]) -> None:
    """To the last digit, by all of the host's series, to the end of what was read."""
    source = read(tmp_path, page("n2", noisy, until=STOPS),
                  *(page(host, noisy) for host in others))  # fmt: skip
    (gap,) = served(source)

    assert gap.where == "n2"
    assert gap.reason.endswith("; left out")
    assert f"from {when(STOPS):%H:%M:%S} to" in gap.reason
    assert samples(source, "n2", STOPS + 1) == 0
    assert samples(source, "n2", 0, STOPS) == STOPS // 15
    assert all(samples(source, host, STOPS + 1) >= 59 for host in others)


def test_an_exporter_that_reads_again_is_read_again(tmp_path: Path) -> None:
    """What it read behind the standstill is answered."""
    source = read(tmp_path, page("n2", noisy, until=STOPS, goes_on=STOPS + 450))

    assert len(served(source)) == 1
    assert samples(source, "n2", STOPS + 1, STOPS + 449) == 0
    assert samples(source, "n2", STOPS + 451) >= 29


FROZEN = page("n2", noisy, until=STOPS)


@pytest.mark.parametrize(
    "pages",
    [
        page("n2", lambda at: 612.0, until=STOPS),
        page("n2", lambda at: 600.0 + 10 * (at // 120 % 3), until=STOPS),
        page("n2", noisy, busy=0.02, until=STOPS),
        page("n2", noisy, until=STOPS, goes_on=STOPS + 270),
        page("n2", noisy, until=STOPS, goes_on=STOPS + 360, every=45),
        page("n2", noisy, until=60),
        [line for line in FROZEN if "POWER" not in line],
        [line for line in FROZEN if 'gpu="1"' not in line]
        + [line for line in page("n2", noisy) if 'gpu="1"' in line],
    ],
    ids=["one value all along", "a rounded power", "an idle card", "for four minutes",
         "eight samples", "from the beginning", "nothing noisy is read", "another card moves"],
)  # fmt: skip
def test_near_misses_are_kept(tmp_path: Path, pages: list[str]) -> None:
    """A synthetic load, a rest, too short a time, or nothing by which a page would be told."""
    source = read(tmp_path, pages)
    written = sum("ENGINE" in line and 'gpu="0"' in line for line in pages)

    assert not served(source)
    assert samples(source, "n2", -1) == written


def test_an_idle_card_that_stands_still_beside_others_is_told_and_kept(tmp_path: Path) -> None:
    """It may truly draw the same."""
    source = read(tmp_path, page("n2", noisy, busy=0.02, until=STOPS), page("n1", noisy),
                  page("n3", noisy))  # fmt: skip

    assert [(gap.where, "left out" in gap.reason) for gap in served(source)] == [("n2", False)]
    assert samples(source, "n2", -1) == LONG_S // 15


@pytest.mark.parametrize(
    ("until", "exporter"), [(STOPS, "nvidia_gpu_exporter"), (LONG_S, "dcgm-exporter")]
)
def test_another_exporter_of_the_same_cards_answers_instead(
    tmp_path: Path, until: float, exporter: str
) -> None:
    """Of two that are sound the one with more series does."""
    source = read(tmp_path, page("n2", noisy, until=until, gpus=3), smi("n2", 300.0))
    query = "avg by (host) (avg_over_time(gpu_power_watts[120s]))"
    (row,) = source.ask(query, end=when(LONG_S - 60), step_s=0).rows

    assert row.exporter == exporter
    assert row.last == pytest.approx(300 if until == STOPS else 600, abs=30)


def test_the_hosts_that_it_alone_has_stay_the_late_exporters(tmp_path: Path) -> None:
    """What it read of them was read."""
    source = read(tmp_path, page("n1", noisy), page("n2", noisy, until=STOPS), smi("n2", 300.0))
    query = "avg by (host) (avg_over_time(gpu_power_watts[120s]))"
    rows = source.ask(query, end=when(LONG_S - 60), step_s=0).rows

    assert {row.place.host: row.exporter for row in rows} == {
        "n1": "dcgm-exporter",
        "n2": "nvidia_gpu_exporter",
    }
