"""The core stands without this surface, and the registry's file says what is there."""

from __future__ import annotations

import ast
import json
import tomllib
from pathlib import Path

from mcp import Client

import flatline
from mcp_server.asking import DEMOS, with_client

SRC = Path(flatline.__file__).parent
ROOT = Path(__file__).parents[2]
FOREIGN = {"mcp", "mcp_types", "pydantic", "starlette", "uvicorn", "anyio", "httpx2"}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def test_only_the_surface_imports_the_sdk() -> None:
    """Its command asks whether it is there; the agent, which stands above it, has the same shapes
    and brings what they need."""
    allowed = {SRC / "cli" / "mcp.py", *(SRC / "mcp").glob("*.py"), *(SRC / "agent").glob("*.py")}
    guilty = [
        str(path.relative_to(SRC))
        for path in SRC.rglob("*.py")
        if path not in allowed
        and any(
            n.partition(".")[0] in FOREIGN or n.startswith("flatline.mcp") for n in imported(path)
        )
    ]
    assert guilty == []


def test_flatline_alone_brings_no_package_of_it() -> None:
    """It is an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert not [d for d in project["dependencies"] if d.startswith(tuple(FOREIGN))]
    assert project["optional-dependencies"]["mcp"] == ["mcp>=2.3,<3"]


def test_the_registry_entry_starts_this_server() -> None:
    """Version, package and command are those of the project."""
    entry = json.loads((ROOT / "server.json").read_text("utf-8"))
    assert entry["version"] == flatline.__version__
    assert len(entry["description"]) <= 100
    (package,) = entry["packages"]
    assert package["version"] == flatline.__version__
    assert package["runtimeArguments"][0]["value"] == f"flatline[mcp]=={flatline.__version__}"
    assert [a["value"] for a in package["packageArguments"] if a["type"] == "positional"] == [
        "mcp"
    ]
    assert f"mcp-name: {entry['name']}" in (ROOT / "README.md").read_text("utf-8")


def test_resources_and_prompts_are_there() -> None:
    """Families by code, verdicts by handle, questions with a target."""

    async def ask(client: Client) -> tuple[str, str, set[str], str]:
        families = await client.read_resource("flatline://families")
        page = await client.read_resource("flatline://families/C2")
        prompts = (await client.list_prompts()).prompts
        asked = await client.get_prompt("why_did_it_fail", {"target": "a\nb"})
        question = asked.messages[0].content.text
        return (
            families.contents[0].text,
            page.contents[0].text,
            {p.name for p in prompts},
            question,
        )

    families, page, names, question = with_client(DEMOS, ask)
    assert "`C2` collective-hang" in families
    assert "Told apart from" in page
    assert {"why_did_it_fail", "may_i_resubmit", "what_failed"} <= names
    assert "a b" in question
    assert "diagnose" in question
