"""
Connections: who may come, how much of each request is read, and for how long.

The standard library's server with threads, and what it lacks for a hostile client: a request's
head and body each have to be there within a time that does not begin anew with each byte, are
bounded in size, and no more than so many connections are open at once.  A browser on the same
machine is kept out by the Host header: a page whose name was made to mean 127.0.0.1 still sends
its own name.  No answer allows another origin to read it.
"""

from __future__ import annotations

import gzip
import hmac
import http.client
import io
import socket
import sys
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import orjson

from flatline.errors import UsageError
from flatline.serve import api
from flatline.serve.asked import Form, Refused, form_of
from flatline.serve.held import Held

SHORTEST_TOKEN = 20
HEAD_BYTES = 64 << 10
BODY_BYTES = 1 << 20
LINGER_S = 0.5
CONNECTIONS = 64
"""A dashboard of Grafana opens some six at a time."""
PACKED_FROM_BYTES = 1024
JSON, TEXT = "application/json", "text/plain; charset=utf-8"
SECURITY = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'",
}


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a request's head may take and its body, the pause between two requests, taking
    an answer, and a query (two minutes, as `--query.timeout` of Prometheus)."""

    head_s: float = 10.0
    body_s: float = 30.0
    idle_s: float = 60.0
    write_s: float = 120.0
    query_s: float = 120.0


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Server(ThreadingHTTPServer):
    """Answers about one target. Raises UsageError where it may not, or cannot, listen there."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(
        self,
        held: Held,
        host: str,
        port: int,
        *,
        token: str = "",
        patience: Patience | None = None,
    ) -> None:
        self.held = held
        self.patience = patience or Patience()
        self.local = is_loopback(host)
        self.wanted = _wanted(token, self.local)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        try:
            super().__init__((host, port), Handler)
        except (OSError, OverflowError) as fault:
            reason = getattr(fault, "strerror", None) or str(fault)
            raise UsageError(f"--listen {host}:{port}: {reason}; name another port") from fault

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        shown = str(host)
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """One connection gets a thread while there are few enough; else it is closed at once."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news; anything else is a fault of ours, in one line."""
        fault = sys.exception() if hasattr(sys, "exception") else sys.exc_info()[1]
        if not isinstance(fault, OSError):
            sys.stderr.write(f"flatline: a request failed: {type(fault).__name__}\n")


def _wanted(token: str, local: bool) -> bytes:
    if not token:
        if local:
            return b""
        raise UsageError(
            "others could reach it there: give a token (--token-file FILE or"
            " FLATLINE_SERVE_TOKEN), or listen on 127.0.0.1 and use an SSH tunnel"
        )
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise UsageError(
            f"the token has to have {SHORTEST_TOKEN} printable ASCII characters at least;"
            " `openssl rand -hex 32` makes one"
        )
    return f"Bearer {token}".encode()


class _Timed(io.RawIOBase):
    """What a client sends, as long as it is here by `until` and there is `room` for it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.until = 0.0
        self.room = 0

    def readable(self) -> bool:
        return True

    def allow(self, seconds: float, size: int) -> None:
        self.until, self.room = monotonic() + seconds, size

    def readinto(self, buffer: Any) -> int:
        if self.room <= 0:
            raise http.client.LineTooLong("the request")
        left = self.until - monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        got = self._connection.recv_into(buffer)
        self.room -= got
        return got


class Handler(BaseHTTPRequestHandler):
    """One connection; its requests one after the other."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "flatline", ""

    def setup(self) -> None:
        super().setup()
        self._timed = _Timed(self.connection)
        self._said = io.BufferedReader(self._timed, 16 << 10)
        self.rfile = self._said

    def handle_one_request(self) -> None:
        """As the standard library does, within bounds of time and size."""
        try:
            patience = self.server.patience
            self._timed.allow(patience.idle_s, HEAD_BYTES)
            if not self._said.peek(1):
                self.close_connection = True
                return
            self._timed.until = monotonic() + patience.head_s
            self.raw_requestline = self.rfile.readline(HEAD_BYTES)
            if not self.raw_requestline.endswith(b"\n"):
                self.requestline = self.command = ""
                self.send_error(414)
            elif self.parse_request():
                self._timed.allow(patience.body_s, BODY_BYTES + 1)
                self._answer()
                self.wfile.flush()
        except http.client.LineTooLong:
            self.requestline = self.command = ""
            self.send_error(431)
        except (TimeoutError, ConnectionError):
            self.close_connection = True

    def send_error(
        self, code: int, message: str | None = None, explain: str | None = None
    ) -> None:
        """What the standard library says of a request that is none, as the API would."""
        self.close_connection = True
        self.request_version = "HTTP/1.1"  # else it would be taken for 0.9, which has no headers
        reason = message or http.client.responses.get(code, "the request is wrong")
        document = {"status": "error", "errorType": "bad_data", "error": reason}
        self._send(code, orjson.dumps(document), JSON)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: queries may hold what is nobody else's business."""

    def finish(self) -> None:
        """What was sent and not read would take the answer with it as the connection closes, so
        a little of it is read."""
        super().finish()
        try:
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(LINGER_S)
            until, left = monotonic() + 2 * LINGER_S, BODY_BYTES
            while left > 0 and monotonic() < until and (got := self.connection.recv(65_536)):
                left -= len(got)
        except OSError:
            pass

    # --- an answer ---

    def _answer(self) -> None:
        try:
            path, form = self._admitted()
        except Refused as fault:
            self.close_connection = True  # its body was not read
            self._document(api.refusal(fault.kind, str(fault)))
            return
        if path in ("/-/healthy", "/-/ready"):
            self._send(200, b"the run is served\n", TEXT)
        elif path == "/":
            self._send(200, b"flatline serve: Prometheus's HTTP API is below /api/v1/\n", TEXT)
        elif path.startswith(api.PREFIX):
            held, within_s = self.server.held, self.server.patience.query_s
            self._document(self._safely(held, path, form, within_s))
        else:
            self._document(api.refusal("not_found", f"{path[:200]} is not answered here"))

    def _safely(self, held: Held, path: str, form: Form, within_s: float) -> api.Answer:
        method = "GET" if self.command == "HEAD" else self.command
        try:
            return api.answer(held, path, method, form, within_s)
        except Exception as fault:  # noqa: BLE001 - the rim: one request must not end the others
            return api.refusal("internal", f"{type(fault).__name__}: {fault}"[:300])

    def _admitted(self) -> tuple[str, Form]:
        """Path and fields of a request that may be answered. Raises Refused."""
        if self.command not in ("GET", "HEAD", "POST"):
            raise Refused("method_not_allowed", f"{self.command[:20]} is not answered: read only")
        hosts = self.headers.get_all("Host") or []
        if self.server.local and not (len(hosts) == 1 and _names_loopback(hosts[0])):
            raise Refused(
                "forbidden", "ask by 127.0.0.1 or localhost: the Host header names another"
            )
        wanted = self.server.wanted
        given = [
            said.encode("utf-8", "replace") for said in self.headers.get_all("Authorization") or []
        ]
        if wanted and not (len(given) == 1 and hmac.compare_digest(given[0], wanted)):
            raise Refused("unauthorized", "a bearer token is needed")
        body = self._body()
        path, _, query = self.path.partition("#")[0].partition("?")
        return path, form_of(query, body)

    def _body(self) -> str:
        """The fields a POST carries in its body. Raises Refused."""
        if self.headers.get("Transfer-Encoding"):
            raise Refused("bad_data", "the body has to come with its length, not in pieces")
        said = self.headers.get_all("Content-Length") or ["0"]
        if len(said) > 1 or not said[0].isascii() or not said[0].strip().isdecimal():
            raise Refused("bad_data", "the length of the body cannot be read")
        if len(said[0]) > 12 or int(said[0]) > BODY_BYTES:
            raise Refused("too_large", f"a body of more than {BODY_BYTES >> 20} MiB")
        data = self.rfile.read(int(said[0]))
        kind = self.headers.get_content_type()
        return data.decode("utf-8", "replace") if kind == FORM else ""

    def _document(self, answer: api.Answer) -> None:
        self._send(answer.status, orjson.dumps(answer.document), JSON)

    def _send(self, status: int, body: bytes, kind: str) -> None:
        headers = getattr(self, "headers", None)
        packed = headers is not None and len(body) >= PACKED_FROM_BYTES and _takes_gzip(headers)
        if packed:
            body = gzip.compress(body, compresslevel=1, mtime=0)
        self.send_response(status)
        for name, value in SECURITY.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Vary", "Accept-Encoding")
        if packed:
            self.send_header("Content-Encoding", "gzip")
        if status == 401:
            self.send_header("WWW-Authenticate", 'Bearer realm="flatline"')
        if self.close_connection:
            self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(body)))
        self.connection.settimeout(self.server.patience.write_s)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


FORM = "application/x-www-form-urlencoded"


def _names_loopback(host: str) -> bool:
    """Whether a Host header, with its port or without, is a name of this machine alone."""
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    return name is not None and is_loopback(name)


def _takes_gzip(headers: Any) -> bool:
    for part in ",".join(headers.get_all("Accept-Encoding") or []).split(","):
        name, _, weight = part.partition(";")
        if name.strip().lower() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
