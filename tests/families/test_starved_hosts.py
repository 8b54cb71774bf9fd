"""D5 by tasks that wait for a CPU, or for storage as the run's own loaders read."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from families.fleet import T0, checked, facts_of, sample
from flatline.families.host_contention import judge
from flatline.model import NOWHERE, Attempt, Finding, Place, Progress
from flatline.tracks import Track

LONG_S, FELL_S = 3600, 1500
HOSTS = ("n0", "n1", "n2", "n3")
CPU = "node_pressure_cpu_waiting_seconds_total"
STORAGE = "node_pressure_io_waiting_seconds_total"
When = Callable[[float], bool]


def never(at: float) -> bool:
    return False


def falls(at: float) -> bool:
    """Once, and for the rest of the hour."""
    return at > FELL_S


def twice(at: float) -> bool:
    return 900 < at < 1300 or 2200 < at < 2700


def stepping(slow: When, waited: When | None = None) -> Track:
    """An hour of steps of two seconds, or of 2.6; `waited` for their data by as much longer."""
    track, noise = Track("job.log", NOWHERE, None, "plain"), random.Random(11)
    at, step = 0.0, 0
    while at < LONG_S:
        took = (2.6 if slow(at) else 2.0) * noise.lognormvariate(0, 0.01)
        data = None if waited is None else 0.7 if waited(at) else 0.1
        at, step = at + took, step + 1
        made = Progress("train", step=step, loss=2.0, step_s=took, data_s=data)
        track.add(made, step, datetime.fromtimestamp(T0 + at, UTC), 0)
    return track


def judged(
    folder: Path,
    track: Track,
    metric: str,
    waits: Callable[[str, float], float],
    known: tuple[str, ...] = HOSTS,
) -> Finding | None:
    """Hosts whose queues are alike, and the part of the time for which tasks of each wait; the
    run is `known` to hold some."""
    noise, lines = random.Random(5), []
    for name in HOSTS:
        waited, label = 0.0, f'instance="{name}:9100"'
        for at in range(0, LONG_S, 20):
            waited += 20 * min(1.0, waits(name, at) * noise.lognormvariate(0, 0.05))
            lines.append(sample("node_procs_running", label, max(1.0, noise.gauss(14, 1.5)), at))
            lines.append(sample(metric, label, waited, at))
    attempts = (Attempt(0, "completed", hosts=known),)
    facts, source = facts_of(folder, lines, track, attempts=attempts)
    found = checked(judge(facts), source)
    return found if isinstance(found, Finding) else None


@pytest.mark.parametrize(
    ("part", "before", "named"),
    [(0.77, never, True), (0.3, never, False), (0.77, lambda at: at % 500 < 250, False),
     (0.77, lambda at: at < FELL_S - 300, False)],
    ids=["most of the time", "a third of it", "half of the fast time too", "nearly all along"],
)  # fmt: skip
def test_a_host_whose_tasks_wait_most_of_the_time_to_the_end(
    tmp_path: Path, part: float, before: When, named: bool
) -> None:
    """From some minutes after the pace fell: one fall may be chance, so that it is not sure."""

    def waits(host: str, at: float) -> float:
        pressed = host == "n2" and (at > FELL_S + 450 or (before(at) and not falls(at)))
        return part if pressed else 0.02

    found = judged(tmp_path, stepping(falls), CPU, waits)
    causes = [found] if found is not None and found.role == "cause" else []

    assert [one.culprits for one in causes] == ([(Place(host="n2"),)] if named else [])
    assert all(one.fault_class == "cpu-pressure" and one.most < 0.8 for one in causes)


OWN = ("n1", "n2")


@pytest.mark.parametrize(
    ("metric", "known", "waited", "role", "sure"),
    [
        pytest.param(STORAGE, OWN, twice, "warning", True, id="all-of-the-run"),
        pytest.param(STORAGE, (), twice, "warning", True, id="of-a-run-on-hosts-unknown"),
        pytest.param(STORAGE, HOSTS, twice, "cause", True, id="half-of-the-run"),
        pytest.param(STORAGE, OWN, never, "cause", True, id="waits-that-do-not-grow"),
        pytest.param(STORAGE, OWN, None, "cause", False, id="waits-not-told"),
        pytest.param(CPU, OWN, twice, "cause", True, id="for-a-cpu"),
    ],
)
def test_hosts_that_wait_for_what_their_own_loaders_read(
    tmp_path: Path, metric: str, known: tuple[str, ...], waited: When | None, role: str, sure: bool
) -> None:
    """What the steps lost is what they wait more for their data: the storage is slow for it."""
    found = judged(
        tmp_path,
        stepping(twice, waited),
        metric,
        lambda host, at: 0.6 if host in OWN and twice(at) else 0.02,
        known,
    )

    assert found is not None
    assert (found.role, found.most >= 0.8) == (role, sure)
    assert bool(found.implies) == (role == "cause")
    assert found.culprits == (Place(host="n1"), Place(host="n2"))
