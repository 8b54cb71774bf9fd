"""Standard input and output, and HTTP with a token, with the official client."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from cli.calls import environment, flatline_process
from flatline.errors import UsageError
from flatline.mcp.gate import Gate
from mcp_server.asking import DEMOS

TOKEN = "a-token-of-more-than-twenty-characters"
ASK = ("diagnose", {"target": "rank-killed/run"})


def test_it_speaks_on_standard_input_and_output() -> None:
    """Started by the client, as an editor does it."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "flatline", "mcp", "--root", str(DEMOS)],
        env=environment(),
    )

    async def ask() -> object:
        async with Client(server) as client:
            return (await client.call_tool(*ASK)).structured_content

    assert anyio.run(ask)["code"] == "A2"


@pytest.fixture
def served() -> Iterator[str]:
    """The address of a server on this machine's loopback."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "flatline", "mcp", "--root", str(DEMOS), "--http", str(port)],
        env=environment(FLATLINE_MCP_TOKEN=TOKEN),
        stderr=subprocess.PIPE,
    )
    try:
        for _ in range(200):
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_with_the_token_http_answers_the_same(served: str) -> None:
    """Without state between requests."""

    async def ask() -> object:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(served, http_client=http)) as client,
        ):
            return (await client.call_tool(*ASK)).structured_content

    assert anyio.run(ask)["code"] == "A2"


def test_without_the_token_http_answers_nothing(served: str) -> None:
    """Neither a missing, a wrong, a doubled nor a half token, on any path or method."""
    wrong = [
        [],
        [("Authorization", "Bearer wrong")],
        [("Authorization", TOKEN)],
        [("Authorization", f"Bearer {TOKEN[:-1]}")],
        [("Authorization", f"Bearer {TOKEN}"), ("Authorization", f"Bearer {TOKEN}")],
    ]
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for headers in wrong:
        answer = httpx2.post(served, json=body, headers=headers)
        assert answer.status_code == 401
        assert "tools" not in answer.text
    assert httpx2.get(served).status_code == 401
    assert httpx2.get(served.removesuffix("/mcp") + "/other").status_code == 401


def test_a_page_of_another_site_is_refused(served: str) -> None:
    """Its name is not this machine's, whatever it knows."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert httpx2.post(served, json=body, headers=headers).status_code == 421


@pytest.mark.parametrize("token", ["", "short", "ä" * 30, "a b\n" * 10])
def test_a_token_that_can_be_guessed_is_refused(token: str) -> None:
    """It is the only lock."""

    async def nothing(*_: object) -> None: ...

    with pytest.raises(UsageError, match="openssl rand"):
        Gate(nothing, token)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--http", "8722"], "token"),
        (["--http", "nonsense port"], "HOST:PORT"),
        (["--http", "8722", "--token-file", "none-there"], "none-there"),
        (["--root", "none-there"], "--root"),
    ],
)
def test_a_wrong_call_is_told_before_anything_is_served(args: list[str], said: str) -> None:
    """Status 2, and how to call it."""
    done = flatline_process("mcp", *args)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """It would be no lock."""
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o644)
    done = flatline_process("mcp", "--http", "8722", "--token-file", str(file))
    assert done.returncode == 2
    assert "chmod 600" in done.stderr


def test_a_port_that_is_taken_is_told() -> None:
    """Status 2, never the 1 of a fault that was found."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "flatline", "mcp", "--http", port],
            capture_output=True, encoding="utf-8", check=False, timeout=60,
            env=environment(FLATLINE_MCP_TOKEN=TOKEN),
        )  # fmt: skip
    assert done.returncode == 2
    assert "in use" in done.stderr


def test_without_the_sdk_it_says_what_to_install() -> None:
    """The core brings no package of it; its help works all the same."""
    hidden = (
        "import sys; sys.modules.update(dict.fromkeys(('mcp', 'mcp_types', 'pydantic'))); "
        "from flatline.cli import main; main(sys.argv[1:])"
    )
    for args, status, said in (([], 2, "pip install 'flatline[mcp]'"), (["--help"], 0, "--root")):
        done = subprocess.run(
            [sys.executable, "-c", hidden, "mcp", *args],
            capture_output=True, encoding="utf-8", env=environment(), check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == status
        assert said in done.stdout + done.stderr
