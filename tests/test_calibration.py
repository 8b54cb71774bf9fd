"""What a confidence says is what was counted."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path

from flatline.calibration import CONFIDENT, calibrated

COUNTED = Path(__file__).parents[1] / "lab" / "calibration.csv"


def test_the_map_rises_and_keeps_to_its_side_of_confident() -> None:
    """No strength below 0.8 becomes confident, none above ceases to be."""
    strengths = [n / 1000 for n in range(300, 991)]
    said = [calibrated(one) for one in strengths]

    assert all(a <= b for a, b in pairwise(said))
    assert all(
        (one >= CONFIDENT) == (now >= CONFIDENT) for one, now in zip(strengths, said, strict=True)
    )
    assert calibrated(0.2) == 0.2


def test_confidence_is_within_a_twentieth_of_what_was_counted() -> None:
    """In the mean over the tenths that hold verdicts (expected calibration error)."""
    with COUNTED.open(encoding="utf-8", newline="") as file:
        rows = [
            (calibrated(float(strength)), right == "1")
            for _, _, strength, right in csv.reader(file)
        ]
    bins: dict[int, float] = {}
    for confidence, right in rows:
        tenth = min(9, int(confidence * 10))
        bins[tenth] = bins.get(tenth, 0.0) + right - confidence

    assert len(rows) > 200
    assert sum(map(abs, bins.values())) / len(rows) < 0.05
