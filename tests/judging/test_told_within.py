"""Whose card an error of the driver's is of, by the lines around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

STEPS = "".join(f"step {n}/900 loss {3 - n / 200:.3f}\n" for n in range(1, 12))
ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
HEAD = "Traceback (most recent call last):\n"
FRAME = '  File "{}.py", line {}, in {}\n    {}\n'
TRACE = HEAD + FRAME.format("train", 40, "main", "loss = step(batch)")
WATCHDOG = (
    "[E ProcessGroupNCCL.cpp:1153] [Rank {}] NCCL watchdog thread terminated with exception: "
    "CUDA error: uncorrectable ECC error encountered\n"
)
TASK = "ray.exceptions.RayTaskError(RuntimeError): ray::{}() (pid={}, ip={}{})\n"


def of_ray(*tasks: tuple[str, str]) -> str:
    text = HEAD + FRAME.format("driver", 9, "<module>", "ray.get(job.remote())")
    for n, (name, ip) in enumerate(tasks):
        more = ", actor_id=9f3a, repr=<worker.Worker object at 0x7f01>" if n else ""
        text += TASK.format(name, 800 + n, ip, more)
        text += FRAME.format(f"part{n}", 3 * n, "update", "self.optimizer.step()")
    return text + ECC


def told(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(STEPS + text)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        (TRACE + ECC + "\n" + WATCHDOG.format(5), [5]),
        (TRACE + ECC + "\n" + WATCHDOG.format(5) + WATCHDOG.format(6), []),
        (TRACE + ECC, []),
    ],
    ids=["one says so itself", "two do", "nobody is named"],
)
def test_the_rank_whose_own_watchdog_tells(tmp_path: Path, text: str, ranks: list[int]) -> None:
    verdict = told(tmp_path, text)

    assert verdict.code == "B2"
    assert [place.rank for place in verdict.culprits] == ranks


INNER = ("Worker.update", "10.8.0.7")


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        (of_ray(("main", "10.8.0.2"), INNER), ["10.8.0.7"]),
        (of_ray(("main", "10.8.0.2"), INNER) + of_ray(("Worker.update", "10.8.0.9")), []),
        ("ray::Worker.update() (pid=8, ip=10.8.0.7) began\n" + TRACE + ECC, []),
        (of_ray(INNER) + TRACE + ECC, []),
    ],
    ids=["the innermost task", "two hosts", "amid other lines", "one of two is known"],
)
def test_the_host_on_which_rays_task_raised(tmp_path: Path, text: str, hosts: list[str]) -> None:
    """The driver's process only raises again what its task raised elsewhere."""
    verdict = told(tmp_path, text)

    assert verdict.code == "B2"
    assert [place.host for place in verdict.culprits] == hosts
    assert (verdict.resubmit == "exclude") == bool(hosts)
