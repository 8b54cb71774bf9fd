"""
An investigation line by line as JSON: what was asked, answered, called and concluded.

Secrets are masked in every string, and the key that was used wherever it stands.  What a model
answered is enough to run the whole again: tools and checks are executed anew (`replay`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    ThinkingPart,
)

from flatline import __version__
from flatline.errors import UsageError
from flatline.redact import MASK, mask

KIND, VERSION = "flatline-transcript", 1
LARGEST_BYTES = 64 << 20


class Recorder:
    """Writes as it happens, so that what was cut off is kept; nowhere where no file is named."""

    def __init__(self, path: Path | None, key: str | None = None) -> None:
        """Raises `UsageError` where the file cannot be made."""
        self._key = key
        self._file: TextIO | None = None
        if path is None:
            return
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError as fault:
            raise UsageError(f"--save {path}: {fault.strerror or fault}") from fault
        self._file = os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace")

    def put(self, kind: str, **fields: Any) -> None:
        if self._file is not None:
            line = json.dumps(self._masked({"kind": kind, **fields}), ensure_ascii=False)
            self._file.write(line + "\n")
            self._file.flush()

    def response(self, round_: int, response: ModelResponse) -> None:
        """What the model answered, whole; its thinking without the signature of its provider."""
        made: Any = ModelMessagesTypeAdapter.dump_python([response], mode="json")[0]
        for part in made.get("parts", ()):
            part.pop("signature", None)
        for name in ("provider_details", "provider_response_id", "provider_url"):
            made.pop(name, None)
        self.put("response", round=round_, response=made)

    def _masked(self, node: Any) -> Any:
        if isinstance(node, str):
            text = node.replace(self._key, MASK) if self._key else node
            return mask(text)
        if isinstance(node, Mapping):
            return {key: self._masked(value) for key, value in node.items()}
        if isinstance(node, list | tuple):
            return [self._masked(value) for value in node]
        return node

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


@dataclass(slots=True)
class Recorded:
    """One question of a recording: what the model answered, what tools gave, how it ended."""

    text: str
    rounds: int
    responses: list[ModelResponse] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    answer: Mapping[str, Any] | None = None
    stopped: str | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """A recording: of which run, of which model, and every question."""

    run: str
    model: str
    masked: bool
    questions: Sequence[Recorded]


def read(path: Path) -> Transcript:
    """Raises `UsageError` for what is no transcript of this version."""
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise UsageError(f"{path}: no transcript has {path.stat().st_size:,} bytes")
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"{path}: {getattr(fault, 'strerror', None) or fault}") from fault
    try:
        rows = [json.loads(line) for line in lines if line.strip()]
        head = rows[0]
        if head.get("kind") != KIND or head.get("version") != VERSION:
            raise UsageError(
                f"{path} is no transcript of `flatline ask --save` (version {VERSION})"
            )
        return Transcript(
            run=str(head["run"]),
            model=str(head["model"]),
            masked=bool(head["masked"]),
            questions=_questions(rows[1:]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as fault:
        raise UsageError(f"{path} is no transcript, or a damaged one: {fault}"[:300]) from fault


def _questions(rows: Sequence[Mapping[str, Any]]) -> list[Recorded]:
    found: list[Recorded] = []
    for row in rows:
        match row["kind"]:
            case "question":
                found.append(Recorded(str(row["text"]), int(row["rounds"])))
            case "response":
                found[-1].responses.append(_response(row["response"]))
            case "tool":
                found[-1].tools.append(str(row["digest"]))
            case "answer":
                found[-1].answer = row["reasoning"]
                found[-1].stopped = row["reasoning"].get("stopped")
            case _:
                continue
    return found


def _response(made: Any) -> ModelResponse:
    (message,) = ModelMessagesTypeAdapter.validate_python([made])
    if not isinstance(message, ModelResponse):
        raise TypeError("a response is none")
    message.parts = [part for part in message.parts if not isinstance(part, ThinkingPart)]
    return message


def head(run: str, model: str, where: str, masked: bool) -> dict[str, Any]:
    """The first line."""
    return {
        "version": VERSION,
        "flatline": __version__,
        "run": run,
        "model": model,
        "where": where,
        "masked": masked,
    }
