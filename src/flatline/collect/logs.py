"""One log file to events: hits to signatures, progress, exits and tracebacks, placed and dated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from flatline.collect.attempts import split
from flatline.collect.beside_bars import told_by_bars
from flatline.collect.blocks import Blocks
from flatline.collect.catalogue import Catalogue, confirming
from flatline.collect.events import LogEvents
from flatline.collect.guarded import Breaks, Guarded
from flatline.collect.handled import SAID, without_handled, without_left_behind
from flatline.collect.looking_back import LookBack
from flatline.collect.own_words import in_own_words
from flatline.collect.refining import countable, masked_groups, refined
from flatline.collect.same_step import date
from flatline.collect.setting import Setting
from flatline.collect.shares import Shares
from flatline.collect.shown_steps import without_shown
from flatline.collect.steps import StepLines, Stream
from flatline.collect.tables import Tables
from flatline.collect.thinning import halve, thinned
from flatline.collect.unnamed import filled, lacking, unnamed_steps
from flatline.facts import Marker, Track
from flatline.logs.clock import Clock
from flatline.logs.event_files import RENDERED
from flatline.logs.labels import CUT_BYTES, Bared, Labelled, Labels
from flatline.logs.layout import layouts
from flatline.logs.literals import SAID as OWN
from flatline.logs.reading import TextFile, clean, open_text, sample_lines
from flatline.logs.scan import Hit
from flatline.logs.streams import key_below, stream_lines
from flatline.logs.traceback import MESSAGE_CHARS, RawCrash, read_exception, read_traceback
from flatline.logs.tracetext import CODE, FRAME, HEAD, exception_line
from flatline.model import Crash, Gap, LogCite, Match, Place, ProcessExit, Progress
from flatline.parsers import Reported
from flatline.redact import around, excerpt, mask
from flatline.tracks import SHOWN

TEXT_CHARS = 600
"""What is kept of a cited line; the citation still holds, for it is looked for in the line."""
MATCHES_PER_SIGNATURE = 2_000
TRACEBACKS_PER_FILE = 4_000
MESSAGES_PER_FILE = 64
"""Exceptions without a traceback whose further lines are read."""
MESSAGE_LINES = 30
JOINED_LINES = 100
"""Cut lines of a file that are searched whole, pattern by pattern."""
REST_WITHIN_LINES = 32
"""How far down the rest of a cut line is looked for: other tasks' lines stand between."""
LAST_LINES = 40
"""Above a file's last one, in which the last that says something is looked for."""
EVENTS_PER_FILE = 20_000
"""Exits, and markers of progress: a launcher reports each of its processes once."""
POINTS_PER_STREAM = 2_000_000
"""Beyond it every second point is dropped, so that no log fills the memory; 90 bytes a point."""


@dataclass(slots=True)
class _Seen:
    """A line with a hit. Most are training steps, of which only line and time are kept: what a
    citation takes is worked out where one is made."""

    reader: LogReader
    text: str
    labelled: Labelled
    line: int
    at: datetime | None
    at_assumed: bool
    cited: LogCite | None = None

    @property
    def cite(self) -> LogCite:
        if self.cited is None:
            place = self.reader.place(self.labelled)
            said = excerpt(self.text, TEXT_CHARS).strip()
            self.cited = LogCite(
                self.reader.file.source, self.line, said, place, self.at, self.at_assumed
            )
        return self.cited


class LogReader:
    """Reads one file. `events` is complete after `read`."""

    def __init__(self, file: TextFile, book: Catalogue, labels: Labels, clock: Clock,
                 setting: Setting) -> None:  # fmt: skip
        self.file = file
        self.book = book
        self.labels = labels
        self.clock = clock
        self.setting = setting
        self.events = LogEvents(file.source)
        self._steps = self._by_column()
        self._readers: dict[tuple[str, str], Guarded] = {}
        self._breaks = Breaks()
        self._streams: dict[str, Stream] = {}
        self._heads: list[tuple[int, str]] = []
        self._exceptions: list[tuple[str, Crash]] = []
        self._counts: dict[str, int] = {}
        self._joined = 0
        self._left: dict[str, int] = {}
        self._tables = Tables(file, labels)
        self._near = Shares(file, labels)
        self._back = LookBack(self._near.lines, labels, clock)
        self._seq = 0

    def read(self, sample: Sequence[str] = ()) -> LogEvents:
        """`sample` are some of its lines, by which steps that no format knows are found."""
        clock = copy(self.clock)
        self._scan()
        more = lacking(self.events.tracks, self._near.line, self.labels)
        if more and (book := unnamed_steps(sample, self.labels, clock)) is not None:
            self.book, self.clock, self._streams = book, clock, {}
            self._steps = self._by_column()
            self._scan()
            filled(self.events.tracks)
        without_shown(self.events, self._near, self.labels)
        told_by_bars(self.events, self._near)
        self.events.markers += in_own_words(self.events, self._near.lines, self._cited)
        self._tracebacks()
        without_handled(self.events, self._text, self.file.line_count)
        without_left_behind(self.events)
        self._close()
        self.events.yearless, self.events.dayless = self.clock.lacks_year, self.clock.lacks_day
        split(self.events, self.setting.attempt)
        date(tuple(self.events.tracks.values()))
        return self.events

    def _cited(self, line: int, place: Place, key: str) -> LogCite:
        return self._cite(line, place, self._back.before(line, key))

    def _by_column(self) -> StepLines:
        attempt = self.setting.attempt
        return StepLines(self.events, self.labels, self.clock, attempt, POINTS_PER_STREAM)

    def _scan(self) -> None:
        hits = self.book.scanner.scan(self.file)
        take = self._steps.take
        for hit in thinned(hits, self.book.formats, self._left):
            if not take(hit):
                self._hit(hit)
        self._steps.settle_all()

    # --- one hit ---

    def _hit(self, hit: Hit) -> None:
        text = clean(hit.text)
        labelled = self.labels.split(text)
        if hit.head:
            labelled = replace(self.labels.split(clean(hit.head)), text=labelled.text)
        numbers: Iterable[int] = hit.ids
        if len(hit.text) >= CUT_BYTES:
            whole = self._rejoined(labelled, hit.line)
            if whole is not labelled and self._joined < JOINED_LINES:
                self._joined += 1  # what stands across the cut was not seen by the scanner
                numbers = sorted({*hit.ids, *range(len(self.book.signatures))})
            labelled = whole
        aside = self.book.aside.issuperset(numbers)
        at, assumed = self._time(text, labelled, hit.line, aside)
        seen = _Seen(self, text, labelled, hit.line, at, assumed)
        taken = False
        for number in numbers:
            if number < len(self.book.signatures):
                self._signature(number, text, labelled.text, seen)
            elif number == self.book.traceback_id:
                self._heads.append((hit.line, labelled.key))
            elif number == self.book.bare_id:
                self._bare(labelled, seen.cite)
            elif not taken:
                taken = self._format(number, labelled, seen)
                if taken and number == hit.ids[0] and hit.ids[-1] in self.book.formats:
                    self._learn(hit, labelled)

    def _learn(self, hit: Hit, labelled: Labelled) -> None:
        """A line that the first of the formats that wanted it took."""
        form = self.book.formats[hit.ids[0]].FORMAT
        reader, stream = self._readers[labelled.key, form], self._streams[labelled.key]
        self._steps.learn(hit, labelled, form, reader, stream)

    def _rejoined(self, labelled: Labelled, line: int) -> Labelled:
        """A line that `srun -l` cut in two, with its rest; citations keep the first part."""
        for _, raw in self.file.window(line + 1, REST_WITHIN_LINES):
            rest = self.labels.split(clean(raw))
            if self.labels.continues(labelled, rest):
                return replace(labelled, text=labelled.text + rest.text)
            if rest.key == labelled.key:
                break
        return labelled

    def _bare(self, labelled: Labelled, cite: LogCite) -> None:
        """Keeps an exception line without a traceback: excerpts, boxed and filtered output."""
        found = exception_line(labelled.text, sure=False)
        if (
            found is None
            or found[0].endswith("Warning")
            or len(self._exceptions) >= TRACEBACKS_PER_FILE
            or ((found[0] == "Exception" or not found[1]) and not self._below_code(cite.line))
            or not (share := self._near.of(labelled, cite.line, labelled.text))
        ):
            return
        self._seq += 1
        bare = Crash(found[0], excerpt(found[1], MESSAGE_CHARS), (), cite, cite, share=share,
                     end_line=cite.line, seq=self._seq, attempt=self.setting.attempt)  # fmt: skip
        self._exceptions.append((labelled.key, bare))

    def _below_code(self, line: int) -> bool:
        """Whether a line of a frame stands above: `Exception: ` is any program's word, and so is
        the name of one without a message."""
        above = self._text(line - 1) if line > 1 else ""
        return bool(CODE.match(above) or FRAME.match(above))

    def place(self, labelled: Labelled) -> Place:
        """Where a line was said, by its labels and by what is known of its file."""
        name, place = self.setting.name, labelled.place
        rank, local = place.rank, labelled.local_rank
        if rank is None:
            rank = name.rank
        if local is None:
            local = name.local_rank
        if rank is None and local is not None and self.setting.single_node:
            rank = local
        return Place(
            host=place.host or name.host,
            gpu=place.gpu,
            device=place.device,
            domain=place.domain,
            rank=rank,
            task=place.task if place.task is not None else name.task,
        )

    def _time(
        self, text: str, labelled: Labelled, line: int, aside: bool = False
    ) -> tuple[datetime | None, bool]:
        """When a line was printed, and whether only an earlier one of its stream says so; what
        stands `aside` dates no other."""
        stamp = self.clock.either(text, labelled.text)
        key = labelled.key
        stream = self._streams.get(key) or self._streams.setdefault(key, Stream())
        if stamp is not None:
            if not aside:
                stream.at, stream.line = stamp.at, line
            if self.events.last_seen is None or stamp.at > self.events.last_seen:
                self.events.last_seen = stamp.at
            self.events.zone_assumed = self.events.zone_assumed or stamp.assumed
            return stamp.at, False
        return stream.at, True

    def _signature(self, number: int, text: str, bare: str, seen: _Seen) -> None:
        """`bare` is the text without its labels: a pattern may want either."""
        signature = self.book.signatures[number]
        decide = confirming(signature.pattern)
        found = decide.search(text) or decide.search(bare)
        count = self._counts.get(signature.id, 0) + 1
        if found is None:
            return
        if count <= MATCHES_PER_SIGNATURE and (signature.family or signature.role in SAID):
            left = self._near.of(seen.labelled, seen.line, found[0])
            if not left:
                return
            if left < signature.strength:
                signature = replace(signature, strength=left, tags=(*signature.tags, SHOWN))
        self._counts[signature.id] = count
        if count > MATCHES_PER_SIGNATURE:
            return
        self._seq += 1
        groups = masked_groups(decide, found)
        placed = replace(seen.cite, place=refined(seen.cite.place, groups))
        if len(text) > TEXT_CHARS and (part := around(text, TEXT_CHARS, decide)):
            placed = replace(placed, text=part)
        self.events.matches.append(
            Match(signature, placed, groups, self._seq, self.setting.attempt)
        )

    def _format(self, number: int, labelled: Labelled, seen: _Seen) -> bool:
        line_format = self.book.formats[number]
        key = (labelled.key, line_format.FORMAT)
        reader = self._readers.get(key)
        if reader is None:
            reader = self._readers[key] = Guarded(line_format, self._breaks)
        self._breaks.line = seen.line
        said = False
        for item in reader.feed(labelled.text):
            said = True
            if isinstance(item, Reported):
                share = self._near.of(labelled, seen.line, labelled.text)
                self._exit(item, seen.cite, share)
            elif (
                item.kind != "finished" or self._near.of(labelled, seen.line, labelled.text) == OWN
            ):
                self._progress(item, seen, key, line_format.FRAMEWORK)
        for row, item in reader.rows(self._lines_below(seen.line, key[0])):
            self._progress(item, row, key, line_format.FRAMEWORK)
        return said

    def _lines_below(self, head: int, key: str) -> Iterator[tuple[_Seen, str]]:
        for line, text, labelled in self._tables.below(head, key):
            stamp = self.clock.read(text)
            at = stamp.at if stamp else None
            yield _Seen(self, text, labelled, line, at, stamp is None), labelled.text

    def _room(self, kind: str, held: int) -> bool:
        """Whether one more event of a kind is kept; what is not is counted."""
        self._left[kind] = self._left.get(kind, 0) + (held >= EVENTS_PER_FILE)
        return held < EVENTS_PER_FILE

    def _exit(self, item: Reported, cite: LogCite, share: float) -> None:
        if not share or not self._room("ended process", len(self.events.exits)):
            return
        self._seq += 1
        place = item.place if item.place else cite.place
        self.events.exits.append(
            ProcessExit(
                reporter=item.reporter,
                cite=replace(cite, place=place),
                place=place,
                exit_code=item.exit_code,
                signal=item.signal,
                first=item.first,
                at=cite.at,
                seq=self._seq,
                attempt=self.setting.attempt,
                share=share,
            )
        )

    def _progress(
        self, item: Progress, seen: _Seen, key: tuple[str, str], framework: str | None
    ) -> None:
        item = countable(item)
        if item.kind != "train":
            if not self._room("sign of progress", len(self.events.markers)):
                return
            self.events.markers.append(
                Marker(item.kind, item, seen.cite, framework, self.setting.attempt)
            )
            return
        track = self.events.tracks.get(key)
        self._steps.settle(key)
        if track is None:
            track = Track(self.file.source, seen.cite.place, framework, key[1])
            self.events.tracks[key] = track
        own = None if seen.at_assumed and not self._own(seen, key[0]) else seen.at
        track.add(item, seen.line, own, self.setting.attempt)
        if len(track) >= POINTS_PER_STREAM:
            halve(track)
            self._left["point of a long curve"] = POINTS_PER_STREAM // 2

    def _own(self, seen: _Seen, stream: str) -> bool:
        """Whether the time was printed on this very line."""
        return self._streams[stream].line == seen.line

    # --- after the scan ---

    def _tracebacks(self) -> None:
        consumed: dict[str, int] = {}
        for head, key in self._heads[:TRACEBACKS_PER_FILE]:
            own = self.labels.split(self._near.line(head))
            below = key_below(self.file, self.labels, head, key)
            if head <= consumed.get(below, 0) or not (share := self._near.of(own, head, HEAD)):
                continue
            raw = read_traceback(stream_lines(self.file, self.labels, head, key))
            if raw is None:
                continue
            consumed[below] = raw.end_line
            self._crash(raw, key, share)
        if len(self._heads) > TRACEBACKS_PER_FILE:
            left = len(self._heads) - TRACEBACKS_PER_FILE
            self.events.gaps.append(
                Gap("every traceback", f"{left} tracebacks beyond the first "
                    f"{TRACEBACKS_PER_FILE} were not read", self.file.source)
            )  # fmt: skip
        self._drop_quoted_code()
        blocks = Blocks((None, c.head.line, c.end_line) for c in self.events.crashes)
        alone = [one for one in self._exceptions if not blocks.hold(None, one[1].cite.line)]
        for key, bare in alone[:MESSAGES_PER_FILE]:
            self.events.crashes.append(self._with_message(key, bare))
        self.events.crashes += [bare for _, bare in alone[MESSAGES_PER_FILE:]]

    def _with_message(self, key: str, bare: Crash) -> Crash:
        """A lone exception with the further lines of its message."""
        raw = read_exception(
            stream_lines(self.file, self.labels, bare.cite.line, key, MESSAGE_LINES)
        )
        if raw is None or raw.exception_line != bare.cite.line:
            return bare
        return replace(bare, message=mask(raw.message), end_line=raw.end_line)

    def _crash(self, raw: RawCrash, key: str, share: float) -> None:
        labelled = self.labels.split(self._near.line(raw.head_line))
        place = self.place(labelled)
        at = self._back.before(raw.head_line, key)
        line = raw.exception_line or raw.end_line
        self._seq += 1
        self.events.crashes.append(
            Crash(
                exception=raw.exception,
                message=mask(raw.message),
                frames=tuple(replace(f, code=mask(f.code)) if f.code else f for f in raw.frames),
                cite=self._cite(line, place, at),
                head=self._cite(raw.head_line, place, at),
                chain=tuple((kind, mask(said), how) for kind, said, how in raw.chain),
                complete=raw.complete,
                end_line=raw.end_line,
                seq=self._seq,
                attempt=self.setting.attempt,
                share=share,
            )
        )

    def _cite(self, line: int, place: Place, at: datetime | None) -> LogCite:
        text = self._near.line(line)
        return LogCite(
            self.file.source, line, excerpt(text, TEXT_CHARS).strip(), place, at, at is not None
        )

    def _drop_quoted_code(self) -> None:
        """Matches on a frame's source line are code that was quoted, not lines that were said."""
        inside = Blocks((place, c.head.line + 1, c.cite.line - 1)
                         for c in self.events.crashes
                         for place in {c.cite.place, self._place_below(c.head.line)})  # fmt: skip

        def quoted(match: Match) -> bool:
            line, place = match.cite.line, match.cite.place
            if not inside.hold(place, line):
                return False
            return self.labels.split(self._near.line(line)).text.startswith("  ")

        self.events.matches = [m for m in self.events.matches if not quoted(m)]

    def _place_below(self, head: int) -> Place:
        """Of the frames: loggers may name the rank in the head alone."""
        return self.place(self.labels.split(self._near.line(head + 1)))

    def _text(self, line: int) -> str:
        return next(iter(Bared(self.labels, self._near.lines(line, line))), "")

    def _close(self) -> None:
        events = self.events
        events.lines, events.size = self.file.line_count, self.file.size
        events.gaps.extend((*self.file.gaps, *self._breaks.gaps(self.file.source)))
        for name, count in self._counts.items():
            if count > MATCHES_PER_SIGNATURE:
                events.gaps.append(
                    Gap(f"every line of {name}", f"{count} lines match; the first "
                        f"{MATCHES_PER_SIGNATURE} are kept", self.file.source)
                )  # fmt: skip
        left_out = (*self._left.items(), ("table", self._tables.left))
        events.gaps += [Gap(f"every {kind}", f"{left} or more were left out", self.file.source)
                        for kind, left in left_out if left]  # fmt: skip
        first = max(1, events.lines - LAST_LINES)
        for number, raw in reversed([*enumerate(self._near.lines(first, events.lines), first)]):
            text = clean(raw).strip()
            if text:
                at, assumed = self._time(text, self.labels.split(text), number, aside=True)
                events.last_line = LogCite(
                    self.file.source, number, excerpt(text, TEXT_CHARS), Place(),
                    None if assumed else at)  # fmt: skip
                break
        events.matches = [self._dated(match) for match in events.matches]

    def _dated(self, match: Match) -> Match:
        if match.cite.at is not None or match.signature.role in ("benign", "marker"):
            return match
        key = self.labels.split(self._near.line(match.cite.line)).key
        at = self._back.before(match.cite.line, key)
        return replace(match, cite=replace(match.cite, at=at, at_assumed=True)) if at else match


def read_log(path: Path, source: str, book: Catalogue, setting: Setting) -> LogEvents:
    """Read one log. Raises `SourceError` where it cannot be opened."""
    with open_text(path, source) as file:
        sample = sample_lines(file)
        same = layouts(sample)
        # the time that an event file's lines are rendered with is no label of a container engine's
        of_events = all(RENDERED in line for line in sample if line)
        labels = Labels() if of_events else Labels.learn(sample, same)
        clock = Clock.learn(
            sample, year=setting.year, near=setting.near, zone=setting.zone, same=same
        )
        events = LogReader(file, book, labels, clock, setting).read(sample)
        events.first_seen = clock.first(sample)
        events.stated, events.named = clock.zone if clock.zone_stated else None, clock.named
        return events
