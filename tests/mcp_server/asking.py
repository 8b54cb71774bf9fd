"""A client of the official SDK against a server over a folder, in this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
from mcp import Client
from mcp_types import CallToolResult, Tool

import flatline
from flatline.mcp.roots import Roots
from flatline.mcp.server import build

DEMOS = Path(flatline.__file__).parent / "demo"
Json = dict[str, Any]
T = TypeVar("T")


def with_client(root: Path, ask: Callable[[Client], Awaitable[T]]) -> T:
    """What `ask` gives of one connection."""

    async def connected() -> T:
        async with Client(build(Roots([str(root)]))) as client:
            return await ask(client)

    return anyio.run(connected)


def called(root: Path, *calls: tuple[str, Json]) -> list[CallToolResult]:
    """Several calls of one connection; the handle of the first answer stands for `HANDLE`."""

    async def ask(client: Client) -> list[CallToolResult]:
        made: list[CallToolResult] = []
        for name, arguments in calls:
            if arguments.get("handle") == "HANDLE":
                assert made[0].structured_content is not None
                arguments = {**arguments, "handle": made[0].structured_content["handle"]}
            made.append(await client.call_tool(name, arguments))
        return made

    return with_client(root, ask)


def tools(root: Path) -> dict[str, Tool]:
    async def ask(client: Client) -> dict[str, Tool]:
        return {tool.name: tool for tool in (await client.list_tools()).tools}

    return with_client(root, ask)


def said(result: CallToolResult) -> str:
    return "\n".join(getattr(block, "text", "") for block in result.content)


def strings(node: object) -> list[str]:
    """Every string of a JSON tree, keys too."""
    if isinstance(node, str):
        return [node]
    if isinstance(node, dict):
        return [text for pair in node.items() for part in pair for text in strings(part)]
    if isinstance(node, list):
        return [text for part in node for text in strings(part)]
    return []
