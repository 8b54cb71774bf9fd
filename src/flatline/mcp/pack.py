"""
A verdict as what a model reads: the same words as every surface, within bounds.

No list and no text grows with the run: a job of 16,384 ranks gives a pack of the size of one of
four.  What is left out is counted, and `details` and `evidence` give it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from flatline.mcp.runs import Held
from flatline.mcp.shapes import (
    Counts,
    Diagnosis,
    Lack,
    Lost,
    Match,
    Other,
    Piece,
    Rival,
    RunShape,
    Said,
    Step,
)
from flatline.model import Cite, Claim, Gap, Impact, Judged, LogCite, Place, Run, Verdict
from flatline.redact import mask
from flatline.render import Ledger, beside, fold_ids, located, ordered_findings, own_finding, said
from flatline.wording.columns import WORD, excerpt
from flatline.wording.gaps import troubles
from flatline.wording.places import fold_hosts, fold_places
from flatline.wording.rows import CONFIDENT, instant
from flatline.wording.untrusted import defanged, sentence

CULPRITS, CLAIMS, CITES, PIECES, OTHERS, ACTIONS, OPEN, LACKS, CODES = 6, 4, 4, 4, 3, 4, 4, 4, 8
TEXT, LONG, QUOTE, WHERE = 240, 400, 200, 120
"""Characters of a sentence, of an instruction, of a quoted line, of a place."""
PLACES = 3
Rivals = tuple[Sequence[Rival], Sequence[str]]
"""Ruled out, and open."""
_VARIES = re.compile(r"[\d.:,/-]+|0x[0-9a-f]+")


def diagnosis(
    held: Held, log: Sequence[Match] = (), rivals: Rivals = ((), ()), following: str = ""
) -> Diagnosis:
    """The verdict within bounds, with what was looked up beside it (see `doubt`)."""
    verdict = held.verdict
    open_ = verdict.state == "undetermined"
    return Diagnosis(
        handle=held.handle,
        state=verdict.state,
        headline=safe(verdict.headline),
        code=verdict.code,
        family=verdict.family,
        fault_class=verdict.fault_class and safe(verdict.fault_class, WHERE),
        attribution=verdict.attribution,
        confidence=verdict.confidence,
        confident=verdict.confidence >= CONFIDENT,
        culprits=[safe(str(place), WHERE) for place in verdict.culprits[:CULPRITS]],
        culprits_in_all=len(verdict.culprits),
        cleared=_folded(verdict.cleared),
        scope=_scope(verdict),
        onset=instant(verdict.onset) if verdict.onset else None,
        onset_step=verdict.onset_step,
        lost=_lost(verdict.impact),
        resubmit=verdict.resubmit,
        exclude=_excluded(verdict),
        actions=[_step(one.kind, one.text, one.command) for one in verdict.actions[:ACTIONS]],
        shows=_claims(verdict.shows, held.ledger),
        implies=_claims(verdict.implies, held.ledger),
        cannot_decide=[safe(text, LONG) for text in verdict.cannot_decide[:OPEN]],
        would_help=lacks(verdict)[:LACKS] if open_ else [],
        gaps=gaps_said(verdict)[:OPEN] if open_ else [],
        evidence=_pieces(verdict, held.ledger),
        others=_others(verdict),
        run=_run(verdict.run),
        counts=Counts(
            evidence=len(held.ledger.items),
            findings=len(verdict.findings),
            ruled_out=len(verdict.ruled_out),
            undetermined=len(verdict.undetermined),
            gaps=len(troubles(verdict)),
        ),
        ruled_out=fold_ids(one.code for one in verdict.ruled_out) or None,
        rivals=list(rivals[0]),
        rivals_open=list(rivals[1]),
        log=list(log),
        next=following,
    )


def safe(text: str, most: int = TEXT) -> str:
    """Prose on one line, masked, that cannot pass for anything else, cut at `most` characters."""
    said_ = defanged(sentence(mask(text[: 4 * most])))
    return said_ if len(said_) <= most else said_[: most - 1] + "…"


def quote(text: str, about: Iterable[str] = (), most: int = QUOTE) -> str:
    """A line of the run: the part kept that the claims speak of."""
    words = frozenset(found[0].lower() for claim in about for found in WORD.finditer(claim[:TEXT]))
    return defanged(excerpt(sentence(mask(text[:20_000])), most, words, "…"))


def piece(name: str, cite: Cite, ledger: Ledger, about: Sequence[str], most: int = QUOTE) -> Piece:
    """One citation as every surface shows it: where, what it quotes, what it measured."""
    measured = " ".join(words for words, _ in said(cite, ledger))
    return Piece(
        id=name,
        kind=type(cite).__name__.removesuffix("Cite").lower(),
        where=tail(located(cite)),
        text=quote(cite.text, about, most),
        place=safe(", ".join(beside(cite)), WHERE) or None,
        says=safe(measured, LONG) or None,
    )


def lacks(verdict: Verdict) -> list[Lack]:
    """What telemetry would decide the most families, first."""
    needs: dict[str, list[str]] = {}
    for answer in verdict.undetermined:
        for need in answer.missing:
            needs.setdefault(need, []).append(answer.code)
    ordered = sorted(needs.items(), key=lambda item: -len(item[1]))
    return [Lack(need=safe(need.replace("|", " or ")), codes=codes[:CODES])
            for need, codes in ordered]  # fmt: skip


def gaps_said(verdict: Verdict) -> list[str]:
    """Every gap once, with the first places it is at."""
    said_ = []
    for one in troubles(verdict):
        more = f" and {len(one.wheres) - PLACES} more" if len(one.wheres) > PLACES else ""
        where = f" ({', '.join(one.wheres[:PLACES])}{more})" if one.wheres else ""
        said_.append(safe(f"{one.need}{where}: {one.reason}"))
    return said_


def gap_said(gap: Gap) -> str:
    """What could not be had, where, and why."""
    where = f" ({gap.where})" if gap.where else ""
    return safe(f"{gap.need}{where}: {gap.reason}")


def ids(cites: Iterable[Cite], ledger: Ledger) -> list[str]:
    """The first few evidence ids of a claim."""
    return list(ledger.ids(cites))[:CITES]


def follows(judged: Judged, verdict: Verdict) -> str | None:
    """What explains a finding, by what mechanism."""
    if not judged.explained_by:
        return None
    names = {one.id: f"{one.finding.code} {one.family}" for one in verdict.findings}
    first = judged.explained_by[0]
    return safe(f"{names.get(first.by, first.by)}: {first.mechanism}")


def tail(where: str) -> str:
    """A path keeps its end, which tells files apart."""
    words = defanged(sentence(mask(where)))
    return words if len(words) <= WHERE else "…" + words[1 - WHERE :]


def _folded(places: Sequence[Place]) -> str | None:
    return safe(fold_places(places)) if places else None


def _scope(verdict: Verdict) -> str | None:
    if verdict.scope == "all":
        return "every place alike"
    if verdict.scope == "shared" and verdict.domain:
        return safe(f"shared by many: {verdict.domain}", WHERE)
    many = len(verdict.culprits) > CULPRITS
    return _folded(verdict.culprits) if many else None


def _excluded(verdict: Verdict) -> str | None:
    if verdict.resubmit != "exclude":
        return None
    hosts = fold_hosts(place.host for place in verdict.culprits if place.host is not None)
    return hosts if hosts and re.fullmatch(r"[\w.,\[\]-]{1,400}", hosts) else None


def _lost(impact: Impact | None) -> Lost | None:
    if impact is None:
        return None
    made = Lost(
        gpu_hours=_finite(impact.gpu_hours_lost),
        steps=impact.steps_lost,
        last_checkpoint_step=impact.last_checkpoint_step,
        slowdown_ratio=_finite(impact.slowdown_ratio),
    )
    return made if made.plain() else None


def _finite(number: float | None) -> float | None:
    return round(number, 3) if number is not None and abs(number) < 1e15 else None


def _step(kind: str, text: str, command: str | None) -> Step:
    """A command is given whole or not at all."""
    whole = command if command and len(command) <= LONG and command == defanged(command) else None
    return Step.model_validate({"kind": kind, "text": safe(text, LONG), "command": whole})


def _claims(claims: Sequence[Claim], ledger: Ledger) -> list[Said]:
    return [
        Said(text=safe(claim.text), cites=ids(claim.cites, ledger)) for claim in claims[:CLAIMS]
    ]


def _pieces(verdict: Verdict, ledger: Ledger) -> list[Piece]:
    """The first citation of each claim, then the others in turn, as many as there is room for."""
    claims = [*verdict.shows, *verdict.implies]
    claims = claims or [claim for judged in verdict.findings for claim in judged.finding.shows]
    about = [verdict.headline, *(claim.text for claim in claims)]
    wanted: dict[str, None] = {}
    cited = [ledger.ids(claim.cites[: PIECES * 4]) for claim in claims]
    for at in range(max(map(len, cited), default=0)):
        for names in cited:
            if at < len(names):
                wanted.setdefault(names[at])
    known = dict(ledger.items)
    return [
        piece(names[0], known[names[0]], ledger, about).model_copy(
            update={"alike": fold_ids(names[1:]) or None}
        )
        for names in _told_apart({name: known[name] for name in wanted})[:PIECES]
    ]


def _told_apart(cites: Mapping[str, Cite]) -> list[list[str]]:
    """The ids, together where many ranks say one thing; the lines of one rank are each their own,
    for their numbers are what they tell."""
    made: list[list[str]] = []
    first: dict[str, list[str]] = {}
    spoken: set[tuple[str, Place]] = set()
    for name, cite in cites.items():
        key = _VARIES.sub("", cite.text)[-TEXT:]
        if isinstance(cite, LogCite) and key in first and (key, cite.place) not in spoken:
            first[key].append(name)
        else:
            made.append([name])
            first.setdefault(key, made[-1])
        if isinstance(cite, LogCite):
            spoken.add((key, cite.place))
    return made


def _others(verdict: Verdict) -> list[Other]:
    own = own_finding(verdict)
    others = [judged for judged in ordered_findings(verdict) if judged is not own]
    return [
        Other(
            id=judged.id,
            code=judged.finding.code,
            family=judged.family,
            fault_class=judged.finding.fault_class and safe(judged.finding.fault_class, WHERE),
            role=judged.role,
            confidence=judged.confidence,
            summary=safe(judged.finding.summary),
            follows_from=follows(judged, verdict),
        )
        for judged in others[:OTHERS]
    ]


def _run(run: Run) -> RunShape:
    software = " under ".join(part for part in (run.framework, run.launcher) if part)
    return RunShape(
        id=safe(run.id, WHERE) if run.id else None,
        disposition=run.disposition,
        software=safe(software, WHERE) or None,
        hosts=safe(fold_hosts(run.hosts)) or None,
        world_size=run.world_size,
        last_step=run.last_step,
        planned_steps=run.planned_steps,
    )
