"""
Prose a model wrote: sentences that say what no cited evidence says are taken out.

Not what a sentence means is judged, only what can be: each number with its unit, percentage, time,
host, rank, GPU, name with a digit in it and evidence id has to stand in the evidence.  Numbering
of lists, ordinals in words and codes of families are no claims; addresses of the web never stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.claims.model import Known, Struck
from flatline.claims.spoken import Spoken
from flatline.claims.tokens import Judge

_END = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bcf\.)[\"')\]*_”]{0,3}\s+"
    r"(?=[\"'“(\[`*_]{0,3}[A-Z0-9])"
)
_NUMBERING = re.compile(r"\s*(?:#{1,6}\s+|>\s*|[-*+•]\s+|\(?\d{1,3}[.)]\s+|\(\d{1,3}\)\s+)*")

PROSE_CHARS = 40_000


def strike(
    prose: str, evidence: Known, names: Iterable[str] = ()
) -> tuple[str, tuple[Struck, ...]]:
    """
    The prose that is left, and what was struck.

    `evidence` is what the answer cites; `names` are hosts of the run that have to stand in it
    where they are named, whatever they look like.
    """
    if len(prose) > PROSE_CHARS:
        return "", (Struck(prose[:200], "", f"prose has {PROSE_CHARS} characters at most"),)
    judge = Judge(Spoken.of(evidence), frozenset(evidence), tuple(names))
    kept: list[str] = []
    struck: list[Struck] = []
    for line in prose.splitlines():
        head = _NUMBERING.match(line)
        start = head.end() if head else 0
        left = []
        for sentence in _END.split(line[start:]):
            token = judge.unborne(sentence)
            if token is None:
                left.append(sentence)
            else:
                struck.append(Struck(sentence, token, f"{token!r} stands in no cited evidence"))
        if "".join(left).strip() or not line[start:].strip():
            kept.append(line[:start] + " ".join(left))
    return "\n".join(kept), tuple(struck)
