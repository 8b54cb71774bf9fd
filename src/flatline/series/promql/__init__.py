"""
PromQL over any store of series, with Prometheus 3's semantics for float samples.

parse     text -> `tree`, refusing what no engine should be asked
tree      the query as values, and back to text
evaluate  the query's answer: a matrix of series by steps

What is not supported is refused by name (`QueryRejected`), never answered differently.
"""

from __future__ import annotations

ENGINE = "flatline-promql 2"
"""Name and version stored with every answer; the version moves when an answer could."""
