"""Lines of logs as a model asks for them: the first that match and how many do, or the last."""

from __future__ import annotations

from flatline.collect.searching import Hit
from flatline.mcp import pack, parts
from flatline.mcp.runs import Held, Runs
from flatline.mcp.shapes import Match, Matches
from flatline.wording.untrusted import defanged

HITS, TAIL, COUNTED = 15, 40, 1_000
"""Lines of an answer, the most a tail may have, and how far matches are counted."""
ROOM = 200
"""Columns of a line of a tail without a pattern."""


def answer(
    runs: Runs,
    held: Held,
    pattern: str | None,
    source: str | None,
    tail: int | None,
    cursor: str | None,
) -> Matches:
    """Raises `UsageError` for what `Runs.searched` refuses."""
    if pattern is None:
        return _last(runs, held, source, tail or HITS)
    begin = _place(cursor)
    found = runs.searched(held, pattern, source, COUNTED, begin)
    note = "the search stopped after 5 s; go on with next_cursor" if found.timed_out else None
    if found.unread:
        note = pack.safe(f"not searched: {'; '.join(found.unread[:3])}")
    shown = found.hits[-tail:] if tail else found.hits[:HITS]
    left = len(found.hits) > len(shown) and not tail
    follows = _behind(runs, held, source, shown[-1]) if left else found.follows
    return Matches(
        handle=held.handle,
        hits=[_match(hit.source, hit.line, hit.text) for hit in shown],
        matched=len(found.hits) if cursor is None else None,
        counted=found.follows is None,
        complete=follows is None,
        next_cursor=None if follows is None else "{}.{}".format(*follows),
        note=note,
    )


def _last(runs: Runs, held: Held, source: str | None, tail: int) -> Matches:
    named = runs.logs(held, source)
    chosen = held.speaking if held.speaking in named else named[0]
    others = [name for name in named if name != chosen]
    more = f" and {len(others) - 6} more" if len(others) > 6 else ""
    listed = f"; other logs: {', '.join(others[:6])}{more}" if others else ""
    end = f"{chosen} ends so, of {held.logs[chosen]:,} lines{listed}"
    return Matches(
        handle=held.handle,
        hits=[
            _match(chosen, line, pack.quote(text, (), ROOM))
            for line, text in runs.last(held, chosen, tail)
        ],
        complete=True,
        note=pack.safe(end, pack.LONG),
    )


def _match(source: str, line: int, text: str) -> Match:
    return Match(source=pack.tail(source), line=line, text=defanged(text))


def _behind(runs: Runs, held: Held, source: str | None, last: Hit) -> tuple[int, int]:
    """Where the search goes on behind a hit: among the files it goes through, in their order."""
    return runs.sources(held, source).index(last.source), last.line + 1


def _place(cursor: str | None) -> tuple[int, int]:
    if cursor is None:
        return 0, 1
    file, _, line = cursor.partition(".")
    return parts.offset(file), max(parts.offset(line), 1)
