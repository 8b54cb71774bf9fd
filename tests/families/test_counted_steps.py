"""Undated logs beside a step counter in the metrics: the run goes on, or stood still since."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.lately import last_counted
from flatline.model import Verdict

BEGAN = datetime(2026, 9, 18, 1, 0, tzinfo=UTC)
EACH_S, STEPS = 8.0, 300


def going(folder: Path, *, until_s: float, step: int = STEPS, silent_s: float = 0.0) -> Verdict:
    """MaxText's steps without times; the counter's gauge is scraped until `until_s`, and has stood
    at `step` for `silent_s` then."""
    lines = [
        f"0: completed step: {n}, seconds: {EACH_S:.3f}, TFLOP/s/device: 813.368, Tokens/s/device:"
        f" 2031.1, total_weights: 786432, loss: {3 + 9 / (n + 2):.3f}"
        for n in range(STEPS + 1)
    ]
    (folder / "71-JAX-llama3.log").write_text("\n".join(lines) + "\n")
    first = until_s - silent_s - step * EACH_S
    rows = ["# TYPE tb_step gauge"]
    for at in range(0, int(until_s) + 1, 10):
        made = min(step, int((at - first) / EACH_S))
        moment = (BEGAN + timedelta(seconds=at)).timestamp()
        rows += [f'tb_step{{host="n1",job="node_hw"}} {made} {moment:.0f}'] if made >= 0 else []
    (folder / "metrics.om").write_text("\n".join([*rows, "# EOF"]) + "\n")
    (folder / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|Elapsed|NNodes|NodeList\n"
        f"71|llama3|RUNNING|0:0|{BEGAN:%Y-%m-%dT%H:%M:%S}|Unknown"
        f"|{timedelta(seconds=int(until_s))}|1|n1\n"
    )
    return diagnose(collect(Request((str(folder),))))


def test_a_counter_that_rose_lately(tmp_path: Path) -> None:
    verdict = going(tmp_path, until_s=2500)

    assert (verdict.code, verdict.confidence < 0.8) == ("G1", True)
    assert "step counter rose" in verdict.shows[0].text


@pytest.mark.parametrize(
    ("step", "silent_s"), [(STEPS, 900.0), (STEPS - 40, 0.0), (STEPS + 40, 0.0)],
    ids=["stale", "of a run that is behind", "of one that is ahead"],
)  # fmt: skip
def test_no_news_by_a_counter_that_stands_or_is_anothers(
    tmp_path: Path, step: int, silent_s: float
) -> None:
    """A gauge is scraped on long after the last step."""
    assert going(tmp_path, until_s=3500, step=step, silent_s=silent_s).state != "healthy"


def test_a_counter_that_falls_is_of_a_run_that_starts_again(tmp_path: Path) -> None:
    """It changes as well."""
    going(tmp_path, until_s=2500)
    metrics = tmp_path / "metrics.om"
    *rows, end = metrics.read_text().splitlines()
    back = [re.sub(r"\} \d+ ", "} 2 ", row) for row in rows[-4:-1]]
    metrics.write_text("\n".join([*rows[:-4], *back, rows[-1], end]) + "\n")

    assert diagnose(collect(Request((str(tmp_path),)))).state != "healthy"


def test_when_the_counter_rose_last(tmp_path: Path) -> None:
    going(tmp_path, until_s=4000, silent_s=1200)
    seen = last_counted(collect(Request((str(tmp_path),))))

    assert seen is not None
    assert abs(seen - (BEGAN + timedelta(seconds=2800)).timestamp()) <= 20
