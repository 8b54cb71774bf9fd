"""Host and card of a rank by a list of each host's first rank, or by the logs of its pods."""

from __future__ import annotations

from pathlib import Path

import pytest

from families.fleet import sample
from flatline.collect import Request, collect
from flatline.judging.claims import claim
from flatline.judging.rank_blocks import in_its_block
from flatline.model import Finding, LogCite, Place

HOSTS = ("n1", "n2", "n3")
RECORD = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
    "6|t|RUNNING|0:0|2023-11-14T22:13:20|Unknown|3|n[1-3]\n"
)
TORCHRUN = "W1114 22:13:21.000000 1 torch/distributed/run.py:766] Setting OMP_NUM_THREADS\n"


def placed(folder: Path, files: dict[str, str], rank: int, cards: int = 4) -> Place:
    """The culprit of a finding that knows the rank alone; cards of three hosts are read."""
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "metrics.prom").write_text("\n".join(
        sample("DCGM_FI_DEV_POWER_USAGE", f'Hostname="{host}",gpu="{gpu}"', 300, n)
        for n in range(0, 601, 30) for host in HOSTS for gpu in range(cards)
    ) + "\n")  # fmt: skip
    facts = collect(Request((str(folder),)))
    said = claim("It works longer", LogCite("train.log", 1, "x"))
    found = Finding("D3", "late", shows=(said,), implies=(), strength=0.6,
                    attribution="infrastructure", culprits=(Place(rank=rank),))  # fmt: skip
    told = in_its_block(facts, found)
    assert told is not None
    return told.culprits[0]


@pytest.mark.parametrize(
    ("rows", "cards", "head", "place"),
    [
        ("0 n1\n4 n2\n8 n3\n", 4, TORCHRUN, Place("n2", gpu="2", rank=6)),
        ("0 n1\n4 n2\n8 n3\n", 4, "", Place("n2", rank=6)),
        ("0 n1\n4 n2\n8 n3\n", 8, TORCHRUN, Place("n2", rank=6)),
        ("0 n1\n4 n2\n", 4, TORCHRUN, Place(rank=6)),
        ("0 n1\n4 n2\n9 n3\n", 4, TORCHRUN, Place(rank=6)),
        ("0 n1\n1 n2\n2 n3\n3 n1\n4 n2\n5 n3\n", 4, TORCHRUN, Place(rank=6)),
        ("0 n1\n4 n2\n8 n3\nend of list\n", 4, TORCHRUN, Place(rank=6)),
    ],
    ids=["as many cards", "cards by an unknown rule", "more cards", "a host is missing",
         "not alike", "in turns", "something else"],
)  # fmt: skip
def test_a_list_of_first_ranks(
    tmp_path: Path, rows: str, cards: int, head: str, place: Place
) -> None:
    files = {"train.log": head + "step 1 loss 2\n" * 3, "sacct.txt": RECORD,
             "ranks.txt": "# RANK HOST\n" + rows}  # fmt: skip
    assert placed(tmp_path, files, 6, cards) == place


RANGES = "n1 ranks 0-3\nn2 ranks 4-7\nn3 ranks 8-11\n"


@pytest.mark.parametrize(
    ("rows", "record", "place"),
    [
        (RANGES, True, Place("n2", gpu="2", rank=6)),
        ("# 6\n" + RANGES, False, Place("n2", gpu="2", rank=6)),
        ("rank 8-11: n3\nrank 0-3: n1\nrank 4-7: n2\n", False, Place("n2", gpu="2", rank=6)),
        ("n1 ranks 0-3\nn2 ranks 4-7\n", False, Place(rank=6)),
        ("n1 ranks 0-1\nn2 ranks 2-7\nn3 ranks 8-11\n", False, Place(rank=6)),
        ("n1 ranks 0-3\nn9 ranks 4-7\nn3 ranks 8-11\n", True, Place(rank=6)),
        ("n1 ranks 0-3\nn1 ranks 4-7\nn3 ranks 8-11\n", False, Place(rank=6)),
        (RANGES + "of yesterday\n", False, Place(rank=6)),
    ],
    ids=["on record", "no record", "the ranks first", "of a smaller run", "not alike",
         "another host than on record", "one host twice", "something else"],
)  # fmt: skip
def test_a_list_of_the_ranks_of_each_host(
    tmp_path: Path, rows: str, record: bool, place: Place
) -> None:
    """A program's own word on how many ranks there are shows that the list is whole."""
    size = "using world size: 12, data-parallel size: 12, tensor-model-parallel size: 1\n"
    files = {"train.log": TORCHRUN + size + "step 1 loss 2\n" * 3, "hosts.txt": rows}
    assert placed(tmp_path, files | ({"sacct.txt": RECORD} if record else {}), 6) == place


def pods(ranks: dict[int, range]) -> dict[str, str]:
    listed = "NAME   READY   STATUS   RESTARTS   AGE   IP   NODE   NOMINATED NODE\n" + "".join(
        f"fit-worker-{n}   1/1   Running   0   31m   10.9.0.{n}   n{n + 1}   <none>\n"
        for n in range(3)
    )
    return {"pods.txt": listed} | {
        f"fit-worker-{n}.log": TORCHRUN + "".join(
            f"2023-11-14 22:{14 + step}:00 | rank {rank} | step {step}/90 | loss 2.1\n"
            for step in range(1, 5) for rank in of
        )
        for n, of in ranks.items()
    }  # fmt: skip


@pytest.mark.parametrize(
    ("ranks", "place"),
    [
        ({n: range(4 * n, 4 * n + 4) for n in range(3)}, Place("n2", gpu="2", rank=6)),
        ({0: range(8), 1: range(8, 12)}, Place(rank=6)),
        ({0: range(12), 1: range(12), 2: range(12)}, Place(rank=6)),
        ({n: range(n, 12, 3) for n in range(3)}, Place(rank=6)),
    ],
    ids=["a block each", "a pod without a log", "all in each", "in turns"],
)
def test_the_logs_of_pods(tmp_path: Path, ranks: dict[int, range], place: Place) -> None:
    assert placed(tmp_path, pods(ranks), 6) == place
