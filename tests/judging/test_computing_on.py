"""The one card that computes on while the others wait, by power."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from families.fleet import T0, facts_of, sample, stepping
from flatline.judging.idle_power import computing
from flatline.model import Place

STOOD = 900
Power = Callable[[int, bool], float]
"""(GPU, whether the run stands still) -> watts."""


def told(tmp_path: Path, power: Power) -> tuple[Place, ...]:
    """Two hosts of four cards; no step after STOOD, and the end ten minutes later."""
    lines = [
        sample("DCGM_FI_DEV_POWER_USAGE", f'gpu="{gpu % 4}",Hostname="n{gpu // 4}",job="x"',
               power(gpu, at > STOOD), at)
        for gpu in range(8)
        for at in range(0, 1520, 20)
    ]  # fmt: skip
    facts, _ = facts_of(tmp_path, lines, stepping(STOOD))
    found = computing(facts, T0 + STOOD + 600)
    return () if found is None else found.places


def test_the_card_that_kept_its_power(tmp_path: Path) -> None:
    """The others fell to a third."""
    power: Power = lambda gpu, still: 130.0 if still and gpu != 6 else 390.0  # noqa: E731

    assert told(tmp_path, power) == (Place(host="n1", gpu="2"),)


@pytest.mark.parametrize(
    "power",
    [
        lambda gpu, still: 130.0 if still and gpu not in (5, 6) else 390.0,
        lambda gpu, still: 390.0 if gpu == 6 else 330.0,
        lambda gpu, still: 390.0 if gpu == 6 else 310.0 if still else 380.0,
        lambda gpu, still: (200.0 if gpu == 6 else 130.0) if still else 390.0,
        lambda gpu, still: 100.0 if gpu == 6 else 130.0 if still else 390.0,
    ],
    ids=["two", "always higher", "others hardly fell", "all wait", "always idle"],
)
def test_no_card_that_computes_on(tmp_path: Path, power: Power) -> None:
    """Two of them, one that always draws more, one whose wait draws more, and an idle one."""
    assert told(tmp_path, power) == ()


def test_a_card_that_worked_before_the_others_began_is_another_jobs(tmp_path: Path) -> None:
    """On a shared node; the run loads for five minutes."""
    assert loading(tmp_path, 130.0) == (Place(host="n1", gpu="2"),)
    assert loading(tmp_path, 390.0) == ()


def loading(tmp_path: Path, power_w: float) -> tuple[Place, ...]:
    """What is told where the card that draws on drew so much as the run loaded."""
    lines = [
        sample("DCGM_FI_DEV_POWER_USAGE", f'gpu="{gpu % 4}",Hostname="n{gpu // 4}",job="x"',
               power_w if at < -60 and gpu == 6
               else 390.0 if gpu == 6 or -60 <= at <= STOOD else 130.0, at)
        for gpu in range(8)
        for at in range(-300, 1520, 20)
    ]  # fmt: skip
    facts, _ = facts_of(tmp_path, lines, stepping(STOOD))
    found = computing(facts, T0 + STOOD + 600)
    return () if found is None else found.places


Levels = Callable[[int, bool], tuple[float, float]]
"""(GPU, whether the run stands still) -> watts, and the part of its SMs at work."""


def kept(tmp_path: Path, level: Levels, early: float = 0.0) -> tuple[Place, ...]:
    """As `told`, with the SMs of the cards; `early` of them were busy as the run loaded."""
    lines = []
    for gpu in range(8):
        for at in range(-300, 1520, 20):
            watts, sms = level(gpu, at > STOOD)
            if at < -60:
                watts, sms = (watts, sms) if gpu == 6 and early else (90.0, 0.0)
            labels = f'gpu="{gpu % 4}",Hostname="n{gpu // 4}",job="x"'
            lines.append(sample("DCGM_FI_DEV_POWER_USAGE", labels, watts, at))
            lines.append(sample("DCGM_FI_PROF_SM_ACTIVE", labels, sms, at))
    facts, _ = facts_of(tmp_path, lines, stepping(STOOD))
    found = computing(facts, T0 + STOOD + 600)
    return () if found is None else found.places


def test_the_card_whose_own_kernel_draws_less_than_a_step(tmp_path: Path) -> None:
    """Three quarters of its power, and all of its SMs, where the wait takes a fifth of them."""
    level: Levels = lambda gpu, still: (  # noqa: E731
        (390.0, 0.7) if not still else (290.0, 0.99) if gpu == 6 else (150.0, 0.2)
    )

    assert kept(tmp_path, level) == (Place(host="n1", gpu="2"),)
    assert kept(tmp_path, level, early=0.7) == ()


@pytest.mark.parametrize(
    "level",
    [
        lambda gpu, still: (150.0, 0.2) if still else (390.0, 0.7),
        lambda gpu, still: (150.0, 0.3 if gpu == 6 else 0.2) if still else (390.0, 0.7),
        lambda gpu, still: (290.0, 0.9 if gpu == 6 else 0.5) if still else (390.0, 0.7),
        lambda gpu, still: (290.0, 0.9 if gpu in (5, 6) else 0.2) if still else (390.0, 0.7),
    ],
    ids=["all wait", "a wait on more SMs", "others work on", "two"],
)
def test_no_card_that_keeps_its_sms_busy(tmp_path: Path, level: Levels) -> None:
    assert kept(tmp_path, level) == ()
