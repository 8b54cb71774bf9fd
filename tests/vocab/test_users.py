"""GPUs whose series are cut in pieces by the pods that hold them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from families.fleet import T0, sample
from flatline.sources.metrics import MetricsSource

POD = ',pod="train-1",namespace="ml",container="trainer"'


def source(tmp_path: Path, held: tuple[int, int] | None) -> MetricsSource:
    """Two GPUs over ten minutes, 100 W and 1.5 GHz; a pod holds them for a part of it."""
    file = tmp_path / "metrics.prom"
    lines = []
    for gpu in "01":
        for at in range(0, 601, 30):
            mine = POD if held is not None and held[0] <= at < held[1] else ""
            label = f'Hostname="n0",gpu="{gpu}"{mine}'
            lines.append(sample("DCGM_FI_DEV_SM_CLOCK", label, 1500, at))
            lines.append(sample("DCGM_FI_DEV_POWER_USAGE", label, 100.0, at))
            lines.append(sample("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", label, 100e3 * at, at))
    file.write_text("\n".join(lines))
    return MetricsSource([(file, file.name)])


def values(found: MetricsSource, query: str, at: float = 600) -> dict[str, float]:
    moment = datetime.fromtimestamp(T0 + at, UTC)
    answer = found.ask(query, start=moment, end=moment)
    assert len({row.place for row in answer.rows}) == len(answer.rows)
    for row in answer.rows:
        cite = answer.cite(row, "x")
        assert found.replay(cite) == cite.value
    return {str(row.place): row.last for row in answer.rows}


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("count_over_time(gpu_power_watts[600s])", 20),
        ("avg_over_time(gpu_power_watts[600s])", 100),
        ("max_over_time(gpu_sm_clock_hertz[600s])", 1.5e9),
        ("min_over_time(gpu_sm_clock_hertz[600s])", 1.5e9),
        ("gpu_power_watts", 100),
    ],
)
def test_the_pieces_of_a_gpu_are_one_gpu(tmp_path: Path, query: str, value: float) -> None:
    """Before, while and after a pod holds it; every citation gives its value again."""
    found = values(source(tmp_path, (120, 480)), query)
    assert found == {"GPU 0 on n0": value, "GPU 1 on n0": value}


def test_what_grew_is_counted_once(tmp_path: Path) -> None:
    """The piece before and after a pod is one series, which spans the pod's."""
    query = "increase(gpu_energy_joules_total[600s])"
    assert values(source(tmp_path, (120, 480)), query) == values(source(tmp_path, None), query)


@pytest.mark.parametrize("held", [None, (-1, 1000)])
def test_a_query_that_needs_no_joining_keeps_its_text(
    tmp_path: Path, held: tuple[int, int] | None
) -> None:
    """Without pods, and with one that holds the GPU throughout."""
    found = source(tmp_path, held)
    assert found.ask("avg_over_time(gpu_power_watts[60s])").query == (
        "avg_over_time(DCGM_FI_DEV_POWER_USAGE[1m])"
    )


def test_joined_pieces_still_tell_where_a_pod_was(tmp_path: Path) -> None:
    """Their labels lack it; a pod on two hosts tells of neither."""
    moment = datetime.fromtimestamp(T0 + 600, UTC)
    answer = source(tmp_path, (120, 480)).ask("gpu_power_watts", start=moment, end=moment)

    assert all("pod" not in row.native for row in answer.rows)
    assert answer.pods == {"train-1": "n0"}

    file = tmp_path / "moved.prom"
    file.write_text("\n".join(
        sample("DCGM_FI_DEV_POWER_USAGE", f'Hostname="{host}",gpu="0"{pod}', 100.0, at)
        for host in ("n0", "n1") for pod in (POD, "") for at in (0, 30)))  # fmt: skip
    assert not MetricsSource([(file, file.name)]).ask("gpu_power_watts").pods
