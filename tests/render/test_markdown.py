"""The page for a ticket: whole, and inert."""

from __future__ import annotations

from typing import Any

import pytest

from flatline.render.markdown import code, prose, render
from render import verdicts

PAYLOAD = (
    " <script>alert(1)</script></details> ``` `` ` [click](http://evil.example) ![i](x.png)"
    " | a | b | @everyone #1 www.evil.example https://evil.example me@evil.example *b* __c__"
    " ~~d~~ $x$ &lt;"
    "\n# heading\n\n- item\n\n    indented\n\n---\n| t |\n|---|\n<!-- x -->\\"
)
INERT = {"code_inline", "fence"}


def tokens(page: str) -> list[Any]:
    markdown_it = pytest.importorskip("markdown_it")
    parser = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"])
    found = []
    for token in parser.parse(page):
        found.append(token)
        found.extend(token.children or ())
    return found


def shape(page: str) -> list[str]:
    """The block structure of a page, whatever its words."""
    return [t.type for t in tokens(page) if t.type.endswith(("_open", "fence", "hr"))]


def test_nothing_the_run_wrote_becomes_markup() -> None:
    """No link, image, HTML, emphasis or strike-through, and no table cell or heading more."""
    page = render(verdicts.hostile(PAYLOAD))
    kinds = {token.type for token in tokens(page)}
    assert not kinds & {"link_open", "image", "html_inline", "html_block", "em_open", "s_open"}
    blocks = ("heading_open", "table_open", "tr_open", "td_open", "hr", "fence")
    dirty, clean = shape(page), shape(render(verdicts.found()))
    assert [k for k in dirty if k in blocks] == [k for k in clean if k in blocks]


def test_bare_addresses_and_mentions_are_code() -> None:
    """GitHub links an address and calls a person wherever they are plain text."""
    for token in tokens(render(verdicts.hostile(PAYLOAD))):
        if token.type == "text":
            assert not any(word in token.content for word in ("://", "www.", "@", "#1", "$x"))


def test_no_control_character_is_left() -> None:
    """The page is read in terminals as well."""
    page = render(verdicts.hostile("\x1b[31m\u202e\x00"))
    assert not set(page) & set("\x1b\u202e\x00")


@pytest.mark.parametrize("text", ["`", "``", "a`b", "`a", "a``b`", "```sh", " ` "])
def test_a_code_span_keeps_its_backticks_in(text: str) -> None:
    """The fence is longer than any run of backticks inside."""
    inline = [t for t in tokens(code(text)) if t.type == "code_inline"]
    assert [t.content.strip() for t in inline] == [text.strip()]


@pytest.mark.parametrize("text", ["- a", "1. a", "+ a", "# a", "> a", "--- ", "* a", "12) a"])
def test_a_sentence_opens_no_block(text: str) -> None:
    """A claim that begins like a list or a heading is a paragraph in its list item."""
    opened = [t.type for t in tokens(f"- {prose(text)}\n") if t.type.endswith("_open")]
    assert opened == ["bullet_list_open", "list_item_open", "paragraph_open"]


def test_plain_sentences_stay_plain() -> None:
    """What needs no care is not decorated."""
    text = "Rank 59 on node07 lost 64.5 GPU-hours (3 h 33 min), about 100%."
    assert prose(text) == text


def test_code_a_family_wrote_stays_code() -> None:
    """A command in backticks is one span, not one per word."""
    assert prose("run (`sacct -j JOB`) first") == "run (`sacct -j JOB`) first"


def test_the_reasons_of_exclusions_are_all_there() -> None:
    """What the terminal folds, the ticket keeps."""
    page = render(verdicts.huge())
    assert all(f"| X{n} family-{n} | no | e" in page for n in range(30))


def test_long_lists_are_counted() -> None:
    """A ticket is not a dump."""
    page = render(verdicts.huge())
    assert "## Gaps (20)" in page
    assert "`rank100.log` and 244 more)" in page
    assert "and 808 more (e201-e1008), all with `--format json`" in page
