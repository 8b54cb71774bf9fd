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


STATUS = """\
Trial status: {of}
Current time: 2026-05-11 14:{m:02d}:30. Total running time: {m}min 30s
Logical resource usage: 9.0/32 CPUs, 1.0/1 GPUs (0.0/1.0 accelerator_type:A10)
╭────────────────────────────────────────────────────────────────────────────────────────────╮
│ Trial name               status       iter     total time (s)        ts   {name} │
├────────────────────────────────────────────────────────────────────────────────────────────┤
│ SAC_reach_{id}_00000    RUNNING   {n:8d}   {s:16.3f}   {ts:7d}   {value:>10} │
╰────────────────────────────────────────────────────────────────────────────────────────────╯
"""
OLDER = """\
== Status ==
Current time: 2022-05-11 14:{m:02d}:30 (running for 00:{m:02d}:30.11)
Number of trials: 1/1 (1 {status})
+-----------------------+------------+------------------+--------+------------------+----------+
| Trial name            | status     | loc              |   iter |   total time (s) |   reward |
|-----------------------+------------+------------------+--------+------------------+----------|
| SAC_reach_{id}_00000 | {status:10s} | {loc:16s} | {n:6d} | {s:16.3f} |  {value:>7} |
+-----------------------+------------+------------------+--------+------------------+----------+
"""


def status(m: int, n: int, *, of: str = "1 RUNNING", name: str = "    reward", id: str = "5f1c2",
           value: object = 12.5) -> str:  # fmt: skip
    return STATUS.format(of=of, m=m, n=n, s=41.5 * n, ts=4000 * n, name=name, id=id, value=value)


def test_a_lone_trial_s_row() -> None:
    """A status is printed by the clock: an iteration once, the time of those between shared."""
    text = status(1, 1) + status(2, 3) + status(3, 3) + status(4, 4, value="nan")
    found = read(text)

    assert [(p.kind, p.step, p.step_s) for p in found if p.kind == "train"] == [
        ("train", 1, None), ("train", 3, 41.5), ("train", 4, 41.5),
    ]  # fmt: skip
    assert [(p.step, p.loss, p.loss_name) for p in found if p.kind == "eval"] == [
        (1, 12.5, "reward"), (3, 12.5, "reward"),
    ]  # fmt: skip


def test_a_lone_trial_s_loss() -> None:
    (said,) = read(status(1, 2, name="train_loss", value=0.42))

    assert (said.loss, said.loss_name, said.falling) == (0.42, "train_loss", True)


def test_the_older_table_and_its_end() -> None:
    """The place is blank once a trial has ended."""
    row = {"id": "5f1c2", "value": 3.1}
    text = OLDER.format(m=1, n=1, s=30.0, status="RUNNING", loc="10.2.0.4:1711", **row)
    text += OLDER.format(m=2, n=2, s=61.0, status="RUNNING", loc="10.2.0.4:1711", **row)
    text += OLDER.format(m=3, n=3, s=90.0, status="TERMINATED", loc="", **row) * 2

    assert [(p.kind, p.step) for p in read(text)] == [
        ("train", 1), ("eval", 1), ("train", 2), ("eval", 2), ("finished", None),
    ]  # fmt: skip


def test_an_end_and_what_is_tuned_after_it() -> None:
    ends = ("Trial SAC_reach_5f1c2_00000 completed after 2 iterations at 2026-05-11 14:02:59."
            " Total running time: 2min 59s\n")  # fmt: skip
    found = read(status(1, 1) + status(2, 2) + ends + status(4, 1, id="9d0e1") + ends)

    assert [(p.kind, p.step) for p in found if p.kind != "eval"] == [
        ("train", 1), ("train", 2), ("finished", 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(status(1, 1, of="2 RUNNING"), id="several"),
        pytest.param(status(1, 1, of="1 RUNNING | 3 PENDING"), id="one-at-a-time"),
        pytest.param(status(1, 1).split("\n", 1)[1], id="no-status"),
        pytest.param("Trial T_5f1c2 completed after 9 iterations at 2026-05-11 14:02:59.\n",
                     id="of-several"),
        pytest.param("Trial status: 1 ERROR\nTrial T_5f1c2 errored after 9 iterations at 2026\n",
                     id="failed"),
    ],
)  # fmt: skip
def test_no_lone_trial(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(("state", "ends", "code"), [("COMPLETED", True, "G1"),
                                                    ("FAILED", False, None)])  # fmt: skip
def test_a_run_of_a_lone_trial(tmp_path: Path, state: str, ends: bool, code: str | None) -> None:
    text = "".join(status(n, n, value=round(-30 + 2.5 * n, 2)) for n in range(1, 41))
    if ends:
        text += ("Trial SAC_reach_5f1c2_00000 completed after 40 iterations at 2026-05-11"
                 " 14:41:02. Total running time: 41min 2s\n")  # fmt: skip
    (tmp_path / "slurm-4.out").write_text(text)
    (tmp_path / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"4|ray|{state}|0:0|2026-05-11T14:00:00|2026-05-11T14:42:00|1|n1\n"
    )

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def test_the_end_of_a_trainer() -> None:
    """It says so of no trial; one that failed ends in other words."""
    reader = Reader()
    ended = "Training {} after 12 iterations at 2025-09-16 22:04:09. Total running time: 59min 9s"
    assert list(reader.feed(ended.format("completed"))) == [Progress("finished")]
    assert list(reader.feed(ended.format("errored"))) == []


ROW = "| SAC_Maze_{0}_00000 | RUNNING  | 10.1.0.4:7001 | {1:>6} | {2:>10} | {3:>8} |  {4} |"


def test_rows_whose_head_was_cut_off() -> None:
    """Ray draws a row again until the iteration has ended."""
    rows = [ROW.format("7c1", n, 20.5 * n, 1000 * n, -9.5 + n) for n in (3, 3, 5)]
    said = read("\n".join(rows))

    assert [(one.kind, one.step) for one in said] == [
        ("train", 3), ("eval", 3), ("train", 5), ("eval", 5),
    ]  # fmt: skip
    assert (said[2].step_s, said[3].loss, said[3].falling) == (20.5, -4.5, False)


def test_rows_of_several_trials_without_a_head() -> None:
    """They take turns."""
    rows = [ROW.format(f"7c{n % 2}", n, 20.5 * n, 1000 * n, 1.0) for n in range(1, 9)]
    assert len(read("\n".join(rows))) == 2


def test_rows_below_a_head_that_names_other_columns() -> None:
    head = "| Trial name | status | loc | lr | seed | ts | acc |\n"
    assert read(head + ROW.format("7c1", 3, 0.5, 1000, 0.9)) == []
