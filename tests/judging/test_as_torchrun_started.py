"""Host and card of a rank that torchrun started, by its number."""

from __future__ import annotations

from pathlib import Path

import pytest

from families.fleet import sample
from flatline.collect import Request, collect
from flatline.judging.addresses import carded
from flatline.judging.claims import claim
from flatline.model import Finding, LogCite, Place

FAILED = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2023-11-14_22:23:20
  host      : n1
  rank      : 0 (local_rank: 0)
  exitcode  : -6 (pid: 40120)
  error_file: <N/A>
  traceback : Signal 6 (SIGABRT) received by PID 40120
============================================================
"""
ALONE = "n1:40120:40220 [0] NCCL INFO comm 0x16e5 rank 0 nranks 8 cudaDev 0 busId 7000 - Init\n"


@pytest.mark.parametrize(
    ("log", "cards", "world", "place"),
    [
        (FAILED, 4, 8, Place("n2", gpu="2", rank=6)),
        (FAILED, 8, 8, Place(rank=6)),
        (FAILED, 4, 7, Place(rank=6)),
        (ALONE, 4, 8, Place(rank=6)),
    ],
    ids=["all cards of both", "half of each host's", "uneven", "without torchrun"],
)
def test_the_host_and_the_card_of_a_rank(
    tmp_path: Path, log: str, cards: int, world: int, place: Place
) -> None:
    """Rank 0 is known to be on the first of two hosts; torchrun numbers each host's ranks on."""
    (tmp_path / "train.log").write_text(f"using world size: {world}, data-parallel\n{log}")
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        "6|t|FAILED|1:0|2023-11-14T22:13:20|2023-11-14T22:23:30|2|n[1-2]\n"
    )
    (tmp_path / "metrics.prom").write_text("\n".join(
        sample("DCGM_FI_DEV_POWER_USAGE", f'Hostname="{host}",gpu="{gpu}"', 300, n)
        for n in range(0, 601, 30) for host in ("n1", "n2") for gpu in range(cards)
    ) + "\n")  # fmt: skip
    facts = collect(Request((str(tmp_path),)))
    said = claim("It entered another collective", LogCite("train.log", 1, "x"))
    found = Finding("C2", "froze", shows=(said,), implies=(), strength=0.9,
                    attribution="unknown", culprits=(Place(rank=6),))  # fmt: skip

    told = carded(facts, found).culprits[0]

    assert (told.gpu, told.rank) == (place.gpu, 6)
    assert facts.on_host(Place(rank=6)).host == ("n2" if log is FAILED and world == 8 else None)


def by_uuid(tmp_path: Path, local: int, cards: int, rank: int = 6) -> Place:
    """What becomes of a rank's card that is known by its UUID, as gpud gives it."""
    uuids = [f"GPU-59482d7d-4d25-1694-47d8-dfaf1d8313{n:02d}" for n in range(cards)]
    (tmp_path / "n2.log").write_text(
        FAILED.replace("n1", "n2").replace("0 (local_rank: 0)", f"{rank} (local_rank: {local})")
    )
    (tmp_path / "metrics.prom").write_text("\n".join(
        sample("accelerator_nvidia_power_current_usage_milli_watts",
               f'uuid="{uuid}",instance="n2:15132"', 300_000, n)
        for n in range(0, 601, 30) for uuid in uuids
    ) + "\n")  # fmt: skip
    facts = collect(Request((str(tmp_path),)))
    said = claim("ECC", LogCite("n2.log", 1, "x"))
    culprit = Place("n2", gpu=uuids[local], rank=6)
    found = Finding("B2", "failed", shows=(said,), implies=(), strength=0.9,
                    attribution="infrastructure", culprits=(culprit,))  # fmt: skip
    told = carded(facts, found)
    assert not any("started" in one.text for one in told.shows)  # how many is not known
    return told.culprits[0]


def test_the_index_of_a_card_that_is_known_by_its_uuid(tmp_path: Path) -> None:
    """torchrun's summary has the rank's number on its host; the UUID stays beside it."""
    place = by_uuid(tmp_path, 6, 8)

    assert (place.gpu, place.device) == ("6", "GPU-59482d7d-4d25-1694-47d8-dfaf1d831306")


@pytest.mark.parametrize(("local", "cards", "rank"), [(2, 8, 6), (6, 8, 5)])
def test_a_uuid_that_stays(tmp_path: Path, local: int, cards: int, rank: int) -> None:
    """A job may have been given half of the cards, or another rank is spoken of."""
    assert by_uuid(tmp_path, local, cards, rank).device is None
