"""Threads that feed a run its data: where one ends, nothing comes to whom waits for a batch."""

from __future__ import annotations

import re

from flatline.facts import Facts
from flatline.judging.frames import kind_of_any, nearest
from flatline.model import Crash

BELOW = 2
"""Lines: a shell's or a scheduler's last word on the process."""
_THREAD = re.compile(r"/threading\.py$")
_FEEDS = re.compile(
    r"(?i)(?!\w*(?:log|upload|save|write|send|report|stat|eval|metric))\w*"
    r"(?:batch|data|sample|example|prefetch|enqueue|feed|produc|loader|generator)"
)
_AT_THE_END = re.compile(r"closed file|shutdown|cannot schedule|after (?:\w+ )?(?:close|exit)")
"""A feeder that the program ended before it."""
_HANDED = re.compile(r"/multiprocessing/(?:connection|queues|resource_sharer|managers)\.py$")
"""What a thread meets there is another process's end."""


def feeds(facts: Facts, crash: Crash) -> bool:
    """Whether the thread that raised it read data for the run, and nothing was said after it."""
    if facts.end_seen or _AT_THE_END.search(crash.message):
        return False
    last = facts.last_lines.get(crash.cite.source)
    if last is None or last.line > crash.end_line + BELOW:
        return False
    files = [frame.file.replace("\\", "/") for frame in crash.frames]
    if any(map(_HANDED.search, files)):
        return False
    own = [f for f, path in zip(crash.frames, files, strict=True) if not _THREAD.search(path)]
    begun_by = own[0].function if own else ""
    return bool(_FEEDS.match(begun_by)) and kind_of_any(nearest(own)) == "data"
