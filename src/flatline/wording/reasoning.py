"""What an agent said beside a verdict, in the order every surface shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flatline.model.reasoning import Reasoning, Spent, Thought
from flatline.wording.places import counted

LOOKS = 30


@dataclass(frozen=True, slots=True)
class Entry:
    """A paragraph behind its mark; `depth` indents, `cites` are evidence ids not in its text."""

    text: str
    mark: str = "-"
    cites: tuple[str, ...] = ()
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """A heading and its entries."""

    title: str
    entries: tuple[Entry, ...]


def parts(reasoning: Reasoning) -> tuple[Part, ...]:
    """Answer, what was rejected, the thoughts, what was looked at, what it cost."""
    made = [
        Part(title(reasoning), tuple(_answer(reasoning))),
        Part(
            f"Rejected ({len(reasoning.rejected)})",
            tuple(Entry(f"{one.text} ({one.why})", "x") for one in reasoning.rejected),
        ),
        Part("How it came to that", tuple(_graph(reasoning.thoughts))),
        Part(f"Looked at ({len(reasoning.looks)})", tuple(_looks(reasoning))),
        Part("Evidence of these looks", tuple(_found(reasoning))),
    ]
    return tuple(part for part in made if part.entries)


def standing(reasoning: Reasoning) -> str:
    """How the answer stands to the rules' verdict, in one sentence."""
    if reasoning.model is None:
        told = " This is what the rules say of it." if reasoning.claims else ""
        return f"No model was asked: {reasoning.ruling}.{told}"
    if not reasoning.answered:
        why = f": {reasoning.stopped}" if reasoning.stopped else ""
        return (
            f"{reasoning.model} gave no answer{why}. The rules' verdict stands; this is what they"
            " say of it."
        )
    chosen = f"{reasoning.code} {reasoning.family}" if reasoning.code else "none of the families"
    stands = reasoning.stands or "undetermined"
    if reasoning.overturned:
        return f"It says {chosen}, against the rules, and checked claims bear it."
    if reasoning.code == reasoning.stands:
        return f"It says {chosen}, as the rules do."
    return f"It says {chosen}; the rules' {stands} stands: {reasoning.ruling}."


def cost(spent: Spent) -> str:
    """`6 calls, 21,400 tokens, 12 s, $0.08 of 24 calls, ...`"""
    said = f"{counted(spent.calls, 'call')}, {spent.tokens_in + spent.tokens_out:,} tokens"
    said += f" ({spent.tokens_out:,} written), {spent.seconds:g} s"
    if spent.cost_usd is not None:
        said += f", ${spent.cost_usd:.4f}"
    priced = f"; price: {spent.price_from}" if spent.price_from else "; price unknown"
    return f"{said}; of {spent.limits}{priced}"


def title(reasoning: Reasoning) -> str:
    """Whose words they are."""
    if reasoning.model is None:
        return "What the rules say of it" if reasoning.claims else "No model"
    return f"What {reasoning.model} says"


def _answer(reasoning: Reasoning) -> Iterator[Entry]:
    yield Entry(standing(reasoning), "")
    told = reasoning.model is not None and reasoning.answered
    for sentence in reasoning.prose if told else ():
        yield Entry(sentence.text, "", sentence.cites)
    for sentence in reasoning.claims:
        own = () if sentence.text.endswith("].") else sentence.cites
        yield Entry(sentence.text, "-", own)
    for sentence in () if told else reasoning.prose:
        yield Entry(sentence.text, "-")
    if reasoning.spent is not None:
        yield Entry(f"Spent: {cost(reasoning.spent)}.", "")


def _graph(thoughts: Sequence[Thought]) -> Iterator[Entry]:
    """Each thought below the first that it is about."""
    known = {thought.id for thought in thoughts}
    below: dict[str, list[Thought]] = {}
    for thought in thoughts:
        parent = next((name for name in thought.on if name in known), "")
        below.setdefault(parent, []).append(thought)
    yield from _below("", below, 0)


def _below(name: str, below: dict[str, list[Thought]], depth: int) -> Iterator[Entry]:
    for thought in below.get(name, ()):
        yield Entry(thought_said(thought), thought.id, thought.cites, depth)
        yield from _below(thought.id, below, depth + 1)


def thought_said(thought: Thought) -> str:
    """Its role, what it is about, what it came to, and its words."""
    about = f" of {', '.join(thought.on)}" if thought.on else ""
    came = {True: ", holds", False: ", does not hold", None: ""}[thought.holds]
    return f"{thought.role}{about}{came}: {thought.text}"


def _looks(reasoning: Reasoning) -> Iterator[Entry]:
    for look in reasoning.looks[:LOOKS]:
        asked = f" {look.asked}" if look.asked else ""
        yield Entry(f"{look.tool}{asked}: {look.found}")
    left = len(reasoning.looks) - LOOKS
    if left > 0:
        yield Entry(f"and {left} more")


def _found(reasoning: Reasoning) -> Iterator[Entry]:
    for item in reasoning.found:
        yield Entry(f"{item.where}  {item.text}", item.id)
