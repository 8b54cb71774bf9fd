"""Requests to file servers without an answer while a run stood still, as its hosts count them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place, QueryCite, Verdict

START = datetime(2026, 2, 2, 18, tzinfo=UTC)
STOPS_S, GOES_ON_S, ENDS_S = 1800, 2400, 3600
HOSTS = ("n1", "n2", "n3", "n4")
NFS = 'node_nfs_rpc_retransmissions_total{{instance="{}:9100"}}'
MOUNT = (
    'node_mountstats_nfs_operations_major_timeouts_total{{instance="{}:9100",export="nas7:/vol",'
    'protocol="tcp",mountaddr="10.0.0.7",operation="WRITE"}}'
)
LUSTRE = 'lustre_drop_count_total{{instance="{}:9169",component="lnet",target="lnet"}}'
Count = Callable[[str, float], float]
"""(host, second of the run) -> the counter, since boot."""
Tasks = Callable[[str, float], float]


def rose(*hosts: str, since: float = STOPS_S, until: float = GOES_ON_S) -> Count:
    """One in half a minute between these times, after many of the months before."""
    return lambda host, second: (
        5000 + (max(0.0, min(second, until) - since) // 30 if host in hosts else 0.0)
    )


def asleep(*hosts: str) -> Tasks:
    return lambda host, second: 4.0 if host in hosts and STOPS_S < second <= GOES_ON_S else 0.0


def verdict(
    folder: Path,
    count: Count,
    tasks: Tasks | None,
    *,
    metric: str = NFS,
    stands: bool = True,
    hangs: bool = False,
    kernel: str = "",
) -> Verdict:
    """Of a run of four hosts that stands still for ten minutes and goes on, or hangs."""
    lines, second, step = [], 0, 0
    while second < (STOPS_S if hangs else ENDS_S - 10):
        second, step = second + 10, step + 1
        if stands and not hangs and STOPS_S < second <= GOES_ON_S:
            second = GOES_ON_S + 10
        at = START + timedelta(seconds=second)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S},000 INFO step {step}/900 loss {2 + 9 / (step + 4)}")
    ends = GOES_ON_S if hangs else ENDS_S
    (folder / "slurm-18.out").write_text("\n".join(lines) + "\n")
    (folder / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        f"18|t|{'CANCELLED by 7' if hangs else 'COMPLETED'}|0:0|{START:%Y-%m-%dT%H:%M:%S}|"
        f"{START + timedelta(seconds=ends):%Y-%m-%dT%H:%M:%S}|n[1-4]\n"
    )
    rows = []
    for second in range(0, ENDS_S, 30):
        at_ms = int((START.timestamp() + second) * 1000)
        for host in (*HOSTS, "n9"):
            rows.append(f"{metric.format(host)} {count(host, second)} {at_ms}")
            if tasks is not None:
                blocked = f'node_procs_blocked{{instance="{host}:9100"}}'
                rows.append(f"{blocked} {tasks(host, second)} {at_ms}")
    (folder / "metrics.prom").write_text("\n".join(rows) + "\n")
    if kernel:
        (folder / "kern-n2.log").write_text(kernel)
    return diagnose(collect(Request((str(folder),))))


def counted(found: Verdict) -> bool:
    """Whether a counter of a file server's client is shown."""
    cites = [cite for shown in found.shows for cite in shown.cites]
    return any(
        isinstance(c, QueryCite) and ("nfs" in c.query or "lustre" in c.query) for c in cites
    )


@pytest.mark.parametrize("metric", [NFS, MOUNT, LUSTRE])
@pytest.mark.parametrize("hangs", [False, True])
def test_all_hosts_waited_for_a_file_server(tmp_path: Path, metric: str, hangs: bool) -> None:
    """No kernel log was kept: their counters and their tasks say so, below confident."""
    found = verdict(tmp_path, rose(*HOSTS), asleep(*HOSTS), metric=metric, hangs=hangs)

    assert (found.code, found.culprits, found.scope) == ("C6", (), "shared")
    assert found.domain == ("nas7" if metric == MOUNT else None)
    assert 0.5 <= found.confidence < 0.8
    assert counted(found)


@pytest.mark.parametrize("hangs", [False, True])
def test_one_host_waited_for_a_file_server(tmp_path: Path, hangs: bool) -> None:
    """And the others for it."""
    found = verdict(tmp_path, rose("n3"), asleep("n3"), metric=MOUNT, hangs=hangs)

    assert (found.code, found.culprits) == ("C6", (Place(host="n3"),))


def test_where_sleep_is_not_measured_most_hosts_must_count(tmp_path: Path) -> None:
    """And one host alone proves nothing."""
    every, one = tmp_path / "every", tmp_path / "one"
    every.mkdir()
    one.mkdir()

    assert verdict(every, rose(*HOSTS), None).code == "C6"
    assert verdict(one, rose("n3"), None).code != "C6"


def test_the_count_stands_beside_the_kernel_s_word(tmp_path: Path) -> None:
    """Another store that says the same."""
    silent, back = (START + timedelta(seconds=at) for at in (STOPS_S + 60, GOES_ON_S - 5))
    kernel = (
        f"{silent:%b %d %H:%M:%S} n2 kernel: nfs: server nas7 not responding, still trying\n"
        f"{back:%b %d %H:%M:%S} n2 kernel: nfs: server nas7 OK\n"
    )
    found = verdict(tmp_path, rose(*HOSTS), asleep(*HOSTS), kernel=kernel)

    assert (found.code, found.domain, counted(found)) == ("C6", "nas7", True)


@pytest.mark.parametrize("hangs", [False, True])
@pytest.mark.parametrize(
    ("count", "tasks"),
    [
        (rose(), asleep(*HOSTS)),
        (rose("n9"), asleep("n9")),
        (rose(*HOSTS), asleep()),
        (rose("n3"), asleep()),
        (rose("n3"), asleep(*HOSTS)),
        (rose(*HOSTS, since=0, until=ENDS_S), asleep(*HOSTS)),
        (rose(*HOSTS, since=0, until=600), asleep(*HOSTS)),
    ],
    ids=["since boot", "another client", "nobody sleeps", "one host, nobody sleeps",
         "one host, all sleep", "all the time", "at another time"],
)  # fmt: skip
def test_counters_of_file_servers_that_explain_nothing(
    tmp_path: Path, count: Count, tasks: Tasks, hangs: bool
) -> None:
    """What was counted before the run, elsewhere, at other times, or that nobody waited for."""
    assert verdict(tmp_path, count, tasks, hangs=hangs).code != "C6"


def test_a_run_that_advances_was_not_held_up(tmp_path: Path) -> None:
    """Requests without an answer, and no step that took longer."""
    assert verdict(tmp_path, rose(*HOSTS), asleep(*HOSTS), stands=False).code != "C6"
