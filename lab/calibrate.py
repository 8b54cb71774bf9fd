"""
How often verdicts are right at each strength, and what the map from one to the other is worth.

    python lab/calibrate.py                    # report on what was counted (lab/calibration.csv)
    python lab/calibrate.py --add NAME FOLDER  # count the cases of a folder that nobody has read

A case is as in `lab/score.py`.  Only verdicts that were found count, of cases that were scored
before any rule was changed because of them.  Kept of a case are its set, its origin, the strength
and whether the family was right: no text of others.
"""

from __future__ import annotations

import csv
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from flatline import calibration
from flatline.collect import Request, collect
from flatline.diagnose import judge

COUNTED = Path(__file__).with_name("calibration.csv")
FEW = 5
"""Origins of fewer verdicts are left out together."""
LEVELS = (0.6, 0.65, 0.7, 0.73, 0.75, 0.77, 0.79)
LEVELS_ABOVE = (0.88, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.985)


class Row(NamedTuple):
    set: str
    origin: str
    strength: float
    right: bool


def read() -> list[Row]:
    with COUNTED.open(encoding="utf-8", newline="") as file:
        return [Row(a, b, float(c), d == "1") for a, b, c, d in csv.reader(file)]


def add(name: str, folder: Path) -> None:
    with COUNTED.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for path in sorted(folder.glob("*/truth.toml")):
            truth = tomllib.loads(path.read_text("utf-8"))
            args = list(truth.get("args", ()))
            job = str(args[args.index("--job") + 1]) if "--job" in args else truth.get("job")
            base = path.parent / "baseline"
            beside = str(base) if base.is_dir() else None
            run = Request((str(path.parent / "run"),), job=job, baseline=beside)
            verdict = judge(collect(run))
            if verdict.state == "found":
                right = verdict.code in truth.get("codes", ())
                row = (name, truth.get("origin", name), verdict.confidence, int(right))
                writer.writerow(row)


def mapped(strength: float, levels: Sequence[float]) -> float:
    """`calibrated` with other levels: at 0.6 and just below 0.8, at 0.8 and at 0.99."""
    (start, floor), (middle, _), (end, _) = calibration.KNOTS
    if strength < middle:
        return floor + (strength - start) / (middle - start) * (levels[0] - floor)
    if strength < calibration.CONFIDENT:
        return levels[0] + (strength - middle) / (end - middle) * (levels[1] - levels[0])
    return levels[2] + (min(strength, 0.99) - 0.8) / 0.19 * (levels[3] - levels[2])


def fitted(rows: Sequence[Row]) -> tuple[float, ...]:
    """The rising levels of least squared error."""
    low = [(a, b) for a, b in product(LEVELS, LEVELS) if a <= b]
    high = [(a, b) for a, b in product(LEVELS_ABOVE, LEVELS_ABOVE) if a <= b]

    def loss(levels: Sequence[float]) -> float:
        return sum((row.right - mapped(row.strength, levels)) ** 2 for row in rows)

    best_low = min(low, key=lambda pair: loss((*pair, 0.9, 0.9)))
    best_high = min(high, key=lambda pair: loss((0.7, 0.7, *pair)))
    return (*best_low, *best_high)


def error(pairs: Sequence[tuple[float, bool]]) -> float:
    """Expected calibration error over tenths."""
    bins: dict[int, list[float]] = defaultdict(list)
    for confidence, right in pairs:
        bins[min(9, int(confidence * 10))].append(right - confidence)
    return sum(abs(sum(gaps)) for gaps in bins.values()) / max(1, len(pairs))


def report(rows: Sequence[Row]) -> None:
    sizes = Counter(row.origin for row in rows)
    groups = {row.origin if sizes[row.origin] >= FEW else "others" for row in rows}

    def group(row: Row) -> str:
        return row.origin if row.origin in groups else "others"

    print("strength    verdicts  right  mean strength  mean confidence")
    for tenth in range(3, 10):
        held = [row for row in rows if min(9, int(row.strength * 10)) == tenth]
        if held:
            right = sum(row.right for row in held) / len(held)
            strength = sum(row.strength for row in held) / len(held)
            said = sum(calibration.calibrated(row.strength) for row in held) / len(held)
            print(f"{tenth / 10:.1f}-{tenth / 10 + 0.1:.1f}  {len(held):>8}  {right:5.1%}"
                  f"  {strength:13.3f}  {said:15.3f}")  # fmt: skip
    apart = []
    for left_out in sorted(groups):
        levels = fitted([row for row in rows if group(row) != left_out])
        apart += [(mapped(r.strength, levels), r.right) for r in rows if group(r) == left_out]
    print(f"{len(rows)} verdicts of {len(groups)} origins; fitted levels {fitted(rows)}")
    print(
        f"expected calibration error: strengths {error([(r.strength, r.right) for r in rows]):.3f}"
    )
    said = [(calibration.calibrated(r.strength), r.right) for r in rows]
    print(
        f"  the map in use {error(said):.3f}; fitted with each origin left out {error(apart):.3f}"
    )


def main() -> None:
    if sys.argv[1:2] == ["--add"]:
        add(sys.argv[2], Path(sys.argv[3]))
    report(read())


if __name__ == "__main__":
    main()
