"""A shell goes on after a command that it does not find."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

SCRIPT = "/var/spool/slurmd/job4211/slurm_script: line {}: {}: command not found\n"
MODULE = SCRIPT.format(9, "module")
NO_TORCH = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 3, in <module>\n    import torch\n'
    "ModuleNotFoundError: No module named 'torch'\n"
)


@pytest.mark.parametrize(
    ("log", "code", "cited"),
    [
        (MODULE + SCRIPT.format(14, "apptainer"), "F4", 2),
        (MODULE + "slurmstepd: error: pyxis: couldn't start container\n", "F4", 2),
        (MODULE + NO_TORCH, "A1", 5),
        (SCRIPT.format(14, "torchrun"), "A1", 1),
        (SCRIPT.format(14, "torchrun") + MODULE, "A1", 1),
    ],
    ids=["a runtime", "a container", "a package", "the program", "the first of two"],
)
def test_what_kept_the_program_from_starting(
    tmp_path: Path, log: str, code: str, cited: int
) -> None:
    """It is the later line where that says more than a missing convenience."""
    (tmp_path / "slurm-4211.out").write_text(log)
    told = diagnose(collect(Request((str(tmp_path),))))

    assert told.code == code
    assert told.findings[0].finding.shows[0].cites[0].line == cited


OOM = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 171, in <module>\n    main()\n'
    '  File "train.py", line 90, in main\n    loss = step(batch)\n'
    '  File "/venv/lib/python3.9/site-packages/torch/nn/functional.py", line 1848, in linear\n'
    "    return torch._C._nn.linear(input, weight, bias)\n"
    "RuntimeError: CUDA out of memory. Tried to allocate 174.00 MiB (GPU 0; 15.00 GiB total"
    " capacity; 13.21 GiB already allocated; 51.38 MiB free; 13.70 GiB reserved in total by"
    " PyTorch)\n"
)


@pytest.mark.parametrize("missed", ["nvidia-smi", "module", "SBATCH"])
def test_a_program_that_ran_far_behind_a_missing_convenience(tmp_path: Path, missed: str) -> None:
    """`SBATCH` is a directive that has lost its `#`."""
    (tmp_path / "slurm-4211.out").write_text(SCRIPT.format(9, missed) + OOM)

    assert diagnose(collect(Request((str(tmp_path),)))).code == "B1"


@pytest.mark.parametrize("missed", ["torchrun", "composer", "./build/train"])
def test_what_a_script_runs_after_the_program_it_missed(tmp_path: Path, missed: str) -> None:
    """The evaluation of what was never trained fails for that; a name that is not known may be the
    program's."""
    (tmp_path / "slurm-4211.out").write_text(SCRIPT.format(9, missed) + OOM)

    assert diagnose(collect(Request((str(tmp_path),)))).code == "A1"


NO_CHECKPOINT = (
    "Traceback (most recent call last):\n"
    '  File "eval.py", line 9, in <module>\n    main()\n'
    '  File "eval.py", line 5, in main\n    model = torch.load("out/last.pt")\n'
    "FileNotFoundError: [Errno 2] No such file or directory: 'out/last.pt'\n"
)


@pytest.mark.parametrize("missed", ["torchrun", "llamafactory-cli", "./train.sh", "lmtrain"])
@pytest.mark.parametrize("end", [NO_CHECKPOINT, "srun: error: n1: task 0: Killed\n"])
def test_what_fails_without_the_program_is_no_cause(tmp_path: Path, missed: str, end: str) -> None:
    """What it should have written is not there; what ran in its place is killed."""
    (tmp_path / "slurm-4211.out").write_text(SCRIPT.format(9, missed) + end)
    told = diagnose(collect(Request((str(tmp_path),))))

    assert (told.code, told.fault_class, told.confidence < 0.8) == ("A1", "env", True)
