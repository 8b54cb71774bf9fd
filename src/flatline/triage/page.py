"""
The listing for a terminal or a pipe: first what failures share, then every job under its group.

Two lines a job: what it was, and what is said of it, cut to the width with its telling part kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flatline.render.text import PLAIN, Look
from flatline.triage import Group, Line, Listing
from flatline.wording.columns import cells, excerpt, wrap
from flatline.wording.places import counted, fold_hosts, fold_places
from flatline.wording.rows import GLYPHS, confidence_text, moment
from flatline.wording.untrusted import sentence

Row = tuple[str, ...]
HEADS: Row = ("job", "code", "conf", "user", "name", "elapsed", "nodes", "GPUh")
WIDEST: tuple[int, ...] = (16, 4, 4, 12, 24, 9, 20, 9)
"""Columns that a wide page gives to each; what is longer is cut."""
TRIMMED = (4, 6, 3, 0)
"""Which columns give way, in this order, where the page is narrow."""
LEAST = 6
RIGHT = frozenset({5, 7})
SECTION, GAPS = 40, 6
"""Jobs of a section and gaps that are shown before the rest is counted."""
_ASCII = str.maketrans({"✗": "x", "✓": "+", "…": "."})


def render(listing: Listing, look: Look = PLAIN) -> str:
    """The page, at most `look.width` columns wide."""
    lines = [*_wrapped(_head(listing), look.width)]
    widths = _widths([*listing.failed, *listing.undetermined, *listing.healthy], look.width)
    if listing.failed or listing.undetermined:
        lines += ["", look.paint("dim", _columns(HEADS, widths, look))]
    placed: set[str] = set()
    by_id = {line.id: line for line in (*listing.failed, *listing.undetermined)}
    for group in listing.groups:
        members = [by_id[job] for job in group.jobs if job in by_id and job not in placed]
        lines += ["", *_wrapped(_told(group), look.width, look, "bold")]
        for line in members[:SECTION]:
            lines += _job(line, widths, look)
        if len(members) > SECTION:
            lines.append(f"  and {len(members) - SECTION:,} more (all with --json)")
        elsewhere = [job for job in group.jobs if job in placed]
        if elsewhere:
            lines += _wrapped(f"and, listed above: {', '.join(elsewhere)}", look.width)
        placed |= {line.id for line in members}
    lines += _section("Failed", listing.failed, placed, widths, look, bool(listing.groups))
    lines += _section("Undetermined", listing.undetermined, placed, widths, look, False)
    lines += _section("Sound before its end", listing.healthy, placed, widths, look, False)
    lines += _counts(listing, look)
    text = "\n".join(lines) + "\n"
    return text if look.unicode else text.translate(_ASCII)


def _head(listing: Listing) -> str:
    ended = sum(
        len(lines)
        for lines in (listing.failed, listing.undetermined, listing.healthy,
                      listing.completed, listing.cancelled, listing.unread)
    )  # fmt: skip
    window = ""
    if listing.since is not None:
        window += f" from {moment(listing.since)}"
    if listing.until is not None:
        window += f" until {moment(listing.until, listing.since)}"
    if not ended:
        return f"No job ended{window} that was asked for."
    parts = [
        f"{len(listing.failed):,} failed",
        f"{len(listing.undetermined):,} undetermined",
        f"{len(listing.completed):,} completed",
    ]
    others = (("sound", listing.healthy), ("cancelled", listing.cancelled),
              ("not diagnosed", listing.unread))  # fmt: skip
    parts += [f"{len(lines):,} {what}" for what, lines in others if lines]
    lost = sum(line.told.gpu_hours_lost or 0.0 for line in listing.failed if line.told)
    cost = f" {lost:,.1f} GPU-hours were lost." if lost >= 0.05 else ""
    return f"{counted(ended, 'job')} ended{window}: {', '.join(parts)}.{cost}"


def _told(group: Group) -> str:
    names = group.names
    if group.kind == "storage":
        said = f"{counted(group.failures, 'job')} report storage errors on {sentence(names[0])}"
        if not names[0].startswith("/"):
            return said + "; whether completed jobs used it is not recorded"
        return (
            f"{said}; of {group.of_successes:,} completed {group.successes:,} worked in a"
            " directory there"
        )
    where = fold_hosts(names) if group.kind == "host" else ", ".join(map(sentence, names))
    kind = {"host": "node", "switch": "hosts of leaf switch"}[group.kind]
    several = len(names) > 1
    which = "s together" if several and group.kind == "host" else ""
    return (
        f"{group.failures:,} of {group.of_failures:,} failures touched {kind}{which} {where};"
        f" {group.successes:,} of {group.of_successes:,} completed jobs did"
        f" (p {_chance(group)}, corrected for {counted(group.tested or 1, 'place')})"
    )


def _chance(group: Group) -> str:
    corrected = group.corrected if group.corrected is not None else 1.0
    return f"= {corrected:.2g}" if corrected >= 1e-4 else "below 0.0001"


# --- jobs -------------------------------------------------------------------------------------


def _section(
    title: str,
    lines: Sequence[Line],
    placed: set[str],
    widths: Sequence[int],
    look: Look,
    alone: bool,
) -> list[str]:
    left = [line for line in lines if line.id not in placed]
    if not left:
        return []
    what = f"{title}, with nothing shared" if alone else title
    made = ["", look.paint("bold", f"{what} ({len(left):,})")]
    for line in left[:SECTION]:
        made += _job(line, widths, look)
    if len(left) > SECTION:
        made.append(look.paint("dim", f"  and {len(left) - SECTION:,} more (all with --json)"))
    return made


def _row(line: Line) -> Row:
    job, told = line.ended.job, line.told
    lost = told.gpu_hours_lost if told is not None else None
    return tuple(
        sentence(cell)
        for cell in (
            line.id,
            (told.code if told is not None else None) or "--",
            confidence_text(told.confidence) if told is not None and told.code else "",
            job.user or "-",
            job.name or "-",
            span(line.ended.elapsed_s),
            fold_hosts(job.nodes, 4) or "-",
            "-" if lost is None else f"{lost:,.1f}",
        )
    )


def _job(line: Line, widths: Sequence[int], look: Look) -> list[str]:
    told = line.told
    if told is None:
        return []
    glyph = GLYPHS[told.state]
    style = {"found": "red", "healthy": "green", "undetermined": "yellow"}[told.state]
    first = look.paint(style, glyph) + _columns(_row(line), widths, look)[1:]
    where = fold_places(told.culprits) if told.culprits else ""
    headline = sentence(told.headline) + (" (no log was found)" if not told.logs else "")
    shown = where and not all(p.host and p.host in headline for p in told.culprits)
    said = [told.family or "", f"at {where}" if shown and len(where) < 24 else ""]
    prefix = " ".join(part for part in said if part)
    lead = f"{prefix}: " if prefix else ""
    room = max(look.width - 4 - cells(lead), 20)
    return [first, f"    {lead}{excerpt(headline, room, frozenset(), look.ellipsis)}"]


def span(seconds: float | None) -> str:
    """`47s`, `12m`, `3h05m`, `2d04h`: what a column has room for."""
    if seconds is None:
        return "-"
    whole = round(seconds)
    for size, unit, part, lesser in ((86_400, "d", 3600, "h"), (3600, "h", 60, "m")):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // part:02d}{lesser}"
    return f"{whole // 60}m{whole % 60:02d}s" if whole >= 60 else f"{whole}s"


def _widths(lines: Iterable[Line], width: int) -> list[int]:
    """Each column as wide as it needs, down to what the page holds."""
    rows = [HEADS, *map(_row, lines)]
    need = [min(max(cells(row[at]) for row in rows), WIDEST[at]) for at in range(len(HEADS))]
    room = width - 2 - 2 * (len(HEADS) - 1)
    for at in TRIMMED:
        over = sum(need) - room
        if over > 0:
            need[at] = max(LEAST, need[at] - over)
    return need


def _columns(row: Row, widths: Sequence[int], look: Look) -> str:
    made = []
    for at, (cell, wide) in enumerate(zip(row, widths, strict=True)):
        shown = cell
        while cells(shown) > wide:
            shown = shown[:-1]
        if shown != cell:
            shown = shown[: -len(look.ellipsis)] + look.ellipsis
        pad = " " * (wide - cells(shown))
        made.append(pad + shown if at in RIGHT else shown + pad)
    whole = "  " + "  ".join(made)
    while cells(whole) > look.width:
        whole = whole[:-1]
    return whole.rstrip()


# --- the rest ---------------------------------------------------------------------------------


def _counts(listing: Listing, look: Look) -> list[str]:
    said = []
    if listing.completed:
        said.append(
            f"{counted(len(listing.completed), 'job')} completed, by Slurm's word; what their logs"
            " say was not read."
        )
    if listing.cancelled:
        said.append(
            f"{counted(len(listing.cancelled), 'job')} cancelled, nothing found before that:"
            f" {_some([line.id for line in listing.cancelled])}."
        )
    if listing.unread:
        said.append(
            f"{counted(len(listing.unread), 'job')} that did not complete, beyond --limit,"
            f" not diagnosed: {_some([line.id for line in listing.unread])}."
        )
    if listing.left_out and listing.groups:
        said.append(
            f"{counted(listing.left_out, 'failure')} that the verdict puts to the job or the"
            " scheduler say nothing of a place and are not among those compared."
        )
    said += [_gap(gap.need, gap.reason, gap.where) for gap in listing.gaps[:GAPS]]
    left = len(listing.gaps) - GAPS
    said += [f"and {counted(left, 'more gap')} (all with --json)"] if left > 0 else []
    lines = [""] if said else []
    for one in said:
        lines += _wrapped(one, look.width, look, "dim")
    return lines


def _gap(need: str, reason: str, where: str | None) -> str:
    return sentence(f"not read: {need}: {reason}" + (f" ({where})" if where else ""))


def _some(ids: Sequence[str], most: int = 8) -> str:
    more = f" and {len(ids) - most:,} more" if len(ids) > most else ""
    return ", ".join(map(sentence, ids[:most])) + more


def _wrapped(text: str, width: int, look: Look | None = None, style: str = "") -> list[str]:
    lines = wrap(text, width)
    return [look.paint(style, line) for line in lines] if look is not None else lines
