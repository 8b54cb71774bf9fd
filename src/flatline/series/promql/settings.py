"""How an engine is set up."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

LOOKBACK_S = 300.0
"""How long a sample stands for its series (`--query.lookback-delta` of Prometheus)."""
SUBQUERY_STEP_S = 60.0
"""The step of a subquery that names none (`evaluation_interval` of Prometheus)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """
    `compat` is the major release of Prometheus whose answers are given.

    `experimental` allows functions which a server answers only when told to
    (`--enable-feature=promql-experimental-functions`).  At `until` (of `time.monotonic`) a query
    is given up: between two operations, so that one of them may still run on.
    """

    lookback_s: float = LOOKBACK_S
    compat: Literal[2, 3] = 3
    subquery_step_s: float = SUBQUERY_STEP_S
    experimental: bool = False
    until: float = inf

    @property
    def old(self) -> bool:
        """Whether the answers are those of Prometheus 2."""
        return self.compat == 2


DEFAULTS = Settings()
EXPERIMENTAL = frozenset(
    {
        "double_exponential_smoothing",
        "first_over_time",
        "mad_over_time",
        "sort_by_label",
        "sort_by_label_desc",
        "ts_of_first_over_time",
        "ts_of_last_over_time",
        "ts_of_max_over_time",
        "ts_of_min_over_time",
        "start",
        "end",
        "range",
        "step",
        "min_of",
        "max_of",
        "histogram_quantiles",
    }
)
SINCE_3 = EXPERIMENTAL - {"double_exponential_smoothing"}
"""Functions that no release 2 up to 2.42 has."""
