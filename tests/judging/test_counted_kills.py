"""On which host a process was killed for memory, by the counters of the hosts' own kernels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict
from flatline.render.json import render
from flatline.verify import verify

BEGAN = 1772524800  # 2026-03-03 08:00:00 UTC
KERNEL = (
    "[Tue Mar  3 08:30:10 2026] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n"
    "[Tue Mar  3 08:30:10 2026] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,"
    "global_oom,task_memcg=/user.slice,task=python,pid=611,uid=1000\n"
    "[Tue Mar  3 08:30:10 2026] Out of memory: Killed process 611 (python) total-vm:9kB,"
    " anon-rss:8kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:8kB oom_score_adj:0\n"
)
LOG = "".join(
    f"2026-03-03 08:{n:02d}:00 INFO step {10 * n} loss {2 * 0.99**n:.4f}\n" for n in range(30)
) + ("run.sh: line 4:   611 Killed                  python train.py\n")


def judged(folder: Path, rose: dict[str, int | None], record: str = "") -> Verdict:
    """Hosts with the seconds from the beginning after which each counted a kill."""
    lines = []
    for host, at in rose.items():
        for n in range(0, 2400, 30):
            count = 1 if at is not None and n > at else 0
            when = (BEGAN + n) * 1000
            lines.append(
                f'node_vmstat_oom_kill{{instance="{host}:9100",job="node"}} {count} {when}'
            )
    (folder / "metrics.prom").write_text("\n".join(lines) + "\n")
    (folder / "train.log").write_text(LOG)
    (folder / "dmesg.txt").write_text(KERNEL)
    if record:
        (folder / "sacct.txt").write_text(record)
    verdict = diagnose(collect(Request((str(folder),))))
    assert all(check.ok for check in verify(json.loads(render(verdict)), (str(folder),)))
    return verdict


@pytest.mark.parametrize(
    ("rose", "host"),
    [
        ({"deskbox": 1815}, "deskbox"),
        ({"deskbox": 1815, "other": None}, "deskbox"),
        ({"deskbox": 1815, "other": 1830}, None),
        ({"deskbox": 600}, None),
        ({"deskbox": None}, None),
    ],
    ids=["the only one", "beside another", "both", "long before", "it counted none"],
)
def test_the_host_that_counted_it(
    tmp_path: Path, rose: dict[str, int | None], host: str | None
) -> None:
    verdict = judged(tmp_path, rose)

    assert (verdict.code, verdict.fault_class) == ("A2", "host-oom")
    assert {place.host for place in verdict.culprits} == ({host} if host else set())


def test_another_host_than_the_runs(tmp_path: Path) -> None:
    """Of a job on hosts that are known the kill that another one counted is not its own."""
    record = (
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        "7|train|FAILED|137:0|2026-03-03T08:00:00|2026-03-03T08:31:00|g[1-2]\n"
    )
    assert not {p.host for p in judged(tmp_path, {"deskbox": 1815}, record).culprits} & {"deskbox"}
