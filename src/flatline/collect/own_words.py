"""
Saves and the end of a run in a program's own words, told by where they stand among its steps.

No list of words tells a save from a plan to save, but a line about a checkpoint that stands
between two steps, again and again, was printed when one was saved.  What follows the last step and
says that so many are done, as many as were counted, is the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from flatline.collect.events import LogEvents
from flatline.facts import Marker, Track
from flatline.logs.reading import clean
from flatline.model import LogCite, Place, Progress, ProgressKind

MOST_BETWEEN = 12
"""Lines between two steps that are read."""
MOST_READ = 4_000
"""Gaps between steps that are looked into; of more every so many."""
LEAST_SAVES = 3
LAST_LINES = 12
LONGEST = 1_000
"""Bytes of a line that are read: nobody says it in more."""
RECENT = 10
"""Steps by which it is told how many lie between two that are printed."""
LEAST_END = 10
"""A count below it stands in too many lines."""
_SAVED = re.compile(
    r"(?i)(?:\bsaves?\b|\bpersist|ckpt|check-?point|snapshot|weights|optimizer|state(?:_dict)?|\.(?:pth?|safetensors|ckpt)\b"
    r"|model|\bsteps?\b)"
)
_DONE = re.compile(
    r"(?i)\b(?:sav(?:e|ed)|wr(?:ote|itten)|dumped|stored|flushed|persisted|exported|committed"
    r"|done|finished|complete[d]?|end)\b|[0-9]\.?[0-9]* ?s(?:ec(?:onds?)?)?\b"
    r"|\"(?:dur|sec|took|secs|seconds)\w{0,6}\": ?[0-9]"
)
_NOT_SAVED = re.compile(
    r"(?i)\b(?:load(?:ed|ing)?|restor\w*|resum\w*|fail\w*|error|skip\w*|not|no|next|every|will|begin\w*"
    r"|start\w*|evaluat\w*|eval|valid\w*|val|generat\w*|sampl\w*|download\w*|warn\w*|cannot|async\w*)\b"
    r"|(?:writing|saving|begin|start)\W*$"
)
_ENDED = re.compile(
    r"(?i)\b(?:done|complete[d]?|finish(?:ed|es)?|reached|exit(?:ing|ed|s)?|closed|closing|ended|bye"
    r"|trained)\b"
)
_NOT_ENDED = re.compile(
    r"(?i)\b(?:signal|sig[a-z]{3,4}|preempt\w*|time[- ]?(?:limit|out|is)|wall\w*|limit|error"
    r"|fail\w*|kill\w*|cancel\w*|interrupt\w*|abort\w*|exception|oom|nan|requeue\w*|resum\w*|early|patience"
    r"|user|requested|not|never|eval\w*|epoch|stage|phase|fold|warm\w*|stop\w*|budget"
    r"|deadline|maintenance|next|continu\w*|will|diverg\w*|code|status|crash\w*|died|dead|lost|fatal"
    r"|panic\w*|assert\w*|core|non-?zero|unexpected\w*|traceback|connection|sockets?|peers?|pipe"
    r"|hangs?|hung|stuck|timeout|timed|restart\w*|memory|threshold|abnormal\w*)\b"
)
HEAD_LINES = 80
_COUNTS = (
    r"(?:optimi[sz]er |gradient |training |global )?"
    r"(?:steps|updates|iterations|iters|batches|rounds)\b"
)
_PLANNED = re.compile(
    r"(?i)\b(?:goal|plan\w{0,4}|target|total|budget|max(?:imum)?|will (?:run|train|make)"
    r"|scheduled?|train(?:ing)? for|running(?: for)?)[^0-9\n,;|]{0,24}"
    rf"([0-9][0-9,_]{{0,11}}) {_COUNTS}|(?<![\w.])([0-9][0-9,_]{{0,11}}) {_COUNTS}(?: are)?"
    r" (?:planned|to go|to do|in all|in total|ahead)\b"
    r"|\btotal[_ ](?:steps|updates|iterations|iters)\b['\"]?\s{0,3}[=:]\s{0,3}([0-9][0-9,_]{0,11})"
    r"(?![0-9.])"
)
_SAVE = re.compile(
    r"(?i)sav|ckpt|check-?point|snapshot|wr(?:ote|itten)|dump|stored|flush|persist|state ->"
    r"|\.(?:pth?|safetensors)\b"
)
_WHOLE = re.compile(r"(?i)\b(?:all|train\w*|loop|run|job|manager|reached)\b")
_AND_ENDED = re.compile(r"(?i)(?:\band|\bthen|,) (?:finished|exit(?:ed|ing)|ended|done)\W*$")
"""What the program did besides, not how the save went."""
_TAKEN = (
    r"(?:(?:total |overall )?(?:(?:wall|elapsed|run)[ -]?(?:clock)? ?)?(?:time|took|in|after)?"
    r"[ :=]{0,3}(?:[0-9]{1,3}:[0-5][0-9]:[0-5][0-9]|[0-9]{1,4} ?min(?:ute)?s?|[0-9]{1,3} ?"
    r"h(?:(?:ou)?rs?)?(?:[ ,]{0,2}[0-9]{1,2} ?m\w*)?(?:[ ,]{0,2}[0-9]{1,2} ?s\w*)?))"
)
_LAST_WORD = re.compile(
    r"(?i)(?:^|[\]>:|*=#!-]|\s{2}|\bINFO\b|:[0-9]{2}(?:[.,][0-9]{1,9})?Z?(?=\s))[\s\W]{0,40}"
    r"(?:(?:all|everything|training|job|run|script|program) )?(?:is |has |was )?"
    r"(?:done|finished|complete[d]?|ended)[\s,.;:!(-]{1,4}"
    rf"(?:{_TAKEN}|(?:with )?(?:exit|return|rc)(?:ed)?(?: with)?(?: code| status)?[ :=]{{1,3}}0)"
    r"[\s.)!*=#-]*$"
)
"""What a program says last, with the time that it took or its exit code: elsewhere it may be of a
part."""
_CUT = re.compile(
    r"(?i)\b(?:signal|sig(?:term|int|usr\d|kill)|preempt\w*|time[- ]?limit|limit|error|fail\w*"
    r"|kill\w*|cancel\w*|interrupt\w*|abort\w*|exception|requeue\w*|resum\w*|traceback|deadline"
    r"|diverg\w*|crash\w*|lost|fatal|stage|phase|fold)\b"
)
_OF_A_LOADER = re.compile(r"(?i)\bworkers?\b.{0,80}\bnormal")
"""What loads batches is told to leave when it is no longer needed."""
_COUNT = re.compile(r"(?<![0-9.,:-])0*([0-9]{1,12})(?![0-9:-]|[.,][0-9])")
_MASKED = re.compile(r"[0-9.]+")


@dataclass(frozen=True, slots=True)
class Said:
    """A line, and the step that it says is saved, or the last that was made."""

    line: int
    step: int


Lines = Callable[[int, int], Sequence[bytes]]
"""Those of the file from a first to a last."""
Cite = Callable[[int, Place, str], LogCite]
"""A line as it is cited, given where its stream is and which it is."""
Gap = tuple[int, int, Sequence[str]]
"""A step, the first of the lines behind it and before the next, and these lines."""


def in_own_words(events: LogEvents, lines: Lines, cite: Cite) -> list[Marker]:
    """What the longest curve of a file shows of what no format told."""
    tracks, kinds = events.tracks, {marker.kind for marker in events.markers}
    key = max(tracks, key=lambda one: len(tracks[one]), default=None)
    if key is None or {"checkpoint_saved", "finished"} <= kinds:
        return []
    track = tracks[key]
    gaps = list(_between(track, lines))
    told: list[tuple[ProgressKind, Said]] = []
    if "checkpoint_saved" not in kinds:
        told += [("checkpoint_saved", one) for one in _saves(track, gaps)]
    plans = (*(marker.progress.planned for marker in events.markers), track.planned)
    last = _end(track, lines, gaps) if "finished" not in kinds else None
    last = last or (_last_word(track, lines) if "finished" not in kinds else None)
    if last is not None and max(plan or 0 for plan in plans) <= last.step + 1:
        told.append(("finished", last))
    planned = _plan(track, lines) if not any(plans) else None
    if planned is not None:
        told.append(("config", planned))
    return [
        Marker(kind, _point(kind, one.step), cite(one.line, track.place, key[0]), None,
               track.attempts[-1])
        for kind, one in told
    ]  # fmt: skip


def _point(kind: ProgressKind, count: int) -> Progress:
    if kind == "config":
        return Progress(kind, planned=count)
    return Progress(kind, count if count >= 0 else None)


def _between(track: Track, lines: Lines) -> Iterator[Gap]:
    """What stands between two steps."""
    gaps = [
        (track.steps[i], a + 1, b - 1)
        for i, (a, b) in enumerate(pairwise(track.lines))
        if 1 < b - a <= MOST_BETWEEN + 1
    ]
    for step, first, last in gaps[:: max(1, len(gaps) // MOST_READ)]:
        yield step, first, [_text(raw) for raw in lines(first, last)]


def _text(raw: bytes) -> str:
    return clean(raw[:LONGEST])


def _saves(track: Track, gaps: Iterable[Gap]) -> list[Said]:
    """Lines between two steps of a stream that say that a checkpoint was saved, where they do so
    again and again."""
    found = []
    for step, first, texts in gaps:
        said = [n for n, text in enumerate(texts, first) if _says_saved(text, step)]
        if said and step >= 0:
            found.append(Said(said[-1], step))
    return found if len(found) >= LEAST_SAVES and 2 * len(found) <= len(track) else []


def _says_saved(text: str, step: int) -> bool:
    if not _SAVE.search(text) or not _DONE.search(text) or _NOT_SAVED.search(text):
        return False
    return bool(_SAVED.search(text)) or _counted(text, step)


def _counted(text: str, count: int) -> bool:
    return count in map(int, _COUNT.findall(text))


def _reached(text: str, last: int, every: int) -> int | None:
    """A number in the text that may be how many steps there were, of which each so-manieth was
    printed and this one last."""
    counts = (int(said) for said in _COUNT.findall(text))
    return next((n for n in counts if last <= n <= last + every), None)


def _end(track: Track, lines: Lines, gaps: Iterable[Gap]) -> Said | None:
    """The line behind the last step that says that all of the steps are done, as many as were
    made; not one that is printed between steps as well."""
    last = track.steps[-1] if len(track) else -1
    if last < LEAST_END:
        return None
    recent = [b - a for a, b in pairwise(track.steps[-RECENT:])]
    every = max(1, int(median(recent or [1])))
    epoch = track.epoch[-1]
    epochs = rf"(?<![0-9.])(?:{epoch:.0f}|{epoch + 1:.0f}) epochs\b" if epoch == epoch else r"(?!)"
    first = track.lines[-1] + 1
    before = {_MASKED.sub("0", text) for *_, texts in gaps for text in texts}
    for n, raw in enumerate(lines(first, first + LAST_LINES - 1), first):
        text = _text(raw)
        made = _reached(text, last, every)
        if made is None and not re.search(epochs, text):
            continue
        if _MASKED.sub("0", text) in before:
            continue
        if not _ENDED.search(text) or _NOT_ENDED.search(text):
            continue
        if not _SAVE.search(text) or _WHOLE.search(text) or _AND_ENDED.search(text):
            return Said(n, last if made is None else made)
    return None


def _last_word(track: Track, lines: Lines) -> Said | None:
    """The last line of the file, a few behind the last step, where it tells the end in so many
    words and nothing between them tells of another."""
    first = track.lines[-1] + 1
    texts = [_text(raw) for raw in lines(first, first + LAST_LINES - 1)]
    if len(track) < LEAST_END or len(texts) == LAST_LINES:
        return None
    while texts and re.search(r"\w", texts[-1]) is None:
        texts.pop()
    if not texts or not _LAST_WORD.search(texts[-1]):
        return None
    if any(_CUT.search(text) and not _OF_A_LOADER.search(text) for text in texts):
        return None
    return Said(first + len(texts) - 1, track.steps[-1])


def _plan(track: Track, lines: Lines) -> Said | None:
    """What a line above the first step says that there are to be, of which no more were made."""
    most, found = max(track.steps), {}
    first = max(1, track.lines[0] - HEAD_LINES)
    for n, raw in enumerate(lines(first, track.lines[0] - 1), first):
        for told in _PLANNED.finditer(_text(raw)):
            found[int(re.sub("[,_]", "", told[1] or told[2] or told[3]))] = n
    ((planned, line),) = found.items() if len(found) == 1 else ((0, 0),)
    return Said(line, planned) if planned >= max(most, LEAST_END) else None
