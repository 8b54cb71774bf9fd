"""A served run on loopback for tests."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import orjson

from flatline.serve.held import Held
from flatline.serve.listening import Patience, Server


@dataclass(frozen=True)
class Got:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def data(self) -> Any:
        assert self.status == 200, self.body
        return self.json["data"]


@contextmanager
def serving(
    held: Held, host: str = "127.0.0.1", *, token: str = "", patience: Patience | None = None
) -> Iterator[Server]:
    """A server on a free port until the block ends."""
    with Server(held, host, 0, token=token, patience=patience) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def get(
    server: Server,
    path: str,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    method: str = "GET",
) -> Got:
    """One request; a POST carries its fields in the body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    fields = urlencode(form or {}, doseq=True)
    said = dict(headers or {})
    if method == "POST":
        said.setdefault("Content-Type", "application/x-www-form-urlencoded")
        connection.request(method, path, fields, said)
    else:
        connection.request(method, f"{path}?{fields}" if fields else path, headers=said)
    answer = connection.getresponse()
    got = Got(answer.status, dict(answer.getheaders()), answer.read())
    connection.close()
    return got
