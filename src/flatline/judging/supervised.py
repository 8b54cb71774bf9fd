"""
Workers that a site's own launcher gave up for missed heartbeats, and that made steps meanwhile.

Such launchers name a worker by its host, by a number, or by a name of their own with its host in
brackets.  Its own log is the one whose lines or name bear one of these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isfinite

from flatline.facts import Facts, Track
from flatline.judging.claims import claim, distinct
from flatline.judging.crashes import failures
from flatline.judging.heartbeats import DEFAULT_TIMEOUT_S, made_until
from flatline.judging.kept_power import kept_working
from flatline.judging.last_printed import heard
from flatline.judging.named_logs import host_of_log
from flatline.logs.clock import Clock
from flatline.model import Claim, LogCite, Match, Place

MARKED = "worker-given-up"
MOST = 64
SIGTERM, SIGNALLED = 15, 128
SOON = timedelta(seconds=300)
"""Processes are ended within minutes of the decision: launchers leave them some time to end."""
ABOVE = 200
_ENDED = re.compile(
    r"(?i)\b(?:exit(?:ed|s)?|exit_?code|crash\w*|killed|signal|oom|out of memory|died|core dumped"
    r"|segmentation|reboot\w*|node.?fail\w*|down|unreachable|xid)\b"
)
ACTS = 40
"""Lines behind the accusation in which the launcher tells what it did about it."""
_ENDS = re.compile(
    r"(?i)\b(?:terminat\w+|kill(?:ing|ed)|stop(?:ping|ped)|abort(?:ing|ed)|evict\w+|SIGTERM"
    r"|(?:tearing|shutting) down)\b"
)
_GOES_ON = re.compile(
    r"(?i)\b(?:replac\w+|came back|back again|recover\w*|ok again|countdown|respawn\w*|resum\w+)\b"
)
_NUMBERED = re.compile(r"([A-Za-z]{0,24})[-_.]?0{0,6}(\d{1,6})(?![\w-])")
_BEFORE = r"(?:^|[_.]|-(?=[a-z]\d))"
"""What may stand before a worker's name in that of its log: a host's may end like another's."""
WORDS = {"w": "worker", "t": "task", "r": "rank", "p": "process"}
_OF_ANOTHER = re.compile(
    r"(?i)\b(?:rollout|data|actor|env|environment|reward|inference|eval\w*|sampl\w*|loader"
    r"|dataloader|serving|cache|io)[-_ ](?:worker|task|process)\b"
)
"""Workers that make no steps."""
WITHOUT_S = LOOKED_S = 60.0
"""Power is looked at for as long at least: it is scraped a few times a minute, and who died within
a shorter time falls far enough in the mean of the later half."""
_IS_NAME = re.compile(r"(?=.*\d).*[A-Za-z.]")
"""Names of hosts, and addresses, hold a number, and more than that."""
_SECONDS = re.compile(
    r"\b(\d{1,5})(?:\.\d{1,6})? ?s(?:ec(?:ond)?s?)?\b|_s(?:ec(?:onds)?)?\": ?(\d{1,5})\b"
)


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The lines that gave workers up, whom, when, and what shows that each was at work."""

    lines: tuple[Match, ...]
    places: tuple[Place, ...]
    at: datetime
    shows: tuple[Claim, ...]
    by_steps: bool = True


def given_up(facts: Facts) -> GivenUp | None:
    """None where nobody was, one of them is not known to have been at work, the run went on after
    it, or anything else is known to have ended it or one of its processes."""
    lines = [m for m in facts.tagged(MARKED) if m.attempt == facts.last.n]
    first: dict[str, Match] = {}
    for match in lines:
        first.setdefault(_name(match), match)
    if not first or len(first) > MOST or ended_otherwise(facts):
        return None
    shows, places, times = [], [], []
    for host, match in first.items():
        at, worker = None if match.cite.at_assumed else match.cite.at, _worker(facts, match)
        acted = None if at is None else _acted(facts, match, at)
        if at is None or acted is None or _went_on(facts, acted, worker):
            return None
        if (shown := _worked(facts, worker, at, _timeout_s(match), acted)) is None:
            return None
        if _told_to_end(facts, host, match) or _OF_ANOTHER.search(match.cite.text):
            return None
        shows.append(shown)
        places.append(worker.place)
        times.append(at)
    told = distinct(map(facts.on_host, places))
    by_steps = all(isinstance(cite, LogCite) for one in shows for cite in one.cites)
    return GivenUp(tuple(lines), told, min(times), tuple(shows), by_steps)


@dataclass(frozen=True, slots=True)
class _Worker:
    """Who was given up: what it is called, its host, and its number among its kind."""

    name: str
    host: str | None
    kind: str
    number: int | None

    @property
    def place(self) -> Place:
        numbered = self.name.isdecimal()
        rank = self.number if numbered and self.kind == "rank" else None
        task = self.number if numbered and self.kind != "rank" else None
        return Place(host=self.host or (None if numbered else self.name), rank=rank, task=task)


def _name(match: Match) -> str:
    return match.groups.get("host") or match.groups["key"]


def _worker(facts: Facts, match: Match) -> _Worker:
    """As the line names it; its host may stand in brackets in an earlier line on it."""
    name, host, kind = _name(match), match.groups.get("on_host"), match.groups.get("what")
    if host is None:
        word = rf"{re.escape(kind)} " if name.isdecimal() and kind else ""
        in_brackets = re.compile(
            rf"(?<![\w.-]){word}{re.escape(name)} \((?=[\w.-]{{0,63}}\d)([\w.-]{{2,64}})\)"
        )
        above = _above(facts, match)
        host = next((found[1] for text in above if (found := in_brackets.search(text))), None)
    numbered = _NUMBERED.fullmatch(name)
    kind = (numbered[1] if numbered else "") or kind or ""
    return _Worker(name, host, kind.lower(), int(numbered[2]) if numbered else None)


def ended_otherwise(facts: Facts) -> bool:
    """Whether a process crashed or was killed, or a host went: that is why heartbeats stopped."""
    if facts.disposition in ("completed", "node_fail", "out_of_memory", "boot_fail", "preempted"):
        return True
    if any(f.fatal and f.family != "C2" for f in failures(facts)):
        return True
    if any(e.signal not in (None, SIGTERM) or (e.exit_code or 0) > SIGNALLED for e in facts.exits):
        return True
    return any(m.signature.role == "root" for m in facts.matches if m.attempt == facts.last.n)


def _above(facts: Facts, match: Match) -> Sequence[str]:
    first = max(1, match.cite.line - ABOVE)
    return facts.lines(match.cite.source, first, match.cite.line - first)


def _last(facts: Facts, track: Track) -> float:
    times = [t for i in track.of_attempt(facts.last.n) if isfinite(t := track.at[i])]
    return max(times, default=0.0)


def _told_to_end(facts: Facts, host: str, match: Match) -> bool:
    """Whether the launcher says before it that the worker, or its process, ended by itself."""
    named = re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w-])")
    said = (*_above(facts, match), match.cite.text)
    return any(named.search(text) and _ENDED.search(text) for text in said)


def _acted(facts: Facts, match: Match, at: datetime) -> datetime:
    """When it was acted upon: at once, or where the launcher, having left the worker some time to
    come back, says behind it, by its own clock, that it ends the run for it."""
    word = re.compile(rf"(?<![\w.-]){re.escape(_name(match))}(?![\w-])|(?i:\bdead\b)")
    clock = Clock()
    said = clock.either(match.cite.text, match.cite.text)
    for text in facts.lines(match.cite.source, match.cite.line + 1, ACTS):
        then = clock.either(text, text)
        if _ENDS.search(text) and word.search(text) and not _GOES_ON.search(text):
            return at if said is None or then is None else at + (then.at - said.at)
    return at


def _went_on(facts: Facts, at: datetime, worker: _Worker) -> bool:
    """Whether anything of the run is dated long after, or steps that the accused had no part in:
    it outlived the accusation, or the clocks of its logs differ."""
    if any(seen > at + SOON for seen in heard(facts).values()):
        return True
    own = max((_last(facts, track) for track in facts.tracks if _of(facts, track, worker)),
              default=0.0)  # fmt: skip
    last = max((_last(facts, track) for track in facts.tracks), default=0.0)
    return last > max(at.timestamp(), own) + WITHOUT_S


def _worked(
    facts: Facts, worker: _Worker, at: datetime, timeout_s: float, acted: datetime
) -> Claim | None:
    """Its own steps inside the window or, where no log is its own, the power of its host."""
    own = [track for track in facts.tracks if _of(facts, track, worker)]
    if own:
        made = [made_until(facts, track, at, timeout_s) for track in own]
        text = f"{worker.name} made steps inside the window of that accusation"
        return None if None in made or made[0] is None else claim(text, *made[0])
    host = worker.host or next((h for h in facts.hosts if h == facts.node_of(worker.name)), None)
    if host is None:
        return None
    within_s = max(timeout_s, LOOKED_S)
    return kept_working(facts, at.timestamp(), within_s, [host], acted.timestamp())


def _of(facts: Facts, track: Track, worker: _Worker) -> bool:
    """Whether a log is that worker's: by its host, by its name, or by its kind and number, as
    `worker-3.log` is that of w3."""
    names = [name for name in (worker.host, worker.name) if name and _IS_NAME.search(name)]
    if track.place.host is not None and any(
        facts.node_of(track.place.host) == facts.node_of(name) for name in names
    ):
        return True
    *folders, file = track.source.split("/")
    if any(name in folders or re.search(rf"{_BEFORE}{re.escape(name)}(?:[_.]|$)", file)
           for name in names):  # fmt: skip
        return True
    said = host_of_log(facts, track.source)
    alike = any(name in file for name in names)  # of another whose name begins so
    if not alike and said is not None and any(said == facts.node_of(name) for name in names):
        return True
    numbered = _NUMBERED.match(file)
    if numbered is None or int(numbered[2]) != worker.number:
        return False
    if numbered[1].lower() not in (worker.kind, WORDS.get(worker.kind, worker.kind)):
        return False
    return worker.host is None or said in (None, facts.node_of(worker.host))


def _timeout_s(match: Match) -> float:
    """How long it was silent by that line, or JAX's default."""
    found = _SECONDS.search(match.cite.text, match.cite.text.find("heartbeat"))
    return float(found[1] or found[2]) if found is not None else DEFAULT_TIMEOUT_S
