"""What went wrong with a model, in words of somebody who can act on it; keys never stand there."""

from __future__ import annotations

import re

from pydantic_ai.exceptions import (
    IncompleteToolCall,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelUnavailableError,
    OutputTokenLimitExceeded,
    RunTimedOut,
    UnexpectedModelBehavior,
    UserError,
)

from flatline.agent.budget import Budget, BudgetSpent
from flatline.agent.endpoint import Endpoint
from flatline.redact import MASK, mask
from flatline.wording.untrusted import sentence

DETAIL_CHARS = 200
_VALIDATION = re.compile(
    r"\d+ validation errors? for |\s*\[type=[^\]]{0,200}\]?|\s*For further information visit \S*"
)
_TABLE: tuple[tuple[type[Exception], str], ...] = (
    (ModelAuthenticationError, "the key was refused: check it, and that it may use this model"),
    (ModelQuotaExceededError, "the account's quota is used up"),
    (ModelContextWindowExceededError, "the conversation is longer than the model's context:"
     " lower --max-tokens or name a model with a larger one"),
    (ModelNotFoundError, "it knows no such model or path: check --model and --base-url"),
    (ModelUnavailableError, "it is overloaded: try later"),
    (ModelRequestTimeout, "it did not answer in time"),
)  # fmt: skip


def said(fault: BaseException, endpoint: Endpoint | None, budget: Budget) -> str:
    """One sentence for a person. The endpoint's own words are cut, masked and one line."""
    where = endpoint.where if endpoint else "the model"
    key = endpoint.key if endpoint else None
    if isinstance(fault, BudgetSpent):
        return f"the budget ended it: {fault}"
    if isinstance(fault, RunTimedOut | TimeoutError):
        return f"the budget ended it: the {budget.seconds:g} seconds are over (--max-seconds)"
    if isinstance(fault, ModelAPIError):
        return _api(fault, where, key)
    if isinstance(fault, OutputTokenLimitExceeded | IncompleteToolCall):
        return f"{where}: its answer was cut off at the most tokens one call may have"
    if isinstance(fault, UnexpectedModelBehavior):
        return f"{where} did not keep to what it was asked for: {_clean(_root(fault), key)}"
    if isinstance(fault, UserError):
        return f"{where}: {_clean(fault, key)}"
    if isinstance(fault, OSError) or type(fault).__module__.startswith(("httpx", "httpcore")):
        return f"{where}: the connection broke off ({type(fault).__name__})"
    return f"{where}: {type(fault).__name__}: {_clean(fault, key)}"


def _api(fault: ModelAPIError, where: str, key: str | None) -> str:
    status = f" (HTTP {fault.status_code})" if isinstance(fault, ModelHTTPError) else ""
    for kind, words in _TABLE:
        if isinstance(fault, kind):
            return f"{where}{status}: {words}{_detail(fault, key)}"
    if isinstance(fault, ModelRateLimitError):
        after = f"; it says to wait {fault.retry_after:g} s" if fault.retry_after else ""
        return f"{where}{status}: too many requests{after}{_detail(fault, key)}"
    if isinstance(fault, ModelConnectionError):
        begun = "the connection broke off in the middle of its answer"
        broke = fault.in_stream or fault.phase == "read"
        return f"{where}: {begun if broke else 'it cannot be reached'}{_detail(fault, key)}"
    return f"{where}{status}: it failed{_detail(fault, key)}"


def _detail(fault: ModelAPIError, key: str | None) -> str:
    body = fault.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        body = inner.get("message") if isinstance(inner, dict) else inner
    words = _clean(body if body is not None else "", key)
    return f": {words}" if words else ""


def _root(fault: BaseException) -> BaseException:
    cause = fault.__cause__
    return cause if cause is not None and str(cause) and "retr" in str(fault) else fault


def _clean(words: object, key: str | None) -> str:
    text = str(words)[: 8 * DETAIL_CHARS]
    if key:
        text = text.replace(key, MASK)
    text = _VALIDATION.sub("", text)
    text = re.sub(r"<[^<>]{0,200}>", " ", text) if text.lstrip().startswith("<") else text
    return sentence(mask(text))[:DETAIL_CHARS]
