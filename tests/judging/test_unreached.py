"""The host that alone could not reach the rendezvous."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
    "44|gpt|FAILED|1:0|2026-03-04T08:00:00|2026-03-04T08:20:00|4|n[1-4]\n"
)
LOST = (
    "torch.distributed.DistNetworkError: failed to recv, got 0 bytes. Connection was likely"
    " closed. Did the remote server shutdown or crash?\n"
)
CANNOT = (
    "[W304 08:00:15.797130470 socket.cpp:752] [c10d] The client socket has failed to connect to"
    " [n1]:29500 (errno: 113 - No route to host).\n"
    "torch.distributed.DistNetworkError: The client socket has timed out after 900000ms while"
    " trying to connect to (n1, 29500).\n"
)


def judged(folder: Path, logs: dict[str, str]) -> Verdict:
    for host, text in logs.items():
        (folder / f"torchrun_{host}.log").write_text(f"starting\n{text}")
    (folder / "sacct.psv").write_text(SACCT)
    return diagnose(collect(Request((str(folder),))))


def missing(came: int) -> str:
    return (
        "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients."
        f" {came}/4 clients joined.\n"
    )


def test_the_one_of_which_all_others_came(tmp_path: Path) -> None:
    """As many are missing as could not connect."""
    verdict = judged(tmp_path, {"n1": missing(3), "n2": LOST, "n3": CANNOT, "n4": LOST})

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == ["n3"]


@pytest.mark.parametrize(
    "logs",
    [
        {"n1": missing(2), "n2": LOST, "n3": CANNOT, "n4": "waits\n"},
        {"n1": missing(1), "n2": CANNOT, "n3": CANNOT, "n4": CANNOT},
        {"n3": CANNOT},
    ],
    ids=["another is missing as well", "none could connect", "the others' logs were not read"],
)
def test_near_misses_name_nobody(tmp_path: Path, logs: dict[str, str]) -> None:
    """The address may be wrong, or another never started."""
    verdict = judged(tmp_path, logs)

    assert (verdict.code, verdict.culprits) == ("C1", ())


@pytest.mark.parametrize(
    ("hosts", "came", "named"),
    [((1, 2, 3), 8, ["n3"]), ((1, 2, 3), 4, []), ((1, 3), 4, [])],
    ids=["one of three", "two of three were missing", "one of two"],
)
def test_one_host_of_few(
    tmp_path: Path, hosts: tuple[int, ...], came: int, named: list[str]
) -> None:
    """Two that came had to reach one another; of two hosts either may be cut off."""
    listed = ",".join(map(str, hosts))
    tries = "".join(
        f"[W0304 08:{n:02d}:15.797130 socket.cpp:752] [c10d] The client socket has failed to"
        " connect to [n1]:29500 (errno: 113 - No route to host).\n" for n in range(16)
    )  # fmt: skip
    waits = missing(came).replace("/4 clients", f"/{4 * len(hosts)} clients")
    for n in hosts:
        (tmp_path / f"torchrun_n{n}.log").write_text(tries + CANNOT if n == 3 else waits)
    (tmp_path / "sacct.psv").write_text(SACCT.replace("|4|n[1-4]", f"|{len(hosts)}|n[{listed}]"))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("C1", named)


def test_a_host_that_a_line_names_itself(tmp_path: Path) -> None:
    """Of ranks that print into one log."""
    waits = (
        "INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize"
        " process group for rank: 0, key: store_based_barrier_key:1 (world_size=8,"
        " num_workers_joined=6, timeout=0:30:00)\n"
    )
    gave_up = (
        "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for"
        " key: store_based_barrier_key:1 (world_size=8, worker_count=6, timeout=0:30:00)\n"
    )
    told = CANNOT.replace("[W304", "n3: [W304").replace("torch.dist", "n3: torch.dist")
    (tmp_path / "slurm-44.out").write_text(20 * waits + told + gave_up)
    (tmp_path / "sacct.psv").write_text(SACCT)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == ["n3"]


NO_ROUTE = "".join(f"{{host}}: {line}\n" for line in CANNOT.splitlines())
GAVE_UP = (
    "{host}: Traceback (most recent call last):\n"
    "{host}: torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n"
)


@pytest.mark.parametrize(
    ("cannot", "waited", "named"),
    [
        (("n3",), ("n1", "n2", "n4"), ["n3"]),
        (("n3",), ("n1", "n2"), []),
        (("n3",), ("n1", "n2", "n3", "n4"), []),
        (("n3", "n4"), ("n1", "n2"), []),
    ],
    ids=["all others waited", "one was not heard of", "it waited as well", "half of them"],
)
def test_the_others_waited_at_the_rendezvous(
    tmp_path: Path, cannot: tuple[str, ...], waited: tuple[str, ...], named: list[str]
) -> None:
    """A count of those that came is not printed there: who gave up waiting was there."""
    text = "".join(NO_ROUTE.format(host=host) for host in cannot)
    text += "".join(GAVE_UP.format(host=host) for host in waited)
    (tmp_path / "slurm-44.out").write_text(text)
    (tmp_path / "sacct.psv").write_text(SACCT)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("C1", named)


PODS = "NAME               READY   STATUS   RESTARTS   AGE   IP           NODE\n" + "".join(
    f"trainer-worker-{n}   0/1     Error    0          30m   10.4.3.{n}    pool-9c{n}a\n"
    for n in range(8)
)


@pytest.mark.parametrize(("came", "named"), [(7, ["pool-9c6a"]), (6, []), (3, [])])
def test_the_one_agent_that_is_missing(tmp_path: Path, came: int, named: list[str]) -> None:
    """Its log is named after its pod, and the logs of most others were not kept."""
    waits = missing(came).replace("/4 clients", "/8 clients")
    (tmp_path / "worker-0.log").write_text(waits)
    (tmp_path / "worker-6.log").write_text(CANNOT)
    (tmp_path / "pods.txt").write_text(PODS)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("C1", named)


REGISTERED = (
    "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id:"
    " [Init]Wait_for_all_tasks_to_register::0. This usually happens because a task triggered it"
    " too early.\n# of tasks that reached the barrier: {}/4.\nThe first task at the barrier:"
    " /job:jax_worker/replica:0/task:0. Some timed out task names:\n{}"
)
TASK = "/job:jax_worker/replica:0/task:{}\n"


def in_one(folder: Path, text: str) -> Verdict:
    (folder / "slurm-44.out").write_text(text)
    (folder / "sacct.psv").write_text(SACCT)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        (REGISTERED.format(3, TASK.format(2)), ["n3"]),
        (REGISTERED.format(2, TASK.format(2) + TASK.format(3)), []),
        (REGISTERED.format(2, TASK.format(2)), []),
        (REGISTERED.format(3, TASK.format(2)) + REGISTERED.format(3, TASK.format(1)), []),
    ],
    ids=["one", "half of them", "not all are named", "others say others"],
)
def test_tasks_that_the_barrier_of_jax_names(tmp_path: Path, text: str, hosts: list[str]) -> None:
    """One task a node: Slurm numbers them in the order of its nodes."""
    verdict = in_one(tmp_path, text)

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == hosts


def test_many_tasks_of_one_host(tmp_path: Path) -> None:
    """Whose logs say which task each is of, and where it runs."""
    told = "".join(TASK.format(n) for n in (12, 13, 14, 15))
    for n in range(16):
        head = f"train.py:61] jax 0.4.35, task {n}/16 on n{1 + n // 4}\n"
        last = (
            "Traceback (most recent call last):\n"
            '  File "/opt/jax/lib/python3.11/site-packages/jax/_src/distributed.py", line 122, in'
            " initialize\n    self.client.connect()\n"
            "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: failed to connect to all"
            " addresses; last error: UNKNOWN: ipv4:10.0.0.4:52388: connect: No route to host\n"
            if n >= 12
            else REGISTERED.format(12, told).replace("12/4", "12/16")
        )
        (tmp_path / f"gc.{n}.log").write_text(head + last)
    (tmp_path / "sacct.psv").write_text(SACCT)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "C1"
    assert {place.host for place in verdict.culprits} == {"n4"}
    assert [place.task for place in verdict.culprits] == [12, 13, 14, 15]


def labelled(*tasks: int) -> str:
    return "".join(f"{n}: {missing(3) if n == 0 else LOST}" for n in tasks)


def srun(*tasks: int) -> str:
    return "".join(f"srun: error: n{n + 1}: task {n}: Exited with exit code 1\n" for n in tasks)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        (labelled(0, 1, 3) + srun(0, 1, 3), ["n3"]),
        (missing(3) + srun(0, 1, 3), ["n3"]),
        (labelled(0, 1, 3), ["n3"]),
        (labelled(0, 1), []),
        (missing(3) + srun(0, 1), []),
        (labelled(0, 1, 2, 3) + srun(0, 1, 2, 3), []),
        (missing(2) + srun(0, 1, 3), []),
    ],
    ids=["by both", "by srun", "by labels", "two are silent", "two did not end", "all gave up",
         "more are missing"],
)  # fmt: skip
def test_who_alone_did_not_give_up(tmp_path: Path, text: str, hosts: list[str]) -> None:
    """Who came gives up when the rendezvous does."""
    verdict = in_one(tmp_path, text)

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == hosts


def ranks(*places: tuple[int, int], came: int = 12) -> str:
    return "".join(f"{task}: [rank{rank}]: {missing(came).replace('/4', '/16')}"
                   for task, rank in places)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        (ranks((0, 0), (1, 4), (3, 12)), ["n3"]),
        (ranks((0, 0), (0, 1), (1, 4), (1, 5), (3, 12)), ["n3"]),
        (ranks((0, 0), (1, 4), (3, 12), came=13), []),
        (ranks((0, 0), (1, 1), (3, 3)), []),
        (ranks((0, 0), (1, 4)), []),
    ],
    ids=["one of each node", "several of a node", "fewer are missing", "a task for each rank",
         "two are silent"],
)  # fmt: skip
def test_whose_launcher_never_brought_its_ranks(
    tmp_path: Path, text: str, hosts: list[str]
) -> None:
    """A labelled task of each node starts as many ranks as the others."""
    verdict = in_one(tmp_path, text)

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == hosts


@pytest.mark.parametrize(
    ("head", "hosts"),
    [
        ("[2026-03-04 08:00:00] node 2 n3: starting torchrun --master_addr=n1\n", ["n3"]),
        ("# pod gpt-worker-1 on node n3\n", ["n3"]),
        ("[2026-03-04 08:00:00] starting torchrun --master_addr=n1\n", []),
        ("nodes: n1 n2 n3 n4\n", []),
        ("n3: ready\nn1: ready\n", []),
        ("host n3 connects to n1\n", ["n3"]),
    ],
)
def test_a_log_whose_head_says_where_it_is(tmp_path: Path, head: str, hosts: list[str]) -> None:
    """And not whom it connects to."""
    (tmp_path / "0.log").write_text(missing(3))
    (tmp_path / "2.log").write_text(head + CANNOT)
    (tmp_path / "sacct.psv").write_text(SACCT)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == hosts


@pytest.mark.parametrize(
    ("ended", "hosts"), [((0, 1, 3), ["n3"]), ((0, 1), []), ((0, 1, 2, 3), [])]
)
def test_the_others_gave_up_behind_the_launchers_word(
    tmp_path: Path, ended: tuple[int, ...], hosts: list[str]
) -> None:
    """Where that word names no host, srun does."""
    waited = "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n"
    (tmp_path / "node_n3.err").write_text(CANNOT)
    (tmp_path / "slurm-44.out").write_text(srun(2) + waited + srun(*ended))
    (tmp_path / "sacct.psv").write_text(SACCT)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == hosts


def tried(host: str, minute: int) -> str:
    return (
        f"{host}: [W304 08:{minute:02d}:07 socket.cpp:758] [c10d] The IPv6 network addresses"
        " of (n1, 29511) cannot be retrieved (gai error: -3 - Temporary failure in name"
        " resolution).\n"
    )


@pytest.mark.parametrize(
    ("retries", "came", "hosts"),
    [
        ({"n3": 14}, 12, ["n3"]),
        ({"n3": 14}, 8, []),
        ({"n3": 14, "n4": 14}, 12, []),
        ({"n3": 1}, 12, []),
        ({"n3": 4}, 12, []),
    ],
    ids=[
        "alone",
        "more are missing",
        "another tries as well",
        "it tried once",
        "the store came late, another host never did",
    ],
)
def test_who_alone_tries_again_and_again(
    tmp_path: Path, retries: dict[str, int], came: int, hosts: list[str]
) -> None:
    """All hosts in one log, each line behind the name of its host."""
    lines = [tried(host, minute) for host, count in retries.items() for minute in range(count)]
    end = (
        "n1: torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients."
        f" {came}/16 clients joined.\n"
    )
    (tmp_path / "job.log").write_text("n2: starting\n" + "".join(lines) + end)
    (tmp_path / "sacct.psv").write_text(SACCT)

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == hosts


@pytest.mark.parametrize(
    ("others", "hosts"),
    [("tasks 1-2,4-5", ["p3"]), ("tasks 1-2,5", [])],
    ids=["all of them", "one is not heard of"],
)
def test_tasks_that_srun_counts_where_no_record_names_the_hosts(
    tmp_path: Path, others: str, hosts: list[str]
) -> None:
    """One launcher a node in one log: one could not connect, the others gave up to wait."""
    on = "p[2,4-6]" if hosts else "p[2,4-5]"
    (tmp_path / "job.log").write_text(
        "[p3] torch.distributed.DistNetworkError: The client socket has timed out after 900000ms"
        " while trying to connect to (p1, 29611).\n"
        "srun: error: p3: task 3: Exited with exit code 1\n"
        "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n"
        "srun: error: p1: task 0: Exited with exit code 1\n"
        f"srun: error: {on}: {others}: Exited with exit code 1\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == hosts


VISU = SACCT.replace("n[1-4]", "visu[03,05,07-08]")
STARTED = "host {}: python train.py --dist-url tcp://visu03:29517\n"
AGAIN = (
    "[W304 08:{minute:02d}:07.097130470 socket.cpp:752] [c10d] The client socket has failed to"
    " connect to [visu03]:29517 (errno: 113 - No route to host).\n"
)
VALIDATES = (
    "[W304 08:{minute:02d}:07.097130470 TCPStore.cpp:346] [c10d] TCP client failed to"
    " connect/validate to host visu03:29517 - retrying (try={minute}, timeout=900000ms,"
    " delay=60000ms): Connection reset by peer\n"
)
ADDRESSES = (
    "[W304 08:{minute:02d}:07.097130470 socket.cpp:758] [c10d] The IPv6 network addresses of"
    " (visu03, 29517) cannot be retrieved (gai error: -3 - Temporary failure in name"
    " resolution).\n"
)


def logs_of(folder: Path, tries: dict[str, str], line: str, came: int = 3) -> Verdict:
    """Logs that are not named after hosts: of the head, and of those that try for 14 minutes."""
    (folder / "0.log").write_text(STARTED.format("visu03") + missing(came))
    for n, (head, text) in enumerate(tries.items(), 1):
        again = "".join(line.format(minute=minute) for minute in range(14))
        (folder / f"{n}.log").write_text(head + (again if text == "tries" else text))
    (folder / "sacct.psv").write_text(VISU)
    return diagnose(collect(Request((str(folder),))))


OTHERS = {STARTED.format("visu05"): LOST, STARTED.format("visu08"): LOST}


@pytest.mark.parametrize("line", [AGAIN, VALIDATES, ADDRESSES], ids=["socket", "store", "address"])
def test_who_tries_is_told_by_the_first_line_of_its_log(tmp_path: Path, line: str) -> None:
    """And is never the host that it connects to."""
    verdict = logs_of(tmp_path, {STARTED.format("visu07"): "tries", **OTHERS}, line)

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == ["visu07"]


@pytest.mark.parametrize(
    ("tries", "came"),
    [
        ({"python train.py --dist-url tcp://visu03:29517\n": "tries", **OTHERS}, 3),
        ({"started with tcp://visu07:29517 tcp://visu03:29517\n": "tries", **OTHERS}, 3),
        ({STARTED.format("visu07"): "tries", **OTHERS}, 2),
        ({STARTED.format("visu07"): "tries", STARTED.format("visu08"): "tries"}, 3),
    ],
    ids=["it says nothing of itself", "only in URLs", "more are missing", "another tries as well"],
)
def test_near_misses_of_who_tries(tmp_path: Path, tries: dict[str, str], came: int) -> None:
    verdict = logs_of(tmp_path, tries, AGAIN, came)

    assert (verdict.code, verdict.culprits) == ("C1", ())


def gave_up(minute: int) -> str:
    return (
        f"E0304 08:{minute:02d}:09.118000 812 torch/distributed/elastic/multiprocessing/errors]\n"
        "Traceback (most recent call last):\n"
        '  File "/env/bin/torchrun", line 8, in <module>\n'
        "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n"
    )


@pytest.mark.parametrize(
    ("tries", "silent", "hosts"),
    [
        ({"n3": range(1, 15)}, None, ["n3"]),
        ({"n3": range(1, 4)}, None, []),
        ({"n3": range(1, 15)}, "n2", []),
        ({"n2": range(1, 15), "n3": range(1, 15)}, None, []),
        ({"n2": range(1, 4), "n3": range(1, 15)}, "n2", []),
    ],
    ids=["alone", "soon no more", "another was not heard of", "half of them", "two, one briefly"],
)
def test_who_tries_until_the_others_give_up(
    tmp_path: Path, tries: dict[str, range], silent: str | None, hosts: list[str]
) -> None:
    """Where nobody counts who came."""
    logs = {
        host: "".join(AGAIN.format(minute=minute) for minute in tries[host])
        if host in tries
        else gave_up(16)
        for host in ("n1", "n2", "n3", "n4")
    }
    if silent is not None and silent not in tries:
        logs[silent] = "waits\n"
    verdict = judged(tmp_path, logs)

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == hosts


def registered(came: int, without: set[int]) -> dict[str, str]:
    """Four ranks a host that say that they go there, and what rank 0 is told of the count."""
    logs = {}
    for n in range(4):
        logs[f"n{n + 1}"] = "".join(
            f"Initializing distributed: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/16\n"
            for rank in range(4 * n, 4 * n + 4)
            if rank not in without
        )
    logs["n1"] += f"[rank0]: {missing(came).replace('/4', '/16')}"
    return logs


def test_the_ranks_that_alone_did_not_say_that_they_went(tmp_path: Path) -> None:
    verdict = judged(tmp_path, registered(12, set(range(8, 12))))

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == ["n3"]


@pytest.mark.parametrize(
    "said",
    [
        "dist.py:41 rank {rank}/16 local_rank {local} on {host}: init_process_group(nccl) ...\n",
        "{host}: | distributed init (rank {rank}): env://, gpu {local}\n",
        "[{host}] setting up the process group, world size 16, rank={rank}\n",
    ],
)
@pytest.mark.parametrize(("came", "hosts"), [(12, ["n3"]), (11, [])])
def test_ranks_that_say_in_their_own_words_that_they_went(
    tmp_path: Path, said: str, came: int, hosts: list[str]
) -> None:
    """All ranks of one host are missing, as many as the count lacks."""
    logs = {}
    for n in range(4):
        host = f"n{n + 1}"
        logs[host] = (
            ""
            if n == 2
            else "".join(
                said.format(rank=4 * n + local, local=local, host=host) for local in range(4)
            )
        )
    logs["n1"] += f"[rank0]: {missing(came).replace('/4', '/16')}"
    logs["n3"] = "staging the environment\n"
    verdict = judged(tmp_path, logs)

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == hosts


@pytest.mark.parametrize(
    ("came", "without"),
    [(11, set(range(8, 12))), (8, set(range(8, 16)))],
    ids=["another one did not come either", "half of them"],
)
def test_ranks_that_are_not_all_that_was_waited_for(
    tmp_path: Path, came: int, without: set[int]
) -> None:
    verdict = judged(tmp_path, registered(came, without))

    assert (verdict.code, verdict.culprits) == ("C1", ())


@pytest.mark.parametrize(
    ("came", "hosts"), [(24, ["n4"]), (16, []), (25, [])], ids=["its ranks", "two hosts'", "some"]
)
def test_the_host_of_a_pod_whose_gpus_were_read(
    tmp_path: Path, came: int, hosts: list[str]
) -> None:  # fmt: skip
    """No record names the hosts, and one log its own alone."""
    failed = (
        "      host      : n1\n      rank      : 0 (local_rank: 0)\n      exitcode  : 1 (pid: 7)\n"
    )
    texts = [missing(came).replace("/4", "/32") + "Root Cause (first observed failure):\n[0]:\n"
             + failed, LOST, LOST, CANNOT.replace("[n1]:29500", "[lm-old-0]:29500")]  # fmt: skip
    for n, text in enumerate(texts):
        (tmp_path / f"lm-worker-{n}.log").write_text(f"starting\n{text}")
    (tmp_path / "metrics.prom").write_text("\n".join(
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="{gpu}",Hostname="n{n + 1}",pod="lm-worker-{n}"}} 90 {at}'
        for n in range(4) for gpu in range(8)
        for at in range(1772611200000, 1772611500000, 30_000)
    ) + "\n")  # fmt: skip
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits if place.host] == hosts


def cut_off(folder: Path, lines: int, first: str, came: int = 8) -> Verdict:
    """Three hosts of four tasks; of one all could not connect, and no line says where."""
    unreached = (
        "torch.distributed.DistNetworkError: The client socket has timed out after 1800s while"
        " trying to connect to (n1, 29500).\n"
    )
    ends = (
        "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients."
        f" {came}/12 clients joined.\n{first}"
        "srun: error: n1: tasks 0-3: Exited with exit code 1\n"
        "srun: error: n2: tasks 4-7: Terminated\n"
    )
    (folder / "slurm-44.out").write_text("starting\n" + unreached * lines + ends)
    (folder / "sacct.psv").write_text(SACCT.replace("|4|n[1-4]", "|3|n[1-3]"))
    return diagnose(collect(Request((str(folder),))))


THIRD = "srun: error: n3: tasks 8-11: Exited with exit code 1\n"


@pytest.mark.parametrize(
    ("lines", "first", "came", "named"),
    [
        (4, THIRD, 8, ["n3"]),
        (3, THIRD, 8, []),
        (4, THIRD, 6, []),
        (4, THIRD.replace("8-11", "8-9"), 8, []),
    ],
    ids=["all of one host", "one of it connected", "others are missing", "two ended"],
)
def test_as_many_as_could_not_connect_ended_first(
    tmp_path: Path, lines: int, first: str, came: int, named: list[str]
) -> None:
    """Nor is the host on which nobody gave up: its tasks had come, and waited."""
    verdict = cut_off(tmp_path, lines, first, came)

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == named


def labelled(folder: Path, text: str) -> Verdict:
    """One log of all tasks, and what srun says as the first ended."""
    (folder / "slurm-44.out").write_text(
        f"{text}srun: error: n1: task 0: Exited with exit code 1\n"
        "slurmstepd: error: *** STEP 44.0 ON n1 CANCELLED AT 2026-03-04T08:20:00 ***\n"
    )
    (folder / "sacct.psv").write_text(SACCT)
    return diagnose(collect(Request((str(folder),))))


STARTS = "{task}: I0304 08:00:0{n} 7 torch/distributed/launcher/api.py:194]   line {n}\n"
GIVEN_UP = "{}: torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n"


@pytest.mark.parametrize(
    ("waited", "named"), [((0, 1, 3), ["n3"]), ((0, 1), []), ((0, 1, 3, 4), [])],
    ids=["each node's agent", "one not heard", "more tasks than nodes"],
)  # fmt: skip
def test_agents_by_the_labels_of_their_tasks(
    tmp_path: Path, waited: tuple[int, ...], named: list[str]
) -> None:
    """As many as there are nodes, numbered in their order."""
    text = "".join(STARTS.format(task=task, n=n) for task in {*waited, 2} for n in range(6))
    text += "".join(f"2: {line}\n" for line in CANNOT.splitlines())
    verdict = labelled(tmp_path, text + "".join(map(GIVEN_UP.format, waited)))

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == named


@pytest.mark.parametrize(("came", "named"), [(12, ["n3"]), (8, [])])
def test_lines_of_no_process_beside_those_of_ranks(
    tmp_path: Path, came: int, named: list[str]
) -> None:
    """The count says that nobody else was missing."""
    joined = "".join(f"Initializing distributed: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/16\n"
                     for rank in range(16))  # fmt: skip
    gave_up = "".join(f"[rank{rank}]: {CANNOT.splitlines()[1]}\n" for rank in (8, 10))
    count = missing(3).replace("3/4", f"{came}/16")
    verdict = judged_in_one(tmp_path, f"{joined}{CANNOT}{gave_up}[rank0]: {count}")

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == named


def judged_in_one(folder: Path, text: str) -> Verdict:
    (folder / "slurm-44.out").write_text(
        text + "srun: error: n3: task 8: Exited with exit code 1\n"
    )
    gpus = SACCT.replace("NodeList\n", "NodeList|AllocTRES\n")
    (folder / "sacct.psv").write_text(gpus.replace("n[1-4]", "n[1-4]|gres/gpu=16,node=4"))
    return diagnose(collect(Request((str(folder),))))
