"""Entries of the catalogue as pages for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from flatline.families import Family
from flatline.model import Match, Signature
from flatline.reference import (
    ROLES,
    FamilyEntry,
    LineEntry,
    Mechanism,
    family_named,
)
from flatline.render.text import PLAIN, Look
from flatline.wording.columns import wrap
from flatline.wording.rows import BLAMES
from flatline.wording.untrusted import neutral

_ENTRY = re.compile(r"[-*] |[A-G]\d [a-z-]+:")
"""What begins a paragraph of its own: an item, or a family this one is told apart from."""


def family_prose(family: Family, look: Look = PLAIN) -> str:
    """The family's own page as written, its paragraphs set anew to the width there is."""
    lines = [look.paint("bold", f"{family.code} {family.name}"), ""]
    paragraph: list[str] = []
    indent = 0

    def end() -> None:
        if paragraph:
            room = look.width - indent
            lines.extend(" " * indent + line for line in wrap(" ".join(paragraph), room))
            paragraph.clear()

    for line in family.page.splitlines():
        words = line.strip()
        depth = len(line) - len(line.lstrip())
        if not words:
            end()
            lines.append("")
        elif not depth and words.endswith(":"):
            end()
            lines.append(look.paint("bold", words))
        else:
            if depth != indent or _ENTRY.match(words):
                end()
            indent = depth
            paragraph.append(words)
    end()
    return "\n".join(lines) + "\n"


def family(entry: FamilyEntry, look: Look = PLAIN) -> str:
    """The family's page, then what it causes and is caused by, what it needs, and its signs."""
    lines = [family_prose(entry.family, look).rstrip("\n")]
    lines += _mechanisms("Can cause", entry.causes, look)
    lines += _mechanisms("Can be caused by", entry.caused_by, look)
    lines += _heading("Cannot be ruled out without", look)
    for need in entry.family.needs:
        lines += _item(need.replace("|", " or "), look)
    lines += _heading("Decided by", look)
    lines += _item(entry.family.decided_by, look)
    roots = [s for s in entry.signs if s.role == "root"]
    others = [s for s in entry.signs if s.role != "root"]
    lines += _signs("Signatures that can be its cause", roots, look)
    lines += _signs("Other signatures of it", others, look)
    if not entry.signs:
        lines += _heading("Signatures", look)
        lines += _item("none: it is judged from records, progress, metrics or dumps", look)
    return "\n".join(lines) + "\n"


def _mechanisms(title: str, rows: Sequence[Mechanism], look: Look) -> list[str]:
    if not rows:
        return []
    made = _heading(title, look)
    for row in rows:
        only = f" ({row.fault_class})" if row.fault_class else ""
        made += _item(f"{row.code} {row.family}{only}: {row.how}", look)
    return made


def _signs(title: str, signs: Sequence[Signature], look: Look) -> list[str]:
    if not signs:
        return []
    made = _heading(f"{title} ({len(signs)})", look)
    return made + [f"  {line}" for line in wrap(", ".join(s.id for s in signs), look.width - 2)]


def signature(item: Signature, look: Look = PLAIN) -> str:
    """All that is on file about one signature."""
    lines = [look.paint("bold", item.id), ""]
    for label, words in facts(item):
        hang = " " * 12
        first, *rest = wrap(words, look.width - len(hang))
        lines += [f"  {label:<10}{first}", *(hang + line for line in rest)]
    lines += _prose("Means", item.meaning, look)
    lines += _prose("Does not prove", item.not_proof, look)
    lines += _prose("Do", item.action or _family_advice(item), look)
    lines += _quoted("Matches, for example", item.samples, look)
    lines += _quoted("Near misses that it must not match", item.near_misses, look)
    lines += _prose("Source", item.source, look)
    lines += _quoted("Pattern (Python's re)", (item.pattern,), look)
    if item.family:
        lines += ["", f"More: flatline explain {item.family}"]
    return "\n".join(lines) + "\n"


def facts(item: Signature) -> list[tuple[str, str]]:
    """What a signature is, as (label, words)."""
    rows = [("role", f"{item.role}: {ROLES[item.role]}")]
    if item.family:
        rows.append(("family", _placed(item.family, item.fault_class)))
    if item.late_family or item.late_class:
        late = _placed(item.late_family or item.family or "", item.late_class)
        rows.append(("later", f"{late}, once a training step was seen"))
    if item.role == "root":
        rows.append(("blames", BLAMES[item.attribution]))
        rows.append(("strength", f"{item.strength:.2f}, that its family is right on this alone"))
    rows.append(("origin", item.origin))
    if item.tags:
        rows.append(("tags", ", ".join(item.tags)))
    return rows


def _placed(code: str, fault_class: str | None) -> str:
    found = family_named(code)
    name = f"{code} {found.name}" if found is not None else code
    return f"{name}, fault class {fault_class}" if fault_class else name


def _family_advice(item: Signature) -> str:
    """The family's own advice, where the signature has none."""
    found = family_named(item.family or "")
    if found is None:
        return "Nothing by itself: look for what it follows from or stands beside."
    section = found.page.partition("\nDo:")[2].partition("\n\nReferences:")[0]
    return " ".join(section.split())


def line(entry: LineEntry, look: Look = PLAIN) -> str:
    """What a log line is read as, signature by signature."""
    if not entry:
        return "\n".join(wrap(NOTHING, look.width)) + "\n"
    lines: list[str] = []
    for match in sorted(entry.matches, key=lambda m: (m.signature.role != "root", m.seq)):
        lines += ["", *_match(match, look)]
    for name in entry.exceptions:
        lines += ["", *wrap(f"It is read as an exception: {neutral(name)}.", look.width)]
    if entry.progress:
        lines += ["", *wrap(f"It is read as progress: {', '.join(entry.progress)}.", look.width)]
    heads = {0: "No signature matches.", 1: "1 signature matches."}
    head = heads.get(len(entry.matches), f"{len(entry.matches)} signatures match.")
    return "\n".join([head, *lines]) + "\n"


NOTHING = (
    "No signature matches this line, and it is no progress that is recognised. That says nothing"
    " of what it means; in a log, the lines before it and a traceback around it may still be read."
)


def _match(match: Match, look: Look) -> list[str]:
    item = match.signature
    where = f"  {_placed(item.family, item.fault_class)}" if item.family else ""
    lines = [look.paint("bold", item.id) + f"  {item.role}{where}"]
    lines += [f"  {words}" for words in wrap(item.meaning, look.width - 2)]
    lines += [f"  {words}" for words in wrap(f"Not proved: {item.not_proof}", look.width - 2)]
    named = ", ".join(f"{key} {neutral(value)}" for key, value in match.groups.items() if value)
    if named:
        lines += [f"  {words}" for words in wrap(f"It reads: {named}", look.width - 2)]
    if item.action:
        lines += [f"  {words}" for words in wrap(f"Do: {item.action}", look.width - 2)]
    return [*lines, f"  flatline explain {item.id}"]


def _heading(title: str, look: Look) -> list[str]:
    return ["", look.paint("bold", f"{title}:")]


def _item(text: str, look: Look) -> list[str]:
    first, *rest = wrap(text, look.width - 4)
    return [f"  - {first}", *(f"    {words}" for words in rest)]


def _prose(title: str, text: str, look: Look) -> list[str]:
    return [*_heading(title, look), *(f"    {words}" for words in wrap(text, look.width - 4))]


def _quoted(title: str, texts: Iterable[str], look: Look) -> list[str]:
    """Texts as they stand, at most as wide as the page; the break of a long one is only shown."""
    made: list[str] = []
    for text in texts:
        for at, words in enumerate(wrap(neutral(text), look.width - 4)):
            made.append(("  | " if not at else "    ") + words)
    return [*_heading(title, look), *made] if made else []
