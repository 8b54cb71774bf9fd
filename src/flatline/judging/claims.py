"""Sentences with their evidence, and places put into words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from flatline.model import Cite, Claim, Place


def claim(text: str, *cites: Cite | None) -> Claim:
    """A claim; citations that are None are left out. Raises ValueError where none is left."""
    return Claim(text, tuple(cite for cite in cites if cite is not None))


def cap(text: str) -> str:
    """With a capital first letter."""
    return text[:1].upper() + text[1:]


def spans(numbers: Iterable[int]) -> str:
    """`0-2, 5, 7-9` for 0 1 2 5 7 8 9."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def name_places(places: Sequence[Place]) -> str:
    """`rank 3`, `ranks 0-2`, `task 2 on n3`, `hosts n1, n2`; "" where nothing is known."""
    ranks = [p.rank for p in places if p.rank is not None]
    tasks = [p.task for p in places if p.task is not None]
    hosts = sorted({p.host for p in places if p.host})
    if ranks:
        return f"rank{'s' if len(set(ranks)) > 1 else ''} {spans(ranks)}" + _on(hosts)
    if tasks:
        return f"task{'s' if len(set(tasks)) > 1 else ''} {spans(tasks)}" + _on(hosts)
    if hosts:
        shown = ", ".join(hosts[:8]) + (f" and {len(hosts) - 8} more" if len(hosts) > 8 else "")
        return f"host{'s' if len(hosts) > 1 else ''} {shown}"
    return ""


def _on(hosts: Sequence[str]) -> str:
    return f" on {hosts[0]}" if len(hosts) == 1 else ""


def distinct(places: Iterable[Place]) -> tuple[Place, ...]:
    """Known places, once each, in order; one that only repeats another with less is dropped."""
    known = list(dict.fromkeys(place for place in places if place))
    repeated = {less for place in known for less in _less(_parts(place))}
    return tuple(place for place in known if _parts(place) not in repeated)


def _less(parts: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
    """All that a place says with one or more of its parts left out."""
    told = [n for n, part in enumerate(parts) if part is not None]
    for kept in range(len(told)):
        for some in combinations(told, kept):
            yield tuple(part if n in some else None for n, part in enumerate(parts))


def _parts(place: Place) -> tuple[object, ...]:
    return place.host, place.gpu, place.device, place.domain, place.rank, place.task


def same_rank(a: Place, b: Place) -> bool:
    """Whether two places name the same rank (or task, where no rank was printed)."""
    if a.rank is not None and b.rank is not None:
        return a.rank == b.rank
    if a.task is not None and b.task is not None:
        return a.task == b.task
    return False


def number(place: Place) -> int | None:
    """Rank, or the task where no rank was printed."""
    return place.rank if place.rank is not None else place.task
