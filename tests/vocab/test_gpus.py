"""GPUs that an exporter names by UUID, and their index on the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.model import Place
from flatline.sources.metrics import MetricsSource
from flatline.vocab.gpus import indexes
from flatline.vocab.rewrite import Scope

A, B = "8a02af61-e87e-87c7-3a62-d2b5b0c16ab7", "3c11bf61-e87e-87c7-3a62-d2b5b0c16ab7"
POWER = "".join(
    f'nvidia_smi_power_draw_watts{{uuid="{uuid}",instance="n1:9835"}} {watts} {at}\n'
    for uuid, watts in ((A, 300), (B, 400))
    for at in (1_700_000_000_000, 1_700_000_060_000)
)
INFO = "".join(
    f'nvidia_smi_gpu_info{{uuid="{uuid}",index="{index}",instance="n1:9835"}} 1 1700000060000\n'
    for uuid, index in ((A, 4), (B, 6))
)
VALUED = "".join(
    f'nvidia_smi_index{{uuid="{uuid}",instance="n1:9835"}} {index} 1700000060000\n'
    for uuid, index in ((A, 4), (B, 6))
)
DCGM = "".join(
    f'DCGM_FI_DEV_GPU_TEMP{{Hostname="n1",gpu="{index}",UUID="GPU-{uuid}"}} 60 1700000060000\n'
    for uuid, index in ((A, 4), (B, 6))
)


def read(tmp_path: Path, text: str, scope: Scope | None = None) -> MetricsSource:
    file = tmp_path / "m.prom"
    file.write_text("# TYPE nvidia_smi_power_draw_watts gauge\n" + text, "utf-8")
    return MetricsSource([(file, "m.prom")], scope)


@pytest.mark.parametrize("beside", [INFO, VALUED, DCGM])
def test_the_index_is_read_from_what_has_both(tmp_path: Path, beside: str) -> None:
    """The exporter's own information, or dcgm-exporter's labels beside it."""
    answer = read(tmp_path, POWER + beside).ask("gpu_power_watts")

    assert {row.place: row.last for row in answer.rows} == {
        Place(host="n1", gpu="4"): 300.0,
        Place(host="n1", gpu="6"): 400.0,
    }


def test_without_it_the_uuid_stays(tmp_path: Path) -> None:
    """Nothing is guessed from the order in which they come."""
    answer = read(tmp_path, POWER).ask("gpu_power_watts")

    assert {row.place.gpu for row in answer.rows} == {A, B}


def test_a_job_s_gpus_are_asked_by_their_index(tmp_path: Path) -> None:
    """As the scheduler says them; the query carries the UUID, and runs again."""
    source = read(tmp_path, POWER + INFO, Scope(("n1",), {"n1": ("6",)}))
    answer = source.ask("gpu_power_watts")
    cite = answer.cite(answer.rows[0], "power")

    assert [row.place.gpu for row in answer.rows] == ["6"]
    assert B in cite.query
    assert source.replay(cite) == 400.0
    assert not source.gaps


def test_a_canonical_matcher_means_the_index(tmp_path: Path) -> None:
    """Equal and unequal."""
    source = read(tmp_path, POWER + INFO)

    assert [r.last for r in source.ask('gpu_power_watts{gpu="4"}').rows] == [300.0]
    assert [r.last for r in source.ask('gpu_power_watts{gpu!="4"}').rows] == [400.0]


def test_a_uuid_with_two_indexes_has_none() -> None:
    """Cards were counted anew within the window."""
    assert indexes([(A, "4"), (f"GPU-{A.upper()}", "5"), (B, "6")]) == {B: "6"}
