"""What logs say a run was set to, and what a difference of it weighs."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.judging.settings import settings, stated

STEP = "step 10/100 loss 2.5 lr 1.0e-04 step_time 100.0 ms\nstep 20/100 loss 2.4\n"


def values(folder: Path, text: str) -> dict[str, str | None]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.log").write_text(text + "\n" + STEP * 3)
    facts = collect(Request((str(folder),)))
    return {key: said.value for key, said in stated(facts).items()}


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("0: Config param per_device_batch_size: 12.0", "per_device_batch_size", "12.0"),
        ("  micro_batch_size ........................ 4", "micro_batch_size", "4"),
        ("per_device_train_batch_size=8,", "per_device_train_batch_size", "8"),
        ('  "hidden_size": 4096,', "hidden_size", "4096"),
        ("seq_length: 2048", "seq_length", "2048"),
        ("INFO Namespace(model='gpt', lr=0.1, seed=3)", "seed", "3"),
        ("Arguments {'model': 'models/tiny', 'batch_size': 8}", "batch_size", "8"),
        ("+ torchrun --nproc-per-node 8 train.py --seq-len 4096 --bf16", "seq_len", "4096"),
        ("+ torchrun --nproc-per-node 8 train.py --seq-len 4096 --bf16", "bf16", "True"),
        ("world size 24, 1400 steps planned", "world_size", "24"),
        ("node1:12:34 [0] NCCL INFO NCCL version 2.21.5+cuda12.4", "nccl", "2.21.5+cuda12.4"),
        ("node1:12:34 [0] NCCL INFO Using network Socket", "nccl_network", "Socket"),
        ("export NCCL_IB_DISABLE=1", "nccl_ib_disable", "1"),
        ("+ export XLA_FLAGS='--xla_gpu_x=true --y'", "xla_flags", "--xla_gpu_x=true --y"),
        ("n1:1:2 [0] NCCL INFO NCCL_ALGO set by environment to Ring.", "nccl_algo", "Ring"),
        ("using torch 2.5.1+cu124", "torch", "2.5.1+cu124"),
        ("PyTorch version: 2.4.0", "torch", "2.4.0"),
        ("Total train batch size (w. parallel) = 512", "global_batch_size", "512"),
    ],
)  # fmt: skip
def test_a_setting_is_read_as_it_is_printed(
    line: str, key: str, value: str, tmp_path: Path
) -> None:
    """MaxText, Megatron-LM, YAML, JSON, Namespace, a command line, and sentences."""
    assert values(tmp_path, line)[key] == value


def test_lines_of_steps_are_no_settings(tmp_path: Path) -> None:
    """What is printed from the first step on changes by itself."""
    assert "lr" not in values(tmp_path, "starting")


def test_a_setting_of_two_values_is_left_out(tmp_path: Path) -> None:
    """A warm-up stage and the real one may print the same key."""
    assert values(tmp_path, "batch_size: 8\nbatch_size: 16")["batch_size"] is None


def pair(tmp_path: Path, ours: str, theirs: str) -> tuple[list[tuple[str, str]], list[str]]:
    facts = []
    for name, text in (("a", ours), ("b", theirs)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.log").write_text(text + "\n" + STEP * 3)
        facts.append(collect(Request((str(tmp_path / name),))))
    differ, agreed = settings(*facts)
    return [(one.name, one.weight) for one in differ], agreed


@pytest.mark.parametrize(
    ("key", "name", "weight"),
    [
        ("global_batch_size", "global batch size", "work"),
        ("max_target_length", "sequence length", "work"),
        ("dtype", "precision", "speed"),
        ("remat_policy", "recomputation", "speed"),
        ("learning_rate", "learning rate", "learning"),
        ("load_parameters_path", "load_parameters_path", "start"),
        ("enable_single_replica_ckpt_restoring", "enable_single_replica_ckpt_restoring", "start"),
        ("some_new_knob", "some_new_knob", "other"),
        ("NCCL_IB_DISABLE", "NCCL_IB_DISABLE", "speed"),
        ("NCCL_DEBUG", "nccl_debug", "other"),
    ],
)
def test_what_a_difference_weighs(key: str, name: str, weight: str, tmp_path: Path) -> None:
    """The work of a step, its speed, the learning, the beginning, or nobody knows."""
    differ, _ = pair(tmp_path, f"Config param {key}: 1", f"Config param {key}: 2")
    assert differ == [(name, weight)]


@pytest.mark.parametrize("key", ["run_name", "base_output_directory", "output_dir", "master_port",
                                 "hostname", "start_time", "job_id", "log_path"])  # fmt: skip
def test_what_every_run_sets_for_itself_is_no_difference(key: str, tmp_path: Path) -> None:
    """Names, folders, ports and times."""
    assert pair(tmp_path, f"Config param {key}: x1", f"Config param {key}: x2") == ([], [])


@pytest.mark.parametrize(("ours", "theirs"), [("8", "8.0"), ("True", "true"), ("1e-4", "0.0001"),
                                              ("1,024", "1024")])  # fmt: skip
def test_the_same_value_otherwise_spelt_agrees(ours: str, theirs: str, tmp_path: Path) -> None:
    """A number is a number."""
    differ, agreed = pair(tmp_path, f"batch_size: {ours}", f"batch_size: {theirs}")
    assert (differ, agreed) == ([], ["batch size"])


def test_every_citation_stands_in_its_line(tmp_path: Path) -> None:
    """Even far behind in a long line."""
    long = "Namespace(" + ", ".join(f"knob_{n}={n}" for n in range(400)) + ", batch_size=8)"
    (tmp_path / "job.log").write_text(long + "\n" + STEP * 3)
    facts = collect(Request((str(tmp_path),)))
    cite = stated(facts)["batch_size"].cite

    assert cite.line == 1
    assert cite.text == "batch_size=8"
    assert cite.text in long
