"""G1 of a run in pods that nothing but events, its log and metrics tell of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN, LASTED_S = datetime(2026, 4, 7, 21, tzinfo=UTC), 3600
ROW = "{at:%FT%TZ}   {kind}   {reason}   pod/llm-worker-{pod}   {text}\n"


def events(*more: tuple[str, str, str]) -> str:
    """Those of two pods as they start, and more at the end: (kind, reason, message)."""
    rows = ["TIME   TYPE   REASON   OBJECT   MESSAGE\n"]
    for pod in range(2):
        said = [("Normal", "Scheduled", f"Successfully assigned ml/llm-worker-{pod} to n{pod}"),
                ("Normal", "Pulled", "Container image already present on machine"),
                ("Normal", "Started", "Started container main")]  # fmt: skip
        said += [*more] if pod else []
        rows += [ROW.format(at=BEGAN + timedelta(seconds=n), kind=kind, reason=reason, pod=pod,
                            text=text) for n, (kind, reason, text) in enumerate(said)]  # fmt: skip
    return "".join(rows)


def log(until_s: float, *, dated: bool = True, end: str = "") -> str:
    """A step every 20 s; undated, with a word of its logger at every fiftieth."""
    lines = [f"{BEGAN:%F %T} INFO world_size = 8"]
    for n in range(1, int(until_s - 60) // 20):
        at, loss = BEGAN + timedelta(seconds=60 + 20 * n), 2 + 9 / (n + 4)
        if dated:
            lines.append(f"{at:%F %T} INFO step {n}/9000 loss {loss:.3f}")
            continue
        lines.append(
            f"Training epoch 0, iteration {n - 1}/8999 | lr: 0.0001 | global_step: {n - 1} |"
            f" reduced_train_loss: {loss:.3f} | train_step_timing in s: 20.02"
        )
        if not n % 50:
            lines.append(f"[NeMo I {at:%F %T} nemo_logging:393] looked at the data again")
    return "\n".join([*lines, end]) + "\n"


def metrics(until_s: int, odd: dict[int, float], since_s: int) -> str:
    """600 W of each of eight cards from the first minute on; of some another since then."""
    rows = []
    for card in range(8):
        where = f'{{Hostname="n{card // 4}",gpu="{card % 4}"}}'
        for at in range(-300, until_s, 30):
            watts = 90 if at < 60 else odd.get(card, 600.0) if at >= since_s else 600
            stamp = int((BEGAN + timedelta(seconds=at)).timestamp() * 1000)
            rows.append(f"DCGM_FI_DEV_POWER_USAGE{where} {watts + at % 7} {stamp}")
    return "\n".join(rows) + "\n"


def judged(
    folder: Path,
    *,
    told: str | None = None,
    text: str = "",
    measured_s: int = LASTED_S,
    odd: dict[int, float] | None = None,
    since_s: int = LASTED_S - 120,
    end: datetime | None = None,
) -> Verdict:
    if told != "":
        (folder / "events.txt").write_text(told or events())
    (folder / "llm-worker-0.log").write_text(text or log(LASTED_S))
    (folder / "metrics.prom").write_text(metrics(measured_s, odd or {}, since_s))
    return diagnose(collect(Request((str(folder),), end=end)))


@pytest.mark.parametrize("dated", [True, False])
def test_all_that_was_read_goes_on_to_one_end(tmp_path: Path, *, dated: bool) -> None:
    verdict = judged(tmp_path, text=log(LASTED_S, dated=dated))

    assert verdict.code == "G1"
    assert "still going" in verdict.headline
    assert verdict.confidence < 0.8
    assert any("no record tells its state" in one for one in verdict.cannot_decide)


@pytest.mark.parametrize("dated", [True, False])
@pytest.mark.parametrize(("log_s", "measured_s"), [(3000, LASTED_S), (LASTED_S, 3000)],
                         ids=["the log ends before", "the metrics end before"])  # fmt: skip
def test_where_one_ends_before_the_other(
    tmp_path: Path, log_s: int, measured_s: int, *, dated: bool
) -> None:
    """What became of the run since only the other one could tell."""
    assert judged(tmp_path, text=log(log_s, dated=dated), measured_s=measured_s).code != "G1"


@pytest.mark.parametrize(("measured_s", "code"), [(LASTED_S, "G1"), (LASTED_S + 900, None)])
def test_where_what_was_asked_for_ends_before_what_is_known(
    tmp_path: Path, measured_s: int, code: str | None
) -> None:
    """A server is asked for no more than the time up to a log's last line."""
    end = BEGAN + timedelta(seconds=LASTED_S)
    assert judged(tmp_path, measured_s=measured_s, end=end).code == code


@pytest.mark.parametrize(
    "odd",
    [dict.fromkeys(range(8), 280.0), {5: 95.0}, dict.fromkeys(range(8), 90.0)],
    ids=["all wait", "one is idle", "all are idle"],
)
def test_where_gpus_do_not_work_to_the_end(tmp_path: Path, odd: dict[int, float]) -> None:
    """The last step is hardly older than another has been."""
    assert judged(tmp_path, text=log(LASTED_S - 60), odd=odd).code != "G1"


@pytest.mark.parametrize(
    "row",
    [
        ("Normal", "Killing", "Stopping container main"),
        ("Warning", "BackOff", "Back-off restarting failed container main"),
        ("Normal", "Completed", "Job completed"),
        ("Warning", "Unhealthy", "Liveness probe failed"),
    ],
    ids=lambda row: row[1],
)
def test_where_an_event_tells_of_what_comes_later(
    tmp_path: Path, row: tuple[str, str, str]
) -> None:
    assert judged(tmp_path, told=events(row)).code != "G1"


def test_where_no_event_tells_that_it_started(tmp_path: Path) -> None:
    """A log and metrics that were cut where the log ends: the run may be long dead."""
    assert judged(tmp_path, told="").code is None


@pytest.mark.parametrize(
    ("note", "code"),
    [
        ("collected with grab.sh from n0, all clocks UTC, {:%FT%T}\nstarted by hand\n", "G1"),
        ("snapshot taken {:%F %T}Z\n", "G1"),
        ("Files taken {:%F %H:%M} UTC while it ran.\n", "G1"),
        ("job started {:%FT%T} by hand\n", None),
        ("collected with grab.sh, {:%FT%T}\n" + "and more\n" * 12, None),
    ],
    ids=["collected", "snapshot", "to the minute", "of something else", "no note"],
)
def test_where_a_note_says_when_it_was_collected(
    tmp_path: Path, note: str, code: str | None
) -> None:
    """Log, metrics and the GPUs' work all reach to the moment at which it was looked at."""
    (tmp_path / "about.txt").write_text(note.format(BEGAN + timedelta(seconds=LASTED_S + 10)))
    verdict = judged(tmp_path, told="")

    assert (verdict.code, verdict.confidence < 0.7) == (code, True)


def test_where_it_was_collected_later(tmp_path: Path) -> None:
    """The metrics were cut where the log ends: the run may be dead since."""
    at = BEGAN + timedelta(seconds=LASTED_S + 1800)
    (tmp_path / "about.txt").write_text(f"collected {at:%FT%T}\n")
    assert judged(tmp_path, told="").code is None


def test_where_the_log_ends_with_what_it_raised(tmp_path: Path) -> None:
    raised = (
        'Traceback (most recent call last):\n  File "/w/train.py", line 9, in <module>\n'
        "    main()\nKeyError: 'text'"
    )
    assert judged(tmp_path, text=log(LASTED_S, end=raised)).code != "G1"


QUEUED = (
    "{at:%a %b %d %H:%M:%S} UTC {at:%Y}\n"
    " JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n"
    " 3391 gpu llm iyer R 1:00:00 2 n[0-1]\n"
)


@pytest.mark.parametrize(
    ("log_s", "odd", "going"),
    [
        (LASTED_S - 130, {}, True),
        (LASTED_S - 300, {}, False),
        (LASTED_S - 130, dict.fromkeys(range(8), 280.0), False),
        (LASTED_S - 130, {5: 95.0}, False),
    ],
    ids=["copied before", "long before", "all wait", "one is idle"],
)
def test_a_log_that_was_copied_before_the_queue_was_asked(
    tmp_path: Path, log_s: int, odd: dict[int, float], *, going: bool
) -> None:
    """What the GPUs draw tells whether the run stood still when no more of its log is there."""
    queued = QUEUED.format(at=BEGAN + timedelta(seconds=LASTED_S))
    (tmp_path / "squeue.txt").write_text(queued)
    since_s = log_s - 60

    verdict = judged(tmp_path, told="", text=log(log_s), odd=odd, since_s=since_s)

    assert (verdict.code == "G1") is going
    assert not going or verdict.confidence < 0.8
