"""Names of hosts, users, projects and folders, masked before an outside provider sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self


class Names:
    """
    A stable, reversible mapping: HOST-1, USER-1, PROJECT-1, PATH-1, IP-1 ...

    One object serves one conversation: the same name has the same placeholder throughout, and
    `restore(mask(text)) == text` for every text.
    """

    @classmethod
    def of(cls, document: Mapping[str, Any], more: Iterable[str] = ()) -> Self:
        """The names a verdict's document holds, and `more` hosts."""
        raise NotImplementedError

    def learn(self, text: str) -> None:
        """Takes note of the names that a text shows as such (`User=ana`, `/home/ana`)."""
        raise NotImplementedError

    def mask(self, text: str) -> str:
        """The text with placeholders for names; nothing else of it changes."""
        raise NotImplementedError

    def restore(self, text: str) -> str:
        """The text with names for placeholders; a placeholder that stands for nothing stays."""
        raise NotImplementedError
