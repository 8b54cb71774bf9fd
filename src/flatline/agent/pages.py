"""What a tool answers, typed and within bounds: a page, the count of the rest, and where it is."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from flatline.model import Cite
from flatline.redact import mask
from flatline.wording.untrusted import CLOSE, OPEN, defanged, sentence

Status = Literal["data", "no_data", "refused"]
PAGE_CHARS = 5_400
"""1,800 tokens at three characters each, which is few for English and many for log lines."""
ROW_CHARS = 400


@dataclass(frozen=True, slots=True)
class Row:
    """One line of an answer; with a citation it gets an evidence id when it is shown."""

    text: str
    cite: Cite | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What a model is given.

    `asked` is what was run, `rows` how many there are in all, `follows` where to go on with
    `more`; `note` says what was not done and why.
    """

    id: str
    status: Status
    asked: str
    text: str
    rows: int
    follows: int | None = None
    note: str | None = None

    def plain(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "answer": self.id,
            "status": self.status,
            "asked": self.asked,
            "rows": self.rows,
        }
        if self.follows is not None:
            made["more"] = {"answer": self.id, "start": self.follows}
        if self.note:
            made["note"] = self.note
        return {**made, "text": self.text}


def shown(text: str, most: int = ROW_CHARS) -> str:
    """One line, masked and defanged, that says where it was cut."""
    said = defanged(sentence(mask(text[: 8 * most])))
    return said if len(said) <= most else f"{said[: most - 1]}… ({len(said):,} characters)"


class Pages:
    """Every answer so far, whole; one page of it is shown."""

    def __init__(self, mint: Callable[[Cite], str], spill: Path | None) -> None:
        """`spill` is a folder outside every target; None where there is none to write in."""
        self._mint, self._spill = mint, spill
        self._kept: dict[str, tuple[str, Sequence[Row], bool]] = {}
        self.spilled: dict[str, Path] = {}

    def answer(
        self, asked: str, rows: Sequence[Row], note: str | None = None, *, quoted: bool = True
    ) -> Answer:
        """The first page; without rows that there is no data."""
        name = f"a{len(self._kept) + 1}"
        self._kept[name] = (asked, rows, quoted)
        return self._page(name, 0, note)

    def refused(self, asked: str, why: str) -> Answer:
        """That a call was wrong, and what to do instead."""
        name = f"a{len(self._kept) + 1}"
        self._kept[name] = (asked, (), False)
        return Answer(name, "refused", shown(asked, 200), shown(why, 900), 0)

    def more(self, name: str, start: int) -> Answer:
        """A later page of an answer."""
        if name not in self._kept:
            return Answer(name[:8], "refused", "more", "there is no such answer", 0)
        return self._page(name, max(start, 0), None)

    def _page(self, name: str, start: int, note: str | None) -> Answer:
        asked, rows, quoted = self._kept[name]
        head = shown(asked, 300)
        if not rows:
            return Answer(name, "no_data", head, note or "nothing answers to this", 0, None, None)
        lines: list[str] = []
        room = PAGE_CHARS
        at = start
        for row in rows[start:]:
            line = shown(row.text)
            if lines and len(line) + 8 > room:
                break
            named = f"{self._mint(row.cite)} | " if row.cite is not None else ""
            lines.append(named + line)
            room -= len(named) + len(line) + 1
            at += 1
        left = len(rows) - at
        if left:
            self._write(name, rows)
        text = "\n".join([OPEN, *lines, CLOSE] if quoted else lines)
        return Answer(name, "data", head, text, len(rows), at if left else None, note)

    def _write(self, name: str, rows: Sequence[Row]) -> None:
        """The whole answer to a file, for a person; a model pages."""
        if self._spill is None or name in self.spilled:
            return
        with suppress(OSError):
            self._spill.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = self._spill / f"{name}.txt"
            whole = "\n".join(shown(row.text, 4_000) for row in rows) + "\n"
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(whole)
            self.spilled[name] = path


def spill_folder(targets: Sequence[str]) -> Path | None:
    """Where answers too long to be shown go: the user's cache, never inside a target."""
    digest = hashlib.sha256("\0".join(targets).encode("utf-8", "replace")).hexdigest()[:12]
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    for base in (Path(cache), Path(tempfile.gettempdir())):
        folder = base / "flatline" / "agent" / digest
        if not any(_within(folder, Path(target)) for target in targets):
            return folder
    return None


def _within(folder: Path, target: Path) -> bool:
    try:
        return folder.resolve().is_relative_to(target.resolve(strict=True))
    except OSError:
        return False
