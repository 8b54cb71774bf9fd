"""What each place last did, a row a group, over one span of time."""

from __future__ import annotations

from datetime import datetime
from xml.etree import ElementTree as ET

from flatline.exhibit.model import Places, Row, Span
from flatline.render.html.evidence import Anchors
from flatline.render.html.markup import h, more, percent, section
from flatline.wording.places import counted, fold_hosts, fold_numbers
from flatline.wording.rows import duration, moment

LABELS = 3
"""Instants along the axis."""


def places_section(places: Places, onset: datetime | None, anchors: Anchors) -> ET.Element:
    """Culprits first; every place stands in a row or is counted."""
    shown = sum(len(row.numbers) or len(row.hosts) for row in places.rows)
    whole = shown + places.folded
    groups = counted(len(places.rows), "group") if len(places.rows) < whole else "each its own"
    note = f"{counted(whole, places.word)}, {groups}: those that did the same share a row. "
    undated = "" if places.start else "No line carries a time, so the rows have no time line. "
    return section(
        f"{places.word}s",
        f"What each {places.word} last did",
        h("p.note", note, undated, *(_legend() if places.start else [])),
        h("div.places", _axis(places), [_row(row, places, onset, anchors) for row in places.rows]),
        more(places.left_out, f"groups of {counted(places.folded, places.word)} in all"),
    )


def _legend() -> list[ET.Element]:
    keys = (
        ("key.heard", "▬", "dated lines"),
        ("key.silent", "┄", "none later"),
        ("key.step", "●", "last step"),
        ("key.said", "✕", "raised or recorded"),
        ("key.end", "◆", "reported as ended"),
        ("key.onset", "┆", "onset"),
    )
    return [h(f"span.{n}", h("span", g, aria_hidden="true"), f" {w}") for n, g, w in keys]


def _axis(places: Places) -> ET.Element | None:
    if places.start is None or places.end is None:
        return None
    whole = places.end - places.start
    labels = []
    for n in range(LABELS):
        at = places.start + whole * n / (LABELS - 1)
        words = moment(at.replace(microsecond=0), at)
        labels.append(h("span", words, style=f"left:{percent(n / (LABELS - 1))}"))
    told = f"{places.start:%Y-%m-%d}, {duration(whole.total_seconds())} in all"
    return h("div.row.axis", h("div.who", told), h("div.when", labels), h("div.what"))


def _row(row: Row, places: Places, onset: datetime | None, anchors: Anchors) -> ET.Element:
    several = len(row.numbers) > 1 or (not row.numbers and len(row.hosts) > 1)
    word = places.word + "s" * several
    hosts = fold_hosts(row.hosts) if row.hosts else ""
    name = f"{word} {fold_numbers(row.numbers)}" if row.numbers else hosts
    many = len(row.numbers) if row.numbers else len(row.hosts)
    who = h(
        "div.who",
        h("strong", "▸ " if row.culprit else "", name),
        h("span.note", f"{many:,} of them") if several else None,
        h("span.note", f"on {hosts}") if row.numbers and hosts else None,
        h("span.blamed", "named by the verdict") if row.culprit else None,
    )
    when = h("div.when", _marks(row, places, onset)) if places.start else None
    name = "div.row.culprit" if row.culprit else "div.row"
    return h(name, who, when, h("div.what", _words(row, anchors)))


def _marks(row: Row, places: Places, onset: datetime | None) -> list[ET.Element]:
    assert places.start is not None
    assert places.end is not None
    start, whole = places.start, places.end - places.start

    def at(instant: datetime) -> str:
        return percent((instant - start) / whole)

    until = (row.heard[1] - start) / whole if row.heard else 0.0
    made = [h("i.silent", style=f"left:{percent(until)};right:0")]
    if row.heard:
        first = (row.heard[0] - start) / whole
        made.append(h("i.heard", style=f"left:0;width:{percent(first)}"))
        spread = f"left:{percent(first)};width:{percent(until - first)}"
        made.append(h("i.spread", style=spread) if until > first else h("i"))
    if onset is not None:
        made.append(h("i.onset", style=f"left:{at(onset)}"))
    marks = (("step", "●", row.stepped), ("said", "✕", row.said_at), ("end", "◆", row.ended_at))
    for name, glyph, span in marks:
        if span is not None:
            before = "◂" if span[1] < start else ""
            made.append(h(f"b.{name}", before or glyph, style=f"left:{at(span[1])}"))
    return made


def _words(row: Row, anchors: Anchors) -> list[ET.Element]:
    said: list[ET.Element] = []
    if row.steps is not None:
        low, high = row.steps
        steps = f"step {low:,}" if low == high else f"steps {low:,} to {high:,}"
        said.append(h("li", f"reached {steps}", _when(row.stepped)))
    if row.waits_in:
        said.append(h("li", row.waits_in))
    if row.said:
        said.append(h("li", row.said, _when(row.said_at)))
    if row.ended:
        said.append(h("li", row.ended, _when(row.ended_at)))
    if not row.read and not row.said:
        said.append(h("li", "no line or record that was read is known to be its own"))
    elif not said:
        said.append(h("li", "nothing else was read of it", _when(row.heard)))
    quoted = []
    if row.line is not None:
        source, number, text = row.line
        where = f"{source}:{number}"
        link = anchors.of_line(source, number)
        place = h("a", where, href=link) if link else h("span", where)
        quoted = [h("p.last", place, " ", h("code", text[:200] + "…" * (len(text) > 200)))]
    return [h("ul", said), *quoted]


def _when(span: Span | None) -> str:
    if span is None:
        return ""
    if span[0] == span[1]:
        return f" at {moment(span[0], span[0])}"
    return f" from {moment(span[0], span[0])} to {moment(span[1], span[0])}"
