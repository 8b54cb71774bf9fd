"""The card of a rank under Horovod that ran out of memory: TensorFlow calls each rank's own 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList|AllocTRES\n"
    "44|rank|FAILED|1:0|2026-03-04T08:00:00|2026-03-04T08:20:00|2|n[1-2]|gres/gpu=8,node=2\n"
)
MADE = (
    "[1,{rank}]<stderr>:2026-03-04 08:00:{rank:02d}.3: I tensorflow/core/common_runtime/gpu/"
    "gpu_device.cc:2021] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 79085 MB"
    " memory:  -> device: {card}, name: NVIDIA A100-SXM4-80GB, pci bus id: 0000:1b:00.0\n"
)
FULL = (
    "[1,6]<stderr>:2026-03-04 08:19:50.7: W external/local_tsl/tsl/framework/bfc_allocator.cc:487]"
    " Allocator (GPU_0_bfc) ran out of memory trying to allocate 12.29GiB (rounded to 13194139648)"
    "requested by op ranker/zeros\n"
)


@pytest.mark.parametrize(
    ("made", "gpu"),
    [(True, "2"), (False, None)],
    ids=["it said which device it made", "it did not"],
)
def test_the_card_that_its_process_made_a_device_of(
    tmp_path: Path, made: bool, gpu: str | None
) -> None:
    text = "+ mpirun -np 8 -H n1:4,n2:4 --tag-output python train_hvd.py\n"
    text += "".join(MADE.format(rank=n, card=n % 4) for n in range(8)) if made else ""
    (tmp_path / "job.out").write_text(text + FULL)
    (tmp_path / "sacct.psv").write_text(SACCT)
    (tmp_path / "dcgm.prom").write_text("# TYPE DCGM_FI_DEV_FB_USED gauge\n" + "".join(
        f'DCGM_FI_DEV_FB_USED{{gpu="{gpu}",Hostname="n{n}"}} 3000{gpu} {at}\n'
        for n in (1, 2) for gpu in range(4)
        for at in range(1772611200000, 1772612400000, 30_000)
    ))  # fmt: skip
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "B1"
    assert [(p.host, p.rank, p.gpu) for p in verdict.culprits] == [("n2", 6, gpu)]
