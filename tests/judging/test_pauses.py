"""Runs that stand still and go on: which lines of a kernel explain it, and which do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGIN = datetime(2026, 3, 4, 8, tzinfo=UTC)
HEAD = "JobID|JobName|State|ExitCode|NNodes|NodeList|Submit|Start|End|Elapsed|Timelimit"
SILENT = "nfs: server nas02 not responding, still trying"
BACK = "nfs: server nas02 OK"
HUNG = "INFO: task python3:30911 blocked for more than 120 seconds."
Line = tuple[float, str, str]
"""Seconds after the beginning, host, text."""


def stamp(at: float) -> str:
    return f"{BEGIN + timedelta(seconds=at):%Y-%m-%dT%H:%M:%S}"


def kept(
    folder: Path, log: Sequence[str], kernel: Sequence[Line], state: str, ends: float
) -> None:
    """A job log, its record, and one kernel log a host."""
    (folder / "train.log").write_text("\n".join(log) + "\n")
    row = f"77|train|{state}|0:0|2|gpu[1-2]|{stamp(0)}|{stamp(0)}|{stamp(ends)}|01:00:00|09:00:00"
    (folder / "sacct.txt").write_text(f"{HEAD}\n{row}\n")
    for host in {host for _, host, _ in kernel}:
        lines = [f"{stamp(at)}.000000+00:00 {host} kernel: {text}"
                 for at, own, text in kernel if own == host]  # fmt: skip
        (folder / f"kern-{host}.log").write_text("\n".join(lines) + "\n")


def run(
    folder: Path, stands: dict[int, float], kernel: Sequence[Line], *, state: str = "COMPLETED",
    note: dict[int, str] | None = None,
) -> Verdict:  # fmt: skip
    """600 steps of 2 s, a line every fifth; after these it stands still for so many seconds."""
    at, log = 0.0, []
    for step in range(1, 601):
        at += 2.0 + 0.01 * (step * 7 % 5)
        if step % 5 == 0:
            log.append(f"{stamp(at)} step {step}/600 loss {2 + 40 / step:.4f} step_time 2.01 s")
        at += stands.get(step, 0.0)
        if note and step in note:
            log.append(f"{stamp(at)} {note[step]}")
    if state == "FAILED":
        log += ["Traceback (most recent call last):", '  File "train.py", line 9, in <module>',
                "ValueError: bad batch"]  # fmt: skip
    kept(folder, log, kernel, state, at + 20)
    return diagnose(collect(Request((str(folder),))))


PAUSE = {300: 600.0}
"""From 604 s to 1204 s of 1800."""


@pytest.mark.parametrize(
    ("kernel", "code"),
    [
        pytest.param([(670, "gpu1", SILENT), (1200, "gpu1", BACK)], "C6", id="within"),
        pytest.param([(670, "gpu1", SILENT)], "C6", id="no-word-of-its-end"),
        pytest.param([(300, "gpu1", SILENT), (330, "gpu1", BACK)], "G1", id="before"),
        pytest.param([(1500, "gpu1", SILENT), (1503, "gpu1", BACK)], "G1", id="after"),
        pytest.param([(670, "gpu1", SILENT), (672, "gpu1", BACK)], "G1", id="a-moment-of-it"),
        pytest.param([(670, "gpu9", SILENT), (1200, "gpu9", BACK)], "G1", id="another-host"),
        pytest.param([(670 - 90_000, "gpu1", SILENT)], "G1", id="another-day"),
    ],
)
def test_a_line_in_a_pause_explains_it(tmp_path: Path, kernel: list[Line], code: str) -> None:
    """Where it is of one of the run's hosts, and covers the most of it."""
    verdict = run(tmp_path, PAUSE, kernel)

    assert verdict.code == code
    if code == "G1":
        assert verdict.confidence < 0.8, "a third of its time is not explained"


def test_what_it_cost_and_where_is_told(tmp_path: Path) -> None:
    """Two hosts wait for one server: the server is shared, nobody is blamed."""
    lines = [(670, "gpu1", SILENT), (671, "gpu2", SILENT), (1200, "gpu1", BACK),
             (1201, "gpu2", BACK)]  # fmt: skip
    verdict = run(tmp_path, PAUSE, lines, note={300: "Saved checkpoint to /nas/step_300"})

    assert (verdict.code, verdict.scope, verdict.domain) == ("C6", "shared", "nas02")
    assert (verdict.culprits, verdict.severity, verdict.onset_step) == ((), "degraded", 300)
    assert verdict.onset == BEGIN + timedelta(seconds=606)
    assert "stood still for 10 min" in verdict.headline
    assert any("Saved checkpoint" in str(cite) for cite in verdict.shows[1].cites)


@pytest.mark.parametrize(
    ("stands", "state", "code"),
    [
        ({300: 100.0}, "COMPLETED", "G1"),
        ({300: 100.0}, "RUNNING", "C6"),
        ({300: 100.0, 450: 100.0}, "COMPLETED", "C6"),
        ({300: 200.0}, "COMPLETED", "C6"),
    ],
    ids=["once", "of a run that goes on", "twice", "longer"],
)
def test_a_short_wait_of_a_run_that_is_done(
    tmp_path: Path, stands: dict[int, float], state: str, code: str
) -> None:
    """It is told of, and is no fault of it."""
    begun = [606.0, 606.0 + 303 + stands[300]][: len(stands)]
    lines: list[Line] = []
    for at, lasted in zip(begun, stands.values(), strict=True):
        lines += [(at + 5, "gpu1", SILENT), (at + lasted - 2, "gpu1", BACK)]

    verdict = run(tmp_path, stands, lines, state=state)

    assert verdict.code == code
    assert "C6" in {one.finding.code for one in verdict.findings}


def test_a_hung_task_alone_is_not_told_with_confidence(tmp_path: Path) -> None:
    """It names neither server nor disk: a driver may hold it."""
    verdict = run(tmp_path, PAUSE, [(790, "gpu2", HUNG)])

    assert verdict.code == "C6"
    assert verdict.confidence < 0.8
    assert [place.host for place in verdict.culprits] == ["gpu2"]


def test_a_pause_like_the_others_is_explained_by_nothing(tmp_path: Path) -> None:
    """An evaluation every hundred steps; a server is silent within one of them."""
    evaluations = dict.fromkeys(range(100, 600, 100), 80.0)
    verdict = run(tmp_path, evaluations, [(790, "gpu1", SILENT)])

    assert verdict.code == "G1"


def test_steps_that_are_compiled_are_no_pause(tmp_path: Path) -> None:
    """The first line comes late; a server that was silent then is not blamed."""
    verdict = run(tmp_path, {2: 500.0, 7: 200.0}, [(300, "gpu1", SILENT)])

    assert verdict.code == "G1"


def test_a_run_that_fails_is_told_by_others(tmp_path: Path) -> None:
    """It stood still, went on, and raised."""
    verdict = run(tmp_path, PAUSE, [(670, "gpu1", SILENT), (1200, "gpu1", BACK)], state="FAILED")

    assert verdict.code == "A3"


@pytest.mark.parametrize(("every", "code"), [(20, "C6"), (0, "G1")])
def test_steps_of_an_undated_bar_are_laid_beside_the_kernel(
    tmp_path: Path, every: int, code: str
) -> None:
    """A disk times out again and again; the bar says how long each step took, and no more."""
    begins, took, log, kernel = 95.0, 0.0, [], []
    for step in range(1, 401):
        own = 3.0 + 0.02 * (step * 7 % 5)
        if step % 20 == 0 and step > 40 and every:
            kernel.append(
                (begins + took + 30, "gpu2", "nvme nvme0: I/O 6 QID 1 timeout, aborting")
            )
            own += 31 + step % 3
        took += own
        minutes = f"{int(took) // 60:02d}:{int(took) % 60:02d}"
        log.append(f" 10%|#         | {step}/400 [{minutes}<10:00, {own:5.2f}s/it]")
        log.append(f"{{'loss': {2 + 40 / step:.4f}, 'learning_rate': 1e-05, 'epoch': 0.1}}")
    kernel = kernel or [(600, "gpu2", "nvme nvme0: I/O 6 QID 1 timeout, aborting")]
    kept(tmp_path, log, kernel, "COMPLETED", begins + took + 9)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    assert [place.host for place in verdict.culprits] == (["gpu2"] if every else [])


def test_undated_pauses_that_nothing_explains_leave_doubt(tmp_path: Path) -> None:
    """A sixth of the time of a sound run went into them."""
    log = []
    for step in range(1, 401):
        own = 30.0 if step % 40 == 0 else 3.0 + 0.02 * (step * 7 % 5)
        log.append(f" 10%|#         | {step}/400 [01:00<10:00, {own:5.2f}s/it]")
        log.append(f"{{'loss': {2 + 40 / step:.4f}, 'learning_rate': 1e-05, 'epoch': 0.1}}")
    kept(tmp_path, log, [], "COMPLETED", 1500)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.confidence) == ("G1", 0.79)
    assert any("that no line explains" in shown.text for shown in verdict.shows)


def measured(folder: Path, name: str, value: Callable[[str, float], float], ends: float) -> None:
    """One gauge of both hosts, and of a GPU of each, every half minute."""
    gpu = ',gpu="0"' if name.startswith("DCGM") else ""
    label = "Hostname" if gpu else "instance"
    lines = [f"# TYPE {name} gauge"]
    for host in ("gpu1", "gpu2"):
        lines += [
            f'{name}{{{label}="{host}"{gpu}}} {value(host, at):.4g}'
            f" {int((BEGIN.timestamp() + at) * 1000)}"
            for at in range(0, int(ends), 30)
        ]
    (folder / f"{name}.prom").write_text("\n".join(lines) + "\n")


def silent(
    folder: Path,
    watts: float,
    asleep: float,
    *spans: tuple[float, float],
) -> Verdict:
    """Of a run whose steps carry no times, with what GPUs draw and how many tasks sleep within
    these spans, in which a server is silent."""
    log = [f"Training epoch 0, iteration {n}/299 | lr: 3.000e-04 | global_step: {n} |"
           f" reduced_train_loss: {2 + 8 * 0.98**n:.4g} | train_step_timing in s: {10 + n % 3:.4g}"
           for n in range(300)]  # fmt: skip
    kernel = [
        (at, host, text)
        for host in ("gpu1", "gpu2")
        for begins, ends in spans
        for at, text in ((begins, SILENT), (ends, BACK))
    ]
    kept(folder, log, kernel, "COMPLETED", 4400)

    def within(at: float) -> bool:
        return any(begins - 50 < at < ends for begins, ends in spans)

    measured(folder, "DCGM_FI_DEV_POWER_USAGE", lambda _, at: watts if within(at) else 590, 4400)
    measured(folder, "node_procs_blocked", lambda _, at: asleep if within(at) else 0, 4400)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("watts", "asleep", "code"), [(190, 9, "C6"), (590, 9, "G1"), (190, 0, "G1")]
)
def test_a_silence_that_no_step_shows_is_seen_on_the_gpus(
    tmp_path: Path, watts: float, asleep: float, code: str
) -> None:
    """The power falls and tasks sleep while the server is silent, or not both."""
    verdict = silent(tmp_path, watts, asleep, (2000, 2900))

    assert verdict.code == code
    if code == "C6":
        assert (verdict.domain, verdict.culprits) == ("nas02", ())
        assert "15 min" in verdict.headline
        assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    ("spans", "code"),
    [
        (((2000, 2300),), "G1"),
        (((2000, 2300), (3000, 3300)), "C6"),
        (((2000, 2900),), "C6"),
    ],
)
def test_one_short_silence_of_a_run_that_is_done_is_a_warning(
    tmp_path: Path, spans: tuple[tuple[float, float], ...], code: str
) -> None:
    """Nothing of it is left to mend; of two, or of a long one, there is."""
    verdict = silent(tmp_path, 190, 9, *spans)

    assert verdict.code == code
    warned = [f.finding.code for f in verdict.findings if f.finding.role == "warning"]
    assert warned == (["C6"] if code == "G1" else [])
