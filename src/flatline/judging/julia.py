"""What an error of a Julia program is about, where a file could not be opened."""

from __future__ import annotations

import re

from flatline.judging.startup_class import startup_class
from flatline.model import Match

UNCAUGHT = "julia-uncaught"
_ABSENT = re.compile(r"SystemError: opening file \"([^\"]{1,400})\": No such file")


def julia_class(match: Match) -> str | None:
    """By the name of the file; None where nothing tells, or of anything else."""
    found = _ABSENT.search(match.cite.text) if match.signature.id == UNCAUGHT else None
    return startup_class("FileNotFoundError", f"'{found[1]}'") if found else None
