"""
How often runs that differ in nothing are told apart, and how small a leak is still found.

    python lab/compare_noise.py [PAIRS]

Pairs of made-up runs (`compared_runs.py`, 6 hosts, 150 steps, noise of 0.3 % a step) are written to
a temporary folder and compared: first the same settings and levels with other noise, then a run
queue raised from 18 to 35 beside speeds lower by so much.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from compared_runs import SMALL, side, steady
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict
from generate_slow import write

FULL = 3295.0


def judged(name: str, root: Path, part: float, queue: float) -> Verdict:
    write(side(name, "run", SMALL, steady(FULL * (1 - part)), queue), root)
    write(side(name, "baseline", SMALL, steady(FULL), 18.0), root)
    folder = root / name
    return diagnose(collect(Request((str(folder / "run"),), baseline=str(folder / "baseline"))))


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        same = [judged(f"same{n}", root, 0.0, 18.0).comparison for n in range(pairs)]
        told = [one for one in same if one is not None]
        signals = sum(len(one.compared) for one in told)
        apart = sum(len(one.signals) for one in told)
        speed = sum(any(m.differs for m in one.measures) for one in told)
        print(f"{len(told)} pairs alike: {apart} of {signals} signals and {speed} speeds differ")
        for part in (0.0, 0.003, 0.005, 0.007, 0.008, 0.0103, 0.015, 0.02):
            found = [judged(f"p{part}n{n}", root, part, 35.0) for n in range(max(4, pairs // 4))]
            cause = [v for v in found if v.code == "D5"]
            sure = sum(v.confidence >= 0.8 for v in cause)
            print(f"{part:.2%} slower: D5 in {len(cause)} of {len(found)}, confident in {sure}")


if __name__ == "__main__":
    main()
