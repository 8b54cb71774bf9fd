"""C4 of a node of Ray's whose own log has steps up to the moment at which it was given up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place, Verdict

LEFT = datetime(2026, 9, 2, 14, 40, 30, tzinfo=UTC)
RAYLET = (
    "[{:%F %T},118 C 412 412] (raylet) node_manager.cc:1031: [Timeout] Exiting because this node"
    " manager has mistakenly been marked as dead by the GCS: GCS failed to check the health of"
    " this node for 5 times.\n"
)
DRIVER = (
    "(raylet) The node with node id: 77ab01 and address: 10.8.0.12 and node name: gx12 has been"
    " marked dead because the detector has missed too many heartbeats from it.\n"
    "{:%F %T},201\tERROR tune_controller.py:1331 -- Trial task failed for trial ppo_0\n"
)
ROW = (
    "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
    "61|FAILED|1:0|2026-09-02T14:00:00|2026-09-02T14:40:40|2|gx[11-12]\n"
)


def steps(*, each_s: float, until_s: float, quiet_s: float = 0.0) -> str:
    """Steps of the node's worker until so long before the raylet left; the last so many seconds
    but for the final three without any."""
    lines, count = [], int(1500 / each_s)
    for n in range(1, count + 1):
        before_s = until_s + (count - n) * each_s
        if not until_s + 3 < before_s < until_s + quiet_s:
            at = LEFT - timedelta(seconds=before_s)
            lines.append(f"{at:%F %T},{n % 1000:03d} INFO worker[1] iter={n} loss={2 - n / 4000}")
    return "\n".join(lines) + "\n"


def judged(folder: Path, own: str, *, raylet: bool = True, driver: bool = True) -> Verdict:
    (folder / "worker-gx12.log").write_text(own)
    if raylet:
        (folder / "raylet-gx12.out").write_text(RAYLET.format(LEFT))
    if driver:
        (folder / "driver.log").write_text(DRIVER.format(LEFT + timedelta(seconds=1)))
    (folder / "sacct.txt").write_text(ROW)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("raylet", "driver"), [(True, True), (True, False), (False, True)],
    ids=["both tell", "its raylet alone", "the driver alone"],
)  # fmt: skip
def test_its_worker_made_steps_until_then(tmp_path: Path, raylet: bool, driver: bool) -> None:
    """The line that gives it up bears no time: the next dated one tells by when at the latest."""
    verdict = judged(tmp_path, steps(each_s=4.0, until_s=1.0), raylet=raylet, driver=driver)

    assert verdict.code == "C4"
    assert verdict.cleared == (Place(host="gx12"),)


@pytest.mark.parametrize(
    "own",
    [
        steps(each_s=4.0, until_s=25.0),
        steps(each_s=0.5, until_s=0.2, quiet_s=60.0),
        steps(each_s=12.0, until_s=1.0),
    ],
    ids=["it stopped before", "it stood still and woke", "too few"],
)
def test_near_misses_prove_no_work(tmp_path: Path, own: str) -> None:
    assert judged(tmp_path, own).code != "C4"


HEAD = (
    "[{:%F %T},000 W 701 701] (gcs_server) gcs_health_check_manager.cc:88: Node"
    " 77ab0113e2156a1094b5700cf276010ff4532e48b99f7b8895532f9{} is dead because the health check"
    " failed.\n"
)


@pytest.mark.parametrize(
    ("before_s", "others", "until_s", "code"),
    [(97, 0, 1.0, "C4"), (97, 0, 80.0, None), (97, 1, 1.0, None), (-5, 0, 1.0, None)],
    ids=["went on", "one step more", "two nodes", "told later"],
)
def test_when_the_head_gave_it_up_by_its_own_log(
    tmp_path: Path, before_s: int, others: int, until_s: float, code: str | None
) -> None:
    """A raylet may learn of it long after, and steps of 24 s are few in between."""
    at = LEFT - timedelta(seconds=before_s)
    (tmp_path / "gcs_server.out").write_text(
        "".join(HEAD.format(at, n) for n in range(others + 1))
    )

    verdict = judged(tmp_path, steps(each_s=24.0, until_s=until_s))

    assert (verdict.code if verdict.code == "C4" else None) == code


def power(*, fell_s: float, each_s: int = 15) -> str:
    """Two nodes whose GPUs idle, work, and fall: the accused one's so long before it left."""
    lines = []
    for seconds in range(-1700, 240, each_s):
        at = int((LEFT + timedelta(seconds=seconds)).timestamp() * 1000)
        for host, until in (("gx11", 5.0), ("gx12", -fell_s)):
            watts = 240 if -1500 < seconds < until else 60
            lines.append(f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",Hostname="{host}"}} {watts} {at}')
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("fell_s", "raylet", "code"),
    [(-5.0, True, "C4"), (50.0, True, None), (-5.0, False, None)],
    ids=["worked on", "fell before", "its raylet says nothing"],
)
def test_its_gpus_drew_what_they_do_at_work(
    tmp_path: Path, fell_s: float, raylet: bool, code: str | None
) -> None:
    """Where its raylet lived to be told, and nothing was written in that time; never surely."""
    (tmp_path / "metrics.prom").write_text(power(fell_s=fell_s))
    verdict = judged(tmp_path, "", raylet=raylet)

    assert (verdict.code if verdict.code == "C4" else None) == code
    if code is not None:
        assert verdict.cleared == (Place(host="gx12"),)
        assert verdict.confidence < 0.8


CHECK = (
    "[{:%F %T},000 W 701 709] (gcs_server) gcs_health_check_manager.cc:132: Health check failed"
    " for node {}, remaining checks {}, status 4, response status 0, status message Deadline"
    " Exceeded\n"
)
KEY = "77ab0113e2156a1094b5700cf276010ff4532e48b99f7b8895532f90"


@pytest.mark.parametrize(
    ("fell_s", "key", "code"),
    [(-5.0, KEY, "C4"), (70.0, KEY, None), (-5.0, KEY.replace("7", "8"), None)],
    ids=["worked on", "fell as it went silent", "of another node"],
)
def test_checks_that_the_head_counted_down(
    tmp_path: Path, fell_s: float, key: str, code: str | None
) -> None:
    """Of longer timeouts, in which few readings lie; an earlier silence ended."""
    counted = [(-400, 3), (-62, 4), (-49, 3), (-36, 2), (-23, 1), (-10, 0)]
    told = (CHECK.format(LEFT + timedelta(seconds=s), key, left) for s, left in counted)
    (tmp_path / "gcs_server.out").write_text("".join(told) + HEAD.format(LEFT, 0))
    (tmp_path / "metrics.prom").write_text(power(fell_s=fell_s, each_s=49))

    verdict = judged(tmp_path, "")
    assert (verdict.code if verdict.code == "C4" else None) == code
