"""The sentence of a claim: written here, never by a model."""

from __future__ import annotations

from flatline.claims.model import Claim


def render(claim: Claim) -> str:
    """One sentence with its evidence id; what it quotes is one line, masked and defanged."""
    raise NotImplementedError
