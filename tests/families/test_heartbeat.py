"""C4: who was at work when it was declared dead."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from families.fleet import T0, checked, facts_of, findings, sample
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.facts import Facts
from flatline.families.heartbeat_false_positive import _by_order, judge
from flatline.model import (
    Attempt,
    Finding,
    LogCite,
    Match,
    Place,
    Progress,
    Signature,
    Verdict,
)
from flatline.tracks import Track

BEAT = Signature("x.beat", "x", "root", "", "", "", ("x",), family="C2", tags=("heartbeat",))
DECLARED = 1000.0
Power = Callable[[str, float], float]


def accusation(task: int, line: int, dated: bool = True) -> Match:
    at = datetime.fromtimestamp(T0 + DECLARED, UTC)
    cite = LogCite("job.log", line, "Task 1 heartbeat timeout", Place(task=task), at, not dated)
    return Match(BEAT, cite, {"task": "1"})


def judged(
    tmp_path: Path,
    power: Power,
    track: Track | None = None,
    said_by: tuple[int, ...] = (0,),
    dated: bool = True,
) -> tuple[Finding, ...]:
    """Three hosts of two GPUs read every 10 s, of which task 1 is said to be dead."""
    lines = [
        sample("DCGM_FI_DEV_POWER_USAGE", f'gpu="{gpu}",Hostname="n{n}"', power(f"n{n}", at), at)
        for n in range(3)
        for gpu in range(2)
        for at in range(0, 1400, 10)
    ]
    facts, source = facts_of(
        tmp_path,
        lines,
        track,
        matches=[accusation(task, n, dated) for n, task in enumerate(said_by, 900)],
        attempts=(Attempt(0, "failed", hosts=("n0", "n1", "n2")),),
    )
    facts.__dict__["hosts"] = ("n0", "n1", "n2")
    return findings(checked(judge(facts), source))


def working(until: float, waits: float = 250.0) -> Power:
    """All work until then; n1 is idle afterwards and the others wait, until all has ended."""

    def power(host: str, at: float) -> float:
        if not 50 <= at < DECLARED:
            return 90.0
        return 600.0 if at < until else 90.0 if host == "n1" else waits

    return power


def stepped(until: float, each: float) -> Track:
    """Dated steps of process 0."""
    track = Track("job.log", Place(task=0), None, "plain")
    for step in range(int(until / each)):
        at = datetime.fromtimestamp(T0 + (step + 1) * each, UTC)
        track.add(Progress("train", step=step, loss=2.0), step + 1, at, 0)
    return track


def test_power_up_to_the_declaration_is_work(tmp_path: Path) -> None:
    """No step is dated; the cards of all hosts drew what they draw at work."""
    (found,) = judged(tmp_path, working(DECLARED))

    assert found.cleared == (Place(task=1),)
    assert "kept their power" in found.shows[1].text


@pytest.mark.parametrize("until", [899.0, 930.0, 960.0, 400.0])
def test_who_fell_before_it_was_not_at_work(tmp_path: Path, until: float) -> None:
    """As the heartbeats stopped, between then and the declaration, or long before."""
    assert judged(tmp_path, working(until)) == ()


def test_who_waited_from_the_start_of_the_window_was_not_at_work(tmp_path: Path) -> None:
    """Nor is it work where the accused computes on alone."""
    alone: Power = lambda host, at: 600.0 if host == "n1" else working(900)(host, at)  # noqa: E731

    assert judged(tmp_path, alone) == ()


def beating(until: float) -> Power:
    """As readings fall into the pauses of steps: three in a row every 100 s, on each host at a
    time of its own."""

    def power(host: str, at: float) -> float:
        begins = {"n0": 20, "n1": 50, "n2": 80}[host]
        return 180.0 if (at - begins) % 100 < 30 else working(until)(host, at)

    return power


def test_pauses_that_readings_meet_now_and_then_are_work(tmp_path: Path) -> None:
    """Half of the last readings lie in one, as they did before every so often."""
    (found,) = judged(tmp_path, beating(DECLARED))

    assert "worked on" in found.shows[1].text


@pytest.mark.parametrize("until", [905.0, 930.0, 960.0, 400.0])
def test_a_beat_that_ended_before_is_no_work(tmp_path: Path, until: float) -> None:
    """The accused, or all, fell in the window or long before."""
    assert judged(tmp_path, beating(until)) == ()


def test_a_level_that_never_falls_tells_no_work(tmp_path: Path) -> None:
    """As where the log's clock is hours off the metrics', or power is capped to what idles."""
    assert judged(tmp_path, lambda host, at: 600.0) == ()


def test_steps_of_another_task_need_the_accused(tmp_path: Path) -> None:
    """It lived to say so itself, and the steps went on."""
    (found,) = judged(tmp_path, lambda host, at: 90.0, stepped(995, 10), said_by=(0, 1))

    assert "complete only with every task" in found.shows[1].text


@pytest.mark.parametrize(
    ("until", "each", "said_by"), [(905, 10, (0, 1)), (945, 40, (0, 1)), (995, 10, (0,))]
)
def test_steps_of_another_task_that_clear_nobody(
    tmp_path: Path, until: float, each: float, said_by: tuple[int, ...]
) -> None:
    """They stopped with the heartbeats, what was under way completed, or the accused is silent."""
    assert judged(tmp_path, lambda host, at: 90.0, stepped(until, each), said_by) == ()


def test_a_line_dated_by_the_step_before_it_tells_no_time(tmp_path: Path) -> None:
    """The task may have died with that step, and no record says when the job ended."""
    own = Place(task=1)
    track = stepped(995, 10)
    track.place = own

    assert judged(tmp_path, working(DECLARED), track, dated=False) == ()
    assert len(judged(tmp_path, working(DECLARED), track)) == 1


def test_who_was_at_work_is_cleared_with_its_host(tmp_path: Path) -> None:
    """As its own lines have it."""
    track = stepped(995, 10)
    track.place = Place(host="n1", task=1)
    (found,) = judged(tmp_path, working(DECLARED), track)

    assert found.cleared == (Place(host="n1", task=1),)


ALL = ("n1", "n2", "n3")
EACH = ("worker0_n1.log", "worker1_n2.log", "worker2_n3.log")
UNTOLD: dict[str, object] = {
    "hosts": ALL,
    "exits": (),
    "node_of": str,
    "nodes": {},
    "lines": lambda *_: ("x",),
}
"""Nothing in a log says where it is of."""


@pytest.mark.parametrize(
    ("world", "logs", "place", "host"),
    [
        (3, (), Place(task=2), "n3"),
        (24, (), Place(task=2), None),
        (3, (), Place(task=3), None),
        (3, (), Place(task=2, host="n9"), "n9"),
        (None, (), Place(task=1), None),
        (None, EACH, Place(task=1), "n2"),
        (24, EACH, Place(task=1), "n2"),
        (None, EACH[:2], Place(task=1), "n2"),
        (None, (*EACH, "worker3_n3.log"), Place(task=1), "n2"),
        (None, ("worker1_n1.log", "worker2_n2.log"), Place(task=1), None),
    ],
)
def test_one_task_a_node_stands_in_the_order_of_the_nodes(
    world: int | None, logs: tuple[str, ...], place: Place, host: str | None
) -> None:
    """Of a known world, of one log for each node, or of logs that are numbered from nought on."""
    facts = SimpleNamespace(
        job=SimpleNamespace(nodes=ALL),
        **UNTOLD,
        world_size=world,
        tracks=[SimpleNamespace(source=log, place=Place()) for log in logs],
    )
    assert _by_order(cast(Facts, facts), place).host == host


@pytest.mark.parametrize(
    ("tasks", "world", "host"),
    [((0, 2), None, "n3"), ((0, 2), 24, None), ((2,), None, None), ((0, 5), None, None)],
    ids=["each may have a node", "a world of more", "one alone", "more tasks than nodes"],
)
def test_tasks_that_were_heard_of_have_a_node_each(
    tasks: tuple[int, ...], world: int | None, host: str | None
) -> None:
    """None of them is beyond the nodes, and no world of more is known."""
    facts = SimpleNamespace(
        job=SimpleNamespace(nodes=ALL),
        **UNTOLD,
        world_size=world,
        tracks=[SimpleNamespace(source="x.log", place=Place(task=task)) for task in tasks],
    )
    assert _by_order(cast(Facts, facts), Place(task=2)).host == host


@pytest.mark.parametrize(
    "lead",
    ["", "2026-03-02T04:21:57 ", "2026-03-02 04:21:57 ", "0: ", "[2026-03-02 04:21:57] n1: "],
)
def test_the_accused_stand_below_behind_whatever_logs_put_before_a_line(
    tmp_path: Path, lead: str
) -> None:
    """Task 2 stepped on until all were ended."""
    own = "E0302 04:21:57.000000    77 coordination_service.cc:1379] "
    beats = f"{own}The following tasks are unhealthy (stopped sending heartbeats):"
    for task in range(4):
        lines = [f"2026-03-02T04:{n // 60:02d}:{n % 60:02d} completed step: {n}, seconds: 1.000,"
                 f" TFLOP/s/device: 400.1, Tokens/s/device: 9000.0, loss: {9 - n / 400:.3f}"
                 for n in range(1318)]  # fmt: skip
        if task == 0:
            lines += [f"{lead}{beats}", f"{lead}/job:jax_worker/replica:0/task:2",
                      f"{lead}The tasks have crashed."]  # fmt: skip
        (tmp_path / f"task{task}.log").write_text("\n".join(lines) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "C4"
    assert [place.task for place in verdict.cleared] == [2]


@pytest.mark.parametrize(("named", "cleared"), [((2,), [2]), ((1, 2), [1, 2])])
def test_the_accused_stand_on_the_line_itself(
    tmp_path: Path, named: tuple[int, ...], cleared: list[int]
) -> None:
    """All of them stepped on."""
    tasks = ", ".join(f"/job:jax_worker/replica:0/task:{n}" for n in named)
    word = (
        "E0302 04:21:57.000000    77 coordination_service.cc:1379] The following tasks are"
        f" unhealthy (stopped sending heartbeats): {tasks}"
    )
    for task in range(4):
        lines = [f"2026-03-02T04:{n // 60:02d}:{n % 60:02d} completed step: {n}, seconds: 1.000,"
                 f" TFLOP/s/device: 400.1, Tokens/s/device: 9000.0, loss: {9 - n / 400:.3f}"
                 for n in range(1318)]  # fmt: skip
        (tmp_path / f"task{task}.log").write_text(
            "\n".join([*lines, *([word] if not task else [])])
        )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "C4"
    assert [place.task for place in verdict.cleared] == cleared


def behind(folder: Path, steps: int) -> Verdict:
    """Undated steps, of which so many stand behind the coordinator's word on task 2."""
    row = (
        "completed step: {n}, seconds: 6.0, TFLOP/s/device: 400.1, Tokens/s/device: 9000.0,"
        " loss: {l:.3f}\n"
    )
    own = "E0302 04:21:57.000000    77 coordination_service.cc:1379] "
    word = (f"{own}The following tasks are unhealthy (stopped sending heartbeats):\n"
            "/job:jax_worker/replica:0/task:2\n")  # fmt: skip
    for task in range(4):
        lines = [row.format(n=n, l=9 - n / 40) for n in range(200)]
        if task == 0:
            lines.insert(200 - steps, word)
        (folder / f"task{task}.log").write_text("".join(lines))
    (folder / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        "9|x|FAILED|1:0|2026-03-02T04:00:00|2026-03-02T04:23:00|4|n[0-3]\n"
    )
    return diagnose(collect(Request((str(folder),))))


def test_steps_behind_the_word_that_a_task_is_dead(tmp_path: Path) -> None:
    """They complete only with every task; an output that is buffered looks so too."""
    verdict = behind(tmp_path, 15)

    assert (verdict.code, verdict.confidence < 0.8) == ("C4", True)
    assert [place.task for place in verdict.cleared] == [2]
    assert any("printed late" in text for text in verdict.cannot_decide)


@pytest.mark.parametrize("steps", [0, 2, 3])
def test_what_was_under_way_still_completes(tmp_path: Path, steps: int) -> None:
    """Steps are dispatched ahead."""
    assert behind(tmp_path, steps).code != "C4"


@pytest.mark.parametrize(
    "told", ["srun: error: n2: task 2: Killed\n", "slurmstepd: error: Detected 1 oom_kill event in"
             " StepId=9.0. Some of the step tasks have been OOM Killed.\n"]
)  # fmt: skip
def test_steps_behind_the_word_prove_nothing_of_a_task_that_was_killed(
    tmp_path: Path, told: str
) -> None:
    """Its output may have been buffered."""
    behind(tmp_path, 15)
    (tmp_path / "slurm-9.out").write_text(told)

    assert diagnose(collect(Request((str(tmp_path),)))).code != "C4"


def test_nor_where_a_node_failed(tmp_path: Path) -> None:
    """By its record."""
    behind(tmp_path, 15)
    record = tmp_path / "sacct.txt"
    record.write_text(record.read_text().replace("FAILED", "NODE_FAIL"))

    assert diagnose(collect(Request((str(tmp_path),)))).code != "C4"


KILL = Signature("x.oom", "kernel", "root", "", "", "", ("x",), family="A2", tags=("oom-kill",))


@pytest.mark.parametrize(
    ("host", "before_s", "killed"),
    [("n1", 3.0, True), ("n2", 3.0, False), ("n1", 500.0, False), ("n1", -5.0, False)],
    ids=["on its host", "on another", "long before", "since"],
)
def test_one_whose_process_the_kernel_had_killed(
    tmp_path: Path, host: str, before_s: float, killed: bool
) -> None:
    """Its cards had worked until then: it was dead all the same."""
    at = datetime.fromtimestamp(T0 + DECLARED - before_s, UTC)
    line = Match(KILL, LogCite("dmesg.log", 3, "Killed process 12", Place(host=host), at), {})
    lines = [
        sample("DCGM_FI_DEV_POWER_USAGE", f'gpu="{gpu}",Hostname="n{n}"',
               working(DECLARED)(f"n{n}", at_s), at_s)
        for n in range(3) for gpu in range(2) for at_s in range(0, 1400, 10)
    ]  # fmt: skip
    facts, source = facts_of(
        tmp_path,
        lines,
        None,
        matches=[accusation(1, 900), line],
        attempts=(Attempt(0, "failed", hosts=("n0", "n1", "n2")),),
    )
    facts.__dict__["hosts"] = ("n0", "n1", "n2")
    facts.__dict__["_hosts_of"] = {("task", 1): {"n1"}}

    assert bool(findings(checked(judge(facts), source))) is not killed
