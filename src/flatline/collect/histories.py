"""
The history that a trainer keeps in every checkpoint (`parsers.trainer_state`).

The last of a run holds all others, and says nothing of time: where a log has the losses, it is not
needed; read beside the log, it would be a second stream of the same steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from flatline.collect.events import LogEvents
from flatline.collect.files import Found
from flatline.logs.reading import read_head
from flatline.parsers.trainer_state import FILE

HEAD_BYTES = 4096
_CHECKPOINT = re.compile(r"checkpoint-\d{1,12}$")
_REACHED = re.compile(rb"\n {2}\"global_step\": (\d{1,12})")


def is_history(source: str) -> bool:
    return source.rpartition("/")[2] == FILE


def last_of_each(found: Iterable[Found]) -> list[Found]:
    """The files, with those histories left out that another of the same run holds."""
    files = list(found)
    reached: dict[Path, tuple[int, Found]] = {}
    for file in files:
        if is_history(file.source):
            folder = file.path.parent
            run = folder.parent if _CHECKPOINT.match(folder.name) else folder
            reached[run] = max((reached.get(run, (-1, file)), (_step(file.path), file)),
                               key=lambda pair: pair[0])  # fmt: skip
    last = {id(file) for _, file in reached.values()}
    return [file for file in files if not is_history(file.source) or id(file) in last]


def _step(path: Path) -> int:
    try:
        found = _REACHED.search(read_head(path, HEAD_BYTES))
    except OSError:
        return -1
    return int(found[1]) if found else -1


def not_beside_a_log(read: Sequence[tuple[str, LogEvents]]) -> None:
    """Empties what histories hold where another file has losses as well."""
    told = any(any(track.has_loss) for source, events in read if not is_history(source)
               for track in events.tracks.values())  # fmt: skip
    for source, events in read:
        if is_history(source):
            events.matches, events.crashes, events.exits = [], [], []
            if told:
                events.tracks, events.markers = {}, []
