"""
Failure families, one a file; the folder is the registry.

A family module's docstring is its page everywhere it is shown.  It holds

CODE, NAME  as `docs/design` fixes them (`NAME` is also the file's name, with underscores)
NEEDS       the telemetry needed before it may be ruled out; `a|b` is either of two
DECIDED_BY  the one observation that would decide it, and where it comes from: what is said to be
            missing where all of NEEDS was read and `judge` still has no answer
EXPLAINS    code of another family it can cause -> the mechanism, as a sentence
judge       `Facts` -> a finding (or several), `Cleared`, or None where it cannot be measured

`judge` never says "ruled out" and never looks at other families: `diagnose` does both.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from flatline.errors import CatalogueError
from flatline.facts import Facts
from flatline.model import Judgement

SECTIONS = ("Symptom:", "Mechanism:", "Told apart from:", "Do:", "References:")


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of failure: what it needs to see, what it can cause, and how it judges."""

    code: str
    name: str
    title: str
    page: str
    needs: tuple[str, ...]
    decided_by: str
    explains: Mapping[str, str]
    judge: Callable[[Facts], Judgement]
    apart: tuple[str, ...] = ()
    """Codes of the families its page tells it apart from, in that order."""


def _family(name: str) -> Family:
    module = importlib.import_module(f"{__name__}.{name}")
    page = (module.__doc__ or "").strip()
    missing = [section for section in SECTIONS if f"\n{section}" not in page]
    if missing:
        raise CatalogueError(f"families/{name}.py: its page lacks {', '.join(missing)}")
    return Family(
        code=module.CODE,
        name=module.NAME,
        title=page.partition("\n")[0].rstrip("."),
        page=page,
        needs=tuple(module.NEEDS),
        decided_by=module.DECIDED_BY,
        explains=module.EXPLAINS,
        judge=module.judge,
        apart=_apart(page, module.CODE),
    )


def _apart(page: str, own: str) -> tuple[str, ...]:
    told = page.partition("\nTold apart from:")[2].partition("\nDo:")[0]
    return tuple(dict.fromkeys(c for c in re.findall(r"\b[A-G]\d\b", told) if c != own))


@cache
def all_families() -> tuple[Family, ...]:
    """Every family, by code."""
    names = (found.name for found in pkgutil.iter_modules(__path__))
    return tuple(sorted(map(_family, names), key=lambda family: family.code))
