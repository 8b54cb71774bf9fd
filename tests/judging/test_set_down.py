"""C4 of a node that Slurm set DOWN because slurmd did not answer, and F1 of one that was gone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place, Verdict

BEGAN = datetime(2026, 5, 4, 6, tzinfo=UTC)
DOWN_S = 3000.0


def stamp(seconds: float) -> str:
    return f"{BEGAN + timedelta(seconds=seconds):%FT%T}"


def metrics(fell_s: float, read_s: float, rebooted: bool) -> str:
    """Three nodes of two GPUs that work up to the end; the one that is set DOWN falls idle and is
    read no more at these seconds."""
    lines = []
    for seconds in range(0, 3600, 30):
        at = int((BEGAN + timedelta(seconds=seconds)).timestamp() * 1000)
        for host in ("pod01", "pod02", "pod03"):
            accused = host == "pod03"
            if accused and seconds > read_s:
                continue
            works = 60 < seconds < (fell_s if accused else DOWN_S)
            lines += [f'DCGM_FI_DEV_POWER_USAGE{{gpu="{gpu}",Hostname="{host}"}}'
                      f" {410 if works else 70} {at}" for gpu in range(2)]  # fmt: skip
            booted = 1_700_000_000 + (90_000 if accused and rebooted and seconds > DOWN_S else 0)
            lines.append(f'node_boot_time_seconds{{instance="{host}:9100"}} {booted} {at}')
    return "\n".join(lines) + "\n"


def judged(
    folder: Path,
    steps_s: float = DOWN_S,
    fell_s: float = DOWN_S,
    read_s: float = 3600,
    rebooted: bool = False,
    host: str = "pod03",
) -> Verdict:
    steps = [f"{BEGAN + timedelta(seconds=at):%F %T} step {at // 10}/9000 loss {2 + 1 / at:.4f}\n"
             for at in range(10, int(steps_s), 10)]  # fmt: skip
    end = (
        f"srun: error: Node failure on {host}\n"
        f"slurmstepd: error: *** STEP 77.0 ON pod01 CANCELLED AT {stamp(DOWN_S)}"
        " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n"
    )
    (folder / "train.log").write_text("".join(steps) + end)
    (folder / "slurmctld.log").write_text(
        f"[{stamp(DOWN_S - 280)}.100] error: Nodes {host} not responding\n"
        f"[{stamp(DOWN_S)}.200] error: Nodes {host} not responding, setting DOWN\n"
    )
    (folder / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        f"77|train|NODE_FAIL|0:0|{stamp(0)}|{stamp(DOWN_S + 1)}|pod[01-03]\n"
    )
    (folder / "metrics.prom").write_text(metrics(fell_s, read_s, rebooted))
    return diagnose(collect(Request((str(folder),))))


def test_steps_power_and_readings_went_on(tmp_path: Path) -> None:
    verdict = judged(tmp_path)

    assert (verdict.code, verdict.culprits) == ("C4", ())
    assert verdict.cleared == (Place(host="pod03"),)
    assert verdict.resubmit == "as_is"


@pytest.mark.parametrize(
    ("steps_s", "fell_s", "read_s", "rebooted"),
    [
        (2700, 2700, 2700, False),
        (DOWN_S, DOWN_S, 2880, False),
        (DOWN_S, DOWN_S, DOWN_S, False),
        (2700, DOWN_S, 3600, False),
        (DOWN_S, 2800, 3600, False),
        (DOWN_S, DOWN_S, 3600, True),
    ],
    ids=["gone", "read no more", "read until then", "no steps", "idle", "it booted"],
)
def test_a_node_that_may_have_been_gone(
    tmp_path: Path, steps_s: float, fell_s: float, read_s: float, rebooted: bool
) -> None:
    """A hung node spins at full power, and a log may have another's clock."""
    verdict = judged(tmp_path, steps_s, fell_s, read_s, rebooted)

    assert (verdict.code, verdict.culprits) == ("F1", (Place(host="pod03"),))
    read_all_along = read_s == 3600 and steps_s == DOWN_S and not rebooted
    assert (verdict.confidence < 0.8) is read_all_along


@pytest.mark.parametrize("gone", ["metrics.prom", "sacct.txt", "train.log", "slurmctld.log"])
def test_one_of_the_sources_is_not_there(tmp_path: Path, gone: str) -> None:
    """What is left does not clear it, and tells too much of it to be sure."""
    judged(tmp_path)
    (tmp_path / gone).unlink()
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "C4" or verdict.confidence < 0.8
