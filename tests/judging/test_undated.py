"""Logs whose lines carry no times: their pace in the order of steps, and on the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from families.fleet import T0, facts_of, sample
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.facts import Facts
from flatline.judging.by_steps import spent
from flatline.judging.by_work import laid_by_work
from flatline.judging.throughput import course, course_in_order
from flatline.model import NOWHERE, Attempt, Progress, Verdict
from flatline.tracks import Track

STEPS, EACH_S = 200, 30.0
"""A run of 6000 s in lines of one step."""


def noisy(step: int) -> float:
    """A part of the step time by which steps differ."""
    return 1 + 0.004 * (step * 7 % 11 - 5) / 5


def run(
    folder: Path, took: Callable[[int], float], more: Callable[[int], str] = lambda _: ""
) -> Verdict:
    """The verdict on an undated log alone, of a run that says that it completed."""
    lines = [
        f"step {step}/{STEPS} loss {2 + 40 / step:.4f} {took(step) * noisy(step):.4f}s/it"
        f"{more(step)}\n"
        for step in range(1, STEPS + 1)
    ]
    (folder / "train.log").write_text("".join(lines) + "Training complete.\n")
    return diagnose(collect(Request((str(folder),))))


def timed(rows: Iterable[tuple[int, float | None, float | None]]) -> Track:
    """A track of undated points: step, its seconds, throughput."""
    track = Track("job.log", NOWHERE, None, "plain")
    for line, (step, seconds, rate) in enumerate(rows, 1):
        point = Progress("train", step=step, loss=2.0, step_s=seconds, throughput=rate)
        track.add(point, line, None, 0)
    return track


def worked(begins: float, ends: float, until: float, waits: float = 90.0) -> list[str]:
    """The power of four GPUs, high from one moment to another."""
    return [
        sample("DCGM_FI_DEV_POWER_USAGE", f'gpu="{gpu}",Hostname="n{gpu // 2}"',
               600.0 if begins < at <= ends else waits, at)
        for at in range(0, int(until), 30)
        for gpu in range(4)
    ]  # fmt: skip


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(T0 + seconds, UTC)


def slower(step: int) -> float:
    """Steps 121 to 160 take a quarter longer."""
    return EACH_S * (1.25 if 120 < step <= 160 else 1.0)


def by_seconds(step: int) -> tuple[int, float | None, float | None]:
    return step, slower(step) * noisy(step), None


def by_rate(step: int) -> tuple[int, float | None, float | None]:
    return step, None, 1e6 / (slower(step) * noisy(step))


# --- in the order of steps ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "when"), [(STEPS, "from step 121 on"), (160, "from step 121 to 160")]
)
def test_a_fall_that_nothing_explains_is_told_by_its_steps(
    tmp_path: Path, last: int, when: str
) -> None:
    verdict = run(tmp_path, lambda step: EACH_S * (1.25 if 120 < step <= last else 1.0))

    assert verdict.code == "G1"
    assert verdict.confidence < 0.8
    assert f"20% slower {when}; nothing that was read says why" in verdict.headline
    assert any("from step 121 to" in shown.text for shown in verdict.shows)
    assert "1970" not in repr(verdict)


@pytest.mark.parametrize(
    "took",
    [
        lambda step: EACH_S,
        lambda step: 400.0 if step == 1 else EACH_S,  # compiles
        lambda step: 3 * EACH_S if step <= 4 else EACH_S,  # warms up
        lambda step: 4 * EACH_S if step % 50 == 0 else EACH_S,  # evaluates
        lambda step: EACH_S if step % 2 else 2 * EACH_S,  # two loops in turn
    ],
)  # fmt: skip
def test_a_pace_that_held_is_not_said_to_have_fallen(
    tmp_path: Path, took: Callable[[int], float]
) -> None:
    verdict = run(tmp_path, took)

    assert verdict.code == "G1"
    assert "slower" not in verdict.headline


@pytest.mark.parametrize(("every", "lasts"), [(100, 60.0), (50, 60.0), (100, 300.0)])
def test_a_bar_that_still_counts_an_evaluation_shows_no_fall(
    tmp_path: Path, every: int, lasts: float
) -> None:
    """Its rate is a moving average."""
    shown, took, lines = 3.0, 0.0, []
    for step in range(1, 801):
        own = 3.0 * noisy(step) + (lasts if step % every == 1 and step > 1 else 0.0)
        shown, took = 0.3 * own + 0.7 * shown, took + own
        bar = f"[{int(took) // 60:02d}:{int(took) % 60:02d}<10:00, {shown:5.2f}s/it]"
        lines.append(f" 10%|#         | {step}/800 {bar}")
        lines.append(f"{{'loss': {2 + 40 / step:.4f}, 'learning_rate': 1e-05, 'epoch': 0.1}}")
        if step % every == 0:
            lines.append("{'eval_loss': 1.5, 'eval_runtime': 60.0, 'epoch': 0.1}")
    lines.append("{'train_runtime': 3000.0, 'train_loss': 2.1, 'epoch': 1.0}")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "G1"
    assert "slower" not in verdict.headline


def test_a_run_of_a_minute_is_uneven_for_reasons_of_its_own(tmp_path: Path) -> None:
    verdict = run(tmp_path, lambda step: 0.4 if step > 120 else 0.3)

    assert verdict.code == "G1"
    assert "slower" not in verdict.headline


def test_a_size_that_grows_as_the_pace_falls_needs_no_clock(tmp_path: Path) -> None:
    verdict = run(
        tmp_path,
        lambda step: EACH_S * (1.5 if step > 120 else 1.0),
        lambda step: f" seq_len {8192 if step > 120 else 4096}",
    )

    assert (verdict.code, verdict.fault_class, verdict.onset) == ("D6", "size", None)
    assert "at step 121" in verdict.headline
    assert "1970" not in repr(verdict)


@pytest.mark.parametrize(
    ("grows", "before", "after"), [(80, 4096, 8192), (150, 4096, 8192), (120, 8192, 4096)]
)  # fmt: skip
def test_a_size_that_changes_at_another_step_or_shrinks_explains_nothing(
    tmp_path: Path, grows: int, before: int, after: int
) -> None:
    verdict = run(
        tmp_path,
        lambda step: EACH_S * (1.5 if step > 120 else 1.0),
        lambda step: f" seq_len {after if step > grows else before}",
    )

    assert verdict.code == "G1"
    assert "33% slower from step 121 on" in verdict.headline


def test_a_size_explains_no_pace_that_only_rose(tmp_path: Path) -> None:
    verdict = run(
        tmp_path,
        lambda step: EACH_S * (1.5 if step <= 120 else 1.0),
        lambda step: f" seq_len {8192 if step <= 120 else 4096}",
    )

    assert verdict.code != "D6"


def test_steps_that_are_counted_anew_have_no_order() -> None:
    """A second loop, or a resumed attempt that nothing parts from the first."""
    track = timed([by_seconds(step) for step in (*range(1, 101), *range(41, 201))])

    assert spent(track, range(len(track))) is None


def test_a_step_that_is_printed_twice_counts_once() -> None:
    """A bar says what it took, the line below it the loss."""
    rows = [row for step in range(1, 51) for row in ((step, 2.0, None), (step, None, None))]
    track = timed(rows)
    known = spent(track, range(len(track)))

    assert known is not None
    assert (known.indexes, known.by[-1]) == (tuple(range(0, 100, 2)), 100.0)


# --- on the clock -------------------------------------------------------------------------------


def test_steps_that_fill_the_work_of_the_gpus_are_laid_there(tmp_path: Path) -> None:
    track = timed(map(by_seconds, range(1, STEPS + 1)))
    took = sum(slower(step) for step in range(1, STEPS + 1))
    facts, _ = facts_of(tmp_path, worked(1000, 1000 + took, 2000 + took), track)
    found = course(facts)

    assert found is not None
    (phase,) = found.slow
    assert phase.begins == pytest.approx(T0 + 1000 + 120 * EACH_S, abs=found.pace.off_s)
    assert 0 < found.pace.off_s <= 0.1 * took


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        (1000, 8000),  # the GPUs worked longer than the steps took: where they lie is open
        (1000, 6000),  # shorter: they are another job's
        (1000, 1600),  # hardly at all
    ],
)
def test_steps_that_fit_elsewhere_too_keep_their_order_alone(
    tmp_path: Path, begins: float, ends: float
) -> None:
    track = timed(map(by_seconds, range(1, STEPS + 1)))
    facts, _ = facts_of(tmp_path, worked(begins, ends, 9000), track)
    found = course_in_order(facts)

    assert course(facts) is None
    assert found is not None
    assert not found.pace.clocked
    assert len(found.slow) == 1


def recorded(tmp_path: Path, track: Track, begins: float = 200, **more: object) -> Facts:
    """A run of 6500 s by its record, whose GPUs began to work later."""
    attempt = Attempt(0, "completed", moment(0), moment(6500))
    settled: dict[str, object] = {"attempts": (attempt,)}
    return facts_of(tmp_path, worked(begins, 6500, 6530), track, **{**settled, **more})[0]


def test_throughput_is_laid_within_the_record_of_a_run_that_ended_well(tmp_path: Path) -> None:
    found = course(recorded(tmp_path, timed(map(by_rate, range(1, STEPS + 1)))))

    assert found is not None
    (phase,) = found.slow
    assert phase.begins == pytest.approx(T0 + 200 + 6300 * 120 / 210, abs=found.pace.off_s)


def test_throughput_alone_is_laid_nowhere_else(tmp_path: Path) -> None:
    """Without a record, of a run that failed, of one that began late, from a part of its log."""
    track = timed(map(by_rate, range(1, STEPS + 1)))
    failed = (Attempt(0, "failed", moment(0), moment(6500)),)
    unknown = (Attempt(0, "completed"),)

    assert laid_by_work(recorded(tmp_path, track)) is not None
    assert laid_by_work(recorded(tmp_path, track, attempts=failed)) is None
    assert laid_by_work(recorded(tmp_path, track, attempts=unknown)) is None
    assert laid_by_work(recorded(tmp_path, track, begins=1500)) is None
    assert laid_by_work(recorded(tmp_path, track, whole_logs=False)) is None


def test_throughput_of_steps_whose_size_changes_is_no_measure_of_time(tmp_path: Path) -> None:
    track = timed(map(by_rate, range(1, STEPS + 1)))

    def line(source: str, number: int) -> str:
        return f"step {number} batch_size {64 if number < 100 else 128}"

    facts = recorded(tmp_path, track)
    facts._read_line = line

    assert laid_by_work(facts) is None
