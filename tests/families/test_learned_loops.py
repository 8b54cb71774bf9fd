"""What is not sure of a loop whose numbers were learned from its log, or that may be none."""

from __future__ import annotations

from pathlib import Path

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict
from flatline.parsers import plain
from flatline.parsers._learned import roles

TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 88, in <module>\n'
    "    main()\n"
    '  File "train.py", line 41, in main\n'
    "    index = table[name]\n"
    "KeyError: 'news_03'\n"
)


def judged(folder: Path, lines: list[str], end: str = "") -> Verdict:
    (folder / "train.log").write_text("\n".join(lines) + "\n" + end)
    return diagnose(collect(Request((str(folder),))))


def test_a_number_that_rises_may_be_one_that_is_to_rise(tmp_path: Path) -> None:
    """It is called a loss; that it is to fall is the reader's guess."""
    lines = [f"fr {100 * n} nll {0.4 + n / 20 + (n * 7 % 5) / 90:.4f} lr 1e-4" for n in range(60)]
    verdict = judged(tmp_path, lines)

    assert verdict.confidence < 0.8
    assert verdict.code == "E1"
    assert "learned from the log" in str(verdict.cannot_decide)


def test_one_that_is_no_number_is_sure_all_the_same(tmp_path: Path) -> None:
    lines = [f"fr {100 * n} nll {3 - n / 40 if n < 30 else 'nan'} lr 1e-4" for n in range(60)]
    verdict = judged(tmp_path, lines)

    assert (verdict.code, verdict.fault_class) == ("E1", "non-finite")
    assert verdict.confidence >= 0.8


def test_a_number_that_nothing_calls_a_loss_may_be_none(tmp_path: Path) -> None:
    """It fell as a loss does; what becomes of it is no failure of training."""
    lines = [
        f"fr {100 * n} qz {3 - n / 40 + (n * 3 % 5) / 20 if n < 40 else 'nan'} lr 1e-4"
        for n in range(60)
    ]
    verdict = judged(tmp_path, lines)

    assert verdict.confidence < 0.8
    assert verdict.fault_class != "non-finite"


def test_a_return_is_told_by_any_of_its_words() -> None:
    told = [bool(roles.REWARD.search(name)) for name in ("mean_reward", "kl", "ep_ret", "skl")]

    assert told == [True, True, True, False]


def test_a_model_that_is_evaluated_has_a_rate_of_0(tmp_path: Path) -> None:
    lines = [f"step {20 * n} loss {2.4 + (n * 7 % 5) / 90:.4f} lr 0.00e+00 grad_norm 0.000"
             for n in range(60)]  # fmt: skip
    verdict = judged(tmp_path, lines)

    assert verdict.code == "E1"
    assert verdict.confidence < 0.8
    assert "is evaluated as well" in str(verdict.cannot_decide)


def test_what_counts_without_a_loss_may_be_before_training(tmp_path: Path) -> None:
    """A crash behind it is told, and not surely as one of training."""
    counted = [f"upd {20 * n} of 9000 tok/s {190_000 + n}" for n in range(60)]
    trained = [f"{line} nll {3 - n / 40:.3f}" for n, line in enumerate(counted)]
    alone, beside = (judged(tmp_path, lines, TRACEBACK) for lines in (counted, trained))

    assert (alone.code, beside.code) == ("A3", "A3")
    assert alone.confidence < 0.8 <= beside.confidence
    assert "no loss stands beside the count" in str(alone.cannot_decide)


def test_what_prepares_is_no_training() -> None:
    """Its rows look like any loop's."""
    row = "{}: step 80/1400 loss=0.0064 (recon) 6.85it/s"
    reader = plain.Reader()

    assert list(reader.feed(row.format("caching latents"))) == []
    assert list(reader.feed(row.format("fitting latents"))) != []
