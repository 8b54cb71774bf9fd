"""
DeepSpeed's own lines: `steps: N loss: ...`, `step=N, skipped=K`, timer, overflows, checkpoints.

Guaranteed: an overflow is a skipped step (`skipped`, no loss) and never lost, though the line
names no step.  RLHF losses (`act_loss`, `cri_loss`) are not meant to fall.

Refused: `step=0, skipped=0`, which the engine prints while it is built, before any step; "about to
be saved" and the file-by-file "Saving", which do not say that a checkpoint is whole.

Source: `log_dist`, `ThroughputTimer.stop`, `PipelineEngine.train_batch`, the loss scalers and
`TorchCheckpointEngine` of DeepSpeed 0.3 to 0.17; the DeepSpeed-Chat examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.model import Progress

FORMAT = "deepspeed"
FRAMEWORK = "deepspeed"
TRIGGERS = (
    r"steps?: [0-9]+ loss: ",
    r"\[Rank [0-9]+\] step=[0-9]+, skipped=",
    r"global_step=[0-9]+, +RunningAvgSamplesPerSec=",
    r"\] [0-9]+/[0-9]+, +(RunningAvg)?SamplesPerSec=",
    r"OVERFLOW! (Rank [0-9]+ )?Skipping step",
    r"dynamic loss scale overflow! Skipping step",
    r"global_step[0-9]+ is ready now",
    r"\[[Tt]orch\] Loaded checkpoint from ",
    r"successfully loaded [^ ]*global_step[0-9]",
    r"zero checkpoint saved ",
    r"Unable to find latest file at ",
    r"(?i:epoch: [0-9]+ ?\| ?step: [0-9]+ ?\| ?ppo)",
    r"Evaluating (perplexity|reward), Epoch [0-9]+/[0-9]+",
    r"saving the final model \.\.\.",
)

_PIPELINE = re.compile(
    r"\bsteps?: ([0-9]{1,12}) loss: *(\S+) iter time \(s\): *([0-9.]+)"
    r"(?: samples/sec: *([0-9.]+))?(?:.{0,80}?\b[Dd]ata(?: load)?[ _]time \(s\): *([0-9.]+))?"
)
SEEKING, LOST = 100, 0.5
"""Steps within which a scaler finds its scale (it halves one of 2**32 32 times at the most), and
of the steps since they were counted last the part beyond which they count as skipped."""
_STEP = re.compile(r"\[Rank [0-9]+\] step=([0-9]{1,12}), skipped=([0-9]+), lr=\[([-+0-9.einfa]*)")
_ADDED_LOSS = re.compile(r"\bmom=\[[^ ]{0,200}(?: [^ ]{1,40}){0,8}, loss=([-+0-9.einfa]+)\s*$")
"""What programs add behind it."""
_TIMER = re.compile(
    r"(?:global_step=|\] [0-9]+/)([0-9]{1,12}), +(?:RunningAvgSamplesPerSec=([0-9.naif]+), +)?"
    r"(?:Curr)?SamplesPerSec=([0-9.naif]+)"
)
_LAST_LOSS = re.compile(r"MemAllocated=\S{1,20}?,? loss[=:] ?([-+0-9.einfa]+)\s*$")
"""What a program's patched timer adds; DeepSpeed itself knows no loss."""
_OVERFLOW = re.compile(
    r"(?:OVERFLOW!(?: Rank [0-9]+)?|dynamic loss scale overflow!) Skipping step"
)
_EVALUATED = re.compile(r"\*{5} Evaluating (?:perplexity|reward), Epoch ([0-9]{1,6})/([0-9]{1,6})")
"""Of DeepSpeed-Chat's first two stages, behind each epoch; they end by saving the final model."""
_TAG = re.compile(r"global_step([0-9]{1,12})")
_PPO = re.compile(
    r"epoch: ([0-9]{1,9}) ?\| ?step: ([0-9]{1,12}) ?\| ?ppo[ _]ep(?:och)?: [0-9]+ ?\|"
    r" ?act(?:or)?[ _]loss: *([^|\s]+)",
    re.IGNORECASE,
)


_LONGEST = 4_096
"""Characters of a line that are read."""


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _tagged(text: str) -> int | None:
    """The step of a checkpoint, from its `global_stepN` tag."""
    found = _TAG.search(text)
    return int(found[1]) if found else None


class Reader:
    """Each line speaks for itself, but for the steps that were skipped since they were counted
    last."""

    def __init__(self) -> None:
        self._counted = (0, 0)
        self._whole = False

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        text = text[:_LONGEST]
        if found := _PIPELINE.search(text):
            return (
                Progress(
                    "train",
                    step=int(found[1]),
                    loss=_number(found[2]),
                    step_s=_number(found[3]),
                    throughput=_number(found[4]),
                    throughput_unit="samples/s" if found[4] else None,
                    data_s=_number(found[5]),
                ),
            )
        if found := _STEP.search(text):
            if found[1] == "0":
                return ()
            step, skipped = int(found[1]), int(found[2])
            before, skipped_before = self._counted if self._counted[0] < step else (0, 0)
            lost = skipped - skipped_before > LOST * (step - before)
            self._counted = step, skipped
            late = lost and step >= SEEKING
            added = _ADDED_LOSS.search(text, found.end())
            loss = None if added is None else _number(added[1])
            return (Progress("train", step=step, loss=loss, lr=_number(found[3]), skipped=late),)
        if found := _TIMER.search(text):
            added = _LAST_LOSS.search(text, found.end())
            return (
                Progress(
                    "train",
                    step=int(found[1]),
                    loss=None if added is None else _number(added[1]),
                    throughput=_number(found[3]),
                    throughput_unit="samples/s",
                ),
            )
        return self._other(text)

    def _other(self, text: str) -> Iterable[Progress]:
        if found := _EVALUATED.search(text):
            self._whole = int(found[1]) == int(found[2]) > 0
            return ()
        if "saving the final model ..." in text:
            return (Progress("finished"),) if self._whole else ()
        if _OVERFLOW.search(text):
            return (Progress("train", skipped=True),)
        if " is ready now" in text or "zero checkpoint saved " in text:
            step = _tagged(text)
            return () if step is None else (Progress("checkpoint_saved", step=step),)
        if "Loaded checkpoint from " in text or "successfully loaded " in text:
            return (Progress("checkpoint_loaded", step=_tagged(text)),)
        if "Unable to find latest file at " in text:
            return (Progress("fresh"),)
        if found := _PPO.search(text):
            return (
                Progress(
                    "train",
                    step=int(found[2]),
                    epoch=float(found[1]),
                    loss=_number(found[3]),
                    loss_name="actor loss",
                    falling=False,
                ),
            )
        return ()
