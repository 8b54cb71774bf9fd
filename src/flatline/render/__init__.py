"""
Ways to show a verdict, one a file; the folder is the registry.

A format module is named as its `NAME` and has `render(verdict) -> str`, a pure function.  One that
draws has `illustrate(verdict, exhibit) -> str` as well, and is then given what can be shown of the
run.  What all of them must agree on is decided here once: the order of findings and the evidence
ids.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from flatline.errors import CatalogueError, UsageError
from flatline.model import (
    AbsenceCite,
    Cite,
    DerivedCite,
    DumpCite,
    Judged,
    LogCite,
    QueryCite,
    RecordCite,
    Verdict,
)
from flatline.wording.places import counted
from flatline.wording.rows import moment, value_text
from flatline.wording.untrusted import neutral

if TYPE_CHECKING:
    from flatline.exhibit.model import Exhibit

PATTERNS = 3
"""Patterns of an absence that are spelled out before the rest is counted."""


class Format(Protocol):
    NAME: str

    def render(self, verdict: Verdict) -> str:
        """The whole verdict, as text that ends in a newline."""


@runtime_checkable
class Drawn(Format, Protocol):
    """A format that shows the run beside the verdict on it."""

    def illustrate(self, verdict: Verdict, exhibit: Exhibit) -> str:
        """As `render`, with the run's own curves, places and lines."""


@cache
def format_names() -> tuple[str, ...]:
    """Every format's name, sorted; none is imported for it."""
    names = (found.name for found in pkgutil.iter_modules(__path__))
    return tuple(sorted(name for name in names if name[0] != "_"))


def format_named(name: str) -> Format:
    """Raises `UsageError` where there is no such format, `CatalogueError` where it is broken."""
    if name not in format_names():
        raise UsageError(f"no format is called {name!r}; there are {', '.join(format_names())}")
    module = cast(Format, importlib.import_module(f"{__name__}.{name}"))
    if getattr(module, "NAME", None) != name or not hasattr(module, "render"):
        raise CatalogueError(f"render/{name}.py must have NAME = {name!r} and render(verdict)")
    return module


def ordered_findings(verdict: Verdict) -> tuple[Judged, ...]:
    """The verdict's own finding first, the others in the order they were judged."""
    own = next((j for j in verdict.findings if _is_own(j, verdict)), None)
    if own is None:
        return verdict.findings
    return (own, *(judged for judged in verdict.findings if judged is not own))


def own_finding(verdict: Verdict) -> Judged | None:
    """The finding the verdict rests on; None where it rests on none."""
    return next((judged for judged in verdict.findings if _is_own(judged, verdict)), None)


def _is_own(judged: Judged, verdict: Verdict) -> bool:
    return (
        judged.finding.code == verdict.code
        and judged.finding.fault_class == verdict.fault_class
        and judged.role == "cause"
    )


class Ledger:
    """
    Evidence numbered `e1`, `e2` ... in the order a verdict first cites it.

    What claims, findings and exclusions cite comes before the inputs of derived values, so that
    the ids a person reads are the small ones.  Equal citations share an id; `1`, `1.0` and `True`
    are different values, and any two NaN are the same.
    """

    def __init__(self, verdict: Verdict) -> None:
        self._ids: dict[str, str] = {}
        self._keys: dict[int, tuple[Cite, str]] = {}
        self.items: list[tuple[str, Cite]] = []
        for claim in (*verdict.shows, *verdict.implies):
            self._number(claim.cites)
        for judged in ordered_findings(verdict):
            self._number(judged.finding.cites)
        for ruled_out in verdict.ruled_out:
            self._number(ruled_out.cites)
        for attempt in verdict.run.attempts:
            self._number(attempt.cites)
        if verdict.comparison is not None:
            self._number(verdict.comparison.cites)
        at = 0
        while at < len(self.items):
            cite = self.items[at][1]
            if isinstance(cite, DerivedCite):
                self._number(cite.inputs)
            at += 1

    def _key(self, cite: Cite) -> str:
        known = self._keys.get(id(cite))
        if known is None:  # the citation is kept too: its id() is its own while it lives
            known = self._keys[id(cite)] = (cite, repr(cite))
        return known[1]

    def _number(self, cites: Iterable[Cite]) -> None:
        for cite in cites:
            key = self._key(cite)
            if key not in self._ids:
                self._ids[key] = f"e{len(self.items) + 1}"
                self.items.append((self._ids[key], cite))

    def ids(self, cites: Iterable[Cite]) -> tuple[str, ...]:
        """The ids of these citations, once each, in their order."""
        return tuple(dict.fromkeys(self._ids[self._key(cite)] for cite in cites))


def fold_ids(ids: Iterable[str]) -> str:
    """`e1, e4-e9, t2`: evidence ids by letter and number, runs of three and more as a range."""
    numbered = {(name[0], int(name[1:])) for name in ids if name[1:].isdecimal()}
    runs: list[tuple[str, list[int]]] = []
    for letter, number in sorted(numbered):
        if runs and letter == runs[-1][0] and number == runs[-1][1][1] + 1:
            runs[-1][1][1] = number
        else:
            runs.append((letter, [number, number]))
    parts = []
    for letter, (first, last) in runs:
        joint = "-" if last - first > 1 else ", "
        many = f"{letter}{first}{joint}{letter}{last}"
        parts.append(f"{letter}{first}" if first == last else many)
    return ", ".join(parts)


def lacking(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """What would help to decide the families that stay open, as (need, their codes folded), that
    which helps most of them first."""
    needs: dict[str, list[str]] = {}
    for open_ in verdict.undetermined:
        for need in open_.missing:
            needs.setdefault(need, []).append(open_.code)
    ranked = sorted(needs.items(), key=lambda need: -len(need[1]))
    return tuple((need, fold_ids(codes)) for need, codes in ranked)


def first_source(cite: Cite) -> str:
    """Where a derived value begins: the source of its first input, its method where none is."""
    while isinstance(cite, DerivedCite):
        if not cite.inputs:
            return cite.method
        cite = cite.inputs[0]
    return cite.source


def located(cite: Cite) -> str:
    """Where to look: file and line, record and pointer, server and engine, or the method."""
    match cite:
        case LogCite():
            return f"{cite.source}:{cite.line}"
        case RecordCite() | DumpCite():
            return f"{cite.source} {cite.pointer}"
        case QueryCite():
            return f"{cite.source} ({cite.engine})"
        case AbsenceCite():
            return cite.source
        case DerivedCite():
            return cite.method


def beside(cite: Cite, day: datetime | None = None) -> tuple[str, ...]:
    """Place and instant of a citation, where it has them; the date only where it is not `day`."""
    if isinstance(cite, AbsenceCite):
        return ()
    parts = [neutral(str(cite.place))] if cite.place else []
    at = None if isinstance(cite, DerivedCite | QueryCite) else cite.at
    if at is not None:
        guessed = " or later" if isinstance(cite, LogCite) and cite.at_assumed else ""
        parts.append(moment(at, day) + guessed)
    return tuple(parts)


def said(cite: Cite, ledger: Ledger) -> tuple[tuple[str, bool], ...]:
    """What the citation says besides its text, as (words, whether they are code)."""
    match cite:
        case RecordCite() | DumpCite():
            value = value_text(cite.value)
            return () if value in cite.text else ((f"= {value}", False),)
        case QueryCite():
            value = f"= {value_text(cite.value)} {cite.unit}".rstrip()
            window = f"at {moment(cite.end)}"
            if cite.start != cite.end:
                end = moment(cite.end, cite.start)
                window = f"{moment(cite.start)} to {end}, every {cite.step_s:g} s"
            return ((cite.query, True), (f"{value}, {window}", False))
        case AbsenceCite():
            files = counted(len(cite.files), "file")
            searched = f"none in {files}, {counted(cite.lines, 'line')}, of:"
            return ((searched, False), (_some(cite.patterns), True))
        case DerivedCite():
            given = "".join(f", {key} {value_text(value)}" for key, value in cite.params)
            inputs = f" from {fold_ids(ledger.ids(cite.inputs))}" if cite.inputs else ""
            return (
                (f"= {value_text(cite.value)} {cite.unit or ''}".rstrip() + inputs + given, False),
            )
        case _:
            return ()


def _some(patterns: Sequence[str]) -> str:
    more = f" and {len(patterns) - PATTERNS} more" if len(patterns) > PATTERNS else ""
    return "  ".join(patterns[:PATTERNS]) + more
