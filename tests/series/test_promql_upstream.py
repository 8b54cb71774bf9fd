"""Prometheus's own test files, where they are there."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from promqltest import evals, outcome

FOLDER = (
    Path(__file__).parents[3] / "shared/realdata/prometheus-upstream/promql/promqltest/testdata"
)
FILES = sorted(FOLDER.glob("*.test"))
BEYOND = {
    # Files of what is not supported: native histograms, and grammar of release 3 that its
    # servers answer only when told to.
    "native_histograms", "extended_vectors", "duration_expression", "fill-modifier", "info",
    "limit", "start_timestamps", "type_and_unit",
}  # fmt: skip
LEAST_PASSED = 0.98
"""Of the evaluations of float samples in the other files (918 of 934); the rest are refused by
name, or listed here."""
DELAYED_NAMES = {
    # Upstream's runner switches delayed name removal on; a server has it off unless told.
    'label_replace(sum by (__name__) (rate(metric_total{env="2"}[5m])), "__name__", "$1", "__name__", "(.+)")',  # noqa: E501
    'sum by (__name__) (metric_total{env="1"} or rate(metric_total{env="2"}[5m]))',
    'sum by (__name__) (rate(metric_total{env="2"}[5m]) or metric_total{env="1"})',
    '(http_requests_total{group="canary"} + 1) and http_requests_total{instance="0"}',
    '(http_requests_total{group="canary"} + 1) or http_requests_total{instance="1"}',
}
KNOWN = {"name_label_dropping.test", "type_and_unit.test"}

pytestmark = pytest.mark.skipif(not FILES, reason="Prometheus's test files are not here")


@cache
def _outcomes(path: Path) -> list[tuple[int, str, str]]:
    return [
        (case.line, case.query.strip(), outcome(case, data))
        for case, data in evals(path.read_text("utf-8"))
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_no_evaluation_differs_silently(path: Path) -> None:
    """An answer is Prometheus's, or a refusal that says what is not supported."""
    wrong = [
        (line, query, said)
        for line, query, said in _outcomes(path)
        if said.startswith("differs") and not (path.name in KNOWN and query in DELAYED_NAMES)
    ]

    assert wrong == []


def test_what_is_supported_stays_supported() -> None:
    """Nearly every evaluation of float samples is answered as Prometheus answers it."""
    said = Counter(
        outcome.partition(":")[0]
        for path in FILES
        if path.stem not in BEYOND
        for _, _, outcome in _outcomes(path)
    )

    assert said["pass"] >= LEAST_PASSED * (said.total() - said["beyond"]), said
