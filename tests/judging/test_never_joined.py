"""The host whose log ends before the rendezvous, where some others waited without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
    "44|gpt|FAILED|1:0|2026-03-04T08:00:00|2026-03-04T08:31:00|4|n[1-4]\n"
)
GOES = "2026-03-04 08:00:2{n} | INFO | init_process_group world_size=32 timeout=0:30:00\n"
LOST = (
    "[rank{rank}]:[W304 08:30:31.110201 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl"
    "(fd=72, addr=[n{n}]:51822, remote=[n1]:29500): failed to recv, got 0 bytes\n"
)


def gave_up(came: int) -> str:
    return (
        "[rank0]: Traceback (most recent call last):\n"
        '[rank0]:   File "/env/lib/torch/distributed/rendezvous.py", line 189, in _create\n'
        "[rank0]:     return TCPStore(\n"
        "[rank0]: torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for"
        f" clients. {came}/32 clients joined.\n"
    )


def begins(n: int) -> str:
    return f"host=n{n} node_rank={n - 1} MASTER_ADDR=n1\nactivating the environment\n"


def judged(folder: Path, behind: tuple[int, ...], came: int) -> Verdict:
    for n in range(1, 5):
        text = begins(n)
        if n == 1:
            text += GOES.format(n=n) + gave_up(came)
        elif n not in behind:
            text += GOES.format(n=n) + LOST.format(rank=8 * n - 8, n=n)
        (folder / f"n{n}.out").write_text(text)
    (folder / "sacct.psv").write_text(SACCT)
    return diagnose(collect(Request((str(folder),))))


def test_who_waits_without_a_word_has_come(tmp_path: Path) -> None:
    verdict = judged(tmp_path, (4,), 24)

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == ["n4"]


@pytest.mark.parametrize(
    ("behind", "came"),
    [((3, 4), 16), ((4,), 16), ((), 24)],
    ids=["half of them", "another is missing as well", "all went there"],
)
def test_near_misses_name_nobody(tmp_path: Path, behind: tuple[int, ...], came: int) -> None:
    verdict = judged(tmp_path, behind, came)

    assert (verdict.code, verdict.culprits) == ("C1", ())


def test_a_line_that_one_host_lacks_where_nobody_counts(tmp_path: Path) -> None:
    """It may be a duty of the others; only the count of those that came tells."""
    fails = "torch.distributed.DistNetworkError: The client socket has timed out after 900s while"
    for n in range(1, 5):
        text = begins(n) + ("" if n == 3 else "cache of the data set is warm\n")
        text += f"{fails} trying to connect to (n1, 29500).\n" if n == 4 else ""
        (tmp_path / f"n{n}.out").write_text(text)
    (tmp_path / "sacct.psv").write_text(SACCT)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.culprits) == ("C1", ())


@pytest.mark.parametrize(("silent", "hosts"), [("n1", ["n3"]), ("n2", [])])
def test_the_log_of_the_store_may_tell_nothing(
    tmp_path: Path, silent: str, hosts: list[str]
) -> None:
    """Who tries in vain names the store's host; others came to it and gave up there."""
    for n in range(1, 5):
        text = "".join(
            f"[W304 08:{m:02d}:07.0971 socket.cpp:752] [c10d] The client socket has failed to"
            " connect to [n1.lan]:29517 (errno: 113 - No route to host).\n"
            for m in range(1, 15)
        )
        if n != 3:
            text = (
                "E0304 08:16:09.118000 812 torch/distributed/elastic/multiprocessing/errors]\n"
                "Traceback (most recent call last):\n"
                "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n"
            )
        text = "waits\n" if f"n{n}" == silent else text
        (tmp_path / f"n{n}.out").write_text(begins(n) + text)
    (tmp_path / "sacct.psv").write_text(SACCT)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "C1"
    assert [place.host for place in verdict.culprits] == hosts
