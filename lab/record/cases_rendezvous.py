"""Ranks and hosts that never meet, or lose one another."""

from __future__ import annotations

import subprocess
import time

from lab.record.case import Case, listed
from lab.record.play import torchrun
from lab.record.stage import HOME, Cell, Stage

CASES: list[Case] = []
PROJECT = HOME / "proj"


@listed(CASES, origin="torchrun", about=("C1",), code="C1", demo="second-node-never-came",
    title="The job was started for two nodes but only one ever joined, so the start-up rendezvous timed out.",
)  # fmt: skip
def second_node_never_joins(stage: Stage) -> None:
    """torchrun is told of two nodes and started on one; the join timeout is 20 s."""
    launch = ["--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d", "--rdzv-id=run7"]
    launch += ["--rdzv-endpoint=node01:29400", "--rdzv-conf=join_timeout=20"]
    child = torchrun(stage, stage.cell(), [], launch=launch)
    stage.end(child)


@listed(CASES, origin="torchrun", about=("C1", "C5"), code="C1")
def wrong_master_port(stage: Stage) -> None:
    """The second of two nodes is told another port than the first listens on.

    Both share a network; node 0 listens on 29500 and node 1 calls 29501.  Node 1 gives up after
    its store timeout of 20 s, node 0 after its own.
    """
    cell = stage.cell()
    common = ["--nnodes=2", "--nproc-per-node=2", "--master-addr=node01", "--rdzv-conf=timeout=20"]
    args = ["--timeout", "30"]
    one = torchrun(
        stage,
        cell,
        args,
        launch=[*common, "--node-rank=0", "--master-port=29500"],
        log="node0.log",
    )
    two = torchrun(
        stage,
        cell,
        args,
        launch=[*common, "--node-rank=1", "--master-port=29501"],
        log="node1.log",
        data=False,
    )
    stage.note("node 0 was given master port 29500, node 1 was given 29501")
    stage.end(two)
    stage.end(one)


@listed(CASES, origin="torchrun", about=("C1", "A1"), code=("C1", "A1"), attribution="job")
def master_port_in_use(stage: Stage) -> None:
    """Another process already listens on the master port."""
    cell = stage.cell()
    script = (
        "import socket,time\ns=socket.socket()\ns.bind(('', 29500))\ns.listen()\ntime.sleep(60)\n"
    )
    other = stage.start(cell, ["python", "-c", script], ".other")
    time.sleep(1)
    child = torchrun(stage, cell, [], tee=False)
    stage.end(child)
    other.kill()
    other.wait()
    (stage.run / ".other").unlink()


def two_hosts(stage: Stage) -> list[Cell]:
    """Two cells on one bridge, named gpu1 and gpu2."""
    down_network()
    script = "ip link add recbr0 type bridge; ip addr add 10.89.0.254/24 dev recbr0; ip link set recbr0 up;"
    for i in (1, 2):
        script += (
            f"ip netns add rec{i}; ip link add recv{i} type veth peer name eth0 netns rec{i};"
            f"ip link set recv{i} master recbr0 up; ip -n rec{i} addr add 10.89.0.{i}/24 dev eth0;"
            f"ip -n rec{i} link set eth0 up; ip -n rec{i} link set lo up;"
        )
    subprocess.run(["bash", "-ec", script], check=True)
    return [stage.cell(f"gpu{i}", netns=f"rec{i}") for i in (1, 2)]


def down_network() -> None:
    script = "ip link del recv1; ip link del recv2; ip netns del rec1; ip netns del rec2; ip link del recbr0; true"
    subprocess.run(["bash", "-c", script], check=True, stderr=subprocess.DEVNULL)


def start_on_two_hosts(
    stage: Stage, cells: list[Cell], args: list[str]
) -> list[subprocess.Popen[bytes]]:
    common = ["--nnodes=2", "--nproc-per-node=2", "--master-addr=gpu1", "--master-port=29500"]
    env = {"GLOO_SOCKET_IFNAME": "eth0"}
    return [
        torchrun(
            stage,
            cell,
            args,
            launch=[*common, f"--node-rank={i}"],
            log=f"gpu{i + 1}.log",
            env=env,
            data=i == 0,
        )
        for i, cell in enumerate(cells)
    ]


@listed(
    CASES, origin="torchrun", about=("C5", "C2"), code=("C5", "C2"), state=("found", "undetermined"),
)  # fmt: skip
def link_cut_between_hosts(stage: Stage) -> None:
    """Two hosts of two ranks each; the network cable of gpu2 is pulled in mid-run (its veth set down).

    The collectives time out after 20 s on every rank, and each host's launcher blames a rank of its
    own.  The logs show that all waited; nothing in them shows which side was cut.
    """
    try:
        children = start_on_two_hosts(
            stage, two_hosts(stage), ["--steps", "4000", "--timeout", "20"]
        )
        stage.line("gpu1.log", r"step 150/")
        subprocess.run(["ip", "link", "set", "recv2", "down"], check=True)
        stage.note("the link of gpu2 was set down")
        for child in children:
            stage.end(child)
    finally:
        down_network()


@listed(CASES, origin="torchrun", about=("G1",), state="healthy", attribution="none")
def two_hosts_healthy(stage: Stage) -> None:
    """Two hosts of two ranks each train to the planned end; one log a host."""
    try:
        children = start_on_two_hosts(stage, two_hosts(stage), ["--steps", "250"])
        for child in children:
            stage.end(child)
    finally:
        down_network()


@listed(CASES, origin="torchrun", about=("C1", "C5"), code=("C1", "C5"))
def firewall_between_hosts(stage: Stage) -> None:
    """Two hosts; gpu1 drops every packet from gpu2 from the beginning (iptables)."""
    try:
        cells = two_hosts(stage)
        cells[0].run_root("iptables -A INPUT -s 10.89.0.2 -j DROP")
        stage.note("gpu1 drops what comes from gpu2")
        common = [
            "--nnodes=2",
            "--nproc-per-node=2",
            "--master-addr=gpu1",
            "--rdzv-conf=timeout=25",
        ]
        env = {"GLOO_SOCKET_IFNAME": "eth0"}
        for i, cell in enumerate(cells):
            launch = [*common, "--master-port=29500", f"--node-rank={i}"]
            torchrun(stage, cell, [], launch=launch, log=f"gpu{i + 1}.log", env=env, data=i == 0)
        for child in stage.children():
            stage.end(child, 240)
    finally:
        down_network()
