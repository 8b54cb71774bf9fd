"""
The columnar store: bytes a sample, a capsule diagnosed, and a sweep beside a real Prometheus.

    python bench/store.py [--node DATA] [--seconds 120] [--fleet] [--day]

Without --node the node_exporter set is scraped here for --seconds; --node names a database folder
of an hour of real scrapes.  --fleet adds 10,240 GPUs (some minutes, 1 GB in the temporary
folder), --day the sweep of 192 GPUs over 24 hours beside Prometheus.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from flatline.series.columnar import ColumnarStore
from flatline.series.columnar_write import selections_of, write_store
from flatline.series.engine import Embedded
from flatline.series.storage import Store, each
from flatline.sources.prometheus import Access, PrometheusServer
from servers import Running, node_exporter, prometheus
from store_sets import METRICS, START_S, STEP_S, Cluster

STEP_LINE = "{at} [rank{rank}] INFO step {n}/{steps} loss {loss:.4f} grad_norm 0.390\n"


def fastest(work: Callable[[], object], repeat: int = 5) -> float:
    best = float("inf")
    for _ in range(repeat):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best


# --- bytes a sample -----------------------------------------------------------------------------


def told_size(name: str, store: Store, folder: Path) -> None:
    begin = time.perf_counter()
    written = write_store(store, folder, selections_of(store), store.span or (0.0, 0.0))
    took = time.perf_counter() - begin
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(
        f"{name:36s} {size / max(1, written.samples):6.3f} bytes/sample"
        f"  {written.samples / 1e6:6.1f} M samples, {written.series:,} series,"
        f" written at {written.samples / took / 1e6:.1f} M/s"
    )


def scraped(seconds: int, folder: Path) -> Path:
    """A database of a node_exporter's scrapes, one a second."""
    with node_exporter(folder) as node, prometheus(folder, 1, node.port):
        time.sleep(seconds)
    return folder / "data"


# --- a capsule ----------------------------------------------------------------------------------


def capsule(folder: Path, cluster: Cluster) -> None:
    """A capsule of a run on the cluster: a log of its steps, and its metrics."""
    (folder / "files" / "0").mkdir(parents=True)
    log = folder / "files" / "0" / "job.log"
    steps = int(cluster.steps * STEP_S / 10)
    with log.open("w", encoding="utf-8") as out:
        for n in range(steps):
            at = datetime.fromtimestamp(START_S + 10 * n, UTC).strftime("%Y-%m-%d %H:%M:%S,000")
            out.write(STEP_LINE.format(at=at, rank=0, n=n, steps=steps, loss=5 - n / steps))
    (folder / "metrics").mkdir()
    name = "metrics/0-database"
    write_store(cluster, folder / name, selections_of(cluster), cluster.span)
    document = {
        "flatline-capsule": 1, "gaps": [],
        "asked": dict.fromkeys(("job", "named", "start", "end"), None) | {"hosts": []},
        "files": [{"path": "files/0/job.log", "source": "job.log", "kind": "job log",
                   **described(log)}],
        "metrics": [{"path": name, "source": "metrics", "files": {
            path.name: described(path) for path in sorted((folder / name).iterdir())}}],
    }  # fmt: skip
    (folder / "manifest.json").write_bytes(orjson.dumps(document))


def described(path: Path) -> dict[str, object]:
    data = path.read_bytes()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def diagnosed(folder: Path, repeat: int) -> tuple[float, float, float, str]:
    """Seconds of the fastest run by the clock and of processor time, GiB of the largest, and what
    it said."""
    command = [sys.executable, "-m", "flatline", "diagnose", str(folder), "--quiet"]
    best = float("inf"), float("inf")
    for _ in range(repeat):
        begin, spent = time.perf_counter(), _processor_s()
        said = subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()
        best = min(best, (time.perf_counter() - begin, _processor_s() - spent))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1 << 20)
    return *best, peak, said


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def told_diagnosis(name: str, cluster: Cluster, work: Path, repeat: int) -> None:
    folder = work / "capsule"
    begin = time.perf_counter()
    capsule(folder, cluster)
    made = time.perf_counter() - begin
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    took, spent, peak, said = diagnosed(folder, repeat)
    print(
        f"{name:36s} {took:6.2f} s ({spent:.2f} s of one core), at most {peak:.2f} GiB:"
        f" {said[:60]}\n{'':36s} {size / 1e6:.1f} MB, written in {made:.0f} s"
    )
    shutil.rmtree(folder)


# --- beside a real server -----------------------------------------------------------------------

REDUCTIONS = (
    "max by (Hostname) ({})",
    "avg(avg_over_time({}[10m]))",
    "count by (Hostname) (increase({}[1h]) > 0)",
)
Query = tuple[str, float, float, float]
"""PromQL, first and last time, step in seconds."""


def told_day(work: Path) -> None:
    """192 GPUs over 24 h: what a diagnosis asks, and three reductions of each metric over all
    places, embedded (opening and decoding included) and asked of Prometheus over HTTP."""
    cluster = Cluster(24, 24.0)
    capsule(folder := work / "day", cluster)
    data = database_of(cluster, work)
    first, last = cluster.span
    sweep = [(how.format(metric), first, last, 360.0) for metric in METRICS for how in REDUCTIONS]
    with prometheus(work, 60, 9, data) as server:
        for name, queries in (("a diagnosis", asked_of(folder)), ("reductions", sweep)):
            store = folder / "metrics" / "0-database"
            ours = fastest(lambda q=queries, s=store: here(s, q), 5)  # type: ignore[misc]
            theirs = fastest(lambda q=queries: there(server, cluster, q), 3)  # type: ignore[misc]
            what = f"192 GPUs, 24 h: {len(queries)} queries of {name}"
            print(f"{what:46s} {ours:5.2f} s embedded, {theirs:5.2f} s of Prometheus:"
                  f" {theirs / ours:.1f} x")  # fmt: skip


def asked_of(folder: Path) -> list[Query]:
    """What a diagnosis of a capsule asks, as it stands there."""
    from flatline.collect import Request, collect
    from flatline.diagnose import diagnose

    facts = collect(Request((str(folder),)))
    asked: list[Query] = []
    facts._ask = _noting(facts._ask, asked)
    diagnose(facts)
    return asked


def _noting(ask: Callable[..., Any], asked: list[Query]) -> Callable[..., Any]:
    def noting(*args: Any, **window: Any) -> Any:
        answer = ask(*args, **window)
        if answer is not None and answer.query:
            asked.append((answer.query, answer.start.timestamp(), answer.end.timestamp(),
                          answer.step_s))  # fmt: skip
        return answer

    return noting


def here(folder: Path, queries: list[Query]) -> None:
    engine = Embedded(ColumnarStore(folder, "metrics"), "metrics")
    for query in queries:
        engine.run(*query)


def there(server: Running, cluster: Cluster, queries: list[Query]) -> None:
    first, last = (datetime.fromtimestamp(at, UTC) for at in cluster.span)
    engine = PrometheusServer(server.url, first, last, Access(), metrics=[METRICS])
    for query in queries:
        engine.run(*query)


def database_of(cluster: Cluster, work: Path) -> Path:
    """The cluster's samples in a database of Prometheus's own, by promtool."""
    text, data = work / "samples.txt", work / "data"
    with text.open("w", encoding="utf-8") as out:
        for matchers in selections_of(cluster):
            out.write(f"# TYPE {matchers[0].value} gauge\n")
            for labels, times, values in each(cluster.select(matchers, *cluster.span)):
                shown = ",".join(f'{k}="{v}"' for k, v in labels if k != "__name__")
                name = f"{matchers[0].value}{{{shown}}}"
                pairs = zip(values.tolist(), times.tolist(), strict=True)
                out.writelines(f"{name} {v!r} {t:.3f}\n" for v, t in pairs)
        out.write("# EOF\n")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=48h",
               str(text), str(data)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    text.unlink()
    return data


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    reader.add_argument("--node", type=Path)
    reader.add_argument("--seconds", type=int, default=120)
    reader.add_argument("--fleet", action="store_true")
    reader.add_argument("--day", action="store_true")
    asked = reader.parse_args()
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        told_size("192 GPUs x 40 metrics x 2 h, made up", Cluster(24, 2.0), work / "gpus")
        if asked.node or shutil.which("prometheus-node-exporter"):
            from flatline.series.tsdb.database import Database

            data = asked.node or scraped(asked.seconds, work)
            told_size("node_exporter, 1 s", Database(data, "db"), work / "node")
        told_diagnosis("diagnose 24 hosts x 8 GPUs x 2 h", Cluster(24, 2.0), work, 5)
        if asked.fleet:
            told_diagnosis("diagnose 10,240 GPUs x 2 h", Cluster(1280, 2.0), work, 1)
        if asked.day:
            told_day(work)


if __name__ == "__main__":
    main()
