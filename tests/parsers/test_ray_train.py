"""Ray Train's tables of what a trainer reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Progress
from flatline.parsers.ray_train import Reader

TABLE = """\
Training finished iteration {n} at 2026-04-08 06:{n:02d}:34. Total running time: {n}min 13s
╭───────────────────────────────╮
│ Training result               │
├───────────────────────────────┤
│ checkpoint_dir_name           │
│ time_this_iter_s       61.250 │
│ training_iteration        {n:3d} │
│ accuracy               0.7{n:02d}0 │
│ {name:20s}   {loss:.4f} │
╰───────────────────────────────╯
"""


def read(text: str) -> list[Progress]:
    reader = Reader()
    return [said for line in text.splitlines() for said in reader.feed(line)]


@pytest.mark.parametrize("name", ["loss", "train_loss", "training/loss"])
def test_an_iteration_with_its_loss(name: str) -> None:
    (said,) = read(TABLE.format(n=3, name=name, loss=0.3847))

    assert (said.step, said.loss, said.loss_name, said.step_s) == (3, 0.3847, name, 61.25)


@pytest.mark.parametrize("name", ["val_loss", "loss_scale", "eval/loss"])
def test_what_is_no_loss_of_training(name: str) -> None:
    assert read(TABLE.format(n=3, name=name, loss=0.3847)) == []


def test_a_trials_own_table_is_left_alone() -> None:
    """Several trials take turns."""
    text = TABLE.format(n=3, name="loss", loss=0.38)

    assert read(text.replace("Training finished", "Trial T_9c1 finished")) == []


def test_a_run_of_twelve_iterations(tmp_path: Path) -> None:
    text = "".join(TABLE.format(n=n, name="loss", loss=0.9 * 0.85**n) for n in range(1, 13))
    (tmp_path / "slurm-4.out").write_text(text)
    (tmp_path / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        "4|ray|COMPLETED|0:0|2026-04-08T06:00:00|2026-04-08T06:14:00|1|n1\n"
    )

    assert diagnose(collect(Request((str(tmp_path),)))).code == "G1"
