"""Memory that another process held before a job began."""

from __future__ import annotations

from pathlib import Path

import pytest

from families.fleet import sample
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList|AllocTRES\n"
    "6|t|FAILED|1:0|2023-11-14T22:18:20|2023-11-14T22:23:30|2|n[0-1]|gres/gpu=8\n"
)
START = 300
LINE = (
    "[rank0]: 2023-11-14 22:19:50,000 - root - INFO - Building the model\n"
    "[rank6]: 2023-11-14 22:20:00,000 - root - INFO - Training starts\n"
    "[rank6]: Traceback (most recent call last):\n"
    '[rank6]:   File "/app/fit.py", line 90, in <module>\n'
    "[rank6]:     loss.backward()\n"
    "[rank6]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 2 has a"
    " total capacity of 78.12 GiB of which 1.10 GiB is free. Of the allocated memory 40.00 GiB is"
    " allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.\n"
)


def judged(
    folder: Path,
    held: dict[tuple[str, int], float],
    since: float = 0.0,
    until: float = 1e9,
    asked: str = "9.00 GiB",
    sacct: str = SACCT,
    peak: float = 46_000.0,
) -> Verdict:
    """Two hosts of four GPUs that the job fills from its second minute on, beside what another
    process holds of some of them from `since` to `until`."""
    lines = []
    for at in range(0, 601, 15):
        for host in ("n0", "n1"):
            for gpu in range(4):
                other = held.get((host, gpu), 0.0) if since <= at < until else 0.0
                own = peak if START + 120 <= at < START + 300 else 0.0
                label = f'Hostname="{host}",gpu="{gpu}"'
                lines.append(sample("DCGM_FI_DEV_FB_USED", label, 500.0 + other + own, at))
                lines.append(sample("DCGM_FI_DEV_FB_TOTAL", label, 80_000.0, at))
    (folder / "metrics.prom").write_text("\n".join(lines) + "\n")
    (folder / "sacct.psv").write_text(sacct)
    (folder / "slurm-6.out").write_text(LINE.format(asked=asked))
    return diagnose(collect(Request((str(folder),))))


def told(verdict: Verdict) -> bool:
    return any("before the job began" in one.text for one in verdict.implies)


def test_a_card_that_was_held_before_the_job_is_the_one(tmp_path: Path) -> None:
    """With its host, which the message does not know, and to be left out."""
    verdict = judged(tmp_path, {("n1", 2): 33_000.0})

    assert (verdict.code, verdict.attribution, told(verdict)) == ("B1", "infrastructure", True)
    assert [(p.rank, p.host, p.gpu) for p in verdict.culprits] == [(6, "n1", "2")]
    assert verdict.resubmit == "exclude"


def test_so_it_is_where_no_sample_saw_the_card_full(tmp_path: Path) -> None:
    """By the number that the message says."""
    verdict = judged(tmp_path, {("n1", 2): 33_000.0}, peak=9_000.0)

    assert told(verdict)
    assert [(p.host, p.gpu) for p in verdict.culprits] == [("n1", "2")]


@pytest.mark.parametrize(
    ("held", "since", "until", "asked"),
    [
        ({("n1", 2): 33_000.0}, START + 60, 1e9, "9.00 GiB"),  # the job's own, perhaps
        ({("n1", 2): 33_000.0}, 0, START + 30, "9.00 GiB"),  # the job before, leaving
        ({("n1", 2): 33_000.0}, 0, 1e9, "60.00 GiB"),  # without it there was no room either
        ({("n1", 2): 900.0}, 0, 1e9, "1.50 GiB"),  # no more than a context takes
        ({(h, g): 33_000.0 for h in ("n0", "n1") for g in range(4)}, 0, 1e9, "9.00 GiB"),
        ({("n0", 2): 33_000.0, ("n1", 2): 33_000.0}, 0, 1e9, "9.00 GiB"),  # which of them?
    ],
)
def test_near_misses_stay_the_job_s(
    tmp_path: Path, held: dict[tuple[str, int], float], since: float, until: float, asked: str
) -> None:
    """Nobody else is blamed for them."""
    verdict = judged(tmp_path, held, since, until, asked)

    assert (verdict.code, told(verdict)) == ("B1", False)
    assert verdict.attribution != "infrastructure"


def test_the_memory_of_another_card_is_not_this_one_s(tmp_path: Path) -> None:
    """The message says which."""
    assert not told(judged(tmp_path, {("n1", 1): 33_000.0}, peak=9_000.0))


def test_without_a_record_nobody_knows_when_it_began(tmp_path: Path) -> None:
    """What a card held in its first sample may be the job's."""
    assert not told(judged(tmp_path, {("n1", 2): 33_000.0}, sacct=""))


def test_an_undated_failure_is_looked_for_until_the_end(tmp_path: Path) -> None:
    """The sample in which the card was full comes behind the last line with a time."""
    (tmp_path / "late").mkdir()
    verdict = judged(tmp_path / "late", {("n1", 2): 33_000.0}, since=START + 180)

    assert [(p.rank, p.host, p.gpu) for p in verdict.culprits] == [(6, "n1", "2")]
    assert any("or by its end" in one.text for one in verdict.shows)
