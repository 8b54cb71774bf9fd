"""
How fast PromQL is answered, beside a Prometheus on the same data (needs `prometheus` installed).

    python bench/promql.py [--gpus 192] [--metrics 40] [--hours 24] [--step 60]

Both hold the same samples, a scrape every 15 s: ours in memory, the server's in blocks that
`promtool` made.  A query is timed three times after a first that warms caches; the fastest
counts.  The server is asked over HTTP, as whoever opens it in Grafana asks it; ours is timed to
the same JSON.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "series"))
from against_prometheus import installed, serving

from flatline.series.promql import response
from flatline.series.promql.evaluate import over
from flatline.series.storage import MemoryStore, Series, labels_of

T0, EVERY_S, PER_HOST = 1_700_006_400, 15, 8
QUERIES = {
    "a gauge as it is": "m0",
    "mean by host": "avg by (host) (m0)",
    "spread over GPUs": "stddev(m0)",
    "the five hottest": "topk(5, m0)",
    "the median GPU": "quantile(0.5, m0)",
    "below its peers": "m0 < on (host) group_left () (0.9 * avg by (host) (m0))",
    "mean over 5 m": "avg_over_time(m0[5m])",
    "lowest of an hour": "min_over_time(m0[1h])",
    "jitter over 15 m": "stddev_over_time(m0[15m])",
    "p95 over 10 m": "quantile_over_time(0.95, m0[10m])",
    "rate of a counter": "rate(c0_total[5m])",
    "rates by host": "sum by (host) (rate(c0_total[5m]))",
    "increase of an hour": "increase(c0_total[1h])",
    "trend": "deriv(m0[10m])",
    "changes": "changes(m1[10m])",
    "two metrics": "m0 / m1",
    "worst of a subquery": "max_over_time(avg by (host) (m0)[10m:1m])",
    "every metric": 'count by (__name__) ({host="node000"})',
    "who is missing": "m0 unless on (host, gpu) (m1 > 40)",
}


def series(gpus: int, metrics: int, hours: float, seed: int = 1) -> Series:
    """Half gauges with three decimals, half counters that now and then begin anew."""
    rng = np.random.default_rng(seed)
    size = int(hours * 3600 / EVERY_S)
    labels, times, values = [], [], []
    for metric in range(metrics):
        counter = metric % 4 == 3
        name = f"c{metric // 4}_total" if counter else f"m{metric - metric // 4}"
        for gpu in range(gpus):
            host = f"node{gpu // PER_HOST:03d}"
            labels.append(labels_of({"__name__": name, "host": host, "gpu": str(gpu % PER_HOST)}))
            times.append(T0 + np.arange(size) * EVERY_S + (gpu // PER_HOST) * 0.4)
            walk = np.round(rng.normal(0, 1, size), 3)
            if counter:
                walk = np.cumsum(np.abs(walk))
                cut = rng.integers(size)
                walk[cut:] -= walk[cut]
                values.append(np.round(walk, 3))
            else:
                values.append(np.round(300 + 20 * walk, 3))
    offsets = np.arange(len(labels) + 1, dtype=np.int64) * size
    return Series(
        tuple(labels), np.round(np.concatenate(times), 3), np.concatenate(values), offsets
    )


def to_blocks(data: Series, folder: Path) -> None:
    """The samples as OpenMetrics, and that as blocks."""
    text = folder / "metrics.om"
    with text.open("w", encoding="utf-8") as file:
        for row, labels in enumerate(data.labels):
            pairs = dict(labels)
            name = pairs.pop("__name__")
            key = name + "{" + ",".join(f'{k}="{v}"' for k, v in pairs.items()) + "}"
            part = slice(data.offsets[row], data.offsets[row + 1])
            for at, value in zip(
                data.times[part].tolist(), data.values[part].tolist(), strict=True
            ):
                file.write(f"{key} {value} {at:.3f}\n")
        file.write("# EOF\n")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text)]
    subprocess.run([*command, str(folder / "data")], check=True, capture_output=True)
    text.unlink()


def fastest(work: Callable[[], object]) -> float:
    work()
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> int:
    reader = argparse.ArgumentParser(description="PromQL beside Prometheus.")
    reader.add_argument("--gpus", type=int, default=192)
    reader.add_argument("--metrics", type=int, default=40)
    reader.add_argument("--hours", type=float, default=24)
    reader.add_argument("--step", type=int, default=60)
    given = reader.parse_args()
    if not installed():
        print("prometheus is not installed", file=sys.stderr)
        return 2
    data = series(given.gpus, given.metrics, given.hours)
    store = MemoryStore(data)
    print(f"{len(data):,} series, {data.values.size:,} samples, a point every {given.step} s")
    start, end = T0, T0 + given.hours * 3600
    ratios = []
    with tempfile.TemporaryDirectory() as made:
        to_blocks(data, Path(made))
        with serving("--query.max-samples=500000000", folder=Path(made) / "data") as url:
            for name, query in QUERIES.items():
                form = {"query": query, "start": start, "end": end, "step": given.step}
                content = urllib.parse.urlencode(form).encode()

                def ask(content: bytes = content) -> bytes:
                    where = f"{url}/api/v1/query_range"
                    with urllib.request.urlopen(where, content) as answer:
                        return bytes(answer.read())

                def answer(query: str = query) -> bytes:
                    found = over(query, store, start, end, given.step)
                    return orjson.dumps(response.success(response.over_range(found)))

                def compute(query: str = query) -> object:
                    return over(query, store, start, end, given.step)

                theirs, ours, alone = fastest(ask), fastest(answer), fastest(compute)
                ratios.append(ours / theirs)
                print(
                    f"{name:20s} {query[:46]:46s} theirs {theirs:6.3f} s  ours {ours:6.3f} s"
                    f" ({alone:6.3f} s before the JSON)  {ours / theirs:5.2f} x",
                    flush=True,
                )
    print(f"geometric mean {float(np.exp(np.mean(np.log(ratios)))):.2f} x Prometheus's time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
