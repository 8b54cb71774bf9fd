"""A host of which no exporter was read from the last step on, where no record tells of nodes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 1, 8, 4, 0, tzinfo=UTC)
STEPS, EACH_S, TIMEOUT_S = 180, 10, 600
HUNG_S = STEPS * EACH_S
ENDED_S = HUNG_S + TIMEOUT_S
HOSTS = ("wk-1", "wk-2", "wk-3", "wk-4")
NODES = (
    "NAME   STATUS     ROLES    AGE   VERSION\n"
    "wk-1   Ready      <none>   91d   v1.31.2\n"
    "wk-3   NotReady   <none>   91d   v1.31.2\n"
)


def stamp(seconds: float) -> str:
    return f"{BEGAN + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"


def verdict(
    folder: Path,
    gpus_s: dict[str, float],
    hosts_s: dict[str, float],
    *,
    files: dict[str, str] | None = None,
    timed_out: bool = True,
) -> Verdict:
    """Of a run whose other ranks time out ten minutes after its last step; the exporters of some
    hosts are read until a second of it, others on."""
    lines = [f"{stamp(EACH_S * n)} step {n}/9000 loss {3 - n / 2000:.4f}" for n in range(1, 181)]
    told = BEGAN + timedelta(seconds=ENDED_S)
    lines += [
        f"[rank{rank}]:[E{told:%m%d %H:%M:%S}.881230455 ProcessGroupNCCL.cpp:616] [Rank {rank}]"
        " Watchdog caught collective operation timeout: WorkNCCL(SeqNum=910, OpType=ALLREDUCE,"
        " NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600014 milliseconds before timing"
        " out."
        for rank in range(2 * timed_out)
    ]
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    for name, text in (files or {}).items():
        (folder / name).write_text(text)
    rows = []
    for host in HOSTS:
        for second in range(0, ENDED_S + 60, 15):
            ms = int((BEGAN.timestamp() + second) * 1000)
            if second <= gpus_s.get(host, ENDED_S + 60):
                rows.append(f'DCGM_FI_DEV_POWER_USAGE{{Hostname="{host}",gpu="0"}} 500 {ms}\n')
            if second <= hosts_s.get(host, ENDED_S + 60):
                rows.append(f'node_procs_running{{instance="{host}:9100"}} 9 {ms}\n')
    (folder / "metrics.prom").write_text("".join(rows))
    return diagnose(collect(Request((str(folder),))))


def test_a_host_that_nobody_reads_any_more(tmp_path: Path) -> None:
    """The timeout of those that waited for it is its consequence."""
    gone = {"wk-3": HUNG_S - 20.0}
    found = verdict(tmp_path, gone, gone)
    roles = {judged.finding.code: judged.role for judged in found.findings}

    assert (found.code, [p.host for p in found.culprits]) == ("F1", ["wk-3"])
    assert (roles["C2"], found.confidence < 0.8) == ("consequence", True)
    assert found.onset is not None
    assert abs((found.onset - BEGAN).total_seconds() - HUNG_S) <= 60


def test_a_list_of_nodes_that_says_so_too(tmp_path: Path) -> None:
    """It does not say since when."""
    gone = {"wk-3": HUNG_S - 20.0}
    found = verdict(tmp_path, gone, gone, files={"nodes.txt": NODES})

    assert (found.code, found.confidence < 0.8) == ("F1", True)
    assert "NotReady" in "".join(cite.text for one in found.shows for cite in one.cites)
    assert all("sbatch" not in (action.command or "") for action in found.actions)


@pytest.mark.parametrize(
    ("gpus_s", "hosts_s", "timed_out"),
    [
        ({"wk-3": HUNG_S}, {}, True),
        ({"wk-3": HUNG_S}, {"wk-3": HUNG_S + 300.0}, True),
        ({"wk-3": 600.0}, {"wk-3": 600.0}, True),
        (dict.fromkeys(HOSTS, float(HUNG_S)), dict.fromkeys(HOSTS, float(HUNG_S)), True),
        ({"wk-3": HUNG_S}, {"wk-3": HUNG_S}, False),
    ],
    ids=["one exporter", "not together", "steps were made after", "all", "nobody missed it"],
)
def test_near_misses(
    tmp_path: Path, gpus_s: dict[str, float], hosts_s: dict[str, float], timed_out: bool
) -> None:
    """What stops may be the exporter, or what reads them all."""
    assert verdict(tmp_path, gpus_s, hosts_s, timed_out=timed_out).code != "F1"


def test_slurm_would_have_said_it(tmp_path: Path) -> None:
    """Its record of a job names a node that it lost."""
    gone = {"wk-3": HUNG_S - 20.0}
    began, ended = (f"{BEGAN + timedelta(seconds=s):%Y-%m-%dT%H:%M:%S}" for s in (0, ENDED_S + 5))
    record = (
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"9|train|FAILED|1:0|{began}|{ended}|4|wk-[1-4]\n"
    )

    assert verdict(tmp_path, gone, gone, files={"sacct.txt": record}).code == "C2"
