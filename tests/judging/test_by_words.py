"""Exceptions that no signature knows, whose own words tell of memory, of a peer or of storage."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

HEAD = (
    'Traceback (most recent call last):\n  File "/home/u/run.py", line 31, in <module>\n    {}\n'
)
STEPS = "".join(f"step {n} loss {5 - n / 40:.3f} 0.41 s/step\n" for n in range(1, 60))


def raised(folder: Path, text: str, *, steps: str = STEPS, call: str = "main()") -> Verdict:
    (folder / "train.log").write_text(f"{steps}{HEAD.format(call)}{text}\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("steps", [STEPS, ""])
@pytest.mark.parametrize(
    "text",
    [
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:",
        "mylib.errors.OutOfMemoryError: the batch did not fit",
        "mylib.DeviceError: allocation failed: out of memory",
        "RuntimeError: kernel launch: not enough device memory",
        "pool.PoolError: could not allocate 412 MB for the workspace",
        "Exception: GPU memory allocation failure in worker",
    ],
)
def test_short_of_memory(tmp_path: Path, text: str, steps: str) -> None:
    """It is memory, whoever says so, and not to be told surely."""
    verdict = raised(tmp_path, text, steps=steps)

    assert (verdict.code, verdict.confidence < 0.8) == ("B1", True)
    assert "Lower the" in verdict.findings[0].finding.actions[-1].text


@pytest.mark.parametrize(
    "text",
    [
        "db.OperationalError: database: out of memory",
        "mylib.errors.OutOfMemoryError: Java heap space",
        "RuntimeError: could not allocate 3 GiB of pinned host memory: out of memory",
        "ValueError: a batch of 4096 would run out of memory on this card",
        "AttributeError: module 'mylib.cuda' has no attribute 'out of memory'",
        "google.api_core.exceptions.ResourceExhausted: 429 too many calls a minute",
        "ValueError: cannot allocate 8 GPUs for 3 trials",
        "KeyError: 'memory'",
    ],
)
def test_other_memory_or_none(tmp_path: Path, text: str) -> None:
    assert raised(tmp_path, text).code != "B1"


def test_whose_memory_is_left_open(tmp_path: Path) -> None:
    said = "mylib.errors.OutOfMemoryError: the batch did not fit"

    left = raised(tmp_path, said).findings[0].finding.cannot_decide
    assert any("or the host's" in one for one in left)


LOST = "RuntimeError: [comm/ring.cpp:311] connection to 10.4.0.7 was closed by the peer"


@pytest.mark.parametrize(
    ("text", "call"),
    [
        (LOST, "dist.all_reduce(grads)"),
        ("RuntimeError: c10d/Link.cpp:90 socket was closed", "main()"),
        ("comm.RingError: remote worker has exited", "all_gather_into(table)"),
        ("RuntimeError: allreduce of bucket 3 timed out after 600 s", "dist.all_reduce(grads)"),
    ],
)
def test_a_peer_that_is_lost_blames_no_code(tmp_path: Path, text: str, call: str) -> None:
    verdict = raised(tmp_path, text, call=call)

    assert verdict.code not in ("A3", "A1") or verdict.confidence < 0.5


def test_a_service_that_is_lost(tmp_path: Path) -> None:
    """What was read of somewhere else is a matter of io, and not told surely."""
    text = "store.client.StoreError: connection was reset by the server"
    verdict = raised(tmp_path, text, call="batch = store.read(key)")
    found = verdict.findings[0].finding

    assert (verdict.code, found.fault_class, verdict.confidence < 0.8) == ("A3", "io", True)


@pytest.mark.parametrize(
    "said", ["rows.WriteError: part-7: Disk quota exceeded", "tables.FlushError: the disk is full"]
)
def test_storage(tmp_path: Path, said: str) -> None:
    assert raised(tmp_path, said).code == "C6"


@pytest.mark.parametrize(
    "said",
    ["ring.OpenError: /dev/shm/ring-0: the disk is full", "watch.AddError: [Errno 28] inotify"],
)
def test_no_storage(tmp_path: Path, said: str) -> None:
    verdict = raised(tmp_path, said)

    assert verdict.code != "C6"
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    "said",
    ["mesh.JoinError: rank 3 did not register within 600 s", "mesh.JoinError: timed out waiting"
     " for all workers to join"],
)  # fmt: skip
def test_a_rank_that_never_came(tmp_path: Path, said: str) -> None:
    verdict = raised(tmp_path, said, steps="", call="mesh.join()")

    assert (verdict.code, verdict.confidence < 0.8) == ("C1", True)


def test_one_that_did_not_come_back(tmp_path: Path) -> None:
    """Once steps were made all had met."""
    assert raised(tmp_path, "mesh.JoinError: rank 3 did not register within 600 s").code != "C1"


def test_a_defect_stays_one(tmp_path: Path) -> None:
    verdict = raised(tmp_path, "ValueError: probabilities do not sum to 1")

    assert (verdict.code, verdict.confidence > 0.9) == ("A3", True)
