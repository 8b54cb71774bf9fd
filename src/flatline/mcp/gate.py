"""Over HTTP only who has the token is answered."""

from __future__ import annotations

import hmac
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from flatline.errors import UsageError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
SHORTEST_TOKEN = 20
LOOPBACK = ("127.0.0.1", "localhost", "::1")
LARGEST_REQUEST_BYTES = 1 << 20
PATH = "/mcp"


class Gate:
    """Refuses every request without `Authorization: Bearer TOKEN` before anything reads it."""

    def __init__(self, app: App, token: str) -> None:
        """Raises `UsageError` for a token that can be guessed."""
        if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
            raise UsageError(
                f"the token has to have {SHORTEST_TOKEN} printable ASCII characters at least;"
                " `openssl rand -hex 32` makes one"
            )
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._known(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await _refuse(send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _known(self, scope: Message) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._wanted)


async def _refuse(send: Send) -> None:
    body = b'{"error":"a bearer token is needed"}'
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"www-authenticate", b'Bearer realm="flatline"'),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def application(server: MCPServer, host: str, token: str) -> App:
    """The whole application: without state between requests, JSON answers, behind the gate."""
    security = None
    if host not in LOOPBACK:  # its name is not known here; whoever has the token may come
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=LARGEST_REQUEST_BYTES,
        transport_security=security,
        host=host,
    )
    return Gate(app, token)


def serve(server: MCPServer, host: str, port: int, token: str) -> None:
    """Answers until it is interrupted. Raises `UsageError` where it cannot listen there."""
    app = application(server, host, token)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as fault:
        raise UsageError(f"--http: {host}:{port}: {fault.strerror or fault}") from fault
    with listening:
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[listening])
