"""`kubectl get pods -o wide`, and hosts that logs know by their pods."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.errors import FormatError
from flatline.parsers import kubectl_pods

WIDE = b"""\
$ kubectl get pods -o wide
NAME             READY   STATUS      RESTARTS      AGE    IP            NODE     NOMINATED NODE
train-worker-0   0/1     Error       0             137m   10.244.0.17   wk1      <none>
train-worker-1   0/1     OOMKilled   2 (5h ago)    137m   10.244.1.18   wk2      <none>
train-worker-2   0/1     Pending     0             137m   <none>        <none>   <none>
"""
SPACES = b"""\
NAMESPACE   NAME             READY   STATUS    RESTARTS   AGE   IP            NODE
a           train-worker-0   1/1     Running   0          1h    10.244.0.17   wk1
b           train-worker-0   1/1     Running   0          1h    10.244.5.17   wk5
b           eval-0           1/1     Running   0          1h    10.244.0.17   wk6
"""


def test_pods_and_their_addresses_by_node() -> None:
    """A pod that runs nowhere yet has none."""
    assert kubectl_pods.recognise("pods.txt", WIDE)
    assert kubectl_pods.parse(WIDE, "pods.txt").addresses == {
        "train-worker-0": "wk1",
        "10.244.0.17": "wk1",
        "train-worker-1": "wk2",
        "10.244.1.18": "wk2",
    }
    assert kubectl_pods.resolve(WIDE, "row 2, NODE") == "wk2"


def test_how_pods_fare() -> None:
    """Each cites the cell of its status."""
    pods = kubectl_pods.parse(WIDE, "pods.txt").pods

    assert [(pod.name, pod.status, pod.node) for pod in pods] == [
        ("train-worker-0", "Error", "wk1"),
        ("train-worker-1", "OOMKilled", "wk2"),
        ("train-worker-2", "Pending", None),
    ]
    assert [kubectl_pods.resolve(WIDE, pod.cite.pointer) for pod in pods] == [
        pod.status for pod in pods
    ]


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("45s", 45), ("137m", 8220), ("5h32m", 19_920), ("2d4h", 187_200), ("3y10d", 95_472_000),
     ("<unknown>", None), ("", None), ("5h ago", None)],
)  # fmt: skip
def test_how_old_a_pod_is(told: str, seconds: int | None) -> None:
    table = WIDE.replace(b"137m ", told.encode() or b"<none>", 1)

    assert kubectl_pods.parse(table, "pods.txt").pods[0].age_s == seconds


@pytest.mark.parametrize(
    "above",
    [b"$ date -u\nWed Jun 18 22:19:50 UTC 2025\n$ kubectl get pods -o wide\n",
     b"me@login:~$ date\nThu 19 Jun 2025 00:19:50 AM CEST\n",
     b"$ date -u; kubectl -n ml get pods -l job=train -o wide\nWed Jun 18 22:19:50 UTC 2025\n",
     b"$ date && kubectl get pods -o wide\nWed Jun 18 22:19:50 UTC 2025\n",
     b"# 2025-06-18T22:19:50Z\n",
     b"# collected 2025-06-18T22:19:50Z\n# by cron\n",
     b"# Wed Jun 18 22:19:50 UTC 2025\n",
     b"2025-06-18 22:19:50+00:00\n"],
)  # fmt: skip
def test_the_time_above_the_table(above: bytes) -> None:
    """As it is asked for before the pods are listed, or a script notes it."""
    rows = WIDE[WIDE.index(b"NAME") :]
    assert kubectl_pods.recognise("pods.txt", above + rows)
    told, bare = (kubectl_pods.parse(table, "pods.txt") for table in (above + rows, WIDE))
    assert (told.pods, told.addresses) == (bare.pods, bare.addresses)


@pytest.mark.parametrize(
    ("above", "noted"),
    [
        (b"# 2025-06-18T22:19:50Z\n", True),
        (b"collected 2025-06-18T22:19:50Z\n\n", True),
        (b"=== 2025-06-19 00:19:50+02:00 ===\n", True),
        (b"$ date -u +%FT%TZ; kubectl -n ml get pods -o wide\n2025-06-18T22:19:50Z\n", True),
        (
            b"$ date -u; kubectl get pods -n ml -o wide | grep -e NAME -e job-7\n"
            b"Wed Jun 18 22:19:50 UTC 2025\n",
            True,
        ),
        (b"$ date\nThu Jun 19 00:19:50 CEST 2025\n", False),
        (b"$ date\nThu Jun 39 00:19:50 UTC 2025\n", False),
        (b"# 2025-06-18 22:19:50\n", False),
    ],
)
def test_the_time_that_was_noted_above_the_table(above: bytes, noted: bool) -> None:
    """A moment only where its zone stands there."""
    table = above + WIDE[WIDE.index(b"NAME") :]
    told = kubectl_pods.parse(table, "pods.txt")

    assert kubectl_pods.recognise("pods.txt", table)
    assert told.now == (datetime(2025, 6, 18, 22, 19, 50, tzinfo=UTC) if noted else None)
    assert told.pods == kubectl_pods.parse(WIDE, "pods.txt").pods


def test_a_line_of_a_log_is_no_time_above_a_table() -> None:
    """Something is said behind its stamp."""
    rows = WIDE[WIDE.index(b"NAME") :]
    assert not kubectl_pods.recognise("x.log", b"2025-06-18T22:19:50Z step 1 loss 2.0\n" + rows)


def test_what_stands_on_two_nodes_tells_neither() -> None:
    """The same name in two namespaces, and an address that was given anew."""
    assert kubectl_pods.parse(SPACES, "pods.txt").addresses == {
        "10.244.5.17": "wk5",
        "eval-0": "wk6",
    }


@pytest.mark.parametrize(
    "text",
    [
        b"NAME      READY   STATUS    RESTARTS   AGE\ntrain-0   1/1     Running   0          1h\n",
        b"NAME   STATUS   ROLES    AGE   VERSION\nwk1    Ready    <none>   9d    v1.31.1\n",
        b"step 1 loss 2.0\nNAME   READY   STATUS   NODE\n",
    ],
)
def test_what_is_no_table_of_pods_and_nodes(text: bytes) -> None:
    """Without `-o wide`, of nodes, or within a log."""
    assert not kubectl_pods.recognise("pods.txt", text)
    with pytest.raises(FormatError):
        kubectl_pods.parse(text, "pods.txt")


GREP = b"$ date -u; kubectl -n ml get pods -o wide | grep train-worker\n"


@pytest.mark.parametrize("above", [b"", GREP + b"Wed Jun 18 22:19:50 UTC 2025\n"])
@pytest.mark.parametrize(("table", "name"), [(WIDE, "NAME"), (SPACES, "NAMESPACE")])
def test_rows_without_their_header(above: bytes, table: bytes, name: str) -> None:
    """As `grep` leaves them, or `--no-headers`."""
    rows = table[table.index(name.encode()) :].split(b"\n", 1)[1]
    told, headed = (kubectl_pods.parse(one, "pods.txt") for one in (above + rows, table))

    assert kubectl_pods.recognise("pods.txt", above + rows)
    assert told.addresses == headed.addresses
    assert told.pods == headed.pods
    assert kubectl_pods.resolve(above + rows, "row 2, NODE") == "wk2" or table is SPACES


@pytest.mark.parametrize(
    "text",
    [
        b"train-0   1/1     Running   0          1h\n",
        b"epoch   3/10   Train   0   12m   0.5   3.2\n",
        b"step 1 loss 2.0\ntrain-0   1/1   Running   0   1h   10.2.0.1   wk1   <none>   <none>\n",
    ],
    ids=["narrow", "a log's", "within a log"],
)
def test_what_is_no_row_of_pods_and_nodes(text: bytes) -> None:
    assert not kubectl_pods.recognise("pods.txt", text)
    with pytest.raises(FormatError):
        kubectl_pods.parse(text, "pods.txt")


STEPS = "".join(
    f"2026-11-16T10:{n // 6:02d}:{n % 6}0.000000Z step {n * 10}/4000 loss {8 - n * 0.05:.3f}\n"
    for n in range(1, 120)
)
KILLED = """\
2026-11-16T10:20:00.000000Z torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
2026-11-16T10:20:00.000000Z Root Cause (first observed failure):
2026-11-16T10:20:00.000000Z   host      : train-worker-1
2026-11-16T10:20:00.000000Z   rank      : 8 (local_rank: 0)
2026-11-16T10:20:00.000000Z   exitcode  : -9 (pid: 211)
2026-11-16T10:20:00.000000Z   traceback : Signal 9 (SIGKILL) received by PID 211
"""


@pytest.mark.parametrize(("table", "host"), [(WIDE, "wk2"), (SPACES, "train-worker-1")])
def test_a_pod_in_a_log_is_named_by_its_node(tmp_path: Path, table: bytes, host: str) -> None:
    """One that the table does not hold keeps its own name."""
    (tmp_path / "train-worker-0.log").write_text(STEPS + KILLED)
    (tmp_path / "pods.txt").write_bytes(table)

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("A2", [host])
