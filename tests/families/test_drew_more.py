"""D3 by power alone, of a card that computes longer than all others from the first step on."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from families.fleet import checked, facts_of, findings, sample, stepping
from flatline.families.straggler import judge
from flatline.model import Attempt, Place

Card = Callable[[int], dict[str, float]]
"""(GPU) -> what it reads otherwise than the others."""
USUAL = {
    "DCGM_FI_DEV_POWER_USAGE": 200.0,
    "DCGM_FI_DEV_GPU_UTIL": 99.0,
    "DCGM_FI_DEV_SM_CLOCK": 1450.0,
    "DCGM_FI_DEV_FB_USED": 24_000.0,
}
POWER, UTIL, CLOCK, USED = USUAL


def named(tmp_path: Path, card: Card, gpus: int = 16, extra: str = "") -> tuple[Place, ...]:
    """Two hosts whose cards are read every half minute for two hours."""
    noise = random.Random(4)
    lines = []
    for gpu in range(gpus):
        label = f'Hostname="n{gpu // 8}",gpu="{gpu % 8}",modelName="A6000"'
        for name, value in {**USUAL, **card(gpu)}.items():
            lines += [
                sample(name, label, value * noise.gauss(1, 0.004), at) for at in range(0, 7200, 30)
            ]
        if extra:
            lines += [sample(extra, label, 0.7, at) for at in range(0, 7200, 30)]
    hosts = tuple(f"n{n}" for n in range((gpus + 7) // 8))
    facts, source = facts_of(
        tmp_path,
        lines,
        stepping(7150, lambda at: 2.0),
        attempts=(Attempt(0, "running", hosts=hosts),),
    )
    facts.__dict__["hosts"] = hosts
    found = findings(checked(judge(facts), source))
    assert all(one.strength < 0.8 and one.most < 0.8 for one in found)
    return tuple(place for one in found for place in one.culprits)


def test_it_alone_draws_more_than_those_that_wait(tmp_path: Path) -> None:
    """At their clock, and as busy."""
    hot: Card = lambda gpu: {POWER: 264.0} if gpu == 11 else {}  # noqa: E731

    assert named(tmp_path, hot) == (Place(host="n1", gpu="3"),)


@pytest.mark.parametrize(
    ("card", "gpus", "extra"),
    [
        (lambda gpu: {POWER: 264.0} if gpu in (11, 12) else {}, 16, ""),
        (lambda gpu: {POWER: 264.0} if gpu == 0 else {}, 16, ""),
        (lambda gpu: {POWER: 220.0} if gpu == 11 else {}, 16, ""),
        (lambda gpu: {POWER: 264.0, CLOCK: 1700.0} if gpu == 11 else {}, 16, ""),
        (lambda gpu: {POWER: 264.0, USED: 40_000.0} if gpu == 11 else {}, 16, ""),
        (lambda gpu: {POWER: 264.0} if gpu == 11 else {UTIL: 60.0}, 16, ""),
        (lambda gpu: {POWER: 264.0 if gpu == 11 else 190.0 + 2 * gpu}, 16, ""),
        (lambda gpu: {POWER: 264.0} if gpu == 3 else {}, 4, ""),
        (lambda gpu: {POWER: 264.0} if gpu == 11 else {}, 16, "DCGM_FI_PROF_SM_ACTIVE"),
    ],
    ids=["two", "the first", "little more", "a higher clock", "a larger part", "others have gaps",
         "others scatter", "few", "its SMs do as much"],
)  # fmt: skip
def test_near_misses_name_nobody(tmp_path: Path, card: Card, gpus: int, extra: str) -> None:
    """Another part of the work, another card, or nothing that stands apart."""
    assert named(tmp_path, card, gpus, extra) == ()
