"""
Questions to a model about one run: three rounds for the first, one for each that follows.

Whatever the model or its endpoint does, a `Reasoning` comes of it: what was found until then, why
it stopped, and the rules' verdict untouched.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import AsyncIterable, Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from pydantic_ai import Agent, ModelRetry, RunContext, Tool, UsageLimits
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    PartDeltaEvent,
    ToolCallPart,
)
from pydantic_ai.models import Model, StreamedResponse
from pydantic_ai.models.instrumented import InstrumentationSettings

from flatline.agent import faults, prompts
from flatline.agent.bench import Bench
from flatline.agent.budget import Budget
from flatline.agent.endpoint import Endpoint
from flatline.agent.metered import Metered
from flatline.agent.pages import Answer, shown
from flatline.agent.replay import RecordingEnds
from flatline.agent.thoughts import Malformed, Said, parse_round
from flatline.agent.tools import Kit, described
from flatline.agent.transcript import Recorder
from flatline.agent.weighing import Weighed, weighed
from flatline.claims import Ask, Names
from flatline.families import all_families
from flatline.model.reasoning import Reasoning, Rejected, Thought
from flatline.wording.untrusted import sentence

LEAST_CALLS = 3
"""Fewer calls than rounds: then it is asked once, for the answer."""
RETRIES = 2
_log = logging.getLogger("flatline.agent")


class Listener(Protocol):
    """Who is told how far it is."""

    def round(self, number: int, title: str) -> None:
        """A round begins."""

    def called(self, tool: str, asked: str) -> None:
        """The model calls a tool."""

    def found(self, tool: str, what: str) -> None:
        """What the tool answered, in a few words."""

    def wrote(self, chars: int) -> None:
        """The model has written so many characters more."""

    def note(self, text: str) -> None:
        """Anything else a person should know."""


@dataclass
class Conversation:
    """One run, one model, one budget. `names` is None where nothing but secrets is masked."""

    bench: Bench
    model: Model
    budget: Budget
    ask: Ask
    names: Names | None
    listener: Listener
    recorder: Recorder
    endpoint: Endpoint | None = None
    thoughts: list[Thought] = field(default_factory=list)
    history: list[ModelMessage] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._codes = frozenset(family.code for family in all_families())
        self._kit = Kit(self.bench)
        self._round = 1
        self._new: list[Thought] = []
        self._said: Said | None = None
        self._cut = False
        self._asked_before = False

    async def answered(self, question: str, rounds: int | None = None) -> Reasoning:
        """The answer to one question. Never raises for what a model or its endpoint does."""
        self.budget.start()
        looks, before = len(self.bench.looks), len(self.thoughts)
        rounds = rounds or self.rounds
        self.recorder.put("question", text=question, rounds=rounds)
        self._said, stopped = None, None
        try:
            for number in range(4 - rounds, 4):
                await self._asked(number, rounds, self._prompt(number, rounds, question))
        except RecordingEnds as ended:
            stopped = str(ended)
        except Exception as fault:  # noqa: BLE001 - whatever a model brings, the verdict stands
            _log.debug("the investigation ended early", exc_info=True)
            stopped = faults.said(fault, self.endpoint, self.budget)
        self._asked_before = True
        made = self._reasoning(question, self.thoughts[before:], looks, stopped)
        self.recorder.put("answer", reasoning=asdict(made))
        return made

    @property
    def rounds(self) -> int:
        return 1 if self._asked_before or self.budget.calls < LEAST_CALLS else 3

    def _prompt(self, number: int, rounds: int, question: str) -> str:
        if self._asked_before and self.history:
            made = prompts.follow_up(question)
        elif rounds == 1:
            made = prompts.alone(question, self.bench)
        else:
            made = prompts.opening(question, self.bench) if number == 1 else ""
        return self._masked(made or prompts.following(number))

    async def _asked(self, number: int, rounds: int, prompt: str) -> None:
        """One round: the model looks until it writes its thoughts."""
        self._round, self._cut = number, False
        calls = self.budget.calls
        self.budget.reserved = {1: max(2, calls // 2), 2: max(1, calls // 5)}.get(number, 0) * (
            rounds > 1
        )
        if rounds == 1:
            self.listener.round(0, "one question more" if self._asked_before else "one question")
        else:
            self.listener.round(number, prompts.ROUNDS[number - 1])
        self.recorder.put("prompt", round=number, text=prompt)
        result = await self._agent().run(
            prompt,
            message_history=self.history or None,
            timeout=max(self.budget.seconds_left, 0.01),
            usage_limits=UsageLimits(request_limit=None),
            event_stream_handler=self._heard,
        )
        self.history = result.all_messages()
        self.thoughts += self._new

    def _agent(self) -> Agent[object, str]:
        tools = [
            Tool(self._wrapped(tool), name=name, description=described(tool), sequential=True)
            for name, tool in self._kit.every().items()
        ]
        agent: Agent[object, str] = Agent(
            Metered(self.model, self.budget, self.listener.note, self._kept),
            instructions=prompts.instructions(),
            tools=tools,
            retries={"tools": RETRIES, "output": RETRIES},
            name="flatline",
        )
        agent.instrument = InstrumentationSettings(
            include_content=False, include_model_request_parameters=False
        )
        agent.output_validator(self._checked)
        return agent

    def _checked(self, text: str) -> str:
        """Thoughts and answer as they were asked for, or what is wrong with them."""
        try:
            self._new, said = parse_parts(
                self._restored(text), self._round, self.thoughts, self._codes
            )
        except Malformed as fault:
            short = "Your answer was cut off at the most one call may write: write less. "
            self.listener.note(f"asked to write it again: {shown(str(fault), 120)}")
            raise ModelRetry(f"{short if self._cut else ''}{fault}") from fault
        self._said = said or self._said
        return text

    # --- tools ---

    def _wrapped(self, tool: Callable[..., Answer]) -> Callable[..., dict[str, Any]]:
        """Names as the run has them on the way in, masked on the way out."""

        @functools.wraps(tool)
        def called(*args: Any, **given: Any) -> dict[str, Any]:
            restored = {key: self._deep(value, self._restored) for key, value in given.items()}
            try:
                made = tool(*args, **restored).plain()
            except Exception as fault:  # noqa: BLE001 - a fault of ours must not end a model's work
                _log.debug("%s failed", tool.__name__, exc_info=True)
                made = {
                    "status": "refused",
                    "text": f"Flatline itself failed ({type(fault).__name__}): this says nothing"
                    " about the run",
                }
            masked: dict[str, Any] = self._deep(made, self._learnt)
            digest = hashlib.sha256(repr(masked).encode("utf-8", "replace")).hexdigest()[:16]
            self.digests.append(digest)
            self.recorder.put("tool", tool=tool.__name__, given=given, digest=digest, **masked)
            return masked

        return called

    def _deep(self, node: Any, change: Callable[[str], str]) -> Any:
        if isinstance(node, str):
            return change(node)
        if isinstance(node, Mapping):
            return {key: self._deep(value, change) for key, value in node.items()}
        return [self._deep(value, change) for value in node] if isinstance(node, list) else node

    def _learnt(self, text: str) -> str:
        if self.names is not None:
            self.names.learn(text)
        return self._masked(text)

    def _masked(self, text: str) -> str:
        return text if self.names is None else self.names.mask(text)

    def _restored(self, text: str) -> str:
        return text if self.names is None else self.names.restore(text)

    # --- what is heard ---

    async def _heard(self, _: RunContext[object], events: AsyncIterable[Any]) -> None:
        async for event in events:
            if isinstance(event, FunctionToolCallEvent):
                told = self._restored(_given(event.part))
                self.listener.called(event.part.tool_name, shown(told, 200))
            elif isinstance(event, PartDeltaEvent):
                self.listener.wrote(len(getattr(event.delta, "content_delta", None) or ""))
            elif isinstance(event, FunctionToolResultEvent):
                name = getattr(event.part, "tool_name", None) or "?"
                self.listener.found(name, _outcome(event))

    def _kept(self, stream: StreamedResponse) -> None:
        """A response that came whole."""
        response = stream.get()
        self._cut = response.finish_reason == "length"
        if self._cut:
            self.listener.note("the model's answer was cut off at the most one call may write")
        self.recorder.response(self._round, response)

    # --- what comes of it ---

    def _reasoning(
        self, question: str, thoughts: list[Thought], looks: int, stopped: str | None
    ) -> Reasoning:
        made: Weighed | None = None
        if self._said is not None:
            made = weighed(self.bench, self._said, self.ask)
        verdict = self.bench.verdict
        code = self._said.code if self._said is not None else None
        names = {family.code: family.name for family in all_families()}
        kept, invented = self._grounded(thoughts)
        claims, prose = (made.claims, made.prose) if made else ((), ())
        cited = {name for thought in kept for name in thought.cites}
        cited |= {name for one in (*claims, *prose) for name in one.cites}
        return Reasoning(
            question=shown(question, 600),
            model=str(self.endpoint) if self.endpoint else self.model.model_name,
            code=code,
            family=names.get(code) if code else None,
            answered=self._said is not None,
            stands=made.ruling.code if made else verdict.code,
            overturned=made.ruling.overturned if made else False,
            ruling=made.ruling.reason if made else "the model gave no answer",
            claims=claims,
            prose=prose,
            rejected=(*(made.rejected if made else ()), *invented),
            thoughts=tuple(kept),
            looks=tuple(self.bench.looks[looks:]),
            found=tuple(one for one in self.bench.brought.values() if one.id in cited),
            spent=self.budget.spent(),
            stopped=stopped,
        )

    def _grounded(self, thoughts: list[Thought]) -> tuple[list[Thought], list[Rejected]]:
        """Thoughts with the evidence there is; what they invent is rejected."""
        kept, invented = [], []
        for thought in thoughts:
            there = tuple(name for name in thought.cites if name in self.bench.known)
            invented += [
                Rejected(f"{thought.id} cites {shown(name, 40)}", "there is no such evidence")
                for name in thought.cites
                if name not in there
            ]
            kept.append(replace(thought, cites=there))
        return kept, invented


def parse_parts(
    text: str, round_: int, before: list[Thought], codes: frozenset[str]
) -> tuple[list[Thought], Said | None]:
    thoughts, said = parse_round(text, round_, before, codes)
    return [replace(thought, text=shown(thought.text, 1_200)) for thought in thoughts], said


def _given(call: ToolCallPart) -> str:
    """The values of a call's arguments; as they came where they are no JSON."""
    try:
        return ", ".join(str(value) for value in call.args_as_dict().values())
    except (ValueError, AssertionError):
        return str(call.args)


def _outcome(event: FunctionToolResultEvent) -> str:
    content = getattr(event.part, "content", None)
    if isinstance(content, list) and content and isinstance(content[0], Mapping):
        return f"refused: {sentence(str(content[0].get('msg')))[:70]}"
    if not isinstance(content, Mapping):
        return f"refused: {sentence(str(content).partition('.')[0])[:70]}"
    status, rows = content.get("status"), content.get("rows")
    if status != "data":
        return f"{str(status).replace('_', ' ')}: {sentence(str(content.get('text')))[:70]}"
    return f"{rows:,} row{'' if rows == 1 else 's'}" if isinstance(rows, int) else "data"
