"""The one GPU that works longer than all others in every step, where no record names the hosts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from families.fleet import checked, facts_of, findings, sample, stepping
from flatline.facts import Facts
from flatline.families.straggler import judge
from flatline.judging.lone_worker import lone_card, lone_worker, lone_workers
from flatline.judging.throughput import course
from flatline.model import Attempt, Place
from flatline.sources.metrics import MetricsSource

ENDS = 3600
Level = Callable[[int, int, float], float]
"""(host, GPU, seconds since the run began) -> SM activity."""


def told(tmp_path: Path, level: Level, hosts: int = 5) -> Place | None:
    """Hosts of eight GPUs, measured from ten minutes before the run to ten after it."""
    lines = [
        sample("DCGM_FI_PROF_SM_ACTIVE", f'gpu="{gpu}",Hostname="n{host}",modelName="H100"',
               level(host, gpu, at), at)
        for host in range(hosts)
        for gpu in range(8)
        for at in range(-600, ENDS + 600, 30)
    ]  # fmt: skip
    facts, _ = facts_of(tmp_path, lines, stepping(ENDS, lambda at: 6.0 + at % 7 / 100))
    run = course(facts)
    assert run is not None
    found = lone_worker(facts, run)
    return None if found is None else found.place


def working(host: int, gpu: int, at: float) -> float:
    if not 0 <= at <= ENDS:
        return 0.0
    return 0.72 if (host, gpu) == (2, 3) else 0.56


def test_beside_a_host_that_no_run_held(tmp_path: Path) -> None:
    """It idles throughout: it is not one of the run's."""
    found = told(tmp_path, lambda host, gpu, at: 0.0 if host == 4 else working(host, gpu, at))

    assert found == Place(host="n2", gpu="3")


@pytest.mark.parametrize(
    "other",
    [lambda at: 0.8, lambda at: 0.8 if at > 1200 else 0.0, lambda at: 0.8 if at < 1800 else 0.0],
    ids=["before and after", "begins later", "ends before"],
)
def test_beside_a_host_that_another_run_held(
    tmp_path: Path, other: Callable[[float], float]
) -> None:
    """Which of the hosts are this run's nothing says."""
    assert told(tmp_path, lambda host, gpu, at: other(at) if host == 4
                else working(host, gpu, at)) is None  # fmt: skip


def gaps(tmp_path: Path, resident: Level, sm: Level, slow: bool = False) -> Place | None:
    """The card that alone has gaps, on two hosts of eight GPUs that are the run's."""
    lines = [
        sample(metric, f'gpu="{gpu}",Hostname="n{host}",modelName="H100"',
               level(host, gpu, at), at)
        for metric, level in (("DCGM_FI_PROF_GR_ENGINE_ACTIVE", resident),
                              ("DCGM_FI_PROF_SM_ACTIVE", sm))
        for host in range(2)
        for gpu in range(8)
        for at in range(0, ENDS, 30)
    ]  # fmt: skip
    track = stepping(ENDS, lambda at: 8.0 if slow and at > 2000 else 6.0 + at % 7 / 100)
    tries = (Attempt(0, "completed", hosts=("n0", "n1")),)
    facts, _ = facts_of(tmp_path, lines, track, attempts=tries)
    run = course(facts)
    assert run is not None
    found = lone_card(facts, run)
    return None if found is None else found.place


def late(host: int, gpu: int, at: float) -> float:
    return 0.7 if (host, gpu) == (1, 3) else 0.97


def test_a_card_that_alone_has_gaps(tmp_path: Path) -> None:
    """The others wait for it in kernels."""
    assert gaps(tmp_path, late, lambda host, gpu, at: 0.5) == Place(host="n1", gpu="3")


@pytest.mark.parametrize(
    ("resident", "sm"),
    [
        (lambda h, g, at: 0.7 if (h, g) == (0, 0) else 0.97, lambda h, g, at: 0.5),
        (lambda h, g, at: 0.7 if g == 3 else 0.97, lambda h, g, at: 0.5),
        (lambda h, g, at: 0.7 if (h, g) == (1, 3) and at < 1800 else 0.97, lambda h, g, at: 0.5),
        (late, lambda h, g, at: 0.34 if (h, g) == (1, 3) else 0.5),
        (lambda h, g, at: 0.1 if (h, g) == (1, 3) else 0.97,
         lambda h, g, at: 0.03 if (h, g) == (1, 3) else 0.5),
        (lambda h, g, at: 0.6 if (h, g) == (1, 3) else 0.8, lambda h, g, at: 0.5),
    ],
    ids=["the head's own", "one on each host", "half of the time", "has less to do", "a spare",
         "all have gaps"],
)  # fmt: skip
def test_near_misses_of_a_card_with_gaps(tmp_path: Path, resident: Level, sm: Level) -> None:
    """What stands so by its part of the work, or for a time, holds nobody back."""
    assert gaps(tmp_path, resident, sm) is None


def test_gaps_that_were_there_before_the_pace_fell(tmp_path: Path) -> None:
    """They do not explain a fall."""
    assert gaps(tmp_path, late, lambda host, gpu, at: 0.5, slow=True) is None


SM, ENGINE = "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
Card = Callable[[int, int], float]
"""(host, GPU) -> times what the others work."""


def far(
    tmp_path: Path,
    card: Card,
    hosts: int = 5,
    cards: int = 8,
    signals: tuple[str, ...] = (SM,),
    lasting: Callable[[float], bool] = lambda at: True,
) -> Place | None:
    """The one card of the run's hosts, which work as ever but for it while it lasts."""
    return apart(tmp_path, card, tuple(f"n{n}" for n in range(hosts)), cards, signals, lasting)[0]


def apart(
    tmp_path: Path,
    card: Card,
    hosts: tuple[str, ...],
    cards: int = 8,
    signals: tuple[str, ...] = (SM,),
    lasting: Callable[[float], bool] = lambda at: True,
    slow: bool = False,
) -> tuple[Place | None, Place | None]:
    """The lone card and the lone host of the run's hosts, by cards that scatter."""
    facts, _ = measured(tmp_path, card, hosts, cards, signals, lasting, slow)
    run = course(facts)
    assert run is not None
    found, whole = lone_worker(facts, run), lone_workers(facts, run)
    return (None if found is None else found.place), (None if whole is None else whole.place)


def measured(
    tmp_path: Path,
    card: Card,
    hosts: tuple[str, ...],
    cards: int = 8,
    signals: tuple[str, ...] = (SM,),
    lasting: Callable[[float], bool] = lambda at: True,
    slow: bool = False,
) -> tuple[Facts, MetricsSource]:
    """A run on these hosts, in this order."""

    def level(host: str, gpu: int, at: float) -> float:
        usual = 0.5 + (at + 7 * gpu) % 9 / 1000
        return usual * card(int(host[1:]), gpu) if lasting(at) else usual

    lines = [
        sample(signal, f'gpu="{gpu}",Hostname="{host}",modelName="H100"',
               level(host, gpu, at), at)
        for signal in signals
        for host in sorted(hosts)
        for gpu in range(cards)
        for at in range(0, ENDS, 30)
    ]  # fmt: skip
    track = stepping(ENDS, lambda at: 8.0 if slow and at > 2000 else 6.0 + at % 7 / 100)
    return facts_of(tmp_path, lines, track, attempts=(Attempt(0, "completed", hosts=hosts),))


def one(host: int, gpu: int, times: float, *, beside: float = 1.0) -> Card:
    """That card, and another one on each host that is `beside` it."""

    def card(of: int, at: int) -> float:
        return times if (of, at) == (host, gpu) else beside if at == 5 else 1.0

    return card


LONE = Place(host="n2", gpu="3")


@pytest.mark.parametrize(
    ("times", "beside", "found"),
    [(1.47, 1.04, LONE), (1.47, 1.08, LONE), (1.47, 1.12, None), (1.08, 1.04, None),
     (1.08, 1.01, LONE)],
    ids=["little", "a sixth", "a quarter", "half", "an eighth"],
)  # fmt: skip
def test_what_scatters_beside_one_that_is_far_away(
    tmp_path: Path, times: float, beside: float, found: Place | None
) -> None:
    """As a part of how far the one is."""
    assert far(tmp_path, one(2, 3, times, beside=beside)) == found


@pytest.mark.parametrize("signals", [(ENGINE,), ("DCGM_FI_DEV_GPU_UTIL",)])
def test_by_whether_a_kernel_was_there(tmp_path: Path, signals: tuple[str, ...]) -> None:
    """Where the activity of SMs was not measured."""
    card = one(2, 3, 1.3)
    scale = 100.0 if "UTIL" in signals[0] else 1.0

    assert far(tmp_path, lambda h, g: scale * card(h, g), signals=signals) == LONE


def test_activity_of_the_sms_outweighs_that_of_the_engine(tmp_path: Path) -> None:
    """Waiting in a collective is a kernel as well."""
    lines = [
        sample(signal, f'gpu="{gpu}",Hostname="n{host}",modelName="H100"',
               0.65 if (signal, host, gpu) == (ENGINE, 2, 3) else 0.5 + at % 7 / 1000, at)
        for signal in (SM, ENGINE) for host in range(5) for gpu in range(8)
        for at in range(0, ENDS, 30)
    ]  # fmt: skip
    tries = (Attempt(0, "completed", hosts=tuple(f"n{n}" for n in range(5))),)
    facts, _ = facts_of(tmp_path, lines, stepping(ENDS, lambda at: 6.0), attempts=tries)
    run = course(facts)

    assert run is not None
    assert lone_worker(facts, run) is None


@pytest.mark.parametrize("times", [1.3, 1.08])
@pytest.mark.parametrize("where", [(0, 3), (1, 3), (1, 6), (0, 1)])
def test_one_of_few_that_is_far_above_all(
    tmp_path: Path, where: tuple[int, int], times: float
) -> None:
    """Sixteen cards on two hosts; or not so far, but the others are all alike."""
    found = far(tmp_path, one(*where, times), hosts=2)

    assert found == Place(host=f"n{where[0]}", gpu=str(where[1]))


@pytest.mark.parametrize(
    ("card", "hosts", "cards", "signals"),
    [
        (one(0, 0, 1.3), 2, 8, (SM,)),
        (one(0, 7, 1.3), 2, 8, (SM,)),
        (one(1, 0, 1.3), 2, 8, (SM,)),
        (one(1, 7, 1.3), 2, 8, (SM,)),
        (one(1, 3, 1.15), 2, 6, (SM,)),
        (one(1, 3, 1.15, beside=1.02), 2, 8, (SM,)),
        (one(1, 3, 1.04), 2, 8, (SM,)),
        (one(1, 7, 1.1), 2, 8, (SM,)),
        (one(1, 3, 1.3, beside=1.1), 2, 8, (SM,)),
        (one(1, 3, 1.3), 2, 8, (ENGINE,)),
        (one(0, 3, 1.3), 1, 16, (SM,)),
        (one(1, 1, 1.3), 2, 3, (SM,)),
    ],
    ids=["the first", "the last of the first host", "the first of the last host", "the last",
         "not far, of twelve", "not far, and others scatter", "hardly above", "the last, not far",
         "others scatter", "by the engine alone", "one host", "fewer than eight"],
)  # fmt: skip
def test_one_of_few_may_hold_a_part_of_its_own(
    tmp_path: Path, card: Card, hosts: int, cards: int, signals: tuple[str, ...]
) -> None:
    """The embedding or the output of a model; of many cards the same is told."""
    assert far(tmp_path, card, hosts, cards, signals) is None


def test_one_of_few_that_was_far_above_for_a_time(tmp_path: Path) -> None:
    """It must stand so nearly always."""
    card = one(1, 3, 1.3)

    assert far(tmp_path, card, hosts=2, lasting=lambda at: at < 3000) is None
    assert far(tmp_path, card, hosts=2, lasting=lambda at: at < 3500) is not None


NAMED = ("n1", "n2", "n3", "n4")


def whole(host: int, least: float, most: float = 0.0, *, beside: float = 1.0) -> Card:
    """All cards of a host, the first of them by the least; and one of another host."""

    def card(of: int, at: int) -> float:
        if of != host:
            return beside if (of, at) == (3, 5) else 1.0
        return least if at == 0 else most or least

    return card


@pytest.mark.parametrize("host", ["n2", "n3"])
def test_a_whole_host_that_is_far_above_all_others(tmp_path: Path, host: str) -> None:
    """All of its cards; no one of them stands alone."""
    card, found = apart(tmp_path, whole(int(host[1:]), 1.25, 1.3), NAMED)

    assert (card, found) == (None, Place(host=host))


def test_a_whole_host_is_what_the_others_wait_for(tmp_path: Path) -> None:
    """What is cited of it gives the same numbers again."""
    facts, source = measured(tmp_path, whole(2, 1.3), NAMED)
    (found,) = findings(checked(judge(facts), source))

    assert (found.code, found.culprits) == ("D3", (Place(host="n2"),))


def test_the_order_of_hosts_is_the_runs(tmp_path: Path) -> None:
    """Which of them are the ends is no matter of their names."""
    shuffled = ("n2", "n1", "n4", "n3")

    assert apart(tmp_path, whole(1, 1.3), shuffled)[1] == Place(host="n1")
    assert apart(tmp_path, whole(2, 1.3), shuffled)[1] is None


@pytest.mark.parametrize(
    ("card", "hosts", "cards", "signals", "until", "slow"),
    [
        (whole(1, 1.3), NAMED, 8, (SM,), ENDS, False),
        (whole(4, 1.3), NAMED, 8, (SM,), ENDS, False),
        (whole(2, 1.1, 1.3), NAMED, 8, (SM,), ENDS, False),
        (whole(2, 1.3, beside=1.15), NAMED, 8, (SM,), ENDS, False),
        (lambda of, at: 1.3 if of in (2, 3) else 1.0, (*NAMED, "n5", "n6"), 8, (SM,), ENDS, False),
        (whole(2, 1.3), NAMED[:3], 8, (SM,), ENDS, False),
        (whole(2, 1.3), (*NAMED, "n5", "n6", "n7", "n8"), 1, (SM,), ENDS, False),
        (whole(2, 1.3), NAMED, 8, (ENGINE,), ENDS, False),
        (whole(2, 1.3), NAMED, 8, (SM,), 3000, False),
        (whole(2, 1.3), NAMED, 8, (SM,), ENDS, True),
    ],
    ids=["the first", "the last", "but for one card", "another card stands apart", "two of them",
         "of three", "a card a host", "by the engine alone", "for a time", "the pace fell"],
)  # fmt: skip
def test_near_misses_of_a_whole_host(
    tmp_path: Path,
    card: Card,
    hosts: tuple[str, ...],
    cards: int,
    signals: tuple[str, ...],
    until: int,
    slow: bool,
) -> None:
    """A stage of a model, or what does not last."""
    found = apart(tmp_path, card, hosts, cards, signals, lambda at: at < until, slow)

    assert found[1] is None
