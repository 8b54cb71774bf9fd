"""Which number of a line speaks for it, and where lines of rarer loops end."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Progress
from flatline.parsers import config, imagenet, markers, plain
from flatline.parsers._rules import RuleReader


def said(reader: plain.Reader | RuleReader | config.Reader, line: str) -> list[Progress]:
    return [one for one in reader.feed(line) if isinstance(one, Progress)]


@pytest.mark.parametrize(
    ("line", "loss", "falling"),
    [
        pytest.param(
            "Epoch: 1/1 | Step: 3/120 |  Actor Loss: -0.137 | Unsupervised Loss: 0.0",
            -0.137, False, id="switched off",
        ),
        pytest.param("Step: 3/120 | Unsupervised Loss: 0.5", 0.5, True, id="alone"),
        pytest.param(
            "step:7 - actor/kl_loss:0.0009 - actor/pg_loss:-0.0005 - actor/grad_norm:0.2",
            -0.0005, False, id="what holds a policy",
        ),
        pytest.param("step 7 kl_loss: 0.0009", 0.0009, False, id="which is all there is"),
        pytest.param(
            "Epoch [1/12], Step [10/221], Mel Loss: 0.95838, Gen Loss: 0.1, Disc Loss: 0.2",
            0.95838, True, id="spectra",
        ),
        pytest.param(
            "Epoch [1/12], Step [10/221], Gen Loss: 0.1, Disc Loss: 0.2", 0.1, False, id="none"
        ),
    ],
)  # fmt: skip
def test_the_loss_of_a_line(line: str, loss: float, falling: bool) -> None:
    (point,) = said(plain.Reader(), line)
    assert (point.loss, point.falling) == (loss, falling)


@pytest.mark.parametrize(("epochs", "planned"), [(1, 120), (2, None)])
def test_the_counter_of_the_only_epoch(epochs: int, planned: int | None) -> None:
    line = f"Epoch: 1/{epochs} | Step: 3/120 | Loss: 0.25"
    assert said(plain.Reader(), line)[0].planned == planned


def test_a_tensor_of_an_entropy() -> None:
    line = "tensor(0.7083, device='cuda:0', grad_fn=<{}Backward>)"
    (point,) = said(plain.Reader(), line.format("BinaryCrossEntropy"))
    assert point.loss == 0.7083
    assert not said(plain.Reader(), line.format("Add"))


def test_epochs_that_are_announced() -> None:
    """The place of an epoch is no plan of them."""
    assert said(config.Reader(), "Now starting training for 25 epochs")[0].epochs == 25
    assert not said(config.Reader(), "current #epochs=3, #steps=68")
    assert not said(config.Reader(), "after training for 25 epochs it was at 0.9")


def test_a_first_epoch_called_1() -> None:
    """A stream that begins with it counts from there, unless it goes on from a checkpoint."""
    line = "Epoch: [{}][10/34]  Time 0.031 (0.031)  Loss 3.0566 (3.1)"
    for before, epochs, steps in (
        ([], (1, 2), [10, 44]),
        ([], (0, 1), [10, 44]),
        (["=> loaded checkpoint 'a.pth' (epoch 1)"], (1, 2), [44, 78]),
    ):
        reader = imagenet.Reader()
        for one in before:
            reader.feed(one)
        assert [said(reader, line.format(n))[0].step for n in epochs] == steps


def test_a_headline_of_the_end() -> None:
    assert [one.kind for one in markers.Reader().feed("Training finished:")] == ["finished"]
    assert not list(markers.Reader().feed("Training finished: 3 of 9"))


VALUES = """\
Learning iteration {n}/60
                       Computation: 79731 steps/s (collection: 1.119s, learning 0.114s)
               Mean value_function loss: {loss}
                       Mean reward: 3.5
"""


@pytest.mark.parametrize(
    ("late", "code"),
    [
        pytest.param(6.4e27, "E1", id="beyond-all"),
        pytest.param(3e6, None, id="a-large-reward-found"),
    ],
)
def test_a_value_s_loss_that_left_every_size(
    tmp_path: Path, late: float, code: str | None
) -> None:
    text = "".join(VALUES.format(n=n, loss=f"{late if n > 20 else 0.3:.4f}") for n in range(60))
    (tmp_path / "train.log").write_text(text)
    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def test_a_value_s_loss_that_came_back(tmp_path: Path) -> None:
    text = "".join(
        VALUES.format(n=n, loss=f"{6.4e27 if 20 < n < 45 else 0.3:.4f}") for n in range(60)
    )
    (tmp_path / "train.log").write_text(text)
    assert diagnose(collect(Request((str(tmp_path),)))).code is None


def test_small_numbers_in_many_decimals(tmp_path: Path) -> None:
    """What stands behind so many is their power of ten."""
    rows = [
        f"step:{n} - actor/kl_loss:0.00{n:02}1"
        f" - actor/pg_loss:{9.5720099224765e-06 if n > 50 else 0.0051}"
        f" - actor/grad_norm:0.2 - training/global_step:{n}"
        f" - critic/rewards/mean:{0.5 + n / 200:.6f} - timing_s/step:60.5"
        for n in range(1, 61)
    ]  # fmt: skip
    head = "Total training steps: 60"
    (tmp_path / "train.log").write_text("\n".join([head, *rows, "Training completed", ""]))
    assert diagnose(collect(Request((str(tmp_path),)))).code == "G1"
