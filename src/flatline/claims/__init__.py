"""
Typed claims: what a language model may say of a run, and the code that checks it.

A model hands over claims and prose.  A claim is data: evidence, quantity, comparator, value, unit,
place, window.  `check` executes its evidence again and compares; the sentence is rendered from the
claim, never taken from the model.  In prose every number, host, rank and time must stand in cited
evidence, or `strike` takes its sentence out.  `overturn` decides what an answer may change.

    known = {item["id"]: item for item in document["evidence"]}
    again = Rerun.of(document, targets)
    checked = [check(claim, known, again) for claim in claims]
    prose, struck = strike(text, known)
    ruling = overturn(document, checked, code)
"""

from __future__ import annotations

from flatline.claims.checking import check
from flatline.claims.model import (
    COMPARATORS,
    Checked,
    Claim,
    Comparator,
    Evidence,
    Known,
    Ruling,
    Struck,
)
from flatline.claims.names import Names
from flatline.claims.prose import strike
from flatline.claims.rerun import Ask, Rerun
from flatline.claims.ruling import overturn
from flatline.claims.sentences import render
from flatline.claims.shape import CLAIM_SCHEMA, claim_from

__all__ = [
    "CLAIM_SCHEMA",
    "COMPARATORS",
    "Ask",
    "Checked",
    "Claim",
    "Comparator",
    "Evidence",
    "Known",
    "Names",
    "Rerun",
    "Ruling",
    "Struck",
    "check",
    "claim_from",
    "overturn",
    "render",
    "strike",
]
