"""
Whether weights that are not there are those a fine-tuning run was to go on from.

torchtune prints its settings before it loads.  Told to resume, it looks for the weights it saved
itself, in its output folder; only where it trains an adapter does it read the base model's beside.
"""

from __future__ import annotations

import re

from flatline.facts import Facts
from flatline.model import Crash

LINES = 2_000
"""Settings are printed at the start."""
_RESUMES = re.compile(r"\s{0,8}resume_from_checkpoint: (?:true|True)\s*")
_FRESH = re.compile(r"\s{0,8}resume_from_checkpoint: (?:false|False|null)\s*")
_OUTPUT = re.compile(r"\s{0,8}output_dir: ['\"]?(?P<folder>[^\s'\"]{1,400})['\"]?\s*")
_NAMED = re.compile(r"No file with name: \S{1,240} found in (?P<folder>\S{1,400}?)\.?\s*$")
_ADAPTS = re.compile(r"(?i)\b\w*lora\w*\b|\badapter_checkpoint: (?!null|None|''|\"\")\S")


def tuned_on(facts: Facts, crash: Crash) -> bool:
    """Whether its settings say that it resumes, and the folder it looked in is its own, or it
    trains the whole model."""
    named = _NAMED.search(crash.message)
    if named is None:
        return False
    head = crash.head
    first = max(1, head.line - LINES)
    above = facts.lines(head.source, first, head.line - first)
    told = [line for line in above if _RESUMES.fullmatch(line) or _FRESH.fullmatch(line)]
    if not told or not _RESUMES.fullmatch(told[-1]):
        return False
    outputs = [found["folder"] for line in above if (found := _OUTPUT.fullmatch(line))]
    own = bool(outputs) and _plain(outputs[-1]) == _plain(named["folder"])
    return own or not any(_ADAPTS.search(line) for line in above)


def _plain(folder: str) -> str:
    return folder.removeprefix("./").rstrip("/")
