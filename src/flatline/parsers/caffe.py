"""
Caffe: how far its solver was, and that it is done.  Its losses are read as any loop's are.

Source: `Solver::Solve` of src/caffe/solver.cpp, `train` of tools/caffe.cpp, BVLC/caffe.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, rule

FORMAT = "caffe"
FRAMEWORK = "caffe"
TRIGGERS = (r"\] Optimization Done\.", r"sgd_solver\.cpp:[0-9]{1,5}\] Iteration ")
RULES = (
    rule("finished", r"\b(?:solver|caffe)\.cpp:\d{1,5}\] Optimization Done\."),
    rule(
        "train", r"\bsgd_solver\.cpp:\d{1,5}\] Iteration (?P<step>[0-9]{1,12}), lr = (?P<lr><#>)"
    ),
)


def Reader() -> RuleReader:
    return RuleReader(RULES)
