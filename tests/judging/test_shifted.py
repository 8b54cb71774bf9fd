"""Hosts whose metrics were written by a clock of their own."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from families.fleet import facts_of, sample, stepping
from flatline.judging.apart import fleet as cards
from flatline.judging.shifted import shifted
from flatline.judging.throughput import course
from flatline.series.storage import Floats

LONG = 120
"""Stretches that the run is cut into."""
PAUSES = (11, 29, 34, 58, 77, 83, 101)
"""Stretches at which all pause for two."""


def working(seed: int, off: int = 0, depth: float = 0.4, scatter: float = 0.01) -> Floats:
    """A host's mean over each stretch: all pause together, by its clock so much later."""
    dice = random.Random(seed)
    level = [0.6 - (depth if any(0 <= at - off - p < 2 for p in PAUSES) else 0.0)
             for at in range(LONG)]  # fmt: skip
    return np.array([value + dice.uniform(-scatter, scatter) for value in level])


def fleet(*own: Floats, sound: int = 3) -> dict[str, Floats]:
    """Sound hosts, and behind them those that are looked at."""
    return {f"n{n}": one for n, one in enumerate([*map(working, range(sound)), *own])}


def found(hosts: dict[str, Floats]) -> frozenset[str]:
    return shifted(hosts, set(hosts))


@pytest.mark.parametrize("off", [3, 8, 12, -3, -8, -12])
@pytest.mark.parametrize("sound", [2, 3, 20])
def test_what_all_do_it_shows_earlier_or_later(off: int, sound: int) -> None:
    """Of few hosts and of many."""
    assert found(fleet(working(9, off), sound=sound)) == {f"n{sound}"}


def test_readings_that_are_missing_are_left_out() -> None:
    """As an exporter is restarted."""
    late = working(9, 6)
    late[40:70] = np.nan

    assert found(fleet(late)) == {"n3"}


@pytest.mark.parametrize(
    "own",
    [
        working(9),
        working(9, depth=0.0),
        working(9, depth=0.0, scatter=0.2),
        np.full(LONG, 0.6),
        np.full(LONG, np.nan),
        working(9, depth=-0.3),
        working(9, 30),
        np.where(np.arange(LONG) < 20, working(9, 6), np.nan),
    ],
    ids=["with the others", "it works on", "it scatters", "it never changes", "it was not read",
         "it works more as they pause", "too far off", "read for too short a time"],
)  # fmt: skip
def test_hosts_that_no_clock_explains(own: Floats) -> None:
    """What it shows follows the others' no better once it is moved."""
    assert found(fleet(own)) == frozenset()


def test_only_hosts_that_are_asked_are_looked_at() -> None:
    hosts = fleet(working(9, 6), working(8, -6), sound=5)

    assert shifted(hosts, {"n0", "n5"}) == {"n5"}
    assert shifted(hosts, set()) == frozenset()
    assert found(hosts) == {"n5", "n6"}


@pytest.mark.parametrize("sound", [0, 1])
def test_of_two_nothing_tells_whose_clock_is_off(sound: int) -> None:
    assert found(fleet(working(9, 6), sound=sound)) == frozenset()
    assert found(fleet(working(9, 6), sound=2)) == {"n2"}


@pytest.mark.parametrize(
    ("own", "apart"),
    [(working(9, 6), []), (working(9, depth=0.0), ["0", "1"])],
    ids=["by a clock of its own", "it works on"],
)
def test_cards_of_such_a_host_stand_apart_at_no_time(
    tmp_path: Path, own: Floats, apart: list[str]
) -> None:
    """They would whenever all others pause."""
    lines = [
        sample("DCGM_FI_PROF_SM_ACTIVE", f'gpu="{gpu}",Hostname="{host}",modelName="H100"',
               float(level), 30.0 * at)
        for host, levels in fleet(own).items()
        for gpu in range(2)
        for at, level in enumerate(levels)
    ]  # fmt: skip
    facts, _ = facts_of(tmp_path, lines, stepping(30.0 * LONG, lambda at: 10.0))
    run = course(facts)
    assert run is not None
    read = cards(facts, run, "gpu_sm_active_ratio")
    assert read is not None
    lit = read._apart(1.2, 0.01)
    named = [read.names()[name] for name, marks in lit.items() if any(marks)]

    assert [place.gpu for place in named if place.host == "n3"] == apart
