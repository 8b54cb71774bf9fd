"""How far an investigation is: what the model calls, what it is answered, that it writes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TextIO

from flatline.wording.untrusted import neutral

WIDTH = 80


class Teller:
    """How far an investigation is: a line a look, and one drawn over on a terminal."""

    def __init__(self, stream: TextIO, say: Callable[[str], None], quiet: bool = False) -> None:
        """`say` puts a line on the stream, `stream` is only drawn on."""
        self._stream, self._say, self._quiet = stream, say, quiet
        self._over = stream.isatty() and not quiet
        self._asked: dict[str, list[str]] = {}
        self._chars = 0

    def round(self, number: int, title: str) -> None:
        """A round begins."""
        self._chars = 0
        self._line(f"{number}/3 {title}" if number else title)
        self._draw("waiting for the model")

    def called(self, tool: str, asked: str) -> None:
        """The model calls a tool."""
        self._asked.setdefault(tool, []).append(asked)
        self._draw(f"{tool} {asked}")

    def found(self, tool: str, what: str) -> None:
        """What the tool answered."""
        known = self._asked.get(tool)
        asked = known.pop(0) if known else ""
        room = WIDTH - 8 - len(tool) - min(len(what), 40)
        shown = asked if len(asked) <= room else f"{asked[: room - 3]}..."
        self._line(f"  {tool} {shown}: {what[:120]}".replace(" :", ":"))
        self._draw("waiting for the model")

    def wrote(self, chars: int) -> None:
        """The model writes."""
        before, self._chars = self._chars, self._chars + chars
        if self._chars // 200 != before // 200:
            self._draw(f"the model writes, {self._chars:,} characters")

    def note(self, text: str) -> None:
        """Anything else a person should know."""
        self._line(f"  {text}")

    def clear(self) -> None:
        """Leave the line that is drawn over as if nothing had been there."""
        self._draw("")

    def _line(self, text: str) -> None:
        if not self._quiet:
            self._draw("")
            self._say(neutral(text))

    def _draw(self, text: str) -> None:
        if self._over:
            with contextlib.suppress(OSError):
                shown = f"  {neutral(text)}"[: WIDTH - 1] if text else ""
                self._stream.write(f"\r\x1b[K{shown}")
                self._stream.flush()
