"""Bursts of losses, and what is next to nothing beside them."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN, HOSTS, MINUTES = 1_772_611_200, 16, 40


def judged(folder: Path, noise: float, near: float) -> Verdict:
    """One host loses thousands since the middle of the run, `near` ones a part of that, and the
    others a few now and then."""
    dice, lines, at = random.Random(5), [], float(BEGAN)
    while at < BEGAN + MINUTES * 60:
        at += 12.0 if at < BEGAN + MINUTES * 30 else 14.2
        stamp = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        n = len(lines) + 1
        lines.append(f"{stamp} INFO step {n}/9000 loss {4 - n / 200:.4f}")
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    lost, rows = [0.0] * HOSTS, []
    for second in range(0, MINUTES * 60 + 60, 60):
        for host in range(HOSTS):
            if second > MINUTES * 30:
                lost[host] += {5: 900.0, 4: 900 * near, 6: 900 * near}.get(host, 0.0)
            lost[host] += dice.choice([0] * 9 + [noise])
            where = f'instance="n{host}:9100",device="mlx5_0",port="1"'
            rows.append(f"node_infiniband_local_ack_timeout_errors_total{{{where}}}"
                        f" {lost[host]:.0f} {(BEGAN + second) * 1000}")  # fmt: skip
    (folder / "metrics.prom").write_text("\n".join(rows) + "\n")
    (folder / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"44|gpt|RUNNING|0:0|2026-03-04T08:00:00|Unknown|{HOSTS}|n[0-{HOSTS - 1}]\n"
    )
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("noise", [0.0, 8.0])
@pytest.mark.parametrize(("near", "hosts"), [(0.0, ["n5"]), (0.06, ["n5"])])
def test_the_host_whose_losses_drown_the_others(
    tmp_path: Path, noise: float, near: float, hosts: list[str]
) -> None:
    """Its peers see some of them, and a few packets are lost anywhere at any time."""
    verdict = judged(tmp_path, noise, near)

    assert verdict.code == "D4"
    assert [place.host for place in verdict.culprits] == hosts


def test_hosts_that_lose_within_a_few_times_of_one_another(tmp_path: Path) -> None:
    verdict = judged(tmp_path, 0.0, 0.4)

    assert verdict.code == "D4"
    assert {place.host for place in verdict.culprits} == {"n4", "n5", "n6"}
