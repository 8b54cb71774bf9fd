"""
Tables under a heading that names a step or an epoch and a loss: CSV, TSV, Markdown, notebooks.

Read: the table that the Hugging Face Trainer draws in a notebook (`Step  Training Loss`, also as
it is pasted, with single blanks or `|`), what Keras and Lightning write as CSV, the `results.csv`
of Ultralytics, and any hand-printed table of that kind.  A row is told by its heading alone, so
the lines below a heading are read one by one until twenty in a row are none.

A training loss is the column called so; of several without a total (`train/box_loss`) the sum,
without those that only balance.  A cell that is empty, `-` or `No log` says nothing.  NaN is a
value, unless pandas wrote it for a cell that was empty: where a held-out loss of the row has a
value, or a column has one only in the rows in which the loss has none.  A notebook repeats a
training loss until there is a newer one; beside another held-out loss a repeated one says nothing.
Columns of rewards or of two adversaries make the loss one that is not meant to fall.

spaCy's table (`E  #  LOSS NER ... SCORE`) has sums of losses since the row before, of one batch in
the first and of batches that may grow after it: of these only that one is no number is said, and
beside it the score, which is that of held-out cases.

Refused: headings that hold a number, no loss, or the name of a secret, rows of another width, and
fastai's own table.

Source: `NotebookTrainingTracker` of transformers, `CSVLogger` of Keras and of Lightning,
`BaseTrainer.save_metrics` of ultralytics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, isnan, nan
from typing import TypeVar

from flatline.model import Progress
from flatline.parsers._loops import ASIDE, CONFIG_TAIL, NO_MODELS, REWARDS, SUMMARY, UNFALLING
from flatline.parsers._rules import LONGEST, number
from flatline.redact import mask_value

FORMAT = "headed"
FRAMEWORK = None
GENERIC = 2
TRIGGERS = (
    r"(?i:epoch|step|iteration)\"? ?[\t!#-'*+,;<>?@^`{|}~]",
    r"(?i:epoch|step|iteration) {2,12}\|",
    r"(?i:epoch|step) (?i:training loss)",
    r"(?i:epoch|step|iter)  [A-Za-z_/ ]{0,20}(?i:loss)",
    r" LOSS [A-Z]",
)

Line = TypeVar("Line")
UNLIKE = 20
"""Lines between two rows: what else a loop prints while it evaluates and saves."""
_CELLS = 64
_PROBE = "0123456789abcdefABCDEF"
_NAME_CHARS = 48
_WORDS = re.compile(r"(?:training|train|validation|valid|val|eval) loss|global step|\S+")
_FASTAI = re.compile(r"\s*epoch +train_loss +")
_RULE = re.compile(r"[\s|:+=-]+")
_STEPS = {"step", "steps", "iter", "iteration", "iterations", "global step", "#"}
_EPOCHS = {"epoch", "epochs"}
_WHOLE = {"loss", "train loss", "training loss", "total loss", "train total loss"}
_HELD_OUT = re.compile(r"(?:^| )(?:e?val|valid|validation|evaluation|test|dev)(?: |$)")
_OF_A_STEP = {"loss step", "loss epoch"}
_RETURNS = re.compile(r"(?:^| )(?:returns?|episodes?|(?:q|td|bellman) loss)(?: |$)")
_RATES = {"lr", "learning rate"}
_NORMS = {"grad norm", "gradient norm"}
_MISSING = {"", "-", "--", "none", "n/a", "no log"}


@dataclass(frozen=True, slots=True)
class Heading:
    """Which column is what."""

    separator: str
    width: int
    step: int | None
    epoch: int | None
    losses: tuple[int, ...]
    held_out: int | None
    rate: int | None
    norm: int | None
    name: str
    falling: bool
    score: int | None = None


def heading(line: str) -> Heading | None:
    """What a heading says of its columns; None where the line is none."""
    low = line[:LONGEST].strip().lower()
    if "loss" not in low or _FASTAI.match(low):
        return None
    separator = next((mark for mark in "|\t,;" if mark in low), "  " if "  " in low else " ")
    cells = [cell.strip(" \"'") for cell in _cut(low, separator)]
    names = [re.sub(r"[_/. ]+", " ", cell) for cell in cells]
    if not 2 <= len(names) <= _CELLS or any(not _is_name(name) for name in names):
        return None
    if any(mask_value(cell, _PROBE) != _PROBE for cell in cells):
        return None  # what stands below is told for a secret by nothing in its own line
    step = next((at for at, name in enumerate(names) if name in _STEPS), None)
    epoch = next((at for at, name in enumerate(names) if name in _EPOCHS), None)
    told = [at for at, name in enumerate(names) if _is_loss(name)]
    held_out = [at for at in told if _HELD_OUT.search(names[at])]
    losses = _chief(names, [at for at in told if at not in held_out])
    if (step is None and epoch is None) or not (losses or held_out):
        return None
    rewarded = any(word in low for word in REWARDS) or any(map(_RETURNS.search, names))
    unfalling = rewarded or any(UNFALLING.search(names[at]) for at in told)
    name = names[losses[0]] if len(losses) == 1 else "sum of losses"
    rate, norm = (
        next((at for at, one in enumerate(names) if one in known), None)
        for known in (_RATES, _NORMS)
    )
    whole = next((at for at in held_out if names[at].split()[1:] == ["loss"]), None)
    score = len(names) - 1 if names[:2] == ["e", "#"] and names[-1] == "score" else None
    return Heading(
        separator, len(names), step, epoch, losses, whole, rate, norm, name, not unfalling, score
    )


def _is_name(cell: str) -> bool:
    return len(cell) <= _NAME_CHARS and not any(map(str.isdigit, cell[:1])) and "=" not in cell


def _is_loss(name: str) -> bool:
    """Whether it is one of a model's: no best one, no scale, no lost packets."""
    words = name.split()
    if "loss" not in words or {*words} & (SUMMARY | NO_MODELS):
        return False
    tail = name.partition("loss")[2].strip()
    return f"loss {tail}" in _OF_A_STEP or not CONFIG_TAIL.match(tail)


def _chief(names: list[str], told: list[int]) -> tuple[int, ...]:
    """The columns whose sum the loss is: a total, or one of a step, or all of training's."""
    for wanted in (_WHOLE, {"train loss step", "loss step"}, {"train loss epoch"}):
        whole = [at for at in told if names[at] in wanted]
        if whole:
            return (whole[0],)
    chief = [at for at in told if not {*names[at].split()} & ASIDE]
    training = [at for at in chief if names[at].startswith("train ")]
    return tuple(training or chief)


def _cut(line: str, separator: str) -> list[str]:
    if separator == "|":
        return line.strip(" |").split("|")
    if separator == "  ":
        return re.split(r" {2,}", line)
    return _WORDS.findall(line) if separator == " " else line.split(separator)


class Reader:
    """Reads one stream: a heading, and the rows below it."""

    def __init__(self) -> None:
        self._heading: Heading | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """Nothing: a heading says only what the rows below it say."""
        self._heading = heading(text)
        return ()

    def rows(self, lines: Iterable[tuple[Line, str]]) -> Iterator[tuple[Line, Progress]]:
        """What the rows say that follow the heading which was just fed, each with its line."""
        head, unlike = self._heading, 0
        if head is None:
            return
        table = _Table(head)
        for line, text in lines:
            text = text[:LONGEST].strip()
            said = table.row(text)
            if said is None:
                unlike += 1
                if unlike > UNLIKE or heading(text) is not None:
                    return
                continue
            unlike = 0
            yield from ((line, item) for item in said)


class _Table:
    """The rows below one heading; holds what tells a NaN that is an empty cell."""

    def __init__(self, head: Heading) -> None:
        self._head = head
        self._blank: set[int] = set()
        self._last: tuple[float | None, float | None] = None, None

    def row(self, text: str) -> list[Progress] | None:
        """What a row says; None where the line is none."""
        head = self._head
        if head.separator.isspace() and head.separator != "\t":
            cells = text.replace("No log", "-").split()
        else:
            cells = [cell.strip(" \"'") for cell in _cut(text, head.separator)]
        if len(cells) != head.width or _RULE.fullmatch(text):
            return None
        values = [number(cell) for cell in cells]
        known = [cell.lower() in _MISSING for cell in cells]
        step, epoch = (None if at is None else values[at] for at in (head.step, head.epoch))
        if not _counts(step, epoch) or sum(v is not None for v in values) + sum(known) < 2:
            return None
        where = None if step is None else int(step), None, epoch
        if head.score is not None:
            lost = any(isnan(values[at] or 0.0) for at in head.losses)
            return [
                Progress("train", *where, nan if lost else None, head.name),
                Progress("eval", *where, values[head.score], "score", falling=False),
            ]
        loss, held_out = self._losses(values)
        said = []
        if loss is not None:
            rate, norm = (None if at is None else values[at] for at in (head.rate, head.norm))
            said.append(Progress("train", *where, loss, head.name, lr=rate, grad_norm=norm,
                                 falling=head.falling))  # fmt: skip
        if held_out is not None:
            said.append(Progress("eval", *where, held_out, "validation loss"))
        return said

    def _losses(self, values: Sequence[float | None]) -> tuple[float | None, float | None]:
        """The training's and the held-out one, as far as the row says them anew."""
        head = self._head
        held_out = None if head.held_out is None else values[head.held_out]
        parts = [value for at in head.losses if (value := values[at]) is not None]
        loss = sum(parts) if parts and len(parts) == len(head.losses) else None
        if loss is not None and isnan(loss):
            if (held_out is not None and isfinite(held_out)) or any(
                (value := values[at]) is not None and isfinite(value) for at in self._blank
            ):
                return None, held_out
        elif loss is not None:
            self._blank.update(at for at, v in enumerate(values) if v is not None and isnan(v))
            if head.held_out in self._blank and held_out is not None and isnan(held_out):
                held_out = None
        before, self._last = self._last, (loss, held_out)
        repeated = loss == before[0] and None not in (loss, held_out, before[1])
        return (None if repeated and held_out != before[1] else loss), held_out


def _counts(step: float | None, epoch: float | None) -> bool:
    """Whether a row says where it stands: a whole step, or an epoch."""
    if step is not None and (not isfinite(step) or step != int(step) or step < 0):
        return False
    if epoch is not None and not 0 <= epoch < float("inf"):
        return False
    return step is not None or epoch is not None
