"""The rank that said nothing, beside the card that was not in the collective."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place, Verdict
from judging.test_measured_hangs import clock, metrics

WAITED = (
    "[rank{rank}]:[E0304 08:44:{second:02d}.{rank:03d} ProcessGroupNCCL.cpp:632] [Rank {rank}]"
    " Watchdog caught collective operation timeout: WorkNCCL(SeqNum=733, OpType=ALLREDUCE,"
    " NumelIn=64, NumelOut=64, Timeout(ms)=1200000) ran for 1200{rank:03d} milliseconds before"
    " timing out.\n"
)
BY_HOST = ("node01: launching ranks 0-7", "node02: launching ranks 8-15")


def said(
    folder: Path,
    quiet: int,
    card: tuple[str, int] | None,
    head: Sequence[str] = (),
    computes: bool = False,
) -> Verdict:
    """Two hosts of eight ranks whose steps end after 24 minutes; one rank does not report the
    wait, and one card puts its work down or computes on."""

    def power(host: str, gpu: int, at: float) -> float:
        if at <= 1440:
            return 640.0 + gpu
        return (630.0 if computes else 112.0) if (host, gpu) == card else 236.0 + gpu

    steps = "".join(
        f"[{clock(12 * n)},000] INFO step {n}/900 loss {3 - n / 500:.4f} lr 1e-4 grad_norm 0.5\n"
        for n in range(1, 121)
    )
    waits = "".join(
        WAITED.format(rank=rank, second=1 + rank) for rank in range(16) if rank != quiet
    )
    top = "".join(f"{line}\n" for line in ("world size 16", *head))
    (folder / "job-77.out").write_text(top + steps + waits)
    (folder / "metrics.om").write_text(metrics("DCGM_FI_DEV_POWER_USAGE", power, 2900) + "# EOF\n")
    (folder / "scontrol.txt").write_text(
        "JobId=77 JobName=train\n   UserId=u(1) JobState=FAILED\n"
        "   StartTime=2026-03-04T08:00:00 EndTime=2026-03-04T08:46:00\n"
        "   NodeList=node[01-02]\n   NumNodes=2\n"
    )
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("computes", [False, True])
@pytest.mark.parametrize(
    ("card", "head"),
    [(("node02", 3), ()), (("node01", 3), ()), (("node02", 5), ()), (("node02", 6), BY_HOST)],
    ids=["in blocks", "hosts in another order", "in turns", "another number, host known"],
)
def test_a_card_that_may_be_the_silent_ranks(
    tmp_path: Path, card: tuple[str, int], head: Sequence[str], computes: bool
) -> None:
    """By its number on its host, whichever the host."""
    verdict = said(tmp_path, 11, card, head, computes)

    assert verdict.culprits == (Place(host=card[0], gpu=str(card[1]), rank=11),)
    assert verdict.confidence >= 0.8


@pytest.mark.parametrize("computes", [False, True])
@pytest.mark.parametrize(
    ("card", "head"),
    [(("node02", 6), ()), (("node01", 3), BY_HOST)],
    ids=["another number", "another host"],
)
def test_a_card_and_a_silent_rank_that_are_not_one_process(
    tmp_path: Path, card: tuple[str, int], head: Sequence[str], computes: bool
) -> None:
    """What speaks of two places is not sure of either, and says so."""
    verdict = said(tmp_path, 11, card, head, computes)

    assert verdict.code == "C2"
    assert verdict.confidence < 0.8
    assert len(verdict.culprits) == 1
    assert any("not one process" in doubt for doubt in verdict.cannot_decide)


@pytest.mark.parametrize(("head", "host"), [(BY_HOST, "node02"), ((), None)])
def test_a_silent_rank_has_the_host_that_was_printed(
    tmp_path: Path, head: Sequence[str], host: str | None
) -> None:
    """Where no card stands apart."""
    assert said(tmp_path, 11, None, head).culprits == (Place(host=host, rank=11),)


def test_the_last_rank_of_all_is_heard_of_where_its_host_is_known(tmp_path: Path) -> None:
    """Its neighbours reported into the log that would hold its own word."""
    assert said(tmp_path, 15, None, BY_HOST).culprits == (Place(host="node02", rank=15),)


PODS = (
    "NAME      READY   STATUS   RESTARTS   AGE   IP           NODE     NOMINATED NODE\n"
    "train-0   0/1     Error    0          50m   10.42.0.31   node01   <none>\n"
    "train-1   0/1     Error    0          50m   10.42.0.32   node02   <none>\n"
)


@pytest.mark.parametrize(("pods", "host"), [(PODS, "node02"), (None, "train-1")])
def test_a_pods_ranks_are_on_its_node(tmp_path: Path, pods: str | None, host: str) -> None:
    """The pod's own name where nothing says which node that is."""
    said(tmp_path, 11, None)
    log = (tmp_path / "job-77.out").read_text().splitlines()
    of = {f"[rank{rank}]": f"train-{rank // 8}" for rank in range(16)}
    labelled = (
        f"[pod/{of.get(line[: line.find(']') + 1], 'train-0')}/main] {line}\n" for line in log
    )
    (tmp_path / "job-77.out").write_text("".join(labelled))
    for name in ("scontrol.txt", "metrics.om"):
        (tmp_path / name).unlink()
    if pods is not None:
        (tmp_path / "pods.txt").write_text(pods)

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.culprits == (Place(host=host, rank=11),)
