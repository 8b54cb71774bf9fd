"""What in a sentence can be held against evidence: ids, times, places, measures, names, counts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

from flatline.claims.spoken import HOSTLIST, LABELLED, MEASURE, STAMP, Spoken, labels_in
from flatline.claims.units import number_of, unit_named
from flatline.errors import FormatError
from flatline.families import all_families
from flatline.logs.hostlists import expand

_URL = re.compile(r"(?i)\b(?:[a-z][a-z0-9+.-]{1,12}://|www\.)\S+|\bmailto:\S+")
_ID = re.compile(r"(?<![\w.-])[et]\d{1,7}(?:\s?[-–]\s?[et]\d{1,7})?(?![\w.-])")
_CLOCK = re.compile(
    r"(?<![\d:])(?P<date>(?!))?(?P<time>\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)"
    r"(?:\s?(?P<zone>Z\b|UTC\b|GMT\b|[+-]\d\d:?\d\d|[AaPp]\.?[Mm]\b|[A-Z]{3,4}\b))?(?!\d)"
)
_DOTTED = re.compile(r"(?<![\w.])\d+(?:\.\d+){2,}(?:[:/]\d+)?(?![\w])")
_HEX = re.compile(
    r"(?<!\w)0x[0-9A-Fa-f]+\b"
    r"|(?<![\w:])[0-9A-Fa-f]{2,4}(?::[0-9A-Fa-f]{2}){1,3}(?:\.\d)?\b"
)
"""Bit masks and PCI addresses."""
_NAME = re.compile(
    r"(?<![\w.])(?=[\w./+-]{0,200}[A-Za-z_])(?=[\w./+-]{0,200}\d)\w[\w/+-]*(?:[.][\w/+-]+)*"
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAY = re.compile(
    r"(?i)\b(?:(?P<d1>\d{1,2})(?:st|n[d]|rd|th)?\s+(?P<m1>[a-z]{3,9})|(?P<m2>[a-z]{3,9})\s+(?P<d2>\d{1,2})"
    r"(?:st|n[d]|rd|th)?)\b(?:,?\s+(?P<year>\d{4})\b)?"
)
_LENGTH = re.compile(
    r"(?:\d+(?:\.\d+)?\s?(?:days?|d|hours?|h|minutes?|min|seconds?|s)\b[\s,]*(?:and )?){2,}"
)
_BELIEF = re.compile(
    r"(?i)\bconfiden(?:ce|t)\b|\bcertain(?:ty)?\b|\bprobab\w+|\blikel\w+|\bsure\b"
)
_QUOTED = re.compile(r"“[^“”]{8,400}”|\"[^\"]{8,400}\"|`[^`]{8,400}`")
_ORDINAL = re.compile(r"\b1st\b|\b(\d+)(?:st|n[d]|rd|th)\b")
_SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
          "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen",
          "eighteen", "nineteen", "twenty")  # fmt: skip
_WORDS = re.compile(
    rf"(?i)\b(?P<word>{'|'.join(w for w in _SMALL if w != 'one')}|both|thirty|forty|fifty|sixty"
    r"|seventy|eighty|ninety|hundreds?|thousands?|millions?|dozens?|half|halved|twice|doubled?"
    r"|thrice|tripled?|(?:two|three|four|five|ten|hundred)fold)\b"
    r"(?:[\s-]+(?:\w+[\s-]+)?(?P<noun>hosts?|nodes?|machines?|ranks?|gpus?|tasks?|process(?:es)?"
    r"|lines?|files?|logs?|quer(?:y|ies))\b)?"
)
_HARMLESS = frozenset(
    {"fp8", "fp16", "fp32", "fp64", "bf16", "tf32", "int4", "int8", "int32", "int64", "uint8"}
    | {"utf-8", "ipv4", "ipv6", "x86", "x86-64", "x86_64", "sha256", "md5", "base64", "python3"}
    | {"rot13", "s3", "l1", "l2", "l3", "p50", "p90", "p95", "p99", "iso-8601"}
)
"""Names of techniques that carry a digit and measure nothing."""
Found = Iterator[tuple[int, int, str, bool]]
"""Spans of a sentence, the token that stands there, and whether the evidence bears it."""


class Judge:
    """One piece of evidence's words, against sentences."""

    def __init__(self, spoken: Spoken, ids: frozenset[str], names: tuple[str, ...]) -> None:
        self.spoken, self.ids, self.names = spoken, ids, names
        self.codes = frozenset(family.code for family in all_families())

    def unborne(self, sentence: str) -> str | None:
        """The first token that no evidence bears; None where all of them are borne."""
        text = unicodedata.normalize("NFKC", sentence)
        foreign = next((c for c in text if c > "~" and unicodedata.category(c)[0] == "N"), None)
        if foreign is not None:  # digits of other scripts: nothing here reads them
            return foreign
        for name in self.names:
            named = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
            if named is not None and not self.spoken.word(name):
                return name
        for finder in _FINDERS:
            for start, end, token, borne in list(finder(text, self)):
                if not borne:
                    return token
                text = text[:start] + " " * (end - start) + text[end:]
        return None


# --- finders, in the order in which they take a sentence apart ---


def _urls(text: str, judge: Judge) -> Found:
    for found in _URL.finditer(text):
        yield found.start(), found.end(), found[0], False


def _quotations(text: str, judge: Judge) -> Found:
    """What is quoted letter by letter is the evidence's, an address in it too; else its words
    are looked at."""
    for found in _QUOTED.finditer(text):
        # NFKC spells the sign of what was left out in three dots
        if judge.spoken.quotes(found[0][1:-1].removesuffix("...")):
            yield found.start(), found.end(), found[0], True


def _ids(text: str, judge: Judge) -> Found:
    for found in _ID.finditer(text):
        ends = re.findall(r"[et]\d+", found[0])
        yield found.start(), found.end(), found[0], all(name in judge.ids for name in ends)


def _stamps(text: str, judge: Judge) -> Found:
    for found in STAMP.finditer(text):
        try:
            borne = judge.spoken.time(found)
        except ValueError:
            borne = False
        yield found.start(), found.end(), found[0], borne


def _clocks(text: str, judge: Judge) -> Found:
    for found in _CLOCK.finditer(text):
        zone = found["zone"]
        stated = zone is None or re.fullmatch(r"Z|UTC|GMT|[+-]\d\d:?\d\d", zone) is not None
        try:
            borne = judge.spoken.word(found[0]) or (stated and judge.spoken.time(found))
        except ValueError:
            borne = False
        yield found.start(), found.end(), found[0], borne


def _days(text: str, judge: Judge) -> Found:
    for found in _DAY.finditer(text):
        month = (found["m1"] or found["m2"]).lower()[:3]
        if month not in _MONTHS or (found["m1"] or found["m2"]).lower() == "mar":
            continue
        wanted = (_MONTHS.index(month) + 1, int(found["d1"] or found["d2"]))
        borne = any(
            (day.month, day.day) == wanted and found["year"] in (None, str(day.year))
            for day in judge.spoken.dates
        )
        yield found.start(), found.end(), found[0], borne


def _hostlists(text: str, judge: Judge) -> Found:
    for found in HOSTLIST.finditer(text):
        try:
            hosts = expand(found[0])
        except FormatError:
            hosts = ()
        borne = bool(hosts) and all(map(judge.spoken.word, hosts))
        yield found.start(), found.end(), found[0], borne or judge.spoken.word(found[0])


def _literals(text: str, judge: Judge) -> Found:
    for pattern in (_DOTTED, _HEX):
        for found in pattern.finditer(text):
            number = str(int(found[0], 16)) if found[0].startswith("0x") else found[0]
            borne = judge.spoken.word(found[0]) or judge.spoken.number(number, None)
            yield found.start(), found.end(), found[0], borne


def _labels(text: str, judge: Judge) -> Found:
    for found in LABELLED.finditer(text):
        named = judge.spoken.word(found[0]) and found[0].isalnum()  # a host may be called gpu2
        borne = set(labels_in(found[0])) <= judge.spoken.labelled
        yield found.start(), found.end(), found[0], borne or named


def _lengths(text: str, judge: Judge) -> Found:
    for found in _LENGTH.finditer(text):
        total = 0.0
        for number, name in re.findall(r"(\d+(?:\.\d+)?)\s?([a-z]+)", found[0]):
            unit = unit_named(name)
            total += float(number) * (unit.scale if unit else 0.0)
        yield found.start(), found.end(), found[0].strip(), judge.spoken.seconds(total)


def _ordinals(text: str, judge: Judge) -> Found:
    for found in _ORDINAL.finditer(text):
        borne = found[1] is None or judge.spoken.number(found[1], None)
        yield found.start(), found.end(), found[0], borne


def _measures(text: str, judge: Judge) -> Found:
    """Numbers with their units; the first of a range (`88-90 W`) has the unit of the last."""
    every = list(MEASURE.finditer(text))
    for at, found in enumerate(every):
        unit = found["unit"]
        known = unit_named(unit) if unit else None
        following = every[at + 1] if at + 1 < len(every) else None
        if unit in (None, "to") and following is not None:
            between = text[found.end("number") : following.start()]
            if re.fullmatch(r"\s?(?:-|–|—|to)\s?", between):
                unit = following["unit"]
                known = unit_named(unit) if unit else None
        glued = found["unit"] is not None and known is None
        if glued and text[found.end("number")] == found["unit"][0]:
            token = found[0]  # 4x, 12k: no unit of ours, so it is a word
            yield found.start(), found.end(), token, judge.spoken.word(token)
            continue
        borne = judge.spoken.number(found["number"], unit if known is not None else None)
        yield found.start(), found.end("number"), found[0].strip(), borne


def _names(text: str, judge: Judge) -> Found:
    """Words that carry a digit: hosts, devices, models of cards, versions of things."""
    for found in _NAME.finditer(text):
        token = found[0].rstrip("./-")
        if number_of(token) is not None or MEASURE.fullmatch(token):
            continue
        borne = token in judge.codes or token.lower() in _HARMLESS or judge.spoken.word(token)
        yield found.start(), found.end(), token, borne


def _number_words(text: str, judge: Judge) -> Found:
    """`two hosts`: so many are cited, or the number stands there."""
    for found in _WORDS.finditer(text):
        word, noun = found["word"].lower(), (found["noun"] or "").lower()
        singular = (
            "query" if noun.startswith("quer") else re.sub(r"(?<=[a-z])(?:(?<=ss)es|s)$", "", noun)
        )
        number = {"both": 2, "twice": 2, "double": 2, "doubled": 2}.get(word)
        number = _SMALL.index(word) if word in _SMALL else number
        if number is not None and noun and judge.spoken.counts.get(singular) == number:
            yield found.start(), found.end(), found[0], True
        elif word == "both" and not noun:
            continue
        else:
            borne = judge.spoken.word(word) or (
                number is not None and judge.spoken.number(str(number), None)
            )
            yield found.start(), found.end(), found[0], borne


def _beliefs(text: str, judge: Judge) -> Found:
    """How sure one may be is computed by the rules: no number for it is a model's to give."""
    found = _BELIEF.search(text)
    number = MEASURE.search(text)
    if found is not None and number is not None:
        yield found.start(), found.end(), f"{found[0]} {number[0]}", False


_FINDERS: tuple[Callable[[str, Judge], Found], ...] = (
    _quotations, _urls, _beliefs, _ids, _stamps, _clocks, _days, _hostlists, _literals,
    _labels, _lengths, _ordinals, _names, _measures, _number_words,
)  # fmt: skip
