"""The launch logger of PhysicsNeMo."""

from __future__ import annotations

from math import isnan
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.parsers.physicsnemo import Reader

SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
    "61|sfno|COMPLETED|0:0|2026-03-10T06:00:00|2026-03-10T07:10:00|n4\n"
)


def test_an_epoch_and_what_it_took() -> None:
    """Steps of an epoch are known from the second on; validation has a logger of its own."""
    reader = Reader()
    first, held_out, second = (
        item
        for line in (
            "[06:11:02 - train - INFO] Epoch 1 Metrics: Learning Rate =  5.0e-04, loss =  9.1e-02",
            "[06:11:02 - train - INFO] Epoch Execution Time:  6.000e+02s, Time/Iter:  1.500e+03ms",
            "[06:12:40 - valid - INFO] Epoch 1 Metrics: Validation error =  8.800e-02",
            "[06:12:41 - checkpoint - INFO] Saved model state dictionary: ckpt/M.0.1.mdlus",
            "[06:22:41 - train - INFO] Epoch 2 Metrics: loss_pde =  1.0e-02, loss =        nan",
            "[06:22:41 - main - INFO] Epoch 2 Metrics: rows = 4",
        )
        for item in reader.feed(line)
    )

    assert (first.kind, first.epoch, first.loss, first.lr) == ("train", 1.0, 0.091, 5e-4)
    assert (held_out.kind, held_out.loss, held_out.per_epoch) == ("eval", 0.088, None)
    assert second.per_epoch == 400
    assert isnan(second.loss or 0.0)


@pytest.mark.parametrize(("each_ms", "code"), [(1500.0, "G1"), (600_000.0, None)])
def test_few_epochs_of_many_steps(tmp_path: Path, each_ms: float, code: str | None) -> None:
    """Seven epochs are many steps, or seven."""
    lines = ["[06:00:40 - main - INFO] SFNO, 73 channels"]
    for n in range(1, 8):
        stamp = f"06:{9 * n:02d}:05"
        lines += [
            f"[{stamp} - train - INFO] Epoch {n} Metrics: loss = {0.2 / n + 0.03:10.3e}",
            f"[{stamp} - train - INFO] Epoch Execution Time: {6e2:10.3e}s, Time/Iter:"
            f" {each_ms:10.3e}ms",
        ]
    lines += ["[07:04:30 - main - INFO] Finished training!"]
    (tmp_path / "slurm-61.out").write_text("\n".join(lines) + "\n")
    (tmp_path / "sacct.txt").write_text(SACCT)

    assert diagnose(collect(Request((str(tmp_path),)))).code == code
