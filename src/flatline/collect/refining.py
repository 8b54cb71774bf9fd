"""What a line itself says, taken into its place; numbers that no run counts to, left out."""

from __future__ import annotations

import re
from dataclasses import replace

from flatline.model import Place, Progress
from flatline.redact import mask

MOST_STEPS = 10**15
"""A step or plan beyond it is no count of steps, and would not fit the columns."""


def countable(item: Progress) -> Progress:
    """The item without a step or plan that no run counts to."""
    if item.step is not None and not -1 <= item.step <= MOST_STEPS:
        item = replace(item, step=None)
    if item.planned is not None and not 0 <= item.planned <= MOST_STEPS:
        item = replace(item, planned=None)
    return item


def refined(place: Place, groups: dict[str, str]) -> Place:
    """The place, completed by what the line itself names."""

    def whole(name: str) -> int | None:
        value = groups.get(name)
        return int(value) if value is not None and value.isdecimal() and len(value) < 10 else None

    rank, task = whole("rank"), whole("task")
    return Place(
        host=(groups.get("host") and groups.get("on_host")) or groups.get("host") or place.host,
        gpu=groups.get("gpu") or place.gpu,
        device=groups.get("device") or place.device,
        domain=place.domain,
        rank=place.rank if place.rank is not None else rank,
        task=place.task if place.task is not None else task,
    )


def masked_groups(decide: re.Pattern[str], found: re.Match[str]) -> dict[str, str]:
    """What the groups hold of the masked line: a secret's name may stand outside its group."""
    masked = mask(found.string)
    if masked != found.string:
        found = decide.search(masked) or found
    return {key: mask(value) for key, value in found.groupdict().items() if value is not None}
