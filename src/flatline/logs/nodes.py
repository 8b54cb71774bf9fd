"""What a pattern is made of, once it is widened to bytes (`flatline.logs.prefilter`)."""

from __future__ import annotations

from dataclasses import dataclass

BYTES = frozenset(range(256))
ASCII = frozenset(range(128))
BREAKS = frozenset(b"\n\r")


@dataclass(frozen=True, slots=True)
class One:
    """One byte out of a set."""

    members: frozenset[int]

    @property
    def wide(self) -> bool:
        """Whether it stands for characters that may take several bytes."""
        return len(self.members) > 1 and not self.members <= ASCII


@dataclass(frozen=True, slots=True)
class Repeat:
    low: int
    high: int | None
    inner: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    branches: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """Where case does not count."""

    inner: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A place between bytes."""

    text: str


Node = One | Repeat | Branch | Folded | Mark
Nodes = tuple[Node, ...]

BLANK = One(frozenset(b" "))
END = Mark("[ \\x09\\x0b\\x0c]*$")


def anything(node: Node) -> bool:
    match node:
        case Repeat(0, None, (One(members),)):
            return members >= BYTES - BREAKS
    return False
