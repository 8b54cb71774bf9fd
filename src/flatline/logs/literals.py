"""
Text that a program shows as data: strings with their quotes, cells of tables, code, settings.

`repr` and JSON write a line break within a string as `\\n`, which no line of a log does that is
said: but loggers and handlers of errors keep what was said so as well, under names that tell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

DOUBTED, PASSED_ON, SAID = 0.6, 0.0, 1.0
"""What is left of the strength of a line, by whether it says itself what stands in it."""
LOGGED = re.compile(
    r"\"(?:level|level_?name|severity|lvl|log_?level)\":"
    r"|\"(?:@?timestamp|time|asctime|ts|at)\": ?[\"\d{]"
    r"|\"(?:stream|type)\": ?\"std(?:err|out)\"|\b(?:errors?|exceptions?|failures?)(?:: |=)\[[\"']"
    r"|(?:Error|Exception|Exit|Warning)\([\"'\d]",
    re.IGNORECASE,
)
"""What a logger writes beside its message, and no sample holds; exceptions as Python shows
them."""
_SAYS = re.compile(
    r"(?:err|exc|fail|trace|stack|message|msg|std|output|reason|detail|cause|log|status|warn|what"
    r"|result|descri)\w*[\"']?\s{0,2}(?::|=|=>)\s{0,2}[bru]?[\[(]{0,3}\s*[\"'bru]*$",
    re.IGNORECASE,
)
"""Names under which programs keep what went wrong."""
_OPENED = re.compile(r"(?:^|[\[({,:= ])[bru]?([\"'])(?=(?:\\.|(?!\1).){0,4000}$)")
_ALONE = re.compile(r"\s*(?:- )?[bru]{0,2}([\"']).*\1[,\])}]{0,3}$")
_LISTED = re.compile(r"[\[(][bru]?[\"']")
_OBJECT = re.compile(r"\s*\{\s*[\"'].*\}\s*,?$")
_INFORMED = re.compile(
    r"(?:\[?\d{4}-\d\d-\d\d[T ][\d:.,]{5,20}Z?\]?)?[\s:|-]*\[?(?:INFO|DEBUG)\]?[\s:|-]+"
)
"""What a logger writes before what is no failure by its own word."""
_CALLED = re.compile(
    r"\s*(?:echo|printf|print|trap|log(?:ger|ging)?\.\w{1,20}|puts|console\.\w{1,9})\b"
    r"[ (].{0,80}[\"'][^\"']*$"
)
"""A statement that would say it: code that is shown."""
_RAISES = re.compile(r"\s*(?:raise|assert|throw)\b.{0,200}[\"'][^\"']*$")
_SET = re.compile(
    r"(?:export |declare -x )?(?!\w*RANK=)[A-Z_][A-Z0-9_]{2,60}=(?!\d{1,9}(?:[\s,:|\]]|$))"
)
_ADVICE = re.compile(
    r"\b(?:if|when|whenever|in case|should) .{0,72}([\"'`])[^\"'`]{0,80}$",
    re.IGNORECASE,
)
_BORDERS = "│┃|"
_RULES = re.compile(r"\s*[┏┡├╞╭┌+|][━─═┳┬╇╪+:|-]{8,}")
_HEADS = re.compile(
    r"[│┃|,\t]\s*\"?(?:prompts?|completions?|responses?|texts?|inputs?|outputs?|targets?|questions?"
    r"|answers?|references?|generat\w*|predictions?|sentences?|samples?|contents?|documents?"
    r"|instructions?|source|chosen|rejected)\b",
    re.IGNORECASE,
)
"""The heading of a column of texts."""
_NAMES = re.compile(r"[\w \"]{1,40}(?:, ?[\w \"]{1,40})+$")
_HEADED = re.compile(r"\s+[A-Za-z_]\w{0,40}(?:\s{2,}\w{1,40})*\s*$")
"""The names of columns and nothing else: a sentence may hold such a word and a comma."""
_ROW_OF_FRAME = re.compile(r"\s*\d{1,9}(?:\s{2,}|,\s?\")")


def literal(text: str, start: int, above: Sequence[str]) -> float:
    """What is left of what begins at `start` of a line below others, the nearest first, by
    whether it is shown as data."""
    before = text[:start]
    if ('"' in text or "'" in text or "`" in text) and (left := _quoted(text, before)) < SAID:
        return left
    if _SET.match(before):
        return DOUBTED
    if _in_a_table(text, before, above):
        return PASSED_ON
    return SAID


def _quoted(text: str, before: str) -> float:
    if _CALLED.match(before):
        return PASSED_ON
    advice = _ADVICE.search(before)
    if _RAISES.match(before) or (advice and before.count(advice[1]) % 2):
        return DOUBTED
    shapes = (_ALONE, _LISTED, _OBJECT)
    said = _INFORMED.match(text)
    at = said.end() if said else 0
    if LOGGED.search(text) or not ("\\n" in text or any(one.match(text, at) for one in shapes)):
        return SAID
    opened = _OPENED.search(before) if before else None
    if opened is None or _SAYS.search(before[: opened.start(1)]):
        return SAID
    return DOUBTED


def _in_a_table(text: str, before: str, above: Sequence[str]) -> bool:
    """Whether it stands in a row below a heading that names a column of texts."""
    stripped = before.lstrip()
    if stripped[:1] and stripped[0] in _BORDERS:
        near = [one for one in above if one.lstrip()[:1] in ("│", "┃", "|")]
        return any(map(_HEADS.search, near)) and any(map(_RULES.match, above))
    if _ROW_OF_FRAME.match(text) and before:
        for one in above:
            if _ROW_OF_FRAME.match(one) is None and not one.startswith(" "):
                return _NAMES.match(one) is not None and _HEADS.search(f",{one}") is not None
            if _HEADED.match(one) and _HEADS.search(f"\t{one.strip()}"):
                return True
    return False
