"""C1 of a run that still goes and whose processes try again and again to connect."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 1, 15, 9, 30, tzinfo=UTC)
NO_ROUTE = "errno: 113 - No route to host"
FAMILY = "errno: 97 - Address family not supported by protocol"


def tried(
    folder: Path,
    *,
    why: str = NO_ROUTE,
    minutes: int = 40,
    behind: str = "",
    hosts: tuple[str, ...] = ("n4",),
    state: str = "RUNNING",
    barrier: str = "",
) -> Verdict:
    """Logs of four hosts, of which some try each minute, and of which the first may wait in the
    barrier of the store."""
    for host in ("n1", "n2", "n3", "n4"):
        lines = [f"{host}: launching", f"{BEGAN:%Y-%m-%d %H:%M:%S} waiting for the process group"]
        for minute in range(minutes if host in hosts else 0):
            at = BEGAN + timedelta(minutes=minute)
            lines += [
                f"[W socket.cpp:697] [c10d] The client socket has failed to connect to [n1]:29533"
                f" ({why}).",
                f"[{at:%Y-%m-%d %H:%M:%S}] still waiting",
            ]
        if barrier and host == "n1":
            lines += [
                f"{BEGAN + timedelta(minutes=minute):%Y-%m-%d %H:%M:%S} INFO Waiting in store"
                " based barrier to initialize process group for rank: 0, key:"
                f" store_based_barrier_key:1 ({barrier}, timeout=1:00:00)"
                for minute in range(1, 45)
            ]
        (folder / f"{host}.out").write_text("\n".join(lines) + "\n" + behind)
    end = "Unknown" if state == "RUNNING" else "2026-01-15T10:30:00"
    (folder / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|Elapsed|NNodes|NodeList\n"
        f"4|llm|{state}|0:0|2026-01-15T09:29:00|{end}|00:46:00|4|n[1-4]\n"
    )
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("state", ["RUNNING", "TIMEOUT"])
@pytest.mark.parametrize("why", [NO_ROUTE, "errno: 111 - Connection refused"])
def test_the_host_that_goes_on_trying(tmp_path: Path, state: str, why: str) -> None:
    verdict = tried(tmp_path, state=state, why=why)

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("C1", ["n4"])
    assert verdict.confidence < 0.8


GAI = (
    "[W socket.cpp:759] [c10d] The IPv{v} network addresses of (n1, 29533) cannot be retrieved"
    " (gai error: {error})."
)
NOT_NOW, UNKNOWN = "-3 - Temporary failure in name resolution", "-2 - Name or service not known"


@pytest.mark.parametrize(
    ("v", "error", "code"),
    [(4, NOT_NOW, "C1"), (4, UNKNOWN, "C1"), (6, NOT_NOW, "C1"), (6, UNKNOWN, None)],
)
def test_a_name_that_is_never_resolved(
    tmp_path: Path, v: int, error: str, code: str | None
) -> None:
    """That it has no address of the one family is harmless; a resolver that does not answer knows
    of neither."""
    tried(tmp_path)
    log = (tmp_path / "n4.out").read_text().splitlines()
    (tmp_path / "n4.out").write_text(
        "".join(
            f"{GAI.format(v=v, error=error) if 'socket.cpp' in line else line}\n" for line in log
        )
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    assert [place.host for place in verdict.culprits] == (["n4"] if code else [])


def test_all_hosts_but_the_first(tmp_path: Path) -> None:
    verdict = tried(tmp_path, hosts=("n2", "n3", "n4"))

    assert verdict.code == "C1"


STEPS = "".join(f"step {n}/900 loss {3 - n / 100:.3f}\n" for n in range(1, 30))


@pytest.mark.parametrize(
    ("why", "minutes", "behind", "state"),
    [
        (FAMILY, 40, "", "RUNNING"),
        (NO_ROUTE, 5, "", "RUNNING"),
        (NO_ROUTE, 40, STEPS, "RUNNING"),
        (NO_ROUTE, 40, "init_process_group done\n" * 9, "RUNNING"),
        (NO_ROUTE, 40, "", "COMPLETED"),
    ],
    ids=["an address family that is closed", "five minutes", "steps follow", "it came through",
         "the job completed"],
)  # fmt: skip
def test_tries_that_say_nothing(
    tmp_path: Path, why: str, minutes: int, behind: str, state: str
) -> None:
    assert tried(tmp_path, why=why, minutes=minutes, behind=behind, state=state).code != "C1"


@pytest.mark.parametrize(
    ("hosts", "barrier", "named"),
    [
        (("n4",), "world_size=16, worker_count=12", ["n4"]),
        (("n3",), "world_size=4, num_workers_joined=3", ["n3"]),
        (("n4",), "world_size=16, worker_count=8", []),
        (("n2", "n3", "n4"), "world_size=16, worker_count=4", []),
    ],
    ids=["a host's ranks", "one rank a host", "others are missing too", "all but the first"],
)
def test_the_barrier_counts_as_many_missing(
    tmp_path: Path, hosts: tuple[str, ...], barrier: str, named: list[str]
) -> None:
    """The run was cancelled while it waited."""
    verdict = tried(tmp_path, hosts=hosts, barrier=barrier, state="CANCELLED by 1001")

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("C1", named)


def labelled(
    folder: Path,
    count: int,
    why: str = "errno: 110 - Connection timed out",
    tasks: tuple[int, ...] = (3,),
    gpus: int = 32,
    behind: str = "",
) -> Verdict:
    """One log of four tasks, none of whose tries is dated, of a run that goes since 45 minutes."""
    lines = [f"{task}: {BEGAN:%Y-%m-%d %H:%M:%S} waiting for the group" for task in range(4)]
    for n in range(count):
        lines += ["", f"{tasks[n % len(tasks)]}: [W socket.cpp:697] [c10d] The client socket has"
                  f" failed to connect to [n1]:29533 ({why})."]  # fmt: skip
    (folder / "job.out").write_text("\n".join(lines) + "\n" + behind)
    (folder / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|Elapsed|NNodes|NodeList|AllocTRES\n"
        "4|llm|TIMEOUT|0:0|2026-01-15T09:30:00|2026-01-15T10:15:00|00:45:00|4|n[1-4]|"
        f"cpu=64,gres/gpu={gpus},node=4\n"
    )
    return diagnose(collect(Request((str(folder),))))


def test_tries_without_a_time_that_fill_the_run(tmp_path: Path) -> None:
    """Eight processes give up a try each 127 s."""
    verdict = labelled(tmp_path, 160)

    assert (verdict.code, [place.task for place in verdict.culprits]) == ("C1", [3])
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (60, {}),
        (400, {}),
        (160, {"why": "errno: 111 - Connection refused"}),
        (160, {"tasks": (2, 3)}),
        (160, {"gpus": 4}),
        (160, {"behind": "0: loading the data set\n" * 9}),
    ],
    ids=["over before", "too many", "refused at once", "several tasks", "one process", "others"],
)
def test_tries_that_may_have_been_over(
    tmp_path: Path, count: int, told: dict[str, str | int | tuple[int, ...]]
) -> None:
    assert labelled(tmp_path, count, **told).code != "C1"  # type: ignore[arg-type]


MASTER = "LAUNCH WARNING {at:%Y-%m-%d %H:%M:%S},310 master not ready n1:41020, wait 3 sec to retry"


@pytest.mark.parametrize(
    ("minutes", "behind", "code"),
    [(25, "", "C1"), (4, "", None), (25, STEPS, None)],
    ids=["to the end", "for minutes", "steps follow"],
)
def test_a_master_that_is_never_ready(
    tmp_path: Path, minutes: int, behind: str, code: str | None
) -> None:
    tries = [MASTER.format(at=BEGAN + timedelta(minutes=minute)) for minute in range(minutes)]
    (tmp_path / "node1.log").write_text(
        "\n".join(["LAUNCH INFO nnodes: 2", *tries]) + "\n" + behind
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code if verdict.code == "C1" else None) == code
    assert verdict.confidence < 0.8


AWAITED = "Cannot connect to remote server 10.4.0.7:30050. Wait to retry [client {}]"
STOPPED = (
    "^CTraceback (most recent call last):\n"
    '  File "/opt/dgl/distributed/rpc_client.py", line 158, in {}\n'
    "    time.sleep(3)\n"
    "KeyboardInterrupt\n"
)


def awaited(folder: Path, *, seconds: int = 200, within: str = "connect_to_server",
            behind: str = "") -> Verdict:  # fmt: skip
    """Trainers that ask for a server of their graph, until somebody stops one of them."""
    times = (BEGAN + timedelta(seconds=at) for at in range(0, seconds, 3))
    lines = [f"{BEGAN:%Y-%m-%d %H:%M:%S} launching"]
    lines += [f"[{at:%H:%M:%S}] rpc.cc:161: {AWAITED.format(at.second % 4)}" for at in times]
    end = f"{BEGAN + timedelta(seconds=seconds + 40):%Y-%m-%d %H:%M:%S} INFO stop launcher\n"
    text = "\n".join(lines) + "\n" + behind + STOPPED.format(within) + end
    (folder / "job.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def test_somebody_stopped_it_where_it_connects(tmp_path: Path) -> None:
    verdict = awaited(tmp_path)

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("C1", ["10.4.0.7"])
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    "other",
    [
        {"seconds": 60},
        {"within": "load_partition"},
        {"behind": "".join(f"step {n} loss {3 - n / 50:.3f}\n" for n in range(40))},
        {"behind": "".join(f"[client] loads block {n}\n" for n in range(40))},
    ],
    ids=["at once", "in another call", "training began", "it went on to load"],
)
def test_stopped_otherwise(tmp_path: Path, other: dict[str, Any]) -> None:
    assert awaited(tmp_path, **other).code != "C1"


def endpoints(
    folder: Path,
    tries: int,
    addresses: str = "'n7:6170', 'n7:6171'",
    within: str = "wait_server_ready",
    behind: str = "",
) -> Verdict:
    """Rank 0 of Paddle's, which waits for the ranks of another host, until somebody stops it."""
    said = f"server not ready, wait 3 sec to retry...\nnot ready endpoints:[{addresses}]\n"
    head = f"LAUNCH INFO {BEGAN:%Y-%m-%d %H:%M:%S},120 nnodes: 2\n"
    stopped = STOPPED.format(within) if within else ""
    (folder / "workerlog.0").write_text(head + said * tries + behind + stopped)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("tries", "other", "named"),
    [
        (70, {}, ["n7"]),
        (70, {"addresses": "'n7:6170', 'n9:6170'"}, ["n7", "n9"]),
        (70, {"addresses": "'127.0.0.1:6170', '127.0.0.1:6171'"}, []),
        (400, {"addresses": "'n7:6170'"}, ["n7"]),
        (250, {"within": ""}, ["n7"]),
    ],
    ids=["one host", "two", "this one", "one rank", "to the end"],
)
def test_ranks_that_are_never_ready(
    tmp_path: Path, tries: int, other: dict[str, str], named: list[str]
) -> None:
    """Each try is 3 s behind the one before, though none is dated."""
    verdict = endpoints(tmp_path, tries, **other)

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("C1", named)
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    ("tries", "other"),
    [
        (20, {}),
        (70, {"addresses": "'n7:6170'"}),
        (70, {"within": "train"}),
        (70, {"within": ""}),
        (70, {"behind": STEPS}),
        (250, {"within": "", "behind": "W0115 09:40:00 9 device_context.cc:3] device: 0\n" * 9}),
    ],
    ids=["for a minute", "eight processes, for half of one", "in another call", "the log ends",
         "steps follow", "they came"],
)  # fmt: skip
def test_ranks_that_may_come(tmp_path: Path, tries: int, other: dict[str, str]) -> None:
    assert endpoints(tmp_path, tries, **other).code != "C1"


def session(folder: Path, minutes: int, behind: str = "") -> Verdict:
    """A worker of a TensorFlow cluster, whose master asks a task each 10 s to answer."""
    lines = [f"{BEGAN:%Y-%m-%d %H:%M:%S}.5: I grpc_server_lib.cc:39] Started server with target"]
    for n in range(6 * minutes):
        at = BEGAN + timedelta(seconds=10 * n + 10)
        lines.append(
            f"{at:%Y-%m-%d %H:%M:%S}.123456: I tensorflow/core/distributed_runtime/master.cc:221]"
            " CreateSession still waiting for response from worker: /job:ps/replica:0/task:1"
        )
    (folder / "worker.log").write_text("\n".join(lines) + "\n" + behind)
    return diagnose(collect(Request((str(folder),))))


def test_a_task_that_never_answers(tmp_path: Path) -> None:
    verdict = session(tmp_path, 25)
    assert (verdict.code, verdict.confidence < 0.8) == ("C1", True)


@pytest.mark.parametrize(("minutes", "behind"), [(3, ""), (25, STEPS)], ids=["soon", "it came"])
def test_a_task_that_may_answer(tmp_path: Path, minutes: int, behind: str) -> None:
    assert session(tmp_path, minutes, behind).code != "C1"
