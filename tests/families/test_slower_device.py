"""D2 of collectives that fill a slow device of every host while a faster one idles."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 4, 14, 10, tzinfo=UTC)
HOSTS = 3


def run(
    folder: Path,
    *,
    sent: tuple[float, ...] = (117e6,) * HOSTS,
    speed: float = 3.125e9,
    beside: float = 4e4,
    transport: str = "Socket",
    since_s: int = -60,
) -> Verdict:
    """Hosts for 40 minutes: what each sends over its slow device, how fast the other one is and
    what goes over it, and from when on they were measured."""
    lines = [f"w{n}:910:940 [0] NCCL INFO Using network {transport}" for n in range(HOSTS)]
    lines += [f"{BEGAN + timedelta(seconds=8 * n):%Y-%m-%dT%H:%M:%S}Z step {n} loss"
              f" {1.5 + 8 / n:.4f} step_time 8.0{n % 3}s" for n in range(1, 301)]  # fmt: skip
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    (folder / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"77|sft|COMPLETED|0:0|2026-04-14T09:59:00|2026-04-14T10:40:30|{HOSTS}|w[0-{HOSTS - 1}]\n"
    )
    read = []
    for second in range(since_s, 2460, 30):
        at = int((BEGAN.timestamp() + second) * 1000)
        for n in range(HOSTS):
            for device, rate, most in (("eno1", sent[n], 1.25e8), ("eno2", beside, speed)):
                of = f'{{instance="w{n}:9100",device="{device}"}}'
                total = 1e9 + rate * max(0, min(second, 2400))
                read += [f"node_network_transmit_bytes_total{of} {total:.0f} {at}",
                         f"node_network_speed_bytes{of} {most:.0f} {at}"]  # fmt: skip
    (folder / "metrics.prom").write_text("\n".join(read) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("since_s", [-60, 1500], ids=["all of it", "its end"])
def test_a_faster_device_lay_idle(tmp_path: Path, since_s: int) -> None:
    """A rate is one over what was measured, however long the run was."""
    verdict = run(tmp_path, since_s=since_s)

    assert (verdict.code, verdict.fault_class) == ("D2", "slow-interconnect")
    assert (verdict.confidence < 0.8, verdict.culprits) == (True, ())
    assert any("NCCL_SOCKET_IFNAME=eno2" in (action.command or "") for action in verdict.actions)


@pytest.mark.parametrize(
    "other",
    [
        {"sent": (60e6,) * HOSTS},
        {"sent": (117e6, 117e6, 20e6)},
        {"speed": 1.25e8},
        {"beside": 9e8},
        {"transport": "IB"},
    ],
    ids=["half of it", "one host sends less", "as fast", "the other is in use", "a fabric"],
)
def test_near_misses(tmp_path: Path, other: dict[str, object]) -> None:
    assert run(tmp_path, **other).code != "D2"  # type: ignore[arg-type]
