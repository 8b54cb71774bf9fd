"""What a log that no signature knows says in plain words at its end, and when it is not asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

STEPS = "".join(f"step {n}/500 loss {4 / n:.4f}\n" for n in range(1, 60))
CONFIDENT = 0.8


def verdict(folder: Path, text: str, **more: str) -> Verdict:
    (folder / "train.log").write_text(text)
    for name, content in more.items():
        (folder / name.replace("_dot_", ".")).write_text(content)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("line", "code", "fault_class"),
    [
        ("Error: port 30051 is not available.", "C1", None),
        ("[09:27] rpc/tcp.cc:76: Failed bind on 10.4.0.31:30055 , error: Success", "C1", None),
        ("ERROR (Alloc():cu.cc:49) Failed to allocate 10842 bytes: the GPU is shared", "B1", None),
        ("solver: error: could not open /scratch/dataset/part7.rec", "A1", "data"),
        ("ERROR worker 3: no route to host 10.1.2.3", "C1", None),
        ("engine: fatal error: unknown option --cells", "A1", "config"),
        ("could not fetch https://models.example.org/base.bin: error 504", "A1", "asset"),
        ("[ERROR] the engine gave up", "A1", "config"),
    ],
)
def test_before_the_first_step(
    tmp_path: Path, line: str, code: str, fault_class: str | None
) -> None:
    """Each names a family, and none makes it sure."""
    found = verdict(tmp_path, f"loading\n{line}\n")
    assert (found.code, found.fault_class) == (code, fault_class)
    assert found.confidence < CONFIDENT


@pytest.mark.parametrize(
    ("line", "code"),
    [("ERROR worker 3: no route to host 10.1.2.3", "C5"), ("[ERROR] the engine gave up", "A3")],
)
def test_after_steps(tmp_path: Path, line: str, code: str) -> None:
    """The same words in another phase."""
    found = verdict(tmp_path, f"{STEPS}{line}\n")
    assert found.code == code
    assert found.confidence < CONFIDENT


def test_a_loss_that_is_no_number_is_said_more_than_once(tmp_path: Path) -> None:
    """One batch without a value is skipped."""
    line = "iter 7 (failed check): objective is nan\n"
    assert verdict(tmp_path, "begin\n" + line).code is None
    assert verdict(tmp_path, "begin\n" + 3 * line).code == "E1"


@pytest.mark.parametrize(
    "line",
    [
        "WARNING could not open the optional file aliases.txt",
        "TensorBoard could not bind to port 6006, it was already in use",
        "connection refused, retrying in 5 s (error 111)",
        "evaluation: word error rate 12.3",
        "finished with 0 errors",
        "# on error: port 29500 is in use means an old run",
        "If the port 29500 is in use, the launch fails",
        "Failed to push metrics to http://10.0.0.1:9091: connection refused",
        "Failed to send the notification: https://hooks.example.com/x error 403",
        "ERROR: could not open display :0",
        "rm: cannot remove '/tmp/lock': No such file or directory",
        "12 images not found of 118287, they are left out",
        "images not found: 3",
        "loss is nan: False",
    ],
)
def test_words_of_no_failure(tmp_path: Path, line: str) -> None:
    """What is retried, optional, counted, or of a helper."""
    assert verdict(tmp_path, f"loading\n{line}\n").code is None


def test_it_is_not_asked_where_something_else_speaks(tmp_path: Path) -> None:
    """An end that was told, an exception, the scheduler's record, a line far from the end."""
    line = "Error: port 30051 is not available.\n"
    assert verdict(tmp_path, STEPS + line + "Training completed\n").code != "C1"
    boom = (
        'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n    main()\n'
        "ValueError: bad shape\n"
    )
    assert verdict(tmp_path, line + boom).code == "A1"
    assert verdict(tmp_path, line + 60 * "still loading\n").code is None
    assert verdict(tmp_path, line + STEPS).code is None
    record = "JobID|JobName|State|ExitCode|Start|End|NodeList\n7|t|CANCELLED|0:15|||gpu1\n"
    assert verdict(tmp_path, line, sacct_dot_txt=record).code is None


def test_what_stands_before_the_last_step_ended_nothing(tmp_path: Path) -> None:
    line = "[ERROR] engine: could not open /scratch/up.sock\n"
    assert verdict(tmp_path, STEPS + line).code == "A3"
    assert verdict(tmp_path, STEPS + line + "step 60/500 loss 0.0667\n").code is None


@pytest.mark.parametrize(
    "line",
    [
        "Train Error: Avg loss: 0.219",
        "Train error: ",
        "Test Error: ",
        "Validation error: ",
        "val error: ",
        "eval error: ",
        "validation error: rmse = 0.21",
        "Eval Error: 3.1e-4",
        "error: avg loss = nan",
        "ERROR:composer.cli.launcher:Rank 0 crashed with exit code 1.",
        "ERROR:root:worker 3 exited with code -9",
        "[ERROR] job failed with status 2",
    ],
)
@pytest.mark.parametrize("above", ["loading\n", STEPS], ids=["before the first step", "later"])
def test_what_is_measured_or_said_of_a_process_is_no_error(
    tmp_path: Path, above: str, line: str
) -> None:
    """Programs print how far off a model is, launchers that a process ended."""
    assert verdict(tmp_path, f"{above}{line}\n").code is None


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: something broke",
        "constraint error: the mesh broke",
        "ERROR: train step broke",
        "ERROR: layer: broken",
        "Train Error: Avg loss: 0.219, ERROR: something broke",
        "ERROR:root:worker 3 crashed with a bad mesh",
        "ERROR: retries used up, code 7",
    ],
)
def test_what_broke_is_one(tmp_path: Path, line: str) -> None:
    """Without a number behind it."""
    assert verdict(tmp_path, f"loading\n{line}\n").code == "A1"
    assert verdict(tmp_path, f"{STEPS}{line}\n").code == "A3"
