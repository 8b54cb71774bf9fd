"""
PyTorch Lightning: its tqdm and rich bars, its messages, and the lines of NeMo 2 that run on it.

Guaranteed: epochs count from 0, so the step is epoch x batches + batch.  Lightning draws the new
batch first and its metrics a moment later: a loss is given with the second drawing, or with the
first where it already changed, so that it belongs to the batch it stands beside.  "Restored all
states" is a resume; "Restoring states" alone is not, because testing a checkpoint prints it too.
EarlyStopping ends a run as its plan does, but for a metric that is no number.

Refused: validation and sanity bars as training; `val_loss` behind a training bar; "Loaded model
weights", which is how a test begins.  Before Lightning 2 a bar's total included the validation
batches; that cannot be told from the line, and such steps are counted as drawn.

Source: `TQDMProgressBar`, `RichProgressBar`, `_CheckpointConnector`, `ModelCheckpoint`,
`EarlyStopping`, the fit loop's stop messages of Lightning 1.5 to 2.6; `ProgressPrinter` of NeMo 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite

from flatline.model import Progress
from flatline.parsers._bars import shown_s

FORMAT = "lightning"
FRAMEWORK = "lightning"
TRIGGERS = (
    r", v_num=",
    r"Epoch [0-9]+(/-?[0-9]+)? +[^ 0-9A-Za-z]",
    r"(Validation|Validating|Sanity Checking|Testing)( DataLoader [0-9]+)?(: | +[^ 0-9A-Za-z])",
    r"`?Trainer\.fit`? stopped: ",
    r"\. Signaling Trainer to stop",
    r"Restored all states from the checkpoint",
    r"Epoch [0-9]+, global step [0-9]+: ",
    r"Training epoch [0-9]+, iteration [0-9]+/[0-9]+ \|",
)

_NUMBER = r"([-+]?(?:[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?|nan|inf))(?![\w])"
_TQDM = re.compile(
    r"Epoch ([0-9]{1,9}):(?>[ :]*)(?:[0-9]{1,3}%)?(?:\|[^|]*\||\|)? *([0-9]{1,12})"
    r"(?:/([0-9]{1,12}|\?)|it)"
    r" \[([0-9:]{1,12})(?:<[0-9:?]+)?(?:, *(?:([0-9.]+)|\?) ?(it/s|s/it))?(?:, ([^\]]*))?"
)
_TIMED = re.compile(r"\btrain_step_timing in s=([0-9.]{1,16})(?=[,\s]|$)")
"""NeMo's own time of a step; its bars show no rate since 2023 (NVIDIA-NeMo/Speech pull 7374)."""
_OF_EPOCHS = re.compile(
    r"Epoch ([0-9]{1,9})/([0-9]{1,9}): +[0-9]{1,3}%\|[^|]*\| *([0-9]{1,9})/\2"
    r" \[[^\],]{1,40}, ([^\]]*)"
)
"""The one bar of scvi-tools, which counts epochs."""
_RICH = re.compile(
    r"Epoch ([0-9]{1,9})(?:/(-?[0-9]{1,9}))? +[━╸╺ ]*([0-9]{1,12})/([0-9]{1,12}|--)"
    r" +[0-9]+:[0-9:]+ • *(?:[-0-9:]+)? +([0-9.]+)it/s(.*)"
)
_LOSS = re.compile(
    r"(?:^|[\s,])([\w./-]*loss[\w./-]*"
    r"|train(?:ing)?[/_.](?:w|weighted_|a?fk?|k)?(?:crps|nll|r?mse|mae|huber|b?ce|xent|elbo|kld?|l[12])"
    r"(?:_step|_epoch)?)[=:] ?" + _NUMBER,
    re.I,
)
_HELD_OUT = re.compile(r"(?:^|[^a-z])(?:val|valid|validation|eval|test)(?:$|[^a-z])", re.I)
_MEASURE = re.compile(
    r"(?:^|[^a-z])(?:(wer|cer|err(?:or)?|ppl|perplexity|r?mse|mae)"
    r"|acc(?:uracy)?|auc|auroc|f1|m?ap|m?iou|dice|bleu)(?:$|[^a-z])",
    re.I,
)
"""What is measured in place of a loss: that which falls, and that which rises."""
_DATA = re.compile(
    r"(?:^|[\s,])(?:time/)?(?:data(?:_?load(?:er|ing)?)?_(?:time|wait|fetch)|t_data|batch_wait)"
    r"(?:_s| in s)?[=:] ?" + _NUMBER
)
"""What a program logs beside the loss: seconds of the step that it waited for its batch."""
_RATE = re.compile(r"(?:^|[\s,])lr[\w./-]*[=:] ?" + _NUMBER)
_EVAL_BAR = re.compile(
    r"^\s*(?:Validation|Validating|Sanity Checking|Testing)(?: DataLoader [0-9]+)?\b"
)
_COUNT = re.compile(r"\b([0-9]{1,12})/[0-9]{1,12}\b")
_STOPPED = re.compile(r"Trainer\.fit`? stopped: `?max_(steps|epochs)=([0-9]{1,12})`? reached")
_EARLY = re.compile(
    r"(?:Monitored metric \S{1,60} did not improve in the last [0-9]{1,6} records\.|Stopping"
    r" threshold reached: ).{0,160}\. Signaling Trainer to stop\.?\s*$"
)
_RESTORED = re.compile(
    r"Restored all states from the checkpoint(?: file)?+(?: at)?+ +"
    r"(?!\S*/\.(?:scale_batch_size|lr_find)_)(\S+)"
)
"""The tuner restores what it had saved itself before it tried (tuner/batch_size_scaling.py,
tuner/lr_finder.py): that is where the run begins."""
_PATH_STEP = re.compile(r"\bstep[=_-]?([0-9]{1,12})")
_PATH_EPOCH = re.compile(r"\bepoch[=_-]?([0-9]{1,9})")
_SAVED = re.compile(
    r"Epoch ([0-9]{1,9}), global step ([0-9]{1,12}): '?([^' ]{0,80})'? (?:reached "
    + _NUMBER
    + r"|was not in top)"
)
_NEMO = re.compile(r"Training epoch ([0-9]{1,9}), iteration ([0-9]{1,12})/([0-9]{1,12}) \|(.*)")


LEAST_ELAPSED_S = 10
"""Elapsed time is drawn in whole seconds: over so many it is right to a tenth."""
DRAWN_ANEW = 0.5
"""A bar that has run for less than this part of what it said before was begun anew.  One that says
somewhat less at a later step reckons its time from its rate, or was put together of others': it is
no clock, and what the step itself says counts."""
_LONGEST = 4_096
"""Characters of a line that are read; terminals are narrower."""


def _waited(postfix: str, step_s: float | None) -> float | None:
    """Seconds of a step for its data; a number that is longer than the step is in another unit,
    or of something else."""
    waited = _number(_DATA.search(postfix))
    return waited if waited is not None and step_s and 0 <= waited <= step_s else None


def _number(found: re.Match[str] | None) -> float | None:
    try:
        return None if found is None else float(found[1])
    except ValueError:
        return None


def _loss(postfix: str) -> tuple[str, str] | None:
    """Name and text of the training loss: this step's rather than the epoch's."""
    losses = {
        name: value
        for name, value in _LOSS.findall(postfix)
        if not _HELD_OUT.search(name) and "scale" not in name
    }
    if not losses:
        return None
    if "reduced_train_loss" in losses:  # of NeMo, where Lightning's own running mean is never fed
        return "reduced_train_loss", losses["reduced_train_loss"]
    for name in losses:
        if name.endswith("_step") or name in ("train_loss", "train/loss", "loss"):
            return name, losses[name]
    return next(iter(losses.items()))


def _epochs(found: re.Match[str]) -> Iterable[Progress]:
    loss = _loss(found[4])
    if loss is None or int(found[3]) == 0:
        return ()
    value, name = float(loss[1]), loss[0]
    return (Progress("train", epoch=float(found[3]), loss=value, loss_name=name,
                     epochs=float(found[2])),)  # fmt: skip


class Reader:
    """Reads one stream; remembers what was drawn last, since bars are drawn over and over."""

    def __init__(self) -> None:
        self._at: tuple[int, int] | None = None
        self._drawn_loss: str | None = None
        self._told = True
        self._eval_n: int | None = None
        self._clock: tuple[int, int, float] | None = None
        self._last: tuple[int, int, float] | None = None
        self._last_s: float | None = None
        self._clock_runs = True

    def feed(self, text: str) -> Iterable[Progress]:
        """A bar drawn again with nothing new says nothing."""
        text = text[:_LONGEST]
        if "Epoch " in text:
            if "v_num=" in text and (found := _TQDM.search(text)):
                return self._tqdm(found)
            if "v_num=" in text and (found := _OF_EPOCHS.search(text)):
                return _epochs(found)
            if "it/s" in text and (found := _RICH.search(text)):
                return self._rich(found)
        if found := _NEMO.search(text):
            return self._nemo(found)
        if "it/s" in text and _EVAL_BAR.match(text):
            return self._evaluates(text)
        return self._message(text)

    # --- bars ---------------------------------------------------------------------------------

    def _tqdm(self, found: re.Match[str]) -> Iterable[Progress]:
        try:
            rate = float(found[5] or 0)
        except ValueError:
            rate = 0.0
        step_s = None if rate <= 0 else rate if found[6] == "s/it" else 1 / rate
        since_s = self._since(int(found[1]), int(found[2]), found[4])
        own = found[6] is None or not self._clock_runs
        timed = _number(_TIMED.search(found[7] or "")) if own else None
        step_s = timed or since_s or step_s
        total = int(found[3]) if found[3] and found[3] != "?" else None
        times = step_s, shown_s(found[4])
        return self._drawn(int(found[1]), int(found[2]), total, None, times, found[7] or "")

    def _since(self, epoch: int, n: int, elapsed: str) -> float | None:
        """Seconds a step since the last bar of this epoch: the rate beside it is the mean of the
        whole epoch, and hides what only slows a part of it."""
        seconds = shown_s(elapsed)
        if seconds is None:
            return None
        here = epoch, n, seconds
        before, last = self._clock, self._last
        self._last = here
        if before is None or last is None or before[0] != epoch or n <= last[1]:
            self._clock, self._clock_runs = here, True
            return None
        if seconds < last[2]:
            self._clock, self._last_s = here, None
            self._clock_runs = seconds < DRAWN_ANEW * last[2]
        if not self._clock_runs:
            return None
        if seconds - last[2] >= LEAST_ELAPSED_S:  # alone: a save before it is not the next one's
            self._clock = here
            return (seconds - last[2]) / (n - last[1])
        if seconds - before[2] >= LEAST_ELAPSED_S:
            self._clock = here
            self._last_s = (seconds - before[2]) / (n - before[1])
        return self._last_s

    def _rich(self, found: re.Match[str]) -> Iterable[Progress]:
        try:
            rate = float(found[5])
        except ValueError:
            rate = 0.0
        total = int(found[4]) if found[4] != "--" else None
        last = int(found[2]) if found[2] else -1
        planned = (last + 1) * total if total is not None and last >= 0 else None
        times = 1 / rate if rate > 0 else None, None
        return self._drawn(int(found[1]), int(found[3]), total, planned, times, found[6])

    def _drawn(
        self,
        epoch: int,
        n: int,
        total: int | None,
        planned: int | None,
        times: tuple[float | None, float | None],
        postfix: str,
    ) -> Iterable[Progress]:
        loss = _loss(postfix)
        value = loss[1] if loss else None
        advanced = self._at != (epoch, n)
        changed = value != self._drawn_loss
        if not advanced and (loss is None or (self._told and not changed)):
            return ()
        self._at, self._drawn_loss = (epoch, n), value
        lost = value is not None and not isfinite(float(value))  # each step's, drawn once or twice
        with_loss = loss is not None and (changed or lost or not advanced)
        self._told = with_loss or n == 0
        if n == 0:
            return ()
        step = epoch * total + n if total is not None else n if epoch == 0 else None
        part = n / total if total else 0.0
        return (
            Progress(
                "train",
                step=step,
                planned=planned,
                epoch=epoch + part,
                loss=float(loss[1]) if loss and with_loss else None,
                loss_name=loss[0] if loss and with_loss else "loss",
                lr=_number(_RATE.search(postfix)),
                step_s=times[0],
                data_s=_waited(postfix, times[0]),
                since_s=times[1] if advanced else None,
            ),
        )

    def _evaluates(self, text: str) -> Iterable[Progress]:
        """One value for each evaluation that begins."""
        found = _COUNT.search(text)
        n = int(found[1]) if found else 0
        began = self._eval_n is None or n < self._eval_n
        self._eval_n = n
        return (Progress("eval"),) if began else ()

    # --- lines --------------------------------------------------------------------------------

    def _nemo(self, found: re.Match[str]) -> Iterable[Progress]:
        """NeMo counts iterations from 0 and names the last one, not how many there are."""
        fields: dict[str, str] = {}
        for part in found[4].split("|"):
            name, _, value = part.rpartition(":")
            fields[name.strip()] = value.strip()

        def field(name: str) -> float | None:
            try:
                return float(fields[name]) if name in fields else None
            except ValueError:
                return None

        name = next(
            (n for n in ("reduced_train_loss", "train_loss", "loss") if n in fields), "loss"
        )
        return (
            Progress(
                "train",
                step=int(found[2]),
                planned=int(found[3]) + 1,
                epoch=float(found[1]),
                loss=field(name),
                loss_name=name,
                grad_norm=field("grad_norm"),
                lr=field("lr"),
                step_s=field("train_step_timing in s"),
                balance=field("load_balancing_loss"),
                throughput=field("tokens_per_sec_per_gpu"),
                throughput_unit="tokens/s/GPU" if "tokens_per_sec_per_gpu" in fields else None,
            ),
        )

    def _message(self, text: str) -> Iterable[Progress]:
        if found := _STOPPED.search(text):
            count = int(found[2])
            if found[1] == "steps":
                return (Progress("finished", step=count, planned=count),)
            return (Progress("finished", epoch=float(count)),)
        if _EARLY.search(text):
            return (Progress("finished"),)
        if found := _RESTORED.search(text):
            step, epoch = _PATH_STEP.search(found[1]), _PATH_EPOCH.search(found[1])
            return (
                Progress(
                    "resume",
                    step=int(step[1]) if step else None,
                    epoch=float(epoch[1]) if epoch else None,
                ),
            )
        if found := _SAVED.search(text):
            return self._saved(found, text)
        return ()

    def _saved(self, found: re.Match[str], text: str) -> Iterable[Progress]:
        step, epoch, name = int(found[2]), float(found[1]), found[3]
        said = []
        if step and self._at is None:  # no bar in this stream tells of steps
            said.append(Progress("train", step=step, epoch=epoch))
        measure = _MEASURE.search(name)
        if "reached" in found[0] and ("loss" in name or measure) and _HELD_OUT.search(name):
            value = _number(re.search(r"reached " + _NUMBER, text))
            falling = "loss" in name or (measure is not None and measure[1] is not None)
            said.append(Progress("eval", step=step, epoch=epoch, loss=value, loss_name=name,
                                 falling=falling))  # fmt: skip
        if "saving model to" in text:
            said.append(Progress("checkpoint_saved", step=step, epoch=epoch))
        return said
