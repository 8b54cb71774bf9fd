"""
The history that a trainer keeps in every checkpoint (`parsers.trainer_state`), or beside its log
as rows of JSON (`parsers.detectron2_json`, `parsers.openmmlab_json`).

The last checkpoint's of a run holds all others.  A history says nothing of time: where a log has
the losses, it is not needed; read beside the log, it would be a second stream of the same steps.
Folders hold histories of other runs as well: of a sweep's, and of the model a run begins with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from flatline.collect.events import LogEvents
from flatline.collect.files import Found, keeps_rows
from flatline.logs.reading import read_head
from flatline.model import Gap
from flatline.parsers.trainer_state import FILE
from flatline.tracks import BASELINE

HEAD_BYTES = 4096
_CHECKPOINT = re.compile(r"checkpoint-\d{1,12}$")
_OF_A_START = re.compile(r"\.log\.json$")
"""mmcv's, one each time that the program is started."""
_REACHED = re.compile(rb"\n {2}\"global_step\": (\d{1,12})")


def is_history(source: str) -> bool:
    return _of_a_checkpoint(source) or keeps_rows(source.removeprefix(BASELINE))


def _of_a_checkpoint(source: str) -> bool:
    return source.removeprefix(BASELINE).rpartition("/")[2] == FILE


def last_of_each(found: Iterable[Found]) -> list[Found]:
    """The files, with those histories left out that another of the same run holds: mmengine
    keeps two of one run in one folder."""
    files = list(found)
    reached: dict[Path, tuple[int, Found]] = {}
    for file in files:
        if is_history(file.source):
            folder = file.path.parent
            run = folder.parent if _CHECKPOINT.match(folder.name) else folder
            run = file.path if _OF_A_START.search(file.source) else run
            step = _step(file.path) if file.path.name == FILE else file.size
            reached[run] = max((reached.get(run, (-1, file)), (step, file)),
                               key=lambda pair: pair[0])  # fmt: skip
    last = {id(file) for _, file in reached.values()}
    return [file for file in files if not is_history(file.source) or id(file) in last]


def _step(path: Path) -> int:
    try:
        found = _REACHED.search(read_head(path, HEAD_BYTES))
    except OSError:
        return -1
    return int(found[1]) if found else -1


def not_beside_a_log(read: Sequence[tuple[str, LogEvents]]) -> list[Gap]:
    """Empties histories where another file has losses as well, and those that no one can tell to
    be this run's: of several runs, or beside a log whose steps are others or that ends before any.
    """
    logs = [events for source, events in read if not is_history(source)]
    told = any(any(track.has_loss) for e in logs for track in e.tracks.values())
    plans = {plan for events in logs for plan in _plans(events)}
    tells = plans or any(e.tracks or e.crashes or e.exits for e in logs)
    kept = [(source, events) for source, events in read if is_history(source)]
    own = (
        []
        if told
        else [
            e
            for source, e in kept
            if not tells or plans & _plans(e) or not _of_a_checkpoint(source)
        ]
    )
    gaps = []
    for source, events in kept:
        events.matches, events.crashes, events.exits = [], [], []
        if len(own) != 1 or events is not own[0]:
            if not told and events.tracks:
                gaps.append(Gap("loss", "nothing tells that this history is the run's", source))
            events.tracks, events.markers = {}, []
    return gaps


def _plans(events: LogEvents) -> set[int]:
    """Steps that were planned, as it tells."""
    stated = [track.planned for track in events.tracks.values()]
    stated += [marker.progress.planned for marker in events.markers]
    return {steps for steps in stated if steps}
