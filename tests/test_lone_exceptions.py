"""An exception that stands in a log without its traceback, as excerpts and notebooks show it."""

import json
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict
from flatline.render.json import render
from flatline.verify import verify


def said(tmp_path: Path, text: str) -> Verdict:
    (tmp_path / "train.log").write_text(text)
    return diagnose(collect(Request((str(tmp_path),))))


def test_the_further_lines_of_its_message_name_the_cause(tmp_path: Path) -> None:
    """The first line of TensorFlow 1's message counts errors; the next ones say which."""
    verdict = said(
        tmp_path,
        "ResourceExhaustedError: 2 root error(s) found.\n"
        "  (0) Resource exhausted: OOM when allocating tensor with shape[16,112,112,147] and type"
        " float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n"
        "\t [[{{node resnet/conv1}}]]\n",
    )

    assert verdict.code == "B1"


def test_a_message_that_begins_on_the_next_line_is_read(tmp_path: Path) -> None:
    verdict = said(
        tmp_path,
        "AssertionError: \nThe NVIDIA driver on your system is too old (found version 9000).\n"
        "Please update your GPU driver.\n",
    )

    assert (verdict.code, verdict.fault_class) == ("A1", "env")


def test_a_refused_conda_activate_is_not_why_a_job_met_its_limit(tmp_path: Path) -> None:
    """The script went on in the environment it had."""
    verdict = said(
        tmp_path,
        "\nCommandNotFoundError: Your shell has not been properly configured to use"
        " 'conda activate'.\n\nworking\n"
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-04-14T16:20:46"
        " DUE TO TIME LIMIT ***\n",
    )

    assert verdict.state == "undetermined"


def test_a_line_is_cited_about_what_matched(tmp_path: Path) -> None:
    """Its beginning says nothing; and it still stands in the log as it is cited."""
    config = "config={" + ", ".join(f"'key{n}': {n}" for n in range(120)) + "} "
    told = (
        "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of"
        " ranks"
    )
    verdict = said(tmp_path, f"step 1/9 loss 2.1\n{config}{told} {'x ' * 600}\n")
    cites = [cite for judged in verdict.findings for cite in judged.finding.cites]

    assert verdict.code == "C2"
    assert any(told in cite.text for cite in cites)
    document = json.loads(render(verdict))
    assert [check for check in verify(document, (str(tmp_path),)) if not check.ok] == []


def test_a_threads_exception_ends_no_process(tmp_path: Path) -> None:
    """The same traceback in the main thread does; so does one that a signature knows."""
    traceback = (
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.10/threading.py", line 1016, in _bootstrap_inner\n'
        "    self.run()\n"
        '  File "/app/plots.py", line 86, in box_label\n'
        "    w, h = self.font.getsize(label)\n"
        "AttributeError: 'FreeTypeFont' object has no attribute 'getsize'\n"
    )
    (tmp_path / "train.log").write_text("Exception in thread Thread-7 (plot):\n" + traceback)
    threads = diagnose(collect(Request((str(tmp_path),))))
    (tmp_path / "train.log").write_text(traceback)
    own = diagnose(collect(Request((str(tmp_path),))))

    assert (threads.state, own.code) == ("undetermined", "A1")


def raised(exception: str, before: str = "") -> str:
    return f"""{before}Traceback (most recent call last):
  File "/app/log.py", line 3, in close
    self.file.close()
{exception}
"""


@pytest.mark.parametrize(
    "before", ["Exception ignored in: <function Log.__del__ at 0x7f>\n",
               "Error in atexit._run_exitfuncs:\n", "Exception in thread Thread-3 (send):\n"]
)  # fmt: skip
def test_an_exception_that_is_dropped_ends_nothing(tmp_path: Path, before: str) -> None:
    """Nor does it tell that a checkpoint's loader, which spoke before, was not the end."""
    lost = "'NoneType' object has no attribute 'close'"
    text = raised(f"AttributeError: {lost}", before)
    broken = "PytorchStreamReader failed reading zip archive: failed finding central directory\n"

    assert said(tmp_path, "loading\n" + text).state == "undetermined"
    assert said(tmp_path, broken + text).code == "E2"
    assert said(tmp_path, broken + raised(f"AttributeError: {lost}")).code == "A1"


@pytest.mark.parametrize("what", ["Connection reset by peer", "Broken pipe"])
def test_the_stores_errors_of_older_torch_are_echoes(tmp_path: Path, what: str) -> None:
    steps = "".join(f"step {n}/500 loss {4 / n:.4f}\n" for n in range(1, 30))
    assert said(tmp_path, steps + raised(f"RuntimeError: {what}")).code == "C2"


@pytest.mark.parametrize(
    ("above", "said_", "code"),
    [
        ('  File "/p/data/anno.py", line 71, in f\n    assert os.path.exists(self.images[-1])\n',
         "AssertionError", "A1"),
        (' File "/egg/opennre/framework/sentence.py", line 82, in __init__\n',
         "Exception: Invalid optimizer. Must be 'sgd' or 'adam'.", "A1"),
        ("the last words of a page on\n", "AssertionError", None),
        ("", "TypeError", None),
    ],
)  # fmt: skip
def test_a_name_alone_counts_below_a_frame(
    tmp_path: Path, above: str, said_: str, code: str | None
) -> None:
    """Of words that stand alone anybody may have printed them."""
    verdict = said(tmp_path, f"starting\n{above}{said_}\n")

    assert (verdict.code, verdict.confidence < 0.8) == (code, True)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        # the first letter was lost in a copy
        ("loatingPointError: Loss became infinite or NaN at iteration=88!\n", "E1"),
        # of TensorFlow's file system, not of a device's memory
        ("W tensorflow/core/framework/op_kernel.cc:1763] OP_REQUIRES failed at"
         " save_restore_v2_ops.cc:110 : Resource exhausted: run/w_7_temp_9e/part-00000-of-00001"
         ".data-00000-of-00001.tempstate99; No space left on device\n", "C6"),
        ("UnavailableError: 3 root error(s) found.\n  (0) Unavailable: Socket closed\n"
         "  (1) Unavailable: Unable to find a context_id matching the specified one"
         " (881203377123). Perhaps the worker was restarted, or the context was GC'd?\n", "C5"),
    ],
)  # fmt: skip
def test_the_message_names_the_cause_whatever_its_exception(
    tmp_path: Path, text: str, code: str
) -> None:
    assert said(tmp_path, text).code == code


def test_a_worker_that_is_lost_names_no_start_up(tmp_path: Path) -> None:
    """That the other end closed the connection is all it says."""
    text = "UnavailableError: 2 root error(s) found.\n  (0) Unavailable: Socket closed\n"
    assert said(tmp_path, text).code not in ("A1", "A3")


SEGMENT = (
    "Traceback (most recent call last):\n"
    '  File "/usr/lib/python3.11/multiprocessing/shared_memory.py", line 104, in {function}\n'
    "    {code}\n"
    "FileNotFoundError: [Errno 2] No such file or directory: '/{name}'\n"
)


@pytest.mark.parametrize(
    ("name", "function", "code", "found"),
    [
        ("psm_77aa01cd", "__init__", "self._fd = _posixshmem.shm_open(", "A3"),
        # named by the program: of an earlier run, or never made
        ("000000_locals", "__init__", "self._fd = _posixshmem.shm_open(", "A1"),
        # another process cleared up first: nothing failed by it
        ("psm_77aa01cd", "unlink", "_posixshmem.shm_unlink(self._name)", "undetermined"),
    ],
)
def test_a_segment_with_a_drawn_name_was_made_by_another_process(
    tmp_path: Path, name: str, function: str, code: str, found: str
) -> None:
    verdict = said(tmp_path, SEGMENT.format(function=function, code=code, name=name))
    assert (verdict.code or verdict.state) == found
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    ("above", "wanted"),
    [
        ("TypeError(\"Trainer.__init__() got an unexpected keyword argument 'tpus'\")", "env"),
        ("FileNotFoundError(2, 'No such file')\nValueError('column y of rows.csv')", "data"),
        ("building", "config"),
    ],
)
def test_what_hydra_could_not_build(tmp_path: Path, above: str, wanted: str) -> None:
    """It prints the exception in short above the key."""
    verdict = said(tmp_path, f"{above}\nfull_key: trainer\n")
    assert (verdict.code, verdict.fault_class) == ("A1", wanted)
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(("has", "wanted"), [("[]", "env"), ("[0]", "config")])
def test_gpus_that_a_machine_has_not(tmp_path: Path, has: str, wanted: str) -> None:
    """None at all is the machine's fault, another one than those it has the setting's."""
    verdict = said(
        tmp_path,
        "pytorch_lightning.utilities.exceptions.MisconfigurationException: You requested GPUs:"
        f" [3]\n But your machine only has: {has}\n",
    )
    assert (verdict.code, verdict.fault_class) == ("A1", wanted)


@pytest.mark.parametrize(
    ("given", "fault_class"), [("../../ckpt/base-lm", "asset"), ("", "config")]
)
def test_a_folder_of_a_model_that_is_not_there(
    tmp_path: Path, given: str, fault_class: str
) -> None:
    """What is empty was never set."""
    verdict = said(
        tmp_path,
        f"OSError: Incorrect path_or_model_id: '{given}'. Please provide either the path to a"
        " local folder or the repo_id of a model on the Hub.\n",
    )

    assert (verdict.code, verdict.fault_class) == ("A1", fault_class)
