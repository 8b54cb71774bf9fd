"""Cards that draw hardly less idle than waiting: told by what they drew while no run held them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from families.fleet import T0, facts_of, sample, stepping
from flatline.judging.idle_power import idle
from flatline.model import Attempt, Place

STOOD, ENDED = 900, 1500
Power = Callable[[int, float], float]
"""(GPU, seconds since the run began) -> watts."""


def told(tmp_path: Path, power: Power, from_s: int = -180) -> tuple[Place, ...]:
    """Two hosts of four cards, measured from three minutes before the run to four after it; one of
    them from `from_s` on."""
    lines = [
        sample("DCGM_FI_DEV_POWER_USAGE", f'gpu="{gpu % 4}",Hostname="n{gpu // 4}",job="x"',
               power(gpu, at), at)
        for gpu in range(8)
        for at in range(-180, ENDED + 240, 20)
        if gpu != 6 or from_s <= at
    ]  # fmt: skip
    attempt = Attempt(0, "failed", datetime.fromtimestamp(T0, UTC),
                      datetime.fromtimestamp(T0 + ENDED, UTC))  # fmt: skip
    facts, _ = facts_of(tmp_path, lines, stepping(STOOD), attempts=(attempt,))
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
    (tmp_path / "metrics.prom").unlink()
    assert told(tmp_path, power, from_s=0), "what it drew after the run tells as well"


@pytest.mark.parametrize(
    "power",
    [
        lambda gpu, at: level(at, 255, 258 if gpu >= 4 else 304),
        lambda gpu, at: level(at, 255, 258 if gpu == 6 else 270 if gpu == 1 else 304),
        lambda gpu, at: level(at, 255, 285 if gpu == 6 else 304),
        lambda gpu, at: level(at, 255, 258),
        lambda gpu, at: level(at, 255, 258 if gpu == 6 else 304, 300 if gpu == 6 else 830),
        lambda gpu, at: level(at, 118 if gpu == 6 else 60, 118 if gpu == 6 else 130),
        lambda gpu, at: level(at, 115, 230),
        lambda gpu, at: level(at, 304 if gpu == 6 else 255, 304),
        lambda gpu, at: 304.0 if at < 0 or at > ENDED else level(at, 255, 258 + 46 * (gpu != 6)),
    ],
    ids=[
        "half of them",
        "another nearly",
        "not as idle",
        "all",
        "never worked",
        "the others sleep deeper",
        "all wait high",
        "held outside",
        "busy before",
    ],
)
def test_who_waits_for_whom_is_not_told(tmp_path: Path, power: Power) -> None:
    """Where not one or two alone are as idle as before, or what they draw idle is not known."""
    assert told(tmp_path, power) == ()


@pytest.mark.parametrize(("engine", "named"), [(0.0, True), (0.5, False)])
def test_the_card_whose_engine_rests_while_the_others_spin(
    tmp_path: Path, engine: float, named: bool
) -> None:
    """An exporter that tells how busy the engine is, and the power of every other card alone."""
    lines = []
    for gpu in range(8):
        for at in range(-180, ENDED + 240, 20):
            label = f'gpu_id="{gpu % 4}",hostname="n{gpu // 4}",card_model="MI250X"'
            busy = level(at, 0.0, engine if gpu == 7 else 1.0, 0.98)
            power = 0.0 if gpu % 2 else level(at, 90, 260, 440)
            lines += [
                sample("gpu_gfx_activity", label, 100 * busy, at),
                sample("gpu_average_package_power", label, power, at),
            ]
    attempt = Attempt(0, "failed", datetime.fromtimestamp(T0, UTC),
                      datetime.fromtimestamp(T0 + ENDED, UTC))  # fmt: skip
    facts, _ = facts_of(tmp_path, lines, stepping(STOOD), attempts=(attempt,))
    found = idle(facts, T0 + ENDED)

    assert (found.places if found else ()) == ((Place(host="n1", gpu="3"),) if named else ())
