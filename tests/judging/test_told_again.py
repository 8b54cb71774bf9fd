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


RAS = "[Mon Jun  2 {} 2025] amdgpu 0000:c3:00.0: amdgpu: socket: 1, die: 0 {} in gfx block\n"
NEW = "4 new uncorrectable hardware errors detected"
QUEUE = (
    ":0:rocdevice.cpp :2984: 1 us: Callback: Queue 0x7f00 aborting with error :"
    " HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception."
    " code: 0x1016\n"
)


@pytest.mark.parametrize(
    ("died", "last", "code"),
    [
        (QUEUE, RAS.format("08:05:04", NEW), "B2"),
        (QUEUE, RAS.format("08:04:40", NEW), "B2"),
        (QUEUE, RAS.format("11:40:00", NEW), "A3"),  # hours later: of something else
        (QUEUE, RAS.format("08:05:04", "4 new correctable hardware errors detected"), "A3"),
        ("2025-06-02 08:05:02 " + QUEUE, RAS.format("08:05:04", NEW), "A3"),
    ],
)
def test_what_is_looked_up_with_its_times(tmp_path: Path, died: str, last: str, code: str) -> None:
    """A kernel's line has its place by its own time, where the death above it has none."""
    steps = "".join(
        f"2025-06-02 08:{n // 60:02}:{n % 60:02} step {n}/900 loss {3 * 0.9985**n:.4f}\n"
        for n in range(1, 302)
    )
    text = f"{steps}{died}Aborted (core dumped)\n\n# dmesg -T\n{last}"
    (tmp_path / "train.log").write_text(text)

    assert diagnose(collect(Request((str(tmp_path),)))).code == code
