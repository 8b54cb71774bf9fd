"""Ranks, hosts and places by the thousand, said in a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from flatline.wording.untrusted import neutral

if TYPE_CHECKING:
    from flatline.model import Place

RANGES = 12
"""Ranges of ranks or hosts named before the rest is counted."""
GROUPS = 4
"""Hosts whose places are spelled out before the rest is folded."""
_HOST = re.compile(r"(.*?)(\d{1,15})(\D*)", re.DOTALL)


def counted(number: int, noun: str) -> str:
    """`1 host`, `1,024 hosts`, `3 families`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1] + 'ies' if noun.endswith('y') else noun + 's'}"


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def fold_numbers(numbers: Iterable[int], width: int = 0, limit: int = RANGES) -> str:
    """`0-3,7` for 0 1 2 3 7; beyond `limit` ranges the rest is counted, never dropped."""
    runs = _runs(numbers)
    parts = [
        f"{first:0{width}d}" if first == last else f"{first:0{width}d}-{last:0{width}d}"
        for first, last in runs[:limit]
    ]
    left = sum(b - a + 1 for a, b in runs[limit:])
    return ",".join(parts) + (f" and {left:,} more" if left else "")


def _spelled(name: str) -> tuple[str, str, str]:
    """(prefix, digits, suffix) of a host name; the domain is never counted in."""
    short, dot, domain = name.partition(".")
    if short.isdigit():
        short, dot, domain = name, "", ""
    found = _HOST.fullmatch(short)
    return (found[1], found[2], found[3] + dot + domain) if found else (name, "", "")


def fold_hosts(names: Iterable[str], limit: int = RANGES) -> str:
    """Host names as Slurm lists them, `node[01-16],login`: what `--exclude` takes."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in dict.fromkeys(names):
        prefix, digits, suffix = _spelled(name)
        groups.setdefault((prefix, suffix), []).append(digits)
    parts: list[str] = []
    left = 0
    for (prefix, suffix), spelled in groups.items():
        padded = any(digits[0] == "0" for digits in spelled if len(digits) > 1)
        for width in sorted({len(digits) for digits in spelled}) if padded else [0]:
            numbers = [int(d) for d in spelled if d and width in (0, len(d))]
            if len(parts) >= limit:
                left += max(len(numbers), 1)
            elif len(numbers) > 1:
                parts.append(f"{prefix}[{fold_numbers(numbers, width)}]{suffix}")
            else:
                parts.append(f"{prefix}{numbers[0]:0{width}d}{suffix}" if numbers else prefix)
    return neutral(",".join(parts)) + (f" and {left:,} more" if left else "")


def _named(singular: str, numbers: Sequence[int]) -> str:
    several = len(set(numbers)) > 1
    return f"{singular}{'s' if several else ''} {fold_numbers(numbers)}" if numbers else ""


def _listed(names: Iterable[str], limit: int = 3) -> str:
    kept = list(dict.fromkeys(names))
    more = f" and {len(kept) - limit:,} more" if len(kept) > limit else ""
    return ", ".join(kept[:limit]) + more


def _gpus(places: Sequence[Place]) -> str:
    names = list(dict.fromkeys(p.gpu for p in places if p.gpu is not None))
    if all(name.isdecimal() and len(name) < 6 for name in names):
        return _named("GPU", [int(name) for name in names])
    return f"GPU{'s' if len(names) > 1 else ''} {_listed(names)}"


def _together(places: Sequence[Place]) -> str:
    """All of these places in one phrase; the pairing of rank and GPU is given up."""
    parts = [
        _named("rank", [p.rank for p in places if p.rank is not None]),
        _named("task", [p.task for p in places if p.task is not None]),
        _gpus(places),
        _listed(p.device for p in places if p.device is not None),
        _listed(p.domain for p in places if p.domain is not None),
    ]
    said = " ".join(part for part in parts if part)
    hosts = fold_hosts(p.host for p in places if p.host is not None)
    return neutral(f"{said} on {hosts}" if said and hosts else said or hosts or "unknown place")


def fold_places(places: Sequence[Place]) -> str:
    """Places host by host in their order; beyond `GROUPS` hosts the rest is folded and counted."""
    groups: dict[str | None, list[Place]] = {}
    for place in places:
        groups.setdefault(place.host, []).append(place)
    phrases = [_together(group) for group in list(groups.values())[:GROUPS]]
    if len(groups) <= GROUPS:
        return "; ".join(phrases)
    told = [place for group in list(groups.values())[: GROUPS - 1] for place in group]
    left = [place for group in list(groups.values())[GROUPS - 1 :] for place in group]
    return (
        "; ".join(phrases[: GROUPS - 1])
        + f"; and {counted(len(places) - len(told), 'place')} more: {_together(left)}"
    )
