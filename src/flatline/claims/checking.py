"""
A claim against its evidence, executed again.

In this order: the evidence is known and still holds, it is of the place and the time that are
claimed, it speaks of the quantity, the unit fits, the comparison holds.  The first that does not
is the reason.
"""

from __future__ import annotations

import re
from datetime import datetime

from flatline.claims import measuring
from flatline.claims.measuring import PLACES, Measured, Refused, instant_in
from flatline.claims.model import Checked, Claim, Evidence, Known
from flatline.claims.rerun import Ask
from flatline.claims.shape import instant_of
from flatline.claims.units import claimable, converted, number_of, same, whole
from flatline.errors import FlatlineError
from flatline.redact import mask
from flatline.wording.rows import instant, value_text
from flatline.wording.untrusted import defanged, sentence

SKEW_S = 2.0
"""Clocks of hosts are taken to agree within this, as by `Facts.skew_s`; order across files counts
only beyond it."""
LEAST_QUOTE = 3
"""Characters: what is shorter stands in any line."""


def check(claim: Claim, evidence: Known, ask: Ask) -> Checked:
    """Whether the claim holds. Never raises for what the claim or its evidence says."""
    item = evidence.get(claim.evidence)
    if item is None:
        return Checked(claim, False, f"there is no evidence {claim.evidence[:40]!r}")
    try:
        again = ask.holds(item, evidence)
        if not again.ok:
            return Checked(claim, False, f"its evidence does not hold: {again.said[:200]}")
        _one_word(claim)
        _of_its_place(claim, item, ask)
        _of_its_window(claim, item, ask)
        return _compared(claim, item, evidence, ask)
    except Refused as why:
        return Checked(claim, False, str(why))
    except KeyError as fault:
        return Checked(claim, False, f"its evidence does not say its {fault.args[0]!r}")
    except (FlatlineError, OSError, ValueError, TypeError, OverflowError) as fault:
        return Checked(claim, False, mask(str(fault)))


def _compared(claim: Claim, item: Evidence, evidence: Known, ask: Ask) -> Checked:
    quantity = claim.quantity.strip().lower()
    if quantity in PLACES:
        return _place_compared(claim, item, quantity)
    if quantity == "time" or claim.comparator in ("before", "after"):
        return _time_compared(claim, item, evidence, ask)
    if claim.comparator == "absent":
        return _absent(claim, item)
    if item.get("kind") == "query":
        return _number_compared(claim, measuring.of_query(claim, item, ask))
    if item.get("kind") != "log":
        return _any_compared(claim, measuring.of_any(claim, item, ask))
    if quantity in ("line", "text"):
        return _text_compared(claim, item, ask)
    if claim.comparator in ("first", "last"):
        _end_of_file(claim, item, measuring.named(claim.quantity), ask)
    line = ask.line(str(item["source"]), int(item["line"]))
    return _number_compared(claim, measuring.of_line(claim, item, line))


def _one_word(claim: Claim) -> None:
    """Whatever text is not there is unequal: a claim must not carry a sentence of its own so."""
    if claim.comparator == "!=" and re.fullmatch(r"\S{1,64}", str(claim.value)) is None:
        raise Refused("what is unequal is one word or number; quote with contains")


# --- place and window ---------------------------------------------------------------------------


def _of_its_place(claim: Claim, item: Evidence, ask: Ask) -> None:
    """Each part of the place that is claimed is the evidence's, or stands in the line."""
    own = item.get("place") or {}
    for part in (*PLACES, "domain"):
        wanted = getattr(claim.place, part)
        if wanted is None:
            continue
        said = own.get(part)
        if said is not None:
            if not _same_place(part, wanted, said):
                raise Refused(f"the evidence is of {part} {said}, not {wanted}")
        elif not _names(part, wanted, item, ask):
            raise Refused(f"the evidence does not say on which {part} it was")


def _same_place(part: str, wanted: object, said: object) -> bool:
    """A host's short name stands for its full one, not the other way: its domain would be made
    up."""
    if part == "host" and "." not in str(wanted):
        return str(said).partition(".")[0] == str(wanted)
    return str(wanted) == str(said)


def _names(part: str, wanted: object, item: Evidence, ask: Ask) -> bool:
    """Whether a log line itself says so."""
    if item.get("kind") != "log":
        return False
    line = ask.line(str(item["source"]), int(item["line"]))
    if part in ("rank", "task", "gpu"):
        label = r"(?<!local)(?<!local[ _-])\b" + part
        numbers = set(re.findall(rf"(?i){label}[\s:=#]{{0,3}}(\d+)\b", line))
        return numbers == {str(wanted)}
    return re.search(rf"(?<![\w.-]){re.escape(str(wanted))}(?![\w-])", line) is not None


def _of_its_window(claim: Claim, item: Evidence, ask: Ask) -> None:
    if claim.window is None:
        return
    start, end = claim.window
    if end < start:
        raise Refused("the window ends before it starts")
    if item.get("kind") == "query":
        if claim.comparator in ("first", "last"):
            return  # asked again over the window that is claimed
        if not any(_near(start, a) and _near(end, b) for a, b in measuring.asked(item)):
            raise Refused("the query was asked over another window")
        return
    at = _dated(item, ask)
    if at is None:
        raise Refused("the evidence has no time of its own: nothing shows when it was")
    if not start <= at <= end:
        raise Refused(f"it was at {instant(at)}, outside the window")


def _near(one: datetime, other: datetime) -> bool:
    return abs((one - other).total_seconds()) <= 1.0


# --- comparisons --------------------------------------------------------------------------------


def _place_compared(claim: Claim, item: Evidence, part: str) -> Checked:
    said = (item.get("place") or {}).get(part)
    if claim.unit is not None:
        raise Refused(f"a {part} has no unit")
    if said is None:
        raise Refused(f"the evidence does not say which {part} it is of")
    if claim.comparator not in ("=", "!="):
        raise Refused(f"a {part} is = or != another")
    value = claim.value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    equal = not isinstance(value, bool) and _same_place(part, value, said)
    return _said(claim, equal == (claim.comparator == "="), said, None)


def _time_compared(claim: Claim, item: Evidence, evidence: Known, ask: Ask) -> Checked:
    if claim.unit is not None:
        raise Refused("an instant has no unit; its zone stands in it")
    at = instant_in(item)
    if claim.comparator in ("before", "after") and str(claim.value) in evidence:
        return _ordered(claim, item, evidence, ask)
    if at is None:
        raise Refused("the evidence has no time")
    exact = _dated(item, ask)
    wanted = instant_of(claim.value, "the time")
    off = (at - wanted).total_seconds()
    if exact is None and not (claim.comparator in (">", ">=", "after") and off >= 0):
        raise Refused(f"the line has no time of its own: it is no older than {instant(at)}")
    holds = {
        "=": _same_second(at, wanted),
        "!=": not _same_second(at, wanted),
        "<": off < 0, "before": off < 0, "<=": off <= 0,
        ">": off > 0, "after": off > 0, ">=": off >= 0,
    }.get(claim.comparator)  # fmt: skip
    if holds is None:
        raise Refused(f"times are not compared by {claim.comparator}")
    return _said(claim, holds, instant(at), None)


def _dated(item: Evidence, ask: Ask) -> datetime | None:
    """The time of the evidence, where it is its own and, of a line, is printed there."""
    at = instant_in(item)
    if at is None or item.get("at_assumed"):
        return None
    if item.get("kind") == "log":
        printed = ask.time(item)
        if printed is None or abs((printed - at).total_seconds()) > SKEW_S:
            return None
    return at


def _same_second(at: datetime, wanted: datetime) -> bool:
    """To the second where it was written so, else to the millisecond."""
    off = abs((at - wanted).total_seconds())
    return off <= 0.001 if wanted.microsecond else off < 1.0


def _ordered(claim: Claim, item: Evidence, evidence: Known, ask: Ask) -> Checked:
    """Of two lines of one file by their order in it, else by time beyond the clocks' skew."""
    other = evidence[str(claim.value)]
    again = ask.holds(other, evidence)
    if not again.ok or other is item:
        raise Refused(f"{claim.value} does not hold, or is the same evidence")
    if item.get("kind") == other.get("kind") == "log" and item["source"] == other["source"]:
        off = float(int(item["line"]) - int(other["line"]))
    else:
        one, two = _dated(item, ask), _dated(other, ask)
        if one is None or two is None:
            raise Refused("one of the two has no time of its own: their order cannot be told")
        off = (one - two).total_seconds()
        if abs(off) <= SKEW_S:
            raise Refused("they are closer than clocks of hosts agree: their order is not known")
    return _said(claim, off < 0 if claim.comparator == "before" else off > 0, off, None)


def _absent(claim: Claim, item: Evidence) -> Checked:
    if item.get("kind") != "absence":
        raise Refused("only a search of whole logs (evidence of kind absence) shows that")
    if claim.unit is not None or claim.window is not None:
        raise Refused("an absence has no unit, and is of whole files")
    patterns = [str(one) for one in (item.get("searched") or {}).get("patterns", ())]
    if str(claim.value) not in (*patterns, str(item.get("text"))):
        raise Refused(f"what was searched for is {', '.join(patterns)[:120]}")
    return _said(claim, True, 0, None)


def _text_compared(claim: Claim, item: Evidence, ask: Ask) -> Checked:
    if claim.unit is not None:
        raise Refused("a text has no unit")
    wanted = str(claim.value).strip()
    if len(wanted) < LEAST_QUOTE:
        raise Refused(f"a quotation has {LEAST_QUOTE} characters at least")
    line = ask.line(str(item["source"]), int(item["line"]))
    forms = (line, sentence(line), defanged(line), defanged(sentence(line)))
    if claim.comparator == "=":
        return _said(claim, any(wanted == form.strip() for form in forms), line[:200], None)
    if claim.comparator not in ("contains", "first", "last"):
        raise Refused(f"texts are not compared by {claim.comparator}")
    if not any(wanted in form for form in forms):
        return Checked(claim, False, "the line does not say that", line[:200])
    if claim.comparator in ("first", "last"):
        _end_of_file(claim, item, re.compile(re.escape(wanted)), ask)
    return _said(claim, True, line[:200], None)


def _end_of_file(claim: Claim, item: Evidence, pattern: re.Pattern[str], ask: Ask) -> None:
    """The cited line is the first (last) of its file that a pattern is found in."""
    source = str(item["source"])
    found = ask.numbers_of(source, pattern)
    if not found:
        raise Refused("no line of the file says that as it stands")
    line = found[0] if claim.comparator == "first" else found[-1]
    if line != int(item["line"]):
        raise Refused(f"the {claim.comparator} such line of {source} is line {line}")


def _any_compared(claim: Claim, measured: Measured) -> Checked:
    """Values of records are words or numbers."""
    value = measured.value
    if (
        not isinstance(value, bool)
        and number_of(str(value)) is not None
        and claim.comparator != "contains"
    ):
        return _number_compared(claim, measured)
    if claim.unit is not None:
        raise Refused("a text has no unit")
    wanted, held = str(claim.value).strip().lower(), str(value).strip().lower()
    if claim.comparator == "contains":
        return _said(claim, len(wanted) >= LEAST_QUOTE and wanted in held, value, None)
    if claim.comparator not in ("=", "!="):
        raise Refused(f"words are not compared by {claim.comparator}")
    return _said(claim, (wanted == held) == (claim.comparator == "="), value, None)


def _number_compared(claim: Claim, measured: Measured) -> Checked:
    value = measured.value
    number = float(value) if isinstance(value, int | float) else number_of(str(value))
    if number is None:
        raise Refused("what was measured is no number")
    said = claim.value
    wanted = number_of(said) if isinstance(said, str) else said
    if wanted is None or isinstance(wanted, bool):
        raise Refused(f"{str(said)[:60]!r} is no number")
    unit = claimable(claim.unit, measured.unit)
    if unit is None and not (claim.unit is None and measured.unit is None):
        raise Refused(
            f"it is measured in {measured.unit or 'no unit'}, not in {claim.unit or 'no unit'}"
        )
    shown = converted(number, measured.unit, unit)
    number = number if shown is None else shown
    exact = whole(measured.unit)
    text = said if isinstance(said, str | float) else repr(said)
    equal = same(text, number, exact=exact)
    off = number - wanted
    holds = {
        "=": equal, "first": equal, "last": equal, "!=": not equal,
        "<": off < 0 and not equal, "<=": off <= 0 or equal,
        ">": off > 0 and not equal, ">=": off >= 0 or equal,
        "approx": abs(off) <= (claim.tolerance_ratio or 0.0) * abs(number) or number == wanted,
    }.get(claim.comparator)  # fmt: skip
    if holds is None:
        raise Refused(f"numbers are not compared by {claim.comparator}")
    return _said(claim, holds, number, unit)


def _said(claim: Claim, holds: bool, measured: object, unit: str | None) -> Checked:
    value = measured if isinstance(measured, str | int | float) else str(measured)
    if holds:
        return Checked(claim, True, "it holds", value, unit)
    words = value_text(value if not isinstance(value, str) else defanged(sentence(value))[:120])
    return Checked(claim, False, f"it is {words}{' ' + unit if unit else ''}", value, unit)
