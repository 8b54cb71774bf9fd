"""
Record real runs as test scenarios: `python -m lab.record.record [NAME ...]` (all when none).

Needs root on Linux with cgroup v1 (for the memory limits), gcc, iproute2, and two virtual
environments: RECORD_TORCH_VENV and RECORD_JAX_VENV (README.md says what is in them).  Each case is
played in namespaces of its own; nothing outside them is changed.
"""

from __future__ import annotations

import inspect
import shutil
import subprocess
import sys
import textwrap
import traceback
from dataclasses import replace
from pathlib import Path

from lab.record import (
    cases_checkpoints,
    cases_frameworks,
    cases_jax,
    cases_near,
    cases_rendezvous,
    cases_signals,
    cases_slurm,
    cases_torchrun,
)
from lab.record.case import Case, demo_truth, expectation
from lab.record.neutral import neutralise
from lab.record.stage import JAX_VENV, TORCH_VENV, Stage

REPOSITORY = Path(__file__).resolve().parents[2]
SCENARIOS = REPOSITORY / "tests" / "scenarios"
DEMO = REPOSITORY / "src" / "flatline" / "demo"
MODULES = (
    cases_torchrun, cases_signals, cases_rendezvous, cases_checkpoints,
    cases_frameworks, cases_jax, cases_near, cases_slurm,
)  # fmt: skip
_SHOWN = {
    "torchrun": ("torch",),
    "python": ("torch",),
    "hf-trainer": ("torch", "transformers", "datasets", "peft", "trl", "accelerate"),
    "lightning": ("torch", "lightning"),
    "keras": ("torch", "keras"),
    "jax": ("jax", "jaxlib"),
    "slurm": ("torch",),
}


def versions(origin: str) -> str:
    """Versions of what played the case, from the virtual environment's own metadata."""
    venv = JAX_VENV if origin == "jax" else TORCH_VENV
    script = (
        "import sys\nfrom importlib.metadata import version\n"
        "print(', '.join(f'{p} {version(p)}' for p in sys.argv[1:]), 'on Python', sys.version.split()[0])"
    )
    command = [str(venv / "bin" / "python"), "-c", script, *_SHOWN[origin]]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    return f"{text}, Slurm 22.05.8" if origin == "slurm" else text


def readme(case: Case, stage: Stage) -> str:
    """What was really done, when, with what."""
    told = textwrap.dedent(inspect.getdoc(case.play) or "")
    program = Path(inspect.getsourcefile(case.play) or "").name
    notes = "\n".join(f"- {n}" for n in stage.notes) or "- nothing was done from outside"
    how = "Recorded" if case.provenance == "recorded" else "Simulated"
    return (
        f"# {case.name.replace('_', ' ')}\n\n{told}\n\n"
        f"{how} {stage.began:%Y-%m-%d %H:%M} UTC by `{case.play.__name__}` in `lab/record/{program}`: "
        f"{versions(case.origin)}, CPU only.\n"
        "Paths, user and host names are neutral; nothing else of what the run printed was changed.\n\n"
        f"What was done from outside, by the clock of the run:\n\n{notes}\n"
    )


def record(case: Case) -> list[str]:
    """Plays one case into its scenario folder and returns what is wrong with it."""
    folder = SCENARIOS / case.name
    stage = Stage(case.name, folder / "run")
    try:
        case.play(stage)
    finally:
        stage.close()
    trouble = neutralise(folder / "run")
    write_truth(case, folder)
    (folder / "README.md").write_text(readme(case, stage))
    return trouble


def write_truth(case: Case, folder: Path) -> None:
    """Writes expect.toml, and the demo where the case has a place in it."""
    case = with_job_id(case, folder / "run")
    (folder / "expect.toml").write_text(expectation(case, folder / "run"))
    if case.demo:
        shown = DEMO / case.demo
        shutil.rmtree(shown, ignore_errors=True)
        shutil.copytree(folder / "run", shown / "run")
        (shown / "truth.toml").write_text(demo_truth(case))


def with_job_id(case: Case, run: Path) -> Case:
    """Fills {job} in the arguments with the job that the kept controller record is of."""
    if "{job}" not in case.args:
        return case
    job = (run / "job.txt").read_text().split()[0].removeprefix("JobId=")
    return replace(case, args=tuple(a.replace("{job}", job) for a in case.args))


def main() -> int:
    cases = {c.name: c for module in MODULES for c in module.CASES}
    wanted = sys.argv[1:] or list(cases)
    if wanted[0] == "--list":
        print("\n".join(cases))
        return 0
    only_truth = wanted[0] == "--truth"
    names = (wanted[1:] or list(cases)) if only_truth else wanted
    failed = 0
    for name in names:
        try:
            if only_truth:
                write_truth(cases[name], SCENARIOS / name)
                continue
            trouble = record(cases[name])
        except Exception:  # noqa: BLE001 - one case that cannot be played must not end the others
            traceback.print_exc()
            trouble = ["was not recorded"]
        failed += bool(trouble)
        print(f"{name}: {'; '.join(trouble) or 'recorded'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
