"""A real Prometheus 2 on the same data, where one is installed."""

from __future__ import annotations

import re

import pytest
from against_prometheus import compare, installed
from promql_queries import Generator

from flatline.series.promql.evaluation import KNOWN
from flatline.series.promql.settings import SINCE_3

QUERIES = 400


@pytest.mark.skipif(not installed(), reason="prometheus is not installed")
@pytest.mark.parametrize("seed", [11, 12])
def test_answers_are_those_of_prometheus(seed: int) -> None:
    """With compat 2, to 1e-9, refusals among them; `against_prometheus.py` asks thousands."""
    assert list(compare(seed, QUERIES)) == []


def test_every_function_is_asked_for() -> None:
    """Of those release 2.42 has, and every aggregation and operator."""
    generator = Generator(1)
    words = set()
    for _ in range(3000):
        words.update(re.findall(r"[a-z_0-9]+|[-+*/%^<>=!~]+|@", generator.query().text))

    renamed = {"double_exponential_smoothing": "holt_winters"}
    functions = {renamed.get(name, name) for name in KNOWN - SINCE_3 - {"histogram_fraction"}}
    others = "and or unless atan2 bool on ignoring group_left group_right by without offset @"
    aggregations = "sum avg min max count stddev stdvar group topk bottomk quantile count_values"
    operators = "+ - * / % ^ == != > < >= <= =~ !~"
    assert functions | set(f"{others} {aggregations} {operators}".split()) <= words
