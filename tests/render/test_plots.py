"""The table of a query: what says where a series is comes first and is cut last."""

from __future__ import annotations

import numpy as np
import pytest

from flatline.series.promql.evaluate import Matrix
from flatline.wording.plots import at_once, farthest, over_time, telling

NOISE = tuple((f"a_label_{n}", f"of_no_place_{n}") for n in range(8))


def labelled(host: str, gpu: str) -> tuple[tuple[str, str], ...]:
    own = (("gpu", gpu), ("host", host))
    return tuple(sorted((*((k, f"{v}_{gpu}") for k, v in NOISE), *own)))


@pytest.mark.parametrize("width", [50, 80, 120])
def test_host_and_gpu_stand_first_and_stay(width: int) -> None:
    """However many labels there are, the line begins with host and GPU, whole."""
    labels = (labelled("node07", "0"), labelled("node08", "1"))
    values = np.ones((2, 1))
    found = Matrix(labels, np.array([0.0]), values, np.ones((2, 1), bool))
    lines = at_once(found, width)
    assert [line[:18] for line in lines[-2:]] == ["host=node07 gpu=0 ", "host=node08 gpu=1 "]
    assert all(len(line) <= width for line in lines)


def test_the_fewest_labels_that_tell_series_apart_are_shown() -> None:
    """Two clocks of one GPU are two lines; what repeats the place is left out."""
    labels = tuple(
        (("clock_index", c), ("gpu_id", g), ("hostname", h), ("instance", f"{h}:9"), ("job", "x"))
        for h in ("mi1", "mi2") for g in "01" for c in "01"
    )  # fmt: skip
    values = np.arange(8.0).reshape(8, 1)
    found = Matrix(labels, np.array([0.0]), values, np.ones((8, 1), bool))
    assert telling(labels) == ("hostname", "gpu_id", "clock_index")
    assert at_once(found, 60)[2].split("  ")[0] == "hostname=mi1 gpu_id=0 clock_index=0"


def test_the_extremes_are_among_the_series_that_are_shown() -> None:
    """A spike of a series whose mean is the usual one; of the rest the range is told."""
    labels = tuple((("gpu", str(n)),) for n in range(40))
    values = np.array([[10.0 + n] * 3 for n in range(40)])
    values[19] = (0.0, 29.0, 58.0)
    found = Matrix(labels, np.arange(3.0), values, np.ones((40, 3), bool))
    assert 19 in farthest(found, 12)
    assert len(farthest(found, 12)) == 12
    assert "and 16 more, from 22 to 38" in over_time(found, 1.0, 80, unicode=True)
