"""Prose a model wrote: sentences that say what no cited evidence says are taken out."""

from __future__ import annotations

from flatline.claims.model import Known, Struck


def strike(prose: str, evidence: Known) -> tuple[str, tuple[Struck, ...]]:
    """The prose that is left, and what was struck. `evidence` is what the answer cites."""
    raise NotImplementedError
