"""The run beside its baseline: settings, a table, and both curves over one axis."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from flatline.exhibit.model import Both
from flatline.model import Comparison
from flatline.render.html.curves import HIGH, WIDE, Scale, nice, short
from flatline.render.html.evidence import Anchors
from flatline.render.html.markup import Child, h, more, percent, prose, section
from flatline.render.html.tables import table
from flatline.wording.comparison import (
    chosen,
    counted_signals,
    lines,
    setting_lines,
    title,
    verdict_on_settings,
)

ROWS, TICKS = 100, 6
Points = Sequence[tuple[float, float]]


def comparison_section(
    compared: Comparison, drawn: Sequence[Both], anchors: Anchors
) -> ET.Element:
    """Everything of the comparison, the pictures last."""
    return section(
        "comparison",
        title(compared),
        h("p.note", chosen(compared)),
        h("p", prose(verdict_on_settings(compared))),
        _settings(compared, anchors),
        _lines(compared, anchors),
        h("p.note", counted_signals(compared)),
        h("p.note", *_keys()) if drawn else None,
        h("div.charts", [_chart(both) for both in drawn]) if drawn else None,
    )


def _settings(compared: Comparison, anchors: Anchors) -> ET.Element | None:
    rows: list[tuple[Child, ...]] = []
    names = []
    for n, (name, ours, theirs, cites) in enumerate(setting_lines(compared)[:ROWS], 1):
        names.append(f"setting-{n}")
        rows.append((prose(name), prose(ours), prose(theirs),
                     anchors.chips(cites, names[-1], f"setting {n}")))  # fmt: skip
    if not rows:
        return None
    return table(("setting that differs", "this run", "baseline", "evidence"), rows, names)


def _lines(compared: Comparison, anchors: Anchors) -> ET.Element | None:
    rows: list[tuple[Child, ...]] = []
    names = []
    every = lines(compared)
    for n, line in enumerate(every[:ROWS], 1):
        names.append(f"compared-{n}")
        change: Child = h("b", line.change) if line.apart else line.change
        told = h("span.note", " ", line.note)
        ours, theirs = h("span.num", line.ours), h("span.num", line.theirs)
        rows.append(([prose(line.name)], ours, theirs, [change, told],
                     anchors.chips(line.cites, names[-1], f"comparison {n}")))  # fmt: skip
    if not rows:
        return None
    made = table(("quantity", "this run", "baseline", "change", "evidence"), rows, names)
    return h("div", made, more(len(every) - ROWS, "quantities"))


def _chart(both: Both) -> ET.Element:
    points = [*both.ours, *both.theirs]
    scale = Scale([value for _, value in points], both.name)
    span = min(at for at, _ in points), max(at for at, _ in points)
    told = f"{both.name} of this run and of its baseline, over {both.axis}"
    drawing = h(
        "svg",
        h("title", told),
        h("path", class_="rule", d=" ".join(
            f"M0 {HIGH * (1 - scale(tick)):.1f}H{WIDE}" for tick in _ticks(scale))),
        _path(both.theirs, span, scale, "curve theirs"),
        _path(both.ours, span, scale, "curve"),
        viewBox=f"0 0 {WIDE} {HIGH}",
        preserveAspectRatio="none",
        role="img",
    )  # fmt: skip
    ys = [h("span", short(tick), style=f"bottom:{percent(scale(tick))}") for tick in _ticks(scale)]
    xs = [h("span", short(tick) + both.mark, style=f"left:{percent(_x(tick, span))}")
          for tick in nice(*span, TICKS)]  # fmt: skip
    return h(
        "figure.chart",
        h("figcaption", h("strong", both.name), h("span.note", f", over {both.axis}")),
        h(
            "div.plot",
            h("div.ys", ys, aria_hidden="true"),
            h("div.area", drawing),
            h("div.xs", xs, aria_hidden="true"),
        ),
    )


def _keys() -> tuple[ET.Element, ET.Element]:
    return (
        h("span.key.ours", h("span", "━", aria_hidden="true"), " this run"),
        h("span.key.theirs", h("span", "╍", aria_hidden="true"), " baseline"),
    )


def _ticks(scale: Scale) -> list[float]:
    return [tick for tick in scale.ticks() if 0 <= scale(tick) <= 1]


def _x(at: float, span: tuple[float, float]) -> float:
    return (at - span[0]) / (span[1] - span[0] or 1.0)


def _path(points: Points, span: tuple[float, float], scale: Scale, name: str) -> ET.Element:
    drawn = [f"{_x(at, span) * WIDE:.1f} {HIGH * (1 - scale(value)):.2f}" for at, value in points]
    return h("path", class_=name, d=f"M{'L'.join(drawn)}")
