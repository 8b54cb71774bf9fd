"""D4 against adapters made up for one fact each."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from families.fleet import T0, checked, facts_of, findings, sample, stepping
from flatline.families.network_degradation import judge
from flatline.model import (
    NOWHERE,
    Cleared,
    Finding,
    Judgement,
    LogCite,
    Match,
    Place,
    Progress,
    Signature,
)
from flatline.tracks import Track

Rate = Callable[[int, float], float]
"""(host, seconds) -> packets resent a second."""


def middle(at: float) -> bool:
    return 1500 < at < 3300


def judged(
    tmp_path: Path, rate: Rate, slow: bool = True, hosts: int = 6,
    metric: str = "hw_rdma_tx_retx_pkts_total",
) -> Judgement:  # fmt: skip
    """Read every 30 s for two hours; steps end at times that are no whole seconds."""
    noise = random.Random(11)
    lines = []
    for host in range(hosts):
        total = 500.0
        for at in range(0, 7200, 30):
            total += 30 * rate(host, at) + (noise.random() < 0.05)
            label = f'host="n{host}",instance="n{host}:9100",device="r0",port="1"'
            lines.append(sample(metric, label, int(total), at))
    track = stepping(
        7150, lambda at: (2.5 if slow and middle(at) else 2.0) * noise.lognormvariate(0, 0.02)
    )
    facts, source = facts_of(tmp_path, lines, track)
    return checked(judge(facts), source)


def test_the_host_that_loses_packets_in_the_slow_phase(tmp_path: Path) -> None:
    """A stray packet of the others is no loss."""
    (found,) = findings(judged(tmp_path, lambda host, at: 40 if host == 4 and middle(at) else 0))

    assert found.culprits == (Place(host="n4"),)
    assert (found.role, found.fault_class) == ("cause", "retransmits")


@pytest.mark.parametrize(
    ("second", "third", "named"),
    [(12.0, 0.3, ["n4", "n2"]), (0.3, 0.3, ["n4"]), (12.0, 12.0, ["n4", "n1", "n2"])],
    ids=["two lose, one hears of it", "one loses, two hear", "three lose"],
)
def test_what_peers_see_of_losses_is_no_loss_of_theirs(
    tmp_path: Path, second: float, third: float, named: list[str]
) -> None:
    """A small part of what the losing host counts, at the same times."""
    own = {4: 40.0, 2: second, 1: third}
    (found,) = findings(
        judged(tmp_path, lambda host, at: own.get(host, 0) if middle(at) else 0, hosts=8)
    )

    assert [place.host for place in found.culprits][:1] == ["n4"]
    assert {place.host for place in found.culprits} == set(named)


def test_a_small_loss_that_covers_slow_time_of_its_own_counts(tmp_path: Path) -> None:
    """Beside another host's much larger one, in another part of the slow phase."""

    def rate(host: int, at: float) -> float:
        return (40 if at < 2600 else 0) if host == 4 else (host == 1 and at >= 2600) * 1.0

    (found,) = findings(judged(tmp_path, lambda host, at: rate(host, at) if middle(at) else 0))

    assert {place.host for place in found.culprits} == {"n1", "n4"}


def test_two_hosts_are_enough_to_tell_one(tmp_path: Path) -> None:
    """By far the larger count."""
    answer = judged(tmp_path, lambda host, at: 40 if host == 1 and middle(at) else 0, hosts=2)

    assert [f.culprits for f in findings(answer)] == [(Place(host="n1"),)]


@pytest.mark.parametrize(("later_s", "found"), [(0, True), (300, False)])
def test_bursts_that_follow_one_another_closely(tmp_path: Path, later_s: int, found: bool) -> None:
    """Three points of the log in six, by the clock of the slower steps or of the fast ones."""
    noise = random.Random(7)
    lines, total = [], 0.0
    for at in range(0, 9000, 30):
        burst = (at - later_s) % 600 < 250
        total += 30 * 4.0 * burst
        for host in range(6):
            label = f'host="n{host}",device="r0",port="1"'
            lines.append(sample("hw_rdma_tx_retx_pkts_total", label, (host == 3) * total, at))
    track = Track("job.log", NOWHERE, None, "plain")
    for n in range(1, 90):
        took = 2.25 if 0 < 100 * n % 600 <= 300 else 2.0
        took *= noise.lognormvariate(0, 0.004)
        progress = Progress("train", step=50 * n, loss=2.0, step_s=took)
        track.add(progress, n, datetime.fromtimestamp(T0 + 100 * n, UTC), 0)
    facts, source = facts_of(tmp_path, lines, track)
    answer = [f for f in findings(checked(judge(facts), source)) if f.role == "cause"]

    assert [f.culprits for f in answer] == ([(Place(host="n3"),)] if found else [])
    assert all(f.strength < 0.8 for f in answer)


@pytest.mark.parametrize(("later_s", "found"), [(0, True), (900, False)])
def test_one_phase_of_a_log_of_few_points(tmp_path: Path, later_s: int, found: bool) -> None:
    """40 points, of which 12 are slow."""
    noise = random.Random(7)
    lines, total = [], 0.0
    for at in range(0, 4000, 15):
        total += 15 * 40.0 * (1600 < at - later_s < 2800)
        for host in range(6):
            label = f'host="n{host}",device="r0",port="1"'
            lines.append(sample("hw_rdma_tx_retx_pkts_total", label, (host == 3) * total, at))
    track = Track("job.log", NOWHERE, None, "plain")
    for n in range(1, 41):
        took = (2.9 if 1600 < 100 * n <= 2800 else 2.0) * noise.lognormvariate(0, 0.004)
        progress = Progress("train", step=50 * n, loss=2.0, step_s=took)
        track.add(progress, n, datetime.fromtimestamp(T0 + 100 * n, UTC), 0)
    facts, source = facts_of(tmp_path, lines, track)
    answer = [f for f in findings(checked(judge(facts), source)) if f.role == "cause"]

    assert [f.culprits for f in answer] == ([(Place(host="n3"),)] if found else [])


def short(folder: Path, per_host: dict[int, dict[str, Rate]], slow_from: int = 1000) -> Judgement:
    """36 minutes, read each minute, of which the end is slow; by metric the counts a second."""
    noise = random.Random(7)
    lines = []
    for host in range(8):
        for metric in ("node_infiniband_symbol_error_total",
                       "node_infiniband_out_of_sequence_total"):  # fmt: skip
            rate, total = per_host.get(host, {}).get(metric), 0.0
            for at in range(0, 2160, 60):
                total += 60 * rate(host, at) if rate else 0.0
                label = f'instance="n{host}:9100",device="mlx5_0",port="1"'
                lines.append(sample(metric, label, int(total), at))
    track = Track("job.log", NOWHERE, None, "plain")
    for n in range(1, 70):
        took = (2.3 if 30 * n > slow_from else 2.0) * noise.lognormvariate(0, 0.004)
        progress = Progress("train", step=20 * n, loss=2.0, step_s=took)
        track.add(progress, n, datetime.fromtimestamp(T0 + 30 * n, UTC), 0)
    facts, source = facts_of(folder, lines, track)
    return checked(judge(facts), source)


def late(host: int, at: float) -> float:
    return 4.0 if at > 950 else 0.0


def test_the_end_of_a_failing_link_and_its_peers(tmp_path: Path) -> None:
    """Where it comes in it counts symbols in error, its peers packets that are missing; of one
    phase of few stretches never surely."""
    gone = {"node_infiniband_out_of_sequence_total": late}
    own = {"node_infiniband_symbol_error_total": late}
    (found,) = findings(short(tmp_path, {4: gone, 5: own, 6: gone}))

    assert (found.culprits, found.role) == ((Place(host="n5"),), "cause")
    assert found.most < 0.8


@pytest.mark.parametrize(
    "rate", [lambda host, at: 4.0, lambda host, at: 4.0 if at > 300 else 0.0,
             lambda host, at: 4.0 if at > 1500 else 0.0],
    ids=["all the time", "long before", "long after"],
)  # fmt: skip
def test_what_did_not_begin_with_the_fall(tmp_path: Path, rate: Rate) -> None:
    answer = short(tmp_path, {5: {"node_infiniband_out_of_sequence_total": rate}})

    assert not [f for f in findings(answer) if f.role == "cause"]


@pytest.mark.parametrize("host", [3, None], ids=["in the dips", "in the fast time between them"])
def test_dips_of_minutes_beside_counters_read_each_minute(
    tmp_path: Path, host: int | None
) -> None:
    """An hour of which a cut of three samples a stretch leaves hardly more stretches than dips
    have edges; a line of the log that spans an edge is half slow."""
    dips = ((540, 800), (1170, 1400), (1840, 2150), (2700, 2960))
    shift = 0 if host is not None else 330
    noise = random.Random(5)
    lines, total = [], 0.0
    for at in range(0, 3420, 60):
        total += 60 * 7.0 * any(a <= at - shift < b for a, b in dips)
        for n in range(8):
            label = f'instance="n{n}:9100",device="mlx5_1",port="1"'
            lines.append(sample(SYMBOLS, label, int(total) if n == 3 else 12.0, at))
    track = Track("job.log", NOWHERE, None, "plain")
    at, step = 0.0, 0
    while at < 3400:
        took = 0.0
        for _ in range(10):
            slow = any(a <= at + took < b for a, b in dips)
            took += (4.2 if slow else 2.6) * noise.lognormvariate(0, 0.003)
        at, step = at + took, step + 10
        progress = Progress("train", step=step, loss=2.0, step_s=took / 10)
        track.add(progress, step, datetime.fromtimestamp(T0 + at, UTC), 0)
    facts, source = facts_of(tmp_path, lines, track)
    found = [f for f in findings(checked(judge(facts), source)) if f.role == "cause"]

    assert [f.culprits for f in found] == ([(Place(host="n3"),)] if host is not None else [])


def test_loss_in_fast_time_leaves_it_open(tmp_path: Path) -> None:
    """Something else slowed the run; neither found nor cleared."""
    assert judged(tmp_path, lambda host, at: 40 if host == 4 and at < 1400 else 0) is None


def test_loss_on_every_host_is_no_hosts(tmp_path: Path) -> None:
    """The fabric's, or congestion: no host stands apart, and none is cleared."""
    assert judged(tmp_path, lambda host, at: 40 + 5 * host if middle(at) else 0) is None


def test_a_short_loss_at_a_steady_pace_is_cleared(tmp_path: Path) -> None:
    """It cost nothing that can be seen."""
    answer = judged(tmp_path, lambda host, at: 40 if host == 4 and 600 < at < 900 else 0, False)

    assert isinstance(answer, Cleared)


def test_quiet_adapters_clear_it(tmp_path: Path) -> None:
    """Whatever slowed the run."""
    assert isinstance(judged(tmp_path, lambda host, at: 0), Cleared)


def test_without_counters_of_loss_nothing_is_said(tmp_path: Path) -> None:
    """Bytes alone tell no loss."""
    assert judged(tmp_path, lambda host, at: 40, metric="hw_rdma_tx_bytes_total") is None


SYMBOLS = "node_infiniband_symbol_error_total"


def test_symbol_errors_alone_tell_a_failing_link(tmp_path: Path) -> None:
    """Adapters whose counters of retransmission nobody reads."""
    answer = judged(
        tmp_path, lambda host, at: 4 if host == 4 and middle(at) else 0, metric=SYMBOLS
    )
    (found,) = findings(answer)

    assert (found.culprits, found.fault_class) == ((Place(host="n4"),), "link")


@pytest.mark.parametrize("slow", [True, False])
def test_links_without_errors_clear_no_path(tmp_path: Path, slow: bool) -> None:
    """Traffic is lost in switches, too, and nothing that was read would tell of it."""
    assert judged(tmp_path, lambda host, at: 0, slow, metric=SYMBOLS) is None


def test_symbol_errors_at_other_times_are_not_the_cause(tmp_path: Path) -> None:
    """As many, in fast time."""
    answer = judged(
        tmp_path, lambda host, at: 4 if host == 4 and 4000 < at < 5800 else 0, metric=SYMBOLS
    )
    assert answer is None


NCCL = Signature("transport-of-nccl", "nccl", "marker", "", "", "", ("x",))


def over_tcp(
    tmp_path: Path, rate: Rate, sent: Rate | None, *transports: str, slow: bool = True
) -> Judgement:
    """Five hosts: segments they send again, and bytes they send, a second."""
    noise = random.Random(5)
    lines = []
    for host in range(5):
        lost = wrote = 0.0
        for at in range(0, 7200, 30):
            lost += 30 * rate(host, at) + (noise.random() < 0.3)
            label = f'instance="n{host}:9100"'
            lines.append(sample("node_netstat_Tcp_RetransSegs", label, int(lost), at))
            if sent is not None:
                wrote += 30 * sent(host, at)
                label += ',device="eth0"'
                lines.append(sample("node_network_transmit_bytes_total", label, int(wrote), at))
    track = stepping(
        7150, lambda at: (2.8 if slow and middle(at) else 2.0) * noise.lognormvariate(0, 0.02)
    )
    said = [Match(NCCL, LogCite("job.log", n, f"Using network {name}"), {"transport": name})
            for n, name in enumerate(transports, 1)]  # fmt: skip
    facts, source = facts_of(tmp_path, lines, track, matches=said)
    return checked(judge(facts), source)


def lossy(host: int, at: float) -> float:
    return 200.0 if host == 3 and middle(at) else 0.0


def even(host: int, at: float) -> float:
    return 2e8 if middle(at) else 2.8e8


def test_segments_sent_again_where_collectives_use_sockets(tmp_path: Path) -> None:
    """NCCL says so; steps that take longer send less."""
    (found,) = findings(over_tcp(tmp_path, lossy, even, "Socket", "Socket"))

    assert found.culprits == (Place(host="n3"),)
    assert (found.role, found.fault_class) == ("cause", "retransmits")
    assert "RDMA" not in found.summary + " ".join(shown.text for shown in found.shows)


@pytest.mark.parametrize("transports", [(), ("IB",), ("Socket", "IB")])
def test_of_collectives_that_do_not_use_tcp(tmp_path: Path, transports: tuple[str, ...]) -> None:
    """Or of which nothing says so."""
    assert over_tcp(tmp_path, lossy, even, *transports) is None


@pytest.mark.parametrize(
    "sent", [lambda host, at: (6e8 if lossy(host, at) else 0.0) + even(host, at), None]
)
def test_losses_of_other_traffic_of_a_host(tmp_path: Path, sent: Rate | None) -> None:
    """It saves to a server meanwhile, which slows the run and loses; or that is unknown."""
    assert over_tcp(tmp_path, lossy, sent, "Socket") is None
    assert over_tcp(tmp_path, lossy, sent, "Socket", slow=False) is None


def test_a_handful_sent_again_is_usual(tmp_path: Path) -> None:
    """On any network, more or less of it."""
    few: Rate = lambda host, at: 2.0 if host == 3 and middle(at) else 0.1  # noqa: E731

    assert not findings(over_tcp(tmp_path, few, even, "Socket"))


def received(
    tmp_path: Path, errors: Rate, resent: Rate | None = None, device: str = "eth0"
) -> tuple[Finding, ...]:
    """Packets that the hosts' devices received in error and, where NCCL uses sockets, the TCP
    segments that hosts sent again."""
    noise = random.Random(3)
    lines = []
    for host in range(6):
        counted = {"errs": 40.0, "again": 0.0, "sent": 0.0}
        label = f'instance="n{host}:9100"'
        for at in range(0, 7200, 30):
            counted["errs"] += 30 * errors(host, at)
            counted["again"] += 30 * (resent or errors)(host, at) + (noise.random() < 0.05)
            counted["sent"] += 3e9
            on = f'{label},device="{device}"'
            lines += [sample("node_network_receive_errs_total", on, int(counted["errs"]), at)]
            if resent is not None:
                lines += [
                    sample("node_netstat_Tcp_RetransSegs", label, int(counted["again"]), at),
                    sample("node_network_transmit_bytes_total", on, counted["sent"], at),
                ]
    track = stepping(7150, lambda at: (2.5 if middle(at) else 2.0) * noise.lognormvariate(0, 0.02))
    said = LogCite("job.log", 1, "n0:1:2 [0] NCCL INFO Using network Socket")
    sockets = Match(NCCL, said, {"transport": "Socket"})
    more = {"matches": [sockets]} if resent is not None else {}
    facts, source = facts_of(tmp_path, lines, track, **more)
    return findings(checked(judge(facts), source))


def test_a_host_that_receives_packets_in_error(tmp_path: Path) -> None:
    """On a network that has no counters of RDMA nothing else tells."""
    (found,) = received(tmp_path, lambda host, at: 4 if host == 4 and middle(at) else 0)

    assert (found.culprits, found.fault_class) == ((Place(host="n4"),), "link")


def test_who_sends_again_is_the_peer_of_who_receives_in_error(tmp_path: Path) -> None:
    """A sender counts what its peer's link destroyed."""
    (found,) = received(
        tmp_path,
        lambda host, at: 4 if host == 4 and middle(at) else 0,
        lambda host, at: 40 if host == 1 and middle(at) else 0,
    )

    assert found.culprits == (Place(host="n4"),)


@pytest.mark.parametrize(
    ("errors", "device"),
    [
        (lambda host, at: 0, "eth0"),
        (lambda host, at: 4 if host == 4 and at < 1400 else 0, "eth0"),
        (lambda host, at: 4 if middle(at) else 0, "eth0"),
        (lambda host, at: 4 if host == 4 and middle(at) else 0, "docker0"),
    ],
    ids=["none", "while it was fast", "on every host", "of containers"],
)
def test_errors_that_say_nothing(tmp_path: Path, errors: Rate, device: str) -> None:
    """And their absence clears nobody: other counters tell of other losses."""
    assert received(tmp_path, errors, device=device) == ()


def test_where_errors_of_another_time_leave_what_is_sent_again(tmp_path: Path) -> None:
    """A few packets in error, in fast time, do not stand for the losses of the slow phase."""
    (found,) = received(
        tmp_path,
        lambda host, at: 4 if host == 4 and at < 1400 else 0,
        lambda host, at: 40 if host == 1 and middle(at) else 0,
    )

    assert (found.culprits, found.fault_class) == ((Place(host="n1"),), "retransmits")


@pytest.mark.parametrize("lost", ["retrans_pkts", "retrans_timeout_events"])
def test_an_adapter_of_efa_that_sends_again(tmp_path: Path, lost: str) -> None:
    """Its counters stand under names of their own."""
    metric = f"node_amazonefa_{lost}"
    (found,) = findings(
        judged(tmp_path, lambda host, at: 4 if host == 2 and middle(at) else 0, metric=metric)
    )
    assert found.culprits == (Place(host="n2"),)

    steady = judged(tmp_path, lambda host, at: 4 if middle(at) else 0, metric=metric)
    assert not any(one.role == "cause" for one in findings(steady))
