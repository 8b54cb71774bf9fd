"""Accounting of a window of time, asked of stand-ins for Slurm's commands."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from subprocess import CompletedProcess

import pytest

from flatline.errors import SourceUnreachable
from flatline.sources.slurm import fetch_topology, fetch_window

SINCE = datetime(2026, 11, 20, 4, tzinfo=UTC)
OLD = "JobID JobIDRaw JobName User Partition State ExitCode Start End NodeList WorkDir\n"


def asked(**options: object) -> list[Sequence[str]]:
    calls: list[Sequence[str]] = []

    def run(argv: Sequence[str]) -> CompletedProcess[bytes]:
        calls.append(argv)
        text = OLD if "--helpformat" in argv else "JobID|State\n7|FAILED\n"
        return CompletedProcess(argv, 0, text.encode(), b"")

    fetch_window(SINCE, run=run, **options)  # type: ignore[arg-type]
    return calls


def test_only_columns_this_sacct_knows_are_asked_for() -> None:
    """One that it does not know would refuse the whole question."""
    call = asked()[-1]
    (columns,) = (word for word in call if word.startswith("--format="))
    assert "StdOut" not in columns
    assert "NodeList" in columns
    assert call[call.index("-S") + 1] == "2026-11-20T04:00:00"


def test_users_are_one_argument_and_everybody_is_asked_for_by_name() -> None:
    """Without either, whom sacct shows by default."""
    assert "-a" not in asked()[-1]
    assert asked(everyone=True)[-1][-1] == "-a"
    assert asked(users=("ann", "bob"))[-1][-1] == "--user=ann,bob"


def test_a_cluster_without_a_topology_says_nothing() -> None:
    """No switch is claimed then; it is no failure."""

    def run(argv: Sequence[str]) -> CompletedProcess[bytes]:
        raise SourceUnreachable("no scontrol")

    assert fetch_topology(run) is None


def test_a_database_that_does_not_answer_is_said() -> None:
    """With sacct's own words."""

    def run(argv: Sequence[str]) -> CompletedProcess[bytes]:
        return CompletedProcess(argv, 1, b"", b"sacct: error: Connection refused\n")

    with pytest.raises(SourceUnreachable, match="Connection refused"):
        fetch_window(SINCE, run=run)
