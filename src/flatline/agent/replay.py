"""A recording as a model: it answers what was answered then, so that all else runs again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from flatline.agent.transcript import Recorded
from flatline.errors import FlatlineError


class RecordingEnds(FlatlineError):
    """Nothing more was recorded of this question."""


@dataclass
class Tape:
    """The responses of one question in their order."""

    recorded: Recorded
    played: list[ModelResponse] = field(default_factory=list)

    def model(self) -> FunctionModel:
        return FunctionModel(stream_function=self._stream, model_name="recording")

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        if len(self.played) >= len(self.recorded.responses):
            raise RecordingEnds(self.recorded.stopped or "the recording ends here")
        response = self.recorded.responses[len(self.played)]
        self.played.append(response)
        said = False
        for at, part in enumerate(response.parts):
            if isinstance(part, TextPart):
                said = True
                yield part.content
            elif isinstance(part, ToolCallPart):
                said = True
                yield {
                    at: DeltaToolCall(
                        name=part.tool_name,
                        json_args=part.args_as_json_str(),
                        tool_call_id=part.tool_call_id,
                    )
                }
        if not said:
            yield ""
