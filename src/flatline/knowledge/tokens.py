"""
Words of a log and of a report, as the search compares them.

Log text is no prose: `torch.distributed.DistBackendError` is one name and four words,
`0x7fbacdf3` and `1800000` are none.  A name with a structure is kept whole as well as in its parts
(at `_`, `.`, `::` and where the case changes); numbers, addresses and placeholders are dropped;
words of one meaning, as users say it (`stuck`, `frozen`) and as programs do (`deadlock`), share a
token.
"""

from __future__ import annotations

import re

MOST_TOKENS = 400
"""Of a query: a log excerpt of a few hundred lines has no more that tell it from others."""
MOST_LINES = 60
"""Lines of an excerpt that are asked with, those that speak of trouble first."""

_PLACEHOLDER = re.compile(r"<[A-Za-z][\w ,|.-]{0,30}>")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:(?:::|\.|-)[A-Za-z_][A-Za-z0-9_]*)*")
_HEX = re.compile(r"(?:0x[0-9a-f]+|(?=[0-9a-f]*[0-9])[0-9a-f]{8,})", re.IGNORECASE)
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_MEMORY = re.compile(r"\bout[ -]of[ -](?:\w{2,6} ){0,2}memory\b", re.IGNORECASE)
_TROUBLE = re.compile(
    r"(?i)error|exception|fail|fatal|abort|timed? ?out|kill|nan\b|warn|assert|refus|denied|"
    r"unable|cannot|not found|mismatch|out of|overflow|xid|oom|lost|reset|watchdog"
)
_STOP = frozenset(
    re.findall(
        r"\w+",
        """
        a an and any are as at be because been before but by can could did do does for from get
        gets got had has have how i if in into is it its me my no not of on or our out so some
        still such than that the their them then there they this to too up use used using very was
        we were what when where which while who why will with would you your after also all am
        only even just like same seems see run runs running training train com github http https
        www self line file most recent call last python lib site packages py
        """,
    )
)
_MEANINGS = """
hang: hang hung stuck freez frozen froz deadlock stall wait never forever standstill
oom: oom outofmemoryerror outofmemory
die: die dead died kill sigkill crash abort terminat exit vanish
checkpoint: checkpoint ckpt save snapshot
resume: resum restart reload continu restor
diverge: diverg explod spike blow collaps unstabl
nan: nan nonfinit inf
slow: slow slower slowdown degrad throughput
mismatch: mismatch differ inconsist unequal uneven
dataset: dataset corpus
install: instal compil build built wheel
unreachable: unreach refus firewall blocked
"""
_MEANS = {
    word: f"={meaning}"
    for meaning, _, words in (row.partition(":") for row in _MEANINGS.split("\n") if row)
    for word in words.split()
}


def tokens(text: str) -> list[str]:
    """The tokens of a text, in its order, each as often as it stands there."""
    text = _PLACEHOLDER.sub(" ", text)
    made = ["=oom"] * len(_MEMORY.findall(text))
    for found in _NAME.finditer(text):
        made += _of_name(found[0])
    return made


def asked(text: str) -> list[str]:
    """The tokens of a query or a log excerpt, once each: what repeats in a log weighs no more."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > MOST_LINES:
        telling = [line for line in lines if _TROUBLE.search(line)]
        lines = telling[:MOST_LINES] or lines[-MOST_LINES:]
    return list(dict.fromkeys(tokens("\n".join(lines))))[:MOST_TOKENS]


def _of_name(name: str) -> list[str]:
    if _HEX.fullmatch(name):
        return []
    parts = [part for piece in re.split(r"[^A-Za-z0-9]+", name) for part in _parts(piece)]
    whole = name.lower().strip("_")
    made = [stem for part in parts for stem in _words(part)]
    if len(parts) > 1 or (whole not in parts and len(whole) > 1):
        made.append(whole)
    return made


def _parts(piece: str) -> list[str]:
    if _HEX.fullmatch(piece):
        return []
    return [part.lower() for part in _PART.findall(piece)]


def _words(word: str) -> list[str]:
    if len(word) < 2 or word in _STOP:
        return []
    stem = stemmed(word)
    meaning = _MEANS.get(stem) or _MEANS.get(word)
    return [stem, meaning] if meaning else [stem]


def stemmed(word: str) -> str:
    """The word without the endings of number and tense; not a stemmer's full art, since most of
    what is compared are names."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word.endswith("e") else word
