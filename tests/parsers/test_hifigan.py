"""The lines of HiFi-GAN's and BigVGAN's train.py."""

from __future__ import annotations

from flatline.model import Progress
from flatline.parsers.hifigan import Reader


def said(*lines: str) -> list[Progress]:
    reader = Reader()
    return [one for line in lines for one in reader.feed(line)]


def test_steps_with_the_error_of_the_spectrogram() -> None:
    both = (
        "Steps : 25, Gen Loss Total : 36.581, Mel-Spec. Error : 0.500, s/b : 0.653",
        "[2025-05-18 14:57:05] Steps : 50, Gen Loss Total : 36.581, Mel-Spec. Error : nan, s/b :"
        " 0.653 lr : 0.0001000 grad_norm_g : 69.384",
    )
    short = "2026-05-18 14:57:05 Steps : 75, Gen Loss Total : 30.2, Mel Error : 0.31, s/b : 0.77"
    first, second, third = said(*both, short)
    assert (third.step, third.loss, third.loss_name) == (75, 0.31, "Mel Error")
    assert first == Progress("train", 25, loss=0.5, loss_name="Mel-Spec. Error", step_s=0.653)
    assert (second.step, second.loss == second.loss, second.lr) == (50, False, 0.0001)


def test_a_checkpoint_is_whole_once_it_says_so() -> None:
    saved = ("Saving checkpoint to /exp/v2/g_00145000", "Complete.",
             "Saving checkpoint to /exp/v2/do_00145000", "Complete.")  # fmt: skip
    assert said(*saved) == [Progress("checkpoint_saved", 145000)]
    assert said("Loading '/exp/v2/g_00080000'", "Complete.") == [
        Progress("checkpoint_loaded", 80000)
    ]
    assert said(saved[0]) == said("Complete.") == said(saved[0], saved[2], "Complete.") == []
