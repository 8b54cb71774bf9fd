"""RSL-RL's blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Progress
from flatline.parsers import reader_of, rsl_rl

BLOCK = """\
################################################################################
                     Learning iteration {n}/1500

                       Computation: 79731 steps/s (collection: 1.119s, learning 0.114s)
             Mean action noise std: 0.35
          {name}: {loss}
               Mean surrogate loss: -0.0021
                       Mean reward: 38.28
--------------------------------------------------------------------------------
"""
NAMES = ("Mean value_function loss", "Value function loss")


def block(n: int, loss: str, name: str = NAMES[0]) -> str:
    return BLOCK.format(n=n, loss=loss, name=name)


@pytest.mark.parametrize("name", NAMES)
def test_a_block(name: str) -> None:
    reader = rsl_rl.Reader()
    (point,) = [p for line in block(12, "0.0213", name).splitlines() for p in reader.feed(line)]

    assert (point.step, point.planned, point.loss, point.falling) == (12, 1500, 0.0213, False)
    assert point.step_s == pytest.approx(1.233)


@pytest.mark.parametrize(
    ("losses", "code"),
    [
        pytest.param(["inf"], "E1", id="all-there-is"),
        pytest.param(["0.02"] * 6 + ["inf"] * 6, "E1", id="since"),
        pytest.param(["0.02"] * 6 + ["inf"] + ["0.02"] * 3, None, id="once"),
        pytest.param(["0.02", "0.9", "0.03", "1.7"] * 3, None, id="up-and-down"),
    ],
)
def test_the_value_s_loss(tmp_path: Path, losses: list[str], code: str | None) -> None:
    """It is not meant to fall, but to be a number."""
    text = "".join(block(n, loss) for n, loss in enumerate(losses, 100))
    (tmp_path / "train.log").write_text(text)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code


@pytest.mark.parametrize(
    "stamp", ["[2026-04-02 09:14:51] ", "2026-04-02T09:14:51.120Z ", "09:14:51 "]
)
def test_behind_a_stamp(stamp: str) -> None:
    """The block is centred: what stands between the two is wider than what parts a stamp."""
    reader = reader_of(rsl_rl)  # type: ignore[arg-type]
    lines = [stamp + line for line in block(1499, "0.0122").splitlines() if line.strip()]
    (point,) = [p for line in lines for p in reader.feed(line)]

    assert isinstance(point, Progress)
    assert (point.step, point.planned, point.loss) == (1499, 1500, 0.0122)
