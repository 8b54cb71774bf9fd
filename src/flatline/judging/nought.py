"""A bar of training that stands before its first step."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BAR = re.compile(r"(?<!\d)0%\|[^|]{0,200}\| *0/(\d{1,12}) \[0{1,2}:00<\?")
_STEPS = re.compile(
    r"(?i)\b(?:optimi[sz]ation|training|train|total|max|num)[_ ](?:\w{1,20}[_ ]){0,2}steps?\b"
    r"\D{0,40}?(\d[\d,]{0,14})\b"
)
"""What programs say of how many steps they are to make, before their bar: Hugging Face's Trainer
and the example scripts of diffusers and Kohya's."""


def at_nought(said: Sequence[str]) -> bool:
    """Whether the last line is a bar at nought that counts as many as a line above it says that
    there are steps to make: one of files or examples counts others."""
    bar = _BAR.search(said[-1]) if said else None
    if bar is None:
        return False
    told = (found[1] for text in said[:-1] for found in _STEPS.finditer(text))
    return any(int(n.replace(",", "")) == int(bar[1]) for n in told)
