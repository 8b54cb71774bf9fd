"""The rank that comes last to its collectives, where only the pods' names tell its host."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

POD = "{:<30}1/1     Running            0          31m    10.9.0.{:<8}{:<16} <none>\n"
HEAD = "{:<30}READY   STATUS             RESTARTS   AGE    IP              NODE             X\n"
RANKS = (0, 4, 8, 12, 16)


def judged(folder: Path, logs: dict[int, str]) -> Verdict:
    """Five pods, of which the first rank of each prints its waits; that of 12 waits least."""
    (folder / "pods.txt").write_text(
        HEAD.format("NAME")
        + "".join(POD.format(f"fit-worker-{n}", n + 1, f"k{n + 30}") for n in range(5))
    )
    texts: dict[str, list[str]] = {}
    for step in range(1, 301):
        for rank in RANKS:
            wait = 0.05 if rank == 12 else 0.55
            texts.setdefault(logs[rank], []).append(
                f"2026-03-09 04:{step // 60:02d}:{step % 60:02d} [rank {rank}] step={step}/9000"
                f" loss={3 * 0.997**step:.4f} dt=1.000s fwd_bwd={0.9 - wait:.3f}s sync={wait}s\n"
            )
    for name, lines in texts.items():
        (folder / f"{name}.log").write_text("".join(lines))
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("logs", "host"),
    [
        ({rank: f"fit-worker-{n}" for n, rank in enumerate(RANKS)}, "k33"),
        (dict.fromkeys(RANKS, "fit-worker-0"), None),
        ({rank: f"fit-worker-{n // 3}" for n, rank in enumerate(RANKS)}, None),
        ({rank: f"rank-{rank}" for rank in RANKS}, None),
    ],
    ids=["its own pod's", "all in one log", "several in a log", "of no pod"],
)
def test_the_host_of_the_pod_whose_log_it_is(
    tmp_path: Path, logs: dict[int, str], host: str | None
) -> None:
    """A log that holds what others printed is of none of them."""
    verdict = judged(tmp_path, logs)

    assert verdict.code == "D3"
    assert [(place.rank, place.host) for place in verdict.culprits] == [(12, host)]
