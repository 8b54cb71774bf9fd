"""
The Hugging Face Trainer and those built on it (TRL, axolotl, LLaMA-Factory, ms-swift, Unsloth).

Guaranteed: a logged dict is one value, in the dialect of transformers 4 (numbers) or 5 (strings);
NaN and inf are kept.  A dict with a loss is a training point even where it carries the run's time
(`include_num_input_tokens_seen`); the one at the end has none.  Where the dict speaks of rewards,
KL or a policy (GRPO, PPO, DPO, KTO), its loss is not meant to fall.  A dict names no step: one is
given only where the training bar stands in the same stream and is slow enough (below 10 it/s)
that tqdm, which redraws every 0.1 s, cannot lag behind it.

A bar without a label is anybody's.  It counts as training once it is known to be: its total is
the announced number of steps, or a training dict was logged through it, or it was twice redrawn
in place, which happens where a loop logs through its bar and not where one prepares data.  Once a
bar was full, another of the same total is another rank's.

Refused: evaluation and preparation bars, dicts of loss weights, "Loading best model", the summary
tables after training.

Source: `Trainer._inner_training_loop`, `ProgressCallback` and `tqdm.write`, transformers 4.0 to
5.2; TRL 0.7 to 1.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from flatline.model import Progress
from flatline.parsers._bars import shown_s

FORMAT = "hf_trainer"
FRAMEWORK = "transformers"
ANCHORED = True
TRIGGERS = (
    r"'(eval_([a-z0-9_/.-]+_)?)?loss': ",
    r"'(train_runtime|eval_runtime|loss/policy_avg)': ",
    r"Total (optimization )?steps = [0-9]",
    r"Num Epochs = [0-9]",
    r"\*\*\*\*\* Running [Tt]raining",
    r"Continuing training from global step",
    r"Checkpoint detected, resuming training at",
    r"Loading model from [^ ]*checkpoint-[0-9]",
    r"Saving model checkpoint to ",
    r"TrainOutput\(global_step=[0-9]",
    r"Training completed\. Do not forget to share",
    r"[ -?](?:it/s|s/it)",
)

_FIELD = re.compile(r"'([^']{1,80})': ?'?([^,'}]{0,80})")
_NESTED = re.compile(r"'(?:e?val(?:id(?:ation)?)?|test|dev)': ?\{")
"""Of a dict in a dict only the outer is read, which says whose loss it is."""
_STEPS = re.compile(r"([0-9]{1,12})(?:/([0-9]{1,12}))?$")
_STEP_NAMES = ("global_step/max_steps", "global_step", "step")
_SPEEDS = (
    ("throughput", "tokens/s"),
    ("train_tokens_per_second", "tokens/s"),
    ("tokens_per_second_per_gpu", "tokens/s/GPU"),
    ("train_speed(iter/s)", "it/s"),
)
_LOGGED = {"epoch", "learning_rate", "lr", *_STEP_NAMES}
"""One of these tells what was logged from a dict of loss weights."""
_REWARDED = re.compile(r"'(?:eval_)?(?:reward|kl\b|kl_|objective/|policy/|logps/)")
_PLAN = re.compile(r"Total (?:optimization )?steps = ([0-9][0-9,]{0,15})")
_EPOCHS = re.compile(r"\bNum Epochs = ([0-9][0-9,]{0,12})")
_RESUME = re.compile(r"Continuing training from global step +([0-9]{1,12})")
_CHECKPOINT = re.compile(r"checkpoint-([0-9]{1,12})\b")
_OUTPUT = re.compile(r"TrainOutput\(global_step=([0-9]{1,12})")
_BAR = re.compile(
    r"\s*[0-9]{1,3}%(?:\|[^|]*\|)? +([0-9]{1,12})/([0-9]{1,12}) \[([0-9:]+)<([0-9:?]+),"
    r" *(?:([0-9.]+)|\?) ?(it/s|s/it)\]?"
)
_LONGEST = 16_384
"""Characters of a line that are read: a GRPO dict with many rewards has some 5,000."""
_LAG_FREE_S = 0.1
"""tqdm's default `mininterval`: a bar of slower steps is redrawn at each of them."""


def _number(text: str | None) -> float | None:
    """A number as it stands, or inside `tensor(1.2, ...)` and `np.float64(1.2)`."""
    try:
        return None if text is None else float(text.rpartition("(")[2].rstrip(") "))
    except ValueError:
        return None


def _loss_name(fields: dict[str, str]) -> str | None:
    for name in ("loss", "eval_loss", "loss/policy_avg"):
        if name in fields:
            return name
    return next((n for n in fields if n.startswith("eval_") and n.endswith("_loss")), None)


@dataclass(frozen=True, slots=True)
class _Bar:
    n: int
    total: int
    step_s: float | None
    drawn: tuple[str, str | None]


def _bar(found: re.Match[str]) -> _Bar:
    step_s = None
    if found[5]:
        try:
            rate = float(found[5])
        except ValueError:
            rate = 0.0
        if rate > 0:
            step_s = rate if found[6] == "s/it" else 1 / rate
    return _Bar(int(found[1]), int(found[2]), step_s, (found[3], found[5]))


def _at(bar: _Bar | None, point: Progress) -> Progress:
    """A training point with the clock of the bar that it was glued to."""
    if bar is None or point.kind != "train" or point.step != bar.n:
        return point
    step_s = bar.step_s if point.step_s is None else point.step_s
    return replace(point, since_s=shown_s(bar.drawn[0]), step_s=step_s)


def _redrawn(last: _Bar, bar: _Bar) -> bool:
    """Whether something was written through the bar: it stands again with time and rate unmoved.

    Of slow steps each is drawn, so the count stands still too; of fast ones it may have moved.
    """
    if bar.step_s is None or last.total != bar.total or last.drawn != bar.drawn:
        return False
    if not 0 < last.n <= bar.n < bar.total:
        return False
    return last.n == bar.n or bar.step_s < _LAG_FREE_S


def _steps_at_least(fields: dict[str, str]) -> int | None:
    """Steps the summary's own rate, printed to three decimals, makes of its duration."""
    took, rate = (_number(fields.get(k)) for k in ("train_runtime", "train_steps_per_second"))
    if took is None or rate is None or not 0 < took * rate < 1e12:
        return None
    return int(took * max(0.0, rate - 0.0005)) or None


class Reader:
    """Reads one stream; knows the planned steps, the training bar and how far it got."""

    def __init__(self) -> None:
        self._planned: int | None = None
        self._last: _Bar | None = None
        self._redrawn: dict[int, int] = {}
        self._trusted: set[int] = set()
        self._peak: dict[int, int] = {}

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line; a dict glued to a bar is one training point."""
        text = text[:_LONGEST]
        bar = _BAR.match(text)
        seen = tuple(self._see(_bar(bar))) if bar else ()
        if bar and "{" not in text:
            return seen
        if found := _OUTPUT.search(text):
            return (Progress("finished", step=int(found[1])),)
        if "{" in text and (told := tuple(self._dict(text))):
            return tuple(_at(self._last, point) for point in told) if bar else told
        return tuple(self._message(text)) or seen

    # --- bars ---------------------------------------------------------------------------------

    def _see(self, bar: _Bar) -> Iterable[Progress]:
        last, self._last = self._last, bar
        if bar.n == 0:
            if self._peak.get(bar.total, 0) < bar.total:
                self._peak.pop(bar.total, None)
            return ()
        if last is not None and _redrawn(last, bar):
            self._redrawn[bar.total] = self._redrawn.get(bar.total, 0) + 1
        if not self._is_training(bar.total) or bar.n <= self._peak.get(bar.total, 0):
            return ()
        self._peak[bar.total] = bar.n
        since_s = shown_s(bar.drawn[0])
        return (Progress("train", bar.n, bar.total, step_s=bar.step_s, since_s=since_s),)

    def _is_training(self, total: int) -> bool:
        if self._planned is not None:
            return total == self._planned
        return total in self._trusted or self._redrawn.get(total, 0) >= 2

    def _slow_step(self) -> int | None:
        """How far the training bar is, where what it shows cannot be stale."""
        bar = self._last
        if bar is None or bar.n == 0 or not self._is_training(bar.total):
            return None
        return bar.n if bar.step_s is not None and bar.step_s > _LAG_FREE_S else None

    # --- dicts --------------------------------------------------------------------------------

    def _dict(self, text: str) -> Iterable[Progress]:
        if _NESTED.search(text):
            return ()
        fields: dict[str, str] = dict(_FIELD.findall(text))
        epoch = _number(fields.get("epoch"))
        if "train_runtime" in fields and not {"loss", "eval_loss"} & set(fields):
            total = self._total()
            mean = _number(fields.get("train_loss"))
            step = self._peak.get(total or 0) or _steps_at_least(fields)
            return (Progress("finished", step, total, epoch, mean),)
        name = _loss_name(fields)
        loss = _number(fields[name]) if name else None
        if name is None or loss is None:
            unnamed = Progress("eval", self._slow_step(), epoch=epoch)
            return (unnamed,) if "eval_runtime" in fields else ()
        rewarded = _REWARDED.search(text) is not None
        if not rewarded and not _LOGGED & set(fields):
            return ()
        if name.startswith("eval_"):
            step, total = self._slow_step(), self._total()
            return (Progress("eval", step, total, epoch, loss, name, falling=not rewarded),)
        return (self._train(fields, name, loss, falling=not rewarded),)

    def _train(self, fields: dict[str, str], name: str, loss: float, *, falling: bool) -> Progress:
        if self._last is not None and self._last.n < self._last.total:
            self._trusted.add(self._last.total)
        said = next((fields[name] for name in _STEP_NAMES if name in fields), "")
        step = _STEPS.match(said)
        speed, unit = next(
            ((_number(fields[name]), unit) for name, unit in _SPEEDS if name in fields),
            (None, None),
        )
        return Progress(
            "train",
            step=int(step[1]) if step else self._slow_step(),
            planned=int(step[2]) if step and step[2] else self._total(),
            epoch=_number(fields.get("epoch")),
            loss=loss,
            loss_name=name,
            grad_norm=_number(fields.get("grad_norm")),
            lr=_number(fields.get("learning_rate", fields.get("lr"))),
            step_s=_number(fields.get("step_time")),
            throughput=speed,
            throughput_unit=unit,
            falling=falling,
            data_s=_number(fields.get("data_time")),
        )

    def _total(self) -> int | None:
        if self._planned is not None:
            return self._planned
        bar = self._last
        return bar.total if bar is not None and self._is_training(bar.total) else None

    # --- messages -----------------------------------------------------------------------------

    def _message(self, text: str) -> Iterable[Progress]:
        if found := _PLAN.search(text):
            self._planned = int(found[1].replace(",", ""))
            self._peak.clear()
            epochs = _EPOCHS.search(text)
            many = _number(epochs[1].replace(",", "")) if epochs else None
            return (Progress("plan", planned=self._planned, epochs=many),)
        if found := _EPOCHS.search(text):
            return (Progress("plan", epochs=_number(found[1].replace(",", ""))),)
        if found := _RESUME.search(text):
            return (Progress("resume", step=int(found[1])),)
        named = _CHECKPOINT.search(text)
        step = int(named[1]) if named else None
        if "Checkpoint detected, resuming training at" in text:
            return (Progress("resume", step=step),)
        if "Saving model checkpoint to " in text:
            return (Progress("checkpoint_saved", step=step),)
        if "Loading model from " in text and step is not None:
            return (Progress("checkpoint_loaded", step=step),)
        if "Training completed. Do not forget to share" in text:
            return (Progress("finished", planned=self._planned),)
        return ()
