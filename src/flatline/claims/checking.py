"""A claim against its evidence, executed again."""

from __future__ import annotations

from flatline.claims.model import Checked, Claim, Known
from flatline.claims.rerun import Ask


def check(claim: Claim, evidence: Known, ask: Ask) -> Checked:
    """Whether the claim holds. Never raises for what the claim or its evidence says."""
    raise NotImplementedError
