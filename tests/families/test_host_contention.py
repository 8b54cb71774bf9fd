"""D5 against hosts made up for one fact each."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from families.fleet import checked, facts_of, sample, stepping
from flatline.families.host_contention import judge
from flatline.judging.bursts import align, passed
from flatline.model import Attempt, Cleared, Finding, Judgement, Place
from flatline.tracks import Track

Running = Callable[[int, float], float]
FAST, SLOW = 2.0, 2.6


def track(slow: bool) -> Track:
    """An hour at one pace, or slower in its middle third."""
    return stepping(3600, lambda at: SLOW if slow and middle(at) else FAST)


def judged(tmp_path: Path, running: Running, sm: Running | None = None, slow: bool = True,
           hosts: int = 6, resident: Running | None = None,
           **more: object) -> Judgement:  # fmt: skip
    """Hosts read every 20 s for an hour, with some noise."""
    noise = random.Random(5)
    lines = []
    for host in range(hosts):
        for at in range(0, 3600, 20):
            label = f'instance="n{host}:9100"'
            queue = max(1.0, noise.gauss(running(host, at), 1.5))
            lines.append(sample("node_procs_running", label, queue, at))
            lines.append(sample("node_pressure_cpu_waiting_seconds_total", label, at * 0.01, at))
            if sm is not None:
                label = f'Hostname="n{host}",gpu="0"'
                lines.append(sample("DCGM_FI_PROF_SM_ACTIVE", label, sm(host, at), at))
            if resident is not None:
                for gpu in ("0", "1"):
                    label = f'Hostname="n{host}",gpu="{gpu}"'
                    active = resident(host, at)
                    lines.append(sample("DCGM_FI_PROF_GR_ENGINE_ACTIVE", label, active, at))
    facts, source = facts_of(tmp_path, lines, track(slow), **more)
    return checked(judge(facts), source)


def middle(at: float) -> bool:
    return 1200 < at < 2400


def test_a_host_that_is_crowded_in_the_slow_phase(tmp_path: Path) -> None:
    """Named, with the run queue of the others beside its own."""
    found = judged(tmp_path, lambda host, at: 60 if host == 2 and middle(at) else 14)

    assert isinstance(found, Finding)
    assert (found.culprits, found.role) == ((Place(host="n2"),), "cause")


@pytest.mark.parametrize(
    ("marks", "goes"),
    [
        ("." * 10 + "x" * 14 + "." * 9, True),
        ("." * 10 + "x" * 23, False),
        ("x" * 14 + "." * 19, False),
        ("." * 10 + "x" * 14 + "." * 7 + "x.", False),
        (".x.", False),
    ],
)
def test_a_slow_time_that_begins_and_ends_within_the_run(marks: str, goes: bool) -> None:
    """A queue that grows with a run's own time meets none; where both of its ends are met it is
    less often by chance than what it covers tells."""
    low = [mark == "x" for mark in marks]

    assert passed(low) == goes
    if goes:
        lit = {"n2": low, "n3": low, **{f"n{n}": [False] * len(low) for n in range(4, 16)}}
        assert align(lit, low) is None
        assert align(lit, low, rare=True) is not None


def test_a_host_that_is_crowded_at_other_times_slows_nothing(tmp_path: Path) -> None:
    """It was fast then."""
    assert judged(tmp_path, lambda host, at: 60 if host == 2 and at < 1000 else 14) is None


def test_a_host_that_is_always_crowded_is_a_warning(tmp_path: Path) -> None:
    """Until its GPUs pay for it."""
    found = judged(tmp_path, lambda host, at: 60 if host == 2 else 14, slow=False)

    assert isinstance(found, Finding)
    assert found.role == "warning"


def test_a_host_whose_gpus_pay_for_its_queue(tmp_path: Path) -> None:
    """SM activity below the other hosts'."""
    found = judged(tmp_path, lambda host, at: 60 if host == 2 else 14,
                   lambda host, at: 0.55 if host == 2 else 0.8, slow=False)  # fmt: skip

    assert isinstance(found, Finding)
    assert (found.role, found.culprits) == ("cause", (Place(host="n2"),))


@pytest.mark.parametrize(("late", "role"), [(2, "cause"), (4, "warning"), (None, "warning")])
def test_a_host_that_grew_crowded_before_its_gpus_had_gaps(
    tmp_path: Path, late: int | None, role: str
) -> None:
    """Its queue is long from early on, the run is slow in the middle alone; its own GPUs have gaps
    then, or another host's, or none have."""
    found = judged(
        tmp_path,
        lambda host, at: 60 if host == 2 and at > 300 else 14,
        resident=lambda host, at: 0.8 if host == late and middle(at) else 0.96,
    )

    assert isinstance(found, Finding)
    assert (found.role, found.culprits) == (role, (Place(host="n2"),))


def test_every_host_at_once_blames_none(tmp_path: Path) -> None:
    """The run's own past is the baseline."""
    found = judged(tmp_path, lambda host, at: 35 if middle(at) else 18)

    assert isinstance(found, Finding)
    assert (found.scope, found.culprits, found.attribution) == ("all", (), "job")


def test_hosts_alike_are_cleared(tmp_path: Path) -> None:
    """Run queue and pressure were measured on every host."""
    assert isinstance(judged(tmp_path, lambda host, at: 14, slow=False), Cleared)


def test_two_hosts_can_be_compared(tmp_path: Path) -> None:
    """One must stand far above the other."""
    found = judged(tmp_path, lambda host, at: 60 if host == 1 and middle(at) else 14, hosts=2)

    assert isinstance(found, Finding)
    assert found.culprits == (Place(host="n1"),)


def test_one_host_has_no_other_to_be_compared_with(tmp_path: Path) -> None:
    """Not measurable."""
    assert judged(tmp_path, lambda host, at: 14, hosts=1) is None


@pytest.mark.parametrize(
    ("grows", "waits", "slows", "named"),
    [(True, 0.5, True, True), (False, 0.5, True, False),
     (True, 0.5, False, False)],
)  # fmt: skip
def test_a_queue_that_grows_from_the_first_minute(
    tmp_path: Path, grows: bool, waits: float, slows: bool, named: bool
) -> None:
    """On every host, until tasks wait for a CPU: no level was ever left."""
    noise = random.Random(7)
    lines, waited = [], 0.0
    for at in range(0, 3600, 20):
        waited += 20 * waits * at / 3600
        for host in range(6):
            label = f'instance="n{host}:9100"'
            queue = noise.gauss(12 + (0.05 * at if grows else 0), 1.5)
            lines.append(sample("node_procs_running", label, queue, at))
            lines.append(sample("node_pressure_cpu_waiting_seconds_total", label, waited, at))
    pace = stepping(3600, lambda at: 5.0 * (1 + (0.07 * (at // 900) if slows else 0)))
    facts, source = facts_of(tmp_path, lines, pace)
    found = checked(judge(facts), source)
    assert isinstance(found, Finding) == named
    if isinstance(found, Finding):
        assert (found.culprits, found.attribution) == ((), "job")


@pytest.mark.parametrize(
    ("crowded", "waits", "falls", "named"),
    [
        pytest.param((2,), 0.6, "by-degrees", True, id="one"),
        pytest.param((2,), 0.05, "by-degrees", False, id="its-tasks-hardly-wait"),
        pytest.param((2,), 0.6, "once", False, id="the-pace-falls-once"),
        pytest.param((2,), 0.6, "rises", False, id="the-pace-rises"),
        pytest.param((), 0.6, "by-degrees", False, id="none"),
    ],
)
def test_a_queue_that_grows_on_one_host(
    tmp_path: Path, crowded: tuple[int, ...], waits: float, falls: str, named: bool
) -> None:
    """From an eighth of the run on, and the pace falls with it by degrees."""
    took = {
        "by-degrees": lambda at: 5.0 * (1 + 0.07 * (at // 720)),
        "once": lambda at: 5.0 * (1 + 0.28 * (at > 720)),
        "rises": lambda at: 5.0 * (1.28 - 0.07 * (at // 720)),
    }[falls]
    noise = random.Random(7)
    lines, waited = [], [0.0] * 6
    for at in range(0, 3600, 20):
        for host in range(6):
            grown = max(0.0, at - 450) / 3150 if host in crowded else 0.0
            waited[host] += 20 * max(0.01, waits * grown)
            label = f'instance="n{host}:9100"'
            queue = noise.gauss(12 + 150 * grown, 1.5)
            lines.append(sample("node_procs_running", label, queue, at))
            lines.append(sample("node_pressure_cpu_waiting_seconds_total", label, waited[host],
                                at))  # fmt: skip
    facts, source = facts_of(tmp_path, lines, stepping(3600, took))
    found = checked(judge(facts), source)
    causes = [found] if isinstance(found, Finding) and found.role == "cause" else []

    assert [one.culprits for one in causes] == ([(Place(host="n2"),)] if named else [])
    assert all(one.most < 0.8 for one in causes)


@pytest.mark.parametrize(
    ("crowded", "slow", "named"),
    [
        pytest.param(lambda at: at > 400, lambda at: at > 400, True, id="from-early-on"),
        pytest.param(lambda at: at > 400, lambda at: False, False, id="at-no-cost"),
        pytest.param(lambda at: at > 400, lambda at: at > 2000, False, id="slower-later"),
        pytest.param(lambda at: at % 600 < 80, lambda at: at % 600 < 80, False, id="saves"),
    ],
)
def test_pressure_that_lasts_is_asked_at_its_moments(
    tmp_path: Path, crowded: Callable[[float], bool], slow: Callable[[float], bool], named: bool
) -> None:
    """Nearly all of the run may meet nearly all of it by chance: its onset does not."""
    noise = random.Random(3)
    lines = []
    for at in range(0, 3600, 20):
        for host in range(6):
            label = f'instance="n{host}:9100"'
            queue = noise.gauss(60 if host == 2 and crowded(at) else 14, 1.5)
            lines.append(sample("node_procs_running", label, queue, at))
    pace = stepping(3600, lambda at: (2.2 if slow(at) else 2.0) * noise.lognormvariate(0, 0.01))
    facts, source = facts_of(tmp_path, lines, pace)
    found = checked(judge(facts), source)
    causes = [found] if isinstance(found, Finding) and found.role == "cause" else []

    assert [one.culprits for one in causes] == ([(Place(host="n2"),)] if named else [])
    assert all(one.most < 0.8 for one in causes)


ALL = (Attempt(0, "completed", hosts=tuple(f"n{host}" for host in range(6))),)


def test_a_host_whose_gpus_alone_have_gaps_all_along(tmp_path: Path) -> None:
    """They are given their work late by its crowded CPUs."""
    found = judged(tmp_path, lambda host, at: 60 if host == 2 else 14, slow=False,
                   resident=lambda host, at: 0.7 if host == 2 else 0.98, attempts=ALL)  # fmt: skip

    assert isinstance(found, Finding)
    assert (found.role, found.culprits) == ("cause", (Place(host="n2"),))


def test_gaps_on_another_host_than_the_crowded_one(tmp_path: Path) -> None:
    """Whatever leaves them, it is not its queue."""
    found = judged(tmp_path, lambda host, at: 60 if host == 2 else 14, slow=False,
                   resident=lambda host, at: 0.7 if host == 3 else 0.98, attempts=ALL)  # fmt: skip

    assert isinstance(found, Finding)
    assert found.role == "warning"


def test_a_crowded_host_whose_gpus_do_nothing_is_anothers(tmp_path: Path) -> None:
    """It has no part in the run: at most a warning."""
    found = judged(tmp_path, lambda host, at: 170 if host == 2 else 14,
                   lambda host, at: 0.0 if host == 2 else 0.82, slow=False)  # fmt: skip

    assert isinstance(found, Finding)
    assert found.role == "warning"


def test_hosts_whose_gpus_all_do_nothing(tmp_path: Path) -> None:
    """Nothing is divided by what nobody does."""
    found = judged(tmp_path, lambda host, at: 60 if host == 2 else 14,
                   lambda host, at: 0.0, slow=False)  # fmt: skip

    assert isinstance(found, Finding)
    assert found.role == "warning"
