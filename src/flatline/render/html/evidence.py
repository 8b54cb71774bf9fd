"""Evidence in its context, and the links to it from whatever cites it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from xml.etree import ElementTree as ET

from flatline.exhibit.model import Exhibit, Quote
from flatline.model import AbsenceCite, Cite, LogCite, Verdict
from flatline.render import Ledger, beside, located, said
from flatline.render.html.markup import h, prose, section
from flatline.wording.untrusted import sentence

WHOLE, BRIEF = 120, 1_000
"""Pieces shown in context, then those that keep a line each; what is beyond is counted."""
CHIPS = 8
USES = 6
FILES = 30
LINE, QUOTE, GLANCE = 300, 1_200, 160
"""Characters of a line of context, of a cited text, of one that keeps a line only."""
LEFT = "evidence-left"


class Anchors:
    """Where on the page each piece of evidence stands, and what cites it."""

    def __init__(self, verdict: Verdict) -> None:
        self.ledger = Ledger(verdict)
        items = self.ledger.items[: WHOLE + BRIEF]
        self._shown = {name for name, _ in items}
        self._lines = {
            (cite.source, cite.line): f"#{name}"
            for name, cite in items
            if isinstance(cite, LogCite)
        }
        self._uses: dict[str, dict[str, str]] = {}

    def of_line(self, source: str, line: int) -> str | None:
        """The link to a cited line of a log; None where it is not shown."""
        return self._lines.get((source, line))

    def chips(self, cites: Iterable[Cite], by: str = "", words: str = "") -> ET.Element | None:
        """Links to evidence; `by` is the anchor of what cites it, under these words."""
        ids = self.ledger.ids(cites)
        for name in ids if by else ():
            self._uses.setdefault(name, {}).setdefault(by, words)
        links = [h("a.chip", name, href=self.link(name)) for name in ids[:CHIPS]]
        left = len(ids) - CHIPS
        if left > 0:
            links.append(h("a.chip", f"and {left:,} more", href=self.link(ids[CHIPS])))
        return h("span.chips", " ", [[link, " "] for link in links]) if links else None

    def named(self, ids: Iterable[str]) -> ET.Element | None:
        """Links to evidence by its id; one a look brought stands with the reasoning."""
        links = [h("a.chip", name, href=f"#{name}" if name[:1] == "t" else self.link(name))
                 for name in list(ids)[:CHIPS]]  # fmt: skip
        return h("span.chips", " ", [[link, " "] for link in links]) if links else None

    def link(self, name: str) -> str:
        return f"#{name}" if name in self._shown else f"#{LEFT}"

    def uses(self, name: str) -> tuple[list[ET.Element], int]:
        """Links to what cites a piece, and how many more do."""
        known = self._uses.get(name, {})
        links = [h("a", words, href=f"#{by}") for by, words in list(known.items())[:USES]]
        return links, max(len(known) - USES, 0)


def evidence_section(anchors: Anchors, exhibit: Exhibit) -> ET.Element | None:
    """Every piece that is cited, in the order of its number. Build it last: it links back."""
    items = anchors.ledger.items
    if not items:
        return None
    whole = [_exhibit(name, cite, anchors, exhibit.quotes) for name, cite in items[:WHOLE]]
    brief = [_glance(name, cite) for name, cite in items[WHOLE : WHOLE + BRIEF]]
    left = len(items) - WHOLE - BRIEF
    return section(
        "evidence",
        f"Evidence ({len(items):,})",
        h("p.note", "Lines stand as they were read, secrets masked; the cited one is marked ▸."),
        whole,
        h("ul.brief", brief) if brief else None,
        h(
            "p.more",
            f"and {left:,} more (e{WHOLE + BRIEF + 1} to e{len(items)}), all with ",
            h("code", "--format json"),
            id=LEFT,
        )
        if left > 0
        else None,
    )


def _glance(name: str, cite: Cite) -> ET.Element:
    text = sentence(cite.text)
    shown = text[:GLANCE] + "…" * (len(text) > GLANCE)
    where = located(cite)
    return h("li", h("b", name), " ", where[-GLANCE:], " ", h("code", shown), id=name)


def _exhibit(
    name: str, cite: Cite, anchors: Anchors, quotes: Mapping[tuple[str, int], Quote]
) -> ET.Element:
    heads = [h("span.source", located(cite)), *(h("span.note", part) for part in beside(cite))]
    quote = quotes.get((cite.source, cite.line)) if isinstance(cite, LogCite) else None
    body: list[ET.Element]
    if isinstance(cite, LogCite):
        body = [_lines(cite, quote)]
    else:
        body = [h("p.quote", sentence(cite.text)[:QUOTE])] if cite.text else []
    for words, is_code in said(cite, anchors.ledger):
        body.append(h("pre", h("code", words)) if is_code else h("p", prose(words)))
    if isinstance(cite, AbsenceCite) and len(cite.files) > 1:
        body.append(_searched(cite))
    if hasattr(cite, "inputs"):
        body.append(h("p.note", "computed from", anchors.chips(cite.inputs, name, name)))
    links, left = anchors.uses(name)
    if links:
        rest = f" and {left:,} more" if left else ""
        body.append(h("p.uses", "supports ", [[link, " "] for link in links], rest))
    return h(
        "article.exhibit", h("header", h("a.id", name, href=f"#{name}"), heads), body, id=name
    )


def _searched(cite: AbsenceCite) -> ET.Element:
    left = len(cite.files) - FILES
    more = h("li", f"and {left:,} more, all with --format json") if left > 0 else None
    files = [h("li", h("code", source)) for source in cite.files[:FILES]]
    return h("details", h("summary", f"the {len(cite.files):,} files"), h("ul", files, more))


def _lines(cite: LogCite, quote: Quote | None) -> ET.Element:
    """The cited line among its neighbours; alone where the log cannot be read again."""
    if quote is None:
        return h("div.lines", _line(cite.line, "", cite.text))
    made = []
    for number, text in enumerate(quote.lines, quote.first):
        made.append(_line(number, text, cite.text if number == cite.line else None))
    return h("div.lines", made)


def _line(number: int, text: str, cited: str | None) -> ET.Element:
    if cited is None:
        shown = text[:LINE] + "…" * (len(text) > LINE)
        return h("div", h("span.n", f"{number:,}"), h("code", shown))
    cited = cited.strip()
    before, found, after = text.partition(cited) if cited else (text, "", "")
    if not found:
        before, after = "", ""
    mark = h("mark", cited[:QUOTE] + "…" * (len(cited) > QUOTE))
    number_shown = h("span.n", h("span", "▸", aria_hidden="true"), f"{number:,}")
    return h("div.hit", number_shown, h("code", before[:LINE], mark, after[:LINE]))
