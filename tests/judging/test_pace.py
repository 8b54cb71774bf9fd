"""When progress was last seen, and when its silence means that it stood still."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.facts import Facts, Marker
from flatline.judging.pace import pace, standstill, wall
from flatline.model import (
    Attempt,
    Disposition,
    Job,
    LogCite,
    Match,
    Place,
    Progress,
    RecordCite,
    Signature,
)
from flatline.tracks import Track

START = datetime(2026, 3, 1, 4, tzinfo=UTC)
RECORD = RecordCite("sacct", "row 1, End", "x", "JobID=7")


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def track(times: Sequence[float | None], attempt: int = 0) -> Track:
    made = Track("train.log", Place(), None, "plain")
    for i, seconds in enumerate(times):
        when = None if seconds is None else at(seconds)
        made.add(Progress("train", step=i), i + 1, when, attempt)
    return made


def cancel(seconds: float | None, assumed: bool = False) -> Match:
    when = None if seconds is None else at(seconds)
    signature = Signature("x.y", "x", "marker", "", "", "", ("x",), tags=("cancelled",))
    return Match(signature, LogCite("train.log", 500, "CANCELLED", Place(), when, assumed), {})


def job(disposition: Disposition, ended_s: float | None) -> Job:
    ended = None if ended_s is None else at(ended_s)
    return Job("7", None, disposition, disposition.upper(), RECORD, ended_at=ended)


def facts(*tracks: Track, disposition: Disposition = "cancelled", **more: Any) -> Facts:
    return Facts(
        targets=("run",), tracks=tracks, attempts=(Attempt(0, disposition),), **more
    )  # fmt: skip


EVERY_2S = [2.0 * i for i in range(30)]


def test_the_pace_is_the_usual_interval_of_late() -> None:
    """One pause does not change it."""
    found = pace(facts(track([*EVERY_2S, 500.0, 502.0, 504.0])))

    assert found is not None
    assert (found.at, found.interval_s, found.last.line) == (at(504), 2.0, 33)


def test_two_signs_make_no_pace() -> None:
    """Nor do steps without a time."""
    short = pace(facts(track([0.0, 2.0])))

    assert short is not None
    assert short.interval_s is None
    assert pace(facts(track([None, None, None]))) is None


def test_several_lines_of_a_step_are_one_sign() -> None:
    """Some of them without a time; printed within microseconds of one another."""
    made = Track("train.log", Place(), None, "composer")
    for n in range(60):
        for line in range(5):
            when = None if line == 0 else at(7.0 * n + line * 1e-5)
            made.add(Progress("train", step=n), 5 * n + line + 1, when, 0)
    found = pace(facts(made))

    assert found is not None
    assert found.interval_s == pytest.approx(7.0, abs=1e-3)


def test_a_checkpoint_is_progress() -> None:
    """A run that saves or evaluates is not standing still."""
    saved = LogCite("train.log", 99, "saved", Place(), at(200))
    marker = Marker("checkpoint_saved", Progress("checkpoint_saved", step=30), saved, None)
    found = pace(facts(track(EVERY_2S), markers=(marker,)))

    assert found is not None
    assert (found.at, found.interval_s) == (at(200), 2.0)


def test_silence_until_a_dated_cancel_is_a_standstill() -> None:
    """Longer than ten intervals and half a minute, with the derivation."""
    found = standstill(facts(track(EVERY_2S), matches=(cancel(658.0),)))

    assert found is not None
    assert (found[1], found[2].value, found[2].method) == (600.0, 600.0, "elapsed@1")
    assert found[2].inputs[1] == cancel(658.0).cite


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"matches": (cancel(None),)},
        {"matches": (cancel(658.0, assumed=True),)},
        {"jobs": (job("cancelled", None),)},
        {"jobs": (job("failed", 658.0),)},
    ],
    ids=["no end", "no time", "time taken over", "record without end", "ended by itself"],
)
def test_without_a_dated_end_from_outside_nothing_stood_still(more: dict[str, Any]) -> None:
    """Silence proves nothing where no other source shows time passing."""
    assert standstill(facts(track(EVERY_2S), **more)) is None


@pytest.mark.parametrize(("end_s", "stands"), [(59.0, False), (87.0, False), (89.0, True)])
def test_a_short_silence_is_no_standstill(end_s: float, stands: bool) -> None:
    """The last step is at 58 s: a save of a small model takes as long as 30 s."""
    assert (standstill(facts(track(EVERY_2S), matches=(cancel(end_s),))) is not None) is stands


def test_slow_steps_may_be_silent_for_longer() -> None:
    """Ten of their own intervals."""
    slow = track([60.0 * i for i in range(10)])

    assert standstill(facts(slow, matches=(cancel(540 + 500.0),))) is None
    assert standstill(facts(slow, matches=(cancel(540 + 700.0),))) is not None


def test_the_record_dates_the_end_too() -> None:
    """Of a limit and of a cancel."""
    limit = facts(track(EVERY_2S), jobs=(job("timeout", 658.0),), disposition="timeout")

    assert wall(limit) == (at(658), RECORD)
    assert standstill(limit) is not None
    assert standstill(facts(track(EVERY_2S), jobs=(job("cancelled", 658.0),))) is not None


def test_an_end_before_the_last_step_is_no_standstill() -> None:
    """Clocks may disagree."""
    assert standstill(facts(track(EVERY_2S), matches=(cancel(-600.0),))) is None


def test_clocks_that_go_back_give_no_negative_pace() -> None:
    """Times are put in order first."""
    found = pace(facts(track([*EVERY_2S[::-1]])))

    assert found is not None
    assert (found.at, found.interval_s) == (at(58), 2.0)


@pytest.mark.parametrize(
    ("line", "minutes", "told"),
    [
        pytest.param("queue depth 0, heartbeat ok from 8 workers", 60, True, id="one-thing"),
        pytest.param("queue depth 0, heartbeat ok from 8 workers", 20, False, id="for-a-while"),
        pytest.param("evaluating batch {n}/500", 60, False, id="a-count-that-goes-up"),
    ],
)
def test_a_log_that_goes_on_without_a_step(
    tmp_path: Path, line: str, minutes: int, told: bool
) -> None:
    for rank in (0, 1):
        rows = [
            f"{START + timedelta(seconds=20 * n)} [rank{rank}] step {n}/1000 loss {5 - n / 60:.3f}"
            for n in range(60)
        ]
        rows += [
            f"{START + timedelta(minutes=20 + n)} [rank{rank}] {line.format(n=n)}"
            for n in range(minutes)
        ]
        (tmp_path / f"rank{rank}.log").write_text("\n".join(rows) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == ("C2" if told else None)
    assert ("until its log ended" in str(verdict.shows)) is told
    assert verdict.confidence < 0.8
