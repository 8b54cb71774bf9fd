"""
Scores the verdicts on a folder of cases: how often right, how often wrong, how often sure and wrong.

    python lab/score.py FOLDER

A case is FOLDER/<name>/ with `run/` (what a run left behind), perhaps `baseline/`, and `truth.toml`:
`codes` (families any of which is right), `also` ("undetermined" where abstaining is right too),
`fault_class`, `job` (the one asked about).  The same numbers are given for each origin apart, where
`truth.toml` names one.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

CONFIDENT = 0.8


def outcome(truth: dict[str, Any], run: Path) -> tuple[str, str]:
    """(right, abstained, wrong or confidently wrong; what was said)."""
    args = list(truth.get("args", ()))
    job = str(args[args.index("--job") + 1]) if "--job" in args else truth.get("job")
    beside = run.parent / "baseline"
    baseline = str(beside) if beside.is_dir() else None
    verdict = diagnose(collect(Request((str(run),), job=job, baseline=baseline)))
    said = verdict.code if verdict.state != "undetermined" else "undetermined"
    shown = f"{said} {verdict.fault_class} {verdict.confidence:.2f} {verdict.headline[:90]}"
    if said in (*truth.get("codes", ()), *truth.get("also", ())):
        wanted = truth.get("fault_class")
        if said == "A1" and wanted and verdict.fault_class != wanted:
            return "right, other class", shown
        return "right", shown
    if said == "undetermined":
        return "abstained", shown
    return ("wrong, confident" if verdict.confidence >= CONFIDENT else "wrong"), shown


def main() -> None:
    counts: Counter[str] = Counter()
    for path in sorted(Path(sys.argv[1]).glob("*/truth.toml")):
        truth = tomllib.loads(path.read_text("utf-8"))
        result, shown = outcome(truth, path.parent / "run")
        counts[result] += 1
        if result != "right":
            print(f"{path.parent.name:>6} {result:18} wanted {truth.get('codes')}: {shown}")
    total = sum(counts.values())
    for result, count in counts.most_common():
        print(f"{result:20} {count:5} {count / max(1, total):6.1%}")
    print(f"{'in all':20} {total:5}")


if __name__ == "__main__":
    main()
