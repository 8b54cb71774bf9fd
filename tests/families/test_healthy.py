"""What a sound run's verdict shows of its pace."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Claim, LogCite
from mcp_server.asking import DEMOS, called, said

SCENARIOS = Path(__file__).parents[1] / "scenarios"


def paced(folder: Path, slower: float) -> Claim:
    """The claim on the pace of a run whose steps 400 to 890 went slower by this part."""
    at, lines = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for step in range(10, 1010, 10):
        seconds = 0.5 / (1 - slower) if 400 <= step < 900 else 0.5
        seconds *= 1 + 0.002 * (step * 7 % 11 - 5) / 5  # as steps differ
        at += timedelta(seconds=10 * seconds)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S},000 INFO step {step}/1000 loss {2 + 400 / step:.4f}"
                     f" step_time {1000 * seconds:.1f} ms\n")  # fmt: skip
    (folder / "train.log").write_text("".join(lines))
    verdict = diagnose(collect(Request((str(folder),))))
    assert verdict.code == "G1"
    return verdict.shows[2]


@pytest.mark.parametrize(
    ("slower", "text"),
    [
        (0.0, "The pace held: median 2 steps/s (0.5 s a step); no phase stands apart"),
        (0.03, "The pace held: median 1.97 steps/s (0.508 s a step);"
               " its slowest lasting phase 3.0% below the best"),
    ],
)  # fmt: skip
def test_a_pace_that_held_is_shown(tmp_path: Path, slower: float, text: str) -> None:
    """With the first and last lines of the phases it is read from."""
    shown = paced(tmp_path, slower)

    assert shown.text == text
    assert len(shown.cites) == (2 if not slower else 4)
    assert all(isinstance(cite, LogCite) and "step_time" in cite.text for cite in shown.cites)


def test_a_pace_that_fell_is_not_said_to_have_held(tmp_path: Path) -> None:
    """The slow phase stands in its place."""
    assert "20% below" in paced(tmp_path, 0.2).text


@pytest.mark.parametrize(("part", "until", "sure"),
                         [(0.84, 900, False), (0.84, 70, True), (0.95, 900, True)])  # fmt: skip
def test_a_gpu_that_clocks_far_below_the_others(
    tmp_path: Path, part: float, until: int, sure: bool
) -> None:
    """Nothing says why, and like GPUs differ: the run is healthy, but not for certain, unless it
    was so for a moment alone or the clock lies no lower than those of like GPUs do."""
    at, log, read = datetime(2026, 3, 4, 8, tzinfo=UTC), [], []
    for step in range(10, 910, 10):
        at += timedelta(seconds=20)
        log.append(f"{at:%Y-%m-%d %H:%M:%S},000 INFO step {step}/900 loss {2 + 400 / step:.4f}\n")
        for gpu in range(16):
            own = part if gpu == 6 and step <= until else 1.0
            labels = f'card="{gpu % 8}",instance="x{gpu // 8}"'
            said = {
                "rocm_sclk_clock_mhz": 1600 * own,
                "rocm_utilization_percentage": 98,
                "rocm_average_socket_power_watts": 500,
                "rocm_temperature_celsius": 60,
            }
            noise, ms = (gpu + step // 10) % 3, int(at.timestamp() * 1000)
            read += [f"{name}{{{labels}}} {value + noise} {ms}\n" for name, value in said.items()]
    (tmp_path / "train.log").write_text(
        "".join([*log, f"{at:%F %T},000 INFO training finished\n"])
    )
    (tmp_path / "metrics.prom").write_text("".join(read))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "G1"
    assert verdict.confidence < 0.8 or sure
    assert any("clocks far below" in one for one in verdict.cannot_decide) != sure


def test_the_first_answer_to_a_model_has_the_pace() -> None:
    (answer,) = called(DEMOS, ("diagnose", {"target": "healthy/run"}))

    assert "shows: The pace held: median 6.711e+04 (as logged);" in said(answer)


@pytest.mark.parametrize(("between_s", "told"), [(4.0, True), (0.2, True), (0.08, False)])
def test_time_that_no_step_accounts_for_is_told(
    tmp_path: Path, between_s: float, told: bool
) -> None:
    """Every tenth step is followed by seconds that the log does not explain."""
    at, lines = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for step in range(1, 401):
        at += timedelta(seconds=1.0 + (10 * between_s if step % 10 == 0 else 0.0))
        lines.append(f"{at:%Y-%m-%d %H:%M:%S},000 INFO step {step}/400 loss {2 + 40 / step:.4f}"
                     f" step_time {1000 + step * 7 % 11:.1f} ms\n")  # fmt: skip
    (tmp_path / "train.log").write_text("".join(lines))
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|NodeList\n77|train|COMPLETED|0:0|gpu1\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))
    assert verdict.code == "G1"
    assert any("account for" in shown.text for shown in verdict.shows) == told


@pytest.mark.parametrize(("longer_s", "told"), [(20.0, True), (1.0, False)])
def test_steps_that_stood_still_are_told_though_they_own_to_it(
    tmp_path: Path, longer_s: float, told: bool
) -> None:
    """Every twentieth step takes longer, as it says itself: no time is left over."""
    at, lines = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for step in range(1, 401):
        took = 2.0 + (longer_s if step % 20 == 0 else 0.0)
        at += timedelta(seconds=took)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S},000 INFO step {step}/400 loss {2 + 40 / step:.4f}"
                     f" step_time {1000 * took:.1f} ms\n")  # fmt: skip
    (tmp_path / "train.log").write_text("".join(lines))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "G1"
    assert any("no line explains" in shown.text for shown in verdict.shows) == told
    assert any("no step accounts for" in line for line in verdict.cannot_decide) == told


@pytest.mark.parametrize(("name", "least", "most"), [("few", 0.0, 0.79), ("busy", 0.8, 1.0)])
def test_a_setting_that_slows_leaves_doubt(name: str, least: float, most: float) -> None:
    """Launches wait for one another: gaps of a fifth of the time, or of a twentieth."""
    run = {"few": "launches_wait_and_gaps_are_few", "busy": "launches_wait_and_gpus_are_busy"}[
        name
    ]
    verdict = diagnose(collect(Request((str(SCENARIOS / run / "run"),))))

    assert verdict.code == "G1"
    assert least <= verdict.confidence <= most
    assert [j.finding.code for j in verdict.findings if j.role == "warning"] == (
        ["D2"] if name == "few" else []
    )


@pytest.mark.parametrize("note", ["", "checkpoint saved at step {}"])
def test_long_saves_that_are_told_leave_no_doubt(tmp_path: Path, note: str) -> None:
    """A sixth of the time, every fiftieth step: nothing says what was done, or a line does."""
    at, lines = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for step in range(1, 401):
        at += timedelta(seconds=2.0)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S},000 INFO step {step}/400 loss {2 + 40 / step:.4f}"
                     f" step_time {2000 + step * 7 % 11:.1f} ms\n")  # fmt: skip
        if step % 50 == 0:
            at += timedelta(seconds=20.0)
            lines += [f"{at:%Y-%m-%d %H:%M:%S},000 INFO {note.format(step)}\n"] if note else []
    (tmp_path / "train.log").write_text("".join(lines))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "G1"
    assert any("account for" in shown.text for shown in verdict.shows) == (not note)


def test_metrics_of_hosts_alone_are_none_of_gpus(tmp_path: Path) -> None:
    """DESIGN: without GPU metrics the confidence of healthy stays below 0.8."""
    start = datetime(2026, 3, 4, 8, tzinfo=UTC)
    at = [start + timedelta(seconds=15 * n) for n in range(240)]
    (tmp_path / "train.log").write_text(
        "".join(f"{t:%Y-%m-%d %H:%M:%S} INFO step {n + 1}/240 loss {2 + 40 / (n + 4):.4f}\n"
                for n, t in enumerate(at))
    )  # fmt: skip
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"77|lm|COMPLETED|0:0|{start:%Y-%m-%dT%H:%M:%S}|{at[-1]:%Y-%m-%dT%H:%M:%S}|1|node01\n"
    )
    (tmp_path / "metrics.prom").write_text(
        "# TYPE node_procs_running gauge\n"
        + "".join(f'node_procs_running{{instance="node01:9100"}} 9 {int(t.timestamp())}000\n'
                  for t in at)
    )  # fmt: skip
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "G1"
    assert verdict.confidence < 0.8
    assert any("no GPU metrics were read" in line for line in verdict.cannot_decide)


@pytest.mark.parametrize(
    ("warm_steps", "seconds", "told"),
    [(6, 9.0, "9% slower"), (40, 3.0, "33% slower"), (6, 400.0, "100% slower")],
    ids=["warm-up", "many-steps", "much-of-the-time"],
)
def test_the_first_steps_are_no_slow_time(
    tmp_path: Path, warm_steps: int, seconds: float, told: str
) -> None:
    """They compile and fill caches, unless they are many or take a good part of the run."""
    at, lines = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for step in range(1, 301):
        took = seconds if step <= warm_steps else 2.2 if step > 150 else 2.0
        took *= 1 + 0.002 * (step * 7 % 11 - 5) / 5
        at += timedelta(seconds=took)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S},000 INFO step {step}/300 loss {2 + 40 / step:.4f}"
                     f" step_time {took:.3f} s\n")  # fmt: skip
    (tmp_path / "train.log").write_text("".join(lines))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "G1"
    assert told in verdict.headline
