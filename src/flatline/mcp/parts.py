"""Parts of a verdict and of a listing a page at a time, typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from flatline.errors import UsageError
from flatline.knowledge.outcome import outcome_said
from flatline.mcp.pack import LONG, WHERE, follows, gap_said, ids, piece, safe
from flatline.mcp.runs import Held
from flatline.mcp.shapes import Details, Group, JobCounts, JobRow, Jobs, Row
from flatline.model import LogCite, Related
from flatline.render import ordered_findings
from flatline.triage import Line, Listing
from flatline.wording.gaps import troubles
from flatline.wording.places import fold_places
from flatline.wording.rows import instant

Part = Literal["findings", "ruled_out", "undetermined", "gaps", "evidence", "attempts", "related"]
PARTS: tuple[Part, ...] = get_args(Part)
PAGE_CHARS, LEAST = 2_600, 3
"""A page of rows is as many as this holds as text, and no fewer than `LEAST`."""
GROUPS, NAMES, GAPS = 5, 6, 5
ROW_CHARS = 40
"""Of a row beside its text and place: id, code, family, citations."""


def paged(rows: Sequence[Row], cursor: str | None) -> tuple[Sequence[Row], str | None]:
    """One page and where the next begins. Raises `UsageError` for a cursor of nobody's."""
    start = 0 if cursor is None else offset(cursor)
    if start > len(rows):
        raise UsageError(f"the cursor {cursor!r} is behind the end; call without one")
    end, left = start, PAGE_CHARS
    while end < len(rows) and (left > 0 or end < start + LEAST):
        left -= len(rows[end].text) + len(rows[end].where or "") + ROW_CHARS
        end += 1
    return rows[start:end], str(end) if end < len(rows) else None


def offset(cursor: str) -> int:
    if not cursor.isdecimal() or len(cursor) > 12:
        raise UsageError(f"{cursor[:40]!r} is no cursor; use next_cursor as it was given")
    return int(cursor)


def details(held: Held, part: Part, cursor: str | None) -> Details:
    rows = _rows(held, part)
    shown, following = paged(rows, cursor)
    return Details(
        handle=held.handle, part=part, in_all=len(rows), rows=list(shown), next_cursor=following
    )


def _rows(held: Held, part: Part) -> list[Row]:
    verdict, ledger = held.verdict, held.ledger
    match part:
        case "findings":
            return _findings(held)
        case "ruled_out":
            return [
                Row(
                    code=one.code,
                    family=one.family,
                    text=safe(one.why),
                    cites=ids(one.cites, ledger),
                )
                for one in verdict.ruled_out
            ]
        case "undetermined":
            return [
                Row(code=one.code, family=one.family, text=safe("needs " + "; ".join(one.missing)))
                for one in verdict.undetermined
            ]
        case "gaps":
            return [
                Row(where=safe(", ".join(one.wheres), WHERE) if one.wheres else None,
                    text=safe(f"{one.need}: {one.reason}"))
                for one in troubles(verdict)
            ]  # fmt: skip
        case "attempts":
            return _attempts(held)
        case "related":
            return [Row(id=safe(one.id, WHERE), text=_incident(one)) for one in verdict.related]
        case _:
            return _evidence(held)


def _incident(one: Related) -> str:
    told = outcome_said(one.confirmed, one.wrong)
    return safe(
        f"{one.problem}{told and f' ({told})'}; cause then: {one.cause} fix then: {one.fix}"
        f" ({one.source})",
        LONG,
    )


def _findings(held: Held) -> list[Row]:
    made = []
    for judged in ordered_findings(held.verdict):
        because = follows(judged, held.verdict)
        places = fold_places(judged.finding.culprits) if judged.finding.culprits else ""
        made.append(
            Row(
                id=judged.id,
                code=judged.finding.code,
                family=judged.family,
                role=judged.role,
                confidence=judged.confidence,
                where=safe(places, WHERE) or None,
                text=safe(judged.finding.summary)
                + (f"; follows from {because}" if because else ""),
                cites=ids(judged.finding.cites, held.ledger),
            )
        )
    return made


def _attempts(held: Held) -> list[Row]:
    verdict = held.verdict
    made = []
    for one in verdict.run.attempts:
        steps = f", steps {one.first_step} to {one.last_step}" if one.last_step is not None else ""
        began = f", began {instant(one.started_at)}" if one.started_at else ""
        ended = f", ended {instant(one.ended_at)}" if one.ended_at else ""
        said = f"attempt {one.n}: {one.disposition}{steps}{began}{ended}"
        code = verdict.attempt_codes.get(one.n)
        made.append(Row(code=code, text=said, cites=ids(one.cites, held.ledger)))
    return made


def _evidence(held: Held) -> list[Row]:
    made = []
    for name, cite in held.ledger.items:
        one = piece(name, cite, held.ledger, ())
        said = (
            one.text if isinstance(cite, LogCite) or not one.says else f"{one.says} | {one.text}"
        )
        made.append(Row(id=name, where=one.where, text=said))
    return made


def jobs(listing: Listing, start: int, size: int, following: str | None) -> Jobs:
    """A page of the listing. Jobs that completed are counted, not described."""
    lines = (*listing.failed, *listing.undetermined, *listing.healthy, *listing.cancelled)
    return Jobs(
        since=instant(listing.since) if listing.since else None,
        until=instant(listing.until) if listing.until else None,
        counts=JobCounts(
            failed=len(listing.failed),
            undetermined=len(listing.undetermined),
            healthy=len(listing.healthy),
            cancelled=len(listing.cancelled),
            completed=len(listing.completed),
            not_diagnosed=len(listing.unread),
        ),
        groups=[
            Group(
                kind=group.kind,
                names=[safe(name, WHERE) for name in group.names[:NAMES]],
                failures=group.failures,
                of_failures=group.of_failures,
                successes=group.successes,
                of_successes=group.of_successes,
                p_corrected=group.corrected,
            )
            for group in listing.groups[:GROUPS]
        ],
        jobs=[_job(line) for line in lines[start : start + size]],
        gaps=[gap_said(gap) for gap in listing.gaps[:GAPS]],
        next_cursor=following if start + size < len(lines) else None,
    )


def _job(line: Line) -> JobRow:
    told, job = line.told, line.ended.job
    assert told is not None
    return JobRow(
        id=safe(job.id, WHERE),
        name=safe(job.name, WHERE) if job.name else None,
        disposition=job.disposition,
        state=told.state,
        code=told.code,
        attribution=told.attribution,
        confidence=told.confidence,
        headline=safe(told.headline),
        where=safe(fold_places(told.culprits), WHERE) if told.culprits else None,
        resubmit=told.resubmit,
        gpu_hours_lost=round(told.gpu_hours_lost, 2) if told.gpu_hours_lost is not None else None,
    )
