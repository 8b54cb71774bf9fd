"""A job that still runs, whose log ends long before: its GPUs tell whether it stands still."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 3, 4, 8, tzinfo=UTC)
WORKED_MIN, TAKEN_MIN = 60, 120
ROW = ("JobID|State|ExitCode|Start|End|Elapsed|NNodes|NodeList|AllocTRES\n"
       "7|{}|0:0|2026-03-04T08:00:00|{}|02:00:00|{}|{}|gres/gpu={}\n")  # fmt: skip


def stamp(minute: float) -> datetime:
    return BEGAN + timedelta(minutes=minute)


def metrics(hosts: int, gpus: int, drawn: dict[tuple[int, int], float], wait_w: float) -> str:
    """400 W while it works; then `wait_w`, or what is drawn by a card that is named."""
    rows = []
    for host in range(hosts):
        for gpu in range(gpus):
            where = f'{{Hostname="n{host}",gpu="{gpu}"}}'
            for half in range(2 * TAKEN_MIN):
                at = int(stamp(half / 2).timestamp() * 1000)
                works = half < 2 * WORKED_MIN
                watts = 400 + half % 3 if works else drawn.get((host, gpu), wait_w) + half % 3
                busy = 97 if works or (host, gpu) not in drawn else 0
                rows += [f"DCGM_FI_DEV_POWER_USAGE{where} {watts} {at}",
                         f"DCGM_FI_DEV_GPU_UTIL{where} {busy} {at}",
                         f"DCGM_FI_DEV_FB_USED{where} 60000 {at}"]  # fmt: skip
    return "\n".join(rows) + "\n"


def judged(folder: Path, log: str, text: str, state: str, hosts: int, gpus: int) -> Verdict:
    (folder / "train.log").write_text(log)
    (folder / "metrics.prom").write_text(text)
    end = "Unknown" if state == "RUNNING" else f"{stamp(TAKEN_MIN):%FT%T}"
    nodes = "n0" if hosts == 1 else f"n[0-{hosts - 1}]"
    (folder / "sacct.txt").write_text(ROW.format(state, end, hosts, nodes, hosts * gpus))
    return diagnose(collect(Request((str(folder),))))


def dated() -> str:
    return "".join(
        f"{stamp(n / 2):%F %T} INFO step {n}/9000 loss {4 - n / 90:.3f}\n"
        for n in range(1, 2 * WORKED_MIN)
    )


def test_one_card_is_idle_and_the_others_wait(tmp_path: Path) -> None:
    verdict = judged(tmp_path, dated(), metrics(2, 4, {(1, 2): 90.0}, 210.0), "RUNNING", 2, 4)

    assert verdict.code == "C2"
    assert [str(place) for place in verdict.culprits] == ["GPU 2 on n1"]


def test_a_log_that_is_older_than_its_record_alone_shows_nothing(tmp_path: Path) -> None:
    """All cards work on: the log is a copy from before."""
    text = metrics(2, 4, {}, 400.0)
    verdict = judged(tmp_path, dated(), text, "RUNNING", 2, 4)

    assert verdict.code not in ("C2", "C3")


@pytest.mark.parametrize(("watts", "code"), [(70.0, "C3"), (210.0, None)],
                         ids=["at rest", "between"])  # fmt: skip
def test_the_only_card_falls_to_rest_and_its_gauge_sticks(
    tmp_path: Path, watts: float, code: str | None
) -> None:
    """Nobody is there whom it could wait for in a collective."""
    log = "".join(f"iter {50 * n}: loss {9 - n / 20:.4f}, time 300.00ms, mfu 38.1%\n"
                  for n in range(240))  # fmt: skip
    verdict = judged(tmp_path, log, metrics(1, 1, {}, watts), "CANCELLED", 1, 1)

    assert verdict.code == code
    assert verdict.confidence < 0.8
