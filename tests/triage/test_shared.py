"""When a place is named, and every near miss by which it must not be."""

from __future__ import annotations

import random
from dataclasses import replace

from flatline.triage.shared import shared
from triage.mornings import failure, row, sound, success


def test_a_host_that_failures_share_is_named_with_its_controls() -> None:
    """4 of 5 failures touched it, 1 of 41 completed jobs did."""
    failures = [failure(i, "n900") for i in range(4)] + [failure(9, "n003")]
    (group,) = shared(failures, [*sound(40), success(77, "n900")])
    assert (group.kind, group.names, group.jobs) == ("host", ("n900",), ("0", "1", "2", "3"))
    assert (group.failures, group.of_failures) == (4, 5)
    assert (group.successes, group.of_successes) == (1, 41)
    assert group.corrected is not None
    assert group.corrected < 0.01


def test_a_busy_host_is_not_accused() -> None:
    """As large a part of the completed jobs as of the failures touched it."""
    failures = [failure(i, "n900") for i in range(4)]
    busy = [success(500 + i, "n900") for i in range(40)]
    assert shared(failures, [*sound(10), *busy]) == ()


def test_failures_that_are_the_jobs_own_doing_accuse_no_host() -> None:
    """A KeyError on n900 would have been one anywhere."""
    failures = [failure(i, "n900", blames="job") for i in range(6)]
    assert shared(failures, sound(40)) == ()


def test_one_broken_script_sent_again_accuses_no_host() -> None:
    """A scheduler with one node free puts a job there ten times over."""
    failures = [failure(i, "n900", user="eve", name=f"try-{i}") for i in range(10)]
    assert shared(failures, sound(40)) == ()


def test_tasks_of_an_array_whose_siblings_completed_count_each() -> None:
    """The program is sound: its other tasks are the controls."""
    failures = [failure(i, "n900", user="eve", name="sweep") for i in range(4)]
    siblings = [success(200 + i, f"n{i % 20:03}", user="eve", name="sweep") for i in range(40)]
    (group,) = shared(failures, siblings)
    assert group.names == ("n900",)


def test_big_jobs_that_fail_accuse_no_host() -> None:
    """A job on half of the cluster touches every host; it is compared with jobs of its size."""
    cluster = [f"n{i:03}" for i in range(20)]
    failures = [failure(i, *cluster[i % 4 : 16 + i % 4]) for i in range(6)]
    assert shared(failures, sound(200)) == ()


def test_a_bad_partition_accuses_none_of_its_hosts() -> None:
    """All that ran in it failed; jobs elsewhere are no controls of it."""
    failures = [failure(i, f"d{i % 2}", partition="debug") for i in range(8)]
    assert shared(failures, sound(200)) == ()


def test_where_the_verdict_names_a_host_the_others_are_not_accused() -> None:
    """Four jobs on n900 and n901; n901 had the XID."""
    failures = [
        failure(i, "n900", "n901", blames="infrastructure", at=("n901",)) for i in range(4)
    ]
    pairs = [success(300 + i, f"n{i % 10:03}", f"n{i % 10 + 10:03}") for i in range(40)]
    (group,) = shared(failures, pairs)
    assert group.names == ("n901",)


def test_hosts_always_taken_together_are_one_group() -> None:
    """Which of them it was cannot be told."""
    failures = [failure(i, "n900", "n901") for i in range(4)]
    pairs = [success(300 + i, f"n{i % 10:03}", f"n{i % 10 + 10:03}") for i in range(40)]
    (group,) = shared(failures, pairs)
    assert group.names == ("n900", "n901")


def test_a_job_that_completed_at_its_second_try_vouches_for_no_host() -> None:
    """It was requeued from a node that failed."""
    twice = success(77, "n900")
    rows = (row(77, "node_fail", "n900"), *twice.ended.rows)
    twice = replace(twice, ended=replace(twice.ended, rows=rows))
    (group,) = shared([failure(i, "n900") for i in range(4)], [*sound(40), twice])
    assert group.successes == 0


LEAVES = (("leaf1", ("n900", "n901", "n902", "n903")), ("leaf2", ("n000", "n001")))


def test_a_leaf_switch_is_named_where_several_of_its_hosts_fail() -> None:
    """One failure a host: no host stands out, their switch does."""
    failures = [failure(i, f"n90{i}") for i in range(4)]
    (group,) = shared(failures, sound(60), LEAVES)
    assert (group.kind, group.names) == ("switch", ("leaf1",))


def test_one_bad_host_does_not_accuse_its_switch() -> None:
    """All four failures of the switch were on one of its hosts."""
    (group,) = shared([failure(i, "n900") for i in range(4)], sound(60), LEAVES)
    assert (group.kind, group.names) == ("host", ("n900",))


def test_without_a_topology_no_switch_is_claimed() -> None:
    """Four hosts once each: names alone show no switch."""
    assert shared([failure(i, f"n90{i}") for i in range(4)], sound(60)) == ()


def test_a_file_system_that_errors_name_is_told_with_who_worked_there() -> None:
    """No test: the errors themselves say it. The controls are working directories."""
    failures = [failure(i, f"n00{i}", storage=("/mnt/scratch",)) for i in range(2)]
    there = [success(i, "n011", work_dir="/mnt/scratch/run") for i in (50, 51, 52)]
    other = [success(i, "n011", work_dir="/mnt/scratch2/run") for i in (60, 61)]
    (group,) = shared(failures, [*there, *other])
    assert (group.kind, group.names, group.jobs) == ("storage", ("/mnt/scratch",), ("0", "1"))
    assert (group.successes, group.of_successes, group.p) == (3, 5, None)


def test_chance_names_a_host_on_one_morning_in_twenty_at_most() -> None:
    """60 mornings of 150 jobs on 30 hosts that fail by chance alone."""
    named = 0
    for seed in range(60):
        dice = random.Random(seed)
        lines: tuple[list, list] = ([], [])
        for i in range(150):
            hosts = dice.sample([f"n{h:03}" for h in range(30)], dice.choice([1, 1, 2, 4]))
            failed = dice.random() < 0.08
            lines[failed].append((failure if failed else success)(i, *hosts))
        named += bool(shared(lines[1], lines[0]))
    assert named <= 3
