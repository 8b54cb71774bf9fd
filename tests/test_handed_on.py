"""Exceptions that one process raised and another hands on, whole and cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

HEAD = "Traceback (most recent call last):\n"
STEPS = "".join(
    f"2026-03-02 09:{i // 60:02d}:{i % 60:02d},000 step {i}/5000 loss {8 - i * 0.01:.3f}\n"
    for i in range(0, 200, 10)
)
CHILD = HEAD + (
    '  File "/opt/lib/multiprocess/pool.py", line 125, in worker\n'
    "    result = (True, func(*args, **kwds))\n"
    '  File "/opt/site-packages/datasets/utils/py_utils.py", line 623, in _write_generator\n'
    '  File "/home/u/preprocess.py", line 44, in add_ratio\n'
    "    return a / b\n"
)
FROM = "\nThe above exception was the direct cause of the following exception:\n\n"
DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"
PARENT = HEAD + '  File "/home/u/train.py", line 14, in <module>\n    main()\n'
RAISED = "ZeroDivisionError: division by zero\n"
QUOTED = f'{{}}: \n"""\n{CHILD}{RAISED}"""\n{FROM}'
REMOTE = [
    "multiprocessing.pool.RemoteTraceback",
    "concurrent.futures.process._RemoteTraceback",
    "joblib.externals.loky.process_executor._RemoteTraceback",
]


def verdict(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("name", REMOTE)
@pytest.mark.parametrize("left", [PARENT + RAISED, PARENT, HEAD], ids=["whole", "cut", "head"])
def test_what_a_pool_raised_decides_with_its_frames(tmp_path: Path, name: str, left: str) -> None:
    """It is raised again by the caller: the rest of that traceback may be missing."""
    told = verdict(tmp_path, STEPS + QUOTED.format(name) + left)

    assert (told.code, told.fault_class) == ("A3", "data")
    assert "ZeroDivisionError" in told.headline
    early = verdict(tmp_path, "loading\n" + QUOTED.format(name) + left)
    assert (early.code, early.fault_class) == ("A1", "data")


def test_of_a_pools_traceback_without_its_exception_the_frames_tell(tmp_path: Path) -> None:
    """What was being done is known, and not what was raised."""
    early = verdict(tmp_path, f'loading\n{REMOTE[0]}: \n"""\n{CHILD}')
    assert (early.code, early.fault_class, early.confidence < 0.8) == ("A1", "data", True)
    late = verdict(tmp_path, f'{STEPS}{REMOTE[0]}: \n"""\n{CHILD}')
    assert (late.code, late.confidence < 0.8) == ("A3", True)


@pytest.mark.parametrize(("how", "known"), [(FROM, True), (DURING, False)])
def test_of_a_chain_that_is_cut_off_its_cause_is_known(
    tmp_path: Path, how: str, known: bool
) -> None:
    """What is raised while another is handled may have nothing to do with it."""
    text = f"{PARENT}ValueError: could not convert string to float: 'a'\n{how}{HEAD}"
    told = verdict(tmp_path, "loading\n" + text)

    assert (told.code == "A1") is known
    assert told.confidence < 0.8


DATALOADER = PARENT + (
    '  File "/opt/torch/utils/data/dataloader.py", line 633, in __next__\n'
    "{0}: Caught {0} in DataLoader worker process 0.\n"
)
WORKER = (
    '  File "/opt/torch/utils/data/_utils/worker.py", line 309, in _worker_loop\n'
    '  File "/home/u/scans.py", line 30, in __getitem__\n    open(path)\n'
)
MISSING = "FileNotFoundError: [Errno 2] No such file or directory: '/data/scan-7.nii.gz'\n"


@pytest.mark.parametrize("cut", [0, 1, 3])
def test_what_a_worker_of_the_dataloader_raised(tmp_path: Path, cut: int) -> None:
    """Its type stands in the parent's line as well, its message only below."""
    text = DATALOADER.format("FileNotFoundError") + f"Original {HEAD}{WORKER}{MISSING}"
    kept = "".join(text.splitlines(keepends=True)[: -cut or None])
    told = verdict(tmp_path, "loading\n" + kept)

    assert (told.code, told.fault_class) == ("A1", "data")
    assert ("scan-7" in told.headline) is (cut == 0)


def test_a_pool_within_a_worker_of_the_dataloader(tmp_path: Path) -> None:
    """What the worker raised of it stands last."""
    text = (
        DATALOADER.format("RuntimeError")
        + "Original "
        + QUOTED.format(REMOTE[0])
        + f"{HEAD}{WORKER}RuntimeError: bad sample\n"
    )
    told = verdict(tmp_path, STEPS + text)

    assert (told.code, told.fault_class) == ("A3", "data")
    assert "bad sample" in told.headline


RAY = PARENT + (
    '  File "/opt/ray/_private/worker.py", line 2624, in get\n'
    "    raise value.as_instanceof_cause()\n"
    "ray.exceptions.RayTaskError({}): ray::Worker.run() (pid=123, ip=10.0.0.2)\n"
    '  File "/home/u/task.py", line 4, in run\n'
    "    foo()\n"
)
INNER = (
    "ray.exceptions.RayTaskError(FileNotFoundError): ray::Inner.load() (pid=456, ip=10.0.0.3)\n"
    '  File "/home/u/inner.py", line 7, in load\n'
    "    open(path)\n"
)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (MISSING, "scan-7"),
        (INNER + MISSING, "scan-7"),
        ("", "FileNotFoundError"),
        (f"KeyError: 'a'\n{FROM}ray::Worker.run() (pid=123, ip=10.0.0.2)\n"
         f'  File "/home/u/task.py", line 9, in run\n{MISSING}', "scan-7"),
    ],
    ids=["its own", "of a task of its task", "cut off", "raised from another"],
)  # fmt: skip
def test_what_a_task_of_ray_raised(tmp_path: Path, said: str, shown: str) -> None:
    """Also a task's of a task; `RayTaskError` names the type."""
    told = verdict(tmp_path, STEPS + RAY.format("FileNotFoundError") + said)

    assert (told.code, told.fault_class) == ("A3", "io")
    assert shown in told.headline
    assert "RayTaskError" not in told.headline


def test_a_task_whose_actor_died_raised_nothing_itself(tmp_path: Path) -> None:
    """That is what others saw of an end that has another cause."""
    died = (
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
    )
    told = verdict(tmp_path, STEPS + RAY.format("ActorDiedError") + died)

    assert told.code != "A3"


SPAWNED = PARENT + (
    "torch.multiprocessing.spawn.ProcessRaisedException: \n\n"
    "-- Process 1 terminated with the following error:\n"
)


def test_a_pool_within_a_spawned_process(tmp_path: Path) -> None:
    """The process's own words are quoted in its parent's message."""
    told = verdict(tmp_path, STEPS + SPAWNED + QUOTED.format(REMOTE[0]) + PARENT + RAISED)

    assert (told.code, told.fault_class) == ("A3", "data")


FRAME = '  File "/opt/app/train.py", line 90, in run\n    batch[key]\n'


def test_a_spawned_process_below_the_end_of_its_parents_words(tmp_path: Path) -> None:
    """Its number is a rank's where others tell of that rank, and no other's; on one host."""
    heard = "2026-01-28 20:00:24,702 INFO [train.py:1182] ({}/4) Saving checkpoint to a.pt\n"
    child = SPAWNED[SPAWNED.index("-- Process") :] + HEAD + FRAME + "KeyError: 'x'\n"
    end = "srun: error: n2: task 0: Exited with exit code 1\n"
    told = verdict(tmp_path, STEPS + heard.format(1) + child + end)
    other = verdict(tmp_path, STEPS + heard.format(3) + child + end)

    assert (told.code, [place.rank for place in told.culprits]) == ("A3", [1])
    assert [place.rank for place in other.culprits] in ([], [None])


def test_a_spawned_process_whose_exception_is_cut_off(tmp_path: Path) -> None:
    """Its frames show that it raised one; the parent's exception alone is a wrapper."""
    frames = '  File "/opt/torch/multiprocessing/spawn.py", line 90, in _wrap\n'
    told = verdict(tmp_path, STEPS + SPAWNED + HEAD + frames)

    assert (told.code, told.confidence < 0.8) == ("A3", True)
    assert verdict(tmp_path, STEPS + SPAWNED).state == "undetermined"
