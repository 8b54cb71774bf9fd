"""The rank that the others wait for, and the card that alone works apart from theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

T0 = 1_772_600_400
"""04:00 UTC on 4 March 2026."""
SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList|AllocTRES\n"
    "91|lm|COMPLETED|0:0|2026-03-04T05:00:00|2026-03-04T05:40:00|2|kx[7-8]|gres/gpu=8,node=2\n"
)
NCCL = (
    "kx{host}:811:900 [{gpu}] NCCL INFO comm 0x5500 rank {rank} nranks 8 cudaDev {gpu} nvmlDev"
    " {gpu} busId {gpu}b000 commId 0x77 - Init COMPLETE\n"
)


def printed(late: int) -> str:
    """Eight ranks, each with its wait, a line every 15 s."""
    return "".join(
        f"2026-03-04 05:{(60 + 15 * n) // 60:02d}:{15 * n % 60:02d} INFO [rank{rank}] step={4 * n}"
        f" loss={4 - n / 100:.3f} step_s=3.75 sync_wait_s={0.1 if rank == late else 0.9}{n % 7}\n"
        for n in range(1, 140)
        for rank in range(8)
    )


def judged(folder: Path, busier: tuple[str, int] | None, late: int = 6, nccl: str = "") -> Verdict:
    rows = [
        f'DCGM_FI_PROF_SM_ACTIVE{{gpu="{gpu}",Hostname="{host}",modelName="H100"}}'
        f" {0.0 if not 60 < at < 2280 else 0.9 if (host, gpu) == busier else 0.7}"
        f" {(T0 + 3600 + at) * 1000}"
        for at in range(-300, 2700, 30)
        for host in ("kx7", "kx8")
        for gpu in range(4)
    ]
    (folder / "dcgm.prom").write_text("\n".join(rows) + "\n")
    (folder / "train.log").write_text(nccl + printed(late) + "2026-03-04 05:39:50 INFO done\n")
    (folder / "sacct.psv").write_text(SACCT)
    return diagnose(collect(Request((str(folder),))))


def told(verdict: Verdict) -> list[tuple[int | None, str | None, str | None]]:
    assert verdict.code == "D3"
    return [(place.rank, place.host, place.gpu) for place in verdict.culprits]


def test_the_card_that_its_number_counts_to(tmp_path: Path) -> None:
    """By two sources; that card's host is left out next time."""
    verdict = judged(tmp_path, ("kx8", 2))

    assert told(verdict) == [(6, "kx8", "2")]
    assert verdict.resubmit == "exclude"


def test_the_first_card_of_the_last_host(tmp_path: Path) -> None:
    """Alone it may hold the last stage of a model; here its rank is the one that comes last."""
    assert told(judged(tmp_path, ("kx8", 0), late=4)) == [(4, "kx8", "0")]


@pytest.mark.parametrize(
    "busier", [None, ("kx8", 1), ("kx8", 0)], ids=["none is apart", "another's", "a last stage"]
)
def test_near_misses_name_the_rank_alone(tmp_path: Path, busier: tuple[str, int] | None) -> None:
    assert told(judged(tmp_path, busier)) == [(6, None, None)]


def test_nccl_says_which_card_a_rank_has(tmp_path: Path) -> None:
    lines = "".join(NCCL.format(host=7 + rank // 4, gpu=rank % 4, rank=rank) for rank in range(8))

    assert told(judged(tmp_path, None, nccl=lines)) == [(6, "kx8", "2")]


ALONE = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList|AllocTRES\n"
    "92|lm|COMPLETED|0:0|2026-03-04T05:00:00|2026-03-04T05:40:00|1|kx7|gres/gpu=8,node=1\n"
)


def on_one_host(folder: Path, narrow: int | None) -> Verdict:
    """Eight ranks of one host, of which a card's link has lost lanes."""
    rows = [
        f'{metric}{{gpu="{gpu}",Hostname="kx7"}} {lanes} {(T0 + 3600 + at) * 1000}'
        for at in range(-300, 2700, 60)
        for gpu in range(8)
        for metric, lanes in (
            ("DCGM_FI_DEV_PCIE_LINK_WIDTH", 8 if gpu == narrow else 16),
            ("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", 16),
        )
    ]
    (folder / "dcgm.prom").write_text("\n".join(rows) + "\n")
    (folder / "train.log").write_text(printed(6) + "2026-03-04 05:39:50 INFO done\n")
    (folder / "sacct.psv").write_text(ALONE)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(("narrow", "gpu"), [(6, "6"), (2, None), (None, None)])
def test_the_card_of_its_number_that_has_lost_lanes(
    tmp_path: Path, narrow: int | None, gpu: str | None
) -> None:
    """The record of a job of one node says where its ranks are."""
    assert told(on_one_host(tmp_path, narrow)) == [(6, "kx7", gpu)]


@pytest.mark.parametrize(
    ("late", "lag", "code"), [(5, 12, "D3"), (5, 2, "G1"), (0, 12, "G1"), (7, 12, "G1")]
)
def test_all_wait_for_something_else_as_well(
    tmp_path: Path, late: int, lag: int, code: str
) -> None:
    """A rank that costs a tenth of each step; the first and the last have duties of their own, and
    then nobody is told, nor that the run is sound."""
    lines = "".join(
        f"2026-03-04 05:{(60 + 15 * n) // 60:02d}:{15 * n % 60:02d} INFO [rank{rank}]"
        f" step={12 * n} loss={4 - n / 100:.3f} step_s=1.25"
        f" sync_wait_s={0.300 + (n + rank) % 5 / 500 - (lag / 100 if rank == late else 0):.3f}\n"
        for n in range(1, 140)
        for rank in range(8)
    )
    (tmp_path / "train.log").write_text(lines + "2026-03-04 05:39:50 INFO done\n")
    (tmp_path / "sacct.psv").write_text(SACCT)
    rows = [
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="{gpu}",Hostname="{host}"}} 500 {(T0 + 3600 + at) * 1000}'
        for at in range(0, 2400, 60)
        for host in ("kx7", "kx8")
        for gpu in range(4)
    ]
    (tmp_path / "dcgm.prom").write_text("\n".join(rows) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    assert (verdict.confidence >= 0.8) == (lag == 2)
    if code == "D3":
        assert [place.rank for place in verdict.culprits] == [late]


def by_tasks(folder: Path, idle: tuple[tuple[str, int], ...], tasks: int = 8) -> Verdict:
    """srun's tasks say how long they loaded data; task 2 takes longer for it from 05:10 on, and
    these cards have gaps since."""
    rows, lines, at = [], ["ranks: world_size=8"], 60.0
    for step in range(1, 700):
        at += 4.6 if at > 600 else 3.0
        if at > 2340:
            break
        lines += [
            f"{task}: 2026-03-04 05:{int(at) // 60:02d}:{int(at) % 60:02d} INFO step={step}"
            f" loss={4 - step / 1000 - task / 100:.3f} step_s={4.6 if at > 600 else 3.0}"
            f" data_s={1.7 if task == 2 and at > 600 else 0.1 + (step + task) % 5 / 100:.3f}"
            for task in range(tasks)
        ]
    for at in range(-300, 2700, 30):
        for host in ("kx7", "kx8"):
            for gpu in range(4):
                busy = 0.66 if (host, gpu) in idle and at > 600 else 0.97
                rows.append(
                    f'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{gpu="{gpu}",Hostname="{host}"}}'
                    f" {busy if 60 < at < 2340 else 0.0} {(T0 + 3600 + at) * 1000}"
                )
    (folder / "dcgm.prom").write_text("\n".join(rows) + "\n")
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    (folder / "sacct.psv").write_text(SACCT)
    return diagnose(collect(Request((str(folder),))))


def test_a_task_is_the_rank_whose_card_alone_had_gaps(tmp_path: Path) -> None:
    """Since it loads longer: one phase, which alone might be chance."""
    assert told(by_tasks(tmp_path, (("kx7", 2),))) == [(2, "kx7", "2")]


@pytest.mark.parametrize(
    "idle",
    [(), (("kx8", 1),), (("kx7", 2), ("kx8", 2))],
    ids=["none has", "another's", "a host's of each"],
)
def test_gaps_that_are_not_its_cards_alone(
    tmp_path: Path, idle: tuple[tuple[str, int], ...]
) -> None:
    assert told(by_tasks(tmp_path, idle)) == [(2, None, None)]


def test_a_task_of_fewer_than_ranks_is_no_rank(tmp_path: Path) -> None:
    verdict = by_tasks(tmp_path, (("kx7", 2),), tasks=4)

    assert told(verdict) == [(None, None, None)]
    assert [place.task for place in verdict.culprits] == [2]


@pytest.mark.parametrize(("cards", "gpu"), [("0-3", "2"), ("4-7", "6"), ("0-1", None)])
def test_the_card_by_the_ranks_as_they_were_shared_out(
    tmp_path: Path, cards: str, gpu: str | None
) -> None:
    """One line gives every rank its host and, where there are as many, its card."""
    line = f"INFO ranks 0-3 on kx7 (gpu {cards}), ranks 4-7 on kx8 (gpu {cards})\n"

    assert told(judged(tmp_path, None, nccl=line)) == [(6, "kx8", gpu)]
