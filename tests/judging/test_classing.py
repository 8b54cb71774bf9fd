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
BANNER = "WARNING: The NVIDIA Driver was not detected.  GPU functionality will not be available.\n"
RAISED = (
    'Traceback (most recent call last):\n  File "train.py", line 12, in <module>\n    main()\n'
    '  File "train.py", line 5, in main\n    accelerator = Accelerator(mixed_precision="fp16")\n'
    "ValueError: fp16 mixed precision requires a GPU (not 'cpu').\n"
)


@pytest.mark.parametrize(
    ("text", "fault_class"),
    [
        (WARNED + RAISED, "env"),
        (BANNER + RAISED, "env"),
        (OTHER + RAISED, "config"),
        (RAISED + WARNED, "config"),
    ],
    ids=[
        "no GPU can be used",
        "no driver in the container",
        "nothing of the kind",
        "only behind it",
    ],
)
def test_a_setting_that_needs_a_gpu(tmp_path: Path, text: str, fault_class: str) -> None:
    (tmp_path / "train.log").write_text(text)
    found = diagnose(collect(Request((str(tmp_path),))))

    assert (found.code, found.fault_class) == ("A1", fault_class)


NO_GPUS = (
    "2026-03-04 08:00:01.1: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1956] Cannot dlopen"
    " some GPU libraries. Please make sure the missing libraries mentioned above are installed"
    " properly if you would like to use GPU.\n"
)
NO_SUCH = (
    'Traceback (most recent call last):\n  File "fit.py", line 8, in <module>\n    {}\n'
    "IndexError: list index out of range\n"
)
TAKES = "tf.config.set_visible_devices(devices[args.local], 'GPU')"


@pytest.mark.parametrize(
    ("text", "fault_class"),
    [
        (NO_GPUS + NO_SUCH.format(TAKES), "env"),
        (NO_GPUS + NO_SUCH.format("mine = all_gpus[rank]"), "env"),
        (NO_GPUS + NO_SUCH.format("layers[args.depth].build()"), "config"),
        (NO_SUCH.format(TAKES), "config"),
        (NO_SUCH.format(TAKES) + NO_GPUS, "config"),
    ],
    ids=["set visible", "from a list", "another list", "no warning", "only behind it"],
)
def test_a_gpu_that_tensorflow_cannot_use(tmp_path: Path, text: str, fault_class: str) -> None:
    (tmp_path / "train.log").write_text(text)
    found = diagnose(collect(Request((str(tmp_path),))))

    assert (found.code, found.fault_class) == ("A1", fault_class)


def test_an_interpreter_that_was_not_loaded(tmp_path: Path) -> None:
    """Before a step it is the cause; a helper's does not end a run that trains."""
    said = (
        "{}: python3: /lib64/libm.so.6: version `GLIBC_2.35' not found (required by /e/libz.so)\n"
    )
    text = "".join(said.format(rank) for rank in range(2))
    (tmp_path / "train.log").write_text(
        f"{text}srun: error: n1: tasks 0-1: Exited with exit code 1\n"
    )
    found = diagnose(collect(Request((str(tmp_path),))))
    steps = "".join(f"step {n}: loss {9 - n / 20:.3f}\n" for n in range(1, 60))
    (tmp_path / "train.log").write_text(text[: len(text) // 2] + steps)
    later = diagnose(collect(Request((str(tmp_path),))))

    assert (found.code, found.fault_class) == ("A1", "env")
    assert later.code is None
