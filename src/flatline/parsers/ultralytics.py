"""
Ultralytics' tables: `  1/100   2.5G   1.2   3.1   1.3   20   640: 100% ━━━━ 8/8 10.9it/s 0.3s`.

The heading names the columns; those of losses (`box_loss`; `box` in YOLOv5) are added up, for
that is what is optimised.  Values are means over the epoch so far, epochs count from 1, and the
bar behind them counts the batches of the epoch, as tqdm draws it or, since 8.3.200, as the
library's own bar does.

Refused: the evaluation's own table (`Class  Images  Instances  Box(P ...`), which is an evaluation
without a loss, and the bars of scanning and caching.

Source: `BaseTrainer._do_train`, `progress_string` and `final_eval` of engine/trainer.py and
utils/tqdm.py, ultralytics 8.0 to 8.4; YOLOv5's train.py counts the same from `0/99`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, NUMBER, Late, count, number

FORMAT = "ultralytics"
FRAMEWORK = "ultralytics"
ANCHORED = True
TRIGGERS = (
    r"Epoch +(GPU_mem|gpu_mem) +[a-z_0-9]+ ",
    r"[0-9]+/[0-9]+ +[0-9.]+G   +[0-9.naif]+ .*[0-9]+: +[0-9]+%",
    r"[0-9.]G  [0-9.naif]",
    r"Class +Images +(Instances|Labels) ",
    r"Starting training for [0-9]+ epochs",
    r"Resuming training .* from epoch [0-9]+ to [0-9]+ total epochs",
    r"[0-9]+ epochs completed in [0-9.]+ hours",
)
_HEADING = Late(r"\bEpoch +(?:GPU_mem|gpu_mem) +(.{1,200}?)\s*$")
_IS_LOSS = re.compile(r"loss$|^(?:box|obj|cls|dfl|seg|pose|kobj|theta)$")
"""YOLOv5's headings leave the word out."""
_LEAST_LOSSES = 3
"""Every task has so many (`box_loss  cls_loss  dfl_loss`); further ones stand behind them."""
_ROW = Late(
    rf"\s*([0-9]{{1,7}})/([0-9]{{1,7}}) +[0-9.]{{1,9}}G((?: +{NUMBER})+): +([0-9]{{1,3}})%"
    r"(?:(?:\|[^|]{0,200}\|| [━─╸╺ ]{1,200})? *([0-9]{1,12})/([0-9]{1,12})\b|\|[^|]{0,200}$)"
)
"""A terminal too narrow for the whole bar cuts its counts off."""
_RESULT = Late(rf"\s*([0-9]{{1,7}})/([0-9]{{1,7}}) +[0-9.]{{1,9}}G((?: +{NUMBER}){{6,20}})\s*$")
"""A row of YOLOv5's results.txt: box, objectness and class loss, their sum, targets, size."""
_PLAN = Late(r"\bStarting training for ([0-9]{1,7}) epochs")
_RESUME = Late(r"\bResuming training .{1,400}? from epoch ([0-9]{1,7}) to ([0-9]{1,7}) total")
_DONE = Late(r"(?:^|\s)([0-9]{1,7}) epochs completed in [0-9.]{1,16} hours")


class Reader:
    """Reads one stream; knows the columns, the first epoch's number and the last place drawn."""

    def __init__(self) -> None:
        self._losses: list[int] = list(range(_LEAST_LOSSES))
        self._first: int | None = None
        self._drawn: tuple[int, int] = (-1, -1)
        self._evaluating = False

    def feed(self, text: str) -> Iterable[Progress]:
        """One point for each batch that is drawn, one evaluation for each of its tables."""
        text = text[:LONGEST]
        if heading := _HEADING.search(text):
            names = heading[1].split()
            self._losses = [at for at, name in enumerate(names) if _IS_LOSS.search(name)]
            return ()
        if row := _ROW.match(text):
            return self._row(row)
        if result := _RESULT.match(text):
            return self._result(result)
        if "Class " in text and "Images " in text:
            first, self._evaluating = not self._evaluating, True
            return (Progress("eval"),) if first else ()
        if plan := _PLAN.search(text):
            return (Progress("plan", epochs=float(plan[1])),)
        if resume := _RESUME.search(text):
            return (Progress("resume", epoch=float(resume[1]), epochs=float(resume[2])),)
        if done := _DONE.search(text):
            return (Progress("finished", epoch=float(done[1])),)
        return ()

    def _result(self, row: re.Match[str]) -> Iterable[Progress]:
        epoch = int(row[1])
        self._first = min(epoch, 1) if self._first is None else self._first
        losses = [number(value) for value in row[3].split()[:_LEAST_LOSSES]]
        return (
            Progress(
                "train",
                epoch=float(epoch),
                loss=sum(loss for loss in losses if loss is not None),
                loss_name="sum of losses",
                epochs=float(int(row[2]) + 1 - self._first),
            ),
        )

    def _row(self, row: re.Match[str]) -> Iterable[Progress]:
        epoch, share = int(row[1]), int(row[4])
        n, of = (count(row[5]) or 0, count(row[6]) or 0) if row[5] else (share, 0)
        self._evaluating = False
        if self._first is None:
            self._first = min(epoch, 1)
        if n == 0 or (row[5] and of == 0) or (epoch, n) <= self._drawn:
            return ()
        self._drawn = (epoch, n)
        epochs = int(row[2]) + 1 - self._first
        values = [number(value) for value in row[3].split()]
        losses = [values[at] for at in self._losses if at < len(values)]
        known = [loss for loss in losses if loss is not None]
        return (
            Progress(
                "train",
                step=(epoch - self._first) * of + n if of else None,
                planned=epochs * of or None,
                epoch=float(epoch),
                loss=sum(known) if known and len(known) == len(losses) else None,
                loss_name="sum of losses",
                epochs=float(epochs),
                per_epoch=of or None,
            ),
        )
