"""
What lets a reader trust a verdict or doubt it: what else it could be, lines to look at, and
whether a further call is worth making.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from flatline.collect.searching import Hit
from flatline.families import all_families
from flatline.mcp.pack import quote, tail
from flatline.mcp.runs import Held, Runs
from flatline.mcp.shapes import Match, Rival
from flatline.model import LogCite, QueryCite, Verdict
from flatline.render import Ledger
from flatline.wording.rows import CONFIDENT

RIVALS, WHY, CITES = 3, 160, 2
STRIKING = r"error|exception|fail|fatal|killed|abort|denied|refused|timed? ?out|no space|traceback"
"""What is shown of a log that decided nothing: where a person would look first."""
SOUGHT, SHOWN, LAST, ALIKE, ROOM = 200, 5, 8, 2, 160
"""Striking lines that are looked through, distinct ones that are shown, last lines, how many of
them alike, and columns of each."""
_VARIES = re.compile(r"0x[0-9a-f]+|[\d.:,/-]+(?:e[-+]\d+)?")


def doubted(verdict: Verdict) -> bool:
    """Whether a reader has to look at lines: nothing found, or nothing sure."""
    return verdict.state == "undetermined" or (
        verdict.state == "found" and verdict.confidence < CONFIDENT
    )


def rivals(verdict: Verdict, ledger: Ledger) -> tuple[list[Rival], list[str]]:
    """The families its own is most easily taken for: those ruled out, with why, and those open."""
    own = next((family for family in all_families() if family.code == verdict.code), None)
    if own is None:
        return [], []
    told = {judged.finding.code for judged in verdict.findings}
    ruled = {one.code: one for one in verdict.ruled_out}
    open_ = {one.code for one in verdict.undetermined}
    asked = " ".join(verdict.cannot_decide)
    out = [
        Rival(code=code, family=ruled[code].family, why=ruled[code].why[:WHY],
              cites=list(ledger.ids(ruled[code].cites))[:CITES])
        for code in own.apart if code in ruled and code not in told
    ]  # fmt: skip
    left = [code for code in own.apart if code in open_ and code not in asked]
    return out[:RIVALS], left


def _wording(text: str) -> str:
    """What a line says but for its numbers."""
    return _VARIES.sub("", text)[:120]


def distinct(hits: Sequence[Hit]) -> list[Hit]:
    """The first of lines that are alike but for their numbers."""
    seen: dict[str, Hit] = {}
    for hit in hits:
        seen.setdefault(_wording(hit.text), hit)
    return list(seen.values())


def looked(runs: Runs, held: Held) -> list[Match]:
    """Of a run about which nothing is sure: the lines that strike the eye, then the last ones."""
    if not held.logs or not doubted(held.verdict):
        return []
    cited = {
        (cite.source, cite.line) for _, cite in held.ledger.items if isinstance(cite, LogCite)
    }
    found = runs.searched(held, STRIKING, None, SOUGHT, (0, 1)).hits
    hits = [(hit.source, hit.line, hit.text) for hit in distinct(found)][:SHOWN]
    source = held.speaking or next(iter(held.logs))
    hits += _unlike([(source, line, text) for line, text in runs.last(held, source, LAST)])
    return [
        Match(source=tail(source), line=line, text=quote(text, (), ROOM))
        for source, line, text in dict.fromkeys(hits)
        if (source, line) not in cited
    ]


def _unlike(lines: list[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
    """Of lines alike but for their numbers the last two: a loop's, and that it went on."""
    counts: dict[str, int] = {}
    kept = []
    for row in reversed(lines):
        key = _wording(row[2])
        counts[key] = counts.get(key, 0) + 1
        kept += [row] if counts[key] <= ALIKE else []
    return kept[::-1]


def following(held: Held, shown: Sequence[Match]) -> str:
    """Whether this answer is enough, else the one call that is worth making."""
    verdict = held.verdict
    if not doubted(verdict):
        if verdict.confidence >= CONFIDENT:
            return "report this: it is sure; further calls add detail, not certainty"
        return "report this with its confidence and what is open; no further call decides more"
    numbers = any(isinstance(cite, QueryCite) for _, cite in held.ledger.items)
    look = "query the metric in question once" if numbers else "search_log once"
    if not held.logs:
        return "report it as open; diagnose again with `also` where the log or a record is at hand"
    if verdict.state == "undetermined":
        seen = "the log's last lines stand here" if shown else "nothing striking stands in the log"
        return (
            f"{seen}: if they tell, report that as your reading, not as the verdict; else {look},"
            " or diagnose again with `also`, and then report it as open"
        )
    return f"report it as probable, with what is open; where the lines here contradict it, {look}"
