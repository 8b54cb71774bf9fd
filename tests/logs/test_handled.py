"""Errors taken care of, meant by a test or told of another's host are told from causes."""

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.logs.handled import gave_up, handled
from flatline.logs.places import host_told_of
from flatline.logs.selftests import within_a_test
from flatline.model import Verdict

FULL = "OSError: [Errno 28] No space left on device"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
    " capacity of 79.11 GiB of which 1.02 GiB is free."
)
RAISED = [
    "Traceback (most recent call last):",
    '  File "/x/train.py", line 12, in main',
    "    import apex",
    "ModuleNotFoundError: No module named 'apex'",
]
LOADING = [f"INFO loading shard {n}" for n in range(12)]
GOES_ON = [f"INFO part {n} is done" for n in range(24)]
DIED = ["job.sh: line 22: 44121 Killed                  python train.py"]
ENDED = ["srun: error: n1: task 0: Exited with exit code 1"]
FELL = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."


def judged(folder: Path, *parts: list[str]) -> Verdict:
    (folder / "train.log").write_text("\n".join(line for part in parts for line in part) + "\n")
    return diagnose(collect(Request((str(folder),))))


HANDLED = {
    "with a fallback": [f"no room for the cache ({FULL}); falling back to memory"],
    "tried again": [f"upload of metrics failed ({FULL}), will retry on the next flush"],
    "left out": [f"[loader] worker 3: {FULL} - moving on to the next shard"],
    "above its traceback": ["WARNING import of kernels failed, continuing:", *RAISED],
    "below its traceback": [*RAISED, "INFO no fused kernels, reverting to eager"],
}


@pytest.mark.parametrize("how", HANDLED)
def test_an_error_that_was_taken_care_of(tmp_path: Path, how: str) -> None:
    verdict = judged(tmp_path, LOADING, HANDLED[how], GOES_ON, DIED)

    assert (verdict.code, len(verdict.findings)) == ("A2", 1)


IN_VAIN = {
    "given up": [f"save failed: {FULL}; retrying", "ERROR: giving up after 3 attempts", *ENDED],
    "the last word": [f"save failed: {FULL}; retrying"],
    "time and again": [f"save failed: {FULL}; retrying"] * 4 + ["cleaning", "gone", *ENDED],
}


@pytest.mark.parametrize("how", IN_VAIN)
def test_an_error_that_may_have_come_back(tmp_path: Path, how: str) -> None:
    verdict = judged(tmp_path, LOADING, IN_VAIN[how])

    assert (verdict.code, verdict.confidence < 0.8) == ("C6", True)


STEPS = [f"INFO step {n} loss {3 - n / 100:.4f}" for n in range(20)]
STOPPED = {
    "a line": [*STEPS, f"save failed: {FULL}; retrying", *GOES_ON],
    "a launcher's word": [f"save failed: {FULL}; retrying", *GOES_ON, *ENDED],
    "a traceback": [*STEPS, *RAISED[:-1], FULL, "INFO skipping the upload", *GOES_ON],
}


@pytest.mark.parametrize("how", STOPPED)
def test_an_error_after_which_nothing_went_on(tmp_path: Path, how: str) -> None:
    verdict = judged(tmp_path, LOADING, STOPPED[how])

    assert (verdict.code, verdict.confidence < 0.8) == ("C6", True)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([FULL, *GOES_ON], "C6"),
        ([f"{FULL}; not retrying", *GOES_ON], "C6"),
        ([f"{FULL}; cannot continue", *ENDED], "C6"),
        ([*RAISED, *ENDED], "A1"),
        ([*RAISED, "run.sh: retrying in 5 s"] * 3, "A1"),
    ],
)
def test_an_error_that_was_not(tmp_path: Path, lines: list[str], code: str) -> None:
    verdict = judged(tmp_path, LOADING, lines)

    assert (verdict.code, verdict.confidence >= 0.8) == (code, True)


@pytest.mark.parametrize(
    "text",
    [
        "so it is unhandled",
        "no fallback left",
        "would not be ignored",
        "Exception ignored in: <function Pool.__del__ at 0x7f10>",
        "ValueError: unknown optimizer adamw8, use adamw or sgd",
        "was removed in NumPy 2.0, use np.inf instead",
        "Please check your connection and try again in a minute",
    ],
)
def test_what_is_not_taken_care_of(text: str) -> None:
    assert not handled(text)


def test_what_was_in_vain() -> None:
    assert gave_up("all retries exhausted")
    assert not gave_up("retry 3 of 5")


TESTS = {
    "of its own": ["Starting sanity checks", OOM, "sanity checks succeeded"],
    "of pytest": [f"{'=' * 9} test session starts {'=' * 9}", OOM, "==== 4 passed in 0.2s ===="],
    "of GoogleTest": ["[ RUN      ] Alloc.Full", OOM, "[       OK ] Alloc.Full (3 ms)"],
}
NO_TESTS = {
    "that failed": ["==== test session starts ====", OOM, "==== 1 failed, 4 passed in 0.2s ===="],
    "that was over": ["Starting sanity checks", "sanity checks passed", OOM, "self-test passed"],
    "of another name": ["Starting sanity checks", OOM, "unit tests passed"],
    "without an end": ["Running preflight checks", "GPU found", OOM],
    "of a model": ["Running test loop", OOM, "test loop passed"],
    "that passed in part": ["Starting preflight check", OOM, "preflight check passed on 7 of 8"],
    "of a server": ["Starting health check server on :8080", OOM, "health check OK"],
    "of an option": ["Running smoke tests", OOM, "smoke tests: pass --small to need less"],
}


@pytest.mark.parametrize("how", TESTS)
def test_an_error_that_a_test_is_about(tmp_path: Path, how: str) -> None:
    assert judged(tmp_path, LOADING, TESTS[how], GOES_ON, DIED).code == "A2"


@pytest.mark.parametrize("how", NO_TESTS)
def test_an_error_that_no_test_is_about(how: str) -> None:
    lines = NO_TESTS[how]
    at = lines.index(OOM)

    assert not within_a_test(lines[:at][::-1], lines[at + 1 :])


def test_a_test_that_passed_before_the_end(tmp_path: Path) -> None:
    verdict = judged(tmp_path, LOADING, TESTS["of its own"], ENDED)

    assert (verdict.code, verdict.confidence < 0.8) == ("B1", True)


LEFT = {
    "a comment that ends the log": ([f"# {OOM}", "# that is all"], "B1", False),
    "a comment within it": ([f"# on {OOM}", "# lower it", *GOES_ON, *DIED], "A2", True),
    "a lone label": ([f"user: {OOM}"], "B1", False),
    "a label of each line": (["user: starting", f"user: {OOM}"], "B1", True),
    "a turn": ([f"user: {OOM}", "assistant: lower it", *DIED], "A2", True),
}


@pytest.mark.parametrize("how", LEFT)
def test_what_is_left_of_a_line(tmp_path: Path, how: str) -> None:
    lines, code, sure = LEFT[how]
    verdict = judged(tmp_path, LOADING, lines)

    assert (verdict.code, verdict.confidence >= 0.8) == (code, sure)


ELSEWHERE = [f"[fleetwatch] cab3-n17: {FELL}"]


def test_a_host_that_nothing_else_names(tmp_path: Path) -> None:
    alone, beside = tmp_path / "alone", tmp_path / "beside"
    alone.mkdir()
    beside.mkdir()

    assert judged(alone, LOADING, ELSEWHERE).confidence < 0.8
    assert judged(beside, LOADING, ELSEWHERE, GOES_ON, RAISED).code == "A1"


@pytest.mark.parametrize(
    "lines",
    [
        ["running on cab3-n17", *LOADING, *ELSEWHERE],
        [*LOADING, FELL],
        [*LOADING, f"Mar  1 10:00:00 cab3-n17 kernel: {FELL}"],
    ],
)
def test_a_host_of_the_run(tmp_path: Path, lines: list[str]) -> None:
    verdict = judged(tmp_path, lines)

    assert (verdict.code, verdict.confidence >= 0.8) == ("B2", True)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("cluster: host rack2-n03 gpu 5: Xid 79", "rack2-n03"),
        ("link down on gpu-a17 (rail 3)", "gpu-a17"),
        ("on rank3 GPU 5", None),
        ("nfs: server fs01 not responding, still trying", None),
        ("[  12.345678] rack2-n03 NVRM: Xid", None),
    ],
)
def test_the_host_that_a_line_tells_of(text: str, host: str | None) -> None:
    assert host_told_of(text) == host


def test_an_error_that_was_handled_is_not_said_to_be_absent(tmp_path: Path) -> None:
    """A run that skipped batches for want of memory is sound, but its log is not without such."""
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB, skipping batch"
    rows = (
        f"step {n}/600 loss {3 * 0.9985**n:.4f}\n{f'WARNING {text}' if n % 2 else ''}\n"
        for n in range(1, 601)
    )
    (tmp_path / "train.log").write_text("".join(rows) + "Training completed\n")
    found = diagnose(collect(Request((str(tmp_path),))))

    assert found.state != "found"
    assert "B1" not in {one.code for one in found.ruled_out}
