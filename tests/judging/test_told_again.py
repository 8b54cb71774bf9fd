"""What a kernel had said before and an epilog prints behind the program's own end."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STEPS = "".join(f"step {n}/900 loss {3 * 0.9985**n:.4f}\n" for n in range(1, 300))
CRASH = (
    "[rank9]: Traceback (most recent call last):\n"
    '[rank9]:   File "/app/train.py", line 88, in main\n[rank9]:     torch.cuda.synchronize()\n'
    "[rank9]: RuntimeError: CUDA error: unspecified launch failure\n"
)
FAR = "".join(f"n3: rank {n} closed its files\n" for n in range(200))
LOST = "nvidia-smi: Unable to determine the device handle for GPU5: 0000:3B:00.0: Unknown Error\n"
XID = "kernel: NVRM: Xid (PCI:0000:3b:00): {}, pid=77, name=python, GPU has fallen off the bus.\n"


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ("[epilog n3] " + XID.format(79), "B2"),
        ("[epilog n3] " + XID.format(31), "A3"),  # the program's own doing
        ("[epilog n3] kernel: no errors\n", "A3"),
        ("[n3] " + LOST, "B2"),  # a card does not fall for what a program does
        ("[n3] " + LOST + "[n3] dmesg: [812.003451] " + XID.format(79)[8:], "B2"),
        ("[n3] nvidia-smi: 8 GPUs found\n", "A3"),
    ],
)
def test_what_an_epilog_prints(tmp_path: Path, last: str, code: str) -> None:
    """It was said no later than the program's end, however far below it stands."""
    (tmp_path / "train.log").write_text(STEPS + CRASH + FAR + last)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    if code == "B2":
        assert [place.host for place in verdict.culprits] == ["n3"]
