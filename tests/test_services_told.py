"""What services say that lend machines and run notebooks, around the program's own lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose


def steps(count: int, pid: int) -> str:
    return "".join(
        f"(lm, pid={pid}) step {n} loss {3 * 0.9985**n:.4f}\n" for n in range(0, count, 10)
    )


LOST = "I 02-03 11:40:07 controller.py:{}] {}\n"
TAKEN = (
    "I 02-03 11:40:09 recovery_strategy.py:471] Cluster lm-2-31: the spot VM was preempted by G.\n"
)
BACK = "I 02-03 11:52:30 controller.py:330] Recovered. Job status: RUNNING\n"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (LOST.format(260, "The job is preempted or failed unexpectedly: not UP."), "F2"),
        (LOST.format(318, "Preempted or failed! Recovering..."), "F2"),
        (TAKEN, "F2"),
        (LOST.format(90, "The strategy of a job that is preempted is FAILOVER"), None),
        ("I 02-03 11:40:09 recovery_strategy.py:90] may be preempted, launching on spot\n", None),
    ],
)
def test_a_cluster_that_was_taken_back(tmp_path: Path, said: str, code: str | None) -> None:
    """And what was made again of the run."""
    (tmp_path / "train.log").write_text(steps(900, 77) + said + BACK + steps(300, 12))

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


RAM = "Your session crashed after using all available RAM. View runtime logs\n"
AGAIN = "Mar 4, 2026, 06:30:06 PM\tINFO\tAsyncIOLoopKernelRestarter: restarting kernel (1/5)\n"


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (AGAIN + RAM, ("A2", "host-oom")),
        ("Your notebook tried to allocate more memory than is available. It has restarted.\n",
         ("A2", "host-oom")),
        (AGAIN, (None, None)),  # a program may end its own kernel, for what it installed
        (f"Tip: where you see '{RAM.strip()}', take a larger machine\n", (None, None)),
    ],
)  # fmt: skip
def test_a_notebook_that_lost_its_kernel(
    tmp_path: Path, said: str, wanted: tuple[str | None, str | None]
) -> None:
    (tmp_path / "job.log").write_text(f"Mar 4, 2026, 06:23:13 PM\tWARNING\tEpoch 1/30\n{said}")
    found = diagnose(collect(Request((str(tmp_path),))))

    assert (found.code, found.fault_class) == wanted


def test_a_cell_that_is_run_again(tmp_path: Path) -> None:
    """What died before is told of no run that goes on behind it to its end."""
    whole = "".join(f"step {n}/300 loss {3 * 0.995**n:.4f}\n" for n in range(1, 301))
    (tmp_path / "job.log").write_text(f"{RAM}{whole}Training complete.\n")

    assert diagnose(collect(Request((str(tmp_path),)))).code == "G1"
