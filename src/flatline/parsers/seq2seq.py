"""
PyTorch's sequence-to-sequence tutorial, whose loop is copied: `1m 2s (- 20m 3s) (500 5%) 2.85`.

The first count is of iterations, or of epochs in the tutorial of 2023; both advance by one each
time, so either is a step.

Source: `trainIters` and `train` of intermediate_source/seq2seq_translation_tutorial.py.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, rule

FORMAT = "seq2seq"
FRAMEWORK = None
TRIGGERS = (r"s\) \([0-9]+ [0-9]+%\) [0-9n]",)
RULES = (
    rule("train", r"\d{1,6}m \d{1,2}s \(- ?\d{1,6}m \d{1,2}s\) "
         r"\((?P<step>[0-9]{1,12}) [0-9]{1,3}%\) (?P<loss><#>)"),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
