"""B3 against fleets made up for one fact each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from math import nan
from pathlib import Path

import pytest

from families.fleet import facts_of, sample, stepping
from flatline.facts import Facts
from flatline.families.clock_throttling import judge
from flatline.judging.unsettled import APART, unsettled
from flatline.model import Attempt, Cleared, Finding, Judgement, Place
from flatline.sources.metrics import MetricsSource

T0 = 1_700_000_000
NAMES = {
    "clock": "DCGM_FI_DEV_SM_CLOCK",
    "power": "DCGM_FI_DEV_POWER_USAGE",
    "heat": "DCGM_FI_DEV_GPU_TEMP",
    "util": "DCGM_FI_DEV_GPU_UTIL",
    "sms": "DCGM_FI_PROF_SM_ACTIVE",
    "why": "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "limit": "DCGM_FI_DEV_ENFORCED_POWER_LIMIT",
    "top": "DCGM_FI_DEV_MAX_SM_CLOCK",
}
WELL = {"clock": 1410.0, "power": 300.0, "heat": 60.0, "util": 99.0, "why": 0.0}
SLOW = {"clock": 210.0, "power": 90.0}
Device = Callable[[int, int], dict[str, float]]
"""(GPU, sample) -> what differs from a sound one; a key left as NaN is not measured."""
NOT = float("nan")


def judged(
    tmp_path: Path,
    device: Device,
    gpus: int = 16,
    samples: int = 40,
    model: Callable[[int], str] = lambda gpu: 'modelName="A100"',
    **facts: object,
) -> Judgement:
    """The judgement on a fleet of eight GPUs a host, read every 30 s."""
    lines = []
    for gpu in range(gpus):
        for n in range(samples):
            read = {**WELL, **device(gpu, n)}
            labels = f'{model(gpu)},gpu="{gpu % 8}",Hostname="n{gpu // 8}"'.lstrip(",")
            when = (T0 + 30 * n) * 1000
            lines += [f"{NAMES[k]}{{{labels}}} {v} {when}" for k, v in read.items() if v == v]
    file = tmp_path / "metrics.prom"
    file.write_text("\n".join(lines), "utf-8")
    source = MetricsSource([(file, file.name)])
    made = Facts(targets=("run",), ask=source.ask, window=source.window, **facts)  # type: ignore[arg-type]
    answer = judge(made)
    for cite in () if answer is None else answer.cites:  # type: ignore[union-attr]
        assert source.replay(cite) == cite.value  # type: ignore[arg-type]
    return answer


def found(answer: Judgement) -> Finding:
    assert isinstance(answer, Finding), answer
    return answer


def test_one_gpu_at_a_seventh_of_its_peers_clock(tmp_path: Path) -> None:
    """Found with its place and its onset, from clock, power and activity alone."""
    answer = found(
        judged(
            tmp_path, lambda gpu, n: {**SLOW, "why": NOT} if gpu == 9 and n > 14 else {"why": NOT}
        )
    )

    assert answer.culprits == (Place(host="n1", gpu="1"),)
    assert answer.fault_class == "unexplained"
    assert answer.onset is not None
    assert abs(answer.onset.timestamp() - (T0 + 450)) <= 60
    assert answer.strength >= 0.8


@pytest.mark.parametrize(
    ("differs", "fault_class"),
    [
        ({"why": 0x80}, "power-brake"),
        ({"why": 0x40}, "thermal"),
        ({"why": 0x8}, "hw-slowdown"),
        ({"heat": 88.0}, "thermal"),
        ({"limit": 120.0}, "power-limit"),
        ({"why": 0x2}, "locked-clocks"),
    ],
)
def test_the_fault_class_is_what_holds_the_clock(
    tmp_path: Path, differs: dict[str, float], fault_class: str
) -> None:
    """Reason bits first, then a limit of its own, then heat."""
    answer = judged(
        tmp_path, lambda gpu, n: {"limit": 400.0, **({**SLOW, **differs} if gpu == 3 else {})}
    )

    assert found(answer).fault_class == fault_class


def test_an_idle_gpu_is_at_rest(tmp_path: Path) -> None:
    """Low clock, no activity: never at work, whatever its peers do."""
    idle = {"clock": 210.0, "power": 60.0, "util": 0.0, "why": 1.0}

    assert isinstance(judged(tmp_path, lambda gpu, n: idle if gpu == 3 else {}), Cleared)


def test_a_fleet_at_rest_says_nothing(tmp_path: Path) -> None:
    """A job not begun or long over: nothing was measured under load."""
    assert judged(tmp_path, lambda gpu, n: {"clock": 210.0, "util": 0.0, "why": 1.0}) is None


def test_the_soft_power_cap_of_a_busy_fleet_is_benign(tmp_path: Path) -> None:
    """0x4 everywhere, clocks scattered as the silicon falls out."""
    answer = judged(tmp_path, lambda gpu, n: {"why": 4.0, "clock": 1300.0 + 20 * (gpu % 7)})

    assert isinstance(answer, Cleared)


def test_a_gpu_that_works_harder_clocks_lower(tmp_path: Path) -> None:
    """Capped at its power while its peers have the lighter stage: nothing is decided."""
    answer = judged(
        tmp_path,
        lambda gpu, n: {"clock": 1000.0, "power": 400.0, "why": 4.0} if gpu == 3 else {},
    )

    assert answer is None


def test_a_gpu_that_waits_for_its_host_is_no_throttled_one(tmp_path: Path) -> None:
    """Less active than its peers: the clock follows the load (D3, D5)."""
    answer = judged(
        tmp_path, lambda gpu, n: {**SLOW, "util": 20.0, "why": NOT} if gpu == 3 else {"why": NOT}
    )

    assert answer is None


def test_another_model_is_not_compared(tmp_path: Path) -> None:
    """A host of other cards runs other clocks at other power."""

    def model(gpu: int) -> str:
        return 'modelName="A100"' if gpu < 8 else 'modelName="H100"'

    answer = judged(
        tmp_path, lambda gpu, n: {} if gpu < 8 else {"clock": 1980.0, "power": 650.0}, model=model
    )

    assert isinstance(answer, Cleared)


def test_a_host_of_unknown_cards_is_not_blamed(tmp_path: Path) -> None:
    """Where no label says the model, a whole host apart may be another model."""
    answer = judged(
        tmp_path,
        lambda gpu, n: {} if gpu < 24 else {"clock": 900.0, "power": 200.0},
        gpus=32,
        model=lambda gpu: "",
    )

    assert answer is None


def test_a_whole_host_is_named_as_one(tmp_path: Path) -> None:
    """Fans or a supply: all its GPUs with the hardware's word for it."""
    answer = found(
        judged(tmp_path, lambda gpu, n: {**SLOW, "why": 0x48} if gpu >= 16 else {}, gpus=24)
    )

    assert {*answer.culprits} == {Place(host="n2", gpu=str(gpu)) for gpu in range(8)}
    assert answer.summary.startswith("All GPUs of n2 ")
    assert answer.actions[0].targets == ("n2",)


def test_a_fleet_throttled_at_once_is_found_by_its_past(tmp_path: Path) -> None:
    """No peer stands apart; every place shows it alike, so none is the culprit."""
    answer = found(judged(tmp_path, lambda gpu, n: {**SLOW, "why": 0x80} if n > 20 else {}))

    assert (answer.scope, answer.culprits) == ("all", ())
    assert answer.fault_class == "power-brake"


def test_a_short_dip_is_no_finding(tmp_path: Path) -> None:
    """A slowdown bit during one clock change cost the run nothing."""
    answer = judged(tmp_path, lambda gpu, n: {**SLOW, "why": 8.0} if gpu == 3 and n == 10 else {})

    assert isinstance(answer, Cleared)


def test_heat_that_costs_a_tenth_is_said_with_less_certainty(tmp_path: Path) -> None:
    """A persistent thermal bit and a clock beyond the healthy spread."""
    answer = found(
        judged(tmp_path, lambda gpu, n: {"clock": 1200.0, "why": 32.0} if gpu == 3 else {})
    )

    assert answer.fault_class == "thermal"
    assert answer.strength == 0.85


@pytest.mark.parametrize(
    ("clock", "found"),
    [
        pytest.param(lambda gpu, n: 1290.0 if gpu == 3 and n > 14 else 1410.0, True, id="fell"),
        pytest.param(lambda gpu, n: 1355.0 if gpu == 3 and n > 14 else 1410.0, True, id="by-4-%"),
        pytest.param(lambda gpu, n: 1390.0 if gpu == 3 and n > 14 else 1410.0, False, id="by-1-%"),
        pytest.param(lambda gpu, n: 1290.0 if gpu == 3 else 1410.0, False, id="always-lower"),
        pytest.param(lambda gpu, n: 1290.0 if n > 14 else 1410.0, False, id="as-its-peers"),
        pytest.param(lambda gpu, n: 1290.0 if gpu == 3 and n < 15 else 1410.0, False, id="before"),
    ],
)
def test_a_clock_that_falls_as_heat_is_asserted(
    tmp_path: Path, clock: Callable[[int, int], float], found: bool
) -> None:
    """By a twelfth or less, as cards differ: beside its peers and beside its own past."""
    answer = judged(
        tmp_path,
        lambda gpu, n: {"clock": clock(gpu, n), "why": 0x60 if gpu == 3 and n > 14 else 0.0},
    )

    assert isinstance(answer, Finding) == found
    assert not isinstance(answer, Cleared)
    if isinstance(answer, Finding):
        assert (answer.culprits, answer.fault_class) == ((Place(host="n0", gpu="3"),), "thermal")


def test_without_power_or_reasons_nothing_is_decided(tmp_path: Path) -> None:
    """A low clock may be a harder load: neither found nor cleared."""
    answer = judged(
        tmp_path,
        lambda gpu, n: {"power": NOT, "why": NOT, "clock": 210.0 if gpu == 3 else 1410.0},
    )

    assert answer is None


@pytest.mark.parametrize("missing", ["clock", "util"])
def test_without_clocks_or_activity_it_is_not_measurable(tmp_path: Path, missing: str) -> None:
    """Not cleared for want of evidence."""
    assert judged(tmp_path, lambda gpu, n: {missing: NOT}) is None


@pytest.mark.parametrize(("hosts", "cleared"), [(("n0", "n1"), True), (("n0", "n1", "n2"), False)])
def test_hosts_without_metrics_are_not_cleared(
    tmp_path: Path, hosts: tuple[str, ...], cleared: bool
) -> None:
    """The scheduler, or the log, knows of a host nobody read."""
    attempts = (Attempt(0, "completed", hosts=hosts),)
    answer = judged(tmp_path, lambda gpu, n: {}, attempts=attempts)
    assert isinstance(answer, Cleared) == cleared


def test_metrics_of_a_part_of_the_run_do_not_clear_it(tmp_path: Path) -> None:
    """Twenty minutes of ten hours."""
    began = datetime.fromtimestamp(T0 - 36_000, UTC)
    attempts = (Attempt(0, "completed", began, datetime.fromtimestamp(T0 + 1200, UTC)),)

    assert judged(tmp_path, lambda gpu, n: {}, attempts=attempts) is None


def test_one_gpu_alone_is_cleared_by_its_own_word(tmp_path: Path) -> None:
    """No peers to compare with: the reasons decide, if they were measured."""
    assert isinstance(judged(tmp_path, lambda gpu, n: {}, gpus=1), Cleared)
    assert judged(tmp_path, lambda gpu, n: {"why": NOT}, gpus=1) is None


def test_no_metrics_no_answer() -> None:
    """Nothing was read."""
    assert judge(Facts(targets=("run",))) is None


@pytest.mark.parametrize(("limit", "found"), [(280.0, True), (400.0, False)])
def test_a_limit_of_its_own_needs_no_large_fall(tmp_path: Path, limit: float, found: bool) -> None:
    """Nine tenths of the peers' clock under a lower limit; without it cards differ by as much."""
    answer = judged(
        tmp_path,
        lambda gpu, n: (
            {"limit": limit, "clock": 1270.0, "why": 4} if gpu == 3 else {"limit": 400.0}
        ),
    )
    assert isinstance(answer, Finding) == found
    if isinstance(answer, Finding):
        assert answer.fault_class == "power-limit"


SMI = {
    "clock": ("nvidia_smi_clocks_current_sm_clock_hz", 1e6),
    "power": ("nvidia_smi_power_draw_watts", 1.0),
    "heat": ("nvidia_smi_temperature_gpu", 1.0),
    "util": ("nvidia_smi_utilization_gpu_ratio", 0.01),
    "limit": ("nvidia_smi_enforced_power_limit_watts", 1.0),
}


def shared(tmp_path: Path, device: Device, smi: tuple[int, ...]) -> Judgement:
    """As `judged`, of five hosts, some of which nvidia_gpu_exporter watches; dcgm-exporter has SM
    activity as well, which the other does not have."""
    lines = []
    for gpu in range(40):
        host, own = gpu // 8, f"{gpu:08x}"
        for n in range(40):
            read, when = {**WELL, "limit": 700.0, **device(gpu, n)}, (T0 + 30 * n) * 1000
            if host in smi:
                labels = f'uuid="{own}",instance="n{host}:9835"'
                lines += [f"{SMI[k][0]}{{{labels}}} {v * SMI[k][1]} {when}"
                          for k, v in read.items() if k in SMI]  # fmt: skip
                lines.append(f'nvidia_smi_gpu_info{{{labels},index="{gpu % 8}"}} 1 {when}')
                continue
            labels = f'UUID="GPU-{own}",modelName="A100",gpu="{gpu % 8}",Hostname="n{host}"'
            lines += [f"{NAMES[k]}{{{labels}}} {v} {when}" for k, v in read.items()]
            lines.append(f"DCGM_FI_PROF_SM_ACTIVE{{{labels}}} 0.6 {when}")
    file = tmp_path / "metrics.prom"
    file.write_text("\n".join(lines), "utf-8")
    source = MetricsSource([(file, file.name)])
    answer = judge(Facts(targets=("run",), ask=source.ask, window=source.window))
    for cite in () if answer is None else answer.cites:  # type: ignore[union-attr]
        assert source.replay(cite) == cite.value  # type: ignore[arg-type]
    return answer


@pytest.mark.parametrize("smi", [(2, 3, 4), (0, 1, 2)])
def test_a_capped_host_is_found_whichever_exporter_watches_it(
    tmp_path: Path, smi: tuple[int, ...]
) -> None:
    """And its numbers stand beside those of the hosts that the same exporter watches."""

    def device(gpu: int, n: int) -> dict[str, float]:
        capped = {"limit": 450.0, "clock": 1200.0, "power": 250.0}
        return capped if gpu // 8 == 2 and n > 14 else {}

    answer = found(shared(tmp_path, device, smi))

    assert {*answer.culprits} == {Place(host="n2", gpu=str(gpu)) for gpu in range(8)}
    assert answer.summary.startswith("All GPUs of n2 ")
    assert answer.fault_class == "power-limit"
    medians = [c.query for c in answer.cites if getattr(c, "text", "").startswith("median")]
    assert medians
    assert all("nvidia_smi_" in query and "DCGM_" not in query for query in medians)


@pytest.mark.parametrize(("smi", "kind"), [((2, 3), Cleared), ((2,), type(None))])
def test_what_two_exporters_read_is_not_compared(
    tmp_path: Path, smi: tuple[int, ...], kind: type
) -> None:
    """One reads clocks a third lower, and less power, of every host that it watches; where that is
    one host, nothing clears it."""

    def device(gpu: int, n: int) -> dict[str, float]:
        return {"clock": 940.0, "power": 220.0, "limit": 400.0} if gpu // 8 in smi else {}

    assert isinstance(shared(tmp_path, device, smi), kind)


@pytest.mark.parametrize(("mild", "culprits"), [
    ({"clock": 1270.0, "power": 280.0, "heat": 80.0},
     tuple(Place(host="n1", gpu=str(n)) for n in range(8))),
    ({"clock": 1400.0, "power": 298.0, "heat": 80.0}, None),
    ({"clock": 1270.0, "power": 280.0, "heat": 63.0}, None),
])  # fmt: skip
def test_a_host_whose_cooling_fails(
    tmp_path: Path, mild: dict[str, float], culprits: tuple[Place, ...] | None
) -> None:
    """Three of its GPUs fall far below their peers' clock; the others are as hot and a tenth
    below, or not."""

    def device(gpu: int, n: int) -> dict[str, float]:
        if gpu // 8 != 1 or n < 15:
            return {"why": NOT}
        far = gpu in (9, 13, 15)
        return {"why": NOT, **({"clock": 1030.0, "power": 220.0, "heat": 82.0} if far else mild)}

    answer = found(judged(tmp_path, device, gpus=48))
    worst = {Place(host="n1", gpu=str(gpu)) for gpu in (1, 5, 7)}

    assert answer.fault_class == "thermal"
    assert set(answer.culprits) == (worst if culprits is None else set(culprits))


def _nature(gpu: int, per_clock: float = -0.5, scatter: float = 0.0) -> dict[str, float]:
    """A GPU whose clock is 4 % off the others' at most, and what it draws for it."""
    off = (gpu * 7 % 16 - 7.5) / 7.5 * 0.04
    drawn = 1 + per_clock * off + scatter * (gpu * 5 % 16 - 7.5) / 7.5
    return {"clock": 1410 * (1 + off), "power": 300 * drawn, "why": NOT}


@pytest.mark.parametrize(
    ("device", "named"),
    [
        pytest.param(lambda gpu, n: {"clock": 1325, "power": 283}, True, id="held-down"),
        pytest.param(lambda gpu, n: {"clock": 1325, "power": 309}, False, id="low-by-nature"),
        pytest.param(lambda gpu, n: {"clock": 1325, "power": 283, "util": 80}, False,
                     id="less-to-do"),
        pytest.param(lambda gpu, n: {"clock": 1460, "power": 250}, False, id="a-lighter-part"),
        pytest.param(lambda gpu, n: {"clock": 1325, "power": 283} if n > 25 else {}, False,
                     id="for-a-time"),
        pytest.param(lambda gpu, n: {**_nature(gpu, scatter=0.08), "clock": 1325, "power": 283},
                     False, id="one-of-many-powers"),
    ],
)  # fmt: skip
def test_a_gpu_that_is_held_down_all_through_the_run(
    tmp_path: Path, device: Device, named: bool, request: pytest.FixtureRequest
) -> None:
    """Told by what GPUs draw that clock so low of themselves; never with confidence."""
    scatter = 0.08 if "powers" in request.node.name else 0.0
    facts = _paced(tmp_path, lambda gpu, n: {**_nature(gpu, scatter=scatter),
                                             **(device(gpu, n) if gpu == 9 else {})})  # fmt: skip
    answer = judge(facts)

    assert isinstance(answer, Finding) == named
    if isinstance(answer, Finding):
        assert answer.culprits == (Place(host="n1", gpu="1"),)
        assert answer.most < 0.8


def _paced(
    tmp_path: Path,
    device: Device,
    until_s: float = 1170,
    took: Callable[[float], float] = lambda at: 2.0,
) -> Facts:
    """A run of twenty minutes, or so long, on 32 such GPUs."""
    lines = [
        sample(NAMES[name], f'gpu="{gpu % 8}",Hostname="n{gpu // 8}"', value, 30 * n)
        for gpu in range(32) for n in range(int(until_s) // 30 + 1)
        for name, value in {**WELL, **device(gpu, n)}.items() if value == value
    ]  # fmt: skip
    return facts_of(tmp_path, lines, stepping(until_s, took))[0]


def test_a_gpu_held_down_beside_one_that_clocks_lower_leaves_doubt_alone(tmp_path: Path) -> None:
    """The others wait for that one: what the first costs is not known."""
    special = {9: {"clock": 1340.0, "power": 280.0}, 3: {"clock": 1300.0, "power": 312.0}}
    facts = _paced(tmp_path, lambda gpu, n: {**_nature(gpu), **special.get(gpu, {})})

    assert not isinstance(judge(facts), Finding)
    assert [one.question for one in unsettled(facts, paced=True)] == [APART]


@pytest.mark.parametrize(
    ("own", "others", "named"),
    [
        pytest.param({"clock": 1320}, {}, True, id="one-value-below-all"),
        pytest.param({"clock": 1320, "power": 396}, {}, False, id="at-its-limit"),
        pytest.param({"clock": 1320, "power": 345}, {}, False, id="draws-as-much-as-others"),
        pytest.param({"clock": 1320, "util": 80}, {}, False, id="less-to-do"),
        pytest.param({"clock": 1320, "sways": 80}, {}, False, id="a-clock-that-moves"),
        pytest.param({"clock": 1320}, {"sways": 60}, False, id="others-come-down-to-it"),
        pytest.param({"clock": 1320, "limit": nan}, {}, False, id="limit-not-known"),
    ],
)
def test_a_clock_that_stands_at_one_value(
    tmp_path: Path, own: dict[str, float], others: dict[str, float], named: bool
) -> None:
    """Among GPUs that have power to spare nothing but a setting or a fault holds one down."""

    def device(gpu: int, n: int) -> dict[str, float]:
        clock = 1395 - 15 * (gpu % 2)
        said = {"clock": clock, "power": 330 + gpu % 7, "limit": 400, "why": nan, **others}
        said |= {"power": 309, **own} if gpu == 9 else {}
        sways = said.pop("sways", 0)
        return {**said, "clock": said["clock"] - sways * (n // 8 % 3) / 2}

    answer = judge(_paced(tmp_path, device))

    assert isinstance(answer, Finding) == named
    if isinstance(answer, Finding):
        assert answer.culprits == (Place(host="n1", gpu="1"),)
        assert answer.most < 0.8


@pytest.mark.parametrize(
    ("low", "sms", "named"),
    [
        pytest.param(lambda n: 1300.0, (0.74, 0.7), True, id="works-longest"),
        pytest.param(lambda n: 1300.0, (0.7, 0.73), False, id="another-works-longer"),
        pytest.param(lambda n: 1300.0 if n > 19 else 1395.0, (0.74, 0.7), False, id="for-a-time"),
        pytest.param(lambda n: 1335.0, (0.74, 0.7), False, id="costs-little"),
    ],
)
def test_a_low_clock_that_the_others_do_not_wait_for(
    tmp_path: Path, low: Callable[[int], float], sms: tuple[float, float], named: bool
) -> None:
    """The second half of the GPUs is another stage of a pipeline, with work of its own."""

    def device(gpu: int, n: int) -> dict[str, float]:
        own = {"clock": low(n), "power": 309, "sms": sms[0]} if gpu == 9 else {}
        active = sms[1] if gpu > 15 else 0.7
        said = {"clock": 1395 - 15 * (gpu % 2), "power": 330 + gpu % 7, "sms": active}
        return {**said, "limit": 400, "why": nan, **own}

    facts = _paced(tmp_path, device)

    assert isinstance(judge(facts), Finding) == named
    if sms[1] > sms[0]:
        assert [one.question for one in unsettled(facts, paced=True)] == [APART]


@pytest.mark.parametrize(
    ("lowest", "sms", "confident"),
    [
        pytest.param(1260.0, (0.74, 0.7), True, id="works-longest"),
        pytest.param(1260.0, (0.7, 0.76), None, id="another-works-longer"),
        pytest.param(1260.0, (nan, nan), True, id="explains-it-all"),
        pytest.param(1340.0, (nan, nan), False, id="explains-half-of-it"),
        pytest.param(1340.0, (0.74, 0.7), True, id="explains-half-and-works-longest"),
    ],
)
def test_a_clock_that_falls_as_the_run_slows(
    tmp_path: Path, lowest: float, sms: tuple[float, float], confident: bool | None
) -> None:
    """From the middle of the run on; a GPU beside which others work longer has time to spare."""

    def device(gpu: int, n: int) -> dict[str, float]:
        own = {"clock": lowest if 60 < n < 120 else 1410.0, "sms": sms[0]} if gpu == 9 else {}
        return {"sms": sms[1] if gpu > 15 else 0.7 + 0 * sms[1], **own, "why": nan}

    facts = _paced(tmp_path, device, 5400, lambda at: 2.2 if 1800 < at < 3600 else 2.0)
    answer = judge(facts)

    assert isinstance(answer, Finding) == (confident is not None)
    if isinstance(answer, Finding):
        assert answer.culprits == (Place(host="n1", gpu="1"),)
        assert (answer.most > 0.8) == confident


@pytest.mark.parametrize(("lowest", "named"), [(1260.0, True), (253.0, False)])
def test_a_card_that_rests_beside_a_run_that_slows(
    tmp_path: Path, lowest: float, named: bool
) -> None:
    """A neighbour whose job ended as this run slowed by a tenth: at a fifth of its clock a card
    of the run would have slowed it by far more."""

    def device(gpu: int, n: int) -> dict[str, float]:
        clock = lowest if gpu == 9 and 60 < n < 120 else 1410.0
        rests = {"util": 0} if clock < 1000 else {}
        return {"clock": clock, "sms": nan, "why": nan, **rests}

    facts = _paced(tmp_path, device, 5400, lambda at: 2.2 if 1800 < at < 3600 else 2.0)

    assert isinstance(judge(facts), Finding) == named


@pytest.mark.parametrize(("used", "named"), [(99, True), (55, False)])
def test_a_card_that_has_gaps_clocks_lower_of_itself(
    tmp_path: Path, used: float, named: bool
) -> None:
    """Its process waits for data, and the others for it: they run the kernel that waits."""

    def device(gpu: int, n: int) -> dict[str, float]:
        slow = gpu == 9 and 60 < n < 120
        own = {"clock": 1260.0, "util": used} if slow else {"clock": 1410.0, "util": 99}
        return {**own, "sms": nan, "why": nan}

    facts = _paced(tmp_path, device, 5400, lambda at: 2.2 if 1800 < at < 3600 else 2.0)

    assert isinstance(judge(facts), Finding) == named


def test_a_clock_that_is_read_in_parts_of_a_gpu(tmp_path: Path) -> None:
    """AMD's exporter counts clocks by an index of their own: their mean has no quantile over a
    range, but at each moment."""
    said = {"gpu_clock": 2010.0, "gpu_package_power": 620.0, "gpu_gfx_activity": 98.0}
    lines = [
        sample(name, f'gpu_id="{gpu % 8}",hostname="n{gpu // 8}",card_model="MI300X"'
               + (',clock_index="0",clock_type="system"' if name == "gpu_clock" else ""),
               value * (0.86 if gpu == 9 and "gfx" not in name else 1.0) + gpu % 3, 30 * n)
        for gpu in range(32) for n in range(40) for name, value in said.items()
    ]  # fmt: skip
    answer = judge(facts_of(tmp_path, lines, stepping(1170))[0])

    assert found(answer).culprits == (Place(host="n1", gpu="1"),)


@pytest.mark.parametrize("drawn", [0.5, 1.0])
def test_two_dies_of_which_the_first_tells_the_power_of_both(tmp_path: Path, drawn: float) -> None:
    """AMD MI200: the second reads 0 W. It is held down where the package draws less, and harder at
    work where it does not."""

    def device(gpu: int, n: int) -> dict[str, float]:
        slow = gpu // 8 == 1 and n > 14
        power = 0.0 if gpu % 2 else 300.0 * (drawn if slow else 1.0)
        return {"power": power, "why": NOT, **({"clock": 800.0} if slow else {})}

    answer = judged(tmp_path, device, gpus=32)

    if drawn < 1.0:
        blamed = found(answer).culprits
        assert {place.gpu for place in blamed} == {str(n) for n in range(8)}
        assert {place.host for place in blamed} == {"n1"}
    else:
        assert not isinstance(answer, Finding) or found(answer).strength < 0.8


def test_reasons_that_have_a_metric_each(tmp_path: Path) -> None:
    """nvidia_gpu_exporter's, without the mask: half of a run's GPUs stand apart from nobody, and
    say why themselves."""
    names = {
        "utilization_gpu_ratio": 0.99, "power_draw_watts": 300.0, "temperature_gpu": 60.0,
        "clocks_current_sm_clock_hz": 1.41e9, "clocks_throttle_reasons_hw_slowdown": 0.0,
        "clocks_throttle_reasons_hw_power_brake_slowdown": 0.0,
    }  # fmt: skip
    held = {
        "power_draw_watts": 150.0, "clocks_current_sm_clock_hz": 0.66e9,
        "clocks_throttle_reasons_hw_slowdown": 1.0,
        "clocks_throttle_reasons_hw_power_brake_slowdown": 1.0,
    }  # fmt: skip
    lines = []
    for name, value in names.items():
        for gpu in range(8):
            for n in range(60):
                low = gpu >= 4 and n >= 20
                labels = f'instance="n{gpu // 4}:9835",uuid="GPU-{gpu}"'
                read = held.get(name, value) if low else value
                lines.append(f"nvidia_smi_{name}{{{labels}}} {read} {(T0 + 30 * n) * 1000}")
    file = tmp_path / "metrics.prom"
    file.write_text("\n".join(lines), "utf-8")
    source = MetricsSource([(file, file.name)])
    answer = found(judge(Facts(targets=("run",), ask=source.ask, window=source.window,
                               measured=source.measured)))  # fmt: skip

    assert answer.fault_class == "power-brake"
    assert {place.host for place in answer.culprits} == {"n1"}
    for cite in answer.cites:
        assert source.replay(cite) == cite.value  # type: ignore[arg-type]
