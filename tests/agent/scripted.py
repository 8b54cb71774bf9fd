"""Models that say what a test wrote down, and a bench over a run that lies beside the code."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

import flatline
from flatline.agent.bench import Bench, Extras
from flatline.agent.budget import Budget
from flatline.agent.conversation import Conversation
from flatline.agent.transcript import Recorder
from flatline.claims import Names, Rerun
from flatline.collect import Request
from flatline.model.reasoning import Reasoning

DEMOS = Path(flatline.__file__).parent / "demo"
STOPPED = DEMOS / "one-rank-stopped"
Turn = str | list[tuple[str, Any]]
"""What a model answers once: a text, or calls of tools (name, arguments)."""

FIRST = """<reasoning>
<proposition id="p1" cites="e1 t1">Rank 3 stopped and the others waited for it.</proposition>
</reasoning>"""
SECOND = """<reasoning>
<critique id="c1" on="p1" cites="e2">The launcher names another rank first.</critique>
<refinement id="r1" on="p1 c1" cites="e1">Those that report the wait are victims.</refinement>
</reasoning>"""


def third(family: str = "C2", claims: Sequence[dict[str, Any]] = (), prose: str = "") -> str:
    told = "".join(f"<claim>{json.dumps(claim)}</claim>" for claim in claims)
    return f"""<reasoning>
<verification id="v1" on="r1" cites="e1" holds="yes">Nothing of rank 3 follows.</verification>
</reasoning>
<answer family="{family}">{told}<prose>{prose or "It waited."}</prose></answer>"""


class Heard:
    """Keeps what a listener is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def round(self, number: int, title: str) -> None:
        self.lines.append(f"round {number} {title}")

    def called(self, tool: str, asked: str) -> None:
        self.lines.append(f"called {tool} {asked}")

    def found(self, tool: str, what: str) -> None:
        self.lines.append(f"found {tool} {what}")

    def wrote(self, chars: int) -> None: ...

    def note(self, text: str) -> None:
        self.lines.append(f"note {text}")


class Script:
    """Plays turns in their order and keeps what it was shown."""

    def __init__(self, *turns: Turn | BaseException) -> None:
        self.turns = list(turns)
        self.shown: list[list[ModelMessage]] = []
        self.tools: list[str] = []

    def model(self) -> Model:
        return FunctionModel(stream_function=self._stream, model_name="script")

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        self.shown.append(list(messages))
        self.tools = [tool.name for tool in info.function_tools]
        turn = self.turns.pop(0) if self.turns else "nothing more"
        if isinstance(turn, BaseException):
            raise turn
        if isinstance(turn, str):
            for at in range(0, len(turn), 40):
                yield turn[at : at + 40]
            return
        for at, (name, arguments) in enumerate(turn):
            args = arguments if isinstance(arguments, str) else json.dumps(arguments)
            yield {at: DeltaToolCall(name=name, json_args=args, tool_call_id=f"call-{name}-{at}")}


class Forever(Script):
    """Calls the same tool again and again."""

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        self.shown.append(list(messages))
        yield {
            0: DeltaToolCall(name="overview", json_args="{}", tool_call_id=f"c{len(self.shown)}")
        }


def bench(target: Path = STOPPED, extras: Extras | None = None, **request: Any) -> Bench:
    return Bench.of(Request((str(target),), **request), extras or Extras())


def conversation(
    script: Script, on: Bench | None = None, budget: Budget | None = None, **more: Any
) -> Conversation:
    on = on or bench()
    return Conversation(
        bench=on,
        model=script.model(),
        budget=budget or Budget(),
        ask=Rerun.of(on.document, on.request.targets),
        names=more.pop("names", Names.of(on.document, on.facts.hosts)),
        listener=more.pop("listener", Heard()),
        recorder=more.pop("recorder", Recorder(None)),
        **more,
    )


def asked(talk: Conversation, question: str = "why did it stop?") -> Reasoning:
    return asyncio.run(talk.answered(question))
