"""A file server that does not answer a host whose link is down."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

STEPS = "".join(
    f"2026-03-02 04:{i // 60:02d}:{i % 60:02d},000 step {i}/5000 loss {8 - i * 0.003:.4f}\n"
    for i in range(0, 600, 10)
)
LOST = "".join(
    f"n2:3187{r}:31990 [{r}] misc/socket.cc:52 NCCL WARN Call to recv from 10.20.5.31<4310{r}>"
    " failed : No route to host\n"
    for r in range(4)
) + "".join(
    f"[rank{r}]:[E302 04:10:1{r}.262400 ProcessGroupNCCL.cpp:542] [Rank {r}] Collective"
    " WorkNCCL(SeqNum=101, OpType=ALLREDUCE, NumelIn=7, NumelOut=7, Timeout(ms)=600000) raised the"
    " following async exception: NCCL error: remote process exited or there was a network error,"
    " NCCL version 2.20.5\n"
    for r in range(4, 8)
)
DOWN = "[Mon Mar  2 04:{} 2026] mlx5_core 0000:81:00.0 enp129s0f0np0: Link down\n"
UP = DOWN.replace("down", "up")
SILENT = "[Mon Mar  2 04:{} 2026] nfs: server nas1 not responding, still trying\n"
RECORD = (
    "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
    "71|asr|FAILED|134:0|2026-03-02T03:59:00|2026-03-02T04:12:24|n[1-2]\n"
)


def told(folder: Path, **kernels: str) -> Verdict:
    (folder / "train.out").write_text(STEPS + LOST)
    (folder / "sacct.txt").write_text(RECORD)
    (folder / "dmesg").mkdir()
    for host, text in kernels.items():
        (folder / "dmesg" / host).write_text(text)
    return diagnose(collect(Request((str(folder),))))


def test_the_link_was_before_and_its_peers_were_lost(tmp_path: Path) -> None:
    """Then the silence came of it."""
    verdict = told(tmp_path, n2=DOWN.format("10:01") + SILENT.format("10:07") + UP.format("11:37"))
    storage = next(j for j in verdict.findings if j.finding.code == "C6")

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("C5", ["n2"])
    assert (storage.role, storage.finding.fault_class) == ("consequence", "cut-off")


@pytest.mark.parametrize(
    "kernels",
    [
        {"n2": SILENT.format("10:01") + DOWN.format("10:07")},
        {"n2": DOWN.format("10:01") + UP.format("10:04") + SILENT.format("10:07")},
        {"n2": DOWN.format("10:01") + SILENT.format("10:07"), "n1": SILENT.format("10:08")},
        {"n1": DOWN.format("10:01"), "n2": SILENT.format("10:07")},
    ],
    ids=["the silence before", "a link that was back", "a host with its link", "another's link"],
)
def test_a_silence_that_no_link_accounts_for(tmp_path: Path, kernels: dict[str, str]) -> None:
    """It stays a cause of its own, and neither of the two is sure."""
    verdict = told(tmp_path, **kernels)
    storage = [j.finding.fault_class for j in verdict.findings if j.finding.code == "C6"]

    assert "cut-off" not in storage
    assert verdict.confidence < 0.8
