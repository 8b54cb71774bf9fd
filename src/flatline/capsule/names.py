"""Names of files in a capsule: those they had, as far as any file system can carry them."""

from __future__ import annotations

import re

LENGTH = 80
"""Bytes of a member's name that a tar of 1988 can say, with what stands before it."""
_OTHER = re.compile(r"[^A-Za-z0-9._@%+=:,~-]")


def file_name(source: str) -> str:
    """The last part of a path as citations spell it; its end where it is long, since that tells
    what a file is (`_rank3.pkl`)."""
    name = _OTHER.sub("_", source.rpartition("/")[2])[-LENGTH:]
    return name if name.strip(".") else f"file{name}"
