"""
The reasoning of a model, parsed: a Diagram of Thought in XML-tagged roles, and its answer.

Tags of a closed vocabulary are structure, everything between them is text, whatever it holds:
nothing is handed to an XML parser, so that no entity is ever expanded.  What is not as it was
asked for is refused with the reason, which goes back to the model.

    <reasoning>
      <proposition id="p1" cites="e1 t2">...</proposition>
      <critique id="c1" on="p1" cites="t3">...</critique>
      <refinement id="r1" on="p1 c1">...</refinement>
      <verification id="v1" on="r1" cites="t4" holds="yes">...</verification>
    </reasoning>
    <answer family="C2">
      <claim>{"evidence": "e1", "quantity": "line", "comparator": "contains", "value": "a"}</claim>
      <prose>...</prose>
    </answer>
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from flatline.errors import UsageError
from flatline.model.reasoning import THOUGHT_ROLES, Thought, ThoughtRole

NONE = "none"
MOST_THOUGHTS, MOST_CLAIMS, TEXT_CHARS = 60, 24, 1_200
_TAGS = ("reasoning", *THOUGHT_ROLES, "answer", "claim", "prose")
_TAG = re.compile(rf"<(?P<close>/?)(?P<name>{'|'.join(_TAGS)})(?P<rest>(?:\s[^<>]{{0,600}})?)>")
_ATTRIBUTE = re.compile(r"\s+(?P<name>[a-z_]+)\s*=\s*(?:\"(?P<a>[^\"]*)\"|'(?P<b>[^']*)')")
_STRAY = re.compile(r"</?([a-zA-Z][\w-]{0,30})(?:\s[^<>]{0,200})?>")
_ID = re.compile(r"[a-z][a-z0-9_-]{0,15}")
_ATTRIBUTES = {
    "reasoning": frozenset[str](),
    "proposition": frozenset({"id", "on", "cites"}),
    "critique": frozenset({"id", "on", "cites"}),
    "refinement": frozenset({"id", "on", "cites"}),
    "verification": frozenset({"id", "on", "cites", "holds"}),
    "answer": frozenset({"family"}),
    "claim": frozenset({"on"}),
    "prose": frozenset[str](),
}
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}


class Malformed(UsageError):
    """The model's text is not as it was asked for; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a model concluded: `code` is None for "none of them fits"."""

    code: str | None
    claims: tuple[Mapping[str, object], ...]
    prose: str


@dataclass(frozen=True, slots=True)
class _Element:
    name: str
    attributes: Mapping[str, str]
    text: str


def parse_round(
    text: str, round_: int, before: Sequence[Thought], codes: frozenset[str]
) -> tuple[tuple[Thought, ...], Said | None]:
    """
    The thoughts a round adds and, in the last one, its answer.

    Raises `Malformed`: an unknown tag or attribute, an id twice, a thought about one that does not
    exist, a cycle, a role that is about nothing, a family that is none of `codes`.
    """
    body, answer = _blocks(text)
    thoughts = [_thought(element, round_) for element in _elements(body, THOUGHT_ROLES)]
    if not thoughts and round_ < 3:
        raise Malformed("<reasoning> holds no thought: write at least one <proposition>")
    checked_graph([*before, *thoughts])
    if answer is None:
        if round_ == 3:
            raise Malformed('no <answer family="..."> after </reasoning>')
        return tuple(thoughts), None
    return tuple(thoughts), _said(answer, codes)


def checked_graph(thoughts: Sequence[Thought]) -> None:
    """Raises `Malformed` unless every id is its own, every edge leads somewhere, without cycle."""
    if len(thoughts) > MOST_THOUGHTS:
        raise Malformed(f"{len(thoughts)} thoughts; {MOST_THOUGHTS} at most in all")
    known = {thought.id: thought for thought in thoughts}
    if len(known) != len(thoughts):
        twice = next(t.id for t in thoughts if sum(o.id == t.id for o in thoughts) > 1)
        raise Malformed(f"two thoughts are called {twice!r}")
    for thought in thoughts:
        lost = [name for name in thought.on if name not in known]
        if lost:
            raise Malformed(f"{thought.id} is on {lost[0]!r}, which is no thought")
        if thought.role != "proposition" and not thought.on:
            raise Malformed(f'{thought.id}: a {thought.role} needs on="ID" of what it is about')
    _acyclic(known)


def _acyclic(known: Mapping[str, Thought]) -> None:
    done: set[str] = set()
    for start in known:
        path: list[str] = []
        stack: list[tuple[str, bool]] = [(start, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                path.pop()
                done.add(name)
                continue
            if name in path:
                raise Malformed(f"thoughts go in a circle: {' -> '.join([*path, name])}")
            if name in done:
                continue
            path.append(name)
            stack.append((name, True))
            stack += [(other, False) for other in known[name].on]


# --- elements ---------------------------------------------------------------------------------


def _blocks(text: str) -> tuple[str, _Element | None]:
    """The inside of the one <reasoning>, and the <answer> after it where there is one."""
    opened = [tag for tag in _TAG.finditer(text) if tag["name"] == "reasoning"]
    if [tag["close"] for tag in opened] != ["", "/"]:
        raise Malformed("write exactly one <reasoning> ... </reasoning>")
    body = text[opened[0].end() : opened[1].start()]
    found = list(_elements(text[opened[1].end() :], ("answer",), loose=True))
    if len(found) > 1:
        raise Malformed("write one <answer>, not several")
    return body, found[0] if found else None


def _elements(text: str, names: Sequence[str], *, loose: bool = False) -> Iterator[_Element]:
    """The elements side by side in a text; between them nothing, unless it is `loose`."""
    at = 0
    while (tag := _TAG.search(text, at)) is not None:
        name = tag["name"]
        if tag["close"] or name not in names:
            raise Malformed(f"<{tag['close']}{name}> does not stand here; here go {_list(names)}")
        _nothing(text[at : tag.start()], loose, names)
        if tag["rest"].rstrip().endswith("/"):
            raise Malformed(f"<{name}/> is empty: write <{name} ...>text</{name}>")
        end = text.find(f"</{name}>", tag.end())
        if end < 0:
            raise Malformed(f"<{name}> is not closed by </{name}>")
        yield _Element(name, _attributes(name, tag["rest"]), text[tag.end() : end])
        at = end + len(name) + 3
    _nothing(text[at:], loose, names)


def _nothing(text: str, loose: bool, names: Sequence[str]) -> None:
    if loose or not text.strip():
        return
    stray = _STRAY.search(text)
    what = f"<{stray[1]}>" if stray else repr(" ".join(text.split())[:40])
    raise Malformed(f"{what} does not stand here; here go {_list(names)} and nothing else")


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"<{name}>" for name in names)


def _attributes(name: str, rest: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    for part in _ATTRIBUTE.finditer(rest):
        if rest[at : part.start()].strip():
            break
        value = part["a"] if part["a"] is not None else part["b"]
        if part["name"] not in _ATTRIBUTES[name] or part["name"] in found:
            raise Malformed(f"<{name}> has no attribute {part['name']!r}, or has it twice")
        found[part["name"]] = value.strip()
        at = part.end()
    if rest[at:].strip():
        raise Malformed(f'<{name}{rest[:80]}>: attributes are name="value"')
    return found


def _thought(element: _Element, round_: int) -> Thought:
    given = element.attributes
    role: ThoughtRole = next(role for role in THOUGHT_ROLES if role == element.name)
    name = given.get("id", "")
    if not _ID.fullmatch(name):
        raise Malformed(f'<{role}> needs an id as id="p1"')
    text = " ".join(_unescaped(element.text).split())
    if not text:
        raise Malformed(f"{name} says nothing")
    if _TAG.search(element.text):
        raise Malformed(f"{name}: thoughts stand side by side, not one in another")
    holds = given.get("holds")
    if (holds is not None) != (role == "verification") or holds not in (None, "yes", "no"):
        raise Malformed(f'{name}: a verification, and nothing else, has holds="yes" or holds="no"')
    return Thought(
        id=name,
        role=role,
        text=text[:TEXT_CHARS],
        on=tuple(given.get("on", "").replace(",", " ").split()),
        cites=tuple(given.get("cites", "").replace(",", " ").split()),
        holds=None if holds is None else holds == "yes",
        round=round_,
    )


def _said(answer: _Element, codes: frozenset[str]) -> Said:
    family = answer.attributes.get("family", "").strip()
    code = family.split()[0].upper() if family else ""
    if code != NONE.upper() and code not in codes:
        raise Malformed(
            f'<answer family="{family[:20]}">: the family is one of {", ".join(sorted(codes))}, or'
            f" {NONE} where none of them fits"
        )
    claims: list[Mapping[str, object]] = []
    prose: list[str] = []
    for part in _elements(answer.text, ("claim", "prose")):
        if part.name == "prose":
            prose.append(" ".join(_unescaped(part.text).split()))
            continue
        claims.append(_claim(part.text))
    if len(claims) > MOST_CLAIMS:
        raise Malformed(f"{len(claims)} claims; {MOST_CLAIMS} at most")
    if not claims and not any(prose):
        raise Malformed("<answer> says nothing: write <claim> and <prose>")
    return Said(None if code == NONE.upper() else code, tuple(claims), " ".join(prose))


def _claim(text: str) -> Mapping[str, object]:
    for words in (text, _unescaped(text)):
        try:
            made = orjson.loads(words)
        except orjson.JSONDecodeError:
            continue
        if isinstance(made, dict):
            return made
    raise Malformed(f"<claim> holds one JSON object, found {' '.join(text.split())[:60]!r}")


def _unescaped(text: str) -> str:
    return re.sub("|".join(_ENTITIES), lambda found: _ENTITIES[found[0]], text)
