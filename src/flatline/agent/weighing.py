"""What a model said, claim by claim against the evidence, and what that may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from flatline.agent.bench import Bench
from flatline.agent.pages import shown
from flatline.agent.thoughts import Said
from flatline.claims import Ask, Checked, Ruling, check, claim_from, overturn, render, strike
from flatline.errors import UsageError
from flatline.model.reasoning import Rejected, Sentence

Evidence = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Weighed:
    """Claims that hold as sentences of ours, prose that passed, what was rejected, the ruling."""

    claims: tuple[Sentence, ...]
    prose: tuple[Sentence, ...]
    rejected: tuple[Rejected, ...]
    ruling: Ruling


def weighed(bench: Bench, said: Said, ask: Ask) -> Weighed:
    """Every claim executed again; `said` names hosts as the run does."""
    sentences: dict[str, Sentence] = {}
    rejected: list[Rejected] = []
    checked: list[Checked] = []
    for given in said.claims:
        try:
            claim = claim_from(given)
        except UsageError as fault:
            rejected.append(Rejected(shown(orjson.dumps(given).decode(), 200), str(fault)))
            continue
        result = check(claim, bench.known, ask)
        checked.append(result)
        if result.holds:
            words = render(claim)
            sentences.setdefault(words, Sentence(words, (claim.evidence,)))
        else:
            rejected.append(Rejected(render(claim), result.reason))
    prose, struck = _prose(bench, said.prose, [c.claim.evidence for c in checked if c.holds])
    rejected += struck
    return Weighed(
        claims=tuple(sentences.values()),
        prose=prose,
        rejected=tuple(rejected),
        ruling=overturn(bench.document, checked, said.code),
    )


def _prose(
    bench: Bench, prose: str, cited: Sequence[str]
) -> tuple[tuple[Sentence, ...], list[Rejected]]:
    if not prose.strip():
        return (), []
    known = {name: bench.known[name] for name in dict.fromkeys(cited) if name in bench.known}
    left, struck = strike(prose, known)
    kept = (Sentence(shown(left, 2_000), tuple(known)),) if left.strip() else ()
    return kept, [Rejected(shown(one.sentence, 300), f"{one.token}: {one.reason}")
                  for one in struck]  # fmt: skip
