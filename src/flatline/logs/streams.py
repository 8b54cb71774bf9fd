"""
The lines of one process out of a log of many, from the head of its traceback on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from flatline.logs.labels import Labelled, Labels
from flatline.logs.reading import TextFile, clean, segments
from flatline.logs.traceback import read_traceback
from flatline.logs.tracetext import FRAME, HEAD, NATIVE, SUMMARY, written_out

PAGE_LINES = 256
PAGES_BYTES = 16 << 20
"""How far a stream is followed between the lines of others: thousands of ranks deep."""


def key_below(file: TextFile, labels: Labels, line: int, key: str) -> str:
    """The key of the lines below a traceback's head: that of the head, unless a logger put who
    speaks before the first line of its record alone."""
    window = file.window(line, 2)
    if not key or len(window) < 2:
        return key
    head, frame = (labels.split(clean(raw)) for _, raw in window)
    own = head.key == key and HEAD in head.text and not head.text.lstrip().startswith("Traceback")
    bare = key == frame.key or key.startswith(f"{frame.key}/") or not frame.key
    return frame.key if own and bare and FRAME.match(frame.text) else key


def stream_lines(
    file: TextFile, labels: Labels, start_line: int, key: str, limit: int = 400
) -> list[tuple[int, str]]:
    """
    What one stream says from a line on, without labels: at most `limit` lines, or fewer once the
    traceback that begins there has ended.

    Begins at the traceback's head where the line holds one.  Lines of other streams are passed
    over, 16 MiB of them at most.
    """
    found: list[tuple[int, str]] = []
    prefix: bytes | None = None
    line, passed, check = start_line, 0, 32
    while passed < PAGES_BYTES and (page := file.window(line, PAGE_LINES)):
        for number, raw in page:
            passed += len(raw) + 1
            if number == start_line:
                said, prefix, key = _first(raw, labels, key)
                key = key_below(file, labels, start_line, key)
                found = [(number, line) for text in said for line in written_out(text)]
                if len(found) > len(said):
                    return found
            elif prefix is None or raw.startswith(prefix):
                found += [(number, one.text) for one in _said(raw, labels) if one.key == key]
            if len(found) >= limit:
                return found[:limit]
            if len(found) >= check:
                check *= 2
                crash = read_traceback(found)
                ended = crash is None or (crash.complete and crash.end_line < found[-1][0])
                if ended and not _summary_ahead(found):
                    return found
        line = page[-1][0] + 1
    return found


def _summary_ahead(lines: Sequence[tuple[int, str]]) -> bool:
    """Whether frames of native code were begun, and what failed in them is still to come."""
    last = next((text for _, text in reversed(lines)
                 if NATIVE.match(text) or text.strip() == SUMMARY), "")  # fmt: skip
    return NATIVE.match(last) is not None


def _said(raw: bytes, labels: Labels) -> list[Labelled]:
    """The segments of a physical line; all carry the label of the first."""
    parts = segments(raw)
    if len(parts) == 1:
        return [labels.split(clean(parts[0]))]
    head = clean(parts[0])
    return [labels.split(head)] + [
        labels.split(text, head) for part in parts[1:] if (text := clean(part))
    ]


def _first(raw: bytes, labels: Labels, key: str) -> tuple[list[str], bytes | None, str]:
    """
    (segments from the one with the head on, what every line of the stream begins with, key).

    The beginning is None where it changes from line to line, or where there is no label.
    """
    said = _said(raw, labels)
    at = next((n for n, one in enumerate(said) if HEAD in one.text), 0)
    key = said[at].key if HEAD in said[at].text else key
    whole = clean(segments(raw)[0])
    label = whole[: len(whole) - len(said[0].text)] if said[0].text else whole
    steady = bool(label) and not re.search(r"\d\d:\d\d", label) and whole.startswith(label)
    prefix = label.rstrip(" ").encode() if steady else None
    return (
        [one.text for one in said[at:] if one.key == key],
        prefix if prefix and raw.startswith(prefix) else None,
        key,
    )
