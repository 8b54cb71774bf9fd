"""A card that is not read again once the run is over, beside neighbours that are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

ENDED = datetime(2026, 2, 10, 14, 40, tzinfo=UTC)
ERROR = (
    "[rank10]:[E210 14:39:41.000000 ProcessGroupNCCL.cpp:1896] [PG ID 0 PG GUID 0 Rank 10] Process"
    " group watchdog thread terminated with exception: CUDA error: unspecified launch failure\n"
    "exitcode  : -6 (pid: 811)\n"
    "[0]:\n  time      : 2026-02-10_14:39:46\n  host      : n1\n  rank      : 10 (local_rank: 2)\n"
    "  exitcode  : -6 (pid: 811)\n  traceback : Signal 6 (SIGABRT) received by PID 811\n"
)
KERNEL = (
    "{at:%Y-%m-%dT%H:%M:%S}+00:00 n1 kernel: NVRM: Xid (PCI:0000:5d:00): 79, pid='<unknown>',"
    " name=<unknown>, GPU has fallen off the bus.\n"
)


def told(
    folder: Path,
    *,
    gone: tuple[int, ...] = (2,),
    returns_s: int = 900,
    state: str = "FAILED",
    error: str = ERROR,
    kernel: bool = True,
    metrics: bool = True,
) -> Verdict:
    """Two hosts of eight cards, read every half minute until five minutes after the end; cards of
    the second that are gone from the end on; a kernel's clock six minutes behind."""
    steps = "".join(
        f"{ENDED - timedelta(seconds=20 + 10 * (180 - n)):%Y-%m-%d %H:%M:%S} step {n}/900"
        f" loss {3 - n / 90:.3f}\n"
        for n in range(1, 180)
    )
    (folder / "train.log").write_text(steps + error)
    (folder / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"9|{state}|1:0|2026-02-10T14:00:00|2026-02-10T14:40:00|2|n[0-1]\n"
    )
    if kernel:
        (folder / "kern-n1.log").write_text(KERNEL.format(at=ENDED - timedelta(seconds=390)))
    rows = [
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="{card % 8}",Hostname="n{card // 8}",UUID="GPU-{card}"}}'
        f" {640 + second % 7 if second < 0 else 90} {int((ENDED.timestamp() + second) * 1000)}\n"
        for card in range(16)
        for second in range(-2390, 300, 30)
        if card - 8 not in gone or not -15 < second < returns_s
    ]
    if metrics:
        (folder / "metrics.prom").write_text("".join(rows))
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("kernel", [True, False], ids=["and its kernel", "its rank alone"])
def test_a_card_that_is_lost_as_the_run_ends(tmp_path: Path, kernel: bool) -> None:
    """Its rank's error, or the kernel's by whatever clock, tells of it; its readings say when."""
    found = told(tmp_path, kernel=kernel)

    assert (found.code, found.fault_class) == ("B2", "lost")
    assert [(place.host, place.gpu) for place in found.culprits] == [("n1", "2")]


@pytest.mark.parametrize(
    "more",
    [
        {"gone": ()},
        {"returns_s": 60},
        {"gone": tuple(range(8))},
        {"gone": tuple(range(5))},
    ],
    ids=["none", "back after a reset", "the exporter", "most of a job's cards"],
)
def test_what_is_no_lost_card(tmp_path: Path, more: dict[str, tuple[int, ...]]) -> None:
    """The program's own error then, and not surely beside a kernel's word on a card."""
    found = told(tmp_path, **more)  # type: ignore[arg-type]

    assert found.code == "A3"
    assert found.confidence < 0.8
    assert any("unless the host's clock is behind" in said for said in found.cannot_decide)


def test_an_error_of_the_program_on_a_sound_host(tmp_path: Path) -> None:
    """No kernel tells of a card: it stays as sure as it is."""
    found = told(tmp_path, gone=(), kernel=False)

    assert found.code == "A3"
    assert not any("clock is behind" in said for said in found.cannot_decide)


@pytest.mark.parametrize("state", ["COMPLETED", "CANCELLED"])
def test_readings_that_end_after_a_run_without_an_error(tmp_path: Path, state: str) -> None:
    """An exporter may leave out what no job holds."""
    found = told(tmp_path, state=state, error="", kernel=False)

    assert "B2" not in {one.finding.code for one in found.findings}
