"""Lines of trainers for potentials, robots and pictures."""

from __future__ import annotations

from flatline.model import Progress
from flatline.parsers import deepmd, rl_games, stylegan, timm
from flatline.parsers._rules import RuleReader


def said(reader: RuleReader | stylegan.Reader, *lines: str) -> list[Progress]:
    return [item for line in lines for item in reader.feed(line)]


def test_deepmd() -> None:
    """Errors of training and of what is held out stand in lines of their own."""
    trained, held_out, saved, end = said(
        deepmd.Reader(),
        "DEEPMD INFO    batch     400: trn: rmse = 1.25e+01, rmse_e = 2.0e-01, lr = 5.00e-04",
        "DEEPMD INFO    batch     400: val: rmse = 1.50e+01, rmse_e = 2.5e-01",
        "DEEPMD INFO    batch     400: total wall time = 12.00 s",
        "DEEPMD INFO    Saved model to out/model.ckpt-400.pt",
        "DEEPMD INFO    Trained model has been saved to: model.ckpt",
    )
    assert (trained.kind, trained.step, trained.loss, trained.lr) == ("train", 400, 12.5, 5e-4)
    assert (held_out.kind, held_out.loss) == ("eval", 15.0)
    assert (saved.kind, saved.step, end.kind) == ("checkpoint_saved", 400, "finished")


def test_deepmd_since_its_third_version() -> None:
    (step,) = said(
        deepmd.Reader(),
        "[2026-01-04 03:12:05] DEEPMD INFO    Batch    2500: trn: rmse = 3.10e+00, lr = 4.0e-04",
        "[2026-01-04 03:12:05] DEEPMD INFO    Batch    2500: total wall time = 9.1 s",
    )
    assert (step.step, step.loss, step.lr) == (2500, 3.1, 4e-4)


def test_deepmd_on_tensorflow() -> None:
    """It writes its errors to a file of their own."""
    (step,) = said(
        deepmd.Reader(),
        "DEEPMD INFO    batch     100 training time 3.21 s, testing time 0.02 s",
        "DEEPMD INFO    start training at lr 1.00e-03 (== 1.00e-03), decay_step 5000",
    )
    assert (step.step, step.loss) == (100, None)


def test_rl_games() -> None:
    """Older ones count no epochs."""
    old, new, end = said(
        rl_games.Reader(),
        "fps step: 312.1 fps step and policy inference: 300.0  fps total: 250.5",
        "fps step: 312 fps step and policy inference: 300 fps total: 250 epoch: 7/90 frames: 448",
        "WARNING: Max epochs reached before any env terminated at least once",
        "MAX EPOCHS NUM!",
    )
    assert (old.step, old.throughput) == (None, 250.5)
    assert (new.step, new.planned, new.throughput) == (7, 90, 250.0)
    assert end.kind == "finished"


def test_a_distance_with_all_its_digits() -> None:
    line = '{"results": {"fid50k": %s}, "metric": "fid50k", "num_gpus": 2}'
    far, near = said(stylegan.Reader(), line % "310.40071230001", line % "9.000000000000000512")

    assert (far.loss, near.loss, near.loss_name) == (
        310.40071230001,
        9.000000000000000512,
        "fid50k",
    )


def test_an_end_without_a_beginning() -> None:
    """Anybody's program may print that it exits."""
    assert not said(stylegan.Reader(), "Exiting...")


def test_timm_waits_within_its_steps() -> None:
    """The two are read from one clock."""
    line = "Train: 2 [ 100/900 ( 11%)]  Loss: 3.1 (3.2)  Time: 0.500s, 512.00/s  LR: 1.0e-03"
    within, beyond = said(
        timm.Reader(), f"{line}  Data: 0.250 (0.2)", f"{line}  Data: 0.510 (0.2)"
    )

    assert (within.data_s, beyond.data_s, beyond.step_s) == (0.25, 0.5, 0.5)
