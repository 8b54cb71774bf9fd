"""
Elements, built as a tree and written by the standard library: nothing is escaped by hand.

Every text and every attribute passes `neutral` here, once, so that no caller can forget it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import resources
from typing import TypeAlias
from xml.etree import ElementTree as ET

from flatline.wording.untrusted import neutral, sentence

Child: TypeAlias = "ET.Element | str | Iterable[Child] | None"
_SPAN = re.compile(r"`([^`]{1,200})`")


def h(name: str, /, *children: Child, **attributes: str | float | None) -> ET.Element:
    """An element: `h("p.note", "text", id="n1")`.  An attribute that is None is left out, one
    whose name is a word of Python's ends in an underscore."""
    tag, *classes = name.split(".")
    element = ET.Element(tag)
    if classes:
        element.set("class", " ".join(classes))
    for key, value in attributes.items():
        if value is not None:
            shown = f"{value:g}" if isinstance(value, float) else str(value)
            element.set(key.rstrip("_").replace("_", "-"), neutral(shown))
    _add(element, children)
    return element


def _add(element: ET.Element, children: Iterable[Child]) -> None:
    for child in children:
        if isinstance(child, str):
            text = neutral(child)
            if len(element):
                element[-1].tail = (element[-1].tail or "") + text
            else:
                element.text = (element.text or "") + text
        elif isinstance(child, ET.Element):
            element.append(child)
        elif child is not None:
            _add(element, child)


def asset(name: str) -> str:
    """The text of a file beside this one."""
    return (resources.files(__package__) / name).read_text("utf-8")


def raw(name: str, text: str) -> ET.Element:
    """A `style` or `script` of our own, which is written as it is."""
    element = ET.Element(name)
    element.text = text
    return element


def written(root: ET.Element) -> str:
    """The document, ending in a newline."""
    return f"<!doctype html>\n{ET.tostring(root, encoding='unicode', method='html')}\n"


def prose(text: str) -> list[Child]:
    """A sentence; what stands in backticks is code."""
    parts = _SPAN.split(sentence(text))
    return [h("code", part) if at % 2 else part for at, part in enumerate(parts) if part]


def section(name: str, title: str, *children: Child) -> ET.Element:
    """A part of the page that can be linked to."""
    return h("section", h("h2", title), *children, id=name)


def more(left: int, noun: str) -> ET.Element | None:
    """That entries are not shown here, and where they are; nothing where none are left."""
    if left <= 0:
        return None
    return h("p.more", f"and {left:,} more {noun}, all with ", h("code", "--format json"))


def percent(part: float) -> str:
    """A length of CSS from a part of the whole, kept within it."""
    return f"{min(max(part, 0.0), 1.0) * 100:.2f}%"
