"""
A server on loopback that speaks two protocols of language models, and misbehaves as it is told.

OpenAI's chat completions at `/v1/chat/completions` and Anthropic's messages at `/v1/messages`,
streamed, as their references describe them.  Each request takes the next `Act`; the last one is
repeated.  What was asked is kept, headers too.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Act:
    """What one request gets: a text or calls of tools, or a refusal, or trouble on the way."""

    text: str = ""
    calls: Sequence[tuple[str, Any]] = ()
    stop: str = "stop"
    status: int = 200
    message: str = "refused"
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut_after: int | None = None
    """Events after which the connection is closed."""
    usage: bool = True


class WireServer:
    """Answers on a free port until it is closed."""

    def __init__(self, *acts: Act) -> None:
        self.acts = list(acts)
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:
                pass

            def do_POST(self) -> None:
                outer._answer(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _next(self) -> Act:
        with self._lock:
            return self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("content-length", 0)))
        self.asked.append(json.loads(body))
        self.headers.append({k.lower(): v for k, v in request.headers.items()})
        self.paths.append(request.path)
        act = self._next()
        if act.delay_s:
            time.sleep(act.delay_s)
        with contextlib.suppress(OSError):
            if act.status != 200:
                _refuse(request, act)
                return
            anthropic = request.path.partition("?")[0].endswith("/messages")
            _stream(request, list((_anthropic if anthropic else _openai)(act)), act.cut_after)


def _refuse(request: BaseHTTPRequestHandler, act: Act) -> None:
    kinds = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
    kind = kinds.get(act.status, "invalid_request_error" if act.status < 500 else "api_error")
    error = {"type": kind, "message": act.message}
    data = json.dumps({"type": "error", "error": error}).encode()
    request.send_response(act.status)
    for name, value in act.headers.items():
        request.send_header(name, value)
    request.send_header("content-type", "application/json")
    request.send_header("content-length", str(len(data)))
    request.end_headers()
    request.wfile.write(data)


def _stream(request: BaseHTTPRequestHandler, events: list[str], cut_after: int | None) -> None:
    request.send_response(200)
    request.send_header("content-type", "text/event-stream")
    request.send_header("transfer-encoding", "chunked")
    request.end_headers()
    for number, event in enumerate(events):
        if cut_after is not None and number >= cut_after:
            request.close_connection = True
            request.connection.close()
            return
        data = event.encode()
        request.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        request.wfile.flush()
    request.wfile.write(b"0\r\n\r\n")


def _pieces(text: str) -> Iterator[str]:
    for at in range(0, len(text), 64):
        yield text[at : at + 64]


def _args(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _openai(act: Act) -> Iterator[str]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        made = {"id": "c1", "object": "chat.completion.chunk", "created": 1_770_000_000,
                "model": "wire", "choices": [choice]}  # fmt: skip
        return f"data: {json.dumps(made)}\n\n"

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(act.text):
        yield chunk({"content": piece})
    for at, (name, arguments) in enumerate(act.calls):
        function = {"name": name, "arguments": ""}
        yield chunk({"tool_calls": [
            {"index": at, "id": f"call_{time.monotonic_ns()}_{at}", "type": "function",
             "function": function}]})  # fmt: skip
        for piece in _pieces(_args(arguments)):
            yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if act.calls else act.stop)
    if act.usage:
        usage = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}
        made = {"id": "c1", "object": "chat.completion.chunk", "created": 1_770_000_000,
                "model": "wire", "choices": [], "usage": usage}  # fmt: skip
        yield f"data: {json.dumps(made)}\n\n"
    yield "data: [DONE]\n\n"


def _anthropic(act: Act) -> Iterator[str]:
    def event(kind: str, **fields: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

    usage = {"input_tokens": 1_000, "output_tokens": 1}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "wire", "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": usage}  # fmt: skip
    yield event("message_start", message=message)
    at = 0
    if act.text:
        yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for piece in _pieces(act.text):
            delta = {"type": "text_delta", "text": piece}
            yield event("content_block_delta", index=0, delta=delta)
        yield event("content_block_stop", index=0)
        at = 1
    for number, (name, arguments) in enumerate(act.calls, at):
        block = {"type": "tool_use", "id": f"tu_{time.monotonic_ns()}_{number}", "name": name,
                 "input": {}}  # fmt: skip
        yield event("content_block_start", index=number, content_block=block)
        for piece in _pieces(_args(arguments)):
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield event("content_block_delta", index=number, delta=delta)
        yield event("content_block_stop", index=number)
    ends = {"stop": "end_turn", "length": "max_tokens"}
    stop = "tool_use" if act.calls else ends[act.stop]
    yield event("message_delta", delta={"stop_reason": stop, "stop_sequence": None},
                usage={"output_tokens": 100})  # fmt: skip
    yield event("message_stop")


@contextlib.contextmanager
def wire(*acts: Act) -> Iterator[WireServer]:
    server = WireServer(*acts)
    try:
        yield server
    finally:
        server.close()
