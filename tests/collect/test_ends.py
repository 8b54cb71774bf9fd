"""Where a run's end is seen, and where a log merely breaks off at a plausible place."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place, Progress, Verdict
from flatline.tracks import Marker, Plan, Track, plan_of, reached

EPOCH = (
    "Epoch: [{epoch}][{n:3d}/40]\tTime  0.140 ( 0.146)\tData  0.133 ( 0.140)\t"
    "Loss {loss:.4e} ({loss:.4e})\tAcc@1  25.00 ( 18.12)\n"
)


def training(epochs: int, *, first: int = 10, last: int = 40) -> str:
    """A run of PyTorch's ImageNet example with 40 steps an epoch, a line every ten."""
    lines = [
        EPOCH.format(epoch=epoch, n=n, loss=3 - epoch * 0.4 - n * 0.005)
        for epoch in range(epochs)
        for n in range(first, 41, 10)
        if epoch < epochs - 1 or n <= last
    ]
    return "".join(lines)


def verdict(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder / "train.log"),))))


def test_the_programs_own_word_ends_a_run(tmp_path: Path) -> None:
    found = verdict(tmp_path, training(6) + "=> training complete\n")
    assert (found.state, found.run.disposition) == ("healthy", "completed")


def test_a_log_without_a_plan_or_a_word_shows_no_end(tmp_path: Path) -> None:
    """The last line of an epoch is a plausible place to break off."""
    found = verdict(tmp_path, training(6))
    assert (found.state, found.run.disposition) == ("undetermined", "unknown")


@pytest.mark.parametrize(
    "plan",
    [
        "Namespace(arch='resnet18', epochs=6, start_epoch=0, lr=0.1)\n",
        "+ python main.py --epochs 6 /data\n",
        "epochs: 6\nlr: 0.1\n",
    ],
)
def test_planned_epochs_that_were_reached(tmp_path: Path, plan: str) -> None:
    """They become steps by the length of an epoch."""
    found = verdict(tmp_path, plan + training(6))
    assert (found.state, found.run.planned_steps) == ("healthy", 240)


@pytest.mark.parametrize("last", [10, 20, 30])
def test_one_line_short_of_the_plan_is_no_end(tmp_path: Path, last: int) -> None:
    """Another would have been printed."""
    found = verdict(tmp_path, "Namespace(epochs=6)\n" + training(6, last=last))
    assert found.run.disposition == "unknown"


def test_a_plan_of_something_else_is_refuted(tmp_path: Path) -> None:
    """A run that went beyond it; and two that do not agree are none."""
    beyond = verdict(tmp_path, "Namespace(epochs=3)\n" + training(6))
    many = verdict(tmp_path, "epochs: 6\nsecond stage:\n  epochs: 8\n" + training(6))
    assert [v.run.planned_steps for v in (beyond, many)] == [None, None]
    assert [v.run.disposition for v in (beyond, many)] == ["unknown", "unknown"]


def test_steps_after_the_word_take_it_back(tmp_path: Path) -> None:
    """A stage ends too."""
    stages = training(2) + "training complete\n" + training(6).split("\n", 8)[8]
    assert verdict(tmp_path, stages).run.disposition == "unknown"


def test_the_word_before_the_first_step_is_of_something_else(tmp_path: Path) -> None:
    """A tokenizer is trained too."""
    found = verdict(tmp_path, "tokenizer: training complete\nstarting ranks\n")
    assert found.run.disposition == "unknown"


def test_a_traceback_after_the_word_is_a_failure(tmp_path: Path) -> None:
    trace = (
        'Traceback (most recent call last):\n  File "t.py", line 9, in <module>\n    save()\n'
        "RuntimeError: cannot write the model\n"
    )
    found = verdict(tmp_path, training(6) + "training complete\n" + trace)
    assert found.run.disposition == "failed"


def test_the_last_epoch_of_a_table(tmp_path: Path) -> None:
    """Where no steps are said, an epoch is what a line stands for."""
    rows = "".join(f"[{n}, {3 - n * 0.2:.3f}, {3 - n * 0.2:.3f}, '00:10']\n" for n in range(12))
    cut = rows.rpartition("[11")[0]
    done, broken = (verdict(tmp_path, "epochs: 12\n" + text) for text in (rows, cut))
    assert (done.run.disposition, broken.run.disposition) == ("completed", "unknown")


def track(*points: tuple[int | None, float | None]) -> Track:
    made = Track("train.log", Place(), None, "plain")
    for line, (step, epoch) in enumerate(points, 1):
        made.add(Progress("train", step=step, epoch=epoch, loss=1.0), line, None, 0)
    return made


@pytest.mark.parametrize(
    ("steps", "planned", "end"),
    [
        ((10, 20, 90, 100), 100, True),
        ((10, 20, 80, 90), 100, False),
        ((0, 10, 80, 90), 100, True),
        ((0, 10, 70, 80), 100, False),
        ((0, 1, 98, 99), 100, True),
        ((1, 2, 98, 99), 100, False),
        ((10, 20, 90, 100), 105, True),
        ((100, 100), 100, True),
        ((100,), 100, False),
    ],
)
def test_room_for_another_step(steps: tuple[int, ...], planned: int, end: bool) -> None:
    """From 0 or from 1, every step or every tenth."""
    made = track(*((step, None) for step in steps))
    assert reached(made, range(len(made)), Plan(steps=planned)) is end


@pytest.mark.parametrize(
    ("epochs", "planned", "end"),
    [
        ((1.0, 2.0, 3.0), 3, True),
        ((0.0, 1.0, 2.0), 3, True),
        ((1.0, 2.0), 3, False),
        ((2.0, 3.0), 3, True),
        ((1.0, 1.0, 2.0, 2.0, 3.0), 3, False),
        ((0.5, 1.0, 1.5, 2.0, 2.5, 3.0), 3, True),
        ((0.5, 1.0, 1.5, 2.0, 2.5), 3, False),
        ((1.0, 1.5, 2.0, 2.5, 3.0, 3.5), 3, False),
        ((1.1, 1.5, 1.9, 2.3, 2.7, 3.1, 3.5, 3.9), 3, True),
        ((0.03, 1.93, 1.97, 2.0), 2, True),
        ((0.03, 1.9, 1.93, 1.97), 2, False),
    ],
)
def test_room_for_another_epoch(epochs: tuple[float, ...], planned: int, end: bool) -> None:
    """Whole epochs, one a line; or parts of them."""
    made = track(*((None, epoch) for epoch in epochs))
    assert reached(made, range(len(made)), Plan(epochs=planned)) is end


def test_points_without_a_number_beside_a_plan_in_steps() -> None:
    """Their epochs tell; not where they count steps, for which the plan is."""
    bare, counted = (
        track(*((step and step * n, n / 2) for n in range(1, 5))) for step in (None, 10)
    )
    plan = Plan(steps=80, epochs=2)

    assert reached(bare, range(4), plan) is True
    assert reached(bare, range(3), plan) is False
    assert reached(counted, range(4), plan) is False


@pytest.mark.parametrize(
    ("logged", "below", "end"),
    [
        (40, "", True),
        (39, "", False),
        (38, "***** train metrics *****\n  epoch      =  2.0\n", True),
        (38, "***** eval metrics *****\n  epoch      =  2.0\n", False),
        (38, "***** train metrics *****\nTraceback (most recent call last):\n"
         '  File "t.py", line 3, in <module>\n    save()\nValueError: no folder\n', False),
    ],
    ids=["the last epoch", "one short of it", "the summary", "of an evaluation", "and then fails"],
)  # fmt: skip
def test_a_trainer_that_logs_epochs_alone(
    tmp_path: Path, logged: int, below: str, end: bool
) -> None:
    head = "***** Running training *****\n  Num Epochs = 2\n  Total optimization steps = 600\n"
    rows = "".join(
        f"{{'loss': {2.5 - n / 40:.4f}, 'learning_rate': 9.5e-06, 'epoch': {n / 20:.2f}}}\n"
        for n in range(1, logged + 1)
    )
    found = verdict(tmp_path, head + rows + below)

    assert (found.run.disposition == "completed") is end


def test_what_is_said_goes_before_what_was_set() -> None:
    """A configuration's plan counts where the program names none."""
    made = track((1, None), (2, None))
    cite = made.source, 1
    config = Marker("config", Progress("config", planned=50), cite, None)  # type: ignore[arg-type]
    said = Marker("plan", Progress("plan", planned=20), cite, None)  # type: ignore[arg-type]

    assert plan_of([made], [config]).steps == 50
    assert plan_of([made], [config, said]).steps == 20


@pytest.mark.parametrize("first", ["inf", "0", "nan"])
def test_an_epoch_that_is_no_number_reaches_nothing(tmp_path: Path, first: str) -> None:
    """A division by a loader without a length prints one."""
    rows = "".join(
        f"{{'loss': 1.5, 'grad_norm': 0.4, 'epoch': {epoch}}}\n" for epoch in (first, "inf")
    )
    found = verdict(tmp_path, rows + "python train.py --epochs 3\n")

    assert found.run.disposition == "unknown"
