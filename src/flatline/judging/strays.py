"""Who else holds the memory of a card, by the words of the allocator that found it full."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from flatline.judging.claims import claim
from flatline.model import Claim, LogCite

LEAST_OTHER = 2.0 * 2**30
"""Bytes: a CUDA context and NCCL's buffers, which the older form does not count, take less."""
CONTEXT = 4.0 * 2**30
"""Bytes that a process may hold beside what its allocator counts: contexts, NCCL's and cuBLAS's
buffers, graphs.  A judgement."""
_SIZE = r"([\d.]+ (?:bytes|[KMG]iB))"
_ACCOUNTS = (
    re.compile(rf"{_SIZE} total capacity; {_SIZE[1:-1]} already allocated; {_SIZE} free;"
               rf" {_SIZE} reserved in total"),
    re.compile(rf"total capaci?ty of {_SIZE} of which {_SIZE} is free\. Including non-PyTorch"
               rf" memory, this process has {_SIZE} memory in use"),
)  # fmt: skip
"""Total, free and own memory as PyTorch's allocator prints them (before 2.1, since)."""
_PROCESS = re.compile(rf"Process \d{{1,10}} has {_SIZE} memory in use")
_THIS = re.compile(rf"this process has {_SIZE} memory in use")
_OWN = re.compile(
    rf"{_SIZE} is allocated by PyTorch(?:, with [^,]{{1,80}})?, and {_SIZE} is reserved by PyTorch"
)
"""Where the pids are those of another namespace, a process is one of the others to itself."""
_UNITS = {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30,
          "BYTES": 1, "TIB": 2**40}  # fmt: skip


def size_bytes(text: str) -> float | None:
    """Bytes of a size as allocators print it (`91.60 GiB`, `20.00 MiB`, `1073741824`)."""
    found = re.fullmatch(r"\s*([\d.,]+)\s*([KMGT]?i?B|bytes)?\s*", text, re.IGNORECASE)
    if found is None:
        return None
    try:
        number = float(found[1].replace(",", ""))
    except ValueError:
        return None
    return number * _UNITS.get((found[2] or "B").upper(), 1)


def stray(cites: Iterable[LogCite]) -> Claim | None:
    """That other processes hold most of the card, where the allocator itself says so."""
    for cite in cites:
        told = _told(cite.text)
        if told is None:
            rest = _unaccounted(cite)
            if rest is not None:
                return rest
            continue
        others, own = told
        if sum(others) > own:
            text = (
                f"Another process holds {sum(others) / 2**30:.2f} GiB of the card while this one"
                f" has {own / 2**30:.2f} GiB: it is the other that leaves too little."
            )
            return claim(text, cite)
    return None


def several(text: str) -> bool:
    """Whether this line tells of no process beside its own, or of more than one."""
    told = _told(text)
    return told is None or len(told[0]) != 1


def _told(text: str) -> tuple[list[float], float] | None:
    """The bytes of the other processes of a card, and those of the one that says so."""
    every = [size_bytes(size) or 0.0 for size in _PROCESS.findall(text)]
    this, counted = _THIS.search(text), _OWN.search(text)
    if not every:
        return None
    if this is not None:
        return every, size_bytes(this[1]) or 0.0
    if counted is None:
        return None
    own = sum(size_bytes(size) or 0.0 for size in counted.groups())
    mine = [held for held in every if own <= held <= own + CONTEXT]
    if len(mine) != 1 or len(every) == 1:
        return None
    return [held for held in every if held not in mine], mine[0]


def _unaccounted(cite: LogCite) -> Claim | None:
    """The same by subtraction: what is neither free nor this process's."""
    for pattern in _ACCOUNTS:
        found = pattern.search(cite.text)
        sizes: Sequence[float | None] = [size_bytes(s) for s in found.groups()] if found else ()
        if len(sizes) != 3 or None in sizes:
            continue
        total, free, own = (size or 0.0 for size in sizes)
        rest = total - free - own
        if rest > own and rest >= LEAST_OTHER:
            return claim(
                f"Of the card's {total / 2**30:.1f} GiB this process holds {own / 2**30:.1f} and"
                f" {free / 2**30:.1f} are free: others hold the {rest / 2**30:.1f} that are"
                " missing.", cite,
            )  # fmt: skip
    return None
