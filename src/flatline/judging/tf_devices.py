"""
Which card TensorFlow means by a device: it counts those that a process made visible to itself, of
which each rank under Horovod has one and calls it 0.
"""

from __future__ import annotations

import re

from flatline.facts import Facts
from flatline.model import LogCite

LOOKED_BACK = 20_000
"""Lines above a failure in which a process says which devices it made."""
_CREATED = re.compile(
    r"Created (?:TensorFlow )?device .{0,80}?\bdevice:GPU:(\d{1,3})\b.{0,120}?"
    r" -> (?:physical GPU \()?device: (\d{1,3}),"
)
"""tensorflow core/common_runtime/gpu/gpu_device.cc."""
_LABEL = re.compile(r"\[\d{1,6},\d{1,6}\]<std(?:out|err)>:|\s{0,6}\d{1,6}: ")


def card_of(facts: Facts, cite: LogCite, ordinal: str) -> str | None:
    """The card's number, as the process that failed had said before, or None."""
    own = _LABEL.match(cite.text)
    label = own[0] if own else ""
    first = max(1, cite.line - LOOKED_BACK)
    cards = set()
    for text in facts.lines(cite.source, first, cite.line - first):
        made = _CREATED.search(text) if "Created" in text else None
        if made is not None and made[1] == ordinal and text.startswith(label):
            cards.add(made[2])
    return cards.pop() if len(cards) == 1 else None
