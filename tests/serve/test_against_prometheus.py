"""The same requests to us and to a real Prometheus 2, both on one folder's data."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flatline.serve.held import opened
from serve.running import serving
from sources.servers import program

sys.path.insert(0, str(Path(__file__).parents[1] / "series"))

import against_prometheus as witness
from promql_queries import SPAN_S, T0, Generator, Query, data

pytestmark = pytest.mark.skipif(not witness.installed(), reason="prometheus is not installed")
QUERIES = 150
SPAN = ("--start", str(int(T0)), "--end", str(int(T0 + SPAN_S)))
Pair = tuple[str, str]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Addresses of a Prometheus and of ours, on what that Prometheus had written when it ended."""
    theirs, copy = tmp_path_factory.mktemp("theirs"), tmp_path_factory.mktemp("copy") / "db"
    with witness.serving("--web.enable-remote-write-receiver", folder=theirs) as url:
        witness.push(url, data(21))
    shutil.copytree(theirs, copy)
    with witness.serving(folder=theirs) as url, serving(opened((str(copy),), 2)) as ours:
        yield url, ours.url


def asked(url: str, path: str, form: dict[str, Any], *, post: bool) -> tuple[int, Any]:
    fields = urllib.parse.urlencode(form, doseq=True)
    body = fields.encode() if post else None
    try:
        with urllib.request.urlopen(f"{url}/api/v1/{path}" + ("" if post else f"?{fields}"), body,
                                    timeout=60) as answer:  # fmt: skip
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as fault:
        return fault.code, json.load(fault)


def form_of(query: Query) -> tuple[str, dict[str, str]]:
    if query.step is None:
        return "query", {"query": query.text, "time": f"{query.start:.3f}"}
    times = {"start": f"{query.start:.3f}", "end": f"{query.end:.3f}", "step": str(query.step)}
    return "query_range", {"query": query.text, **times}


def test_queries_get_the_same_answers(both: Pair) -> None:
    """Values to 1e-9, by GET and by POST; where one is refused, with the same status and type."""
    generator = Generator(31)
    for number in range(QUERIES):
        query = generator.query()
        path, form = form_of(query)
        (status, theirs), (mine, ours) = (
            asked(url, path, form, post=number % 2 == 0) for url in both
        )
        assert (mine, ours.get("errorType")) == (status, theirs.get("errorType")), (query, ours)
        if status == 200:
            same(query, theirs["data"], ours["data"])


def same(query: Query, theirs: Any, ours: Any) -> None:
    assert ours["resultType"] == theirs["resultType"], query
    if theirs["resultType"] == "string":
        assert ours == theirs, query
        return
    left = witness.theirs(theirs["resultType"], theirs["result"])
    right = witness.theirs(ours["resultType"], ours["result"])
    assert set(left) == set(right), query
    for labels, points in left.items():
        assert witness._alike(points, right[labels]), (query, labels)


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("labels", {}),
        ("labels", {"match[]": '{__name__=~".+_total"}'}),
        ("label/__name__/values", {}),
        ("label/host/values", {"match[]": ['{__name__=~".+"}', "nothing_at_all"]}),
        ("label/nothing/values", {}),
        ("label/0bad/values", {}),
        ("series", {"match[]": '{__name__=~".+"}'}),
        ("series", {}),
        ("series", {"match[]": "rate("}),
        ("query", {"query": "sum("}),
        ("query", {"query": "no_such_function(up)"}),
        ("query", {"query": "1", "time": "x"}),
        ("query", {"query": "1", "timeout": "x"}),
        ("query_range", {"query": "1", "start": "0", "end": "11001", "step": "1"}),
        ("query_range", {"query": "1", "start": "0", "end": "11000", "step": "1"}),
        ("query_range", {"query": "1", "start": "5", "end": "1", "step": "1"}),
        ("query_range", {"query": "1", "start": "0", "end": "1", "step": "0"}),
        ("query_range", {"query": "1", "start": "0", "end": "1", "step": "-1"}),
        ("query_range", {"query": "1", "start": "0", "end": "10", "step": "1m"}),
        ("query_range", {"query": "up[1m]", "start": "0", "end": "1", "step": "1"}),
        ("query_range", {"query": "'x'", "start": "0", "end": "1", "step": "1"}),
        ("query_exemplars", {"query": "up", "start": "0", "end": "1"}),
        ("format_query", {"query": "sum  by(a) (rate(up{b='c'}[5m]))"}),
        ("rules", {}),
        ("alerts", {}),
        ("metadata", {"metric": "nothing"}),
        ("nothing", {}),
    ],
)
def test_requests_get_the_same_answers(both: Pair, path: str, form: dict[str, Any]) -> None:
    """Status, type of error, and content."""
    (status, theirs), (mine, ours) = (plain(url, path, form) for url in both)

    assert mine == status
    if isinstance(theirs, dict):
        assert ours["status"] == theirs["status"]
        assert ours.get("errorType") == theirs.get("errorType")
        assert ours.get("data") == theirs.get("data")


def plain(url: str, path: str, form: dict[str, Any]) -> tuple[int, Any]:
    """One request by GET; of an answer that is no JSON the status alone."""
    try:
        return asked(url, path, form, post=False)
    except json.JSONDecodeError:
        return 404, None


@pytest.mark.parametrize(
    "words",
    [
        ("instant", "URL", "count by (host) ({__name__=~'.+'})", "--time", "AT"),
        ("instant", "URL", "vector(1)"),
        ("range", "URL", "count({__name__=~'.+'})", *SPAN, "--step", "5m"),
        ("series", "URL", "--match", "{__name__=~'.+'}", *SPAN),
        ("labels", "URL", "__name__", *SPAN),
        ("labels", "URL", "host", *SPAN),
        ("instant", "URL", "sum("),
    ],
)
def test_promtool_reads_both_alike(both: Pair, words: tuple[str, ...]) -> None:
    """As a client that others wrote."""
    tool, at = program("promtool"), str(int(T0 + SPAN_S / 2))
    said = []
    for url in both:
        command = [tool, "query", *(w.replace("URL", url).replace("AT", at) for w in words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        page = re.sub(r"@\[\d{10}\.?\d*\]", "@", done.stdout)
        said.append((done.returncode, sorted(page.splitlines())))
    assert said[0] == said[1]
    assert said[0][1] or words[2] == "sum("
