"""A model within a budget: every call is counted first, and made again where that helps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
)
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from flatline.agent.budget import CHARS_PER_TOKEN, Budget

TRIES = 3
WAITS_S = (1.0, 4.0)
Tell = Callable[[str], None]
Keep = Callable[[StreamedResponse], None]


class Metered(WrapperModel):
    """
    The wrapped model; `BudgetSpent` before a call that would go beyond the budget.

    A call that the endpoint refuses for now (429, 500, 502, 503, 529, no connection) is made
    again, after as long as it says, where the budget's seconds allow it; never one whose answer
    had begun.
    """

    def __init__(self, wrapped: Model, budget: Budget, tell: Tell, kept: Keep) -> None:
        """`tell` hears of calls made again, `kept` of every response that came whole."""
        super().__init__(wrapped)
        self._budget, self._tell, self._kept = budget, tell, kept

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async with self.request_stream(
            messages, model_settings, model_request_parameters
        ) as stream:
            async for _ in stream:
                pass
            return stream.get()

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        chars = len(ModelMessagesTypeAdapter.dump_json(messages))
        most = self._budget.before(chars)
        settings: ModelSettings = {**(model_settings or {}), "max_tokens": most}
        if self._budget.last_of_round and model_request_parameters.function_tools:
            settings["tool_choice"] = "none"
        async with AsyncExitStack() as stack:
            stream = await self._opened(
                stack, messages, settings, model_request_parameters, run_context
            )
            try:
                yield stream
                self._kept(stream)
            finally:
                self._count(stream, chars)

    def _count(self, stream: StreamedResponse, chars: int) -> None:
        """What the endpoint says it took; an estimate where it says nothing."""
        usage = stream.usage
        given = usage.input_tokens or chars // CHARS_PER_TOKEN
        made = usage.output_tokens or _chars(stream.get()) // CHARS_PER_TOKEN
        self._budget.spend(given, made)

    async def _opened(
        self,
        stack: AsyncExitStack,
        messages: list[ModelMessage],
        settings: ModelSettings,
        parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None,
    ) -> StreamedResponse:
        for attempt in range(TRIES):
            try:
                return await stack.enter_async_context(
                    self.wrapped.request_stream(messages, settings, parameters, run_context)
                )
            except ModelAPIError as fault:
                wait_s = self._wait(fault, attempt)
                if wait_s is None:
                    self._budget.spend(0, 0)
                    raise
                self._tell(f"{_reason(fault)}; again in {wait_s:g} s")
                await asyncio.sleep(wait_s)
        raise AssertionError("the last try returns or raises")

    def _wait(self, fault: ModelAPIError, attempt: int) -> float | None:
        """Seconds to wait; None where it does not help, or takes longer than there is time."""
        passing = isinstance(
            fault,
            ModelRateLimitError | ModelUnavailableError | ModelServerError | ModelConnectionError,
        )
        if not passing or fault.in_stream or attempt + 1 >= TRIES:
            return None
        wait_s = fault.retry_after if fault.retry_after is not None else WAITS_S[attempt]
        return wait_s if 0 <= wait_s < self._budget.seconds_left else None


def _reason(fault: ModelAPIError) -> str:
    if isinstance(fault, ModelHTTPError):
        return f"the endpoint answers {fault.status_code}"
    return "the endpoint does not answer"


def _chars(response: ModelResponse) -> int:
    return sum(len(str(getattr(part, "content", "") or getattr(part, "args", "") or ""))
               for part in response.parts)  # fmt: skip
