"""The table of a query: what says where a series is comes first and is cut last."""

from __future__ import annotations

import numpy as np
import pytest

from flatline.series.promql.evaluate import Matrix
from flatline.wording.plots import at_once

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
