"""
What the catalogue holds, looked up: families, signatures, and what a line of a log is read as.

`page` shows it to a person, `document` to a program; `docs/generate.py` makes the pages of the
documentation from it.
"""

from __future__ import annotations

import difflib
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flatline import signatures
from flatline.errors import UsageError
from flatline.families import Family, all_families
from flatline.model import Match, Signature, SignatureRole

ROLES: dict[SignatureRole, str] = {
    "root": "it can be the cause by itself",
    "cascade": "the echo of a failure elsewhere: that something failed, never what",
    "wrapper": "a launcher's or framework's report that a child failed",
    "benign": "it looks like trouble and is not",
    "marker": "a fact about the run, not a fault",
}
NEAREST = 5
LINE_BYTES = 256 << 10
_ID = re.compile(r"[A-Za-z0-9][\w.:/-]{0,79}")


@dataclass(frozen=True, slots=True)
class Mechanism:
    """That one family can cause another; where `fault_class` is given, only that of the effect."""

    code: str
    family: str
    fault_class: str | None
    how: str


@dataclass(frozen=True, slots=True)
class FamilyEntry:
    """A family with all that speaks of it."""

    family: Family
    causes: tuple[Mechanism, ...]
    caused_by: tuple[Mechanism, ...]
    signs: tuple[Signature, ...]


@dataclass(frozen=True, slots=True)
class LineEntry:
    """What a log line is read as: signatures that match, the exception it ends in, progress."""

    matches: tuple[Match, ...]
    exceptions: tuple[str, ...]
    progress: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.matches or self.exceptions or self.progress)


def family_named(word: str) -> Family | None:
    """By code or name, in letters of any case."""
    wanted = word.strip().lower()
    return next((f for f in all_families() if wanted in (f.code.lower(), f.name)), None)


def signature_named(word: str) -> Signature | None:
    wanted = word.strip().lower()
    return next((s for s in signatures.load() if s.id == wanted), None)


def family_entry(family: Family) -> FamilyEntry:
    """With what it can cause, what can cause it, and the signatures that lead to it."""
    names = {f.code: f.name for f in all_families()}
    causes, caused_by = [], []
    for key, how in family.explains.items():
        code, _, fault_class = key.partition("/")
        causes.append(Mechanism(code, names[code], fault_class or None, how))
    for other in all_families():
        for key, how in other.explains.items():
            code, _, fault_class = key.partition("/")
            if code == family.code:
                caused_by.append(Mechanism(other.code, other.name, fault_class or None, how))
    signs = [s for s in signatures.load() if family.code in (s.family, s.late_family)]
    return FamilyEntry(family, tuple(causes), tuple(caused_by), tuple(signs))


def line_entry(text: str) -> LineEntry:
    """What a line, or a few, would be read as in a log, by the reader of logs itself."""
    from flatline.collect.catalogue import catalogue  # the scanner: most of the start-up
    from flatline.collect.logs import read_log
    from flatline.collect.setting import Setting
    from flatline.logs.labels import NamePlace

    with tempfile.TemporaryDirectory(prefix="flatline-") as folder:
        file = Path(folder, "line.log")
        file.write_text(text.strip("\n") + "\n", "utf-8", "backslashreplace")
        events = read_log(file, "the line", catalogue(), Setting(NamePlace(), None, True))
    said = []
    for track in events.tracks.values():
        for at, step in enumerate(track.steps):
            loss = f", {track.loss_name} {track.loss[at]:g}" if track.has_loss[at] else ""
            said.append(f"step {step}{loss} ({track.format})" if step >= 0 else track.format)
    said += [k.progress.kind.replace("_", " ") for k in events.markers]
    raised = [c.exception for c in events.crashes if c.exception]
    return LineEntry(tuple(events.matches), tuple(dict.fromkeys(raised)), tuple(said))


def looks_like_a_line(text: str) -> bool:
    """Whether this is a line of a log rather than the name of something."""
    return _ID.fullmatch(text.strip()) is None


def nearest(word: str) -> list[str]:
    """Ids, codes and names that were perhaps meant, the likeliest first."""
    wanted = word.lower()
    parts = set(re.split(r"[^a-z0-9]+", wanted)) - {""}
    scored = []
    for name in _names():
        own = set(name.lower().split("-"))
        likeness = difflib.SequenceMatcher(None, wanted, name.lower()).ratio()
        shared = len(parts & own) / len(parts | own) if parts else 0.0
        if likeness >= 0.6 or shared >= 0.3:
            scored.append((likeness + shared, name))
    return [name for _, name in sorted(scored, reverse=True)[:NEAREST]]


def _names() -> Sequence[str]:
    families = [name for f in all_families() for name in (f.code, f.name)]
    return [*families, *(s.id for s in signatures.load())]


def unknown(word: str) -> UsageError:
    """That nothing is called so, with what is."""
    close = nearest(word)
    hint = f"; meant is perhaps {', '.join(close)}" if close else ""
    return UsageError(
        f"no signature or family is called {word!r}{hint}; `flatline families` lists the families,"
        " and a line of a log is explained where it is put in quotes"
    )
