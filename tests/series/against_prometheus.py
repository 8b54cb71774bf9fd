"""
Our answers beside those of a Prometheus 2 on the same data, for queries made by chance.

    python tests/series/against_prometheus.py [--queries 5000] [--seed 1] [--keep-going]

A server is started on the loopback interface with an empty database, and the data is pushed to
it (the remote-write protocol, since no text format can say that a series is stale).  Values
agree to 1e-9 of each other; where one engine refuses a query, so must the other.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from promql_queries import Generator, Query, Row, data

from flatline.errors import QueryRejected
from flatline.series.promql.evaluate import Matrix, Settings, instant, kind, over, samples
from flatline.series.storage import MemoryStore, Store, each, labels_of, series_of

SETTINGS = Settings(compat=2)
NEAR = 1e-9
NOTHING = 1e-12
"""What rounding leaves of 0: the data is of the order of one and above."""
PATIENCE_S = 30.0
Answer = dict[tuple[tuple[str, str], ...], list[tuple[float, float]]]
"""(time, value) pairs by labels; insertion order is that of the answer."""


def installed() -> bool:
    return shutil.which("prometheus") is not None


# --- the server ---------------------------------------------------------------------------------


@contextmanager
def serving(*options: str, folder: Path | None = None) -> Iterator[str]:
    """The address of a Prometheus on a database of its own, or on one that is there."""
    with tempfile.TemporaryDirectory() as made, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        config = Path(made) / "prometheus.yml"
        config.write_text("global: {}\n", "utf-8")
        command = [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={folder or Path(made) / 'data'}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
            *options,
        ]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            url = f"http://127.0.0.1:{port}"
            _await(url, server)
            yield url
        finally:
            server.terminate()
            server.wait(PATIENCE_S)


def _await(url: str, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("Prometheus does not come up")


def push(url: str, rows: Sequence[Row]) -> None:
    """Samples in the order of time, all series together."""
    times = sorted({at for _, column in rows for at, _ in column})
    for first in range(0, len(times), 200):
        begin, end = times[first], times[min(first + 200, len(times)) - 1]
        message = b""
        for labels, column in rows:
            inside = [(at, value) for at, value in column if begin <= at <= end]
            message += _field(1, _series(labels, inside))
        request = urllib.request.Request(f"{url}/api/v1/write", _snappy(message), method="POST")
        request.add_header("Content-Encoding", "snappy")
        urllib.request.urlopen(request, timeout=PATIENCE_S).close()


def _series(labels: Mapping[str, str], column: Sequence[tuple[float, float]]) -> bytes:
    """A `prometheus.TimeSeries`."""
    out = b""
    for name, value in sorted(labels.items()):
        out += _field(1, _field(1, name.encode()) + _field(2, value.encode()))
    for at, value in column:
        out += _field(2, b"\x09" + struct.pack("<d", value) + b"\x10" + _varint(round(at * 1000)))
    return out


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _snappy(plain: bytes) -> bytes:
    """The block format with literals alone."""
    out = [_varint(len(plain))]
    for at in range(0, len(plain), 65_536):
        part = plain[at : at + 65_536]
        out += [b"\xf4" + struct.pack("<H", len(part) - 1), part]
    return b"".join(out)


def asked(url: str, query: Query) -> tuple[str, Any]:
    """The result's type and content, or "error" and the message."""
    form = {"query": query.text}
    if query.step is None:
        form["time"] = f"{query.start:.3f}"
    else:
        form |= {"start": f"{query.start:.3f}", "end": f"{query.end:.3f}", "step": str(query.step)}
    path = "query" if query.step is None else "query_range"
    content = urllib.parse.urlencode(form).encode()
    try:
        with urllib.request.urlopen(f"{url}/api/v1/{path}", content, timeout=60) as answer:
            found = json.load(answer)["data"]
    except urllib.error.HTTPError as fault:
        return "error", json.load(fault).get("error", "")
    return found["resultType"], found["result"]


# --- comparing ----------------------------------------------------------------------------------


def theirs(found_kind: str, result: Any) -> Answer:
    if found_kind == "scalar":
        return {(): [(float(result[0]), float(result[1]))]}
    out: Answer = {}
    for item in result:
        points = item["values"] if "values" in item else [item["value"]]
        out[labels_of(item["metric"])] = [(float(at), float(value)) for at, value in points]
    return out


def ours(query: Query, store: Store) -> tuple[str, Any]:
    """The same of our engine."""
    try:
        expected = kind(query.text, SETTINGS)
        if query.step is not None:
            if expected in ("string", "matrix"):
                return "error", f"a range query of a {expected}"
            found = over(query.text, store, query.start, query.end, query.step, SETTINGS)
            return "matrix", _pairs(found)
        if expected == "string":
            return "string", None
        if expected == "matrix":
            ragged = samples(query.text, store, query.start, SETTINGS)
            return "matrix", {
                labels: list(zip(times.tolist(), values.tolist(), strict=True))
                for labels, times, values in each(ragged)
            }
        return expected, _pairs(instant(query.text, store, query.start, SETTINGS))
    except QueryRejected as fault:
        return "error", str(fault)


def _pairs(found: Matrix) -> Answer:
    out: Answer = {}
    for row, labels in enumerate(found.labels):
        there = found.present[row]
        values = found.values[row][there].tolist()
        out[labels] = list(zip(found.times[there].tolist(), values, strict=True))
    return out


def difference(query: Query, url: str, store: Store) -> str | None:
    """What differs between the two answers, if anything."""
    their_kind, their = asked(url, query)
    our_kind, our = ours(query, store)
    if their_kind != our_kind:
        return f"theirs is {their_kind} {str(their)[:300]}; ours {our_kind} {str(our)[:300]}"
    if our_kind in ("error", "string"):
        return None
    left, right = theirs(their_kind, their), our
    if set(left) != set(right):
        return f"only theirs: {set(left) - set(right)}; only ours: {set(right) - set(left)}"
    for labels, points in left.items():
        if not _alike(points, right[labels]):
            return f"{dict(labels)}: theirs {points[:8]}, ours {right[labels][:8]}"
    if query.step is None and query.text.startswith(("sort", "topk(", "bottomk(")):
        order = [[answer[labels][0] for labels in answer] for answer in (left, right)]
        if not _alike(*order):
            return f"in order: theirs {order[0]}, ours {order[1]}"
    return None


def _alike(left: Sequence[tuple[float, float]], right: Sequence[tuple[float, float]]) -> bool:
    return len(left) == len(right) and all(
        abs(s - t) < 1e-4 and (v == w or (v != v and w != w) or _close(v, w))
        for (s, v), (t, w) in zip(left, right, strict=True)
    )


def _close(v: float, w: float) -> bool:
    return (
        math.isfinite(v) and math.isfinite(w) and math.isclose(v, w, rel_tol=NEAR, abs_tol=NOTHING)
    )


def compare(seed: int, count: int) -> Iterator[tuple[Query, str]]:
    """The queries on which the engines differ."""
    rows = data(seed)
    store = MemoryStore(series_of(rows))
    generator = Generator(seed)
    with serving("--web.enable-remote-write-receiver") as url:
        push(url, rows)
        for _ in range(count):
            query = generator.query()
            said = difference(query, url, store)
            if said is not None:
                yield query, said


def main() -> int:
    reader = argparse.ArgumentParser(description="Our PromQL beside Prometheus 2's.")
    reader.add_argument("--queries", type=int, default=5000)
    reader.add_argument("--seed", type=int, default=1)
    reader.add_argument("--show", type=int, default=20, help="differences shown")
    given = reader.parse_args()
    if not installed():
        sys.stderr.write("prometheus is not installed\n")
        return 2
    found = 0
    for query, said in compare(given.seed, given.queries):
        found += 1
        if found <= given.show:
            sys.stdout.write(f"{query}\n    {said}\n")
    sys.stdout.write(f"{found} of {given.queries} queries differ (seed {given.seed})\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
