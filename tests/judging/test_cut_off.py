"""Tracebacks whose last line is not there: what was being done tells, or nobody knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

HEAD = (
    "Traceback (most recent call last):\n"
    '  File "/home/u/project/train.py", line 70, in <module>\n    main()\n'
)
SITE = "/opt/env/lib/python3.10/site-packages"


def frame(file: str, function: str, code: str) -> str:
    return f'  File "{file}", line 12, in {function}\n    {code}\n'


def verdict(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


READS = frame("/home/u/project/sets.py", "__getitem__", "picture = Image.open(self.paths[index])")
BUILDS = frame(
    f"{SITE}/triton/backends/nvidia/compiler.py",
    "make_cubin",
    "subprocess.run(command, check=True)",
) + frame("/opt/env/lib/python3.10/subprocess.py", "run", "raise CalledProcessError(retcode,")
IMPORTS = frame(f"{SITE}/bitsandbytes/__init__.py", "<module>", "from .cextension import lib")
RESUMES = frame(
    "/home/u/project/train.py", "resume_from_ckpts", "optimizer.load_state_dict(kept['optimizer'])"
)
WAITS = frame("/opt/env/lib/python3.10/multiprocessing/connection.py", "_poll", "r = wait([self])")
FORWARD = frame(f"{SITE}/torch/nn/modules/module.py", "_call_impl", "return forward_call(*args)")
REFUSES = frame(
    "/home/u/project/config.py", "check", 'raise ValueError("num_classes must be one of 10, 100")'
)
EMPTY = frame(
    "/home/u/project/data.py", "read_files", 'raise ValueError("Empty dataset: no images")'
)
QUEUE = frame("/opt/env/lib/python3.10/queue.py", "get", "raise Empty")
CHILD = frame(
    f"{SITE}/torch/multiprocessing/spawn.py", "join", "raise ProcessRaisedException(msg,"
)


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        pytest.param(READS, ("A1", "data"), id="a-picture"),
        pytest.param(BUILDS, ("A1", "env"), id="a-kernel-to-compile"),
        pytest.param(IMPORTS, ("A1", "env"), id="an-import"),
        pytest.param(RESUMES, ("E2", None), id="a-checkpoint"),
        pytest.param(REFUSES, ("A1", "config"), id="what-it-was-about-to-raise"),
        pytest.param(EMPTY, ("A1", "data"), id="an-empty-set"),
        pytest.param(QUEUE, (None, None), id="an-empty-queue"),
        pytest.param(WAITS, (None, None), id="waiting-for-another"),
        pytest.param(FORWARD, (None, None), id="a-model-called"),
        pytest.param(CHILD, (None, None), id="what-a-child-raised"),
    ],
)
def test_what_was_being_done_at_the_start(
    tmp_path: Path, frames: str, said: tuple[str | None, str | None]
) -> None:
    told = verdict(tmp_path, f"resuming from out/epoch_3.pth\n{HEAD}{frames}")

    assert (told.code, told.fault_class) == said
    assert told.confidence < 0.8


DCP = frame(
    "/home/u/project/actor.py", "load_checkpoint", "dcp.load(state, checkpoint_id=path)"
) + frame(f"{SITE}/torch/distributed/checkpoint/state_dict_loader.py", "load", "_load_state_dict(")
REGISTRY = frame("/home/u/det/catalog.py", "get", "f = DatasetCatalog._REGISTERED[name]")
DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"


def test_shards_of_every_rank_are_the_runs_own(tmp_path: Path) -> None:
    told = verdict(tmp_path, f"starting\n{HEAD}{DCP}")

    assert (told.code, told.confidence < 0.8) == ("E2", True)


@pytest.mark.parametrize(
    ("first", "said"),
    [
        pytest.param(f"{HEAD}{REGISTRY}KeyError: 'cats_train'\n", ("A1", "config"), id="a-key"),
        pytest.param(
            f"{HEAD}{READS}FileNotFoundError: [Errno 2] No such file or directory: 'd/a.json'\n",
            ("A1", "data"),
            id="a-file",
        ),
        pytest.param(f"{HEAD}{READS}KeyboardInterrupt\n", (None, None), id="ctrl-c"),
    ],
)
def test_what_was_being_handled_tells_where_the_rest_is_cut_off(
    tmp_path: Path, first: str, said: tuple[str | None, str | None]
) -> None:
    told = verdict(tmp_path, f"loading\n{first}{DURING}{HEAD}")

    assert (told.code, told.fault_class) == said
    assert told.confidence < 0.8


def test_a_ctrl_c_above_it_leaves_it_open(tmp_path: Path) -> None:
    """Threads print theirs first."""
    text = f"Process Process-9:\nKeyboardInterrupt:\n{HEAD}{READS}"

    assert verdict(tmp_path, text).state == "undetermined"


def test_a_ctrl_c_before_it_leaves_it_open(tmp_path: Path) -> None:
    """What came while it was handled is its echo."""
    text = f"loading\n{HEAD}{READS}KeyboardInterrupt\n\nDuring handling of the above exception,"
    text += f" another exception occurred:\n\n{HEAD}{READS}"

    assert verdict(tmp_path, text).code != "A1"


def test_after_steps_it_is_no_start(tmp_path: Path) -> None:
    steps = "".join(f"step {i}/5000 loss {8 - i * 0.01:.3f}\n" for i in range(0, 200, 10))
    told = verdict(tmp_path, steps + HEAD + READS)

    assert (told.code, told.confidence < 0.8) == ("A3", True)
