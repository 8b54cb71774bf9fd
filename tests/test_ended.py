"""One stream's or one try's end does not speak for the others."""

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose


def steps(last: int, hour: int) -> str:
    return "".join(
        f"2026-03-02 {hour:02d}:{i // 60:02d}:{i % 60:02d} step {i}/300 loss {3 - i * 0.009:.4f}\n"
        for i in range(0, last, 10)
    )


def test_an_earlier_end_does_not_end_a_later_try(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    (tmp_path / "1" / "train.log").write_text(steps(301, 10) + "Training completed\n")
    (tmp_path / "2" / "train.log").write_text(steps(60, 12))
    assert diagnose(collect(Request((str(tmp_path),)))).state == "undetermined"


def test_a_rank_that_raised_is_not_hidden_by_one_that_ended(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text(steps(301, 10) + "Training completed\n")
    (tmp_path / "rank1.log").write_text(
        steps(200, 10)
        + "Traceback (most recent call last):\n"
        + '  File "train.py", line 9, in <module>\n    main()\n'
        + "RuntimeError: shape mismatch in batch\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))
    assert (verdict.state, verdict.code) == ("found", "A3")


@pytest.mark.parametrize(
    ("above", "code"),
    [("Exception ignored in: <function Pool.__del__ at 0x7f20>\n", "G1"), ("", "A3")],
)
def test_what_is_dropped_beside_the_log_of_the_end(tmp_path: Path, above: str, code: str) -> None:
    """A destructor's exception on the standard error ends no process; one that is raised may."""
    (tmp_path / "train.out").write_text(steps(301, 10) + "Training completed\n")
    (tmp_path / "train.err").write_text(
        above
        + "Traceback (most recent call last):\n"
        + '  File "pool.py", line 70, in __del__\n    self._change_notifier.put(None)\n'
        + "OSError: handle is closed\n"
    )
    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def tail_of_a_run(mean: str) -> str:
    """The last tenth of a Trainer's log, in which the loss no longer moves."""
    last = "".join(
        f"{{'loss': 0.{1790 + n % 3 * 20}, 'grad_norm': 0.6, 'learning_rate': {9 - n / 4}e-07,"
        f" 'epoch': {7 + n / 4}}}\n"
        for n in range(13)
    )
    return (
        last
        + "{'train_runtime': 326.3, 'train_samples_per_second': 4.9, 'train_steps_per_second':"
        f" 1.226, 'train_loss': {mean}, 'epoch': 10.0}}\n"
    )


def test_the_mean_loss_of_all_steps_shows_that_a_tail_had_fallen(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(tail_of_a_run("0.3935"))
    assert diagnose(collect(Request((str(tmp_path),)))).code == "G1"


def test_a_mean_at_the_level_of_the_tail_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(tail_of_a_run("0.1843"))
    assert diagnose(collect(Request((str(tmp_path),)))).state == "undetermined"
