"""
Megatron-LM, Megatron-Core, Megatron-DeepSpeed and GPT-NeoX: the `iteration N/ M | ... |` line.

Guaranteed: a line whose iterations were all skipped is kept, with `skipped`; where it counts NaN
iterations and prints no loss, the loss is NaN, because Megatron prints an average only when it
is above zero.  A line that prints neither (bf16 without loss scaling) keeps its step and
gradient norm, and no loss is claimed.

Refused: "saving checkpoint at iteration", which says that a save began, not that it ended; the
argument table; "loading checkpoint", for the same reason.

Source: `training_log`, `save_checkpoint`, `load_checkpoint` of Megatron-LM, 2019 to 2026; values
were printed without colons at first.  `training_log` of AMD-AGI/Primus, 2025 and 2026.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from flatline.model import Progress

FORMAT = "megatron"
FRAMEWORK = "megatron"
TRIGGERS = (
    r"iteration +[0-9]+/ *[0-9]+ +\|",
    r"(validation|test) loss at (iteration|the end of training)",
    r"successfully (saved|loaded) checkpoint ",
    r"Loading checkpoint and starting from iteration [1-9]",
    r"will start from random",
    r"setting training iterations to [0-9]",
    r"\[after training is done\]",
    r"exiting program (at iteration|after) [0-9]",
)

_ITERATION = re.compile(r"\biteration +([0-9]{1,12})/ *([0-9]{1,12}) +\|")
_VALIDATION = re.compile(
    r"(?:validation|test) loss at (?:iteration +([0-9]{1,12})|the end of training)[^|]*\|"
    r" *([^|:]*?loss)(?: value)? *:? +(\S+)"
)
_SAVED = re.compile(r"successfully saved checkpoint .{0,400}?iteration +([0-9]{1,12})")
_LOADED = re.compile(
    r"(?:successfully loaded checkpoint .{0,400}?iteration"
    r"|Loading checkpoint and starting from iteration(?= +[1-9])) +([0-9]{1,12})"
)
"""GPT-NeoX says where it begins once it has loaded, and 0 where there was nothing to load."""
_PLAN = re.compile(r"setting training iterations to +([0-9]{1,12})")
_EXIT = re.compile(r"exiting program (?:at iteration +([0-9]{1,12})|after +[0-9.]+ minutes)")
_OWN = ("elapsed time per iteration", "consumed samples", "skipped iterations")
_MAIN_LOSS = ("lm loss", "lm_loss", "loss", "reduced_train_loss")
_PART_LOSS = ("scale", "balanc", "aux", "z_loss", "z loss", "mtp", "sop", "moe", "ppl")
_THROUGHPUT = (
    ("tokens per gpu (tokens/s/gpu)", "tokens/s/GPU"),
    ("tokens/s/gpu inst/harmonic mean", "tokens/s/GPU"),
    ("samples per second", "samples/s"),
    ("samples/sec", "samples/s"),
    ("tokens per second", "tokens/s"),
    ("tokens-per-second", "tokens/s"),
    ("throughput per gpu (tflop/s/gpu)", "TFLOP/s/GPU"),
    ("tflops", "TFLOP/s/GPU"),
)


_LONGEST = 8_192
"""Characters of a line that are read: timers may follow the last column."""


def _number(text: str | None) -> float | None:
    """A number; of `now/mean`, as Primus prints what varies, the first."""
    try:
        return None if text is None else float(text.partition("/")[0])
    except ValueError:
        return None


def _fields(text: str) -> dict[str, str]:
    """The `name: value` columns of a line, names in lower case."""
    fields: dict[str, str] = {}
    for part in text.split("|"):
        name, colon, value = part.rpartition(":")
        if not colon:
            name, _, value = part.strip().rpartition(" ")
        fields.setdefault(name.strip().lower(), value.strip())
    return fields


def _loss(fields: dict[str, str]) -> tuple[str, float | None]:
    for name in _MAIN_LOSS:
        if name in fields:
            return name, _number(fields[name])
    for name, value in fields.items():
        if "loss" in name and not any(part in name for part in _PART_LOSS):
            return name, _number(value)
    return "loss", None


def _step_s(fields: dict[str, str]) -> float | None:
    elapsed = _number(fields.get("elapsed time per iteration (ms)"))
    if elapsed is not None:
        return elapsed / 1e3
    return _number(fields.get("elapsed time per iteration (s)"))


def _throughput(fields: dict[str, str]) -> tuple[float | None, str | None]:
    for name, unit in _THROUGHPUT:
        value = _number(fields.get(name))
        if value is not None:
            return value, unit
    return None, None


def _iteration(found: re.Match[str], text: str) -> Progress:
    fields = _fields(text[found.end() :])
    name, loss = _loss(fields)
    skipped = _number(fields.get("number of skipped iterations")) or 0.0
    bad = _number(fields.get("number of nan iterations")) or 0.0
    if loss is None and bad > 0:
        loss = math.nan
    throughput, unit = _throughput(fields)
    data_ms = _number(fields.get("batch-generator"))
    return Progress(
        "train",
        step=int(found[1]),
        planned=int(found[2]),
        loss=loss,
        loss_name=name,
        grad_norm=_number(fields.get("grad norm")),
        lr=_number(fields.get("learning rate")),
        step_s=_step_s(fields),
        throughput=throughput,
        throughput_unit=unit,
        skipped=skipped > 0 and (loss is None or bad > 0),
        data_s=None if data_ms is None else data_ms / 1e3,
        balance=_number(fields.get("load_balancing_loss", fields.get("load balancing loss"))),
    )


class Reader:
    """Reads one stream; keeps the last iteration, for lines that name none."""

    def __init__(self) -> None:
        self._step: int | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line, for the line's own words alone."""
        text = text[:_LONGEST]
        found = _ITERATION.search(text)
        if found and any(own in text for own in _OWN):
            progress = _iteration(found, text)
            self._step = progress.step
            return (progress,)
        return self._other(text)

    def _other(self, text: str) -> Iterable[Progress]:
        if found := _VALIDATION.search(text):
            step = int(found[1]) if found[1] else self._step
            name = found[2].strip() or "loss"
            return (Progress("eval", step=step, loss=_number(found[3]), loss_name=name),)
        if found := _SAVED.search(text):
            return (Progress("checkpoint_saved", step=int(found[1])),)
        if found := _LOADED.search(text):
            return (Progress("checkpoint_loaded", step=int(found[1])),)
        if "will start from random" in text:
            return (Progress("fresh"),)
        if found := _PLAN.search(text):
            return (Progress("plan", planned=int(found[1])),)
        if "[after training is done]" in text:
            return (Progress("finished", step=self._step),)
        if found := _EXIT.search(text):
            return (Progress("finished", step=int(found[1]) if found[1] else self._step),)
        return ()
