"""
What is known of one run, as families ask for it.

A `Facts` is a read-only handle: events are indexed once, progress is kept in columns with the
text left in the file, numbers are asked for in PromQL and every answer is recorded.  It knows
what was read where, so that `diagnose` can tell "not there" from "not looked at".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar, cast

from flatline.model import (
    AbsenceCite,
    Attempt,
    Crash,
    Disposition,
    Gap,
    Job,
    LogCite,
    Match,
    NodeEvent,
    Place,
    ProcessExit,
    ProgressKind,
)
from flatline.model.dumps import Dump
from flatline.rank_hosts import hosts_of, node_named, stated_world, told_of_hosts
from flatline.tracks import (
    DUMPS,
    EVENTS,
    GOES_ON_AFTER,
    KERNEL,
    LOG,
    METRICS,
    SCHEDULER,
    FileRead,
    Marker,
    OnLines,
    Point,
    Reach,
    Track,
    leaving,
    plan_of,
    reached,
    stands_for,
)

__all__ = [
    "DUMPS",
    "EVENTS",
    "KERNEL",
    "LOG",
    "METRICS",
    "SCHEDULER",
    "Facts",
    "FileRead",
    "Marker",
    "Point",
    "Track",
    "stands_for",
]
T = TypeVar("T")
ZONES_S = 15 * 3600.0
"""Two clocks that each show some zone's time, and do not say which, differ by up to 26 hours; in
one machine room a kernel in UTC and a scheduler in local time by 14."""
ReadLine = Callable[[str, int], str]
ReadLines = Callable[..., tuple[str, ...]]  # (source, first, count[, characters of a line])
Ask = Callable[..., Any]
"""`ask(promql, start=, end=, step_s=, exporter=)`; see `flatline.sources.metrics`."""


class Facts:
    """
    One run. Built by `collect`, read by families; nothing in it changes after building.

    Positions: an event is *after* another where both have times further apart than the clock
    skew, or where both stand in the same file and its line is larger.  Otherwise the order is
    unknown and `after` says None.
    """

    chosen = ""
    """How a baseline was chosen; "" for the run itself."""
    parent: Facts | None = None
    """An unfinished run that this one may go on from."""

    def __init__(
        self,
        *,
        targets: Sequence[str],
        files: Sequence[FileRead] = (),
        matches: Sequence[Match] = (),
        crashes: Sequence[Crash] = (),
        exits: Sequence[ProcessExit] = (),
        tracks: Sequence[Track] = (),
        markers: Sequence[Marker] = (),
        jobs: Sequence[Job] = (),
        node_events: Sequence[NodeEvent] = (),
        attempts: Sequence[Attempt] = (),
        gaps: Sequence[Gap] = (),
        now: datetime | None = None,
        read_line: ReadLine = lambda source, line: "",
        read_lines: ReadLines = lambda source, first, count: (),
        ask: Ask = lambda promql, **window: None,
        window: tuple[datetime, datetime] | None = None,
        skew_s: float = 2.0,
        baseline: Facts | None = None,
        last_lines: Mapping[str, LogCite] | None = None,
        last_seen: Mapping[str, datetime] | None = None,
        whole_logs: bool = True,
        catalogue: str | None = None,
        measured: Callable[[str], bool] = lambda need: False,
        strict: bool = False,
        dumps: Sequence[Dump] = (),
        end_seen: bool = False,
        nodes: Mapping[str, str] | None = None,
    ) -> None:
        self.targets = tuple(targets)
        self.files = tuple(files)
        self.matches = tuple(matches)
        self.crashes = tuple(crashes)
        self.exits = tuple(exits)
        self.tracks = tuple(tracks)
        self.markers = tuple(markers)
        self.jobs = tuple(jobs)
        self.node_events = tuple(node_events)
        self.attempts = tuple(attempts) or (Attempt(0, "unknown"),)
        self._gaps = gaps
        self.now = now
        self.window = window
        self.skew_s = skew_s
        self.baseline = baseline
        self.missed: list[Gap] = []  # what the baseline lacks as a whole
        self.last_lines = dict(last_lines or {})
        self.last_seen = dict(last_seen or {})
        self.whole_logs = whole_logs
        self.catalogue = catalogue
        self.measured = measured
        self.strict = strict
        self.dumps = tuple(dumps)
        self.end_seen = end_seen
        self.nodes = nodes or {}
        self._read_line = read_line
        self._read_lines = read_lines
        self._ask = ask
        self._memo: dict[str, Any] = {}

    def memo(self, key: str, work: Callable[[Facts], T]) -> T:
        """What `work` makes of these facts, made once."""
        if key not in self._memo:
            self._memo[key] = work(self)
        return cast(T, self._memo[key])

    # --- stores and coverage ---

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What could not be had; asking for numbers can add to it."""
        return (*self._gaps, *self.missed)

    @cached_property
    def stores(self) -> frozenset[str]:
        return frozenset(read.kind for read in self.files)

    @cached_property
    def log_lines(self) -> int:
        return sum(read.lines for read in self.files if read.kind == LOG)

    def log_files(self, kind: str = LOG) -> tuple[FileRead, ...]:
        return tuple(read for read in self.files if read.kind == kind)

    def absence(self, tokens: Iterable[str], text: str, kind: str = LOG) -> AbsenceCite | None:
        """
        That nothing a token stands for is in the files of a store.

        None where something is, or where the store holds no line, for then nothing was searched.
        A token is `family:B1` (its root signatures), `tag:timeout`, `signature:ID`, or
        `traceback`.
        """
        files = self.log_files(kind)
        wanted = tuple(sorted(set(tokens)))
        if not any(read.searched[1] for read in files) or any(map(self.has, wanted)):
            return None
        return AbsenceCite(
            source=files[0].source if len(files) == 1 else f"{len(files)} files",
            patterns=wanted,
            files=tuple(read.searched[0] for read in files),
            lines=sum(read.searched[1] for read in files),
            text=text,
        )

    def has(self, token: str) -> bool:
        """Whether anything a token stands for was read; see `absence`."""
        if token == "traceback":
            return bool(self.crashes)
        return any(stands_for(token, match) for match in self.matches)

    # --- the job ---

    @cached_property
    def job(self) -> Job | None:
        """The last accounting row of the run's job."""
        return self.jobs[-1] if self.jobs else None

    @property
    def last(self) -> Attempt:
        return self.attempts[-1]

    @property
    def disposition(self) -> Disposition:
        return self.last.disposition

    # --- events ---

    def tagged(self, tag: str) -> tuple[Match, ...]:
        return self.memo(
            f"tagged {tag}", lambda f: tuple(m for m in f.matches if tag in m.signature.tags)
        )

    def of_role(self, role: str) -> tuple[Match, ...]:
        return tuple(m for m in self.matches if m.signature.role == role)

    def standing(self, tag: str) -> tuple[Match, ...]:
        """Tagged lines after which their attempt did not go on: a log may print the scheduler's
        or the kernel's words as data, or those of a helper's job."""
        return self.memo(f"standing {tag}", lambda facts: facts._standing(tag))

    def _standing(self, tag: str) -> tuple[Match, ...]:
        long = {file.source: file.lines for file in self.files}
        told = (m for m in self.tagged(tag) if not self.went_on(m.cite, m.attempt)
                or leaving(tag, m.cite.line, long.get(m.cite.source, 0)))  # fmt: skip
        return tuple(m for m in told if not self.outside(m.cite))

    def outside(self, cite: LogCite) -> bool:
        """Whether a kernel's line was written so long before or after the run that no time zone
        makes it a part of it: a kernel log holds weeks.  Where nothing says when the run began, it
        was not before its metrics did.  A log may show what others wrote long before as well,
        unless all of it is as old: then a clock was wrong, or its dates are misread."""
        if cite.at is None or cite.at_assumed:
            return False
        begin, end = self.lived
        begin = begin or (None if self.window is None else self.window[0])
        if begin is not None and cite.source not in self.kernel_files:
            last = self.last_seen.get(cite.source, cite.at)
            if (begin - last).total_seconds() > ZONES_S:
                return False
        early = begin is not None and (begin - cite.at).total_seconds() > ZONES_S
        late = end is not None and (cite.at - end).total_seconds() > ZONES_S
        return early or (late and cite.source in self.kernel_files)

    @cached_property
    def kernel_files(self) -> frozenset[str]:
        return frozenset(read.source for read in self.log_files(KERNEL))

    @cached_property
    def lived(self) -> tuple[datetime | None, datetime | None]:
        """When the run began and ended: by its record, else by the times in its logs."""
        begins = [row.started_at for row in self.jobs if row.started_at]
        begins = begins or [t for track in self.tracks if len(track) and (t := track.time(0))]
        ends = [row.ended_at for row in self.jobs if row.ended_at]
        logs = [seen for name, seen in self.last_seen.items() if name not in self.kernel_files]
        return min(begins, default=None), max(ends or logs, default=None)

    def went_on(self, cite: LogCite, attempt: int) -> bool:
        """Whether the attempt is known to have made further steps after a line."""
        after = self.steps_after(cite, attempt)
        return after is not None and after > GOES_ON_AFTER

    def at_line(self, source: str, first: int, last: int) -> tuple[Match, ...]:
        """Matches on lines first..last of a source."""
        return self._on_lines.within(source, first, last)

    @cached_property
    def _on_lines(self) -> OnLines:
        return OnLines(self.matches)

    # --- progress ---

    def point(self, track: Track, index: int) -> Point:
        text = self._read_line(*track.told_in(index))
        return Point(track, index, track.cite(index, text))

    def text(self, source: str, line: int) -> str:
        """A line of a log as it is cited; "" where there is none."""
        return self._read_line(source, line)

    def lines(
        self, source: str, first: int, count: int, chars: int | None = None
    ) -> tuple[str, ...]:
        """Consecutive lines for reading, masked, as many as there are; see `text` for citing."""
        return self._read_lines(source, first, count, *(() if chars is None else (chars,)))

    def main_track(self, attempt: int | None = None) -> Track | None:
        """The stream whose progress speaks for the run: most points with a loss, then lowest
        rank. Of one attempt, or of all."""
        return self.memo(f"main track {attempt}", lambda facts: facts._main_track(attempt))

    def _main_track(self, attempt: int | None) -> Track | None:
        def weight(track: Track) -> tuple[int, int, int]:
            span = range(len(track)) if attempt is None else track.of_attempt(attempt)
            with_loss = sum(track.has_loss[span.start : span.stop])
            rank = track.place.rank if track.place.rank is not None else track.place.task
            return with_loss, len(span), -(rank or 0)

        best = max(self.tracks, key=weight, default=None)
        if best is None or not (best.of_attempt(attempt) if attempt is not None else len(best)):
            return None
        return best

    def markers_of(self, *kinds: ProgressKind) -> tuple[Marker, ...]:
        return tuple(m for m in self.markers if m.kind in kinds)

    @cached_property
    def last_step(self) -> int | None:
        steps = [
            max((track.steps[i] for i in track.of_attempt(self.last.n)), default=-1)
            for track in self.tracks
        ]
        best = max(steps, default=-1)
        return None if best < 0 else best

    @cached_property
    def planned_steps(self) -> int | None:
        return plan_of(self.tracks, self.markers).steps

    @cached_property
    def reached_plan(self) -> bool:
        """Whether a stream of the last attempt made the last step that was planned, whatever
        came of the run then."""
        plan = plan_of(self.tracks, self.markers)
        spans = [(track, track.of_attempt(self.last.n)) for track in self.tracks]
        return plan.steps is not None and any(reached(t, span, plan) for t, span in spans if span)

    @cached_property
    def stops_short(self) -> bool:
        """Whether the last attempt's steps end before a stated plan, with no word of the program
        that it was done."""
        made = any(track.of_attempt(self.last.n) for track in self.tracks)
        planned = self.planned_steps is not None
        return made and planned and not self.reached_plan and not self.end_seen

    @cached_property
    def has_progress(self) -> bool:
        return any(len(track) for track in self.tracks)

    def steps_before(self, cite: LogCite, attempt: int | None = None) -> int | None:
        """How many training points were printed before this line; None where no stream can be
        put in order with it."""
        return self._count(cite, attempt, after=False)

    def steps_after(self, cite: LogCite, attempt: int | None = None) -> int | None:
        """How many training points of a later step than any before were printed after it."""
        return self._count(cite, attempt, after=True)

    def _count(self, cite: LogCite, attempt: int | None, *, after: bool) -> int | None:
        own, dated, idle = self._reach(attempt)
        counts = [0] if idle else []
        if (lines := own.get(cite.source)) is not None:
            counts.append((lines.after if after else lines.before)(cite.line) or 0)
        if cite.at is not None and not cite.at_assumed:
            at = cite.at.timestamp()
            other = dated.after(at + self.skew_s, cite.source) if after else (
                dated.before(at, cite.source)
            )  # fmt: skip
            counts += [] if other is None else [other]
        return max(counts, default=None if self.tracks else 0)

    def _reach(self, attempt: int | None) -> tuple[dict[str, Reach], Reach, bool]:
        """The points of an attempt by line for each source and by time over all, and whether a
        stream has none."""

        def work(facts: Facts) -> tuple[dict[str, Reach], Reach, bool]:
            spans = [
                (track, range(len(track)) if attempt is None else track.of_attempt(attempt))
                for track in facts.tracks
            ]
            made = [(track, slice(span.start, span.stop)) for track, span in spans if span]
            lines: dict[str, list[tuple[str, Sequence[float]]]] = {}
            for track, part in made:
                lines.setdefault(track.source, []).append(("", track.lines[part]))
            dated = [(t.source, t.at[p]) for t, p in made]
            own = {source: Reach(each) for source, each in lines.items()}
            return own, Reach(dated), len(made) < len(spans)

        return self.memo(f"reach of {attempt}", work)

    # --- order ---

    def after(self, a: LogCite | None, b: LogCite | None) -> bool | None:
        """Whether a came after b; None where it cannot be told."""
        if a is None or b is None:
            return None
        if a.source == b.source:
            return a.line > b.line
        if a.at is None or b.at is None:
            return None
        delta = (a.at - b.at).total_seconds()
        if delta > self.skew_s and not b.at_assumed:
            return True
        return False if delta < -self.skew_s and not a.at_assumed else None

    def earliest(self, cites: Iterable[LogCite]) -> LogCite | None:
        """The one no other is known to precede; the first given where several are left."""
        best: LogCite | None = None
        for cite in cites:
            if (
                best is None
                or self.after(best, cite) is True
                or (
                    best.source != cite.source
                    and best.at is not None
                    and cite.at is not None
                    and cite.at < best.at
                )
            ):
                best = cite
        return best

    # --- places ---

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        held = (*(job.nodes for job in self.jobs[-1:]), self.last.hosts)
        found = dict.fromkeys(node for nodes in held for node in nodes)
        heard = (place.host for place in self._places() if place.host)
        return tuple(found or dict.fromkeys(node_named(host, self.nodes) for host in heard))

    def _places(self) -> Iterator[Place]:
        for event in self.exits:
            yield event.place
        for match in self.matches:
            yield match.cite.place
        for track in self.tracks:
            yield track.place
        for read in self.files:
            yield read.place

    def places_of(self, rank: int) -> tuple[Place, ...]:
        """Places heard of that carry this rank (or task, where no rank was ever printed), fullest
        first."""
        ranked = any(p.rank is not None for p in self._places())
        found = {p for p in self._places() if rank == (p.rank if ranked else p.task)}
        return tuple(sorted(found, key=lambda p: (p.host is None, p.task is None, str(p))))

    def on_host(self, place: Place) -> Place:
        """The place with the one host that its rank, or its task where no rank tells, is heard of
        on; as it is where none or several are. A launcher's task is no rank: it may start many."""
        if place.host is not None:
            return replace(place, host=self.node_of(place.host))
        for key in (("rank", place.rank), ("task", place.task)):
            hosts = self._hosts_of.get(key, set())
            if hosts:
                return replace(place, host=min(hosts)) if len(hosts) == 1 else place
        return place

    def node_of(self, host: str) -> str:
        """The name the scheduler knows a host by: its logs may spell it with its domain."""
        host = node_named(host, self.nodes)
        short = host.partition(".")[0].lower()
        return next((node for node in self.hosts if node.lower() == short), host)

    @cached_property
    def _hosts_of(self) -> dict[tuple[str, int | None], set[str]]:
        sizes = self.world_size, self.job.gpus if self.job else None
        told = told_of_hosts(self.tracks, self.hosts, self.matches, sizes, self.exits, self.jobs)
        return hosts_of((*self._places(), *told), self.hosts, sizes, self.node_of, self.exits)

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """Every rank (or, where no rank was printed, task) anything was heard of."""
        ranks = {p.rank for p in self._places() if p.rank is not None}
        tasks = {p.task for p in self._places() if p.task is not None}
        return tuple(sorted(ranks or tasks))

    @cached_property
    def world_size(self) -> int | None:
        """World size as the log states it, else the number of ranks heard of when they are
        0..n-1 without a hole."""
        if (stated := stated_world(self.matches)) is not None:
            return stated
        count = len(self.ranks)
        return count if count > 1 and self.ranks == tuple(range(count)) else None

    # --- numbers ---

    def series(
        self,
        promql: str,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        step_s: float | None = None,
        exporter: str | None = None,
    ) -> Any:
        """The answer to a canonical PromQL query, or None where no metrics were read."""
        return self._ask(promql, start=start, end=end, step_s=step_s, exporter=exporter)
