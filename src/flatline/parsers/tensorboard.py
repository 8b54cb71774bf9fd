"""
Scalars of TensorBoard event files, as `logs.event_files` renders them, a line a step.

Guaranteed: tags are taken for loss, gradient norm, learning rate, step time, throughput or the
balance of experts by the conventions of the frameworks below, and for nothing else; a value that
was written as NaN is one.
Where several tags of a step could be its loss, the first in the table wins.  Losses of held-out
data are evaluations.

Refused: tags whose axis is samples, not steps (`... vs samples`, `Train/Samples/...`): they carry
their values without a step.  Means of an epoch (`epoch_loss`) count epochs.

Source: tags of HF Trainer and TRL, Lightning and NeMo, Megatron-LM, DeepSpeed, MaxText,
torchtitan, fairseq, Keras, and what hand-written loops mostly call theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from flatline.model import Progress

FORMAT = "tensorboard"
FRAMEWORK = None
TRIGGERS = (r"^[-0-9T:.Z]{1,40} tfevents step -?[0-9]+: ",)

_LINE = re.compile(r"\S{1,40} tfevents step (-?\d{1,19}): (.*)", re.DOTALL)
_TAG = re.compile(r"(\S+?)=(\S+)(?= |$)")
_SKIPPED = re.compile(r"_vs_|^train/samples/")
_HELD_OUT = r"(?:e?val|valid|validation|test)"
_LOSS = (
    re.compile(r"(?:train|training|learning|train_inner|loss_metrics)/(?:loss|train_loss)"),
    re.compile(r"loss/train(?:ing)?(?:_step)?"),
    re.compile(r"(?:train/)?(?:train|training|reduced_train|lm|ce|total|batch)_loss(?:_step)?"),
    re.compile(r"loss_metrics/global_avg_loss|train/samples/train_loss"),
    re.compile(r"(?:train_)?loss(?:_step)?"),
    re.compile(r"epoch_loss|train_loss_epoch|loss/train_epoch"),
)
_EVAL = re.compile(
    rf"{_HELD_OUT}[/_](?:\w{{1,40}}_)?loss|loss/{_HELD_OUT}|lm_loss_validation|{_HELD_OUT}/lm_loss"
)
_GRAD = re.compile(r"(?:\w{1,40}/)?(?:global_|total_)?grad(?:ient)?_norm(?:_step)?")
_RATE = re.compile(
    r"(?:[\w/]{1,60}/)?(?:lr|(?:current_)?learning_rate|lr_[a-z0-9_]{1,30}(?:/pg\d+)?)(?:_step)?"
)
_STEP_S = re.compile(
    r"(?:\w{1,40}/)?(?:iteration_time|step_time_seconds|train_step_timing(?:_in_s)?|step_time)"
    r"|time_metrics/end_to_end\(s\)"
)
_RATES = (
    (re.compile(r"(?:[\w/]{1,60}/)?(?:tokens_per_sec(?:ond)?(?:_per_gpu)?|throughput\(tps\))"),
     "tokens/s"),
    (re.compile(r"(?:[\w/]{1,60}/)?per_device_tokens_per_sec(?:ond)?"), "tokens/s/device"),
    (re.compile(r"(?:[\w/]{1,60}/)?(?:train_)?samples_per_sec(?:ond)?"), "samples/s"),
)  # fmt: skip
_BALANCE = re.compile(
    r"(?:[\w/]{1,60}/)?(?:(?:seq|global)_)?load_balancing_loss|(?:[\w/]{1,60}/)?moe_lb_loss"
)
_EPOCH = re.compile(r"(?:\w{1,40}/)?epoch")
_REWARD = re.compile(r"(?:^|[/_])(?:rewards?|kl|policy_loss|pg_loss|entropy)(?:$|[/_])")


class Reader:
    """Reads one file; knows whether what it optimises is meant to fall."""

    def __init__(self) -> None:
        self._falling = True

    def feed(self, text: str) -> Iterable[Progress]:
        """A training point, an evaluation, or both."""
        found = _LINE.match(text)
        if found is None:
            return
        values = {_spelled(tag): number for tag, said in _TAG.findall(found[2])
                  if (number := _number(said)) is not None}  # fmt: skip
        if any(_REWARD.search(tag) for tag in values):
            self._falling = False
        step = int(found[1])
        held_out = next((tag for tag in values if _EVAL.fullmatch(tag)), None)
        train = self._train(values, step if step >= 0 else None)
        if train is not None:
            yield train
        if held_out is not None:
            yield Progress("eval", step, loss=values[held_out], loss_name=held_out)

    def _train(self, values: Mapping[str, float], step: int | None) -> Progress | None:
        name = next((t for form in _LOSS for t in values if form.fullmatch(t)), None)
        rate = next(((values[t], unit) for form, unit in _RATES for t in values
                     if form.fullmatch(t)), (None, None))  # fmt: skip
        point = Progress(
            "train",
            step=step,
            epoch=_of(_EPOCH, values),
            loss=None if name is None else values[name],
            loss_name=name or "loss",
            grad_norm=_of(_GRAD, values),
            lr=_of(_RATE, values),
            step_s=_of(_STEP_S, values),
            throughput=rate[0],
            throughput_unit=rate[1],
            balance=_of(_BALANCE, values),
            falling=self._falling,
        )
        if name is None and (point.grad_norm is None and point.step_s is None):
            return None  # a learning rate or an epoch alone is no step
        if name is not None and _SKIPPED.search(name):
            return Progress("train", loss=point.loss, loss_name=name, falling=self._falling)
        if name is not None and _LOSS[-1].fullmatch(name):
            epoch = None if step is None else float(step)
            return Progress("train", epoch=epoch, loss=point.loss, loss_name=name)
        return point


def _spelled(tag: str) -> str:
    """A tag as the table has it: small letters, and one sign between words."""
    return re.sub(r"[-_.]+", "_", tag.lower())


def _number(said: str) -> float | None:
    try:
        return float(said)
    except ValueError:
        return None


def _of(form: re.Pattern[str], values: Mapping[str, float]) -> float | None:
    return next((value for tag, value in values.items() if form.fullmatch(tag)), None)
