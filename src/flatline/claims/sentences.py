"""The sentence of a claim: written here, never by a model."""

from __future__ import annotations

from flatline.claims.model import Claim, Comparator
from flatline.claims.units import number_of
from flatline.model import Scalar
from flatline.redact import mask
from flatline.wording.rows import moment
from flatline.wording.untrusted import defanged, sentence

QUOTE_CHARS, NAME_CHARS = 200, 120
_VERBS: dict[Comparator, str] = {
    "=": "is",
    "!=": "is not",
    "<": "is below",
    "<=": "is at most",
    ">": "is above",
    ">=": "is at least",
    "approx": "is about",
    "first": "is first",
    "last": "is last",
    "before": "is before",
    "after": "is after",
    "contains": "contains",
    "absent": "is absent",
}


def render(claim: Claim) -> str:
    """One sentence with its evidence id; what it quotes is one line, masked and defanged."""
    said = f"{_subject(claim)} {_predicate(claim)}{_where(claim)}{_when(claim)}"
    return f"{said[:1].upper()}{said[1:]} [{_safe(claim.evidence, 40)}]."


def _subject(claim: Claim) -> str:
    quantity = claim.quantity.strip()
    if claim.comparator == "absent":
        return _quoted(claim.value)
    if quantity.lower() in ("line", "text"):
        return "the line"
    if quantity.lower() == "time":
        return "the time"
    words = _safe(quantity, NAME_CHARS)
    return words if quantity.replace(" ", "").isalnum() else f"`{words.replace('`', '´')}`"


def _predicate(claim: Claim) -> str:
    verb = _VERBS[claim.comparator]
    if claim.comparator == "absent":
        return "stands in none of the logs that were searched"
    if claim.quantity.strip().lower() in ("line", "text"):
        if claim.comparator in ("first", "last"):
            return f"is the {claim.comparator} of its file that contains {_quoted(claim.value)}"
        return f"{'says' if verb == 'contains' else verb} {_quoted(claim.value)}"
    unit = f" {_safe(claim.unit, 20)}" if claim.unit else ""
    about = f", within {claim.tolerance_ratio * 100:g} %" if claim.tolerance_ratio else ""
    return f"{verb} {_value(claim.value)}{unit}{about}"


def _value(value: Scalar) -> str:
    """Numbers and times as they are, words in quotation marks."""
    if isinstance(value, str) and number_of(value) is None and not value[:4].isdigit():
        return _quoted(value)
    if isinstance(value, float):
        return f"{value:.12g}"
    return _safe(str(value), NAME_CHARS)


def _where(claim: Claim) -> str:
    place = _safe(str(claim.place), NAME_CHARS) if claim.place else ""
    return f", {place}" if place else ""


def _when(claim: Claim) -> str:
    if claim.window is None:
        return ""
    start, end = claim.window
    if start == end:
        return f", at {moment(end)}"
    return f", from {moment(start)} to {moment(end, start)}"


def _quoted(value: Scalar) -> str:
    return f"“{_safe(str(value), QUOTE_CHARS)}”"


def _safe(text: str, most: int) -> str:
    said = defanged(sentence(mask(text[: 8 * most])))
    return said if len(said) <= most else said[: most - 1] + "…"
