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


BUILT = (
    'Traceback (most recent call last):\n  File "tools/train.py", line 88, in <module>\n'
    '  File "/opt/py/site-packages/mmengine/runner/runner.py", line 1728, in train\n'
    "    self._train_loop = self.build_train_loop(\n"
    "{kind}: class `IterBasedTrainLoop` in mmengine/runner/loops.py: class `{name}` in"
    " mmseg/datasets/{name}.py: {said}\n"
)
ABSENT = "[Errno 2] No such file or directory: '{}'"


@pytest.mark.parametrize(
    ("kind", "said", "fault_class"),
    [
        ("FileNotFoundError", ABSENT.format("data/fields/splits/fold2.txt"), "data"),
        ("FileNotFoundError", ABSENT.format("data/fields/infos_train.pkl"), "data"),
        ("FileNotFoundError", ABSENT.format("pretrain/swin_base.pth"), "asset"),
        ("FileNotFoundError", ABSENT.format("/data/robots/g1_29dof.usd"), "asset"),
        ("FileNotFoundError", ABSENT.format("configs/_base_/palette.yaml"), "config"),
        ("KeyError", "'Fields2 is not in the mmseg::dataset registry.'", "config"),
        ("ImportError", "Please run pip install seg-api to install it", "env"),
    ],
    ids=[
        "a list",
        "by its folder",
        "weights",
        "a robot",
        "settings",
        "no such class",
        "a package",
    ],
)
def test_what_builders_hand_on(tmp_path: Path, kind: str, said: str, fault_class: str) -> None:
    """The sources of those that built it stand before what was missed."""
    (tmp_path / "train.log").write_text(BUILT.format(kind=kind, name="Fields", said=said))
    found = diagnose(collect(Request((str(tmp_path),))))

    assert (found.code, found.fault_class) == ("A1", fault_class)
