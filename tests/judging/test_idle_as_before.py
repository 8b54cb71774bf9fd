"""Cards that draw hardly less idle than waiting: told by what they drew while no run held them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from families.fleet import T0, facts_of, sample, stepping
from flatline.judging.idle_power import idle
from flatline.model import Place

STOOD, ENDED = 900, 1500
Power = Callable[[int, float], float]
"""(GPU, seconds since the run began) -> watts."""


def told(tmp_path: Path, power: Power) -> tuple[Place, ...]:
    """Two hosts of four cards, measured from three minutes before the run to three after it."""
    lines = [
        sample("DCGM_FI_DEV_POWER_USAGE", f'gpu="{gpu % 4}",Hostname="n{gpu // 4}",job="x"',
               power(gpu, at), at)
        for gpu in range(8)
        for at in range(-180, ENDED + 200, 20)
    ]  # fmt: skip
    facts, _ = facts_of(tmp_path, lines, stepping(STOOD))
    found = idle(facts, T0 + ENDED)
    return () if found is None else found.places


def level(at: float, idling: float, waiting: float, working: float = 830.0) -> float:
    if not 0 <= at <= ENDED:
        return idling
    return working if at <= STOOD else waiting


def test_the_card_that_fell_to_what_it_draws_idle(tmp_path: Path) -> None:
    """255 W idle, 304 W waiting: 0.84 of it, which by itself tells nothing."""
    power: Power = lambda gpu, at: level(at, 255, 258 if gpu == 6 else 304)  # noqa: E731

    assert told(tmp_path, power) == (Place(host="n1", gpu="2"),)


@pytest.mark.parametrize(
    "power",
    [
        lambda gpu, at: level(at, 255, 258 if gpu >= 4 else 304),
        lambda gpu, at: level(at, 255, 258 if gpu == 6 else 270 if gpu == 1 else 304),
        lambda gpu, at: level(at, 255, 285 if gpu == 6 else 304),
        lambda gpu, at: level(at, 255, 258),
        lambda gpu, at: level(at, 255, 258 if gpu == 6 else 304, 300 if gpu == 6 else 830),
        lambda gpu, at: 304.0 if at < 0 or at > ENDED else level(at, 255, 258 + 46 * (gpu != 6)),
    ],
    ids=["half of them", "another nearly", "not as idle", "all", "never worked", "busy before"],
)
def test_who_waits_for_whom_is_not_told(tmp_path: Path, power: Power) -> None:
    """Where not one or two alone are as idle as before, or what they draw idle is not known."""
    assert told(tmp_path, power) == ()
