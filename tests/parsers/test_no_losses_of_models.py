"""Words and metrics beside a step that are no falling loss, and what is no end of a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.parsers import boosting, hf_trainer, logger_table, plain


@pytest.mark.parametrize("line", [
    "step 5 packet loss 2.50",
    "step 5: stop loss: 93.20 price 0.12",
    "epoch 5 time cost: 12.123456",
    "step 5 cost: 0.000310 USD",
    "\u7b2c5\u8f6e\uff0c\u6700\u4f73\u635f\u5931\uff1a0.12345",
])  # fmt: skip
def test_what_else_is_lost_or_costs(line: str) -> None:
    assert all(p.loss is None for p in plain.Reader().feed(line))


def test_a_count_of_errors_stands_still_between_two_cases() -> None:
    (row,) = boosting.Reader().feed("[12]\ttrain-error:0.01230\teval-error:0.10000")
    assert (row.step, row.loss) == (12, None)
    (unnamed,) = boosting.Reader().feed("12:\tlearn: 0.4123\ttest: 0.4311\ttotal: 1.2s")
    assert (unnamed.loss, unnamed.falling) == (0.4123, False)


def test_a_block_of_an_agent_that_names_no_reward() -> None:
    reader = logger_table.Reader()
    rows = ("|    n_updates     | 12    |", "|    loss          | 1.25  |", "| iterations | 3 |")
    (said,) = [p for row in rows for p in reader.feed(row)]
    assert (said.step, said.loss, said.falling) == (3, 1.25, False)


def test_the_loss_of_a_dict_in_a_dict_is_not_the_training_s() -> None:
    line = "{'epoch': 1, 'train': {'loss': 2.5}, 'val': {'loss': 0.4}}"
    assert not list(hf_trainer.Reader().feed(line))


def test_what_python_drops_at_exit(tmp_path: Path) -> None:
    steps = "".join(f"step {n}/40 loss {2 / (n + 1):.4f}\n" for n in range(41))
    dropped = (
        "Exception ignored in atexit callback: <function shutdown at 0x7f3a8c1d2b80>\n"
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.10/logging/__init__.py", line 2182, in shutdown\n'
        "    h.flush()\n"
        "ValueError: I/O operation on closed file.\n"
    )
    (tmp_path / "train.log").write_text(steps + "Training completed\n" + dropped)
    assert diagnose(collect(Request((str(tmp_path),)))).code == "G1"
