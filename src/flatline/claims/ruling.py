"""What an answer may change of a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flatline.claims.model import Checked, Ruling
from flatline.families import all_families

DECISIVE = 0.99
"""From this confidence on a verdict rests on a line that leaves no other reading."""
HEALTHY = "G1"


def overturn(document: Mapping[str, Any], claims: Sequence[Checked], code: str | None) -> Ruling:
    """
    What stands: the verdict's family or the answer's, `code`, None for "none of them fits".

    A verdict of confidence 0.99 or more falls only where a checked claim contradicts it: one that
    rests on evidence which the verdict's own document counts for the other family, or one that
    shows by the verdict's own evidence that this does not say what it was cited for.  Any other
    falls only where a checked claim rests on evidence that is not the verdict's own alone.  No
    answer makes a run healthy, and none that fits none makes a finding undone.
    """
    verdict = document["verdict"]
    own = verdict.get("code")
    names = {family.code: family.name for family in all_families()}
    stands = _Standing(own, verdict.get("family"))
    if code is not None and code not in names:
        return stands.against(f"no family has the code {code[:20]!r}")
    if code == own:
        return stands.against("the answer is the verdict's")
    held = [one for one in claims if one.holds]
    if code == HEALTHY:
        return stands.against("that a run is healthy is said by the rules alone")
    if not held:
        return stands.against("no claim of the answer holds")
    if code is None:
        return stands.against("that nothing fits undoes no finding")
    if float(verdict.get("confidence") or 0.0) >= DECISIVE:
        if not _contradicting(document, claims, code):
            return stands.against("the verdict is decisive and no checked claim contradicts it")
    elif own is not None and not _of_its_own(document, held):
        return stands.against("the claims rest on nothing but the verdict's own evidence")
    return Ruling(code, names[code], True, f"{len(held)} checked claims bear it")


class _Standing:
    def __init__(self, code: str | None, family: str | None) -> None:
        self._code, self._family = code, family

    def against(self, why: str) -> Ruling:
        """The verdict stands."""
        return Ruling(self._code, self._family, False, why)


def _cited_by_verdict(document: Mapping[str, Any]) -> set[str]:
    verdict = document["verdict"]
    claims = [*verdict.get("shows", ()), *verdict.get("implies", ())]
    return {str(name) for claim in claims for name in claim.get("cites", ())}


def _of_its_own(document: Mapping[str, Any], held: Sequence[Checked]) -> bool:
    """Whether a claim rests on something else than what the verdict cites."""
    return bool({one.claim.evidence for one in held} - _cited_by_verdict(document))


def _contradicting(document: Mapping[str, Any], claims: Sequence[Checked], code: str) -> bool:
    """Whether a claim that holds rests on evidence of a finding of the other family, or one on the
    verdict's own evidence found that it does not hold any more."""
    rivals = {
        str(name)
        for finding in document.get("findings", ())
        if finding.get("code") == code and finding.get("role") == "cause"
        for name in finding.get("cites", ())
    } - _cited_by_verdict(document)
    fallen = [one for one in claims if one.reason.startswith("its evidence does not hold")]
    return any(one.holds and one.claim.evidence in rivals for one in claims) or any(
        one.claim.evidence in _cited_by_verdict(document) for one in fallen
    )
