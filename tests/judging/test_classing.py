"""What an exception is about, told by what was printed before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

WARNED = (
    "/venv/lib/python3.11/site-packages/torch/cuda/__init__.py:141: UserWarning: CUDA"
    " initialization: CUDA driver initialization failed, you might not have a CUDA gpu.\n"
)
OTHER = "/venv/lib/python3.11/site-packages/x.py:9: UserWarning: CUDA is slow to begin\n"
RAISED = (
    'Traceback (most recent call last):\n  File "train.py", line 12, in <module>\n    main()\n'
    '  File "train.py", line 5, in main\n    accelerator = Accelerator(mixed_precision="fp16")\n'
    "ValueError: fp16 mixed precision requires a GPU (not 'cpu').\n"
)


@pytest.mark.parametrize(
    ("text", "fault_class"),
    [(WARNED + RAISED, "env"), (OTHER + RAISED, "config"), (RAISED + WARNED, "config")],
    ids=["no GPU can be used", "nothing of the kind", "only behind it"],
)
def test_a_setting_that_needs_a_gpu(tmp_path: Path, text: str, fault_class: str) -> None:
    (tmp_path / "train.log").write_text(text)
    found = diagnose(collect(Request((str(tmp_path),))))

    assert (found.code, found.fault_class) == ("A1", fault_class)
