"""A port that fails under a pod: NCCL calls its host by the pod, the kernel by the node."""

from __future__ import annotations

from pathlib import Path

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

LISTED = """\
NAME           READY   STATUS   RESTARTS   AGE   IP          NODE   NOMINATED NODE
fit-worker-0   0/1     Error    0          51m   10.9.0.11   k41    <none>
fit-worker-1   0/1     Error    0          51m   10.9.0.12   k42    <none>
"""
PORT = (
    "fit-worker-1:61:340 [2] NCCL WARN NET/IB : mlx5_2:1 Got async event : port error\n"
    "fit-worker-1:61:337 [2] NCCL WARN NET/IB : Got completion from peer 10.20.0.41<40111> with"
    " status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_2\n"
)
DOWN = "[Mon Mar  9 04:50:01 2026] mlx5_core 0000:5d:00.0 ens3np0: Link down\n"


def test_a_pods_name_stands_for_its_node(tmp_path: Path) -> None:
    """They are one host, which is left out by the name that the cluster knows."""
    steps = "".join(
        f"2026-03-09 04:{n // 6:02d}:{n % 6 * 10:02d} step={n}/9000 loss={3 * 0.99**n:.4f}\n"
        for n in range(1, 300)
    )
    (tmp_path / "pods.txt").write_text(LISTED)
    (tmp_path / "fit-worker-0.log").write_text(steps)
    (tmp_path / "fit-worker-1.log").write_text("starting\n" + PORT)
    (tmp_path / "dmesg-k42.txt").write_text(DOWN)

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "C5"
    assert {place.host for place in verdict.culprits} == {"k42"}
    assert "fit-worker-1" not in verdict.headline
