"""What can be shown of a run beside the verdict."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.exhibit import Exhibit, exhibit
from flatline.exhibit.curves import thinned
from flatline.exhibit.places import ROWS
from render import big_run, verdicts

SCENARIOS = Path(__file__).parent / "scenarios"


def of(name: str) -> Exhibit:
    facts = collect(Request((str(SCENARIOS / name / "run"),)))
    return exhibit(facts, diagnose(facts))


def test_thinning_keeps_extremes_ends_and_what_is_no_number() -> None:
    """One spike, one dip and one NaN among a hundred thousand points stay."""
    points = [(float(n), 1.0) for n in range(100_000)]
    points[777], points[50_001], points[70_003] = (
        (777.0, 9.0),
        (50_001.0, -9.0),
        (70_003.0, math.nan),
    )
    kept = thinned(points, 300)
    assert len(kept) <= 1_000
    assert {777.0, 50_001.0, 70_003.0, 0.0, 99_999.0} <= {at for at, _ in kept}


def test_steps_without_a_date_have_no_pace(tmp_path: Path) -> None:
    """Neither a curve of it nor a mark that it is no number."""
    lines = "".join(f"step {n} loss {4 - n / 20}\n" for n in range(1, 40))
    (tmp_path / "train.log").write_text(lines)
    facts = collect(Request((str(tmp_path),)))
    curves = exhibit(facts, diagnose(facts)).curves
    assert curves is not None
    assert [curve.name for curve in curves.curves] == ["loss"]


def test_attempts_lie_end_to_end() -> None:
    """Each attempt has its own band and its own steps; bands do not overlap."""
    curves = of("resumed_from_nothing").curves
    assert curves is not None
    first, second = curves.bands
    assert first.end < second.start
    assert (first.first, second.first) == (1, 1)
    assert [len(curve.runs) for curve in curves.curves] == [2] * len(curves.curves)


def test_the_onset_is_where_the_loss_became_nan() -> None:
    """The mark lies on the axis at the step of the verdict, at the first NaN."""
    curves = of("loss_goes_nan").curves
    assert curves is not None
    onset = next(mark for mark in curves.marks if mark.kind == "onset")
    loss = next(curve for curve in curves.curves if curve.name == "loss")
    assert onset.at == next(at for at, value in loss.runs[0] if math.isnan(value))


def test_the_culprit_has_a_row_of_its_own() -> None:
    """It stands first; its peers that did the same share theirs."""
    places = of("one_rank_stopped").places[0]
    assert places.rows[0].culprit
    assert places.rows[0].numbers == (3,)
    assert not any(row.culprit for row in places.rows[1:])
    assert sorted(n for row in places.rows for n in row.numbers) == [0, 1, 2, 3]


def test_hosts_are_rows_where_a_host_is_blamed() -> None:
    """A lost node's last recorded state and when; the others share a row."""
    places = next(p for p in of("slurm_node_lost").places if p.word == "host")
    lost = places.rows[0]
    assert lost.culprit
    assert "DOWN" in (lost.said or "")
    assert lost.said_at is not None


def test_sixteen_thousand_ranks_are_few_rows() -> None:
    """Every rank is in one row: the culprit, the one that printed, all that waited."""
    facts = big_run.facts()
    culprits = (big_run.place(big_run.CULPRIT),)
    made = exhibit(facts, replace(verdicts.huge(), culprits=culprits))
    rows = made.places[0].rows
    assert [len(row.numbers) for row in rows] == [1, 1, big_run.RANKS - 2]
    assert rows[0].waits_in == "completed collective 88,122"
    assert rows[2].waits_in == "waits in all_reduce 88,123 of default_pg"


def test_ranks_that_all_differ_are_grouped_by_less() -> None:
    """Each at a step of its own: they share rows all the same, and none is lost."""
    facts = big_run.facts()
    exits = [replace(event, exit_code=n % 200, signal=None) for n, event in enumerate(facts.exits)]
    facts.exits = tuple(exits)
    places = exhibit(facts, verdicts.found()).places[0]
    assert len(places.rows) <= ROWS
    shown = sum(len(row.numbers) for row in places.rows)
    assert shown + places.folded == big_run.RANKS


def test_quotes_hold_the_cited_line() -> None:
    """Each is the file's own text around the citation, indentation kept."""
    made = of("one_rank_stopped")
    assert made.quotes
    for (source, line), quote in made.quotes.items():
        lines = (SCENARIOS / "one_rank_stopped" / "run" / source).read_text("utf-8").split("\n")
        assert quote.lines[line - quote.first] == lines[line - 1].rstrip()


def test_a_run_without_progress_shows_no_curve() -> None:
    """Nothing is drawn from nothing."""
    assert of("mistyped_option").curves is None
