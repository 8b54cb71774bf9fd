"""An answer on every surface: the verdict first, and what the run or a model wrote is inert."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from flatline.model import Verdict
from flatline.model.reasoning import (
    Found,
    Look,
    Reasoning,
    Rejected,
    Sentence,
    Spent,
    Thought,
)
from flatline.render import format_named, format_names
from flatline.render.text import Look as Width
from flatline.render.text import reasoned
from render import verdicts

GRAPH = (
    Thought("p1", "proposition", "The card fell off.", (), ("e1",)),
    Thought("c1", "critique", "Or the riser.", ("p1",), ("t1",), None, 2),
    Thought("r1", "refinement", "Card or riser.", ("p1", "c1"), (), None, 2),
    Thought("v1", "verification", "Xid 79 says so.", ("r1",), ("e1",), True, 3),
)


def beside(text: str = "") -> Verdict:
    item = {"id": "t1", "kind": "log", "source": "a.log", "line": 3, "text": "x"}
    made = Reasoning(
        question=f"why? {text}",
        model="compatible:m",
        code="B2",
        family="gpu-hardware-fault",
        answered=True,
        stands="B2",
        overturned=False,
        ruling="the answer is the verdict's",
        claims=(Sentence(f"The line says “x{text}” [e1].", ("e1",)),),
        prose=(Sentence(f"It fell off.{text}", ("e1",)),),
        rejected=(Rejected(f"Rank 77 did it.{text}", "Rank 77 stands in no cited evidence"),),
        thoughts=tuple(replace(t, text=t.text + text) for t in GRAPH),
        looks=(Look("search_log", f"Xid{text}", "3 rows"),),
        found=(Found("t1", "a.log:3", f"x{text}", item),),
        spent=Spent(4, 900, 100, 2.5, 0.01, "given with --price", "24 calls"),
        stopped=None,
    )
    return replace(verdicts.found(), reasoning=made)


@pytest.mark.parametrize("name", format_names())
def test_every_format_shows_the_answer_and_what_was_rejected(name: str) -> None:
    """With the thoughts and what it cost; the verdict's own words are all there still."""
    page = format_named(name).render(beside())
    flat = " ".join(page.split())
    for words in (
        "It fell off.",
        "Rank 77 did it.",
        "Card or riser.",
        "compatible:m",
        "search_log",
    ):
        assert words in flat
    assert verdicts.found().headline.split()[0] in flat
    assert "0.01" in flat


def test_a_page_without_reasoning_is_what_it_was() -> None:
    """Nothing of it stands there."""
    document = json.loads(format_named("json").render(verdicts.found()))
    assert "reasoning" not in document
    assert 'id="reasoning"' not in format_named("html").render(verdicts.found())


class Ids(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            if name == "href" and value:
                self.links.append(value)


def test_the_graph_is_drawn_with_its_edges() -> None:
    """A box a thought, an arrow an edge; every link leads somewhere."""
    page = format_named("html").render(beside())
    drawing = page[page.index('<div class="dag">') : page.index('<ol class="thoughts">')]
    assert drawing.count("<rect") == 4
    assert drawing.count('class="edge') == 4
    assert "verification holds" in drawing
    found = Ids()
    found.feed(page)
    assert {link[1:] for link in found.links if link[0] == "#"} <= found.ids


@pytest.mark.parametrize(
    "payload", ["</script><script>alert(1)</script>", "<img src=x>", "\x1b[2J"]
)
def test_what_a_model_writes_is_text(payload: str) -> None:
    """No tag of its own, no control of the terminal."""
    made = beside(payload)
    found = Ids()
    found.feed(format_named("html").render(made))
    assert found.tags.count("script") == 1
    assert "img" not in found.tags
    for name in ("text", "markdown"):
        page = format_named(name).render(made)
        assert "\x1b" not in page
    assert not re.search(r"(?m)^\s*<script>", format_named("markdown").render(made))


def test_the_answer_alone_fits_80_columns() -> None:
    """The verdict's rows first."""
    made = beside()
    assert made.reasoning is not None
    page = reasoned(made, made.reasoning, Width(80))
    assert page.startswith("✗ FAULT")
    assert max(map(len, page.splitlines())) <= 80
    order = [page.index(part) for part in ("What compatible:m says", "Rejected (1)", "Looked at")]
    assert order == sorted(order)


def test_json_holds_the_graph_and_the_evidence_of_the_looks() -> None:
    """Cited ids all stand among the evidence."""
    document = json.loads(format_named("json").render(beside()))
    ids = {item["id"] for item in document["evidence"]}
    for thought in document["reasoning"]["thoughts"]:
        assert set(thought["cites"]) <= ids
    assert document["reasoning"]["thoughts"][3]["holds"] is True
