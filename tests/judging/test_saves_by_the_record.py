"""Of a log without any time the record of the job tells what its saves took of the run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Finding, LogCite

BEGAN = datetime(2026, 3, 4, 8, tzinfo=UTC)


def save(n: int, save_s: float, how: str = "") -> tuple[str, str]:
    to = f"/nfs/run/checkpoint-{n}"
    return (f"Saving model checkpoint to {to}",
            f"Saved checkpoint to {to} ({how}save took {save_s:.1f}s)")  # fmt: skip


def log(save_s: float = 93.4, every: int = 20, beside: int = 0, how: str = "") -> list[str]:
    """Ten saves, each after so many steps; so many steps are printed `beside` each."""
    lines = []
    for n in range(1, 10 * every + 1):
        lines.append(f"step {n}/{10 * every} loss {8 - n / 90:.4f}")
        if n % every == 0:
            lines.append(save(n, save_s)[0])
        if n % every == beside and n > beside:
            lines.append(save(n - beside, save_s, how)[1])
    return lines


def in_blocks(lines: list[str], blocks: int) -> list[str]:
    """The steps of an output that a buffer holds back, so many at a time, amid what is not."""
    steps = [one for one in lines if one.startswith("step")]
    saves = [one for one in lines if not one.startswith("step")]
    out = []
    for n in range(blocks):
        for kept in (saves, steps):
            out += kept[
                2 * (n * len(kept) // 2 // blocks) : 2 * ((n + 1) * len(kept) // 2 // blocks)
            ]
    return out


def found(folder: Path, lines: list[str], lasted_s: float, record: bool = True) -> list[Finding]:
    (folder / "slurm-18.out").write_text("\n".join(lines) + "\n")
    if record:
        ended = BEGAN + timedelta(seconds=lasted_s)
        (folder / "sacct.txt").write_text(
            "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
            f"18|t|COMPLETED|0:0|{BEGAN:%FT%T}|{ended:%FT%T}|n1\n"
        )
    verdict = diagnose(collect(Request((str(folder),))))
    return [one.finding for one in verdict.findings if one.finding.code == "D2"]


def test_saves_that_held_the_steps_are_laid_beside_the_record(tmp_path: Path) -> None:
    """Two fifths of its time, by what each says it took."""
    (storm,) = found(tmp_path, log(), 10 * (93.4 + 20 * 6.0))

    assert (storm.fault_class, storm.role) == ("checkpoint-storm", "cause")
    assert storm.summary == "Saving checkpoints took 44% of the run's time"
    assert "10 lines on saves say that these took 934 s of 2134 s by the record" in (
        storm.shows[0].text
    )
    assert all("save took" in cite.text for cite in storm.cites if isinstance(cite, LogCite))


@pytest.mark.parametrize(
    ("lines", "lasted_s"),
    [
        pytest.param(log(beside=1), 2134, id="a-step-between-the-two-lines"),
        pytest.param(in_blocks(log(), 2), 2134, id="all-steps-in-two-blocks"),
        pytest.param(in_blocks(log(), 1), 2134, id="all-steps-in-one-block"),
        pytest.param(log(36.0, every=4), 10 * (36 + 4 * 20), id="no-longer-than-two-steps"),
        pytest.param(log(every=3), 10 * (93.4 + 3 * 20), id="after-every-few-steps"),
        pytest.param(log(how="async "), 2134, id="as-it-says"),
        pytest.param(log(), 900, id="more-than-the-record-holds"),
    ],
)  # fmt: skip
def test_near_misses(tmp_path: Path, lines: list[str], lasted_s: float) -> None:
    """They may have been written beside the steps."""
    assert not found(tmp_path, lines, lasted_s)


def test_without_a_record_nothing_tells_what_steps_took(tmp_path: Path) -> None:
    assert not found(tmp_path, log(), 2134, record=False)
