"""Curves over one axis, as SVG that stretches and text that does not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from xml.etree import ElementTree as ET

from flatline.exhibit.model import Band, Curve, Curves, Mark
from flatline.render.html.markup import h, more, percent, section

WIDE, HIGH = 1000, 100
LOG_FROM = 30.0
"""Greatest over least value from which a curve of positive values is drawn in decades."""
HEADROOM, FLAT = 0.08, 0.02
"""Room beside the extremes; what varies by less than `FLAT` of itself is drawn level."""
TICKS, STEPS = 4, 6
NAMED_FROM = 0.12
"""Share of the axis from which an attempt or its steps are named in full."""
LARGEST, LEAST = 1e200, 1e-200
"""Beyond these, differences and decades leave the range of floating point."""


class Scale:
    """Values to heights of the plot, 0 at its foot."""

    def __init__(self, values: Sequence[float], name: str) -> None:
        low, high = _held(min(values)), _held(max(values))
        self.log = low > LEAST and high / low >= LOG_FROM and name != "learning rate"
        if self.log:
            low, high = math.log10(low), math.log10(high)
        elif low > 0 and low < 0.5 * high:
            low = 0.0
        if not self.log and high - low < FLAT * abs(high):
            low, high = low - FLAT * abs(high), high + FLAT * abs(high)
        room = (high - low if high - low > LEAST else 1.0) * HEADROOM
        self.low, self.high = (low if low == 0.0 else low - room), high + room

    def __call__(self, value: float) -> float:
        at = math.log10(_held(value)) if self.log else _held(value)
        return (at - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        if not self.log:
            return nice(self.low, self.high, TICKS)
        decades = range(math.ceil(self.low), math.floor(self.high) + 1)
        if len(decades) >= 2:
            return [10.0**n for n in decades[:: len(decades) // TICKS or 1]]
        halves = [
            m * 10.0**n for n in range(math.floor(self.low), decades.stop) for m in (1, 2, 5)
        ]
        return [value for value in halves if self.low <= math.log10(value) <= self.high]


def _held(value: float) -> float:
    """Within what can still be subtracted."""
    return min(max(value, -LARGEST), LARGEST)


def nice(low: float, high: float, wanted: int) -> list[float]:
    """Round numbers within [low, high], about as many as wanted."""
    span = high - low
    if span <= LEAST or not math.isfinite(span):
        return [low]
    rough = span / wanted
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * m for m in (1, 2, 5, 10) if size * m >= rough * (1 - 1e-9))
    first = math.ceil(low / step)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """Four digits, thousands by name: `0.9811`, `105.2k`, `NaN`."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{value:g}"
    for size, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size <= abs(value) < 1e13:
            return f"{value / (1e3 if name == 'k' else size):.4g}{name}"
    return f"{value:.4g}"


def curves_section(curves: Curves) -> ET.Element:
    """Every curve over the same axis, what its marks are, and what is not drawn."""
    names = " and ".join(curves.sources[:2])
    left = f" and {len(curves.sources) - 2:,} more" if len(curves.sources) > 2 else ""
    axis = "steps" if curves.by_step else "points in the order they were printed"
    return section(
        "curves",
        "Curves",
        h("p.note", "Over ", axis, ", from ", h("code", names), left, ". ", *_legend(curves)),
        h("div.charts", [_chart(curve, curves, not n) for n, curve in enumerate(curves.curves)]),
        more(curves.left_out, "earlier attempts"),
    )


def _legend(curves: Curves) -> list[ET.Element]:
    kinds = {mark.kind for mark in curves.marks}
    said = {
        "onset": ("key.onset", "┆", "onset"),
        "checkpoint": ("key.checkpoint", "▲", "checkpoint saved"),
        "resume": ("key.resume", "▷", "resumed or loaded"),
    }
    keys = [
        h(f"span.{name}", h("span", glyph, aria_hidden="true"), f" {words}")
        for kind, (name, glyph, words) in said.items()
        if kind in kinds
    ]
    if any(not math.isfinite(v) for c in curves.curves for run in c.runs for _, v in run):
        keys.append(h("span.key.odd", h("span", "╻", aria_hidden="true"), " not a finite number"))
    return keys


def _chart(curve: Curve, curves: Curves, tagged: bool) -> ET.Element:
    bands = curves.bands
    span = bands[0].start, bands[-1].end
    points = [point for run in curve.runs for point in run]
    finite = [value for _, value in points if math.isfinite(value)]
    scale = Scale(finite or [0.0, 1.0], curve.name)
    told = _told(curve, curves, points)
    unit = f", {curve.unit}" if curve.unit else ""
    drawing = h(
        "svg",
        h("title", f"{curve.name}: {told}"),
        _bands(bands, span),
        _rules(scale),
        [_path(run, span, scale) for run in curve.runs],
        [_odd(run, span) for run in curve.runs],
        _lines(curves.marks, span),
        viewBox=f"0 0 {WIDE} {HIGH}",
        preserveAspectRatio="none",
        role="img",
    )
    ys = [
        h("span", short(tick), style=f"bottom:{percent(scale(tick))}")
        for tick in scale.ticks()
        if 0 <= scale(tick) <= 1
    ]
    scaled = ", log scale" if scale.log else ""
    return h(
        "figure.chart",
        h("figcaption", h("strong", curve.name), h("span.note", unit, scaled, ": ", told)),
        h(
            "div.plot",
            h("div.ys", ys, aria_hidden="true"),
            h("div.area", drawing, _oddly(points, span), _tags(curves, span, tagged)),
            h("div.xs", _xs(curves, span), aria_hidden="true"),
        ),
    )


def _told(curve: Curve, curves: Curves, points: Sequence[tuple[float, float]]) -> str:
    """The curve in words."""
    finite = [point for point in points if math.isfinite(point[1])]
    kept = f", {len(points):,} drawn" if len(points) < curve.printed else ""
    told = [f"{curve.printed:,} printed{kept}"]
    if finite:
        least, greatest = (f(value for _, value in finite) for f in (min, max))
        told.insert(0, f"from {short(points[0][1])} to {short(points[-1][1])}")
        told.insert(1, f"least {short(least)}, greatest {short(greatest)}")
    odd = [at for at, value in points if not math.isfinite(value)]
    if odd:
        told.append(f"first not finite at {_where(odd[0], curves)}")
    return "; ".join(told)


def _where(at: float, curves: Curves) -> str:
    band = next((b for b in reversed(curves.bands) if b.start <= at), curves.bands[0])
    return f"{'step' if curves.by_step else 'point'} {round(at - band.start + band.first):,}"


def _x(at: float, span: tuple[float, float]) -> float:
    return (at - span[0]) / (span[1] - span[0])


# --- the drawing ------------------------------------------------------------------------------


def _bands(bands: Sequence[Band], span: tuple[float, float]) -> list[ET.Element]:
    if len(bands) < 2:
        return []
    return [
        h(
            "rect",
            class_="band",
            x=f"{_x(band.start, span) * WIDE:.1f}",
            width=f"{(_x(band.end, span) - _x(band.start, span)) * WIDE:.1f}",
            y="0",
            height=str(HIGH),
        )
        for band in bands
    ]


def _rules(scale: Scale) -> ET.Element:
    heights = (HIGH * (1 - scale(tick)) for tick in scale.ticks() if 0 <= scale(tick) <= 1)
    return h("path", class_="rule", d=" ".join(f"M0 {y:.1f}H{WIDE}" for y in heights))


def _path(
    run: Sequence[tuple[float, float]], span: tuple[float, float], scale: Scale
) -> list[ET.Element]:
    """One line, broken where a value is no finite number; a point between two breaks is a dot."""
    parts: list[str] = []
    joined = False
    for at, value in run:
        drawn = math.isfinite(value)
        if drawn:
            x, y = _x(at, span) * WIDE, HIGH * (1 - scale(value))
            parts.append(f"L{x:.1f} {y:.2f}" if joined else f"M{x:.1f} {y:.2f}h0")
        joined = drawn
    return [h("path", class_="curve", d="".join(parts))] if parts else []


def _odd(run: Sequence[tuple[float, float]], span: tuple[float, float]) -> list[ET.Element]:
    """A tick where a value is no finite number, a wash where several follow one another."""
    made: list[ET.Element] = []
    ticks = []
    for odd, group in groupby(run, key=lambda point: not math.isfinite(point[1])):
        xs = [_x(at, span) * WIDE for at, _ in group]
        if not odd:
            continue
        ticks += [f"M{x:.1f} 0V7" for x in xs]
        width = f"{xs[-1] - xs[0]:.1f}"
        made.append(
            h("rect", class_="oddly", x=f"{xs[0]:.1f}", width=width, y="0", height=str(HIGH))
        )
    return [*made, h("path", class_="odd", d="".join(ticks))] if ticks else []


def _lines(marks: Iterable[Mark], span: tuple[float, float]) -> list[ET.Element]:
    drawn = []
    for kind, shape in (("checkpoint", f"V{HIGH - 6}"), ("resume", f"V{HIGH - 12}")):
        d = "".join(f"M{_x(m.at, span) * WIDE:.1f} {HIGH}{shape}" for m in marks if m.kind == kind)
        if d:
            drawn.append(h("path", class_=kind, d=d))
    onset = next((mark for mark in marks if mark.kind == "onset"), None)
    if onset is not None:
        x = _x(onset.at, span) * WIDE
        drawn.append(h("path", class_="onset", d=f"M{x:.1f} 0V{HIGH}"))
    return drawn


# --- what stands around it --------------------------------------------------------------------


def _oddly(points: Sequence[tuple[float, float]], span: tuple[float, float]) -> ET.Element | None:
    """The name of the first value that is no finite number, where it is."""
    first = next(((at, value) for at, value in points if not math.isfinite(value)), None)
    if first is None:
        return None
    side = "left" if _x(first[0], span) > 0.5 else "right"
    return h(f"span.name.{side}", short(first[1]), style=f"left:{percent(_x(first[0], span))}")


def _tags(curves: Curves, span: tuple[float, float], tagged: bool) -> list[ET.Element]:
    """Words within the plot; attempts and the onset are named on the first one alone."""
    tags = []
    if len(curves.bands) > 1 and tagged:
        tags += [_attempt(band, span) for band in curves.bands]
    onset = next((mark for mark in curves.marks if mark.kind == "onset"), None)
    if onset is not None and tagged:
        where = _x(onset.at, span)
        words = "onset" if onset.step is None else f"onset, step {onset.step:,}"
        side = "left" if where > 0.5 else "right"
        tags.append(h(f"span.tag.{side}", words, style=f"left:{percent(where)}"))
    marked = [mark for mark in curves.marks if mark.kind == "checkpoint"]
    if 0 < len(marked) <= 40:
        tags += [
            h("span.tick", "▲", style=f"left:{percent(_x(m.at, span))}", aria_hidden="true")
            for m in marked
        ]
    return tags


def _attempt(band: Band, span: tuple[float, float]) -> ET.Element:
    """An attempt's name within its own stretch, of a short one the number alone."""
    start, share = _x(band.start, span), _x(band.end, span) - _x(band.start, span)
    ended = band.disposition.replace("_", " ")
    place = f"left:{percent(start)};max-width:{percent(share)}"
    if share < NAMED_FROM:
        named = f"attempt {band.attempt}, {ended}"
        return h("span.attempt", str(band.attempt), title=named, style=place)
    words = f"attempt {band.attempt}", h("span.wide", f" {ended}")
    return h("span.attempt", *words, style=place)


def _xs(curves: Curves, span: tuple[float, float]) -> list[ET.Element]:
    made = []
    for band in curves.bands:
        share = _x(band.end, span) - _x(band.start, span)
        wanted = max(round(share * STEPS), 1)
        ticks = nice(band.first, band.last, wanted) if share > NAMED_FROM else [band.first]
        for tick in (tick for tick in ticks if math.isclose(tick, round(tick))):  # no half steps
            at = band.start + tick - band.first
            made.append(h("span", short(round(tick)), style=f"left:{percent(_x(at, span))}"))
    return made
