"""
A run that stands still, by a look at its GPUs long after its last line.

What waits in a collective, or for a kernel that never ends, shows 100 % utilisation at little
more than the power of an idle card.  So does a small model that trains, for a moment: the log,
which had told of a step every few seconds, must have been silent for long.  A first step may take
minutes of compiling; then the cards are idle or draw more, or the log speaks of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite
from statistics import median

from flatline.facts import LOG, Facts
from flatline.judging.claims import claim
from flatline.judging.looks import Card, Look, listed, looks
from flatline.judging.pace import pace
from flatline.model import Action, Finding, LogCite, Place
from flatline.tracks import Track

BUSY, HELD_BYTES = 0.98, 1 << 30
"""A kernel that waits never ends; a context alone holds some hundred MiB."""
LOW_POWER = 0.4
"""Of a card's limit.  Reports of runs that hung: 100 of 700 W where 500 to 690 are usual (H100,
NVIDIA-NeMo/Speech issue 9291), 80 of 400 (A100), 115 of 350 (RTX 3090)."""
COOL_C = 45.0
"""Of a card whose power is not shown: one at work on air is warmer. A judgement."""
STILL_S, MANY, UNKNOWN_S = 900.0, 10.0, 3600.0
"""Seconds without a line, so many times what lay between two, and where that is not known."""
ZONES_S, BEYOND_S = 900.0, 300.0
"""Zones lie whole quarters of an hour apart: two clocks that may be of two zones must differ by
so much more."""
STILL_AFTER_S = 30.0
"""Longer than a checkpoint of a small model takes (`pace.STILL_S`)."""
STRENGTH, WEAKER, MOST = 0.52, 0.45, 0.53
"""One look shows one moment: seven of ten at the most (`calibration`)."""
READ_LINES, LAST_LINES = 2000, 6
_STAMP = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)")
_NOTHING_YET = re.compile(r"\b0%\|[^|]{0,200}\| *0/(?:[2-9]|[1-9]\d{1,11}) \[0{1,2}:00<\?")
_COMPILES = re.compile(
    r"(?i)\b(?:re)?compil(?:e|ing|ation)|\b(?:inductor|autotun\w*|xla|tensorrt|jit)\b"
)
_PREPARES = re.compile(
    r"(?i)\W{0,8}(?:map|filter|token|load|download|fetch|generat|prepar|cach|pack|group|saving)"
)
_CHECKPOINT = re.compile(r"\.(?:ckpt|pth?|safetensors|bin|tar)$")
_GROUPED = re.compile(r"(?i)\bnccl\b|process.?group|\bdistributed_backend\b|\ball.?reduce")


@dataclass(frozen=True, slots=True)
class _Last:
    """When the log had its last line (local), and what shows it; `weak` where that is had from
    another file, `loose` where it may have been later: steps without a time stand behind a stamp,
    and how long the start-up between them took is not known."""

    at: float
    cite: LogCite
    zoned_apart: bool = False
    weak: bool = False
    loose: bool = False


def looked_once(facts: Facts, code: str) -> Finding | None:
    """The finding of a family: C3 for one GPU, C2 for several, C1 where these had done nothing."""
    found = facts.memo("one look at a standstill", _judged)
    return found if found is not None and found.code == code else None


def _judged(facts: Facts) -> Finding | None:
    over = facts.end_seen or facts.reached_plan or facts.crashes
    if facts.disposition in ("completed", "failed", "out_of_memory", "node_fail") or over:
        return None
    source, track = _log(facts)
    seen = [look for look in looks(facts) if look.source != source or _at_end(track, look)]
    if not source or not seen:
        return None
    look = seen[-1]
    held = [card for card in look.cards if card.used_bytes >= HELD_BYTES]
    last = _last_line(facts, source, track, look)
    if last is None or not held or not all(map(_spins, held)):
        return None
    gap = _usual_gap(facts, track)
    needed = UNKNOWN_S if gap is None or last.loose else max(STILL_S, MANY * gap)
    still = look.at - last.at
    if last.loose and look.source == source and not _silent_after(facts, look, gap):
        return None
    if still < needed or (last.zoned_apart and still % ZONES_S < max(BEYOND_S, MANY * (gap or 0))):
        return None
    world = facts.world_size or len(facts.ranks) or None
    if world is not None and (len(held) > world or (len(held) == 1 < world)):
        return None
    weak = last.weak or last.loose or gap is None or any(card.power_w is None for card in held)
    return _finding(facts, track, held, (last, still), WEAKER if weak else STRENGTH)


def _log(facts: Facts) -> tuple[str, Track | None]:
    """The run's log and its progress; one that holds no step must end with a bar at none of so
    many and speak of no compiling."""
    track = facts.main_track(facts.last.n)
    if track is not None:
        return track.source, track
    for read in facts.log_files(LOG):
        first = max(1, read.lines - LAST_LINES + 2)
        end = facts.lines(read.source, first, LAST_LINES)
        if not any(_NOTHING_YET.search(text) and not _PREPARES.match(text) for text in end):
            continue
        before = facts.lines(read.source, max(1, read.lines - READ_LINES), READ_LINES)
        return ("" if any(map(_COMPILES.search, before)) else read.source), None
    return "", None


def _at_end(track: Track | None, look: Look) -> bool:
    """Whether a look that stands in the log itself stands behind all its steps."""
    return track is not None and max(track.lines) < look.line


def _spins(card: Card) -> bool:
    if card.busy < BUSY:
        return False
    if card.power_w is not None and card.limit_w:
        return card.power_w <= LOW_POWER * card.limit_w
    return card.celsius is not None and card.celsius <= COOL_C


def _last_line(facts: Facts, source: str, track: Track | None, look: Look) -> _Last | None:
    own_s = 0.0 if track is None else _own_s(facts, track)  # None: it cannot be told
    name = source.rpartition("/")[2]
    files = listed(facts, look)
    for one in files:
        if one.name.rpartition("/")[2] == name:
            return _Last(one.until, one.cite)
    stamped = _stamped(facts, source, look) if source == look.source else None
    seen = facts.last_seen.get(source) if source != look.source else None
    if stamped is not None and own_s is not None:
        return _Last(stamped[0] + own_s, stamped[1], loose=own_s > 0)
    if seen is not None and own_s is not None:
        cite = facts.last_lines.get(source)
        at = seen.timestamp() + own_s
        near = track is not None or _stamped_end(facts, source)
        known = cite if near else None
        return None if known is None else _Last(at, known, zoned_apart=True, loose=own_s > 0)
    saved = [one for one in files if _CHECKPOINT.search(one.name)]
    whole_s = None if track is None else _spent_s(track, facts.last.n)
    if len(saved) != 1 or whole_s is None:
        return None
    return _Last(saved[0].until + whole_s, saved[0].cite, weak=True)


def _stamped_end(facts: Facts, source: str) -> bool:
    """Whether a stamp stands right above a bar at the end of a log."""
    lines = next(read.lines for read in facts.files if read.source == source)
    first = max(1, lines - LAST_LINES + 2)
    return any(map(_STAMP.search, facts.lines(source, first, LAST_LINES)))


def _silent_after(facts: Facts, look: Look, gap: float | None) -> bool:
    """Whether the log, which tells of no step behind a look, has a later stamp."""
    for text in facts.lines(look.source, look.line + 1, READ_LINES, 400):
        if found := _STAMP.search(text):
            at = _instant(found)
            if at is not None and at - look.at >= max(STILL_AFTER_S, MANY * (gap or 0.0)):
                return True
    return False


def _instant(found: re.Match[str]) -> float | None:
    try:
        return datetime.fromisoformat(f"{found[1]}T{found[2]}+00:00").timestamp()
    except ValueError:
        return None


def _stamped(facts: Facts, source: str, look: Look) -> tuple[float, LogCite] | None:
    """The last stamp before a look in the log it stands in."""
    first = max(1, look.line - READ_LINES)
    texts = facts.lines(source, first, look.line - first, 400)
    for offset in range(len(texts) - 1, -1, -1):
        if found := _STAMP.search(texts[offset]):
            at = _instant(found)
            if at is not None:
                number = first + offset
                return at, LogCite(source, number, facts.text(source, number))
    return None


def _own_s(facts: Facts, track: Track) -> float | None:
    """How long the steps without a time took, at the most, that stand behind the last time."""
    last = track.of_attempt(facts.last.n)[-1]
    return 0.0 if isfinite(track.at[last]) else _spent_s(track, facts.last.n)


def _spent_s(track: Track, attempt: int) -> float | None:
    """How long the steps read took: by their bar's clock, or their own times added up."""
    span = track.of_attempt(attempt)
    shown = [track.since_s[i] for i in span if isfinite(track.since_s[i])]
    if shown:
        return max(shown)
    took = [track.step_s[i] for i in span if isfinite(track.step_s[i])]
    steps = [track.steps[i] for i in span if track.steps[i] >= 0]
    return median(took) * (max(steps) - min(steps) + 1) if took and steps else None


def _usual_gap(facts: Facts, track: Track | None) -> float | None:
    """Seconds between two lines of progress, or the longest silence that was broken; 0 before the
    first step, None where nothing tells."""
    if track is None:
        return 0.0
    known = pace(facts)
    if known is not None and known.interval_s is not None:
        return max(known.interval_s, known.pauses_s / MANY)
    span = track.of_attempt(facts.last.n)
    took = [track.step_s[i] for i in span if isfinite(track.step_s[i])]
    apart = [b - a for a, b in pairwise(track.steps[i] for i in span) if b > a]
    if took and apart:
        return median(took) * median(apart)
    shown = [track.since_s[i] for i in span if isfinite(track.since_s[i])]
    gaps = [b - a for a, b in pairwise(shown) if b > a]
    return max(gaps) if gaps else None


def _finding(
    facts: Facts,
    track: Track | None,
    held: list[Card],
    since: tuple[_Last, float],
    strength: float,
) -> Finding:
    last, still = since
    cites = [card.cite for card in held[:4]]
    ended = [last.cite] if track is None else [facts.point(track, len(track) - 1).cite, last.cite]
    one = len(held) == 1
    code = "C3" if one else "C2" if track is not None or _together(facts) else "C1"
    minutes = ("up to " if last.loose else "") + f"{still / 60:.0f} minutes"
    what = f"GPU {held[0].gpu} was" if one else f"{len(held)} GPUs were"
    after = "before the first step" if track is None else "after the last step"
    step = None if track is None else facts.last_step
    return Finding(
        code=code,
        summary=f"{what} seen spinning {minutes} after the log's last line, {after}",
        attribution="unknown",
        strength=strength,
        most=MOST,
        shows=(
            claim(f"At one look {what} busy {min(c.busy for c in held):.0%}, held"
                  f" {min(c.used_bytes for c in held) / 2**30:.1f} GiB{_drew(held)}", *cites),
            claim(f"The log's last line was {minutes} old by then", *ended),
        ),
        implies=(
            claim("So little power at full utilisation is a kernel that waits"
                  + (": for the host, or for one that never ends." if one
                     else ", most often in a collective that not all have entered."), *cites),
        ),
        culprits=(Place(gpu=held[0].gpu),) if one else (),
        scope="place" if one else "none",
        onset=datetime.fromtimestamp(last.at, UTC) if last.zoned_apart else None,
        onset_step=step,
        attempt=facts.last.n,
        cannot_decide=(
            "Whether the GPUs stood so all the time, and whether what held them is this run alone:"
            " they were looked at once.",
            "What they wait for: the stacks of all ranks would tell.",
        ),
        actions=(
            Action("collect", "Dump the stack of every process before the run is cancelled.",
                   "py-spy dump --pid PID"),
        ),
        resubmit="unknown",
    )  # fmt: skip


def _together(facts: Facts) -> bool:
    """Whether anything shows that the ranks had met."""
    if (facts.world_size or len(facts.ranks)) > 1:
        return True
    return any(
        _GROUPED.search(text)
        for read in facts.log_files(LOG)
        for text in facts.lines(read.source, max(1, read.lines - READ_LINES), READ_LINES)
    )


def _drew(held: list[Card]) -> str:
    """Their power, or how warm they were where it is not shown."""
    powers = [card.power_w for card in held if card.power_w is not None]
    if len(powers) < len(held):
        return f", and were {max(card.celsius or 0 for card in held):.0f} °C warm at most"
    limits = [card.limit_w for card in held if card.limit_w]
    spread = f"{min(powers):.0f} to {max(powers):.0f}" if len(powers) > 1 else f"{powers[0]:.0f}"
    return f" and drew {spread} W of {max(limits):.0f}" if limits else f" and drew {spread} W"
