"""C4 where a site's own launcher gave up a worker that went on working."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

T0 = datetime(2026, 3, 3, 20, 20, tzinfo=UTC)
DEAD = "{} launcher ERROR gpu-k2: no heartbeat for 187s (limit 180s): marking worker DEAD\n"
END = 900
"""Seconds after which the launcher gives it up."""


def at(seconds: float) -> str:
    moment = T0 + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}"


def steps(until: float, shift: float = 0.0) -> str:
    return "".join(f"{at(s + shift)} step {s // 5} loss {4 - s / 2000:.4f}\n"
                   for s in range(5, int(until), 5))  # fmt: skip


def judged(folder: Path, worker: str, launcher: str = "", host: str = "gpu-k2") -> Verdict:
    (folder / f"worker_{host}.log").write_text(worker)
    (folder / "worker_gpu-k1.log").write_text(steps(END))
    said = "".join(f"{at(s)} launcher INFO heartbeat ok\n" for s in range(0, 600, 120))
    (folder / "launcher.log").write_text(said + launcher + DEAD.format(at(END)))
    return diagnose(collect(Request((str(folder),))))


def test_it_made_steps_to_the_end(tmp_path: Path) -> None:
    """Its own log says so."""
    verdict = judged(tmp_path, steps(END) + f"{at(END)} received SIGTERM, exiting\n")

    assert (verdict.code, verdict.culprits) == ("C4", ())
    assert [place.host for place in verdict.cleared] == ["gpu-k2"]


CRASHED = steps(END) + "Segmentation fault (core dumped)\n"
RAISED = (
    steps(END) + 'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n'
    "KeyError: 'x'\n"
)


@pytest.mark.parametrize(
    ("worker", "launcher"),
    [
        (steps(END - 200), ""),
        (steps(END + 3600), ""),
        (steps(END, 3600), ""),
        (CRASHED, ""),
        (RAISED, ""),
        (steps(END), f"{at(END - 5)} launcher WARNING gpu-k2: process exited with code 137\n"),
    ],
    ids=["had stopped", "the run went on", "another zone", "crashed", "raised", "exited"],
)
def test_near_misses_clear_nobody(tmp_path: Path, worker: str, launcher: str) -> None:
    """The heartbeats stopped for a reason."""
    verdict = judged(tmp_path, worker, launcher)

    assert verdict.code != "C4"
    assert verdict.cleared == ()


def test_the_log_of_another_worker_proves_nothing(tmp_path: Path) -> None:
    """Its name holds that of the accused."""
    assert judged(tmp_path, steps(END), host="gpu-k2-b").code != "C4"
