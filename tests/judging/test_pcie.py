"""A card that is late throughout, and whose PCIe link has lost lanes or runs slower."""

from __future__ import annotations

from pathlib import Path

import pytest

from families.fleet import facts_of, sample
from flatline.judging.pcie import narrow
from flatline.model import Place

CARD = Place(host="n1", gpu="3")


def told(tmp_path: Path, now: dict[int, int], most: dict[int, int]) -> str | None:
    lines = [
        sample(metric, f'gpu="{gpu}",Hostname="n1",modelName="H100"', lanes.get(gpu, 16), at)
        for metric, lanes in (("DCGM_FI_DEV_PCIE_LINK_WIDTH", now),
                              ("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", most))
        for gpu in range(8)
        for at in range(0, 900, 30)
    ]  # fmt: skip
    facts, source = facts_of(tmp_path, lines)
    assert source.window is not None
    begins, ends = (moment.timestamp() for moment in source.window)
    found = narrow(facts, CARD, begins, ends)
    return None if found is None else found.text


def test_fewer_lanes_than_it_has(tmp_path: Path) -> None:
    """The others run with all of theirs."""
    text = told(tmp_path, {3: 4}, {})

    assert text is not None
    assert "ran with 4 of its 16 lanes" in text


@pytest.mark.parametrize(
    ("now", "most"),
    [({}, {}), ({3: 8}, {3: 8}), ({5: 4}, {}), (dict.fromkeys(range(8), 8), {})],
    ids=["all lanes", "has no more", "another card's", "everybody's"],
)
def test_near_misses(tmp_path: Path, now: dict[int, int], most: dict[int, int]) -> None:
    """How the boards are wired slows no one card."""
    assert told(tmp_path, now, most) is None


@pytest.mark.parametrize(("lanes", "cut"), [({3: 1}, True), ({3: 4}, True), ({3: 8}, False),
                                            ({3: 1, 5: 8}, False), ({5: 1}, False)])  # fmt: skip
def test_far_fewer_where_no_most_is_told(tmp_path: Path, lanes: dict[int, int], cut: bool) -> None:
    """Half as many may be how a board is wired."""
    lines = [sample("DCGM_FI_DEV_PCIE_LINK_WIDTH", f'gpu="{gpu}",Hostname="n1"',
                    lanes.get(gpu, 16), at)
             for gpu in range(8) for at in range(0, 900, 30)]  # fmt: skip
    facts, source = facts_of(tmp_path, lines)
    assert source.window is not None
    begins, ends = (moment.timestamp() for moment in source.window)

    assert (narrow(facts, CARD, begins, ends) is not None) is cut


def slower(tmp_path: Path, speeds: dict[int, int], idle: set[int], cards: int = 8) -> str | None:
    """Links that may go down a generation for a time, which is no fault."""
    lines = [
        sample(metric, f'gpu="{gpu}",Hostname="n1",modelName="H100"', value, at)
        for gpu in range(cards)
        for at in range(0, 900, 30)
        for metric, value in (
            ("DCGM_FI_DEV_PCIE_LINK_GEN", 1 if at < 300 else speeds.get(gpu, 5)),
            ("DCGM_FI_DEV_GPU_UTIL", 0 if gpu in idle else 98),
        )
    ]
    facts, source = facts_of(tmp_path, lines)
    assert source.window is not None
    found = narrow(facts, CARD, *(moment.timestamp() for moment in source.window))
    return None if found is None else found.text


def test_a_busy_link_that_never_reached_the_speed_of_the_others(tmp_path: Path) -> None:
    text = slower(tmp_path, {3: 1}, set())

    assert text is not None
    assert "never ran above generation 1" in text


@pytest.mark.parametrize(
    ("speeds", "idle", "cards"),
    [({}, set(), 8), ({3: 1}, {3}, 8), ({3: 1, 5: 1}, set(), 8), ({5: 1}, set(), 8),
     ({3: 1}, {0, 1, 2, 4, 5}, 8), ({0: 1}, set(), 3)],
    ids=["all", "an idle card saves power", "two", "another card's", "few others work",
         "not there"],
)  # fmt: skip
def test_near_misses_of_speed(
    tmp_path: Path, speeds: dict[int, int], idle: set[int], cards: int
) -> None:
    assert slower(tmp_path, speeds, idle, cards) is None
