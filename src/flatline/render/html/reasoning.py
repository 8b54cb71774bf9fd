"""An agent's answer beside the verdict, and its thoughts drawn as the graph they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from flatline.model.reasoning import Reasoning, Thought
from flatline.render.html.evidence import Anchors
from flatline.render.html.markup import Child, h, more, prose, section
from flatline.wording.reasoning import cost, standing, title

LIST = 60
BOX_W, BOX_H, GAP_X, GAP_Y, MARGIN = 128, 34, 56, 14, 8
"""Pixels of a node of the drawing, and between nodes."""


def reasoning_sections(reasoning: Reasoning, anchors: Anchors) -> list[ET.Element]:
    """The answer, then the graph of thoughts where there is one."""
    return [
        part
        for part in (_answer(reasoning, anchors), _thoughts(reasoning, anchors))
        if part is not None
    ]


def _answer(reasoning: Reasoning, anchors: Anchors) -> ET.Element:
    claims = [
        h("li", prose(said.text), None if said.text.endswith("].") else anchors.named(said.cites))
        for said in reasoning.claims[:LIST]
    ]
    rejected = [
        h("li", h("s", prose(one.text)), " ", h("span.note", prose(one.why)))
        for one in reasoning.rejected[:LIST]
    ]
    looks = [
        h("li", h("code", f"{look.tool} {look.asked}".strip()), ": ", prose(look.found))
        for look in reasoning.looks[:LIST]
    ]
    return section(
        "reasoning",
        title(reasoning),
        h("p.note", "Question: ", prose(reasoning.question)),
        h("p", h("b", prose(standing(reasoning)))),
        [h("p", prose(said.text), anchors.named(said.cites)) for said in reasoning.prose],
        h("ul.claims", claims) if claims else None,
        _folded(f"Rejected ({len(reasoning.rejected)})", rejected, opened=True),
        _folded(f"Looked at ({len(reasoning.looks)})", looks),
        more(len(reasoning.looks) - LIST, "looks"),
        h("p.note", prose(f"Spent: {cost(reasoning.spent)}.")) if reasoning.spent else None,
    )


def _folded(
    title: str, entries: Sequence[ET.Element], *, opened: bool = False
) -> ET.Element | None:
    if not entries:
        return None
    return h("details", h("summary", title), h("ul", entries), open="" if opened else None)


# --- the graph --------------------------------------------------------------------------------


def _thoughts(reasoning: Reasoning, anchors: Anchors) -> ET.Element | None:
    thoughts = reasoning.thoughts[:LIST]
    if not thoughts:
        return None
    found = [
        h("li", h("b", one.id), " ", h("code", one.where), " ", prose(one.text), id=one.id)
        for one in reasoning.found
    ]
    return section(
        "thoughts",
        "How it came to that",
        h("p.note", "A box is a thought; an arrow leads from what it is about to it."),
        h("div.dag", _drawing(thoughts)),
        h("ol.thoughts", [_said(thought, anchors) for thought in thoughts]),
        _folded(f"Evidence its looks brought ({len(found)})", found, opened=True),
    )


def _said(thought: Thought, anchors: Anchors) -> ET.Element:
    about: list[Child] = []
    for name in thought.on:
        about += [" of " if not about else ", ", h("a", name, href=f"#thought-{name}")]
    came = {True: ", holds", False: ", does not hold", None: ""}[thought.holds]
    return h(
        "li",
        h("b", thought.id),
        h("span.note", f" {thought.role}", about, came, f" (round {thought.round}) "),
        prose(thought.text),
        anchors.named(thought.cites),
        id=f"thought-{thought.id}",
    )


def _drawing(thoughts: Sequence[Thought]) -> ET.Element:
    """Columns from left to right: a thought stands one behind the last it is about."""
    known = {thought.id: thought for thought in thoughts}
    column = _columns(known)
    rows: dict[int, int] = {}
    at: dict[str, tuple[int, int]] = {}
    for thought in thoughts:
        col = column[thought.id]
        at[thought.id] = (
            MARGIN + col * (BOX_W + GAP_X),
            MARGIN + rows.get(col, 0) * (BOX_H + GAP_Y),
        )
        rows[col] = rows.get(col, 0) + 1
    width = 2 * MARGIN + max(x for x, _ in at.values()) + BOX_W
    height = 2 * MARGIN + max(y for _, y in at.values()) + BOX_H
    edges = [
        _edge(at[name], at[thought.id], known[name].role)
        for thought in thoughts
        for name in thought.on
        if name in at
    ]
    nodes = [_node(thought, *at[thought.id]) for thought in thoughts]
    return h(
        "svg",
        edges,
        nodes,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=f"{len(thoughts)} thoughts and {len(edges)} arrows between them",
    )


def _columns(known: Mapping[str, Thought]) -> dict[str, int]:
    """The longest way to each thought; the graph was checked to have no circle."""
    found: dict[str, int] = {}
    left = list(known)
    while left:
        name = left.pop()
        above = [other for other in known[name].on if other in known]
        open_ = [other for other in above if other not in found]
        if open_:
            left += [name, *open_]
        else:
            found[name] = 1 + max((found[other] for other in above), default=-1)
    return found


def _node(thought: Thought, x: int, y: int) -> ET.Element:
    came = {True: " holds", False: " fails", None: ""}[thought.holds]
    name = f"g.{thought.role}{came.replace(' ', '.')}"
    return h(
        "a",
        h(
            name,
            h("title", f"{thought.id}: {thought.text}"),
            h("rect", x=x, y=y, width=BOX_W, height=BOX_H, rx=5),
            h(
                "text",
                f"{thought.id} ",
                h("tspan", f"{thought.role}{came and ' ' + _MARKS[came]}"),
                x=x + 9,
                y=y + 22,
            ),
        ),
        href=f"#thought-{thought.id}",
    )


_MARKS = {" holds": "✓", " fails": "✗"}


def _edge(start: tuple[int, int], end: tuple[int, int], role: str) -> ET.Element:
    x1, y1 = start[0] + BOX_W, start[1] + BOX_H // 2
    x2, y2 = end[0], end[1] + BOX_H // 2
    half = max((x2 - x1) // 2, 12)
    dip = BOX_H - 2 if x2 - x1 > GAP_X else 0  # a long arrow runs below the boxes it passes
    curve = f"M{x1} {y1} C{x1 + half} {y1 + dip} {x2 - half} {y2 + dip} {x2 - 6} {y2}"
    head = f"M{x2} {y2} l-8 -4 v8 z"
    return h(f"g.edge.{role}", h("path", d=curve), h("path.head", d=head))
