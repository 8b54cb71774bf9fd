"""A real Prometheus 2 on the same data, where one is installed."""

from __future__ import annotations

import pytest
from against_prometheus import compare, installed

QUERIES = 400


@pytest.mark.skipif(not installed(), reason="prometheus is not installed")
@pytest.mark.parametrize("seed", [11, 12])
def test_answers_are_those_of_prometheus(seed: int) -> None:
    """With compat 2, to 1e-9, refusals among them; `against_prometheus.py` asks thousands."""
    assert list(compare(seed, QUERIES)) == []
