"""How frameworks tell their end, and what sounds like it and is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

OCR = (
    "[2026/03/02 10:{:02d}:{:02d}] ppocr INFO: epoch: [{}/4], global_step: {}, lr: 0.000500,"
    " CTCLoss: {:.4f}, avg_reader_cost: 0.003 s, avg_batch_cost: 0.2 s, ips: 600.1 samples/s\n"
)
CUR = "[2026/03/02 10:59:01] ppocr INFO: cur metric, acc: 0.71, fps: 3001.1\n"
BEST = "[2026/03/02 10:59:02] ppocr INFO: best metric, acc: 0.71, best_epoch: 4\n"
LOADER = "[2026/03/02 09:59:02] ppocr INFO: train dataloader has 100 iters\n"


def judged(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def ocr(epochs: int) -> str:
    return "".join(
        OCR.format(n * 4 // 60, n * 4 % 60, (n - 1) // 10 + 1, 10 * n, 30 * 0.93**n)
        for n in range(1, 10 * epochs + 1)
    )


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (ocr(4) + BEST, "healthy"),
        (LOADER + ocr(4), "healthy"),  # as many steps as were planned
        (ocr(4) + CUR + BEST, "undetermined"),  # an evaluation on the way
        (ocr(2) + BEST, "undetermined"),
        (LOADER + ocr(2), "undetermined"),
        (ocr(4), "undetermined"),
    ],
)
def test_the_best_metric_that_no_evaluation_comes_before(
    tmp_path: Path, text: str, state: str
) -> None:
    """PaddleOCR repeats it as its last words, behind the last epoch."""
    assert judged(tmp_path, text).state == state


STEP = (
    "I0302 10:{:02d}:00.461646 139923 logging_writer.py:48] [{}] accuracy=0.2,"
    " learning_rate=0.01, loss={:.4f}, timing/steps_per_second=1.2\n"
)
T5X = "".join(STEP.format(n, 100 * n, 8 * 0.95**n) for n in range(1, 41))


@pytest.mark.parametrize(
    ("last", "state"),
    [
        ("I0302 10:51:00.461646 139923 train.py:677] Finished.\n", "healthy"),
        ("I0302 10:51:00.461646 139923 prepare.py:677] Finished.\n", "undetermined"),
        ("I0302 10:51:00.461646 139923 train.py:601] Finished. Evaluating.\n", "undetermined"),
    ],
)
def test_a_training_module_that_says_it_has_finished(
    tmp_path: Path, last: str, state: str
) -> None:
    """And nothing else on that line: t5x."""
    assert judged(tmp_path, T5X + last).state == state


GAN = (
    "[n1] 2026-03-02 10:{:02d}:01,000 (gan_trainer:389) INFO: 3epoch:train:{}-{}batch:"
    " iter_time=5e-04, generator_loss={}, optim0_lr0=2e-04, train_time=0.8\n"
)
SKIPS = (
    "[n1] 2026-03-02 10:30:01,000 (gan_trainer:287) WARNING: The grad norm is nan."
    " Skipping updating the model.\n"
)
GAVE_UP = (
    "[n1] 2026-03-02 10:50:01,000 (trainer:441) WARNING: The gradients at all steps are invalid"
    " in this epoch. Something seems wrong. This training was stopped at 3epoch\n"
)
DONE = "[n1] 2026-03-02 10:50:01,000 (trainer:470) INFO: The training was finished at 3 epochs\n"


def gan(bad: int) -> str:
    return "".join(
        (SKIPS if n > 30 - bad else "")
        + GAN.format(n, 100 * n - 99, 100 * n, "nan" if n > 30 - bad else 70 - n % 5)
        for n in range(1, 31)
    )


def test_one_that_gave_up_has_not_finished(tmp_path: Path) -> None:
    """ESPnet says both; a generator's loss is none that must fall, but must be a number."""
    verdict = judged(tmp_path, gan(10) + GAVE_UP + DONE)

    assert (verdict.code, verdict.fault_class) == ("E1", "non-finite")


def test_a_generator_whose_loss_stays_a_number(tmp_path: Path) -> None:
    """It does not fall, and nothing is said against it."""
    assert judged(tmp_path, gan(0) + DONE).code != "E1"
