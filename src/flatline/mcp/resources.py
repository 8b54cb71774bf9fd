"""What a client may attach: the pages of the failure families, and whole verdicts."""

from __future__ import annotations

import json

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from flatline import reference
from flatline.errors import UsageError
from flatline.families import all_families
from flatline.mcp.runs import Runs
from flatline.reference import page
from flatline.render import json as documents
from flatline.render import markdown
from flatline.render.text import Look
from flatline.wording.untrusted import defanged


def add(server: MCPServer, runs: Runs) -> None:
    """Registers them."""

    @server.resource("flatline://families", title="Failure families", mime_type="text/markdown")
    def families() -> str:
        """Every failure family: code, name, what it is."""
        rows = [f"- `{one.code}` {one.name}: {one.title}" for one in all_families()]
        return "\n".join(["# Failure families", "", *rows]) + "\n"

    @server.resource(
        "flatline://families/{code}", title="A failure family's page", mime_type="text/plain"
    )
    def family(code: str) -> str:
        """Symptom, mechanism, what it is told apart from, what to do, what it can cause."""
        found = reference.family_named(code)
        if found is None:
            raise ResourceNotFoundError(f"no family is called {code[:40]!r}")
        return page.family(reference.family_entry(found), Look(width=100))

    @server.resource(
        "flatline://verdicts/{handle}", title="A verdict, whole", mime_type="application/json"
    )
    def verdict(handle: str) -> str:
        """The document of docs/verdict.schema.json. Text of the run in it is escaped."""
        held = _held(runs, handle)
        # Escapes of JSON: the same document to a parser, and nothing in it steers or closes a tag.
        made = json.dumps(documents.plain(held), ensure_ascii=True, allow_nan=False, default=str)
        return made.replace("<", "\\u003c")

    @server.resource(
        "flatline://verdicts/{handle}/page", title="A verdict as Markdown",
        mime_type="text/markdown",
    )  # fmt: skip
    def verdict_page(handle: str) -> str:
        """For a ticket or a message."""
        try:
            made = markdown.render(runs.held(handle).verdict)
        except UsageError as fault:
            raise ResourceNotFoundError(str(fault)) from fault
        return "\n".join(defanged(line) for line in made.splitlines()) + "\n"


def _held(runs: Runs, handle: str) -> dict[str, object]:
    try:
        return runs.held(handle).document()
    except UsageError as fault:
        raise ResourceNotFoundError(str(fault)) from fault
    except ValueError as fault:
        raise ResourceError(str(fault)) from fault
