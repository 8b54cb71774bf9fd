"""What an error of a Lua program (Torch7) is about, by its words and by the stack below it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from flatline.facts import Facts
from flatline.judging.startup_class import DEFAULT, startup_class
from flatline.model import Match

UNCAUGHT, _ABSENT = "lua-uncaught", "FileNotFoundError"
MOST_FRAMES = 40
_SAID = re.compile(r"\.lua:\d{1,9}: (?:\[thread \d{1,4} callback\] )?(.*)|: (cannot open <.*)")
_OPENS = re.compile(r"cannot open <([^>]{0,400})> in mode +(r?)")
_FRAME = re.compile(
    r"^\s+(\S{1,400}\.lua):\d{1,9}: in (?:function ['<]?([^'>]{1,200})|main chunk)"
)
_NATIVE = re.compile(r"^\s+(?:\[C\]|\S{1,400}): (?:in|at) ")
_LIBRARY = re.compile(r"/share/lua/5\.\d/|/lib/luarocks/|/luarocks/")
_READS_DATA = re.compile(
    r"(?i)(?:^|/)(?:data|dataset|donkey|(?:data|batch)_?loader)(?:[-_]\w{1,40})?\.lua$"
    r"|(?:^|/)datasets?/"
)
"""`donkey.lua` is what feeds the examples of torch and those made after them."""
_READS_MODEL = re.compile(r"(?i)(?:^|/)(?:models?|nets?|loadcaffe\w*)(?:[-_]\w{1,40})?\.lua$")
_ABSENT_MODULE = re.compile(r"^module '[^']{1,200}' not found:?")
_REQUIRES = re.compile(r"^\s+\[C\]: in function 'require'")
_NOT_LOADED = re.compile(
    r"\s*(?i:could(?:n't| not)) (?:load|open|find) (\S.{0,300}\.\w{2,12})\s*$"
)
_CHANGED = re.compile(r"attempt to (?:call|index) (?:method|field|global|upvalue) '")
"""Within a library: what another release of another one has."""
ABOVE = 3
_LOADS = re.compile(r"/torch/File\.lua$")


def lua_class(facts: Facts, match: Match) -> str | None:
    """data, config, env or asset; None of anything but an error of Lua."""
    if match.signature.id != UNCAUGHT:
        return None
    cite = match.cite
    found = _SAID.search(cite.text)
    said = (found[1] or found[2]) if found else ""
    opened = _OPENS.match(said)
    if opened and not opened[2]:
        return DEFAULT  # what it writes
    below = facts.lines(cite.source, cite.line + 1, MOST_FRAMES)
    if _ABSENT_MODULE.search(said) or any(map(_REQUIRES.search, below)):
        return "env"
    above = facts.lines(cite.source, max(1, cite.line - ABOVE), min(ABOVE, cite.line - 1))
    for missed in filter(None, map(_NOT_LOADED.match, above)):
        return startup_class(_ABSENT, f"'{missed[1]}'")
    way = _way(below)
    own = next((one for one in way if not _LIBRARY.search(one)), "")
    if _READS_DATA.search(own):
        return "data"
    if way and _LOADS.search(way[0]) and _READS_MODEL.search(own):
        return "asset"
    if way and _LIBRARY.search(way[0]) and _CHANGED.match(said):
        return "env"
    return startup_class(_ABSENT if opened else "", f"'{opened[1]}'" if opened else said)


def _way(lines: Sequence[str]) -> list[str]:
    """The files of the stack, innermost first."""
    found: list[str] = []
    for text in lines[next((n for n, t in enumerate(lines) if "stack traceback:" in t), -1) + 1 :]:
        if frame := _FRAME.match(text):
            found.append(frame[1])
        elif not _NATIVE.match(text):
            break
    return found
