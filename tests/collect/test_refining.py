"""What a line itself says of its place: the host in brackets, not a worker's own name."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.collect.refining import refined
from flatline.model import Place

GIVEN_UP = "supervisors-marked-dead"
STAMP = "2026-04-11 09:14:02 launcher: "


@pytest.mark.parametrize(
    ("groups", "place", "host"),
    [
        ({"host": "w6", "on_host": "kn-h200-17"}, Place(), "kn-h200-17"),
        ({"host": "w6", "on_host": "kn-h200-17"}, Place(host="login1"), "kn-h200-17"),
        ({"host": "w6"}, Place(), "w6"),
        ({"host": "w6", "on_host": ""}, Place(), "w6"),
        ({"host": "w6"}, Place(host="login1"), "w6"),
        ({"key": "6", "on_host": "kn-h200-17"}, Place(), None),
        ({"has_rank": "6", "on_host": "kn-h200-17"}, Place(host="login1"), "login1"),
        ({"host": "", "on_host": "kn-h200-17"}, Place(host="login1"), "login1"),
        ({}, Place(host="login1"), "login1"),
    ],
    ids=["both", "both, in another's log", "a host", "empty brackets", "a host, in another's log",
         "a number and brackets", "a rank and where it is", "no name before it", "none"],
)  # fmt: skip
def test_the_host_of_a_place(groups: dict[str, str], place: Place, host: str | None) -> None:
    """What stands in brackets counts where a name stands before it."""
    assert refined(place, groups).host == host


def test_what_else_a_place_had_is_kept() -> None:
    given = Place(host="login1", gpu="3", rank=4)
    groups = {"host": "w6", "on_host": "kn-h200-17", "rank": "9", "task": "2"}

    assert refined(given, groups) == Place(host="kn-h200-17", gpu="3", rank=4, task=2)


@pytest.mark.parametrize(
    ("line", "host"),
    [
        ("worker w6 (kn-h200-17) missed 12 heartbeats; marking task DEAD", "kn-h200-17"),
        ("worker w6 (kn-h200-17): no heartbeat for 90s (limit 90s), declared DEAD", "kn-h200-17"),
        ("worker w6 missed 12 heartbeats; marking task DEAD", "w6"),
        ("worker kn-h200-17 missed 12 heartbeats; marking task DEAD", "kn-h200-17"),
        ("worker 6 (kn-h200-17) missed 12 heartbeats; marking task DEAD", None),
    ],
)
def test_a_worker_that_a_launcher_gives_up_is_on_its_host(
    tmp_path: Path, line: str, host: str | None
) -> None:
    """A number is no name: what it counts is told elsewhere."""
    (tmp_path / "launcher.log").write_text(f"{STAMP}started 8 workers\n{STAMP}{line}\n")
    facts = collect(Request((str(tmp_path),)))
    places = [m.cite.place for m in facts.matches if m.signature.id == GIVEN_UP]

    assert [place.host for place in places] == [host]


@pytest.mark.parametrize(
    "line",
    [
        "[rank 12] hostname: gpu-b02, local_rank: 4, MASTER_ADDR: gpu-b01",
        "init rank=3 host=gpu-b02",
        "SLURM_PROCID=9 SLURM_NODEID=1 SLURMD_NODENAME=gpu-b02",
    ],
)
def test_a_line_that_says_where_a_rank_is_alone_is_of_no_host(tmp_path: Path, line: str) -> None:
    """Whom a rank connects to reads alike."""
    (tmp_path / "train.log").write_text(f"{line}\nstep 1/9 loss 3.0\n")
    facts = collect(Request((str(tmp_path),)))
    told = [m for m in facts.matches if m.signature.id.startswith("placement-")]

    assert {m.groups.get("on_host") for m in told} == {"gpu-b02"}
    assert [m.cite.place.host for m in told] == [None] * len(told)
