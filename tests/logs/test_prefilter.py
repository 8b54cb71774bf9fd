"""Patterns widened for raw bytes: nothing that matches is missed, little that does not is kept."""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flatline
from flatline import parsers, signatures
from flatline.errors import CatalogueError
from flatline.logs.database import HyperscanEngine, compiled
from flatline.logs.hits import ID_BITS, ID_MASK
from flatline.logs.prefilter import prefilter
from flatline.logs.reading import clean, plain


def proposes(pattern: str, raw: bytes) -> bool:
    one = prefilter(pattern)
    flags = re.MULTILINE | (re.IGNORECASE if one.caseless else re.NOFLAG)
    return re.search(one.pattern.encode(), raw, flags) is not None


@pytest.mark.parametrize(
    ("pattern", "widened"),
    (
        (r"NCCL WARN .*", r"NCCL\x20WARN\x20"),
        (r".*Killed", r"Killed"),
        (r"(?P<n>\d+)% done(?: .{0,40})?", r"[0-9]\x25\x20done"),
        (r"ab{2,5}", r"ab{2}"),
        (r"^.*foo.*$", r"foo"),
        (r"x(?=y)(?!z)", r"x"),
        (r"a(?:b|c\d*)", r"a(?:b|c)"),
        (r"━+\d", r"\xe2\x94\x81[0-9]"),
        (r"a(?:bc|\S{2})", r"a(?:bc|[^\x09-\x0d\x20]{2})"),
        (r"a(?:b\S|c)", r"a(?:b[^\x09-\x0d\x20]|c)"),
        (r"a(?:\Sb|c)d", r"a(?:[^\x09-\x0d\x20]{1,4}b|c)d"),
    ),
)
def test_what_may_be_left_out_is_left_out(pattern: str, widened: str) -> None:
    """An engine that reports every end of a match has one to report."""
    assert prefilter(pattern).pattern == widened


@pytest.mark.parametrize(
    "raw", (b"Killed", b"3: Killed", b"[rank1]: Killed  ", b"a\n[default0]:Killed\nb")
)
def test_an_anchor_holds_behind_a_label(raw: bytes) -> None:
    """A label stands before what `^` means, blanks may stand before `$`."""
    assert proposes(r"^Killed$", raw)


@pytest.mark.parametrize("raw", (b"notKilled", b"Killed by", b"3: was_Killed"))
def test_an_anchor_still_discriminates(raw: bytes) -> None:
    """Not everything is a label."""
    assert not proposes(r"^Killed$", raw)


@pytest.mark.parametrize(
    "pattern", (r"a.*b", r"a\s+b", r"a[^x]b", r"a\Wb", r"a\Db", r"(?s)a.b", r"a(\S*)\s*\1b")
)
def test_no_match_reaches_over_a_line_break(pattern: str) -> None:
    """Neither over a newline nor over a carriage return."""
    assert not proposes(pattern, b"a\nb")
    assert not proposes(pattern, b"a\rb")


@pytest.mark.parametrize(
    "pattern", (r"a.b", r"a[^x]b", r"a\Sb", r"^a.{1,2}b$", r"a[é━]b", r"a(?:━|x)b", r"a\w*.b")
)
def test_a_character_may_be_several_bytes(pattern: str) -> None:
    """What `.` matches in the text it matches in the bytes."""
    for text in ("a━b", "aéb"):
        if re.search(pattern, text, re.ASCII):
            assert proposes(pattern, text.encode())


def test_case_is_ignored_where_the_pattern_ignores_it() -> None:
    """For the whole pattern or a part of it."""
    assert proposes(r"(?i)out of memory", b"Out Of Memory")
    assert proposes(r"a(?i:bc)d", b"aBCd")
    assert not proposes(r"a(?i:bc)d", b"ABCd")


@pytest.mark.parametrize(
    ("pattern", "why"),
    (
        (r"a*", "empty text"),
        (r"^$", "empty text"),
        (r"(?=.*x)", "empty text"),
        (r"a\nb", "one line"),
        (r"[\r\n]", "one line"),
        (r"(unclosed", "unterminated"),
    ),
)
def test_what_cannot_be_scanned_for_is_refused(pattern: str, why: str) -> None:
    """With the pattern and the reason."""
    with pytest.raises(CatalogueError, match=why):
        prefilter(pattern)


PIECES = st.sampled_from(
    (r"a", r"b", r"ab", r"\d", r"\d+", r"\w+", r"\s", r"\s*", r".", r".*", r".{1,3}", r"[^b]",
     r"[ab:]", r"(a|bc)", r"(?:a|b)?", r"\b", r"(?i:A)", r"b{2,3}", r"\S+", r": ",
     r"(?:\d+,)*", r"é")
)  # fmt: skip
PATTERNS = st.builds(
    lambda start, pieces, end: start + "".join(pieces) + end,
    st.sampled_from(("", "^", "(?i)", r"\b")),
    st.lists(PIECES, min_size=1, max_size=6),
    st.sampled_from(("", "$", r"\b")),
)
TEXTS = st.text(st.sampled_from("aAbBc1 2:,é━_\t"), max_size=24).map(str.rstrip)


@given(PATTERNS, TEXTS)
def test_nothing_that_matches_is_missed(pattern: str, text: str) -> None:
    """For any pattern that is not refused and any line, label or not."""
    try:
        prefilter(pattern)
    except CatalogueError:
        return
    if re.search(pattern, text, re.ASCII):
        assert proposes(pattern, text.encode())
        assert proposes(pattern, b"before\n12: " + text.encode() + b"  \nafter")


@pytest.mark.parametrize(
    ("pattern", "told"),
    (
        (r"Training from epoch \d+ on \d", r"Training\x20from\x20epoch\x20"),
        (r"(?:\d+ of|all) watchdogs were stopped", r"\x20watchdogs\x20were\x20"),
        (r"x (?:sotoldaswasthis|astoldaswasthat) y", r"(?:sotoldaswasthis|astoldaswasthat)"),
        (r"x (?:first telling one|short) y", r"x\x20(?:first\x20telling\x20one|short)\x20y"),
        (r"\d too short to be cut\.", r"\x20too\x20short\x20to\x20be\x20"),
        (r"\d(?i:some telling text)", r"(?i:some\x20telling\x20text)"),
        (r"(?:some telling text)?\d+%", r"[0-9]\x25"),
        (r"\d{3} too short \d", r"[0-9]{3}\x20too\x20short\x20"),
    ),
)  # fmt: skip
def test_a_long_text_of_every_match_is_the_pattern(pattern: str, told: str) -> None:
    """What must not stand in a match, or is short, tells nothing."""
    assert prefilter(pattern).pattern == told


@pytest.mark.parametrize(
    ("pattern", "left"),
    (
        (r"step is \d+", r"step\x20is\x20"),
        (r"step is [0-9]{3}", r"step\x20is\x20"),
        (r"a step \d", r"a\x20step\x20[0-9]"),
        (r"\d step is$", r"[0-9]\x20step\x20is[ \x09\x0b\x0c]*$"),
        (r"a step (?:is it \d|was\d)", r"a\x20step\x20(?:is\x20it\x20[0-9]|was[0-9])"),
        (r"a (?:step it is \d|was\d)", r"a\x20(?:step\x20it\x20is\x20|was[0-9])"),
    ),
)
def test_a_class_behind_a_text_of_eight_bytes_is_left_out(pattern: str, left: str) -> None:
    """As whether the text stands there is all that is asked; a mark stays."""
    assert prefilter(pattern).pattern == left


@pytest.mark.parametrize(
    ("pattern", "left"),
    (
        (r"to (?:pid=\d|\S)", r"to\x20[^\x09-\x0d\x20]"),
        (r"to (?:pid=\d|[a-f])", r"to\x20(?:pid\x3d[0-9]|[a-f])"),
        (r"to (?:ab|a|cd)", r"to\x20(?:a|cd)"),
        (r"(?:ba|a|ab) to", r"(?:a|ab)\x20to"),
        (r"to (?:ab|c|cd) b", r"to\x20(?:ab|c|cd)\x20b"),
    ),
)
def test_an_alternative_that_another_begins_or_ends_is_left_out(pattern: str, left: str) -> None:
    """Where its one byte is enough, at the end of the pattern or the beginning."""
    assert prefilter(pattern).pattern == left


@pytest.mark.parametrize(
    ("pattern", "left"),
    (
        (r"wandb: {1,40}(?:total_)?loss nan", r"loss\x20nan"),
        (r"wandb: \d+%", r"[0-9]\x25"),
        (r"wandb: ", r"wandb\x3a\x20"),
        (r"wandb:loss nan", r"wandb\x3aloss\x20nan"),
        (r"a wandb: \d", r"a\x20wandb\x3a\x20"),
    ),
)
def test_a_label_of_every_line_is_left_out(pattern: str, left: str) -> None:
    """Where something follows it."""
    assert prefilter(pattern).pattern == left


def test_a_break_beside_a_telling_text_is_still_refused() -> None:
    """No line holds both."""
    with pytest.raises(CatalogueError, match="one line"):
        prefilter(r"some telling text\d\n")


KNOWN = tuple(dict.fromkeys(
    [signature.pattern for signature in signatures.load()]
    + [trigger for one in parsers.line_formats() for trigger in one.TRIGGERS]
))  # fmt: skip


LINES = [line for one in signatures.load() for line in (*one.samples, *one.near_misses)]


@cache
def recorded() -> list[bytes]:
    """Lines of the signatures' samples and of the logs that are bundled."""
    logs = sorted(
        path
        for path in Path(flatline.__file__).parent.glob("demo/**/*")
        if path.suffix in (".log", ".out")
    )
    data = "\n".join(LINES).encode() + b"\n" + b"\n".join(path.read_bytes() for path in logs)
    return data.replace(b"\r", b"\n").split(b"\n")


def garbled(lines: list[bytes]) -> list[bytes]:
    """Each line with pieces of others in it, or cut, or with bytes changed, as the engine gets
    it: without what draws over a line."""
    dice = random.Random(11)
    rows = []
    for line in lines:
        other, at = dice.choice(lines), dice.randrange(len(line) + 1)
        rows.append(
            line[:at] + dice.choice((other, other[at:], b"", dice.randbytes(2))) + line[at:]
        )
    return [plain(row.replace(b"\n", b"").replace(b"\r", b"")) for row in rows]


def proposed(lines: list[bytes], whole: bool) -> set[tuple[int, int]]:
    """(line, pattern) of all that the engine proposes for the catalogue's patterns."""
    filters = [prefilter(one, whole=whole) for one in KNOWN]
    ends = HyperscanEngine(compiled(filters), ()).ends(b"\n".join(lines))
    starts, at = [], 0
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    return {(bisect_right(starts, (end >> ID_BITS) - 1) - 1, end & ID_MASK) for end in ends}


@pytest.mark.parametrize("change", (list, garbled), ids=("recorded", "garbled"))
def test_telling_texts_lose_no_match(change: Callable[[list[bytes]], list[bytes]]) -> None:
    """All that whole patterns propose is proposed, and besides nothing that `re` takes."""
    lines = change(recorded())
    told, whole = proposed(lines, whole=False), proposed(lines, whole=True)
    decide = [re.compile(pattern, re.ASCII) for pattern in KNOWN]

    assert whole <= told
    assert not [
        (lines[line], KNOWN[number])
        for line, number in told - whole
        if decide[number].search(clean(lines[line]))
    ]


def test_telling_texts_propose_few_lines_more() -> None:
    """Each costs a look at the line."""
    lines = recorded()
    told, whole = (len({line for line, _ in proposed(lines, one)}) for one in (False, True))

    assert whole <= told < 1.1 * whole


@pytest.mark.parametrize(
    ("pattern", "told"),
    (
        (r"\b(?:ice|tg3) .{0,60}Link is (?:Down|down)", r"Link\x20is\x20(?:Down|down)"),
        (r"(?:bash: |sh: \d{1,4}: )\w{1,9}: not found", r"\x3a\x20not\x20found"),
        (r"(?:few .{0,9}longer text|Xid \d{1,3})", r"(?:longer\x20text|Xid\x20[0-9])"),
        (r"(?:gc: |GC ).{0,100}\d", r"(?:gc\x3a\x20|GC)[^\x0a\x0d]*[0-9]"),
        (r"val[ _](?:acc|time)|test run", r"(?:al[\x20\x5f](?:acc|time)|test\x20run)"),
        (r"(?:lost|no) checkpoint ", r"(?:lost|no)\x20checkpoint\x20"),
    ),
)
def test_short_texts_before_a_longer_one_are_left_out(pattern: str, told: str) -> None:
    """Each length of a text costs the engine one of its groups."""
    assert prefilter(pattern).pattern == told
