"""
The short text beside a typed answer, for clients that show nothing else: enough to be right by.

What quotes the run stands between `<run-text>` tags, a line each, and cannot close them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from flatline.mcp.pack import safe
from flatline.mcp.runs import Held
from flatline.mcp.shapes import (
    Details,
    Diagnosis,
    Evidence,
    Jobs,
    Matches,
    Numbers,
    NumberSeries,
    Other,
    Piece,
    Said,
    Verified,
)
from flatline.wording.rows import STATES, rows
from flatline.wording.untrusted import CLOSE, OPEN

_ROWS = ("family", "blame", "where", "cleared", "since", "impact", "resubmit", "run", "ran")
ROW = 200


def diagnosis(held: Held, pack: Diagnosis) -> str:
    """Headline, rows, claims with their ids, what to do, what is open, what was quoted."""
    told = dict(rows(held.verdict))
    lines = [f"{STATES[pack.state]}: {pack.headline}  [{pack.handle}]"]
    lines += [f"{name}: {safe(told[name], ROW)}" for name in _ROWS if name in told]
    lines += _claims("shows", pack.shows) + _claims("implies", pack.implies)
    for number, step in enumerate(pack.actions, 1):
        command = f" `{step.command}`" if step.command else ""
        lines.append(f"do {number}: {step.text}{command}")
    lines += [
        f"not {one.code} {one.family}: {one.why}"
        + (f" [{', '.join(one.cites)}]" if one.cites else "")
        for one in pack.rivals
    ]
    if pack.rivals_open:
        lines.append(f"not ruled out: {', '.join(pack.rivals_open)}")
    lines += [f"open: {text}" for text in pack.cannot_decide]
    if pack.would_help:
        lines.append("would help: " + "; ".join(
            f"{lack.need} ({', '.join(lack.codes)})" for lack in pack.would_help))  # fmt: skip
    lines += [f"not read: {gap}" for gap in pack.gaps]
    lines += [_other(other) for other in pack.others]
    lines += [
        f"an incident like this (no evidence): {safe(one.problem, ROW)} [{safe(one.id, ROW)}]"
        for one in held.verdict.related
    ]
    pieces = [_piece(piece) for piece in pack.evidence]
    lines += quoted([*pieces, *(f"{row.source}:{row.line} | {row.text}" for row in pack.log)])
    following = [f"next: {pack.next}"] if pack.next else []
    return "\n".join([*lines, _more(pack), *following])


def _claims(label: str, claims: Sequence[Said]) -> list[str]:
    return [f"{label}: {claim.text} [{', '.join(claim.cites)}]" for claim in claims]


def _other(other: Other) -> str:
    why = f"; follows from {other.follows_from}" if other.follows_from else ""
    name = f"{other.id} {other.code} {other.family}"
    return f"also: {name}, {other.role} ({other.confidence:.2f}): {other.summary}{why}"


def _piece(piece: Piece) -> str:
    place = f" ({piece.place})" if piece.place else ""
    says = f" {piece.says}" if piece.says else ""
    alike = f" ({piece.alike} alike)" if piece.alike else ""
    return f"{piece.id} {piece.where}{place}{says} | {piece.text}{alike}"


def quoted(lines: Iterable[str]) -> list[str]:
    kept = list(lines)
    return [OPEN, *kept, CLOSE] if kept else []


def _more(pack: Diagnosis) -> str:
    counts = pack.counts
    out = f" ({pack.ruled_out})" if pack.ruled_out else ""
    return (
        f"in all: {counts.evidence} pieces of evidence, {counts.ruled_out} families ruled"
        f" out{out}, {counts.undetermined} undecided, {counts.gaps} gaps: details, evidence"
    )


def evidence(answer: Evidence) -> str:
    lines = []
    for exhibit in answer.pieces:
        lines.append(_piece(exhibit.piece))
        lines += [
            f"{'>' if row.cited else ' '} {row.line} | {row.text}" for row in exhibit.context
        ]
    return "\n".join(quoted(lines))


def details(answer: Details) -> str:
    lines = []
    for row in answer.rows:
        head = " ".join(filter(None, (row.id, row.code, row.family, row.role, row.where)))
        cites = f" [{', '.join(row.cites)}]" if row.cites else ""
        lines.append(f"{head}: {row.text}{cites}" if head else row.text)
    title = f"{answer.part}: {len(answer.rows)} of {answer.in_all}"
    more = [f"next_cursor: {answer.next_cursor}"] if answer.next_cursor else []
    return "\n".join([title, *quoted(lines), *more])


def matches(answer: Matches) -> str:
    title = f"{len(answer.hits)} lines"
    if answer.matched is not None:
        least = "" if answer.counted else "at least "
        title += f" of {least}{answer.matched:,} that match"
    title += "" if answer.complete else "; there is more"
    more = [f"next_cursor: {answer.next_cursor}"] if answer.next_cursor else []
    note = [answer.note] if answer.note else []
    hits = quoted(f"{hit.source}:{hit.line} | {hit.text}" for hit in answer.hits)
    return "\n".join([title, *hits, *note, *more])


def numbers(answer: Numbers) -> str:
    step = f", every {answer.step_s:g} s" if answer.step_s else ""
    when = f"{answer.start} to {answer.end}{step}"
    if answer.start == answer.end:
        when = f"at {answer.end}"
    title = f"{answer.series_in_all} series, {when}"
    lines = [f"all {_labels(answer.shared)}"] if answer.shared else []
    lines += [f"{_labels(one.labels)}: {_shape(one, answer.end)}" for one in answer.series]
    if (left := answer.rest) is not None:
        more = left.series - len(left.labels)
        lines.append(
            f"not shown: {left.series} from {_number(left.lowest)} to {_number(left.highest)}:"
            f" {' '.join(map(_labels, left.labels))}" + (f" and {more} more" if more else "")
        )
    elif answer.series_in_all > len(answer.series) > 0:
        lines.append(f"not shown: {answer.series_in_all - len(answer.series)} after these")
    lines += [answer.text] if answer.text else []
    if answer.metrics:
        lines.append(f"of {answer.metrics_in_all} metrics: {', '.join(answer.metrics)}")
    notes = [f"asked as: {answer.asked}"] if answer.asked else []
    if answer.left_out:
        notes.append(f"{answer.left_out} series of other hosts left out: everything=true has them")
    return "\n".join([title, *notes, *quoted(lines), *(f"not read: {gap}" for gap in answer.gaps)])


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name}={value}" for name, value in labels.items()) + "}"


def _shape(one: NumberSeries, end: str | None) -> str:
    """The one value of a series, its time where that is not the answer's; else ends, extremes and
    means."""
    if one.points == 1:
        return _number(one.value) + (f" at {one.at}" if one.at != end else "")
    return (
        f"first {_number(one.first)}, last {_number(one.last)},"
        f" lowest {_number(one.lowest)} at {one.lowest_at},"
        f" highest {_number(one.highest)} at {one.highest_at}, {one.points} points"
        + (f"; means by eighths {' '.join(map(_number, one.means))}" if one.means else "")
    )


def _number(value: float | str | None) -> str:
    return f"{value:.6g}" if isinstance(value, float | int) else value or "NaN"


def verified(answer: Verified) -> str:
    if answer.holds:
        return f"All {answer.checked} citations hold."
    lines = [f"{answer.failed} of {answer.checked} citations do not hold:"]
    return "\n".join([*lines, *quoted(f"{one.id} | {one.said}" for one in answer.failures)])


def jobs(answer: Jobs) -> str:
    count = answer.counts
    lines = [
        f"{count.failed} failed, {count.undetermined} undetermined, {count.healthy} healthy,"
        f" {count.cancelled} cancelled, {count.completed} completed"
        + (f", {count.not_diagnosed} not diagnosed" if count.not_diagnosed else "")
    ]
    lines += [
        f"shared: {group.kind} {', '.join(group.names)}: {group.failures} of"
        f" {group.of_failures} failures touched it, {group.successes} of"
        f" {group.of_successes} completed jobs"
        for group in answer.groups
    ]
    told = []
    for job in answer.jobs:
        where = f" at {job.where}" if job.where else ""
        told.append(
            f"{job.id} {job.code or '--'} ({job.attribution}, {job.confidence:.2f}){where}:"
            f" {job.headline}; resubmit: {job.resubmit}"
        )
    more = [f"next_cursor: {answer.next_cursor}"] if answer.next_cursor else []
    return "\n".join([*lines, *quoted(told), *more])
