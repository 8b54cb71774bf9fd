"""What the place of an error says of it: a save above, a worker's frames, a client of HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

HEAD = "Traceback (most recent call last):"
CALL = '  File "train.py", line 9, in <module>\n    main()'


def verdict(folder: Path, *lines: str) -> Verdict:
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("2026-09-20 11:02:44,310 - mmdet - INFO - Saving checkpoint at 5 epochs", "A3"),
        ("saving checkpoint at iteration 500 to /ckpt", "A3"),
        ("Saving checkpoint every 5 epochs to /ckpt", "A1"),
        ("saving checkpoints to /ckpt", "A1"),
    ],
)
def test_a_save_of_some_steps_is_one_of_a_loop_that_ran(
    tmp_path: Path, line: str, code: str
) -> None:
    found = verdict(tmp_path, line, HEAD, CALL, "KeyError: 'gt_masks'")
    assert found.code == code


def in_worker(file: str) -> list[str]:
    return [HEAD, f'  File "{file}", line 302, in _worker_loop', "    data = fetcher.fetch(index)",
            "RuntimeError: CUDA error: initialization error"]  # fmt: skip


def test_cuda_in_a_process_that_was_forked(tmp_path: Path) -> None:
    """In a worker of a loader it is how the program is set up, elsewhere how the machine is."""
    found = verdict(tmp_path, *in_worker("/v/torch/utils/data/_utils/worker.py"))
    assert (found.code, found.fault_class) == ("A1", "config")
    found = verdict(tmp_path, *in_worker("/home/u/serve.py"))
    assert (found.code, found.fault_class) == ("A1", "env")


def test_a_network_that_a_client_of_http_does_not_reach(tmp_path: Path) -> None:
    """What is fetched before the first step is a model or a data set, whoever asks for it."""
    frame = '  File "/v/urllib3/util/connection.py", line 73, in create_connection'
    found = verdict(tmp_path, HEAD, frame, "OSError: [Errno 101] Network is unreachable")
    assert (found.code, found.fault_class) == ("A1", "asset")
    found = verdict(tmp_path, HEAD, CALL, "OSError: [Errno 101] Network is unreachable")
    assert found.fault_class != "asset"


def test_cudnn_that_does_not_start(tmp_path: Path) -> None:
    """Versions mostly; a full card where a line about memory stands beside it."""
    failed = "E cuda_dnn.cc:429] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR"
    found = verdict(tmp_path, failed)
    assert (found.code, found.fault_class) == ("A1", "env")
    assert found.confidence < 0.8
    full = "E cuda_driver.cc:806] failed to allocate 2.20G (2362232064 bytes) from device:"
    assert (
        verdict(tmp_path, f"{full} CUDA_ERROR_OUT_OF_MEMORY: out of memory", failed).code == "B1"
    )
    assert verdict(tmp_path, failed.replace("INTERNAL_ERROR", "ALLOC_FAILED")).code == "B1"


def test_a_node_that_ray_gives_up_explains_the_results_that_are_lost(tmp_path: Path) -> None:
    dead = ("The node with client ID 7f0a1dbd has been marked dead because the monitor has missed"
            " too many heartbeats from it.")  # fmt: skip
    lost = "ray.worker.RayGetError: Could not get objectid ObjectID(01)."
    steps = [f"step {n} loss {4 - n / 10}" for n in range(1, 12)]
    assert verdict(tmp_path, *steps, dead, HEAD, CALL, lost).code == "F1"


def test_a_service_beside_the_run_that_is_not_reached_is_no_asset(tmp_path: Path) -> None:
    """A tracking server speaks HTTP as well."""
    frames = ['  File "/v/site-packages/mlflow/tracking/client.py", line 9, in create_run',
              "    self.store.create_run()",
              '  File "/v/urllib3/util/connection.py", line 73, in create_connection']  # fmt: skip
    found = verdict(tmp_path, HEAD, *frames, "OSError: [Errno 101] Network is unreachable")
    assert found.fault_class != "asset"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("inputs of mixed lengths at iteration 812", "A3"),
        ("empty batch in epoch 4, sample 17", "A3"),
        ("graph was freed at global step 350", "A3"),
        ("inputs of mixed lengths at iteration 0", "A1"),
        ("empty batch in epoch 1, sample 17", "A1"),  # the first, where they are counted from 1
        ("no tokens left at step 3 of the preparation", "A1"),
        ("learning rate must be positive at iteration 812", "A1"),
        ("no such milestone: decay at epoch 40", "A1"),
        ("k-means did not converge after iteration 300", "A1"),
    ],
)
def test_a_message_that_names_its_step_was_raised_there(
    tmp_path: Path, message: str, code: str
) -> None:
    loop = '  File "train.py", line 40, in train_one_epoch\n    step(batch)'
    assert verdict(tmp_path, HEAD, CALL, loop, f"RuntimeError: {message}").code == code


def test_a_step_that_is_named_outside_a_loop_may_be_one_to_come(tmp_path: Path) -> None:
    """Settings are checked, tables built, before any step."""
    check = '  File "config.py", line 40, in validate\n    raise ValueError(said)'
    said = "ValueError: the encoder is thawed in epoch 12, training has 5"
    assert verdict(tmp_path, HEAD, CALL, check, said).code == "A1"


def test_of_a_run_that_went_on_the_step_it_names_may_be_the_first(tmp_path: Path) -> None:
    went_on = "Resuming from checkpoint ckpt/last.pt at step 811"
    raised = "RuntimeError: inputs of mixed lengths at iteration 812"
    assert verdict(tmp_path, went_on, HEAD, CALL, raised).code == "A1"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("model.save_weights('w/part_{}'.format(epoch))", "A3"),
        ("saver.save(sess, path, global_step=step)", "A3"),
        ("model.save_weights('w/epoch.h5')", "A1"),
        ("model.save(opt.epoch)", "A1"),
    ],
)
def test_weights_that_are_named_after_a_count_are_saved_in_the_loop(
    tmp_path: Path, line: str, code: str
) -> None:
    frame = ['  File "fit.py", line 31, in <module>', f"    {line}"]
    assert verdict(tmp_path, HEAD, *frame, "TypeError: not a path").code == code
