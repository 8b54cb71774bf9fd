"""
Scores the verdicts on a folder of clusters: as `score.py` does, and whether the culprits are exact.

    python lab/score_clusters.py FOLDER [--prometheus | --apart] [NAME...]

`truth.toml` has what `score.py` reads and, where they are known, `hosts`, `gpus` ("host:index") and
`ranks`: exact is a right family with these hosts and GPUs and no others; where ranks alone are
listed, with these ranks, whatever host stands beside them.  With `--prometheus` what a folder has
of metrics is loaded into a real Prometheus (`promtool tsdb create-blocks-from openmetrics`), which
is asked instead.  With `--apart` each run is looked at again without any one of its files and
folders, where wrong below 0.8 is allowed: what shows the cause may be gone.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "bench"))

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict
from servers import prometheus  # type: ignore[import-not-found]

CONFIDENT = 0.8
WHOLE = 4
_SAMPLE = re.compile(r"^([a-zA-Z_:][^\s{]*(?:\{.*\})?) (\S+) (\d{13})\s*$")


def named(verdict: Verdict) -> tuple[set[str], set[str], set[int]]:
    """Hosts, GPUs as host:index, and ranks of the culprits."""
    places = verdict.culprits
    hosts = {place.host.split(".")[0] for place in places if place.host}
    gpus = {f"{(p.host or '?').split('.')[0]}:{p.gpu}" for p in places if p.gpu is not None}
    return hosts, gpus, {place.rank for place in places if place.rank is not None}


def exact(truth: dict[str, Any], verdict: Verdict) -> bool:
    hosts, gpus, ranks = named(verdict)
    short = {host.split(".")[0] for host in truth.get("hosts", ())}
    cards = {
        f"{h.split('.')[0]}:{n}" for h, _, n in (g.rpartition(":") for g in truth.get("gpus", ()))
    }
    if short or cards:
        whole = not gpus and len(cards) >= WHOLE  # all of a host's, named as the host
        named_so = not cards or whole or gpus == cards
        return hosts == (short or {card.split(":")[0] for card in cards}) and named_so
    if truth.get("ranks"):
        return ranks == set(truth["ranks"])
    return True


def outcome(truth: dict[str, Any], verdict: Verdict) -> str:
    said = verdict.code if verdict.state != "undetermined" else "undetermined"
    if said in truth.get("codes", ()):
        wanted = truth.get("fault_class")
        if said == "A1" and wanted and verdict.fault_class != wanted:
            return "right, other class"
        return "exact" if exact(truth, verdict) else "right, other culprits"
    if said in truth.get("also", ()):
        return "exact"
    if said == "undetermined":
        return "abstained"
    return "wrong, confident" if verdict.confidence >= CONFIDENT else "wrong"


def asked(truth: dict[str, Any], run: Path, url: str | None = None) -> Verdict:
    args = list(truth.get("args", ()))
    job = str(args[args.index("--job") + 1]) if "--job" in args else None
    beside = run.parent / "baseline"
    baseline = str(beside) if beside.is_dir() else None
    return diagnose(collect(Request((str(run),), job=job, baseline=baseline, prometheus=url)))


def shown(verdict: Verdict) -> str:
    hosts, gpus, ranks = named(verdict)
    who = " ".join(map(str, (*sorted(gpus or hosts)[:6], *sorted(ranks)[:6])))
    code = verdict.code if verdict.state != "undetermined" else "undetermined"
    return f"{code} {verdict.fault_class} {verdict.confidence:.2f} [{who}] {verdict.headline[:90]}"


@contextmanager
def served(case: Path) -> Iterator[tuple[Path, str]]:
    """A copy of the run without its metrics, and the address of a Prometheus that has them."""
    with tempfile.TemporaryDirectory() as made:
        work, run = Path(made), Path(made) / "run"
        shutil.copytree(case / "run", run)
        samples: list[str] = []
        for path in sorted(p for p in run.rglob("*") if p.is_file()):
            rows = [_SAMPLE.match(row) for row in path.read_text("utf-8", "replace").splitlines()
                    if row and not row.startswith("#")]  # fmt: skip
            if rows and sum(row is not None for row in rows) > 0.9 * len(rows):
                samples += (f"{row[1]} {row[2]} {int(row[3]) / 1000:.3f}" for row in rows if row)
                path.unlink()
        text = work / "metrics.om"
        text.write_text("\n".join([*samples, "# EOF"]) + "\n", "utf-8")
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text)]
        subprocess.run([*command, str(work / "data")], check=True, capture_output=True)
        with prometheus(work, 60, 9, work / "data") as running:
            yield run, running.url


def one(case: Path, through: bool) -> tuple[str, str]:
    truth = tomllib.loads((case / "truth.toml").read_text("utf-8"))
    if through:
        with served(case) as (run, url):
            verdict = asked(truth, run, url)
    else:
        verdict = asked(truth, case / "run")
    return (
        outcome(truth, verdict),
        f"wanted {truth['codes']} {truth.get('hosts', '')}"
        f"{truth.get('gpus', '')}{truth.get('ranks', '')}: {shown(verdict)}",
    )


def apart(case: Path) -> list[tuple[str, str]]:
    truth = tomllib.loads((case / "truth.toml").read_text("utf-8"))
    out = []
    parts = sorted((case / "run").iterdir())
    for part in parts if len(parts) > 1 else ():
        with tempfile.TemporaryDirectory() as made:
            run = Path(made) / "run"
            shutil.copytree(case / "run", run, ignore=lambda d, names, p=part: (
                [p.name] if Path(d) == p.parent else []))  # fmt: skip
            verdict = asked(truth, run)
        out.append((outcome(truth, verdict), f"without {part.name}: {shown(verdict)}"))
    return out


def work(case: Path, how: str) -> tuple[str, list[tuple[str, str]]]:
    return case.name, apart(case) if how == "apart" else [one(case, how == "prometheus")]


def main() -> None:
    told = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    told.add_argument("folder", type=Path)
    told.add_argument("names", nargs="*")
    way = told.add_mutually_exclusive_group()
    way.add_argument("--prometheus", action="store_true")
    way.add_argument("--apart", action="store_true")
    given = told.parse_args()
    how = "prometheus" if given.prometheus else "apart" if given.apart else ""
    cases = [path.parent for path in sorted(given.folder.glob("*/truth.toml"))
             if not given.names or path.parent.name in given.names]  # fmt: skip
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor(2) as pool:
        for name, results in pool.map(work, cases, [how] * len(cases)):
            for result, text in results:
                counts[result] += 1
                if result != "exact" and (how != "apart" or result == "wrong, confident"):
                    print(f"{name:>12} {result:22} {text}", flush=True)
    total = sum(counts.values())
    for result, count in counts.most_common():
        print(f"{result:22} {count:5} {count / max(1, total):6.1%}")
    print(f"{'in all':22} {total:5}")


if __name__ == "__main__":
    main()
