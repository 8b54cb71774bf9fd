"""D2 and G1: collectives over sockets, and what the GPUs make of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 4, 14, 10, tzinfo=UTC)
SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
    "77|sft|COMPLETED|0:0|2026-04-14T09:59:00|2026-04-14T10:40:30|2|w[1-2]\n"
)


def run(
    folder: Path,
    *,
    active: float,
    plain: str | None = "receive",
    moved: float = 2e9,
    state: int | None = 4,
    transport: str = "Socket",
    devices: tuple[str, ...] = ("eth0",),
) -> Verdict:
    """Two hosts for 40 minutes: how busy their GPUs' processors are, what they move over each
    device of the plain network and which way of it is counted, the state of their idle RDMA
    port."""
    lines = [
        said
        for n in (1, 2)
        for said in (
            f"w{n}:910:940 [0] NCCL INFO Failed to open libibverbs.so[.1]",
            f"w{n}:910:940 [0] NCCL INFO Using network {transport}",
        )
    ]
    lines += [
        f"{BEGAN + timedelta(seconds=8 * step):%Y-%m-%dT%H:%M:%S}Z step {step} loss"
        f" {1.5 + 8 / step:.4f} step_time 8.0{step % 3}s"
        for step in range(1, 301)
    ]
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    (folder / "sacct.txt").write_text(SACCT)
    read = []
    for second in range(-60, 2460, 30):
        at = int((BEGAN.timestamp() + second) * 1000)
        for n in (1, 2):
            here, busy = f'instance="w{n}:9100"', 0 <= second <= 2400
            port = f'{{{here},device="mlx5_0",port="1"}}'
            read.append(f"node_infiniband_port_data_transmitted_bytes_total{port} 5e12 {at}")
            if state is not None:
                read.append(f"node_infiniband_state_id{port} {state} {at}")
            if plain is not None:
                total = moved * max(0, min(second, 2400))
                name = f"node_network_{plain}_bytes_total"
                read += (
                    f'{name}{{{here},device="{device}"}} {total:.0f} {at}' for device in devices
                )
            card = f'{{Hostname="w{n}",gpu="0"}}'
            read.append(f"DCGM_FI_DEV_GPU_UTIL{card} {100 if busy else 0} {at}")
            read.append(f"DCGM_FI_PROF_SM_ACTIVE{card} {active if busy else 0} {at}")
    (folder / "metrics.prom").write_text("\n".join(read) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("plain", ["receive", "transmit"])
def test_gpus_that_wait_for_sockets_beside_an_idle_fabric(tmp_path: Path, plain: str) -> None:
    """All-reduce receives what it sends: either way of the traffic tells of it."""
    verdict = run(tmp_path, active=0.35, plain=plain)

    assert (verdict.code, verdict.fault_class, verdict.scope) == ("D2", "slow-interconnect", "all")
    assert not verdict.culprits
    assert any("libibverbs" in cite.text for one in verdict.shows for cite in one.cites)


def test_gpus_at_work_lose_nothing_by_sockets(tmp_path: Path) -> None:
    """However little was sent over the fabric."""
    verdict = run(tmp_path, active=0.88)

    assert verdict.code == "G1"
    assert [one.role for one in verdict.findings if one.finding.code == "D2"] == ["warning"]


def test_what_storage_sends_is_received_too(tmp_path: Path) -> None:
    """By a run whose collectives may take what nothing was counted of."""
    assert run(tmp_path, active=0.35, transport="AWS").code != "D2"


def test_little_traffic_is_no_proof_of_its_cost(tmp_path: Path) -> None:
    """Of GPUs of which more than half was used."""
    verdict = run(tmp_path, active=0.6, moved=9e7)

    assert verdict.code == "D2"
    assert verdict.confidence < 0.8


def test_a_bond_counts_again_what_its_parts_do(tmp_path: Path) -> None:
    """Which together are no more than what one of them says."""
    devices = ("bond0", "eth0", "eth1")

    assert run(tmp_path, active=0.6, moved=4e7).code == "G1"
    assert run(tmp_path, active=0.6, moved=4e7, devices=devices).code == "G1"


@pytest.mark.parametrize(
    ("active", "moved", "code"), [(0.35, 9e7, "G1"), (0.6, 2e9, "D2"), (0.6, 9e7, "G1")],
    ids=["they wait for little", "a link is filled", "neither"],
)  # fmt: skip
def test_adapters_of_which_no_state_is_measured(
    tmp_path: Path, active: float, moved: float, code: str
) -> None:
    """They count traffic, so they are there; that they were up nobody says."""
    verdict = run(tmp_path, active=active, moved=moved, state=None)

    assert verdict.code == code
    assert verdict.confidence < 0.8 or code == "G1"
    assert any("ports were up" in one for one in verdict.cannot_decide) == (code == "D2")


@pytest.mark.parametrize(
    ("state", "plain"), [(1, "receive"), (4, None)],
    ids=["no port is up", "no traffic measured"],
)  # fmt: skip
@pytest.mark.parametrize(("active", "sure"), [(0.35, False), (0.88, True)])
def test_sockets_on_a_plain_network_are_a_doubt_where_gpus_wait(
    tmp_path: Path, state: int | None, plain: str | None, active: float, *, sure: bool
) -> None:
    verdict = run(tmp_path, active=active, state=state, plain=plain)

    assert verdict.code == "G1"
    assert (verdict.confidence >= 0.8) is sure
    assert any("took sockets" in one for one in verdict.cannot_decide) is not sure


def plain(folder: Path, *, active: float, sent: float, line: str, hosts: int = 2) -> Verdict:
    """Hosts without an adapter that is counted, which send so much over the network they have."""
    verdict = run(folder, active=active, plain="transmit", moved=sent, state=None)
    assert verdict is not None
    log = (folder / "train.log").read_text().replace("Using network Socket", line)
    (folder / "train.log").write_text(log)
    (folder / "metrics.prom").write_text(
        "".join(
            row
            for row in (folder / "metrics.prom").read_text().splitlines(keepends=True)
            if "infiniband" not in row and (hosts == 2 or "w2" not in row)
        )
    )
    return diagnose(collect(Request((str(folder),))))


CHANNEL = "Channel 00/0 : 15[3] -> 0[0] [receive] via NET/Socket/0"


@pytest.mark.parametrize("line", ["Using network Socket", CHANNEL])
def test_a_network_that_collectives_fill(tmp_path: Path, line: str) -> None:
    """And GPUs that wait for it, all the run."""
    verdict = plain(tmp_path, active=0.25, sent=3e9, line=line)

    assert (verdict.code, verdict.fault_class) == ("D2", "slow-interconnect")
    assert verdict.confidence < 0.8
    assert any("faster network" in text for text in verdict.cannot_decide)


@pytest.mark.parametrize(
    ("active", "sent", "line"),
    [
        (0.85, 3e9, CHANNEL),
        (0.25, 4e8, CHANNEL),
        (0.25, 3e9, CHANNEL.replace("Socket", "IB")),
        (0.25, 3e9, "comm 0x55 rank 0 nranks 16"),
    ],
    ids=["they work", "little is sent", "over the fabric", "nothing is said"],
)
def test_near_misses_of_a_network_that_is_filled(
    tmp_path: Path, active: float, sent: float, line: str
) -> None:
    """What is sent may be data and saves, and what waits may wait for something else."""
    assert plain(tmp_path, active=active, sent=sent, line=line).code != "D2"


@pytest.mark.parametrize(("speed", "found"), [(1.25e8, True), (1.25e9, False), (0.0, False)],
                         ids=["1 Gbit/s", "10 Gbit/s", "not known"])  # fmt: skip
def test_a_link_is_filled_by_what_it_carries(tmp_path: Path, speed: float, found: bool) -> None:
    """A slow one by little."""
    plain(tmp_path, active=0.25, sent=1.14e8, line="Using network Socket")
    text = (tmp_path / "metrics.prom").read_text()
    sent = "node_network_transmit_bytes_total{"
    speeds = {
        f"{row.partition('} ')[0].replace(sent, 'node_network_speed_bytes{')}}} {speed:.0f}"
        f" {row.rpartition(' ')[2]}"
        for row in text.splitlines() if row.startswith(sent)
    }  # fmt: skip
    (tmp_path / "metrics.prom").write_text(text + "\n".join(sorted(speeds)) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code == "D2") is found
    assert not found or verdict.confidence < 0.8


@pytest.mark.parametrize("domain", ["", ".cluster.site"])
@pytest.mark.parametrize("others", [True, False])
def test_hosts_of_others_in_the_metrics_of_a_site(
    tmp_path: Path, others: bool, domain: str
) -> None:
    """Without a record the hosts are those that NCCL's lines name, be it in full; another fills
    its fabric and rests on the plain network."""
    run(tmp_path, active=0.35)
    (tmp_path / "sacct.txt").unlink()
    log = (tmp_path / "train.log").read_text()
    for host in ("w1", "w2"):
        log = log.replace(f"{host}:910", f"{host}{domain}:910")
    (tmp_path / "train.log").write_text(log)
    other = []
    for second in range(-60, 2460, 30):
        at, here = int((BEGAN.timestamp() + second) * 1000), 'instance="w3:9100"'
        sent = 5e12 + 5e9 * (second + 60)
        port = f'{{{here},device="mlx5_0",port="1"}}'
        other += [
            f"node_infiniband_port_data_transmitted_bytes_total{port} {sent:.0f} {at}",
            f"node_infiniband_state_id{port} 4 {at}",
            f'node_network_receive_bytes_total{{{here},device="eth0"}} {second + 100} {at}',
            f'DCGM_FI_DEV_GPU_UTIL{{Hostname="w3",gpu="0"}} 0 {at}',
            f'DCGM_FI_PROF_SM_ACTIVE{{Hostname="w3",gpu="0"}} 0 {at}',
        ]
    if others:
        (tmp_path / "others.prom").write_text("\n".join(other) + "\n")

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.fault_class) == ("D2", "slow-interconnect")
    assert not verdict.culprits
