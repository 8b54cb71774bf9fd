"""A fabric that all hosts wait for, saves that are a habit, CPUs that stand apart."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

T0 = datetime(2026, 5, 20, 16, 0, tzinfo=UTC).timestamp()
STEPS, FAST_S, SLOW_S, SINCE = 600, 4.0, 4.8, 300


def log(saves_s: float = 0.0) -> tuple[str, float, float]:
    """A log of dated steps, when it slowed, and when it ended."""
    lines, at, slowed = [], 0.0, 0.0
    for n in range(1, STEPS + 1):
        took = SLOW_S if n > SINCE and not saves_s else FAST_S
        at += took
        slowed = at if n == SINCE else slowed
        stamp = datetime.fromtimestamp(T0 + at, UTC)
        lines.append(f"{stamp:%Y-%m-%d %H:%M:%S} INFO step {n}/{STEPS} loss {5 - n / 300:.4f}"
                     f" dt {took * 1000 + n % 5:.0f}ms")  # fmt: skip
        if saves_s and n % 20 == 0:
            at += saves_s
            stamp = datetime.fromtimestamp(T0 + at, UTC)
            lines.append(f"{stamp:%Y-%m-%d %H:%M:%S} INFO ckpt: saved /nfs/step_{n:06d} in"
                         f" {saves_s:.1f}s (blocking)")  # fmt: skip
    return "\n".join(lines) + "\nTraining complete\n", slowed, at


def judged(folder: Path, text: str, end_s: float, each: Callable[[int, float], float]) -> Verdict:
    """With what each host's port waited a second, by host and time."""
    total, lines = dict.fromkeys(range(6), 0.0), []
    for at in range(0, int(end_s) + 30, 15):
        ms = int((T0 + at) * 1000)
        for host in range(6):
            total[host] += 15 * each(host, at)
            port = f'{{device="mlx5_0",port="1",instance="n{host}:9100"}}'
            lines += [
                f"node_infiniband_port_transmit_wait_total{port} {total[host]:.0f} {ms}",
                f"node_infiniband_symbol_error_total{port} 3 {ms}",
                f"node_infiniband_link_downed_total{port} 0 {ms}",
            ]
    (folder / "metrics.prom").write_text("\n".join(lines) + "\n")
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def test_every_host_waits_for_the_fabric(tmp_path: Path) -> None:
    """Its links are sound: it is full."""
    text, slowed, end = log()
    verdict = judged(tmp_path, text, end, lambda host, at: 1e6 * (8 if at > slowed else 1) + host)

    assert (verdict.code, verdict.fault_class) == ("D2", "slow-interconnect")
    assert verdict.scope == "all"
    assert verdict.culprits == ()


@pytest.mark.parametrize("waits", ["one host", "no more", "more throughout", "a few after none"])
def test_near_misses_of_a_full_fabric(tmp_path: Path, waits: str) -> None:
    """One host's, none, as much as before, or too few to cost anything."""
    text, slowed, end = log()

    def each(host: int, at: float) -> float:
        if waits == "a few after none":
            return 40.0 if at > slowed else 0.0
        risen = {"one host": host == 2 and at > slowed, "no more": False}.get(waits, True)
        return 1e6 * (8 if risen else 1)

    assert judged(tmp_path, text, end, each).code != "D2"


@pytest.mark.parametrize(("saves_s", "code"), [(16.0, "D2"), (3.0, "G1")])
def test_saves_that_say_what_they_took(tmp_path: Path, saves_s: float, code: str) -> None:
    """A sixth of the time of a long run, or a thirtieth."""
    text, _, _ = log(saves_s)
    (tmp_path / "train.log").write_text(text)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    assert verdict.confidence < 0.8
