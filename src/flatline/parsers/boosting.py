"""
Gradient boosting on GPUs: the evaluation lines of XGBoost, LightGBM and CatBoost.

    [12]    train-logloss:0.41230   eval-logloss:0.43110
    [12]    training's binary_logloss: 0.41230      valid_0's binary_logloss: 0.43110
    12:     learn: 0.4123000        test: 0.4311000 best: 0.4311000 (12)    total: 1.2s

A round is a step.  The loss is the training set's metric where it is one that falls (log loss,
distances), or one that is to rise (AUC, NDCG, accuracy), and is left out where it counts errors,
which stand still between two cases.  CatBoost does not print which metric it shows: it may be
either.  The best round is told once training is over.

Source: `EvaluationMonitor` of xgboost/callback.py, `_LogEvaluationCallback` of
lightgbm/callback.py, `TConsoleLoggingBackend` of catboost/libs/logging.
"""

from __future__ import annotations

from flatline.model import RISING
from flatline.parsers._rules import RuleReader, rule

FORMAT = "boosting"
FRAMEWORK = None
ANCHORED = True
TRIGGERS = (
    r"\]\t(?:train|eval|valid|test|validation_0)[\w-]*[-:]",
    r"\]\straining's \w+: ",
    r"\]\svalid_\d's \w+: ",
    r"\]\seval's \w+: ",
    r":\tlearn: [0-9n]",
    r"(?i:best[ _]iteration)",
    r"Shrink model to first [0-9]+ iterations",
)
_FALLS = r"(?:[a-z_]*logloss|rmse|rmsle|m(?:ae|ape)|l1|l2|[a-z_]*entropy|[a-z_]*deviance)"
_RISES = r"(?:auc(?:pr)?|average_precision|n?dcg(?:@[0-9]{1,6}-?)?|map(?:@[0-9]{1,6}-?)?|accuracy)"
RULES = (
    rule("train", rf"\[(?P<step>[0-9]{{1,9}})\]\s+(?:train|validation_0)-{_FALLS}:(?P<loss><#>)"),
    rule("train", rf"\[(?P<step>[0-9]{{1,9}})\]\s+training's {_FALLS}: (?P<loss><#>)"),
    rule("train", r"^\s*(?P<step>[0-9]{1,9}):\tlearn: (?P<loss><#>)\t", falling=False),
    rule("train", rf"\[(?P<step>[0-9]{{1,9}})\]\s+(?:train|validation_0)-{_RISES}:(?P<loss><#>)",
         loss_name=RISING, falling=False),
    rule("train", rf"\[(?P<step>[0-9]{{1,9}})\]\s+training's {_RISES}: (?P<loss><#>)",
         loss_name=RISING, falling=False),
    rule("train", r"\[(?P<step>[0-9]{1,9})\]\s+(?:train|training|eval|valid|test|validation_0)\S"),
    rule("finished",
         r"(?:^Stopping\. |^(?:\[LightGBM\] \[Info\] )?(?:Early stopping, |Did not meet early"
         r" stopping\. ))[Bb]est iteration(?: is)?:|^Shrink model to first [0-9]{1,9} iterations"
         r"|^[Bb]est[_ ]iteration[:=]? {0,3}[0-9]{1,9}[,;] best[_ ]score[:=]? {0,3}<#>\s*$"),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
