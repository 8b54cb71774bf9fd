"""
Caffe: that its solver is done.  Its losses are read as any loop's are.

Source: `Solver::Solve` of src/caffe/solver.cpp, `train` of tools/caffe.cpp, BVLC/caffe.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, rule

FORMAT = "caffe"
FRAMEWORK = "caffe"
TRIGGERS = (r"\] Optimization Done\.",)
RULES = (rule("finished", r"\b(?:solver|caffe)\.cpp:\d{1,5}\] Optimization Done\."),)


def Reader() -> RuleReader:
    return RuleReader(RULES)
