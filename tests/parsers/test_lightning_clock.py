"""The time that Lightning's bars say they have run, and the step's own beside it."""

from __future__ import annotations

from flatline.parsers.lightning import Reader

BAR = (
    "Epoch {epoch}:  40%|████      | {n}/5000 [{ran}<1:10:00, 1.30s/it, v_num=3-17,"
    " train_step_timing in s={own:.2f}, reduced_train_loss={loss:.3f}]"
)


def times(*bars: tuple[int, str, float], epoch: int = 1) -> list[float | None]:
    reader = Reader()
    said = [
        point
        for at, (n, ran, own) in enumerate(bars)
        for point in reader.feed(BAR.format(epoch=epoch, n=n, ran=ran, own=own, loss=2 - at / 100))
    ]
    return [point.step_s for point in said]


def test_a_bar_that_says_less_at_a_later_step_is_no_clock() -> None:
    """It reckons its time from its rate: what the step itself says counts from there on."""
    seen = times((2001, "43:25", 1.3), (2002, "43:38", 1.31), (2003, "43:33", 1.29),
                 (2004, "43:59", 1.32), (2005, "44:31", 1.28))  # fmt: skip
    assert seen[2:] == [1.29, 1.32, 1.28]


def test_a_bar_that_was_begun_anew_runs_on() -> None:
    """A try that went on within the epoch draws its own: a pause that it shows is one."""
    seen = times((2001, "43:25", 1.3), (2002, "43:26", 1.3), (2003, "00:01", 1.3),
                 (2004, "00:41", 1.3), (2005, "00:42", 1.3))  # fmt: skip
    assert seen[3] == 40.0


def test_a_bar_that_runs_is_believed() -> None:
    """A save that the step's own time leaves out is in it."""
    seen = times((2001, "43:25", 1.3), (2002, "43:26", 1.3), (2003, "44:06", 1.3))
    assert seen[2] == 40.0
