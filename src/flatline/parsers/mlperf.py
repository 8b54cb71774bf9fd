"""
MLPerf training result lines, `:::MLLOG {json}`: how far the run is and how it ended.

A benchmark counts in what it likes: optimizer steps, samples, tokens or epochs, all under names
such as `step` and `epoch_num`.  A position becomes a step only where the same stream says how
(`step_num`; samples by `global_batch_size`; tokens by that and `max_sequence_length`); a small
`epoch_num` is an epoch; anything else is left out rather than guessed.

Guaranteed: `run_stop` with status "success" is `finished`; with "aborted" it is not, the target
was missed.  Refused: `eval_accuracy` as a loss, though some benchmarks put one there; time, which
is read elsewhere; lines that are not JSON.

Source: mlcommons/logging (`mllog`, rules 3.0 to 5.1) and the result logs of training v1 to v5.
"""

from __future__ import annotations

import json  # not orjson, which refuses the NaN that Python's own writer prints
import re
from collections.abc import Iterable
from typing import Any

from flatline.model import Progress

FORMAT = "mlperf"
FRAMEWORK = "mlperf"
TRIGGERS = (r":::MLLOGG? ?\{",)

_KEY = re.compile(r'"key": ?"([a-z_]{1,60})"')
_NOTED = {"global_batch_size", "max_sequence_length", "epoch_start"}
_TRAIN = {"tracked_stats", "train_loss", "epoch_stop", "block_stop"}
_EVAL = {"eval_accuracy", "eval_error", "eval_loss"}
_WANTED = _NOTED | _TRAIN | _EVAL | {"max_steps", "run_stop", "block_start"}
_LOSSES = ("loss", "train_loss", "reduced_train_loss")
_STEP_TIMES = ("train_step_timing in s", "train_step_time", "step_time")
_MOST_EPOCHS = 10_000
"""No MLPerf benchmark plans more epochs; larger values under `epoch_num` are samples or tokens."""


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == value and abs(value) < 1e15 else None


def _real(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return None


def _first(stats: dict[str, Any], names: tuple[str, ...]) -> float | None:
    return next((_real(stats[name]) for name in names if name in stats), None)


class Reader:
    """Reads one stream; notes the sizes that turn samples and tokens into steps."""

    def __init__(self) -> None:
        self._batch: int | None = None
        self._sequence: int | None = None
        self._by_samples = False
        self._by_epochs = False
        self._tracked = False
        self._planned: int | None = None
        self._last: tuple[int | None, float | None] = (None, None)

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        key = _KEY.search(text)
        if key is None or key[1] not in _WANTED:
            return ()
        begin = text.find("{", text.find(":::MLLOG"))
        try:
            event = json.loads(text[begin : text.rfind("}") + 1])
        except (ValueError, RecursionError):
            return ()
        metadata = event.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        return self._event(key[1], event.get("value"), metadata)

    def _event(self, key: str, value: object, metadata: dict[str, Any]) -> Iterable[Progress]:
        if key == "global_batch_size":
            self._batch = _whole(value)
        elif key == "max_sequence_length":
            self._sequence = _whole(value)
        elif key == "max_steps":
            self._planned = _whole(value)
            return (Progress("plan", planned=self._planned),) if self._planned else ()
        elif key == "run_stop":
            if metadata.get("status") == "success":
                return (Progress("finished", step=self._last[0], epoch=self._last[1]),)
        elif key in _TRAIN:
            return self._train(key, value, metadata)
        elif key in _EVAL:
            step, epoch = self._position(metadata)
            loss = _real(value) if key == "eval_loss" else None
            return (Progress("eval", step, self._planned, epoch, loss, key),)
        else:
            self._position(metadata)
        return ()

    def _train(self, key: str, value: object, metadata: dict[str, Any]) -> Iterable[Progress]:
        position = self._position(metadata)
        if key in ("epoch_stop", "block_stop"):
            if self._tracked or position in ((None, None), self._last):
                return ()
            self._last = position
            return (Progress("train", position[0], self._planned, position[1]),)
        self._tracked = True
        stats = value if isinstance(value, dict) else {"loss": value}
        if position != (None, None):
            self._last = position
        lr = _real(stats.get("lr", metadata.get("lr")))
        return (
            Progress(
                "train",
                step=position[0],
                planned=self._planned,
                epoch=position[1],
                loss=_first(stats, _LOSSES),
                lr=lr,
                step_s=_first(stats, _STEP_TIMES),
                throughput=_real(stats.get("throughput")),
            ),
        )

    # --- positions ----------------------------------------------------------------------------

    def _position(self, metadata: dict[str, Any]) -> tuple[int | None, float | None]:
        """(step, epoch), either or both unknown."""
        if (step := _whole(metadata.get("step_num"))) is not None:
            return step, None
        if (samples := _whole(metadata.get("samples_count"))) is not None:
            self._by_samples = True
            return self._steps_of_samples(samples), None
        if (epoch := _whole(metadata.get("epoch_num"))) is not None:
            if epoch > _MOST_EPOCHS:
                return self._steps_of_large(epoch), None
            self._by_epochs = True
            return None, float(epoch)
        first = _whole(metadata.get("first_epoch_num"))
        if first is not None:
            count = _whole(metadata.get("epoch_count")) or 0
            return self._steps_of_large(first + count) if count > _MOST_EPOCHS else None, None
        return self._bare_step(metadata)

    def _bare_step(self, metadata: dict[str, Any]) -> tuple[int | None, float | None]:
        step = _whole(metadata.get("step"))
        if step is None:
            return None, None
        if self._by_samples:
            return self._steps_of_samples(step), None
        if step > _MOST_EPOCHS:
            return self._steps_of_large(step), None
        return None, float(step) if self._by_epochs else None

    def _steps_of_samples(self, samples: int) -> int | None:
        return samples // self._batch if self._batch else None

    def _steps_of_large(self, count: int) -> int | None:
        """Tokens where they divide into whole steps, else samples where those do."""
        for size in ((self._batch or 0) * (self._sequence or 0), self._batch or 0):
            if size and count % size == 0:
                return count // size
        return None
