"""
Scalars of TensorBoard event files as series, for whoever asks in the data's own names.

`tensorboard_scalar{tag="train/loss", run="runs/a"}` has the values at the times they were
written, `tensorboard_step{run="runs/a"}` the step they are of; `run` is the file's folder, as
TensorBoard calls it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from flatline.collect.files import Found
from flatline.logs.reading import Block, open_text
from flatline.model import Gap
from flatline.redact import mask_value

if TYPE_CHECKING:
    from flatline.series.storage import SeriesBuilder

SCALAR, STEP = "tensorboard_scalar", "tensorboard_step"
MAX_TAGS = 20_000
_LINE = re.compile(r"(\S{1,40}) tfevents step (-?\d{1,19}): (.*)", re.DOTALL)
_TAG = re.compile(r"(\S+?)=(\S+)(?= |$)")


def read_scalars(file: Found, builder: SeriesBuilder, gaps: list[Gap]) -> None:
    """One event file into the builder. Raises SourceError where it cannot be read."""
    from flatline.series.storage import NAME, labels_of

    run = file.source.rpartition("/")[0] or "."
    rows: dict[str, int] = {}
    untimed = 0
    with open_text(file.path, file.source) as text:
        for line in _lines(text.blocks()):
            found = _LINE.fullmatch(line)
            at = _seconds(found[1]) if found else None
            if found is None or at is None:
                untimed += 1
                continue
            steps = builder.row(labels_of({NAME: STEP, "run": run}))
            builder.add(steps, at, float(found[2]))
            for tag, said in _TAG.findall(found[3]):
                if tag not in rows and len(rows) < MAX_TAGS:
                    shown = mask_value("tag", tag)
                    pairs = {NAME: SCALAR, "run": run, "tag": shown}
                    rows[tag] = builder.row(labels_of(pairs))
                if tag in rows:
                    builder.add(rows[tag], at, float(said))
        gaps.extend(text.gaps)
    if untimed:
        gaps.append(Gap("training events", f"{untimed} steps carry no time", file.source))
    if len(rows) == MAX_TAGS:
        gaps.append(Gap("training events", f"only the first {MAX_TAGS} tags", file.source))


def _lines(blocks: Iterator[Block]) -> Iterator[str]:
    for block in blocks:
        yield from block.data.decode("utf-8", "replace").rstrip("\n").split("\n")


def _seconds(said: str) -> float | None:
    """Whole milliseconds, as every time of a series is."""
    try:
        return round(datetime.fromisoformat(said).timestamp() * 1000) / 1000.0
    except (ValueError, OverflowError):
        return None
