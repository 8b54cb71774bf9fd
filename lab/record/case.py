"""What a case is: how it is played, and what may truly be said of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lab.record.stage import Stage

Codes = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """
    One recorded run.

    `play` does it; its docstring says what is really done and becomes the README.  The other
    fields are the truth, written to expect.toml: several states or codes mean that the data
    left behind support any of them.  `cited` names lines by (file, pattern, n-th match).
    """

    name: str
    origin: str
    about: tuple[str, ...]
    play: Callable[[Stage], None]
    state: Codes = "found"
    code: Codes | None = None
    fault_class: Codes | None = None
    attribution: Codes | None = None
    culprits: tuple[dict[str, object], ...] | None = None
    not_culprits: tuple[dict[str, object], ...] | None = None
    cited: tuple[tuple[str, str, int], ...] = ()
    answers: dict[str, str] = field(default_factory=dict)
    args: tuple[str, ...] = ()
    another_run_without: tuple[str, ...] = ()
    """Files without which what is left is another run, of which the truth here says nothing."""
    provenance: str = "recorded"
    title: str | None = None
    demo: str | None = None
    """Folder name in the demo, where the case is shown there; needs `title`."""


def line_number(path: Path, pattern: str, nth: int) -> int:
    """The physical line (from 1) of the n-th match (from 0) of a pattern."""
    lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    found = [i for i, line in enumerate(lines, 1) if re.search(pattern, line)]
    if len(found) <= nth:
        raise LookupError(f"{path}: {len(found)} lines match {pattern!r}, number {nth} was asked")
    return found[nth]


def quoted(value: object) -> str:
    """A TOML value of a string, number, or tuple of them."""
    if isinstance(value, tuple | list):
        return "[" + ", ".join(quoted(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {quoted(v)}" for k, v in value.items()) + " }"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def expectation(case: Case, run: Path) -> str:
    """The text of expect.toml."""
    out = [
        f"provenance = {quoted(case.provenance)}",
        f"origin = {quoted(case.origin)}",
        f"args = {quoted(case.args)}",
        f"about = {quoted(case.about)}",
    ]
    if case.another_run_without:
        out.append(f"another_run_without = {quoted(case.another_run_without)}")
    out += ["", "[verdict]", f"state = {quoted(case.state)}"]
    optional = ("code", "fault_class", "attribution", "culprits", "not_culprits")
    for name in optional:
        value = getattr(case, name)
        if value is not None:
            out.append(f"{name} = {quoted(value)}")
    if case.cited:
        cites = tuple((f, line_number(run / f, p, n)) for f, p, n in case.cited)
        out.append(f"cited = {quoted(cites)}")
    if case.answers:
        out += ["", "[answers]", *(f"{k} = {quoted(v)}" for k, v in case.answers.items())]
    return "\n".join(out) + "\n"


def demo_truth(case: Case) -> str:
    """The text of truth.toml of a demo."""
    states = case.state if isinstance(case.state, tuple) else (case.state,)
    codes: list[str] = []
    for state in states:
        if state == "found":
            named = case.code if isinstance(case.code, tuple) else (case.code or "",)
            codes += [c for c in named if c]
        else:
            codes.append({"healthy": "G1"}.get(state, state))
    unique = tuple(dict.fromkeys(codes))
    code = quoted(unique[0] if len(unique) == 1 else unique)
    return f"title = {quoted(case.title)}\ncode = {code}\nargs = {quoted(case.args)}\n"


def listed(
    cases: list[Case], **truth: object
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Adds the decorated play to `cases` under its own name, with the truth given here."""

    def add(play: Callable[[Stage], None]) -> Callable[[Stage], None]:
        cases.append(Case(name=play.__name__, play=play, **truth))  # type: ignore[arg-type]
        return play

    return add
