"""Composer prints steps without times, and dates where a save begins and ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

SAVER = "rank0[481][MainThread]: DEBUG: composer.callbacks.checkpoint_saver:"


def log(save_s: float, *, beside: bool = False, saves: int = 10) -> str:
    """A save every twenty batches of six seconds; `beside` the steps, or holding them."""
    at, lines = datetime(2026, 3, 4, 8, tzinfo=UTC), ["Starting training..."]
    step = 0

    def steps(upto: int) -> None:
        nonlocal step, at
        while step < upto:
            step += 5
            at += timedelta(seconds=30)
            lines.append(f"[batch={step}/400]:\n\t Train loss/train/total: {8 - step / 80:.4f}")

    for n in range(1, saves + 1):
        steps(20 * n)
        place = f"/nfs/run/ep0-ba{20 * n}/"
        lines.append(f"{at:%Y-%m-%d %H:%M:%S},014: {SAVER} Saving checkpoint to {place}")
        if beside:
            steps(step + 10)
        else:
            at += timedelta(seconds=save_s)
        lines.append(
            f"{at:%Y-%m-%d %H:%M:%S},014: {SAVER} Checkpoint locally saved to {place} in"
            f" {save_s:.1f} seconds"
        )
    return "\n".join(lines) + "\n"


SACCT = (
    "JobID|State|ExitCode|Start|End|Elapsed|NodeList\n"
    "77|COMPLETED|0:0|2026-03-04T08:00:00|2026-03-04T08:34:00|00:34:00|n[1-2]\n"
)


def pressure() -> str:
    """Two hosts that wait for storage two fifths of the time."""
    begun = int(datetime(2026, 3, 4, 8, tzinfo=UTC).timestamp())
    name = "node_pressure_io_waiting_seconds"
    rows = [
        f'{name}_total{{instance="n{host}:9100"}} {12 * n} {begun + 30 * n}'
        for host in (1, 2)
        for n in range(70)
    ]
    return f"# TYPE {name} counter\n" + "\n".join(rows) + "\n# EOF\n"


@pytest.mark.parametrize("waited", [True, False])
def test_where_hosts_waited_for_storage(tmp_path: Path, waited: bool) -> None:
    """Lines of an output that its buffer holds back look as if the saves held the steps."""
    (tmp_path / "composer.log").write_text(log(80.0))
    (tmp_path / "sacct.txt").write_text(SACCT)
    if waited:
        (tmp_path / "metrics.om").write_text(pressure())
    told = diagnose(collect(Request((str(tmp_path),))))

    assert (told.code == "D2") is waited
    assert told.confidence < 0.8


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(log(80.0), None, id="nothing-beside-the-log"),
        pytest.param(log(80.0, beside=True), None, id="beside-the-steps"),
        pytest.param(log(3.0), None, id="a-moment"),
        pytest.param(log(80.0, saves=2), None, id="two-saves"),
    ],
)
def test_saves_that_hold_undated_steps(tmp_path: Path, text: str, code: str | None) -> None:
    (tmp_path / "composer.log").write_text(text)
    told = diagnose(collect(Request((str(tmp_path),))))

    assert told.code == code
    if code:
        assert (told.fault_class, told.confidence < 0.8) == ("checkpoint-storm", True)
