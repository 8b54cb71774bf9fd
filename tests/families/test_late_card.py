"""D3 for a card that alone has gaps: told by its link, not by its gaps."""

from __future__ import annotations

from pathlib import Path

import pytest

from families.fleet import facts_of, sample, stepping
from flatline.families.straggler import judge
from flatline.model import Attempt, Finding, Judgement, Place

ENDS = 3600


def judged(tmp_path: Path, lanes: int) -> Judgement:
    late = (1, 3)
    lines = [
        sample(metric, f'gpu="{gpu}",Hostname="n{host}",modelName="H100"',
               slow if (host, gpu) == late else usual, at)
        for metric, usual, slow in (("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.97, 0.7),
                                    ("DCGM_FI_PROF_SM_ACTIVE", 0.5, 0.5),
                                    ("DCGM_FI_DEV_PCIE_LINK_WIDTH", 16, lanes),
                                    ("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", 16, 16))
        for host in range(2)
        for gpu in range(8)
        for at in range(0, ENDS, 30)
    ]  # fmt: skip
    tries = (Attempt(0, "completed", hosts=("n0", "n1")),)
    track = stepping(ENDS, lambda at: 6.0 + at % 7 / 100)
    return judge(facts_of(tmp_path, lines, track, attempts=tries)[0])


def test_its_link_has_lost_lanes(tmp_path: Path) -> None:
    """That says why it is late, though not surely that nothing else does."""
    found = judged(tmp_path, 4)

    assert isinstance(found, Finding)
    assert found.culprits == (Place(host="n1", gpu="3"),)
    assert found.strength < 0.8
    assert any("4 of its 16 lanes" in claim.text for claim in found.shows)


@pytest.mark.parametrize("lanes", [16, 0])
def test_gaps_alone_name_nobody(tmp_path: Path, lanes: int) -> None:
    """It may be the first stage of a pipeline, or evaluate."""
    assert judged(tmp_path, lanes) is None
