"""A rank that is behind by the program's own timing while the run is slow."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

SCORES = (
    "GPU {} performance:\n Worst performing 2/16 ranks:\n  Rank={} Node=n3 Score={:.2f}\n"
    "  Rank=2 Node=n1 Score=0.98\n"
)
LEAST = (
    "INFO:megatron.core.utils:^^^^ Bottom 3 Ranks with lowest  Etpt(TF): {:.2f}/{}, 398.10/2,"
    " 399.00/4\n"
)


def relative(rank: int, score: float) -> str:
    return SCORES.format("relative", rank, score)


def individual(rank: int, score: float) -> str:
    return SCORES.format("individual", rank, score)


def least(rank: int, score: float) -> str:
    return LEAST.format(399 * score, rank)


def span(rank: int, score: float) -> str:
    """With its clock, which falls as far."""
    return (
        f"INFO:megatron.core.utils:[2026-03-02 14:08:11] | MnPwr/Rnk: 402.10W/{rank} | MnClk/Rnk:"
        f" {1980 * score:.2f}MHz/{rank} | MxClk/Rnk: 1980.00MHz/0 | MnDRtt/Rnk: 1.20ms/3 |"
        f" MnEtpt/Rnk: {399 * score:.2f}TF/{rank} | MxEtpt/Rnk: 399.00TF/4\n"
    )


def judged(folder: Path, reports: dict[int, str]) -> Verdict:
    """Half of the steps take 2 s, the other half 4 s."""
    lines = ["world_size: 16\n"]
    for n in range(1, 601):
        took = 2.0 if n <= 300 else 4.0
        lines += [f"step {n}/600 loss {4 - n / 300:.4f} step_time {took}s\n", reports.get(n, "")]
    (folder / "train.log").write_text("".join(lines) + "Training completed\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("say", [relative, least, span])
def test_behind_since_the_run_is_slow(tmp_path: Path, say) -> None:  # type: ignore[no-untyped-def]
    """And not before: the reports of the fast time are the control."""
    said = {n: say(9, 0.51 if n > 300 else 0.97) for n in range(40, 600, 40)}
    verdict = judged(tmp_path, said)

    assert (verdict.code, verdict.confidence < 0.8) == ("D3", True)
    assert [place.rank for place in verdict.culprits] == [9]
    told = " ".join(claim.text for claim in verdict.shows)
    assert ("at 1010 of 1980 MHz" in told) == (say is span)


def test_reported_of_the_slow_time_alone(tmp_path: Path) -> None:
    """A program may report only whom it finds slow: just as far behind as the run is slower."""
    verdict = judged(tmp_path, {n: relative(9, 0.51) for n in range(320, 600, 40)})

    assert (verdict.code, verdict.confidence < 0.8) == ("D3", True)
    assert "by design" in str(verdict.cannot_decide)


@pytest.mark.parametrize(
    "reports",
    [
        {n: relative(9, 0.51) for n in range(40, 600, 40)},  # always: more to do by design
        {n: relative(9, 0.90) for n in range(320, 600, 40)},
        {n: relative(9, 0.31) for n in range(320, 600, 40)},  # another slowness than the run's
        {n: relative(9, 0.90 if n > 300 else 0.97) for n in range(40, 600, 40)},  # too little
        {n: relative(n % 16, 0.51 if n > 300 else 0.97) for n in range(37, 600, 37)},
        {n: individual(9, 0.51 if n > 300 else 0.97) for n in range(40, 600, 40)},
        {n: relative(9, 0.51 if n > 500 else 0.97) for n in range(40, 600, 40)},  # late
        {n: span(9, 0.51) for n in range(40, 600, 40)},
        {n: span(n % 16, 0.51 if n > 300 else 0.97) for n in range(37, 600, 37)},
    ],
)
def test_what_explains_no_slow_time(tmp_path: Path, reports: dict[int, str]) -> None:
    """A rank that is always so, now this and now that, by too little, or later on."""
    assert judged(tmp_path, reports).code != "D3"


LISTED = "^^^^ Bottom 3 Ranks with lowest  Etpt (TF): {:.2f}TF/{}, 425.47TF/2, 425.67TF/4\n"


def a_tenth_slower(
    folder: Path,
    power: dict[tuple[int, int], float],
    metric: str = "DCGM_FI_DEV_POWER_USAGE",
    scale: float = 1.0,
) -> Verdict:
    """Rank 9 of 16 on two hosts; each card's `power` in the slow half, of 700 W before."""
    began = 1_772_611_200
    lines, rows, at = ["world_size: 16\n"], [], float(began)
    for n in range(1, 601):
        at += 2.0 if n <= 300 else 2.4
        stamp = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"
        lines.append(f"{stamp} step {n}/600 loss {4 - n / 300:.4f}\n")
        if n % 40 == 0:
            lines.append(LISTED.format(424 * (0.84 if n > 300 else 0.975), 9))
    for second in range(0, int(at) - began, 30):
        for host in range(2):
            for gpu in range(8):
                watts = 700.0 if second <= 600 else power.get((host, gpu), 650.0)
                rows.append(
                    f'{metric}{{Hostname="n{host}",gpu="{gpu}"}}'
                    f" {scale * (watts + (second + gpu) % 3)} {began + second}000"
                )
    (folder / "train.log").write_text("".join(lines))
    (folder / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList|AllocTRES\n"
        "44|gpt|RUNNING|0:0|2026-03-04T08:00:00|Unknown|2|n[0-1]|gres/gpu=16,node=2\n"
    )
    (folder / "metrics.prom").write_text("\n".join(rows) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("power", "named"),
    [
        ({(1, 1): 690.0}, ("n1", "1")),
        ({(1, 2): 690.0}, (None, None)),  # rank 9 is the second of its host
        ({(1, 1): 690.0, (0, 5): 691.0}, (None, None)),  # two
        ({}, (None, None)),
        ({(1, 1): 655.0}, (None, None)),  # too little
    ],
)
def test_the_card_that_kept_its_power_up(
    tmp_path: Path, power: dict[tuple[int, int], float], named: tuple[str | None, str | None]
) -> None:
    """The others draw less, for they wait; which host the rank runs on nothing else tells."""
    verdict = a_tenth_slower(tmp_path, power)

    assert verdict.code == "D3"
    assert [(place.rank, place.host, place.gpu) for place in verdict.culprits] == [(9, *named)]


def test_the_card_that_kept_its_tensor_cores_busy(tmp_path: Path) -> None:
    verdict = a_tenth_slower(
        tmp_path, {(1, 1): 700.0}, metric="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", scale=5e-4
    )

    assert [(p.rank, p.host, p.gpu) for p in verdict.culprits] == [(9, "n1", "1")]


def test_a_report_where_the_pace_changes_tells_nothing_of_the_fast_time(tmp_path: Path) -> None:
    """Cuts are laid where the levels fit best, and may be a point late."""
    at_once = edged(tmp_path / "a", last_fast=300)
    long_before = edged(tmp_path / "b", last_fast=280)

    assert (at_once.code, [p.rank for p in at_once.culprits]) == ("D3", [9])
    assert long_before.code != "D3"


def edged(folder: Path, last_fast: int) -> Verdict:
    """The rank is behind in the report of that step, and the run is slow from step 301 on."""
    folder.mkdir()
    said = {n: least(9, 0.51 if n > 300 or n == last_fast else 0.97)
            for n in [*range(40, 600, 40), 300]}  # fmt: skip
    return judged(folder, said)


NEXT = "^^^^ Bottom 3 Ranks with lowest  Etpt(TF): {:.2f}/{}, {:.2f}/{}, 399.00/4,\n"


def steady(folder: Path, reports: dict[int, str], world: int = 16, late: float = 2.0) -> Verdict:
    """Of a run that goes on at the same pace, or does for half of its steps."""
    lines = [f"using world size: {world}, pipeline-model-parallel size: 1\n"]
    for n in range(1, 601):
        took = 2.0 if n <= 300 else late
        lines += [f"step {n}/9000 loss {4 - n / 300:.4f} step_time {took}s\n", reports.get(n, "")]
    (folder / "train.log").write_text("".join(lines))
    return diagnose(collect(Request((str(folder),))))


def lagging(rank: int = 9, score: float = 0.7, beside: float = 0.98, other: int = 2) -> str:
    return NEXT.format(399 * score, rank, 399 * beside, other)


def test_behind_throughout_a_run_whose_pace_never_fell(tmp_path: Path) -> None:
    verdict = steady(tmp_path, {n: lagging() for n in range(100, 601, 100)})

    assert (verdict.code, verdict.confidence < 0.8) == ("D3", True)
    assert [place.rank for place in verdict.culprits] == [9]


def both(rank: int = 9, score: float = 0.7, beside: float = 0.98) -> str:
    """The line of the least and the most before it, as Megatron prints them."""
    return span(rank, score) + lagging(rank, score, beside, 17)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (both(), True),
        (lagging(other=17), True),
        (both(19), False),
        (both(beside=0.8), False),
        (span(9, 0.7), False),
        (lagging(other=12), False),
    ],
    ids=["one", "no span", "the highest that is named", "two", "none beside it", "few"],
)
def test_one_of_as_many_ranks_as_are_named(tmp_path: Path, said: str, code: bool) -> None:
    """No line need tell the size of the world, nor does the line of the span hide the list."""
    lines = []
    for n in range(1, 601):
        report = said if n % 100 == 0 else ""
        lines += [f"step {n}/9000 loss {4 - n / 300:.4f} step_time 2.0s\n", report]
    (tmp_path / "train.log").write_text("".join(lines))

    assert (diagnose(collect(Request((str(tmp_path),)))).code == "D3") is code


@pytest.mark.parametrize(
    ("reports", "run"),
    [
        ({n: lagging(beside=0.8) for n in range(100, 601, 100)}, {}),  # two: a stage
        ({n: lagging(score=0.96, beside=0.99) for n in range(100, 601, 100)}, {}),  # too little
        ({n: lagging(n // 100 + 4) for n in range(100, 601, 100)}, {}),  # now this, now that
        ({n: lagging(15) for n in range(100, 601, 100)}, {}),  # the last one
        ({n: lagging() for n in range(100, 601, 100)}, {"world": 12}),
        ({n: lagging() for n in range(100, 601, 100)}, {"late": 4.0}),  # not what made it slow
        ({n: lagging() for n in range(100, 301, 100)}, {}),  # not to its end
        ({n: lagging() for n in (100, 500)}, {}),  # two reports
    ],
)
def test_what_may_be_by_design_or_pass(
    tmp_path: Path, reports: dict[int, str], run: dict[str, float]
) -> None:
    assert steady(tmp_path, reports, **run).code != "D3"  # type: ignore[arg-type]
