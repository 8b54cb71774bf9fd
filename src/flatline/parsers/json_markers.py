"""
What a loop that logs in JSON lines says of its checkpoints, by the event it names.

    {"ts": "...", "event": "resume", "found": null, "start_step": 0}
    {"event": "resume", "path": "/ckpt/step-8000.pt", "step": 8000}
    {"event": "checkpoint", "path": "/ckpt/step-1000.pt"}

Guaranteed: the event's name is that of a checkpoint and nothing more, and says that it is done, or
names the file.  Fresh: it looked for one and what it found is null, or empty.

Refused: what begins (`checkpoint_start`), fails or is asked for, events of other names, and one
that was loaded without a step: weights to start from are called checkpoints too.

Source: structlog's and python-json-logger's way of naming an event; public loops that write so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from flatline.model import Progress

FORMAT = "json_markers"
FRAMEWORK = None
GENERIC = 1
TRIGGERS = (
    r"\"(event|msg|message|type|kind)\": ?\"([a-z]{2,8}[_ -])?(check_?point|ckpt|resum|restor)",
)
_LONGEST = 4_000
_NAMES = ("event", "msg", "message", "type", "kind")
_SAVED = re.compile(
    r"(?:check_?point|ckpt)(?:[_ -](?:saved|written|done|complete[d]?|finished))?"
    r"|(?:saved?|wrote)[_ -](?:check_?point|ckpt)"
)
_BARE = re.compile(r"(?:check_?point|ckpt)|save[_ -](?:check_?point|ckpt)")
"""An event that may be its beginning as well: it is done where it tells what it wrote."""
_LOADED = re.compile(
    r"(?:check_?point|ckpt)[_ -](?:loaded|restored)|(?:loaded|restored)[_ -](?:check_?point|ckpt)"
)
_RESUME = re.compile(
    r"(?:auto[_ -]?)?resum(?:e|ed)(?:[_ -](?:from[_ -])?(?:check_?point|ckpt))?"
    r"|restored?(?:[_ -](?:check_?point|ckpt))?"
)
_FOUND = ("found", "path", "checkpoint", "ckpt", "from", "file", "resume_from", "checkpoint_path")
_STEPS = ("step", "global_step", "start_step", "iteration", "from_step", "resume_step")
_NOT_DONE = re.compile(r"(?i)start|begin|fail|error|abort|skip|pending|request|progress|async")
_STATES = ("status", "state", "phase", "stage", "result")
_READ = re.compile(r"(?i)load|restor|resum|read")
_OF_PATH = re.compile(
    r"(?i)(?:checkpoint|ckpt|model|step|iter|global_step)[-_=]?0{0,11}([0-9]{1,12})(?![0-9])"
)


class Reader:
    """Each line speaks for itself."""

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        at = text.find("{")
        if at < 0 or len(text) > _LONGEST:
            return ()
        try:
            said = json.loads(text[at:])
        except (ValueError, RecursionError):
            return ()
        if not isinstance(said, dict):
            return ()
        event = next((said[name] for name in _NAMES if isinstance(said.get(name), str)), "")
        return _meant(event.strip().lower(), said)


def _meant(event: str, said: Mapping[str, object]) -> tuple[Progress, ...]:
    if said.get("error") or any(
        _NOT_DONE.search(str(said[name])) for name in _STATES if said.get(name)
    ):
        return ()
    step, named = _step(said), [said[name] for name in _FOUND if name in said]
    found = any(named)
    if _SAVED.fullmatch(event):
        bare = _BARE.fullmatch(event) is not None
        done = found and not _reads(said) if bare else True
        return (Progress("checkpoint_saved", step=step),) if done else ()
    if _LOADED.fullmatch(event):
        return () if step is None else (Progress("checkpoint_loaded", step=step),)
    if not _RESUME.fullmatch(event):
        return ()
    if named and not found:
        return () if step else (Progress("fresh"),)
    return (Progress("resume", step=step),) if found or step else ()


def _reads(said: Mapping[str, object]) -> bool:
    """Whether it says, beside the event's name, that one was read."""
    return any(
        _READ.search(str(said.get(name, ""))) for name in (*_STATES, "action", "op", "mode")
    )


def _step(said: Mapping[str, object]) -> int | None:
    """By its own key, or in the name of the file."""
    for name in _STEPS:
        if isinstance(value := said.get(name), int) and not isinstance(value, bool):
            return value if value >= 0 else None
    for name in _FOUND:
        if isinstance(value := said.get(name), str) and (at := _OF_PATH.search(value)):
            return int(at[1])
    return None
