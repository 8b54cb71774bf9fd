"""D3 by one GPU that draws as much as before while all others of the run draw less, and by the
rank that the steps' lines call the slowest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 4, 14, 10, tzinfo=UTC)
SLOW_FROM, ENDS = 1500, 3600


def run(
    folder: Path,
    *,
    kept: tuple[str, ...] = ("g2/5",),
    at: float = 0.96,
    others: float = 0.8,
    named: tuple[int, int] | None = None,
    world: int | None = 24,
    hosts: int = 3,
    slower: float = 1.6,
) -> Verdict:
    """AMD cards of a run of 24 ranks on three hosts, beside a fourth of another's; from a time on
    steps take longer and all but the `kept` draw less.  `named` is which rank each line calls the
    slowest before and since."""
    lines, second, step = [f"run=gpt world={world} hosts={hosts}"] if world else [], 0.0, 0
    while second < ENDS:
        slow = second >= SLOW_FROM
        second, step = second + (4.0 * slower if slow else 4.0), step + 1
        slowest = "" if named is None else f" comp_max_rank={named[slow]}"
        moment = BEGAN + timedelta(seconds=second)
        lines.append(
            f"{moment:%Y-%m-%dT%H:%M:%S}Z train step={step}/9000 loss={1.5 + 8 / step:.4f}"
            f" step_s={4.0 * (slower if slow else 1):.3f}{slowest}"
        )
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    read = []
    for tick in range(0, ENDS, 30):
        stamp = int((BEGAN.timestamp() + tick) * 1000)
        for n in range(4):
            for gpu in range(8):
                label = f'{{gpu_id="{gpu}",hostname="g{n + 1}"}}'
                part = 1.0
                if tick >= SLOW_FROM and n < 3:
                    part = at if f"g{n + 1}/{gpu}" in kept else others
                watts = 700.0 * part + (tick // 30 * 7 + gpu) % 5
                read.append(f"gpu_package_power{label} {watts} {stamp}")
                read.append(f"gpu_gfx_activity{label} 98 {stamp}")
    (folder / "metrics.prom").write_text("\n".join(read) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("name", ["wait_max_rank", "mem_max_rank", "loss_max_rank", "max_rank"])
def test_the_rank_that_has_most_of_something_else(tmp_path: Path, name: str) -> None:
    """It waits, or holds, or is LoRA's."""
    run(tmp_path, kept=(), named=(3, 13))
    log = tmp_path / "train.log"
    log.write_text(log.read_text().replace("comp_max_rank", name))

    assert diagnose(collect(Request((str(tmp_path),)))).code != "D3"


@pytest.mark.parametrize("watts", [72.0, 400.0])
def test_a_spare_or_a_capped_card_is_not_waited_for(tmp_path: Path, watts: float) -> None:
    """It drew as much less while the run was fast."""
    run(tmp_path)
    metrics = tmp_path / "metrics.prom"
    rows = metrics.read_text().splitlines(keepends=True)
    own = 'gpu_package_power{gpu_id="5",hostname="g2"}'
    metrics.write_text("".join(
        f"{own} {watts} {row.split()[-1]}\n" if row.startswith(own) else row for row in rows
    ))  # fmt: skip

    assert diagnose(collect(Request((str(tmp_path),)))).code != "D3"


def test_a_rank_that_cannot_be_the_cards(tmp_path: Path) -> None:
    """Its number counts to another card."""
    verdict = run(tmp_path, named=(3, 12))

    assert verdict.code != "D3"


def places(verdict: Verdict) -> list[tuple[str | None, str | None, int | None]]:
    return [(place.host, place.gpu, place.rank) for place in verdict.culprits]


@pytest.mark.parametrize("named", [None, (3, 13)])
def test_the_one_card_that_works_on(tmp_path: Path, named: tuple[int, int] | None) -> None:
    """Its host is one of the run's, for the others of it wait as all do; another's cards are left
    out.  What the steps say of the slowest rank bears it out."""
    verdict = run(tmp_path, named=named)

    assert verdict.code == "D3"
    assert places(verdict) == [("g2", "5", None if named is None else 13)]
    assert verdict.confidence < 0.8  # nobody measured what else runs on its host
    assert any("as the slowest" in one.text for one in verdict.shows) == (named is not None)


def test_where_nobody_counts_the_ranks(tmp_path: Path) -> None:
    """The hosts whose cards fell alike are the run's."""
    verdict = run(tmp_path, world=None)

    assert (verdict.code, places(verdict)) == ("D3", [("g2", "5", None)])
    assert verdict.confidence < 0.8


def test_the_steps_lines_alone(tmp_path: Path) -> None:
    """No card stands out, as where power was not measured finely enough."""
    verdict = run(tmp_path, kept=(), named=(3, 13))

    assert (verdict.code, places(verdict)) == ("D3", [(None, None, 13)])
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    ("kept", "at", "others", "named", "world", "slower"),
    [
        (("g2/5", "g2/6"), 0.96, 0.8, None, 24, 1.6),
        ((), 0.8, 0.8, None, 24, 1.6),
        (("g2/5",), 0.86, 0.8, None, 24, 1.6),
        (("g2/5",), 0.96, 0.8, None, 32, 1.6),
        (("g2/5", "g1/2"), 0.96, 0.8, None, None, 1.6),
        (("g2/5",), 0.96, 0.8, None, 24, 1.05),
        ((), 0.8, 0.8, (13, 13), 24, 1.6),
    ],
    ids=["two", "none", "little apart", "more ranks than cards", "two, ranks not known", "as fast",
         "always the slowest"],
)  # fmt: skip
def test_near_misses(
    tmp_path: Path,
    kept: tuple[str, ...],
    at: float,
    others: float,
    named: tuple[int, int] | None,
    world: int | None,
    slower: float,
) -> None:
    """What another tenant's card draws is its own; a stage that has most to do slows nothing."""
    verdict = run(tmp_path, kept=kept, at=at, others=others, named=named, world=world,
                  slower=slower)  # fmt: skip

    assert verdict.code != "D3"
