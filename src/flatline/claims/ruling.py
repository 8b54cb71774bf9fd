"""What an answer may change of a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flatline.claims.model import Checked, Ruling


def overturn(document: Mapping[str, Any], claims: Sequence[Checked], code: str | None) -> Ruling:
    """
    What stands: the verdict's family or the answer's, `code`, None for "none of them fits".

    A verdict of confidence 0.99 or more falls only where a checked claim contradicts it; any
    other only where a checked claim supports the answer.  No answer makes a run healthy.
    """
    raise NotImplementedError
