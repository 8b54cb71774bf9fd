"""What a run that prints no loss, or was short on purpose, can be said to be."""

from __future__ import annotations

from pathlib import Path

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
