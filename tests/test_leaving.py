"""Steps that a program still prints while it is being ended for its time."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.facts import Facts
from flatline.tracks import LEAVING_LINES, leaving

CANCELLED = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-02T10:10:10 {}***\n"
LIMIT = CANCELLED.format("DUE TO TIME LIMIT ")
LAST = 199
"""The last step before that line."""


def steps(first: int, last: int) -> str:
    return "".join(f"step {n}/5000 loss {4 - n / 2000:.4f}\n" for n in range(first, last + 1))


def read(folder: Path, behind: str, line: str = LIMIT) -> Facts:
    (folder / "train.log").write_text(steps(1, LAST) + line + behind)
    return collect(Request((str(folder),)))


@pytest.mark.parametrize("more", [0, 2, 3, 10, LEAVING_LINES])
def test_a_few_more_steps_behind_the_limit(tmp_path: Path, more: int) -> None:
    """Slurm leaves a program some time to end."""
    facts = read(tmp_path, steps(LAST + 1, LAST + more))
    verdict = diagnose(facts)

    assert (facts.disposition, verdict.code) == ("timeout", "F3")
    assert f"at step {LAST + more} of 5000" in verdict.headline


@pytest.mark.parametrize(
    ("behind", "line"),
    [
        (steps(LAST + 1, LAST + LEAVING_LINES + 1), LIMIT),
        (steps(LAST + 1, LAST + 10) + LEAVING_LINES * "saved\n", LIMIT),
        (steps(LAST + 1, LAST + 10), CANCELLED.format("")),
        (steps(LAST + 1, LAST + 10), CANCELLED.format("DUE TO PREEMPTION ")),
    ],
    ids=["more than a few", "much else", "for no time limit", "preempted"],
)
def test_a_run_that_went_on(tmp_path: Path, behind: str, line: str) -> None:
    """The line may be a helper's, or shown as data."""
    facts = read(tmp_path, behind, line)

    assert (facts.disposition, diagnose(facts).code) == ("unknown", None)
    assert not any(map(facts.standing, ("time-limit", "cancelled", "preempted")))


@pytest.mark.parametrize(
    "behind",
    [
        steps(1, 10),
        steps(LAST - 50, LAST - 40),
        f"Resuming from checkpoint: out/ckpt.pt (step 150)\n{steps(151, 161)}",
    ],
    ids=["from the first step", "from a checkpoint", "which is told"],
)
def test_steps_that_begin_anew_are_of_another_attempt(tmp_path: Path, behind: str) -> None:
    """Which the limit of the one before it did not end."""
    facts = read(tmp_path, behind)

    assert [one.n for one in facts.attempts] == [0, 1]
    assert [one.disposition for one in facts.attempts] == ["timeout", "unknown"]


@pytest.mark.parametrize(
    ("tag", "line", "lines", "may"),
    [
        ("time-limit", 200, 200, True),
        ("time-limit", 200, 200 + LEAVING_LINES, True),
        ("time-limit", 200, 201 + LEAVING_LINES, False),
        ("time-limit", 200, 0, False),
        ("cancelled", 200, 200, False),
        ("node-failure", 200, 200, False),
    ],
)
def test_only_near_the_end_of_a_log_of_known_length(
    tag: str, line: int, lines: int, may: bool
) -> None:
    assert leaving(tag, line, lines) is may
