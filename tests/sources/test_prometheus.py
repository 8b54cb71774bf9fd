"""A server of Prometheus's API is asked within bounds, and what it says is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest

from flatline.collect import Request, collect
from flatline.collect.numbers import Numbers
from flatline.errors import QueryRejected, SourceError, SourceRefused, UsageError
from flatline.model import Place
from flatline.sources.metrics import MetricsSource
from flatline.sources.prometheus import PrometheusServer, access, address
from sources.servers import exporter, free_port, program, running, scraping, wait_for

T0 = datetime(2026, 11, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)
METRICS = [{"DCGM_FI_DEV_SM_CLOCK"}]
Route = Callable[[str, dict[str, list[str]]], Any]


class Fake(httpx.BaseTransport):
    """A server made of one function; what it was asked stands in `requests`."""

    def __init__(self, route: Route | None = None) -> None:
        self.requests: list[httpx.Request] = []
        self._route = route or (lambda path, form: None)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        path = request.url.path.rpartition("/api/v1/")[2]
        form = parse_qs(request.read().decode() or request.url.query.decode())
        reply = self._route(path, form)
        if reply is None:
            reply = usual(path, form)
        if isinstance(reply, httpx.Response):
            return reply
        return httpx.Response(200, json={"status": "success", "data": reply})


def usual(path: str, form: dict[str, list[str]]) -> Any:
    if path == "status/buildinfo":
        return {"version": "3.1.0"}
    if path == "label/__name__/values":
        return ["DCGM_FI_DEV_SM_CLOCK", "up"]
    if path == "labels":
        return ["__name__", "Hostname", "gpu"]
    if path == "query":
        return {"resultType": "vector", "result": [vector(form["time"][0], 7)]}
    start, end, step = (float(form[key][0]) for key in ("start", "end", "step"))
    count = int((end - start) / step) + 1
    values = [[start + n * step, str(n)] for n in range(count)]
    return {"resultType": "matrix", "result": [{"metric": {"gpu": "0"}, "values": values}]}


def vector(time: str, value: float) -> dict[str, Any]:
    return {"metric": {"gpu": "0"}, "value": [float(time), str(value)]}


def server(route: Route | None = None, **environment: str) -> tuple[PrometheusServer, Fake]:
    fake = Fake(route)
    how = access({f"FLATLINE_PROMETHEUS_{name}": value for name, value in environment.items()})
    made = PrometheusServer("http://prom:9090/", T0, T0 + HOUR, how, metrics=METRICS,
                            transport=fake, sleep=lambda _: None)  # fmt: skip
    return made, fake


def failing(status: int, text: str = "{}", times: int = 99, **headers: str) -> Route:
    """Queries are answered so the first few times."""
    left = times

    def route(path: str, form: dict[str, list[str]]) -> Any:
        nonlocal left
        if "x_marks" not in str(form) or left == 0:
            return None
        left -= 1
        return httpx.Response(status, text=text, headers=headers)

    return route


def test_the_engine_is_what_the_server_says_it_is() -> None:
    """Product and version; another version of the product may verify, another product not."""
    made, _ = server()

    assert made.name == "Prometheus 3.1.0"
    assert made.answers_as("Prometheus 2.42.0+ds")
    assert not made.answers_as("VictoriaMetrics 1.79.5")
    assert made.answers_as("Prometheus of unknown version")
    assert not made.answers_as("flatline-promql 1")


def test_mimir_says_its_own_name() -> None:
    """In a field Prometheus does not have."""
    told = {"application": "Grafana Mimir", "version": "2.10.0"}
    made, _ = server(lambda path, form: told if path == "status/buildinfo" else None)

    assert made.name == "Grafana Mimir 2.10.0"


def test_a_range_beyond_the_servers_limit_is_asked_in_windows() -> None:
    """No window has more than 11,000 points; the parts are one answer again."""
    made, fake = server()
    fake.requests.clear()
    matrix = made.run("x_marks", 0.0, 24_999.0, 1.0)

    assert len(fake.requests) == 3
    assert matrix.values.shape == (1, 25_000)
    assert matrix.present.all()
    assert matrix.values[0, 10_000] == 0.0


def test_a_window_with_too_many_samples_is_halved() -> None:
    """As often as it takes, while the server names the limit."""

    def route(path: str, form: dict[str, list[str]]) -> Any:
        if path != "query_range" or float(form["end"][0]) - float(form["start"][0]) < 300:
            return None
        said = {"status": "error", "errorType": "execution",
                "error": "query processing would load too many samples into memory"}  # fmt: skip
        return httpx.Response(422, json=said)

    assert server(route)[0].run("x_marks", 0.0, 999.0, 1.0).values.shape == (1, 1000)


def test_an_answer_is_read_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no further, whatever the server goes on to send."""
    monkeypatch.setattr("flatline.sources.prometheus.MAX_BYTES", 10_000)
    made, _ = server(failing(200, "x" * 20_000))

    with pytest.raises(SourceError, match="more than 10000 bytes"):
        made.run("x_marks", 0.0, 0.0, 0.0)


@pytest.mark.parametrize("status", (429, 500, 503))
def test_a_busy_server_is_asked_again(status: int) -> None:
    """Twice, and then no more."""
    made, _ = server(failing(status, times=2))

    assert made.run("x_marks", 5.0, 5.0, 0.0).values[0, 0] == 7.0

    made, fake = server(failing(status))
    fake.requests.clear()
    with pytest.raises(SourceError):
        made.run("x_marks", 5.0, 5.0, 0.0)
    assert len(fake.requests) == 3


def test_no_credential_follows_a_redirect_to_another_host() -> None:
    """It is refused and named; one on the same host is followed."""
    made, fake = server(failing(307, location="http://elsewhere/api/v1/query"), TOKEN="abcdefgh")

    with pytest.raises(SourceRefused, match="redirects to elsewhere"):
        made.run("x_marks", 5.0, 5.0, 0.0)
    assert {request.url.host for request in fake.requests} == {"prom"}

    made, _ = server(failing(307, times=1, location="/api/v1/query"))
    assert made.run("x_marks", 5.0, 5.0, 0.0).values[0, 0] == 7.0


def test_access_comes_from_the_environment_and_is_never_told(tmp_path: Path) -> None:
    """Token, tenant and headers are sent; no message and no representation holds them."""
    file = tmp_path / "token"
    file.write_text("s3cr3t-token-of-length\n")
    made, fake = server(failing(401), TOKEN_FILE=str(file), ORG_ID="team", HEADERS="X-A: 1")

    assert fake.requests[0].headers["authorization"] == "Bearer s3cr3t-token-of-length"
    assert fake.requests[0].headers["x-scope-orgid"] == "team"
    assert fake.requests[0].headers["x-a"] == "1"
    assert "s3cr3t" not in repr(access({"FLATLINE_PROMETHEUS_TOKEN_FILE": str(file)}))
    with pytest.raises(SourceRefused) as refused:
        made.run("x_marks", 5.0, 5.0, 0.0)
    assert "s3cr3t" not in str(refused.value)


def test_a_user_has_a_password() -> None:
    """Sent as basic authentication."""
    _, fake = server(USER="ann", PASSWORD="pw")

    assert fake.requests[0].headers["authorization"] == "Basic YW5uOnB3"


@pytest.mark.parametrize(
    "environment",
    (
        {"TOKEN": "a\nb"},
        {"TOKEN": "a", "USER": "b"},
        {"TIMEOUT_S": "soon"},
        {"TOKEN_FILE": "/nowhere/token"},
        {"HEADERS": "no colon"},
        {"CA": "/nowhere/ca.pem"},
    ),
)
def test_a_setting_that_is_wrong_is_the_callers(environment: dict[str, str]) -> None:
    """And named, without its value."""
    with pytest.raises(UsageError, match="FLATLINE_PROMETHEUS_"):
        PrometheusServer("https://h", T0, T0, access(
            {f"FLATLINE_PROMETHEUS_{name}": value for name, value in environment.items()}
        ))  # fmt: skip


def test_credentials_do_not_belong_into_the_address() -> None:
    """They would stand in the process list; the address is spelled in one way."""
    with pytest.raises(UsageError, match="credentials"):
        address("http://ann:pw@prom:9090")
    assert address("https://Prom/x/api/v1/") == "https://prom/x"


def test_warnings_and_partial_answers_are_gaps() -> None:
    """An answer of which a store is missing is not passed off as whole."""
    reply = {"status": "success", "isPartial": True, "warnings": ["store a is down"],
             "data": {"resultType": "vector", "result": []}}  # fmt: skip
    made, _ = server(failing(200, json.dumps(reply)))
    made.run("x_marks", 5.0, 5.0, 0.0)

    assert [gap.reason for gap in made.gaps] == [
        "the server warns: store a is down",
        "the server answered in part only",
    ]


@pytest.mark.parametrize(
    "body",
    (
        "<html>",
        "[1]",
        '{"status":"success","data":{"resultType":"vector","result":[[1]]}}',
        '{"status":"success","data":{"resultType":"vector","result":[{"metric":[],"value":[5,"1"]}]}}',
        '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[9,"1"]]}]}}',
        '{"status":"success","data":{"resultType":"string","result":[5,"1"]}}',
        '{"status":"success","data":null}',
    ),
)
def test_what_is_no_answer_is_refused(body: str) -> None:
    """Never a traceback, and never a number nobody asked for."""
    made, _ = server(failing(200, body))

    with pytest.raises(SourceError):
        made.run("x_marks", 5.0, 5.0, 0.0)


def test_a_wrong_query_is_told_apart_from_a_server_that_fails() -> None:
    """`bad_data` is ours."""
    said = '{"status":"error","errorType":"bad_data","error":"parse error"}'

    with pytest.raises(QueryRejected, match="parse error"):
        server(failing(400, said))[0].run("x_marks", 5.0, 5.0, 0.0)


def test_a_proxy_that_takes_no_post_is_asked_by_get() -> None:
    """From the first refusal on."""
    made, fake = server()
    usual_handling = fake.handle_request

    def refusing(request: httpx.Request) -> httpx.Response:
        return httpx.Response(405) if request.method == "POST" else usual_handling(request)

    fake.handle_request = refusing  # type: ignore[method-assign]

    assert made.run("x_marks", 5.0, 5.0, 0.0).values[0, 0] == 7.0
    assert fake.requests[-1].method == "GET"


def test_a_server_that_is_always_late_is_not_waited_for_without_end() -> None:
    """Three times, whatever is still to be asked."""
    late = 0

    def route(path: str, form: dict[str, list[str]]) -> Any:
        nonlocal late
        if "x_marks" in str(form):
            late += 1
            raise httpx.ReadTimeout("late")
        return None

    made, _ = server(route)
    for _ in range(6):
        with pytest.raises(SourceError):
            made.run("x_marks", 5.0, 5.0, 0.0)
    assert late == 3


@pytest.mark.parametrize("name", ("prometheus", "victoria-metrics"))
def test_a_real_server_answers_canonical_questions(name: str, tmp_path: Path) -> None:
    """By place, in canonical units, with a citation that can be asked again."""
    path, port = program(name), free_port()
    with exporter() as scraped:
        config = scraping(tmp_path, scraped)
        command = {
            "prometheus": [path, f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/d",
                           f"--web.listen-address=127.0.0.1:{port}"],
            "victoria-metrics": [path, f"-promscrape.config={config}",
                                 f"-storageDataPath={tmp_path}/d",
                                 f"-httpListenAddr=127.0.0.1:{port}",
                                 "-search.latencyOffset=0s"],
        }[name]  # fmt: skip
        start = datetime.now(UTC)
        with running(command, f"http://127.0.0.1:{port}/api/v1/labels"):

            def ask() -> MetricsSource:
                engine = PrometheusServer(f"http://127.0.0.1:{port}", start, datetime.now(UTC),
                                          access({}), metrics=METRICS)  # fmt: skip
                return MetricsSource(engine=engine)

            wait_for(lambda: len(ask().ask("gpu_sm_clock_hertz").rows) == 2)
            source = ask()
            answer = source.ask("gpu_sm_clock_hertz")
            row = answer.of(Place(host="n1", gpu="1"))
            assert row is not None
            assert row.last == 200e6
            assert source.replay(answer.cite(row, "SM clock")) == 200e6
            product = "Prometheus 2." if name == "prometheus" else "VictoriaMetrics "
            assert answer.engine.startswith(product)


def test_a_server_that_is_not_there_is_a_gap_and_one_without_a_time_is_not_asked(
    tmp_path: Path,
) -> None:
    """The rest of the run is judged; credentials in the address are refused before anything."""
    (tmp_path / "job.log").write_text("starting\n")
    url, target = f"http://127.0.0.1:{free_port()}", (str(tmp_path),)
    facts = collect(Request(target, prometheus=url, start=T0, end=T0 + HOUR))
    assert any("cannot be reached" in gap.reason and gap.where == url for gap in facts.gaps)

    facts = collect(Request(target, prometheus=url))
    assert any("name --start and --end" in gap.reason for gap in facts.gaps)

    with pytest.raises(UsageError, match="credentials"):
        collect(Request(target, prometheus="http://ann:pw@prom:9090"))


def test_what_a_server_answered_is_verified_only_at_a_server_the_caller_names() -> None:
    """An address in a document is never asked."""
    with pytest.raises(SourceError, match="--prometheus"):
        Numbers([], []).replay({"source": "http://prom:9090", "engine": "Prometheus 3.1.0"})
