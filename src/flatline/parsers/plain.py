"""
Hand-written training loops: a step-ish word with a number and a loss-ish word with a number.

Also torchtitan, nanoGPT, nanotron, litgpt, lingua, llm.c, OLMo, Composer, fairseq, detectron2,
mmengine, timm, torchvision, MindSpore, estimators, flax loops, verl.  One line is one training
point; a line of validation alone is an evaluation; one that carries both losses is both.

Conservative: a number is a step only beside `step`, `iter`, `iteration`, `update` or in a counter
of known shape (`[10/100]`, `Epoch: [0][10/5005]`, `200/2983 batches`).  A counter that starts anew
with each epoch is counted on over the epochs; the plan is left out beside an epoch of unknown
number.  `Epoch 3 ... loss` alone gives an epoch and no step, and so does
`train Loss: 0.5 Acc: 0.9` below a line `Epoch 3/25`, or `Epoch 3 | train 0.5 | val 0.6`, which may
be no loss; an epoch with its accuracy alone is an evaluation; a line that is a training loss and
nothing else gives neither, and is read only until a loss was seen beside a step.  Samples are not
steps.
NaN and inf are values.  Policy, value, KL and adversarial losses, and any beside a reward, are
not meant to fall.

Refused: configuration (`logging_steps=10`, `Namespace(`, dotted tables, command lines), code,
summaries (best, final, target), wandb's summary, loss scales and weights, what is said of
checkpoints (see `markers`), and the lines that other formats read.

Source: the print statements of the projects named above.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace

from flatline.model import PRINTED, Progress, ProgressKind
from flatline.parsers import Columns
from flatline.parsers._epochs import Epochs
from flatline.parsers._loops import Position, Shape, Slot, cut, learn

FORMAT = "plain"
FRAMEWORK = None
GENERIC = 1
TRIGGERS = (
    r"(?i:loss|xent)[^0-9\n]{0,40}[0-9]",
    r"(?i:loss|xent)[^\n]{0,32}(?i:nan|inf)",
    r"(?i:nan|inf) (?i:loss)",
    r"(?i:iter|step|epoch)[a-z]{0,6}[ :=]{1,6}[0-9]+((/| of )[0-9]+)?[ ,|:]{1,4}"
    r"(mse|rmse|mae|nll|ctc|bce|ce|elbo|huber)[ :=]{1,3}[0-9]",
    r"( mse=| rmse=| nll=| ctc=| bce=| elbo=| huber=)[0-9]",
    r" ce=[0-9]",
    r"train_ce=([0-9]|nan)",
    r"train_dice_?ce=([0-9]|nan)",
    r"Epoch: ?\[[0-9]+\] +\[ *[0-9]+/[0-9]+\] +eta:",
    r"\[(step|batch)=[0-9]+/[0-9]+",
    r"[Ee]poch[ :=#\[]{1,3}[0-9]",
    r"(?i:cost)(=| =|:| :| after [a-z]{4,9} [0-9]+:) *([0-9]|nan)",
    r"(?:损失|損失)",
    r"^tensor\([0-9.naif]{3,12}, device='cuda",
    r"tensor\([0-9.naif]{3,12}, [^\n]{0,40}grad_fn=<[A-Za-z0-9]{0,24}Loss",
)

_CLOCK = (
    r"(?:\[?(?:[0-9]{4}-[0-9]{2}-[0-9]{2}[ t])?[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?z?\]?"
    r"(?: {1,8}info:?)?(?= ))"
)
_BATCH_FIRST = re.compile(rf"(?:^{_CLOCK}?" + r" {0,8}|[\]|:>-] )(batch) *[:=#]? *#?[0-9]")
_EPOCH_ABOVE = re.compile(
    rf"{_CLOCK}?"
    r"\W{0,12}epoch[ :=#\[]{1,3}([0-9]{1,6})(?: ?(?:/|of) ?[0-9]{1,6})?(?![\w.])(?!.*loss)"
)
_NUMBER = r"(?:tensor\()?([-+]?(?:[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]{1,3})?|nan|inf)\b)"
_BELOW_EPOCH = re.compile(
    r"(?:\[[=>.]{3,}\]\s+step: [^|]{1,12}\| tot: [^|]{1,16}\| )?"
    r"(?:\W{0,3}(?:(train(?:ing)?|(val|valid|validation|test))\.?(?: phase)?|average|mean|epoch)"
    r" ?[:|-]? ?)?(?:(?:average|mean|epoch|\(ema\)) )?\(?loss\)?(?: ?[:=] ?| )"
    + _NUMBER
    + r"(?=$|[\s,|;])"
)
_FRACTION = r"([0-9]{1,6}\.[0-9]{2,9}|nan|inf)(?![\w.%]| ?(?:%|m?s\b|min|h\b))"
_PAIRED = re.compile(
    r"(?:.{0,60}[\] |-])?epoch[ :=#\[]{1,3}([0-9]{1,6})(?: ?(?:/|of) ?[0-9]{1,6})?[\] |,;:-]{1,6}"
    r"(?:(?:[0-9]{1,9}(?:\.[0-9]{1,3})? ?(?:s(?:ec)?|m(?:in)?)|[0-9]{1,3}(?::[0-9]{2}){1,2})"
    r"[\] |,;:-]{1,6})?"
    rf"train(?:ing)? ?[:= ] ?{_FRACTION}[ |,;/]{{1,6}}"
    rf"(?:val|valid|validation|test|dev) ?[:= ] ?{_FRACTION}"
)
"""What an epoch gave on both sets, in fractions: a loss or an accuracy, which it does not say."""
_SCORED = re.compile(
    r"(?:.{0,60}[\] |-])?epoch[ :=#\[]{1,3}([0-9]{1,6})(?: ?(?:/|of) ?[0-9]{1,6})?[\] |,;:-]{1,6}"
    r"(?!.*\b(?:best|target|loss|iter|step|batch))(?:.{0,80}[ |,;(])??"
    r"(?:(?:train(?:ing)?|val|valid|validation|test|dev|eval)[ _./-]{1,3})?"
    r"(?:acc(?:uracy)?|top-?1|f1|auc|ap|map|m?iou|dice|bleu|wer|cer|psnr|score)"
    r"(?:[ _@-]\w{1,6})?[ :=]{1,3}[0-9]{1,3}\.[0-9]"
)
"""How good an epoch's model is, where no loss is told."""
_ALONE = re.compile(
    r"(?:((?:(?:train(?:ing)?|total|batch|step) )?loss) ?[:=] ?" + _NUMBER
    + r"|tensor\(([0-9.]{1,16}|nan|inf), (?=.{0,60}grad_fn=<\w{0,24}(?:loss|entropy)))"
    + r"(?:, device='[^']{1,12}'[^|]{0,80}\)|.{0,30}grad_fn=<[^>]{1,40}>\))?$"
)  # fmt: skip

_PRINTED = re.compile(r"tensor\(([0-9.]{1,16}|nan|inf), device='cuda[^']{0,8}'\)$")
"""A scalar that is printed and nothing else: a loss mostly, so only what is no number tells."""

_LONGEST = 8_192
"""Characters of a line that are read: the longest step lines known (verl) have some 5,000."""
_SHAPES = 256
"""Shapes that are remembered; a loop prints a handful."""


_CHINESE = (
    (re.compile(r"第 ?([0-9]{1,9}) ?(?:轮|个?epoch)|(?:轮次|轮数|周期)"), r" epoch \1"),
    (re.compile(r"第 ?([0-9]{1,12}) ?(?:步|次迭代|个?step)|(?:步数|迭代次数|迭代)"), r" step \1"),
    (re.compile("最(?:佳|优|好|低|小)(?:的)?"), " best "),
    (re.compile("训练(?:集)?|訓練"), " train "),
    (re.compile("验证(?:集)?|測試|测试(?:集)?|驗證"), " val "),
    (re.compile("损失(?:值|函数值)?|損失"), " loss "),
    (re.compile("："), ":"),
    (re.compile("，"), ", "),
)


def _in_english(low: str) -> str:
    """A line that speaks of its loss in Chinese, in the words that are looked for."""
    if "损失" in low or "損失" in low:
        for words, english in _CHINESE:
            low = words.sub(english, low)
    return low


def _value(slot: Slot | None, parts: list[str]) -> float | None:
    return None if slot is None else slot.value(parts)


def _count(slot: Slot | None, parts: list[str]) -> int | None:
    return None if slot is None else slot.count(parts)


class Reader:
    """Reads one stream; remembers the shapes of its lines, and counts on over its epochs."""

    def __init__(self) -> None:
        self._shapes: dict[str, Shape | None] = {}
        self._epochs = Epochs()
        self._below: int | None = None
        self._epoch_above: float | None = None
        self._placed = False

    def feed(self, text: str) -> Iterable[Progress]:
        """A training point, an evaluation, or both where a line carries both losses."""
        text = text[:_LONGEST]
        low = _in_english(text.lower())
        parts = cut(low)
        key = "\0".join(parts[::2])
        known = key in self._shapes
        shape = self._shapes[key] if known else self._learn(text, low, parts, key)
        return self._unplaced(low.strip()) if shape is None else self._read(shape, parts)

    def columns(self, text: str) -> Columns | None:
        """Where lines of this shape have their numbers; None where an epoch, which counts on over
        what was read before, or an evaluation stands there too."""
        parts = cut(text.lower())
        shape = self._shapes.get("\0".join(parts[::2]))
        position = shape.position if shape is not None else None
        if shape is None or position is None or shape.train is None or position.step is None:
            return None
        if shape.kind != "line" or shape.held_out or position.epoch or position.epochs:
            return None
        if position.bare:
            return None
        named = {
            "step": position.step, "planned": position.of, "loss": shape.train.slot,
            "grad_norm": shape.norm, "lr": shape.rate, "step_s": shape.step_s,
            "data_s": shape.data_s, "sync_s": shape.sync_s, "throughput": shape.speed,
        }  # fmt: skip
        slots = {name: slot for name, slot in named.items() if slot is not None}
        places = [slot.place(parts) for slot in slots.values()]
        numbers = tuple(place for place in places if place is not None)
        if len(numbers) < len(slots):
            return None
        return Columns(tuple(slots), numbers, shape.train.name, shape.train.falling)

    def _learn(self, text: str, low: str, parts: list[str], key: str) -> Shape | None:
        if len(self._shapes) >= _SHAPES:
            self._shapes.clear()
        if '{"' in low or "{'" in low:
            shape = learn(text, low.replace('"', " ").replace("'", " "), parts)
        else:
            shape = learn(text, low, parts)
        if shape is None and (found := _BATCH_FIRST.search(low)):
            stepped = low[: found.start(1)] + "step " + low[found.end(1) :]
            shape = learn(text, stepped, parts)
            if shape is not None and shape.position is not None:
                # Batches are counted in an epoch, which a line above may name.
                shape = replace(shape, position=replace(shape.position, bare=True))
        self._shapes[key] = shape
        return shape

    def _unplaced(self, low: str) -> Iterable[Progress]:
        """A loss without a counter: below the epoch's own line, or all that the line says; or an
        epoch's results without a name."""
        if paired := _PAIRED.match(low):
            epoch, value = float(paired[1]), float(paired[2])
            return (Progress("train", epoch=epoch, loss=value, loss_name="train", falling=False),)
        if above := _EPOCH_ABOVE.match(low):
            self._epoch_above = float(above[1])
        if scored := _SCORED.match(low):
            return (Progress("eval", epoch=float(scored[1])),)
        if above:
            return ()
        if self._epoch_above is not None and (below := _BELOW_EPOCH.match(low)):
            kind: ProgressKind = "eval" if below[2] else "train"
            name = f"{below[1]} loss" if below[1] else "loss"
            return (Progress(kind, epoch=self._epoch_above, loss=float(below[3]), loss_name=name),)
        if not self._placed and (alone := _ALONE.match(low)):
            value = float(alone[2] or alone[3])
            return (Progress("train", loss=value, loss_name=alone[1] or "loss"),)
        if not self._placed and (bare := _PRINTED.match(low)):
            return (Progress("train", loss=float(bare[1]), loss_name=PRINTED, falling=False),)
        return ()

    def _read(self, shape: Shape, parts: list[str]) -> Iterable[Progress]:
        train, position = shape.train, shape.position
        if shape.kind == "line" and position is not None:
            return self._line(shape, position, parts)
        if shape.kind == "header" and position is not None:
            self._below = _count(position.step, parts)
            return (Progress("train", self._below, _count(position.of, parts)),)
        if shape.kind == "eval" and shape.held_out:
            value = shape.held_out.slot.value(parts)
            return (Progress("eval", loss=value, loss_name=shape.held_out.name),)
        if train is None or (shape.kind == "below" and self._below is None):
            return ()
        step, self._below = self._below, None
        value = train.slot.value(parts)
        return (Progress("train", step, loss=value, loss_name=train.name, falling=train.falling),)

    def _line(self, shape: Shape, position: Position, parts: list[str]) -> Iterable[Progress]:
        where = self._where(position, parts)
        if where is None:
            return ()
        self._placed = True
        said = []
        if shape.train is not None or shape.held_out is None:
            said.append(self._train(shape, position, where, parts))
        if shape.held_out is not None:
            value, name = shape.held_out.slot.value(parts), shape.held_out.name
            if value is not None:
                said.append(Progress("eval", *where, value, name))
        return said

    def _train(
        self,
        shape: Shape,
        position: Position,
        where: tuple[int | None, int | None, float | None],
        parts: list[str],
    ) -> Progress:
        loss = shape.train
        own = self._epochs.own and position.epoch is not None and not position.samples
        return Progress(
            "train",
            *where,
            loss=loss.slot.value(parts) if loss else None,
            loss_name=loss.name if loss else "loss",
            grad_norm=shape.norm.value(parts) if shape.norm else None,
            lr=shape.rate.value(parts) if shape.rate else None,
            step_s=shape.step_s.value(parts) if shape.step_s else None,
            data_s=shape.data_s.value(parts) if shape.data_s else None,
            sync_s=shape.sync_s.value(parts) if shape.sync_s else None,
            throughput=shape.speed.value(parts) if shape.speed else None,
            throughput_unit=shape.speed_unit,
            epochs=_value(position.epochs, parts),
            per_epoch=_count(position.of, parts) if own else None,
            falling=loss.falling if loss else True,
        )

    # --- counting -----------------------------------------------------------------------------

    def _where(
        self, position: Position, parts: list[str]
    ) -> tuple[int | None, int | None, float | None] | None:
        """(step, planned, epoch) over the whole run; None where the line says none of them."""
        n, of = _count(position.step, parts), _count(position.of, parts)
        epoch, epochs = _value(position.epoch, parts), _count(position.epochs, parts)
        if position.bare and position.epoch is None:
            epoch = self._epoch_above
        if n is None and (epoch is None or position.step is not None):
            return None
        if position.samples and n is not None and epoch is not None:
            return None, None, epoch + (n / of if of else 0.0)
        if n is None or epoch is None:
            return n, of if n is not None and of is not None and of >= n else None, epoch
        if not math.isfinite(epoch):
            return None
        step, planned = self._epochs.over(n, of, (epoch, epochs), position.own)
        return step, planned, epoch
