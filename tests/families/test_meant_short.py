"""What a run that prints no loss, or was short on purpose, can be said to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

HEAD = '0: :::MLLOG {{"namespace": "", "time_ms": {ms}, "event_type": "POINT_IN_TIME", '
ACCURACY = HEAD + '"key": "eval_accuracy", "value": 0.9, "metadata": {{"samples_count": {n}}}}}\n'
BLOCK = HEAD + '"key": "block_stop", "value": null, "metadata": {{"samples_count": {n}}}}}\n'
BATCH = HEAD + '"key": "global_batch_size", "value": 8, "metadata": {{}}}}\n'
STOP = HEAD + '"key": "run_stop", "value": 0.9, "metadata": {{"status": "{status}"}}}}\n'


def verdict(folder: Path, text: str) -> Verdict:
    (folder / "job.out").write_text(text)
    return diagnose(collect(Request((str(folder / "job.out"),))))


def benchmark(status: str, fresh: str = "") -> str:
    parts = [fresh, BATCH.format(ms=1772438963000)]
    for n in range(1, 13):
        at = 1772438963000 + n * 60_000
        parts += [BLOCK.format(ms=at, n=n * 96), ACCURACY.format(ms=at, n=n * 96)]
    return "".join(parts) + STOP.format(ms=1772439963000, status=status)


def test_a_benchmark_that_measured_its_own_success_is_healthy(tmp_path: Path) -> None:
    """It prints no loss, and need not have found a checkpoint."""
    looked = "0: There were no checkpoints found in /c. Training from scratch.\n"
    for text in (benchmark("success"), benchmark("success", looked)):
        found = verdict(tmp_path, text)
        assert (found.state, found.code) == ("healthy", "G1")


def test_one_that_missed_its_target_is_not(tmp_path: Path) -> None:
    assert verdict(tmp_path, benchmark("aborted")).state == "undetermined"


def short(head: str) -> str:
    steps = "".join(f"step {n}/4 loss {3 - n * 0.5}\n" for n in range(1, 5))
    return head + steps + "Training completed\n"


def test_four_steps_are_undertrained(tmp_path: Path) -> None:
    assert verdict(tmp_path, short("")).code == "E3"


def test_four_steps_of_a_part_of_the_data_are_meant(tmp_path: Path) -> None:
    """A warning then, and no claim that so few steps learnt anything."""
    found = verdict(tmp_path, short("+ python run_clm.py --max_train_samples 1000 --do_train\n"))
    assert (found.state, found.code) == ("undetermined", None)
    assert [(j.finding.code, j.role) for j in found.findings] == [("E3", "warning")]


def test_each_try_of_one_log_has_its_own_end(tmp_path: Path) -> None:
    """The last one is the run's."""

    def steps(last: int) -> str:
        return "".join(f"step {n}/400 loss {3 - n * 0.005:.3f}\n" for n in range(0, last, 10))

    limit = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-01T10:00:00 DUE TO TIME LIMIT ***\n"  # noqa: E501
    found = verdict(tmp_path, steps(200) + limit + steps(401) + "Training completed\n")
    assert [a.disposition for a in found.run.attempts] == ["timeout", "completed"]


BANNER = "   \\\\   /|    Num examples = 2,144 | Num Epochs = {} | Total steps = {}\n"
SUMMARY = (
    "{'train_runtime': 0.0142, 'train_steps_per_second': 0.0, 'train_loss': 0.0, 'epoch': 0}\n"
)


@pytest.mark.parametrize(
    "text",
    [
        BANNER.format(0, 0) + "0it [00:00, ?it/s]\n" + SUMMARY,
        "***** Running training *****\n  Num Epochs = 0\n  Total optimization steps = 0\n"
        + SUMMARY,
    ],
)
def test_no_step_was_planned(tmp_path: Path, text: str) -> None:
    """A trainer that announces 0 steps and ends."""
    told = verdict(tmp_path, text)

    assert told.code == "E3"
    assert told.confidence < 0.8


@pytest.mark.parametrize(
    "text",
    [
        BANNER.format(1, 134) + SUMMARY,
        BANNER.format(0, 0),
        BANNER.format(0, 0) + SUMMARY + BANNER.format(1, 20) + SUMMARY,
        SUMMARY,
    ],
    ids=["some were", "it did not end", "a second stage had some", "nothing announced"],
)
def test_steps_that_may_have_been_made(tmp_path: Path, text: str) -> None:
    assert verdict(tmp_path, text).code != "E3"


def test_no_step_of_a_part_of_the_data_is_meant(tmp_path: Path) -> None:
    told = verdict(
        tmp_path, "+ python t.py --max_train_samples 8\n" + BANNER.format(0, 0) + SUMMARY
    )

    assert told.code is None


FREED = "[rank 0] surrogate: finished, destroying process group\n"
SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
    "6|t|{state}|{code}|2026-01-01T10:00:00|2026-01-01T11:00:00|1|n0\n"
)


def ended(
    folder: Path, last: int, said: str, state: str = "COMPLETED", code: str = "0:0"
) -> Verdict:
    """A run of 200 planned steps, as its record and its log say it ended."""
    (folder / "sacct.psv").write_text(SACCT.format(state=state, code=code))
    (folder / "slurm-6.out").write_text(
        "".join(f"step {n}/200 loss {3 - n / 100:.3f}\n" for n in range(2, last + 1, 2)) + said
    )
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(("last", "early"), [(170, True), (190, False), (200, False)])
def test_a_program_that_frees_its_group_is_done(tmp_path: Path, last: int, early: bool) -> None:
    """Where much of its plan was left its word is cited, and doubted."""
    found = ended(tmp_path, last, FREED)

    assert (found.state, "stopped early" in found.headline) == ("healthy", early)
    assert not early or found.confidence < 0.8
    assert early == any("destroying" in getattr(cite, "text", "") for one in found.shows
                        for cite in one.cites)  # fmt: skip


@pytest.mark.parametrize(
    ("said", "state", "code"),
    [
        ("", "COMPLETED", "0:0"),
        ("[rank 0] surrogate: not finished, destroying process group\n", "COMPLETED", "0:0"),
        ("[rank 0] surrogate: destroying process group\n", "COMPLETED", "0:0"),
        (FREED, "FAILED", "1:0"),
    ],
)
def test_what_is_no_word_that_it_was_done(
    tmp_path: Path, said: str, state: str, code: str
) -> None:
    """Nor does it count against the record."""
    assert ended(tmp_path, 170, said, state, code).state != "healthy"
