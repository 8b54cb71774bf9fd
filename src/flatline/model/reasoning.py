"""
An agent's investigation beside a verdict: what was thought, looked at, said and refused.

It never stands in the place of the verdict.  Thoughts are a Diagram of Thought: a directed acyclic
graph of propositions, critiques, refinements and verifications, each with what it rests on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

ThoughtRole = Literal["proposition", "critique", "refinement", "verification"]
THOUGHT_ROLES: tuple[ThoughtRole, ...] = get_args(ThoughtRole)


@dataclass(frozen=True, slots=True)
class Thought:
    """
    One node of the graph.

    `on` are the thoughts it is about, `cites` the evidence it names (`e4` of the verdict, `t2` of
    a look), `holds` what a verification came to; `round` is 1 extract, 2 criticise, 3 attribute.
    """

    id: str
    role: ThoughtRole
    text: str
    on: tuple[str, ...] = ()
    cites: tuple[str, ...] = ()
    holds: bool | None = None
    round: int = 1


@dataclass(frozen=True, slots=True)
class Look:
    """A tool that was called: with what, and what came of it in a few words."""

    tool: str
    asked: str
    found: str


@dataclass(frozen=True, slots=True)
class Found:
    """Evidence a look brought: worded, and as a verdict's document has evidence."""

    id: str
    where: str
    text: str
    item: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is said, rendered from a checked claim, or prose that passed; and what it cites."""

    text: str
    cites: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """What the model said that does not hold, and why."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Spent:
    """What it cost. `cost_usd` is None where no price is known; `limits` says each bound."""

    calls: int
    tokens_in: int
    tokens_out: int
    seconds: float
    cost_usd: float | None = None
    price_from: str | None = None
    limits: str = ""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """
    The whole of one question.

    `model` is None where rules and retrieval answered.  `answered` is whether the model came to
    an answer, `code` the family it chose, None for "none of them fits"; `stands` is the family
    after its claims were weighed against the verdict's, `ruling` says why.  `stopped` says what
    ended it early.
    """

    question: str
    model: str | None
    code: str | None
    family: str | None
    answered: bool
    stands: str | None
    overturned: bool
    ruling: str
    claims: tuple[Sentence, ...] = ()
    prose: tuple[Sentence, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    thoughts: tuple[Thought, ...] = ()
    looks: tuple[Look, ...] = ()
    found: tuple[Found, ...] = ()
    spent: Spent | None = None
    stopped: str | None = None
