"""`flatline signals`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatline.cli import Engine, answer

THROTTLE = Path(__file__).parents[1] / "scenarios" / "gpu_throttled_one_of_many" / "run"


def test_carried_signals_are_listed_with_their_exporter(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And families without what they need, with what would do."""
    assert answer(["signals", str(THROTTLE)], Engine()) == 0
    text = capsys.readouterr().out

    assert "dcgm-exporter: DCGM_FI_DEV_SM_CLOCK [MHz]" in text
    assert "D4 network-degradation: rdma_retransmits_total or" in text


def test_the_document_says_hosts_and_what_is_absent(capsys: pytest.CaptureFixture[str]) -> None:
    """For programs."""
    assert answer(["signals", str(THROTTLE), "--json"], Engine()) == 0
    said = json.loads(capsys.readouterr().out)

    assert said["hosts"] == ["node01", "node02", "node03", "node04"]
    assert "gpu_xid" in said["absent"]
    assert "B3" not in [blind["code"] for blind in said["blind"]]


def test_without_metrics_every_family_of_numbers_is_blind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which is no error, and no health either."""
    (tmp_path / "job.log").write_text("step 1 loss 2.0\n", "utf-8")

    assert answer(["signals", str(tmp_path)], Engine()) == 3
    assert "B3 clock-throttling" in capsys.readouterr().out


def test_a_target_that_is_not_there_is_a_wrong_call() -> None:
    """As everywhere."""
    assert answer(["signals", "/nonexistent"], Engine()) == 2
