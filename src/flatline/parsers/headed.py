"""
Tables under a heading that names a step or an epoch and a loss: CSV, TSV, Markdown, notebooks.

Read: the table that the Hugging Face Trainer draws in a notebook (`Step  Training Loss`, also as
it is pasted, with single blanks or `|`), what Keras and Lightning write as CSV, the `results.csv`
of Ultralytics, and any hand-printed table of that kind.  A row is told by its heading alone, so
the lines below a heading are read one by one until twenty in a row are none.

A training loss is the column called so; of several without a total (`train/box_loss`) the sum.
A cell that is empty, `-` or `No log` says nothing; NaN is a value.  Columns of rewards or of two
adversaries make the loss one that is not meant to fall.

Refused: headings that hold a number or no loss, rows of another width, and fastai's own table.

Source: `NotebookTrainingTracker` of transformers, `CSVLogger` of Keras and of Lightning,
`BaseTrainer.save_metrics` of ultralytics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import TypeVar

from flatline.model import Progress
from flatline.parsers._loops import REWARDS, UNFALLING
from flatline.parsers._rules import LONGEST, number

FORMAT = "headed"
FRAMEWORK = None
GENERIC = 2
TRIGGERS = (
    r"(?i:epoch|step|iteration)\"? ?[\t,|;]",
    r"(?i:epoch|step) (?i:training loss)",
    r"(?i:epoch|step|iter)  [A-Za-z_/ ]{0,20}(?i:loss)",
)

Line = TypeVar("Line")
UNLIKE = 20
"""Lines between two rows: what else a loop prints while it evaluates and saves."""
_CELLS = 64
_NAME_CHARS = 48
_WORDS = re.compile(r"(?:training|train|validation|valid|val|eval) loss|global step|\S+")
_FASTAI = re.compile(r"\s*epoch +train_loss +")
_RULE = re.compile(r"[\s|:+=-]+")
_STEPS = {"step", "steps", "iter", "iteration", "iterations", "global step", "#"}
_EPOCHS = {"epoch", "epochs"}
_WHOLE = {"loss", "train loss", "training loss", "total loss", "train total loss"}
_HELD_OUT = re.compile(r"(?:^| )(?:e?val|valid|validation|evaluation|test|dev)(?: |$)")
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


def heading(line: str) -> Heading | None:
    """What a heading says of its columns; None where the line is none."""
    low = line[:LONGEST].strip().lower()
    if "loss" not in low or _FASTAI.match(low):
        return None
    separator = next((mark for mark in "|\t,;" if mark in low), "  " if "  " in low else " ")
    names = [re.sub(r"[_/. ]+", " ", cell.strip(" \"'")) for cell in _cut(low, separator)]
    if not 2 <= len(names) <= _CELLS or any(not _is_name(name) for name in names):
        return None
    step = next((at for at, name in enumerate(names) if name in _STEPS), None)
    epoch = next((at for at, name in enumerate(names) if name in _EPOCHS), None)
    told = [at for at, name in enumerate(names) if "loss" in name.split()]
    held_out = [at for at in told if _HELD_OUT.search(names[at])]
    losses = _chief(names, [at for at in told if at not in held_out])
    if (step is None and epoch is None) or not (losses or held_out):
        return None
    rewarded = any(word in low for word in REWARDS)
    unfalling = rewarded or any(UNFALLING.search(names[at]) for at in told)
    name = names[losses[0]] if len(losses) == 1 else "sum of losses"
    rate, norm = (
        next((at for at, one in enumerate(names) if one in known), None)
        for known in (_RATES, _NORMS)
    )
    whole = next((at for at in held_out if names[at].split()[1:] == ["loss"]), None)
    return Heading(
        separator, len(names), step, epoch, losses, whole, rate, norm, name, not unfalling
    )


def _is_name(cell: str) -> bool:
    return len(cell) <= _NAME_CHARS and not any(map(str.isdigit, cell[:1])) and "=" not in cell


def _chief(names: list[str], told: list[int]) -> tuple[int, ...]:
    """The columns whose sum the loss is: a total, or one of a step, or all of training's."""
    for wanted in (_WHOLE, {"train loss step", "loss step"}, {"train loss epoch"}):
        whole = [at for at in told if names[at] in wanted]
        if whole:
            return (whole[0],)
    training = [at for at in told if names[at].startswith("train ")]
    return tuple(training or told)


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
        for line, text in lines:
            text = text[:LONGEST].strip()
            said = _row(head, text)
            if said is None:
                unlike += 1
                if unlike > UNLIKE or heading(text) is not None:
                    return
                continue
            unlike = 0
            yield from ((line, item) for item in said)


def _row(head: Heading, text: str) -> list[Progress] | None:
    """What a row says; None where the line is none."""
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
    said = []
    losses = [value for at in head.losses if (value := values[at]) is not None]
    if losses and len(losses) == len(head.losses):
        rate, norm = (None if at is None else values[at] for at in (head.rate, head.norm))
        said.append(Progress("train", *where, sum(losses), head.name, lr=rate, grad_norm=norm,
                             falling=head.falling))  # fmt: skip
    if head.held_out is not None and (value := values[head.held_out]) is not None:
        said.append(Progress("eval", *where, value, "validation loss"))
    return said


def _counts(step: float | None, epoch: float | None) -> bool:
    """Whether a row says where it stands: a whole step, or an epoch."""
    if step is not None and (not isfinite(step) or step != int(step) or step < 0):
        return False
    if epoch is not None and not 0 <= epoch < float("inf"):
        return False
    return step is not None or epoch is not None
