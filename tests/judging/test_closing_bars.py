"""What stands just behind an exception: a bar drawn once more, a broken line's rest, a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

LINEAR = (
    '[rank0]:   File "/venv/torch/nn/modules/linear.py", line 117, in forward\n'
    "[rank0]:     return F.linear(input, self.weight, self.bias)\n"
    "[rank0]: RuntimeError: setStorage: sizes [320, 12] are out of bounds for storage of size 0\n"
)
ENDED = (
    "E1226 02:11:20.094970 14 torch/distributed/elastic/multiprocessing/api.py:833] failed"
    " (exitcode: 1) local_rank: 0 (pid: 93) of binary: /usr/bin/python\n"
)
WATCHDOG = "[E ProcessGroupNCCL.cpp:475] [Rank 1] Watchdog caught collective operation timeout:\n"


def said(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def bar(steps: int) -> str:
    return f"Steps:   0%|          | {steps}/10000 [00:15<21:40:27,  7.60s/it, step_loss=1]\n"


@pytest.mark.parametrize(("steps", "code"), [(2, "A3"), (0, "A1")])
def test_a_bar_that_is_closed_shows_what_had_been_reached(
    tmp_path: Path, steps: int, code: str
) -> None:
    """It is drawn below the traceback, after the exception."""
    assert said(tmp_path, LINEAR + bar(steps) + ENDED).code == code


def test_a_bar_that_goes_on_below_an_exception_began_after_it(tmp_path: Path) -> None:
    """Then nothing tells that steps had been made when it was raised."""
    drawn = "".join(bar(steps) for steps in range(1, 40))

    assert said(tmp_path, LINEAR + drawn).code != "A3"


@pytest.mark.parametrize(("number", "code"), [(1, "C1"), (812, "C2")])
def test_the_number_of_a_collective_stands_in_the_rest_of_a_broken_line(
    tmp_path: Path, number: int, code: str
) -> None:
    """In the very first one the ranks may never have met."""
    rest = f"  WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=1, Timeout(ms)=1800000)\n"
    verdict = said(tmp_path, WATCHDOG + rest + "  ran for 1800745 milliseconds.\n")

    assert verdict.code == code


def test_a_count_of_no_parameters_is_a_collective_that_failed(tmp_path: Path) -> None:
    """A model without any is not wrapped: the other rank's answer never came."""
    line = (
        "[rank3]: RuntimeError: DDP expects same model across all ranks, but Rank 3 has 51 params"
    )
    frames = (
        '[rank3]:   File "/venv/torch/distributed/utils.py", line 286, in _verify\n'
        "[rank3]:     return dist._verify_params_across_processes(group, tensors, logger)\n"
    )
    none, some = tmp_path / "none", tmp_path / "some"
    none.mkdir()
    some.mkdir()

    assert said(none, f"{frames}{line}, while rank 0 has inconsistent 0 params.\n").code == "C1"
    assert said(some, f"{frames}{line}, while rank 0 has inconsistent 50 params.\n").code == "A1"


def test_frames_in_a_message_do_not_end_it(tmp_path: Path) -> None:
    """Megatron's assertion prints where it stands before it says what was not finite."""
    step = (
        " iteration  1093/ 2000 | consumed samples:       279808 | elapsed time per iteration"
        " (ms): 217580.9 | learning rate: 1.288E-04 | global batch size:   256 | lm loss:"
        " 2.607045E+00 | loss scale: 1.0 | grad norm: 0.037 |\n"
    )
    raised = (
        "Traceback (most recent call last):\n"
        'AssertionError:   File "/w/megatron/core/distributed/grad_buffer.py", line 146, in sync\n'
        "Rank 5: found NaN in local grad norm in backward pass before data-parallel communication"
        " collective. Device: 5, node: hd02\n"
    )

    assert said(tmp_path, step + raised).code == "E1"


def test_what_the_hub_keeps_is_no_checkpoint_of_the_run(tmp_path: Path) -> None:
    """Its folder names the model that was fetched."""
    frames = (
        '  File "/venv/transformers/modeling_utils.py", line 447, in load_state_dict\n'
        '    with safe_open(checkpoint_file, framework="pt") as f:\n'
        '  File "/venv/torch/storage.py", line 776, in from_file\n'
        "    untyped_storage = UntypedStorage.from_file(\n"
    )
    path = "/hf/hub/models--openai--clip-vit-large-patch14/snapshots/32bd6/model.safetensors"
    verdict = said(
        tmp_path, f"{frames}RuntimeError: unable to open file <{path}> in read-only mode\n"
    )

    assert (verdict.code, verdict.fault_class) == ("A1", "asset")
