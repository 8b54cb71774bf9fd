"""Who may ask a served run, and how much of his time it takes."""

from __future__ import annotations

import gzip
import re
import socket
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flatline.errors import UsageError
from flatline.series.storage import MemoryStore, series_of
from flatline.serve import listening
from flatline.serve.held import Held
from flatline.serve.listening import Patience, Server
from serve.running import get, serving

STORE = MemoryStore(
    series_of([({"__name__": "up", "n": str(n)}, [(1000.0, 1.0)]) for n in range(200)])
)
TOKEN = "0123456789abcdef0123456789abcdef"
HASTY = Patience(head_s=0.3, body_s=0.3, idle_s=0.6)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(Held(STORE), patience=HASTY) as one:
        yield one


def raw(server: Server, *parts: bytes, pause_s: float = 0.0) -> bytes:
    """What comes back for bytes sent one after the other."""
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=5) as line:
        try:
            for part in parts:
                line.sendall(part)
                time.sleep(pause_s)
            line.shutdown(socket.SHUT_WR)
        except OSError:
            return b""
        found = b""
        try:
            while piece := line.recv(65536):
                found += piece
        except ConnectionError:
            pass
        return found


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "LOCALHOST:80", "[::1]:9099", "127.1.2.3"]
)
def test_a_name_of_this_machine_is_answered(server: Server, host: str) -> None:
    """With any port: behind an SSH tunnel it is another."""
    assert get(server, "/api/v1/labels", headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:9099", "", "localhost@evil", "1]"]
)
def test_a_page_whose_name_was_made_to_mean_us_is_refused(server: Server, host: str) -> None:
    """DNS rebinding: the browser sends the page's name."""
    got = get(server, "/api/v1/labels", headers={"Host": host})
    assert (got.status, got.json["errorType"]) == (403, "forbidden")


def test_no_other_origin_may_read(server: Server) -> None:
    """There are no CORS headers, and no answer to a preflight."""
    got = get(server, "/api/v1/labels", headers={"Origin": "http://evil.example"})
    assert not [name for name in got.headers if name.lower().startswith("access-control")]
    assert get(server, "/api/v1/labels", method="OPTIONS").status == 405


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(server: Server, method: str) -> None:
    """What is not reading is refused by the server itself."""
    assert get(server, "/api/v1/query", method=method).status in (405, 501)


def test_elsewhere_nobody_listens_without_a_token() -> None:
    """Nor with one that can be guessed."""
    for token in ("", "short"):
        with pytest.raises(UsageError, match="token"):
            Server(Held(STORE), "0.0.0.0", 0, token=token)


def test_with_a_token_only_who_has_it_is_answered() -> None:
    """Under any name."""
    with serving(Held(STORE), "0.0.0.0", token=TOKEN) as one:
        named = {"Host": "login1:9099"}
        assert get(one, "/api/v1/labels", headers=named).status == 401
        wrong = named | {"Authorization": f"Bearer {TOKEN[:-1]}0"}
        got = get(one, "/api/v1/labels", headers=wrong)
        assert (got.status, got.headers["WWW-Authenticate"]) == (401, 'Bearer realm="flatline"')
        assert get(
            one, "/api/v1/labels", headers=named | {"Authorization": f"Bearer {TOKEN}"}
        ).data


def test_an_answer_is_packed_where_that_is_understood(server: Server) -> None:
    """And says so; HEAD has no body."""
    form = {"query": "up", "time": "1000"}
    packed = get(server, "/api/v1/query", form, {"Accept-Encoding": "br, gzip;q=0.5"})
    plain = get(server, "/api/v1/query", form, {"Accept-Encoding": "gzip;q=0"})

    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert get(server, "/api/v1/query", form, method="HEAD").body == b""


HEAD = b"POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\n"
FORM = HEAD + b"Content-Type: application/x-www-form-urlencoded\r\n"


def test_a_connection_is_kept_for_the_next_request(server: Server) -> None:
    """Two requests sent at once get two answers."""
    one = b"GET /-/ready HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert raw(server, one + one).count(b"200 OK") == 2


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"414"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 101 + b"\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: " + b"a" * 900 + b"\r\n" * 99, b"200"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"505"),
        (HEAD + b"Content-Length: 1048577\r\n\r\n", b"413"),
        (HEAD + b"Content-Length: -1\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        (FORM + b"Content-Length: 7\r\n\r\nquery=1", b"200"),
        (FORM + b"Content-Length: 2001\r\n\r\n" + b"a&" * 1000 + b"b", b"400"),
    ],
)  # fmt: skip
def test_a_request_is_bounded(server: Server, sent: bytes, status: bytes) -> None:
    """Its line, its headers, its body and its fields."""
    got = raw(server, sent)
    assert (got[:9], got[9:12]) == (b"HTTP/1.1 ", status)


@given(
    method=st.sampled_from([b"GET", b"POST", b"HEAD"]),
    path=st.sampled_from(
        [b"", b"query", b"query_range", b"series", b"label/", b"label/%ff/values"]
    ),
    rest=st.binary(max_size=60).map(lambda raw: re.sub(rb"[\r\n ]", b"%", raw)),
)
@settings(deadline=None, max_examples=150)
def test_whatever_is_asked_gets_an_answer(
    server: Server, method: bytes, path: bytes, rest: bytes
) -> None:
    """In the API's form, never an error of ours."""
    line = method + b" /api/v1/" + path + rest + b" HTTP/1.0\r\n"
    got = raw(server, line + b"Host: localhost\r\n\r\n")
    assert got[9:12] in (b"200", b"400", b"404", b"405", b"422"), (line, got[:200])


@pytest.mark.parametrize("path", [b"//[", b"http://[/api/v1/labels", b"/api/v1/labels#[?x", b"*"])
def test_a_path_that_is_none_is_not_found(server: Server, path: bytes) -> None:
    """Or what stands before its fragment."""
    got = raw(server, b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert got[9:12] in (b"404", b"200")


def test_a_request_that_dribbles_in_is_dropped(server: Server) -> None:
    """A byte now and then does not extend the time; meanwhile others are answered."""
    began = time.monotonic()
    assert raw(server, *[b"G"] * 40, pause_s=0.05) == b""
    assert get(server, "/-/healthy").status == 200
    assert raw(server, FORM + b"Content-Length: 99\r\n\r\n", *[b"q"] * 40, pause_s=0.05) == b""
    assert time.monotonic() - began < 10


def test_connections_that_say_nothing_are_closed_and_counted() -> None:
    """The number open at once is bounded, and one that ends makes room."""
    with serving(Held(STORE), patience=HASTY) as one:
        address = ("127.0.0.1", one.server_address[1])
        idle = [socket.create_connection(address, timeout=5) for _ in range(listening.CONNECTIONS)]
        time.sleep(0.2)
        with socket.create_connection(address, timeout=5) as refused:
            assert refused.recv(1) == b""
        assert all(line.recv(1) == b"" for line in idle)  # after idle_s
        for line in idle:
            line.close()
        time.sleep(0.1)
        assert get(one, "/-/healthy").status == 200


def test_a_port_that_is_taken_is_told(server: Server) -> None:
    """With what to do."""
    with pytest.raises(UsageError, match="name another port"):
        Server(Held(STORE), "127.0.0.1", server.server_address[1])
