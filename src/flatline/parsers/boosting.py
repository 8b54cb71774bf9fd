"""
Gradient boosting on GPUs: the evaluation lines of XGBoost, LightGBM and CatBoost.

    [12]    train-logloss:0.41230   eval-logloss:0.43110
    [12]    training's binary_logloss: 0.41230      valid_0's binary_logloss: 0.43110
    12:     learn: 0.4123000        test: 0.4311000 best: 0.4311000 (12)    total: 1.2s

A round is a step.  The loss is the training set's metric where it is one that falls (log loss,
distances), or one that is to rise (AUC, NDCG, accuracy), and is left out where it counts errors,
which stand still between two cases.  CatBoost does not print which metric it shows: its best value
so far tells whether that is to fall or to rise, once it has moved or an evaluation lies beside it;
without one it may be either.  The best round is told once training is over, and so is where the
model was saved: all rounds are one call of the program.

Source: `EvaluationMonitor` of xgboost/callback.py, `_LogEvaluationCallback` of
lightgbm/callback.py, `TConsoleLoggingBackend` of catboost/libs/logging.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import isfinite

from flatline.model import RISING, Progress
from flatline.parsers._rules import NUMBER, Late, RuleReader, number, rule

FORMAT = "boosting"
FRAMEWORK = None
ANCHORED = True
TRIGGERS = (
    r"\]\t(?:train|eval|valid|test|validation_0)[\w-]*[-:]",
    r"\]\straining's \w+: ",
    r"\]\svalid_\d's \w+: ",
    r"\]\seval's \w+: ",
    r":\tlearn: [0-9n]",
    r"(?i:best[ _]?iteration)",
    r"(?i:saved (the )?(model|booster) (to|as|in) )",
    r"(?i:(model|booster) (was |is )?saved (to|as|in) )",
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
         r"|^[Bb]est[_ ]iteration[:=]? {0,3}[0-9]{1,9}[,;] best[_ ]score[:=]? {0,3}<#>\s*$"
         r"|^bestIteration = [0-9]{1,9}\s*$"),
)  # fmt: skip


_SAVED = Late(
    r"(?i)^(?:(?:best[ _]?iteration[:=]? {0,3}[0-9]{1,9}[,;.] )?"
    r"(?:(?:the )?(?:final )?(?:model|booster) )?(?:was |is )?saved"
    r"|saved (?:the )?(?:model|booster)) (?:to|as|in):? ['\"]?[\w./~-]{1,400}"
    r"\.(?:json|ubj|bin|model|txt|cbm|pkl|joblib|onnx)['\"]?[.!]?\s*$"
)
"""A model by its file."""
_BEST = Late(rf"\ttest: ({NUMBER})\tbest: ({NUMBER}) \(")


class Reader(RuleReader):
    """Reads one stream; remembers which way CatBoost's best value goes, and whether rounds were
    made."""

    def __init__(self) -> None:
        super().__init__(RULES)
        self._best: float | None = None
        self._falls: bool | None = None
        self._boosted = False

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        found = _BEST.search(text) if "\tbest: " in text else None
        if found is None:
            said = tuple(super().feed(text))
            self._boosted |= any(one.kind == "train" for one in said)
            done = self._boosted and not said and _SAVED.match(text)
            return (Progress("finished"),) if done else said
        test, best = number(found[1]), number(found[2])
        worse = test if test != best or self._best is None else self._best
        if worse is not None and best is not None and worse != best and isfinite(worse - best):
            self._falls = best < worse
        self._best, self._boosted = best, True
        return tuple(map(self._told, super().feed(text)))

    def _told(self, said: Progress) -> Progress:
        if self._falls is None:
            return replace(said, loss=None, falling=True)
        return replace(said, falling=True) if self._falls else replace(said, loss_name=RISING)
