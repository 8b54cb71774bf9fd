"""Exceptions whose frames or words mislead: what a loader did below, what a library restates."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict


def judged(tmp_path: Path, text: str) -> Verdict:
    (tmp_path / "train.log").write_text(text)
    return diagnose(collect(Request((str(tmp_path),))))


LOADING = """Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/fairseq_cli/train.py", line 70, in main
    extra_state, epoch_itr = checkpoint_utils.load_checkpoint(args, trainer)
  File "/venv/lib/python3.11/fairseq/checkpoint_utils.py", line 140, in load_checkpoint
    {code}
  File "/venv/lib/python3.11/site-packages/fairseq/{file}.py", line 283, in {function}
    {code}
IndexError: index 563 is out of bounds for axis 0 with size 560
"""


@pytest.mark.parametrize(
    ("file", "function", "code", "family"),
    [
        ("trainer", "get_train_iterator", "epoch=epoch,", "A1"),
        ("data/pairs", "__getitem__", "return self.rows[at]", "A1"),
        ("trainer", "load_state", "state = saved[at]", "E2"),
    ],
)
def test_a_loader_that_sets_up_the_data_as_well(
    tmp_path: Path, file: str, function: str, code: str, family: str
) -> None:
    """fairseq builds its first iterator within `load_checkpoint`."""
    text = LOADING.format(file=file, function=function, code=code)
    assert judged(tmp_path, text).code == family


def test_what_the_library_warned_of_goes_before_what_jax_makes_of_it(tmp_path: Path) -> None:
    """ "unhandled system error" names no call; the warning quoted below it does."""
    raised = (
        "jax.errors.JaxRuntimeError: INTERNAL: RCCL operation ncclCommInitRankConfig(...)\n"
        "   failed: unhandled system error\n"
    )
    warned = "Last RCCL warning: 'Call to ibv_modify_qp failed with 110 Connection timed out,\n"
    assert judged(tmp_path, raised).code == "A1"
    assert judged(tmp_path, raised + warned).code == "C5"


@pytest.mark.parametrize(
    ("wait", "fit_s", "family"),
    [
        (0.95, 500.0, "D1"),
        (0.5, 500.0, "G1"),
        (0.72, 500.0, "G1"),
        (0.72, 5000.0, "D1"),
        (0.5, 5000.0, "G1"),
    ],
    ids=["hardly else", "half", "mostly, for minutes", "mostly, for an hour", "half, for long"],
)
def test_what_a_profiler_counted_of_the_waits(
    tmp_path: Path, wait: float, fit_s: float, family: str
) -> None:
    """Lightning's table at the end of a run that reached its plan."""
    steps = "\n".join(
        f"epoch 0 step {n}/400 train_loss {2 + 40 / (n + 9):.4f}" for n in range(401)
    )
    rows = [
        ("run_training_epoch", fit_s, 1),
        ("[_TrainingEpochLoop].train_dataloader_next", wait * fit_s, 400),
    ]
    table = "\n".join(
        f"|  {name}   \t|  {s / n:.5g}   \t|  {n}   \t|  {s:.2f}   \t|  49.19   \t|"
        for name, s, n in rows
    )
    text = (
        f"{steps}\n`Trainer.fit` stopped: `max_steps=400` reached.\nFIT Profiler Report\n{table}\n"
    )
    assert judged(tmp_path, text).code == family


@pytest.mark.parametrize(("steps", "family"), [(0, "A2"), (40, "A3")])
def test_an_illegal_access_on_an_amd_gpu_raises_nothing(
    tmp_path: Path, steps: int, family: str
) -> None:
    """The runtime aborts: a kill where no step was made, a crash of the run where some were."""
    made = "".join(f"step {n}/900 loss {2 + 9 / (n + 4):.4f}\n" for n in range(steps))
    fault = (
        "Memory access fault by GPU node-1 (Agent handle: 0x1b376c50) on address 0x7f762a667000."
        " Reason: Page not present or supervisor privilege.\nAborted (core dumped)\n"
    )
    assert judged(tmp_path, "Device: AMD\n" + made + fault).code == family


@pytest.mark.parametrize(
    ("drawn", "family"), [("0/24 [00:00<?, ?it/s]", "A1"), ("9/24 [00:04<00:07, 2.1it/s]", "A3")]
)
def test_a_bar_at_its_beginning_says_that_no_step_was_made(
    tmp_path: Path, drawn: str, family: str
) -> None:
    """A device assertion in the first batch is of the data that was prepared."""
    share = "  0" if drawn.startswith("0/") else " 38"
    text = (
        f"Train epoch 0: {share}%|###       | {drawn}Index.cu:92: operator(): block: [5,0,0],"
        " thread: [64,0,0] Assertion `index >= -sizes[i]` failed.\n"
    )
    assert judged(tmp_path, text).code == family


@pytest.mark.parametrize("label", ["Validation", "Epoch 5", "epoch 12"])
def test_a_bar_of_a_later_pass_says_nothing_of_the_first_step(tmp_path: Path, label: str) -> None:
    """An evaluation, and an epoch that others came before."""
    text = (
        f"{label}:   0%|          | 0/24 [00:00<?, ?it/s]Index.cu:92: operator(): block: [5,0,0],"
        " thread: [64,0,0] Assertion `index >= -sizes[i]` failed.\n"
    )
    assert judged(tmp_path, text).code == "A3"


@pytest.mark.parametrize(("norm", "family"), [("nan", "E1"), ("0.412", None)])
def test_a_policy_whose_gradient_is_no_number_learns_no_more(
    tmp_path: Path, norm: str, family: str | None
) -> None:
    """A batch without a reward gives a policy's loss no value, and leaves the gradient one."""
    text = (
        "step:97 - actor/entropy_loss:nan - actor/pg_loss:nan"
        f" - actor/grad_norm:{norm} - critic/rewards/mean:-1.0\n"
    )
    assert judged(tmp_path, text).code == family


@pytest.mark.parametrize(
    ("function", "family"), [("build_encoder", "A1"), ("resume_from", "E2"), ("main", "E2")]
)
def test_weights_a_model_is_built_from_are_no_resume(
    tmp_path: Path, function: str, family: str
) -> None:
    """A download that was cut short, and a checkpoint that was."""
    text = f"""Traceback (most recent call last):
  File "/home/u/proj/models.py", line 94, in {function}
    state = torch.load(path, map_location="cpu")
  File "/venv/lib/python3.11/site-packages/torch/serialization.py", line 1005, in load
    return _legacy_load(opened_file, map_location, pickle_module)
RuntimeError: unexpected EOF, expected 3120884 more bytes. The file might be corrupted.
"""
    found = judged(tmp_path, text)
    assert found.code == family
    if family == "A1":
        assert found.fault_class == "asset"


@pytest.mark.parametrize(
    ("head", "rank"),
    [
        ("2026-04-01 10:01:40 | ERROR | my_lm.loop | [rank 3, local 1] ", 3),
        ("2026-04-01 10:01:40 ERROR [rank3] ", 3),
        ("2026-04-01 10:01:40 ERROR lost [rank3] ", None),
    ],
    ids=["with more in brackets", "plain", "another is spoken of"],
)
def test_a_logger_says_whose_traceback_it_is(tmp_path: Path, head: str, rank: int | None) -> None:
    """In the first line alone; quoted code is no line that was said."""
    steps = "".join(
        f"2026-04-01 10:00:{n:02d} | INFO | my_lm.loop | step {n} loss {4 - n / 50:.3f}\n"
        for n in range(1, 60)
    )
    raised = (
        "Traceback (most recent call last):\n"
        '  File "/code/my_lm/loop.py", line 88, in run\n'
        "    batch = next(batches)\n"
        '  File "/code/my_lm/rows.py", line 31, in __next__\n'
        '    raise ValueError("CUDA out of memory. Tried to allocate 9 GiB" if full else said)\n'
        "ValueError: row 712 of shard 9 has 12 tokens, wanted 4096\n"
    )
    verdict = judged(tmp_path, steps + head + raised)

    assert verdict.code == "A3"
    assert [place.rank for place in verdict.culprits] == ([] if rank is None else [rank])
