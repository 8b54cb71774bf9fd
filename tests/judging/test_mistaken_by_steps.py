"""A Ray node that was given up while the log of its workers went on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 3, 3, 5, tzinfo=UTC)
DEAD_S = 1210
"""Seconds after which the node is given up."""
NAMED = (
    "The node with node id: 9426f4 and address: 10.130.0.113 and node name: gpu-b has been marked"
    " dead because the detector has missed too many heartbeats from it."
)
LOST = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 88, in <module>\n    ray.get(done)\n'
    "ray.exceptions.RayActorError: The actor died because its node has died.\n"
)


RECORD = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
    "42|rl|FAILED|1:0|2026-03-03T05:00:00|2026-03-03T05:22:30|2|gpu-a,gpu-b\n"
)
BESIDE = "worker-gpu-b.log"


def line(second: float) -> str:
    return (
        f"{BEGAN + timedelta(seconds=second):%Y-%m-%d %H:%M:%S},000 INFO"
        f" step {second / 10:.0f}/9000 loss {4 - second / 4000:.4f}\n"
    )


def steps(until_s: float) -> str:
    return "".join(line(10 * n) for n in range(1, int(until_s) // 10 + 1))


def judged(folder: Path, until_s: float, *, log: str = BESIDE, word: str = NAMED) -> Verdict:
    """The driver on gpu-a says what it heard; another log has steps up to a moment."""
    told = f"{BEGAN + timedelta(seconds=DEAD_S):%Y-%m-%d %H:%M:%S},774 WARNING worker.py:1866 -- "
    (folder / "driver-gpu-a.log").write_text(steps(DEAD_S) + told + word + "\n" + LOST)
    (folder / log).write_text(steps(until_s))
    (folder / "sacct.txt").write_text(RECORD)
    return diagnose(collect(Request((str(folder),))))


def test_steps_behind_the_word_clear_the_node(tmp_path: Path) -> None:
    """Workers on it went on for a minute and more."""
    verdict = judged(tmp_path, DEAD_S + 90)

    assert verdict.code == "C4"
    assert [place.host for place in verdict.cleared] == ["gpu-b"]
    assert not any(place.host == "gpu-b" for place in verdict.culprits)
    assert any("Workers on gpu-b made 9 steps" in one.text for one in verdict.shows)


def test_a_word_without_a_time_is_of_the_step_before_it(tmp_path: Path) -> None:
    """The next one in its log dates it at the latest."""
    raylet = f"(raylet) {NAMED}\n"
    (tmp_path / "worker-gpu-b.log").write_text(steps(DEAD_S + 90))
    (tmp_path / "driver-gpu-a.log").write_text(steps(DEAD_S) + raylet + line(DEAD_S + 10) + LOST)
    (tmp_path / "sacct.txt").write_text(RECORD)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "C4"
    assert [place.host for place in verdict.cleared] == ["gpu-b"]


@pytest.mark.parametrize(
    ("until_s", "log", "word"),
    [(DEAD_S - 60, BESIDE, NAMED), (DEAD_S, BESIDE, NAMED), (DEAD_S + 30, BESIDE, NAMED),
     (DEAD_S + 90, "worker-gpu-a.log", NAMED), (DEAD_S + 90, "worker-gpu-c.log", NAMED),
     (DEAD_S + 90, "worker.log", NAMED),
     (DEAD_S + 90, BESIDE, NAMED.replace("gpu-b", "10.130.0.113"))],
    ids=["it ends before", "it ends with it", "what was under way", "another host",
         "a host that is not the run's", "no host's", "a node without a name"],
)  # fmt: skip
def test_near_misses(tmp_path: Path, until_s: float, log: str, word: str) -> None:
    """The node is lost, as far as is known."""
    verdict = judged(tmp_path, until_s, log=log, word=word)

    assert verdict.code == "F1"
    assert verdict.cleared == ()
