"""
What a baseline that has nothing to do with a run makes of its verdict.

    python lab/compare_pairs.py [SECONDS] [SEED]

Scenarios are drawn two by two; a verdict that another baseline changes is printed.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

ROOT = Path(__file__).parents[1] / "tests" / "scenarios"


def judged(run: Path, baseline: Path | None = None) -> Verdict:
    facts = collect(Request((str(run),), baseline=str(baseline) if baseline else None))
    facts.strict = True
    return diagnose(facts)


def main() -> None:
    limit_s = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    known = [p.parent for p in sorted(ROOT.glob("*/expect.toml")) if "--job" not in p.read_text()]
    alone: dict[Path, Verdict] = {}
    ends, pairs = time.monotonic() + limit_s, 0
    while time.monotonic() < ends:
        run, other = draw.sample(known, 2)
        beside = judged(run / "run", other / "run")
        plain = alone.setdefault(run, judged(run / "run"))
        pairs += 1
        if (beside.state, beside.code) != (plain.state, plain.code):
            print(f"{run.name} beside {other.name}: {plain.state} {plain.code} ->"
                  f" {beside.state} {beside.code} {beside.confidence:.2f}")  # fmt: skip
    print(f"{pairs} pairs")


if __name__ == "__main__":
    main()
