"""Steps of NeMo-RL."""

from __future__ import annotations

from flatline.parsers import nemo_rl

TEXT = """\
========================= Step 1/400 =========================
\u25b6 Preparing batch...
\U0001f4ca Training Results:
  \u2022 Loss: -0.0026
  \u2022 Avg Reward: 0.2336
\u23f1\ufe0f  Timing:
  \u2022 Total step time: 69.81s
  \u2022 generation: 38.40s (55.0%)
\U0001f4ca Validation Results:
  \u2022 Loss: 9.9
========================= Step 2/400 =========================
  \u2022 Loss: nan
  \u2022 Gradient Norm: 0.51
==== Step 3 of the plan ====
"""


def test_steps_losses_and_times() -> None:
    reader = nemo_rl.Reader()
    points = [p for line in TEXT.splitlines() for p in reader.feed(line)]
    train = [p for p in points if p.kind == "train"]

    assert [(p.step, p.planned) for p in train if p.planned] == [(1, 400), (2, 400)]
    assert [str(p.loss) for p in train if p.loss is not None] == ["-0.0026", "nan"]
    assert [p.step_s for p in train if p.step_s is not None] == [69.81]
    assert [p.grad_norm for p in train if p.grad_norm is not None] == [0.51]
    assert not any(p.falling for p in train)
    assert [p.kind for p in points].count("eval") == 1
