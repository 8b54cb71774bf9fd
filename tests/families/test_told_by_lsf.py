"""Runs that LSF tells of: a table of jobs beside an undated log, a report above the output."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.steering import leave_out
from flatline.model import Verdict

BEGAN = datetime(2026, 11, 5, 8, 0, tzinfo=UTC)
EACH_S, POINTS = 2.0, 90
WITHIN = timedelta(seconds=10 * POINTS * EACH_S)
"""By the bar's own clock, from its beginning to the last step."""


def of(*files: tuple[Path, str]) -> Verdict:
    for path, text in files:
        path.write_text(text)
    return diagnose(collect(Request((str(files[0][0].parent),))))


def going(folder: Path, after: timedelta, watts: float = 400.0) -> Verdict:
    """A bar below one dated line; the table was printed so long after what its last step is
    reckoned to, and the GPUs drew so much since."""
    log = [f"[{BEGAN:%Y-%m-%d %H:%M:%S},118] [INFO] [accelerator.py:219:get] using cuda"]
    for n in range(1, POINTS + 1):
        ran = int(10 * n * EACH_S)
        log += [f" {n:2d}%|#  | {10 * n}/9000 [{ran // 60:02d}:{ran % 60:02d}<4:46:24,  2.00s/it]",
                f"{{'loss': {2 - n / 200:.4f}, 'grad_norm': 0.5, 'learning_rate': 0.0001,"
                f" 'epoch': {n / 300:.2f}}}"]  # fmt: skip
    now = BEGAN + WITHIN + after
    rows = [
        f'DCGM_FI_DEV_POWER_USAGE{{Hostname="gpu01",gpu="{gpu}"}}'
        f" {400.0 if at < WITHIN.total_seconds() else watts}"
        f" {(BEGAN + timedelta(seconds=at)).timestamp():.0f}"
        for gpu in range(2)
        for at in range(60, int((now - BEGAN).total_seconds()) + 1, 15)
    ]
    metrics = "\n".join(["# TYPE DCGM_FI_DEV_POWER_USAGE gauge", *rows, "# EOF"])
    session = (
        f"$ date\n{now:%a %b %d %H:%M:%S} UTC 2026\n$ bjobs -w 771\n"
        "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME\n"
        f"771     ada     RUN   long       login1      8*gpu01     lm    {BEGAN:%b %d %H:%M}\n"
    )
    return of(
        (folder / "lm.771.out", "\n".join(log) + "\n"),
        (folder / "seen.txt", session),
        (folder / "metrics.om", metrics + "\n"),
    )


@pytest.mark.parametrize(
    ("after_s", "watts", "code"),
    [(20, 400.0, "G1"), (150, 400.0, "G1"), (150, 150.0, None), (900, 400.0, None)],
    ids=["just made", "what was loaded took its time", "the GPUs wait since", "too long ago"],
)
def test_a_run_that_a_table_shows_to_go_on(
    tmp_path: Path, after_s: int, watts: float, code: str | None
) -> None:
    """The one dated line tells of nothing, and stands above all that was loaded."""
    verdict = going(tmp_path, timedelta(seconds=after_s), watts)

    assert (verdict.code if verdict.code == "G1" else None) == code
    assert verdict.confidence < 0.8
    assert verdict.run.hosts == ("gpu01",)


def limited(folder: Path, last: timedelta) -> Verdict:
    """A report of a job that met its limit of two hours, above its output."""
    ends = BEGAN + timedelta(hours=2)
    many = int(last.total_seconds() // 60)
    steps = "".join(
        f"{BEGAN + timedelta(minutes=n):%Y-%m-%d %H:%M:%S} step {n} loss {2 - n / 100:.3f}\n"
        for n in range(1, many + 1)
    )
    report = (
        "Sender: LSF System <lsfadmin@gpu01>\n"
        "Subject: Job 771: <lm> in cluster <c1> Exited\n\n"
        f"Job was executed on host(s) <8*gpu01>, in queue <long>, as user <ada> in cluster <c1>\n"
        f"Started at {BEGAN:%a %b %d %H:%M:%S %Y}\n"
        f"Terminated at {ends:%a %b %d %H:%M:%S %Y}\n\nYour job looked like:\n\n{'-' * 60}\n"
        f"# LSBATCH: User input\npython train.py\n{'-' * 60}\n\n"
        "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\n"
        f"Exited with exit code 140.\n\nThe output (if any) follows:\n\n{steps}"
    )
    return of((folder / "mail.txt", report))


def test_a_limit_that_stands_above_the_steps_it_ended(tmp_path: Path) -> None:
    verdict = limited(tmp_path, timedelta(minutes=119))

    assert (verdict.code, verdict.confidence >= 0.8) == ("F3", True)
    assert verdict.run.disposition == "timeout"
    assert all(action.command is None for action in verdict.actions)


def test_steps_that_stopped_long_before_the_limit_were_not_cut_short(tmp_path: Path) -> None:
    assert limited(tmp_path, timedelta(minutes=70)).code != "F3"


def test_how_lsf_leaves_out_a_host(tmp_path: Path) -> None:
    limited(tmp_path, timedelta(minutes=119))
    facts = collect(Request((str(tmp_path),)))

    assert leave_out(facts, ["gpu01"]).command == "bsub -R \"select[hname!='gpu01']\""
