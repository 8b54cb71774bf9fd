"""Prometheus's HTTP API over a recorded run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from flatline.collect.stores import open_store
from flatline.series.storage import MemoryStore, Series, Store, series_of
from flatline.serve.held import Held, opened
from flatline.serve.listening import Patience, Server
from serve.running import get, serving

RUN = str(Path(__file__).parents[1] / "scenarios" / "gpu_throttled_one_of_many" / "run")
CLOCK = "DCGM_FI_DEV_SM_CLOCK"
RANGE = {"query": "up", "start": "0", "end": "2", "step": "1"}
START, END = "2026-01-14T09:10:00Z", "2026-01-14T09:20:00Z"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(opened((RUN,))) as one:
        yield one


def test_a_query_is_answered_at_a_time(server: Server) -> None:
    """By GET and by POST, with the time in either form."""
    expected = {"resultType": "vector", "result": [{"metric": {}, "value": [1768382400, "32"]}]}
    form = {"query": f"count({CLOCK})", "time": END}

    assert get(server, "/api/v1/query", form).data == expected
    assert get(server, "/api/v1/query", form | {"time": "1768382400"}, method="POST").data == (
        expected
    )


def test_now_is_the_last_sample_there_is(server: Server) -> None:
    """A run that is over has nothing at this machine's time."""
    assert get(server, "/api/v1/query", {"query": "time()"}).data["result"][0] == 1768382400.049


@pytest.mark.parametrize("step", ["300", "5m", "300.0"])
def test_a_range_is_answered_in_steps(server: Server, step: str) -> None:
    """Both ends are among them."""
    form = {"query": f"group({CLOCK})", "start": START, "end": END, "step": step}
    found = get(server, "/api/v1/query_range", form).data

    assert found["resultType"] == "matrix"
    assert found["result"][0]["values"] == [
        [1768381800, "1"], [1768382100, "1"], [1768382400, "1"],
    ]  # fmt: skip


def test_what_there_is_can_be_listed(server: Server) -> None:
    """Labels, their values, and series, of some metrics or of all."""
    assert "Hostname" in get(server, "/api/v1/labels").data
    assert CLOCK in get(server, "/api/v1/label/__name__/values").data
    one = {"match[]": f'{CLOCK}{{gpu="0"}}'}
    assert get(server, "/api/v1/label/gpu/values", one).data == ["0"]
    assert len(get(server, "/api/v1/series", one, method="POST").data) == 4
    after = get(server, "/api/v1/series", one | {"start": "2026-01-15T00:00:00Z"})
    assert after.data == []


def test_a_limit_is_said_to_have_cut(server: Server) -> None:
    """As Prometheus says it."""
    found = get(server, "/api/v1/label/__name__/values", {"limit": "1"}).json
    assert (len(found["data"]), found["warnings"]) == (1, ["results truncated due to limit"])
    found = get(server, "/api/v1/query", {"query": CLOCK, "time": END, "limit": "3"}).json
    assert len(found["data"]["result"]) == 3


def test_kind_and_meaning_of_known_metrics_are_told(server: Server) -> None:
    """From the exporter's vocabulary."""
    found = get(server, "/api/v1/metadata", {"metric": CLOCK}).data
    assert found[CLOCK][0]["type"] == "gauge"


@pytest.mark.parametrize(
    ("path", "empty"),
    [
        ("rules", {"groups": []}),
        ("alerts", {"alerts": []}),
        ("query_exemplars?query=up", []),
        ("targets", {"activeTargets": [], "droppedTargets": [], "droppedTargetCounts": {}}),
    ],
)
def test_what_a_dead_run_has_none_of_is_empty(server: Server, path: str, empty: object) -> None:
    """Grafana asks for it and must not take it for a failure."""
    assert get(server, f"/api/v1/{path}").data == empty


def test_a_query_is_written_anew(server: Server) -> None:
    """On one line."""
    form = {"query": "sum  by(gpu)( rate(x[5m]))"}
    assert get(server, "/api/v1/format_query", form).data == "sum by (gpu) (rate(x[5m]))"


@pytest.mark.parametrize(
    ("path", "form", "status", "kind"),
    [
        ("query", {"query": "sum("}, 400, "bad_data"),
        ("query", {}, 400, "bad_data"),
        ("query", {"query": "up", "time": "noon"}, 400, "bad_data"),
        ("query", {"query": "up", "time": "1e400"}, 400, "bad_data"),
        ("query", {"query": "mad_over_time(up[5m])"}, 400, "bad_data"),
        ("query", {"query": f"{CLOCK} + on () {CLOCK}", "time": END}, 422, "execution"),
        ("query", {"query": "up", "timeout": "soon"}, 400, "bad_data"),
        ("query_range", {"query": "up", "start": "2", "end": "1", "step": "1"}, 400, "bad_data"),
        ("query_range", {"query": "up", "start": "1", "end": "2", "step": "0"}, 400, "bad_data"),
        ("query_range", {"query": "up", "start": "1", "end": "2"}, 400, "bad_data"),
        ("query_range", RANGE | {"query": "up[1m]"}, 400, "bad_data"),
        ("query_range", RANGE | {"end": "11001"}, 400, "bad_data"),
        ("query_range", RANGE | {"start": "-inf"}, 400, "bad_data"),
        ("series", {}, 400, "bad_data"),
        ("series", {"match[]": "rate(up[1m])"}, 400, "bad_data"),
        ("series", {"match[]": '{a=~"("}'}, 400, "bad_data"),
        ("labels", {"limit": "some"}, 400, "bad_data"),
        ("admin/tsdb/delete_series", {"match[]": "up"}, 404, "not_found"),
        ("../../etc/passwd", {}, 404, "not_found"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_told_why(
    server: Server, path: str, form: dict[str, str], status: int, kind: str
) -> None:
    """With the error types and statuses of Prometheus."""
    got = get(server, f"/api/v1/{path}", form)

    assert (got.status, got.json["status"], got.json["errorType"]) == (status, "error", kind)
    assert got.json["error"]


def test_eleven_thousand_steps_are_allowed(server: Server) -> None:
    """And not one more."""
    form = {"query": "vector(1)", "start": "0", "end": "11000", "step": "1"}
    assert len(get(server, "/api/v1/query_range", form).data["result"][0]["values"]) == 11_001


def test_a_query_that_takes_too_long_is_given_up(server: Server) -> None:
    """At the time its caller or the server allows, and the next is answered."""
    form = {"query": "count(count_values('v', up)) " + "+ vector(1)" * 50, "timeout": "0.000001"}
    got = get(server, "/api/v1/query", form)
    assert (got.status, got.json["errorType"]) == (503, "timeout")
    assert get(server, "/api/v1/query", {"query": "1"}).status == 200

    with serving(server.held, patience=Patience(query_s=1e-6)) as hasty:
        assert get(hasty, "/api/v1/query", {"query": "vector(1) + vector(1)"}).status == 503


def test_who_waits_too_long_for_a_turn_is_told_so(server: Server) -> None:
    """One question at a time."""
    with server.held._turn:
        got = get(server, "/api/v1/query", {"query": "1", "timeout": "50ms"})
    assert (got.status, got.json["errorType"]) == (503, "timeout")


def test_the_version_is_that_of_the_answers(server: Server) -> None:
    """Clients choose by it what they ask."""
    assert get(server, "/api/v1/status/buildinfo").data["version"] == "3.0.0"
    with serving(Held(server.held.store, compat=2)) as old:
        assert get(old, "/api/v1/status/buildinfo").data["version"].startswith("2.")


def test_what_could_not_be_read_is_warned_of(tmp_path: Path) -> None:
    """With every answer of numbers."""
    (tmp_path / "m.prom").write_text('# TYPE a gauge\na{x="1"} 1 1768381200000\na{x="1"} 2\n')
    with serving(opened((str(tmp_path),))) as one:
        found = get(one, "/api/v1/query", {"query": "a"}).json
    assert found["data"]["result"][0]["value"][1] == "1"
    assert "m.prom" in " ".join(found["warnings"])


SECRET = "hf_" + "aBcDeFgHiJ" * 3 + "kLmN"


class Database:
    """A store that is read in place, with secrets in it."""

    gaps = ()

    def __init__(self) -> None:
        rows = [({"__name__": "a", "token": f"{SECRET}{n}", "host": "n1"}, [(1.0, float(n))])
                for n in range(2)]  # fmt: skip
        self._inside: Store = MemoryStore(series_of(rows))
        self.select, self.labels = self._inside.select, self._inside.labels
        self.names, self.span = self._inside.names, self._inside.span

    def values(self) -> dict[str, frozenset[str]]:
        return {"token": frozenset({f"{SECRET}0", f"{SECRET}1"}), "host": frozenset({"n1"})}


def test_secrets_in_labels_are_masked_and_cannot_be_asked_for() -> None:
    """Not by a pattern either, which would find them letter by letter; the series stay two."""
    from flatline.series.masked import masked

    with serving(Held(masked(Database()))) as one:
        form = {"query": "a", "time": "1"}
        seen = (
            get(one, "/api/v1/query", form).body
            + get(one, "/api/v1/series", {"match[]": "a"}).body
        )
        assert SECRET[:12].encode() not in seen
        assert get(one, "/api/v1/label/token/values").data == ["[masked]", "[masked]~2"]
        guess = form | {"query": f'a{{token=~"{SECRET[:6]}.*"}}'}
        assert get(one, "/api/v1/query", guess).data["result"] == []
        shown = form | {"query": 'a{token="[masked]",host="n1"}'}
        assert len(get(one, "/api/v1/query", shown).data["result"]) == 1


def test_secrets_in_a_file_and_in_an_error_are_masked(tmp_path: Path) -> None:
    """Whoever sent them."""
    (tmp_path / "m.prom").write_text(f'# TYPE a gauge\na{{t="{SECRET}"}} 1 1768381200000\n')
    with serving(opened((str(tmp_path),))) as one:
        assert get(one, "/api/v1/label/t/values").data == ["[masked]"]
        got = get(one, "/api/v1/query", {"query": f"sum({SECRET}"})
    assert (got.status, SECRET.encode() in got.body) == (400, False)


def test_event_files_are_served(tmp_path: Path) -> None:
    """Each scalar under its tag, with the step beside it."""
    from logs.event_writing import event, first, simple, written

    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "events.out.tfevents.1.x").write_bytes(
        written(
            first(), *[event(1768381200.0 + n, n, simple("train/loss", 2.0 - n)) for n in range(3)]
        )
    )
    with serving(opened((str(tmp_path),))) as one:
        found = get(one, "/api/v1/query", {"query": "tensorboard_scalar"}).data["result"]
        step = get(one, "/api/v1/query", {"query": "tensorboard_step"}).data["result"]
    assert found[0]["metric"] == {
        "__name__": "tensorboard_scalar",
        "run": "runs",
        "tag": "train/loss",
    }
    assert (found[0]["value"][1], step[0]["value"][1]) == ("0", "2")


def test_a_target_without_numbers_is_told_what_would_do() -> None:
    """And which formats are known."""
    from flatline.errors import UsageError

    with pytest.raises(UsageError, match="known are Prometheus text"):
        open_store((__file__,))


def test_a_store_without_samples_answers_with_nothing() -> None:
    """An empty run is no error."""
    import numpy as np

    nothing = Series((), np.empty(0), np.empty(0), np.zeros(1, dtype=np.int64))
    with serving(Held(MemoryStore(nothing))) as one:
        assert get(one, "/api/v1/query", {"query": "up"}).data["result"] == []
        assert get(one, "/api/v1/labels").data == []
