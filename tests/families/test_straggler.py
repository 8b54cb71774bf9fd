"""D3 by SM activity: the rank the others wait for, never the ones that wait."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from families.fleet import T0, checked, facts_of, sample, stepping
from flatline.families.straggler import judge
from flatline.model import NOWHERE, Attempt, Finding, Judgement, Place, Progress
from flatline.tracks import Track

Share = Callable[[int, float], float]


def middle(at: float) -> bool:
    return 1200 < at < 2400


def judged(tmp_path: Path, share: Share, metric: str = "DCGM_FI_PROF_SM_ACTIVE",
           slow: bool = True) -> Judgement:  # fmt: skip
    """Two hosts of eight GPUs, read every 30 s for an hour."""
    noise = random.Random(7)
    lines = [
        sample(metric, f'Hostname="n{gpu // 8}",gpu="{gpu % 8}"',
               share(gpu, at) * noise.gauss(1, 0.01), at)
        for gpu in range(16) for at in range(0, 3600, 30)
    ]  # fmt: skip
    track = stepping(3600, lambda at: 2.6 if slow and middle(at) else 2.0)
    facts, source = facts_of(tmp_path, lines, track)
    return checked(judge(facts), source)


def late(gpu: int, at: float) -> float:
    if not middle(at):
        return 0.8
    return 0.9 if gpu == 9 else 0.62


def test_the_one_that_works_while_the_others_wait(tmp_path: Path) -> None:
    """Above its peers in the slow phase, as active as they before it."""
    found = judged(tmp_path, late)

    assert isinstance(found, Finding)
    assert (found.culprits, found.fault_class) == ((Place(host="n1", gpu="1"),), "slow-device")


@pytest.mark.parametrize(("cards", "named"), [((2, 10), False), ((2, 6, 10, 14), False),
                                             ((2, 11), True)])  # fmt: skip
def test_the_same_cards_of_several_hosts(
    tmp_path: Path, cards: tuple[int, ...], named: bool
) -> None:
    """Parts of a model lie so, as experts that have more to do; faults do not."""
    found = judged(tmp_path, lambda gpu, at: 0.8 if not middle(at) else (
        0.9 if gpu in cards else 0.62))  # fmt: skip

    assert isinstance(found, Finding) is named


def test_the_one_that_is_fed_late(tmp_path: Path) -> None:
    """Below its peers: its host is slow, not its device."""
    found = judged(tmp_path, lambda gpu, at: 0.45 if gpu == 9 and middle(at) else 0.8)

    assert isinstance(found, Finding)
    assert found.fault_class == "slow-host"


@pytest.mark.parametrize("loads", [True, False])
def test_a_slow_host_whose_load_nobody_measured(tmp_path: Path, loads: bool) -> None:
    """Other processes may hold it: that is another family, which only its load tells."""
    noise = random.Random(3)
    lines = [
        sample("DCGM_FI_PROF_SM_ACTIVE", f'Hostname="n{gpu // 8}",gpu="{gpu % 8}"',
               (0.45 if gpu // 8 == 1 and middle(at) else 0.8) * noise.gauss(1, 0.01), at)
        for gpu in range(24) for at in range(0, 3600, 30)
    ] + [
        sample("node_procs_running", f'instance="n{host}:9100"', 9 + noise.random(), at)
        for host in range(3) for at in range(0, 3600, 30) if loads
    ]  # fmt: skip
    facts, source = facts_of(
        tmp_path, lines, stepping(3600, lambda at: 2.6 if middle(at) else 2.0)
    )
    found = checked(judge(facts), source)

    assert isinstance(found, Finding)
    assert (found.culprits, found.fault_class) == ((Place(host="n1"),), "slow-host")
    assert (found.most >= 0.8) == loads
    assert any("D5" in said for said in found.cannot_decide) != loads


def test_all_of_a_host_are_named_as_the_host(tmp_path: Path) -> None:
    """Four GPUs of sixteen at most: a host of eight is half the run, and no rank."""
    found = judged(tmp_path, lambda gpu, at: 0.45 if gpu >= 8 and middle(at) else 0.8)

    assert found is None


def test_a_stage_with_more_to_do_slows_nothing(tmp_path: Path) -> None:
    """Apart in the fast phases as well."""
    assert judged(tmp_path, lambda gpu, at: 0.9 if gpu == 9 else 0.6) is None


def test_a_steady_run_has_no_straggler_to_show(tmp_path: Path) -> None:
    """Without a slow phase nothing says what a difference costs."""
    assert judged(tmp_path, late, slow=False) is None


def test_the_coarse_utilisation_names_nobody(tmp_path: Path) -> None:
    """It counts waiting as work."""
    assert judged(tmp_path, lambda gpu, at: 100 * late(gpu, at), "DCGM_FI_DEV_GPU_UTIL") is None


def fleet_of_40(
    tmp_path: Path,
    share: Share,
    metric: str = "DCGM_FI_PROF_SM_ACTIVE",
    hosts: int = 5,
    models: Sequence[str] = ("H100",) * 5,
    cpus: Sequence[float] = (),
    sms: Share | None = None,
) -> Judgement:
    """Five hosts of eight GPUs and a steady pace; of so many is known that they are the run's."""
    noise = random.Random(8)
    lines = [
        sample(metric, f'Hostname="n{gpu // 8}",gpu="{gpu % 8}",modelName="{models[gpu // 8]}"',
               share(gpu, at) * noise.gauss(1, 0.004), at)
        for gpu in range(40) for at in range(0, 3600, 60)
    ] + [
        sample("DCGM_FI_PROF_SM_ACTIVE",
               f'Hostname="n{gpu // 8}",gpu="{gpu % 8}",modelName="{models[gpu // 8]}"',
               sms(gpu, at), at)
        for gpu in range(40 if sms else 0) for at in range(0, 3600, 60) if sms
    ] + [
        sample("node_cpu_scaling_frequency_hertz", f'instance="n{n}:9100",cpu="{cpu}"',
               ghz * 1e9 * noise.gauss(1, 0.02), at)
        for n, ghz in enumerate(cpus) for cpu in range(2) for at in range(0, 3600, 60)
    ]  # fmt: skip
    attempts = (Attempt(0, "unknown", hosts=tuple(f"n{n}" for n in range(hosts))),)
    track = stepping(3600, lambda at: 2.0)
    facts, source = facts_of(tmp_path, lines, track, attempts=attempts)
    return checked(judge(facts), source)


def test_one_of_many_that_always_works_longer(tmp_path: Path) -> None:
    """Alone among forty: no part of a model stands on one."""
    found = fleet_of_40(tmp_path, lambda gpu, at: 0.66 if gpu == 21 else 0.6)
    assert isinstance(found, Finding)
    assert found.culprits == (Place(host="n2", gpu="5"),)
    assert found.strength < 0.7


@pytest.mark.parametrize("longer", [(0,), (21, 22), (21, 22, 23, 24, 25, 26, 27, 28)])
def test_several_or_rank_0_may_have_more_to_do(tmp_path: Path, longer: tuple[int, ...]) -> None:
    """A part of the model, and what rank 0 logs and evaluates."""
    assert fleet_of_40(tmp_path, lambda gpu, at: 0.66 if gpu in longer else 0.6) is None


@pytest.mark.parametrize(
    ("low", "named"), [(range(16, 24), True), (range(16, 20), False), (range(16, 32), False)]
)
def test_one_host_of_many_whose_cards_always_have_gaps(
    tmp_path: Path, low: range, named: bool
) -> None:
    """All of one host's, and no other's: who waits in a collective has none."""
    found = fleet_of_40(
        tmp_path, lambda gpu, at: 0.72 if gpu in low else 0.94, "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    )
    assert isinstance(found, Finding) == named
    if isinstance(found, Finding):
        assert (found.culprits, found.fault_class) == ((Place(host="n2"),), "slow-host")


@pytest.mark.parametrize(
    ("busy", "cpus", "strength"),
    [
        (0.86, (3.0, 3.1, 1.9, 3.0, 3.05), 0.8),
        (0.86, (), None),
        (0.86, (3.0, 3.1, 3.0, 3.0, 3.05), None),
        (0.86, (3.0, 1.9, 3.0, 3.0, 3.05), None),
        (0.86, (3.0, 3.1, 1.9, 1.9, 3.05), None),
        (0.94, (3.0, 3.1, 1.9, 3.0, 3.05), None),
        (0.72, (3.0, 3.1, 3.0, 3.0, 3.05), 0.6),
    ],
)
def test_smaller_gaps_will_do_where_the_cpus_are_slow(
    tmp_path: Path, busy: float, cpus: tuple[float, ...], strength: float | None
) -> None:
    """Those of that host alone; slow CPUs that leave its cards no gaps slow nothing."""
    low: Share = lambda gpu, at: busy if 16 <= gpu < 24 else 0.94  # noqa: E731
    found = fleet_of_40(tmp_path, low, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", cpus=cpus)
    assert (found.strength if isinstance(found, Finding) else None) == strength
    if isinstance(found, Finding):
        assert found.culprits == (Place(host="n2"),)


@pytest.mark.parametrize(
    ("busy", "works", "cpus", "strength"),
    [
        (0.93, 0.69, (), 0.6),
        (0.93, 0.65, (), None),
        (0.93, 0.69, (3.0, 3.1, 1.9, 3.0, 3.05), 0.8),
        (0.93, 0.65, (3.0, 3.1, 1.9, 3.0, 3.05), None),
        (0.957, 0.69, (3.0, 3.1, 1.9, 3.0, 3.05), 0.7),
    ],
)
def test_a_host_that_has_less_to_do_is_not_late(
    tmp_path: Path, busy: float, works: float, cpus: tuple[float, ...], strength: float | None
) -> None:
    """A host that is given its work late does as much of it as the others."""
    low: Share = lambda gpu, at: busy if 16 <= gpu < 24 else 0.996  # noqa: E731
    sms: Share = lambda gpu, at: works if 16 <= gpu < 24 else 0.7  # noqa: E731
    found = fleet_of_40(tmp_path, low, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", cpus=cpus, sms=sms)
    assert (found.strength if isinstance(found, Finding) else None) == strength


@pytest.mark.parametrize("left", [True, False])
def test_a_gpu_that_does_nothing_for_the_run_is_another_jobs(tmp_path: Path, left: bool) -> None:
    """On a shared node, whose other job ends or begins as the pace falls."""
    busy = 95.0

    def share(gpu: int, at: float) -> float:
        return busy if gpu != 9 or middle(at) != left else 1.0

    assert judged(tmp_path, share, "DCGM_FI_DEV_GPU_UTIL") is None
    sms: Share = lambda gpu, at: late(gpu, at) if gpu != 9 or middle(at) else 0.01  # noqa: E731
    assert judged(tmp_path, sms) is None


def test_a_host_kept_as_a_spare_slows_nothing(tmp_path: Path) -> None:
    """It is the run's, and is given nothing to do."""
    idle: Share = lambda gpu, at: 0.001 if gpu >= 32 else 0.94  # noqa: E731

    assert fleet_of_40(tmp_path, idle, "DCGM_FI_PROF_GR_ENGINE_ACTIVE") is None


def test_cards_of_another_model_may_always_have_gaps(tmp_path: Path) -> None:
    """They are done sooner, or wait for another part of the work."""
    low = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    share: Share = lambda gpu, at: 0.72 if gpu in range(16, 24) else 0.94  # noqa: E731
    mixed = ["H100"] * 2 + ["A100"] + ["H100"] * 2

    assert isinstance(fleet_of_40(tmp_path, share, low, models=["H100"] * 5), Finding)
    assert fleet_of_40(tmp_path, share, low, models=mixed) is None


def test_one_host_of_three_may_be_the_slow_one(tmp_path: Path) -> None:
    """Of two nothing tells which."""
    noise = random.Random(9)
    lines = [
        sample("DCGM_FI_PROF_GR_ENGINE_ACTIVE", f'Hostname="n{gpu // 8}",gpu="{gpu % 8}"',
               (0.4 if gpu < 8 and middle(at) else 0.95) * noise.gauss(1, 0.005), at)
        for gpu in range(24) for at in range(0, 3600, 30)
    ]  # fmt: skip
    facts, source = facts_of(tmp_path, lines, stepping(3600, lambda at: 5.0 if middle(at) else 2))
    found = checked(judge(facts), source)
    assert isinstance(found, Finding)
    assert found.culprits == (Place(host="n0"),)


@pytest.mark.parametrize("hosts", [0, 4])
def test_a_host_that_may_be_another_jobs_slows_nothing(tmp_path: Path, hosts: int) -> None:
    """Where the run's hosts are not known, or are fewer than those read."""
    low = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    gaps = fleet_of_40(tmp_path, lambda gpu, at: 0.72 if gpu >= 32 else 0.94, low, hosts)
    assert gaps is None
    assert fleet_of_40(tmp_path, lambda gpu, at: 0.66 if gpu == 37 else 0.6, hosts=hosts) is None


def shift(
    tmp_path: Path, begins: float = 600, ends: float = 4200, upto: float = 4800, since: float = 0
) -> Judgement:
    """Forty cards whose hosts nothing names; the fifth host's have gaps, and begin, end, and are
    read, from and until then."""
    noise = random.Random(8)
    lines = []
    for gpu in range(40):
        low = gpu >= 32
        first, last = (begins, ends) if low else (600, 4200)
        for at in range(0, 4801, 30):
            if low and not since <= at <= upto:
                continue
            level = (0.72 if low else 0.95) * noise.gauss(1, 0.004) if first <= at <= last else 0.0
            label = f'Hostname="n{gpu // 8}",gpu="{gpu % 8}",modelName="H100"'
            lines.append(sample("DCGM_FI_PROF_GR_ENGINE_ACTIVE", label, level, at))
    track = Track("job.log", NOWHERE, None, "plain")
    for step in range(1, 1776):
        when = datetime.fromtimestamp(T0 + 630 + 2 * step, UTC)
        track.add(Progress("train", step=step, loss=2.0, step_s=2.0), step, when, 0)
    facts, source = facts_of(tmp_path, lines, track)
    return checked(judge(facts), source)


def test_cards_that_begin_and_end_with_the_run_are_its_own(tmp_path: Path) -> None:
    """Where no record and no log names its hosts."""
    found = shift(tmp_path)

    assert isinstance(found, Finding)
    assert found.culprits == (Place(host="n4"),)


@pytest.mark.parametrize(
    "other",
    [{"begins": 300}, {"ends": 4500}, {"ends": 3000}, {"upto": 4200}, {"since": 600}],
)
def test_cards_that_do_not_may_be_another_jobs(tmp_path: Path, other: dict[str, float]) -> None:
    """They began before, went on, stopped earlier; their exporter stopped, or began, with it."""
    assert shift(tmp_path, **other) is None


@pytest.mark.parametrize(
    ("low", "slower", "named"), [((2,), True, True), ((2,), False, False), ((2, 3), True, False)]
)
def test_cpus_clocked_down_in_mid_run(
    tmp_path: Path, low: tuple[int, ...], slower: bool, named: bool
) -> None:
    """The pace is asked at that moment: a few per cent lower, or not; two of five hosts are of
    another kind."""
    noise = random.Random(12)
    lines = [
        sample("node_cpu_scaling_frequency_hertz", f'instance="n{n}:9100",cpu="{cpu}"',
               (1.2e9 if n in low and at > 1800 else 3.4e9) * noise.gauss(1, 0.02), at)
        for n in range(5) for cpu in range(2) for at in range(0, 3600, 15)
    ]  # fmt: skip
    track = stepping(
        3600, lambda at: (5.15 if slower and at > 1800 else 5) * noise.gauss(1, 0.004)
    )
    facts, source = facts_of(tmp_path, lines, track)
    found = checked(judge(facts), source)
    assert isinstance(found, Finding) == named
    if isinstance(found, Finding):
        assert (found.culprits, found.fault_class) == ((Place(host="n2"),), "slow-host")
        assert found.most < 0.8
