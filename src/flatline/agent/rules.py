"""
An answer without a model: what of the verdict and of the records speaks of the question.

Every sentence is one that the rules, a family's page or a record already says; nothing is worded
anew, and where nothing speaks of the question that is the answer.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from flatline.agent.bench import Bench
from flatline.agent.pages import shown
from flatline.families import all_families
from flatline.model.reasoning import Reasoning, Rejected, Sentence
from flatline.render import ordered_findings
from flatline.wording.places import fold_places

MOST = 7
_WORD = re.compile(r"[a-z0-9][a-z0-9_.-]*[a-z0-9]|[a-z0-9]")
_EMPTY = frozenset(
    _WORD.findall(
        "a an and any are as at be been but by can did do does for from had has have how i if in"
        " is it its me my not of on or our run runs say says so than that the their them there"
        " these this those to us was we were what when where which while who why will with would"
        " you your happened job please show tell explain about much many"
    )
)
_MEANT = {
    "slow": "slow pace throughput step time straggler",
    "hang": "hang hung froze stopped wait collective",
    "hung": "hang hung froze stopped wait collective",
    "stuck": "hang hung froze stopped wait collective",
    "crash": "crash exception raised traceback signal",
    "crashed": "crash exception raised traceback signal",
    "oom": "memory out oom killed",
    "node": "node host hosts",
    "resubmit": "resubmit submit again rerun exclude",
    "again": "resubmit submit again rerun exclude",
    "fix": "fix do raise exclude rerun",
    "network": "network link rdma nic connection",
    "loss": "loss diverged nan finite",
}
"""Words people ask with, and those the rules answer with."""


@dataclass(frozen=True, slots=True)
class _Said:
    text: str
    cites: tuple[str, ...]
    weight: float = 1.0


def answered(bench: Bench, question: str, why: str) -> Reasoning:
    """The rules' own sentences that fit the question best; `why` says that no model did."""
    verdict = bench.verdict
    chosen = _ranked(question, [*_sentences(bench), *_kinds(question)])
    if not chosen:
        chosen = [_Said(claim.text, bench.ledger.ids(claim.cites))
                  for claim in (*verdict.shows, *verdict.implies)[:MOST]]  # fmt: skip
    open_ = [] if chosen else [_Said("Nothing that was read speaks of it.", ())]
    return Reasoning(
        question=shown(question, 600),
        model=None,
        code=verdict.code,
        family=verdict.family,
        answered=True,
        stands=verdict.code,
        overturned=False,
        ruling=why,
        claims=tuple(Sentence(shown(one.text, 500), one.cites) for one in [*chosen, *open_]),
        prose=tuple(_learnt(bench, question)),
        rejected=tuple[Rejected](),
    )


def _sentences(bench: Bench) -> Iterator[_Said]:
    """All that the rules say of the run, the verdict's own first."""
    verdict, ids = bench.verdict, bench.ledger.ids
    for claim in (*verdict.shows, *verdict.implies):
        yield _Said(claim.text, ids(claim.cites)[:6], 1.3)
    for action in verdict.actions:
        command = f" `{action.command}`" if action.command else ""
        yield _Said(f"To do ({action.kind}): {action.text}{command}", (), 1.2)
    for text in verdict.cannot_decide:
        yield _Said(f"Cannot be decided: {text}", ())
    for judged in ordered_findings(verdict):
        finding = judged.finding
        where = f" Where: {fold_places(finding.culprits)}." if finding.culprits else ""
        head = f"{finding.code} {judged.family} ({judged.role})"
        yield _Said(f"{head}: {finding.summary}{where}", ids(finding.cites)[:6], 1.1)
    for ruled in verdict.ruled_out:
        said = f"Ruled out, {ruled.code} {ruled.family}: {ruled.why}"
        yield _Said(said, ids(ruled.cites)[:6])
    for lacking in verdict.undetermined:
        said = f"Undetermined, {lacking.code} {lacking.family}: needs {'; '.join(lacking.missing)}"
        yield _Said(said, (), 0.9)
    for gap in verdict.gaps:
        yield _Said(f"Not read, {gap.need} ({gap.where or 'everywhere'}): {gap.reason}", (), 0.8)
    for name, cite in bench.ledger.items:
        yield _Said(f"{name}: {cite.text}", (name,), 0.8)


def _kinds(question: str) -> Iterator[_Said]:
    """The families that the question names, by code or by a word of their names."""
    asked = set(_words(question))
    for family in all_families():
        if asked & {family.code.lower(), family.name, *family.name.split("-")}:
            yield _Said(f"{family.code} {family.name}, as a kind: {_first(family.page)}", (), 0.6)


def _first(page: str) -> str:
    return " ".join(page.strip().split("\n\n")[0].split())


def _learnt(bench: Bench, question: str) -> Iterator[Sentence]:
    """Like failures elsewhere, where there is a shelf of them."""
    shelf = bench.extras.shelf
    if shelf is None:
        return
    for passage in shelf.search(f"{question} {bench.verdict.headline}", 2):
        said = f"Met elsewhere ({passage.id}): {passage.title}. {passage.text} ({passage.source})"
        yield Sentence(shown(said, 600))


# --- ranking ----------------------------------------------------------------------------------


def _ranked(question: str, all_: Sequence[_Said]) -> list[_Said]:
    """Those that share the question's rare words, the best first; one that shares none is none."""
    wanted = Counter(_words(question))
    for word in list(wanted):
        wanted.update({more: 1 for more in _MEANT.get(word, "").split()})
    held = [frozenset(_words(one.text)) for one in all_]
    common = Counter(word for words in held for word in words)
    rare = {word: math.log(1 + len(all_) / common[word]) for word in wanted if common[word]}
    scored = []
    for at, (one, words) in enumerate(zip(all_, held, strict=True)):
        shared = sum(rare[word] for word in wanted if word in words and word in rare)
        if shared > 0:
            length = math.sqrt(8 + len(words))
            scored.append((-one.weight * shared / length, at, one))
    best = sorted(scored, key=lambda item: item[:2])
    floor = best[0][0] / 2.5 if best else 0.0
    return list(_once(one for score, _, one in best if score <= floor))[:MOST]


def _once(all_: Iterable[_Said]) -> Iterator[_Said]:
    seen: set[str] = set()
    for one in all_:
        key = one.text.partition(": ")[2] or one.text
        if key not in seen:
            seen.add(key)
            yield one


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.lower()) if word not in _EMPTY]
