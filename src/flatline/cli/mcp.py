"""
Let a model ask: Flatline as a server of the Model Context Protocol.

Tools to diagnose a run, show its evidence, search its logs, list jobs and
check every citation; nothing is ever written, cancelled or resubmitted. Only
what lies below --root can be opened, the current folder where none is named;
a Slurm job only where its logs lie there. Speaks on standard input and output
to the client that starts it, or with --http to many over HTTP, who need the
token in --token-file or FLATLINE_MCP_TOKEN.

Needs the extra: pip install 'flatline[mcp]'

examples:
  flatline mcp --root ./outputs
  claude mcp add flatline -- flatline mcp --root /shared/outputs
  flatline mcp --root /shared/outputs --http 8722 --token-file ~/.flatline-token
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from flatline.cli import HEALTHY, Engine, complain
from flatline.errors import UsageError

USAGE = "[--root FOLDER]... [--http [HOST:]PORT] [options]"
MISSING = "the server needs the MCP SDK, version 2: pip install 'flatline[mcp]'"
_LISTEN = re.compile(r"(?:(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\]):)?(?P<port>\d{1,5})")


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--root", metavar="FOLDER", action="append", default=[],
        help="what may be read, repeatable; the current folder where none is named")  # fmt: skip
    add("--prometheus", metavar="URL", help="the one server that may be asked for numbers")
    add("--http", metavar="[HOST:]PORT", help="serve HTTP there; on 127.0.0.1 without a host")
    add("--token-file", metavar="FILE", help="the token callers need; or FLATLINE_MCP_TOKEN")


def run(options: argparse.Namespace, engine: Engine) -> int:
    if options.prometheus and not re.match(r"https?://[^/\s]", options.prometheus):
        raise UsageError(f"--prometheus {options.prometheus!r}: give it as http://HOST:PORT")
    listen = _listen(options.http) if options.http else None
    token = _token(options.token_file) if listen else ""
    try:
        import mcp_types  # noqa: F401 - the SDK before version 2 has none
        from mcp.server import MCPServer  # noqa: F401
    except ImportError as fault:
        raise UsageError(MISSING) from fault
    from flatline.mcp.roots import Roots
    from flatline.mcp.server import build

    server = build(Roots(options.root or ["."]), options.prometheus)
    if listen is None:
        server.run("stdio")
        return HEALTHY
    from flatline.mcp.gate import LOOPBACK, PATH, serve

    host, port = listen
    if host not in LOOPBACK:
        complain(f"flatline: others reach {host}: put TLS before it, for the token is a password")
    complain(f"flatline: listening on http://{host}:{port}{PATH}")
    serve(server, host, port, token)
    return HEALTHY


def _listen(said: str) -> tuple[str, int]:
    found = _LISTEN.fullmatch(said)
    if found is None or not 0 < int(found["port"]) < 65536:
        raise UsageError(f"--http {said!r}: give a port, or HOST:PORT")
    return (found["host"] or "127.0.0.1").strip("[]"), int(found["port"])


def _token(file: str | None) -> str:
    """Never an argument: those can be read by everybody on the machine."""
    if file is None:
        token = os.environ.get("FLATLINE_MCP_TOKEN", "")
        if not token:
            raise UsageError("--http needs a token: name a --token-file or set FLATLINE_MCP_TOKEN")
        return token
    try:
        path = Path(file).expanduser()
        if path.stat().st_mode & 0o077:
            raise UsageError(f"--token-file {file} can be read by others: chmod 600 {file}")
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"--token-file {file}: {getattr(fault, 'strerror', fault)}") from fault
