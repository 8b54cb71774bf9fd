"""B2 by counters: what rose, what is old, and what vanished."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from families.fleet import checked, facts_of, findings, sample, stepping
from flatline.families.gpu_hardware_fault import judge
from flatline.model import Attempt, Finding, Place

ECC, XID, WATTS = (
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_DEV_POWER_USAGE",
)
Reading = Callable[[int, float], dict[str, float]]
"""(GPU, seconds) -> what differs from a sound one; nothing at all under the key `gone`."""


def judged(
    tmp_path: Path, differs: Reading, stops_s: float = 600, **more: object
) -> tuple[Finding, ...]:
    """Two hosts of four GPUs, read every 30 s for twenty minutes."""
    lines = []
    for gpu in range(8):
        for at in range(0, 1200, 30):
            odd = differs(gpu, at)
            read = {ECC: 0.0, XID: 0.0, WATTS: 400.0 + at % 7, **odd}
            labels = f'gpu="{gpu % 4}",Hostname="n{gpu // 4}",UUID="GPU-{gpu}",job="dcgm"'
            if "gone" not in odd:
                lines += [sample(name, labels, value, at) for name, value in read.items()]
    facts, source = facts_of(tmp_path, lines, stepping(stops_s), **more)
    return findings(checked(judge(facts), source))


def test_a_rise_as_the_run_stops_is_the_cause(tmp_path: Path) -> None:
    """Named with its GPU and its time."""
    (found,) = judged(tmp_path, lambda gpu, at: {ECC: 1.0} if gpu == 5 and at > 570 else {})

    assert found.culprits == (Place(host="n1", gpu="1"),)
    assert (found.role, found.fault_class, found.ended_run) == ("cause", "memory", True)


def test_old_errors_are_a_warning(tmp_path: Path) -> None:
    """Since boot, and flat: they did not stop this run."""
    (found,) = judged(tmp_path, lambda gpu, at: {ECC: 7.0} if gpu == 5 else {})

    assert (found.role, found.onset) == ("warning", None)


def test_a_rise_long_before_the_end_is_a_warning(tmp_path: Path) -> None:
    """The run went on for minutes: it survived."""
    (found,) = judged(tmp_path, lambda gpu, at: {ECC: 1.0} if gpu == 5 and at > 200 else {})

    assert (found.role, found.ended_run) == ("warning", False)


def test_a_rise_after_the_run_had_stopped_is_nobodys_cause(tmp_path: Path) -> None:
    """The next job's, or the test that was run on the node."""
    assert judged(tmp_path, lambda gpu, at: {ECC: 1.0} if gpu == 5 and at > 1000 else {}) == ()


def test_a_completed_run_was_not_ended(tmp_path: Path) -> None:
    """A rise in its last minute is a warning."""
    done = (Attempt(0, "completed"),)
    (found,) = judged(
        tmp_path, lambda gpu, at: {ECC: 1.0} if gpu == 5 and at > 570 else {}, attempts=done
    )

    assert found.role == "warning"


@pytest.mark.parametrize(("code", "kind"), [(79, "bus"), (48, "memory"), (119, "firmware")])
def test_an_xid_of_the_hardware_that_appears(tmp_path: Path, code: int, kind: str) -> None:
    """The gauge changes within the run."""
    (found,) = judged(tmp_path, lambda gpu, at: {XID: code} if gpu == 2 and at > 570 else {})

    assert (found.fault_class, found.role) == (kind, "cause")


@pytest.mark.parametrize("code", [13, 31, 43, 45, 63])
def test_an_xid_of_the_program_is_no_fault_of_the_gpu(tmp_path: Path, code: int) -> None:
    """Nor is a remapping that worked."""
    assert judged(tmp_path, lambda gpu, at: {XID: code} if gpu == 2 and at > 570 else {}) == ()


def test_an_xid_that_stays_is_no_event(tmp_path: Path) -> None:
    """The last one seen, from before the run."""
    (found,) = judged(tmp_path, lambda gpu, at: {XID: 79} if gpu == 2 else {})

    assert found.role == "warning"


def test_a_gpu_that_vanishes_beside_its_neighbours(tmp_path: Path) -> None:
    """Lost from the bus."""
    (found,) = judged(tmp_path, lambda gpu, at: {"gone": 1} if gpu == 6 and at > 590 else {})

    assert (found.fault_class, found.culprits) == ("lost", (Place(host="n1", gpu="2"),))


def test_a_host_that_vanishes_whole_is_no_gpus_fault(tmp_path: Path) -> None:
    """Its exporter, or the host."""
    assert judged(tmp_path, lambda gpu, at: {"gone": 1} if gpu > 3 and at > 590 else {}) == ()


def test_one_missed_scrape_is_no_loss(tmp_path: Path) -> None:
    """Every exporter times out once."""
    assert judged(tmp_path, lambda gpu, at: {"gone": 1} if gpu == 6 and at == 600 else {}) == ()
