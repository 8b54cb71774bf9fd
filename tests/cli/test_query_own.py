"""`query` in canonical names, and of the run's own hosts and time."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from flatline.cli import Engine, answer

RUN = Path(__file__).parents[1] / "scenarios" / "gpu_throttled_one_of_many" / "run"
HEAD = "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
JOB = "8308|train|FAILED|1:0|2026-01-14T09:05:00|2026-01-14T09:10:00|node[01-02]\n"
OTHER = "8309|train|FAILED|1:0|2026-01-14T09:05:00|2026-01-14T09:10:00|node[03-04]\n"
CLOCKS = "count by (Hostname) (DCGM_FI_DEV_SM_CLOCK)"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """The metrics of four hosts beside the record of a job that held two of them."""
    (tmp_path / "metrics.prom").write_bytes((RUN / "metrics.prom").read_bytes())
    (tmp_path / "sacct.psv").write_text(HEAD + JOB)
    return tmp_path


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = answer(["query", *words], Engine())
    said = capsys.readouterr()
    return status, said.out, said.err


def hosts(page: str) -> list[str]:
    return [row["metric"]["Hostname"] for row in orjson.loads(page)["data"]["result"]]


def test_canonical_names_are_asked_as_the_exporter_has_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The native query is shown, and gives the same numbers."""
    when = ("--time", "2026-01-14T09:20:00Z", "--json")
    _, page, _ = asked(capsys, str(RUN), "max by (host) (gpu_sm_clock_hertz)", *when)
    document = orjson.loads(page)
    (note,) = document["warnings"]
    native = note.removeprefix("asked as ")

    assert "DCGM_FI_DEV_SM_CLOCK" in native
    _, again, _ = asked(capsys, str(RUN), native, *when)
    assert orjson.loads(again)["data"] == document["data"]


def test_only_the_runs_hosts_answer_and_the_others_are_counted(
    capsys: pytest.CaptureFixture[str], recorded: Path
) -> None:
    _, page, _ = asked(capsys, str(recorded), CLOCKS, "--json")
    _, every, _ = asked(capsys, str(recorded), CLOCKS, "--json", "--all")

    assert hosts(page) == ["node01", "node02"]
    assert hosts(every) == ["node01", "node02", "node03", "node04"]
    assert "16 series of other hosts left out; --all has them" in page
    assert "warnings" not in orjson.loads(every)


def test_canonical_names_are_of_the_runs_hosts_too(
    capsys: pytest.CaptureFixture[str], recorded: Path
) -> None:
    _, page, _ = asked(capsys, str(recorded), "min by (host) (gpu_power_watts)", "--json")

    assert hosts(page) == ["node01", "node02"]


def test_a_host_that_is_named_is_asked(capsys: pytest.CaptureFixture[str], recorded: Path) -> None:
    query = 'count by (Hostname) (DCGM_FI_DEV_SM_CLOCK{Hostname="node03"})'
    _, page, _ = asked(capsys, str(recorded), query, "--json")

    assert hosts(page) == ["node03"]


def test_it_is_answered_over_the_runs_own_time(
    capsys: pytest.CaptureFixture[str], recorded: Path
) -> None:
    """Of data that reach further; a time that is named is asked."""
    end = datetime(2026, 1, 14, 9, 10, tzinfo=UTC).timestamp()
    _, page, _ = asked(capsys, str(recorded), CLOCKS, "--json")
    times = ("--start", "2026-01-14T09:00:00Z", "--end", "2026-01-14T09:20:00Z")
    _, named, _ = asked(capsys, str(recorded), CLOCKS, "--json", *times)

    assert orjson.loads(page)["data"]["result"][0]["values"][-1][0] == end
    assert orjson.loads(named)["data"]["result"][0]["values"][-1][0] == end + 600


def test_of_several_jobs_one_has_to_be_named(
    capsys: pytest.CaptureFixture[str], recorded: Path
) -> None:
    """Nothing is guessed: all is asked until --job says whose it is."""
    (recorded / "sacct.psv").write_text(HEAD + JOB + OTHER)
    _, page, _ = asked(capsys, str(recorded), CLOCKS, "--json")
    _, own, _ = asked(capsys, str(recorded), CLOCKS, "--json", "--job", "8309")

    assert len(hosts(page)) == 4
    assert hosts(own) == ["node03", "node04"]


def test_hosts_the_metrics_do_not_know_narrow_nothing(
    capsys: pytest.CaptureFixture[str], recorded: Path
) -> None:
    (recorded / "sacct.psv").write_text(HEAD + JOB.replace("node[01-02]", "login1"))
    _, page, _ = asked(capsys, str(recorded), CLOCKS, "--json")

    assert len(hosts(page)) == 4


def test_two_vocabularies_in_one_query_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = asked(capsys, str(RUN), "gpu_power_watts / DCGM_FI_DEV_GPU_TEMP")

    assert status == 2
    assert "flatline signals" in err
