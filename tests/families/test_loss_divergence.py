"""How a loss that went wrong is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict


def told(folder: Path, losses: Sequence[str]) -> tuple[str, str]:
    """Headline and first implication for a log of these losses, every tenth step."""
    lines = [f"step {10 * i}/400 loss {loss} lr 1e-4 step_time 0.40 s\n"
             for i, loss in enumerate(losses, 1)]  # fmt: skip
    (folder / "train.log").write_text("".join(lines))
    verdict = diagnose(collect(Request((str(folder),))))
    assert (verdict.code, verdict.fault_class) == ("E1", "non-finite")
    return verdict.headline, verdict.implies[0].text


@pytest.mark.parametrize(("count", "where"), [(1, "the one line read of it"),
                                              (12, "every line read (12)")])  # fmt: skip
def test_a_loss_without_a_finite_value_is_not_said_to_have_become_so(
    tmp_path: Path, count: int, where: str
) -> None:
    """When it began is before what was read."""
    headline, implied = told(tmp_path, ["nan"] * count)

    assert headline == f"The loss or its gradient is non-finite in {where}"
    assert implied.startswith("Every step read ")


def test_a_loss_that_was_finite_became_non_finite(tmp_path: Path) -> None:
    headline, implied = told(tmp_path, ["3.1", "2.9", "2.8", "2.7", "nan", "nan", "nan"])

    assert headline == "The loss or its gradient became non-finite at step 50 and stayed so"
    assert implied.startswith("Every step after the onset ")


def test_an_evaluation_that_ends_without_a_number(tmp_path: Path) -> None:
    """The training's own loss is sound: one evaluation before the last does not matter."""

    def run(*held_out: str) -> Verdict:
        (tmp_path / "train.log").write_text(
            "".join(
                f"Epoch {n}/8\n1563/1563 [==============================] - 8s 5ms/step - loss:"
                f" {4 * 0.9**n:.4f} - accuracy: 0.4 - val_loss: {loss} - val_accuracy: 0.3\n"
                for n, loss in enumerate(held_out, 1)
            )
        )
        return diagnose(collect(Request((str(tmp_path),))))

    ended = run("3.8", "3.7", "3.6", "3.5", "3.4", "3.4", "3.3", "nan")
    passed = run("3.8", "3.7", "3.6", "3.5", "3.4", "3.4", "nan", "3.3")

    never = run(*["nan"] * 8)

    assert (ended.code, ended.confidence < 0.8, passed.code) == ("E1", True, "G1")
    assert never.code == "G1"  # of an empty set, most often


COUNT = "[INFO] [logging.py:69:log_dist] [Rank 0] step={}, skipped={}, lr=[0.001], mom=[0.0]"


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        pytest.param([(400, 390), (800, 790)], "E1", id="nearly-all"),
        pytest.param([(400, 150), (800, 300)], None, id="a-third"),
        pytest.param([(100, 100), (190, 100)], None, id="at-first"),
        pytest.param([(400, 390)], None, id="counted-once-and-losses-since"),
    ],
)
def test_most_steps_were_skipped(
    tmp_path: Path, counts: list[tuple[int, int]], code: str | None
) -> None:
    """The engine counts them while the trainer goes on printing losses."""
    rows = ["{'loss': 6.2, 'learning_rate': 0.001, 'epoch': 0.02}"]
    rows += [COUNT.format(*count) for count in counts]
    rows.append("{'loss': 6.1, 'learning_rate': 0.001, 'epoch': 0.04}")
    (tmp_path / "train.log").write_text("\n".join(rows) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    assert ("skipped" in verdict.headline) is (code == "E1")


def test_losses_of_nought_since_most_steps_were_skipped(tmp_path: Path) -> None:
    """Counted once."""
    rows = ["{'loss': 6.2, 'learning_rate': 0.001, 'epoch': 0.02}", COUNT.format(800, 790)]
    rows += ["{'loss': 0.0, 'learning_rate': 0.001, 'epoch': 0.04}"] * 2
    (tmp_path / "train.log").write_text("\n".join(rows) + "\n")

    assert diagnose(collect(Request((str(tmp_path),)))).code == "E1"


@pytest.mark.parametrize(("end", "code"), [("2.4", "E1"), ("1.1", None)])
def test_an_evaluation_that_is_no_number_from_the_first_on(
    tmp_path: Path, end: str, code: str | None
) -> None:
    """It says something where the losses of training have not come down either."""
    losses = ["1.3", "1.8", "1.9", "1.8", "1.7", "1.6"]
    rows = [f"{{'loss': {loss}, 'learning_rate': 0.002, 'epoch': {0.1 * i:.1f}}}"
            for i, loss in enumerate(losses, 1)]  # fmt: skip
    rows.append("{'eval_loss': nan, 'eval_runtime': 22.4, 'epoch': 1.0}")
    rows.append(f"{{'loss': {end}, 'learning_rate': 0.002, 'epoch': 1.1}}")
    (tmp_path / "train.log").write_text("\n".join(rows) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    assert verdict.confidence < 0.8
