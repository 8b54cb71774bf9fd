"""What a finalizer raises as Python cleans up behind a process ends no run."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

RAISED = (
    "Traceback (most recent call last):\n"
    '  File "/usr/lib/python3.10/multiprocessing/{0}.py", line 300, in {1}\n'
    "    finalizer()\n"
    '  File "/usr/lib/python3.10/multiprocessing/synchronize.py", line 87, in _cleanup\n'
    "    sem_unlink(name)\n"
    "FileNotFoundError: [Errno 2] No such file or directory\n"
)
STOPPED = (
    ':::MLLOG {"namespace": "", "time_ms": 1772438963120, "event_type": "INTERVAL_END", "key":'
    ' "run_stop", "value": null, "metadata": {"file": "engine.py", "lineno": 315, "status":'
    ' "success"}}\n'
)


def verdict(folder: Path, raised: str, data_s: float = 0.01, stopped: str = STOPPED) -> Verdict:
    steps = "".join(
        f"Epoch: [{epoch}]  [{n:>4}/300]  eta: 0:03:00  lr: 0.0003  loss: {3 / (epoch + 1):.4f}"
        f"  time: 0.1385  data: {data_s:.4f}  max mem: 24815\n"
        for epoch in range(4)
        for n in range(0, 300, 10)
    )
    (folder / "train.log").write_text(steps + stopped + raised)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("place", "disposition"),
    [(("util", "_run_finalizers"), "completed"), (("process", "_bootstrap"), "failed")],
)
def test_an_error_of_a_finalizer(tmp_path: Path, place: tuple[str, str], disposition: str) -> None:
    """Python prints it and goes on; one of the process itself it does not."""
    assert verdict(tmp_path, RAISED.format(*place)).run.disposition == disposition


@pytest.mark.parametrize(("stopped", "code"), [(STOPPED, "G1"), ("", "D1")])
def test_a_benchmark_that_met_its_target_while_it_waited(
    tmp_path: Path, stopped: str, code: str
) -> None:
    """Its tuned loop waits for the device where it takes its data; of others that is not known."""
    told = verdict(tmp_path, "", data_s=0.1245, stopped=stopped)

    assert told.code == code
    assert "D1" not in {one.finding.code for one in told.findings if one.role == "cause"} or (
        code == "D1"
    )
