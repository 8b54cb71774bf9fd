"""A bar of training before its first step, where the one GPU of the run stands still."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.nought import at_nought

BAR = "steps:   0%|          | 0/4200 [00:00<?, ?it/s]"
TOLD = "  total optimization steps: 4200"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([TOLD, BAR], True),
        (["  Total optimization steps = 4,200", "  0%|          | 0/4200 [00:00<?, ?it/s]"], True),
        (["INFO max_train_steps=4200", BAR], True),
        ([BAR], False),
        (["  Num examples = 4200", BAR], False),
        (["  total optimization steps: 900", BAR], False),
        ([TOLD, "Map:   0%|          | 0/36000 [00:00<?, ? examples/s]"], False),
        ([TOLD, "steps:   0%|          | 1/4200 [00:09<11:12:40, 9.6s/it]"], False),
        ([TOLD, BAR, "caching latents"], False),
    ],
)
def test_a_bar_of_as_many_steps_as_were_told_of(said: list[str], expected: bool) -> None:
    assert at_nought(said) is expected


@pytest.mark.parametrize(
    ("bar", "busy", "code"),
    [
        (BAR, 0.0, "C3"),
        (BAR, 0.4, None),
        ("Map:   0%|          | 0/36000 [00:00<?, ? examples/s]", 0.0, None),
    ],
    ids=["stands still", "at work", "of a preparation"],
)
def test_a_run_that_never_made_its_first_step(
    tmp_path: Path, bar: str, busy: float, code: str | None
) -> None:
    """Its record says that it is running an hour after it had loaded its model."""
    began = 1772611200
    (tmp_path / "slurm-9.out").write_text(f"loading weights\nrunning training\n{TOLD}\n{bar}\n")
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|AllocTRES|NodeList\n"
        f"9|lora|RUNNING|0:0|{datetime.fromtimestamp(began, UTC):%Y-%m-%dT%H:%M:%S}|Unknown|1|"
        "gres/gpu=1,node=1|n1\n"
    )
    (tmp_path / "metrics.prom").write_text("\n".join(
        f'{name}{{gpu="0",Hostname="n1"}} {value} {at}000'
        for at in range(began - 120, began + 3600, 30)
        for name, value in (
            ("DCGM_FI_DEV_FB_USED", 4 if at < began + 30 else 21_000),
            ("DCGM_FI_PROF_SM_ACTIVE", busy if at > began + 200 else 0.0),
            ("DCGM_FI_DEV_POWER_USAGE", 84 + at // 30 % 2),
        )
    ) + "\n")  # fmt: skip
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    assert verdict.confidence < 0.8
