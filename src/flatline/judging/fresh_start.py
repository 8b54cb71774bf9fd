"""
A run that finds no checkpoint: the first of a chain, as far as is known, or one that was to go on
from what the job before it saved.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from pathlib import PurePosixPath

from flatline.facts import Facts, Marker, Point
from flatline.model import LogCite, Progress
from flatline.tracks import EARLIER, Track

LOOKED_BACK = 400
"""Lines before a checkpoint is looked for in which settings are printed."""
_EARLIER = re.compile(
    r"(?i)\bresum(?:e|es|ed|ing)\b(?!\W{1,60}(?:none|false|auto)\b)|RESTART_COUNT[=: ]+[1-9]"
    r"|\bprevious(?:ly)?\b|\bcontinu(?:ing|es|ation of) (?:\w+ )?(?:job|run)\b"
    r"|consumed_(?:train_)?samples[ .:=]+[1-9]|\biter_\d{5,}\b"
    r"|(?:pretrained|finetune|exit_on_missing)\w*[ .:=]+(?:True|/)"
)
"""What tells of an earlier run."""
_LATER = re.compile(
    r"(?i)(?:part|chunk|seg|cont|resume|restart|run)[-_.]?(?:[2-9]|\d\d)\b|-r[2-9]\b"
)
UNCOUNTED = 1000
"""Steps: lines of progress come at least so often."""
_LAST_NUMBER = re.compile(r"[/\\_-](\d{1,9})(?:\.\w{1,12})?[/\\]?['\"]?\s*$")
HEAD = 200
"""Lines of a log in which a script says what it is about."""
MENDED = ("failed", "cancelled", "out_of_memory", "completed")
"""Whoever ended it, or mends it, may well begin anew; so may who let it leave of itself."""
_BEGINS_FROM = re.compile(
    r"(?i)\b(?:init\w*|pretrained|warm[- ]?start\w*|fine-?tun\w*)\b[^\n]{0,40}\bfrom\b"
    r"(?!\s+(?:random|scratch))"
)
ASKS = re.compile(
    r"(?i)\s--?(?:auto[-_]?resume|resume(?:[-_]from[-_]checkpoint)?)"
    r"(?:[= ](?:auto|latest|last|true|1)\b|(?=\s+-|\s*$))"
)
"""What a command asks for that is to go on from whatever is there."""
_LOOKING = re.compile(
    r"(?i)\b(?:look|search|check)(?:s|ed|ing)? for (?:an? |the )?(?:\w+ )?checkpoints?\b"
)
FILE = re.compile(r"(?<![\w.])/[\w./-]{1,400}")
_LOADS_FROM = re.compile(
    r"(?i)\b(?:checkpoints?|ckpts?|state)\b[^\n]{0,40}\b(?:load|restor|resum)\w{0,4}\b[^\n]{0,24}\bfrom\b"
)
AT_STEP = re.compile(
    r"(?i)(?:step|iter(?:ation)?)[ _=:-]{0,2}0{0,11}([1-9][0-9]{0,11})(?!\w|\.\w)"
)
"""What a line on a save that begins says of which it is."""
_AT_EPOCHS = re.compile(r"(?i)\bsaving checkpoint at ([1-9]\d{0,6}) epochs?\b")
"""The same of OpenMMLab's, which counts those that were made."""
NEAR = 10
"""Lines below the one that says where it begins in which it still says what it does."""
_SEARCHED = re.compile(
    r"(?i)\b(?:searched|tried|match(?:ed|es|ing)|checkpoints?(?: (?:path|file|dir\w*))?|ckpt)"
    r" ['\"]?([\w.~-]*/\S{1,400}?)(?=['\"]?[,;:]?(?:\s|$))"
)
"""Where a line that says that none was found says it looked."""
_IN = re.compile(r"\b(?:in|at|under|below) (/\S{1,400}?)(?=[,;:]?(?:\s|$))")
_TRACKER = re.compile(r"metadata file (/\S{1,400})/latest_checkpointed_iteration\.txt")
"""Megatron's, as it says that it found none there."""
_NEMO = re.compile(r"\bcheckpoint_dir :(/\S{1,400}?)\. Training from scratch")
_LOAD = re.compile(r"\s{0,4}load \.{5,80} (/\S{1,400})")
"""Where Megatron looks for a checkpoint, as it prints its settings."""

_CAME_TO = re.compile(
    r"(?i)\b(?:(?:last|latest|newest|most recent)(?: \w+)?"
    r" (?:saved?|checkpoint(?:ed)?|ckpt|written)"
    r"|(?:previous|prior|earlier|preceding) (?:job|run|part|attempt|segment)\b[^\n]{0,80}?"
    r"\b(?:saved|wrote|written|reached|stopped|ended|left|got to))\b[^\n]{0,40}?"
    r"(?:\b|(?<=global_))(?:iter(?:ation)?|step)s?(?:[ :=#_]{0,3}| (?:was|is) )0{0,9}"
    r"([1-9]\d{0,2}(?:,\d{3}){1,3}|[1-9]\d{0,8})\b"
)
"""How far a script says that the run before this one had come."""
_GOES_ON_AT = re.compile(
    r"(?i)\b(?:continuation|resumption) (?:no\.? ?|# ?)?[1-9]\d{0,3}\b"
    r"[^\n]{0,40}?\b(?:was|left(?: off)?|stopped|ended|stood|got|came) (?:at|to)"
    r" (?:(?:iter(?:ation)?|step) )?([1-9]\d{0,2}(?:,\d{3}){1,3}|[1-9]\d{1,8})\b"
)
"""That it goes on and how far that before it came, in one: a number that counts, and a step."""
_IS_TO_GO_ON_AT = re.compile(
    r"(?i)\b(?:(?:resum|continu)(?:e|es|ed|ing|ation|ption)?\b(?: is| was)? (?:expected|due|meant)"
    r"|expect(?:s|ed|ing)?(?: it)? to (?:resume|continue|go on|restart))"
    r" (?:at|from|with) (?:iter(?:ation)?|step) ([1-9]\d{0,2}(?:,\d{3}){1,3}|[1-9]\d{1,8})\b"
)
"""That whoever starts it expects it to go on, and at which step."""
_GOES_ON_FROM = re.compile(
    r"(?i)^[^\n]{0,60}?\b(?:continu|resum)(?:e|es|ed|ing) (?:training )?(?:from|with|at) (?:the )?"
    r"(?:(?:last |latest )?(?:checkpoint|ckpt|snapshot) )?['\"]?[\w./~-]{0,200}?(?<![a-z])"
    r"(?:(?:global[_-]?)?step|iter(?:ation)?|checkpoint|ckpt)[-_=]0{0,11}([1-9]\d{0,11})"
    r"(?:\.\w{1,12})?['\"/.]{0,2}\s*$"
)
"""The checkpoint by whose name, which bears its step, a script says that it goes on."""
_SAYS_IT_GOES_ON = re.compile(
    r"(?i)\b(?:continu|resum)(?:e|es|ed|ing)\b(?: \w+){0,3} (?:from|at|with|after) "
    r"(?:--(?:load|resume)\b|[^\n]{0,80}\b(?:checkpoints?|ckpts?|iteration|step|there)\b)"
)
_GOES_ON_WITH = re.compile(
    r"(?i)^[^\n]{0,40}?\b(?:continu|resum)(?:es|ed|ing|ation of) [\w./-]{1,80}"
)
"""That a line begins so, which then says how far the run before it had come."""
_ANOTHER = re.compile(
    r"(?i)\b(?:stage|phase|fine-?tun\w*|weights|new|anew|fresh|scratch|instead)\b"
)
"""What follows a run and counts its own steps from nought."""
_DOUBTS = re.compile(
    r"(?i)\b(?:if|unless|when|whether|not|no|never|only|else|could|would)\b|n't\b"
)
_HANDS_ON = re.compile(
    r"(?i)\b(?:exit|leav|stop|quit|end)p?(?:s|ed|ing)?\b[^\n]{0,40}?\b(?:for|to let) (?:the )?"
    r"(?:next|following) (?:job|link|chunk|segment)\b"
    r"|\b(?:continu|resum)(?:es?|ed|ing)\b[^\n]{0,20}?\b(?:by|in|with) (?:the )?"
    r"(?:next|following) (?:job|link|chunk|segment)\b"
    r"|\b(?:next|following) (?:job|link|chunk|segment) (?:of|in) (?:the|this|its) chain\b"
)
"""That another job is to go on where this one leaves."""
_THE_LAST = re.compile(r"(?i)\b(?:last|final|nothing|none|without)\b")


def begins_where_it_saves(facts: Facts) -> bool:
    """Whether the run found no checkpoint in the very folder it saves to, as the first of jobs
    that go on from one another does, and none is known before it."""
    job = facts.job
    if (
        facts.last.n > 0
        or len(facts.jobs) > 1
        or facts.parent is not None
        or any(gap.need == EARLIER for gap in facts.missed)
        or (job and (job.dependency or job.restarts))
    ):
        return False
    if job and job.name and _LATER.search(job.name):
        return False
    fresh = [m for m in facts.markers_of("fresh") if m.progress.step is None]
    if any(_EARLIER.search(text) for marker in fresh for text in _above(facts, marker)):
        return False
    saved = facts.markers_of("checkpoint_saved")
    places = [_looked_in(facts, marker) for marker in fresh]
    return bool(places) and all(
        place and any(names(marker, place) for marker in saved) for place in places
    )


def left_by_parent(facts: Facts) -> Marker | None:
    """
    The checkpoint that an unfinished job before this one saved, where this one is to do the same
    steps and looked for one.

    Who ended a run, or mended it, may well begin anew, in another folder: then it counts only
    where this one looked in the very folder it was saved to.  A program that begins at its first
    step looked for one where it was told to go on.
    """
    parent = facts.parent
    told = parent is not None and in_its_own_folder(facts)
    fresh = [m for m in facts.markers_of("fresh") if told or m.progress.step is None]
    if parent is None or not fresh:
        return None
    steps = saved_steps(parent)
    saved = [m for m in steps if (m.progress.step or 0) > 0]
    plans = {parent.planned_steps, facts.planned_steps} - {None}
    if not saved or len(plans) > 1 or was_done(parent):
        return None
    places = [place for marker in fresh if (place := _looked_in(facts, marker))]
    there = any(names(saved[-1], place) for place in places)
    if there:
        return saved[-1]
    above = [text for marker in fresh for text in (*_above(facts, marker), marker.cite.text)]
    anew = any(_BEGINS_FROM.search(text) for text in above) and asked_as_before(facts) is None
    looked = {*places, *sought_in(facts, fresh)}
    if not anew and any(misspelt(saved[-1].cite.text, place) for place in looked):
        return saved[-1]
    if _mended(parent) or anew:
        return None
    if any(_of_its_own_id(facts, saved[-1].cite.text, place) for place in looked):
        return saved[-1]
    others = [place for place in looked if not names(saved[-1], place.rstrip("/"))]
    return None if any(sibling(saved[-1].cite.text, place) for place in others) else saved[-1]


def handed_on(run: Facts | None) -> list[LogCite]:
    """The line, behind its last step, that says that it leaves for the next job to go on, where it
    had saved that step."""
    track = None if run is None else run.main_track(run.last.n)
    if run is None or track is None or run.last_step is None:
        return []
    saved = (m.progress.step or 0 for m in saved_steps(run))
    if max(saved, default=0) < run.last_step:
        return []
    behind = track.lines[track.of_attempt(run.last.n)[-1]] + 1
    lines = enumerate(run.lines(track.source, behind, LOOKED_BACK), behind)
    told = [(n, text) for n, text in lines if _HANDS_ON.search(text)
            and not _DOUBTS.search(text) and not _THE_LAST.search(text)]  # fmt: skip
    return [LogCite(track.source, n, text, track.place) for n, text in told[-1:]]


def _mended(run: Facts) -> bool:
    left = run.disposition == "completed" and bool(_limited(run) or handed_on(run))
    return run.disposition in MENDED and not left


def _limited(run: Facts) -> bool:
    return run.job is not None and run.job.ran_to_its_limit


def was_done(run: Facts) -> bool:
    """Whether one on record as completed made its plan, or said that it ended as its limit came;
    who leaves sooner may say at which step it left, to go on from there."""
    done = run.reached_plan or (run.end_seen and _limited(run))
    return run.disposition == "completed" and done and not handed_on(run)


def _of_its_own_id(facts: Facts, saved: str, place: str) -> bool:
    """Whether it looked in a folder that bears its own job's id, as the one that was saved to
    bears its parent's: no job finds what another saved there."""
    theirs = _as_of_parent(facts, place)
    return theirs != place and theirs.rstrip("/") in saved


def misspelt(saved: str, place: str) -> bool:
    """Whether it looked in a folder whose name is that of the one saved to, or of one above that,
    but for its case and the signs between its words: nobody names a new one so.  Numbers that
    differ are another's."""
    mine, kept = place.rstrip("/"), [PurePosixPath(path) for path in FILE.findall(saved)]
    theirs = [str(folder) for path in kept for folder in (path, *path.parents)]
    plain = [re.findall(r"[^\W\d_]+|\d+", path.lower()) for path in (mine, *theirs)]
    numbers = [[word for word in words if word.isdecimal()] for words in plain]
    return mine not in theirs and any(
        "".join(words) == "".join(plain[0]) and said == numbers[0]
        for words, said in zip(plain[1:], numbers[1:], strict=True)
    )


def sought_in(facts: Facts, fresh: Sequence[Marker]) -> set[str]:
    """The folders that the program says it looks in for a checkpoint."""
    said = [marker.cite.text for marker in fresh]
    above = [text for marker in fresh for text in _above(facts, marker)]
    said += [text for text in above if _LOOKING.search(text)]
    tracked = {found[1] for text in above[-NEAR:] if (found := _TRACKER.search(text))}
    searched = {found[1] for text in said if (found := _SEARCHED.search(text))}
    return tracked | searched | {found[1] for text in said if (found := _IN.search(text))}


def asked_as_before(facts: Facts) -> LogCite | None:
    """The command that asks to go on from what is there, word for word that of the job before, but
    for the jobs' own ids."""
    mine = _command(facts)
    theirs = None if mine is None or facts.parent is None else _command(facts.parent)
    if mine is None or theirs is None:
        return None
    said = {mine.text.strip(), _as_of_parent(facts, mine.text).strip()}
    return mine if theirs.text.strip() in said else None


def _as_of_parent(facts: Facts, text: str) -> str:
    """With the id of the job before this one in the place of its own."""
    own = facts.job.id if facts.job is not None else ""
    parent = facts.parent.job.id if facts.parent is not None and facts.parent.job else ""
    return re.sub(rf"(?<!\d){re.escape(own)}(?!\d)", parent, text) if own and parent else text


def in_its_own_folder(facts: Facts) -> bool:
    """Whether the command, the same but for the jobs' ids, names a folder that bears this one's: a
    job finds there nothing that another saved."""
    command = asked_as_before(facts)
    return command is not None and any(
        _as_of_parent(facts, path) != path for path in FILE.findall(command.text)
    )


def looked_beside(facts: Facts, saved: Marker) -> bool:
    """Whether the program looked in another folder than the one before it saved to, both in the
    one that their common command names, or each in one that its own id is put into."""
    command = asked_as_before(facts)
    if command is not None and any(
        _of_its_own_id(facts, saved.cite.text, place) for place in FILE.findall(command.text)
    ):
        return True
    looked = sought_in(facts, facts.markers_of("fresh")) if command is not None else set()
    within = {place.rstrip("/").rpartition("/")[0] for place in looked}
    if command is None or len(within) != 1:
        return False
    folder = within.pop()
    named = folder in {path.rstrip("/") for path in FILE.findall(command.text)}
    files = [path for path in FILE.findall(saved.cite.text) if path.startswith(folder + "/")]
    found = any(path.startswith(place.rstrip("/") + "/") for path in files for place in looked)
    return named and bool(files) and not found


def _command(facts: Facts) -> LogCite | None:
    """The line in a log's head that shows such a command."""
    track = facts.main_track(facts.last.n)
    lines = facts.lines(track.source, 1, HEAD) if track is not None else ()
    shown = (LogCite(track.source, n, text, track.place) for n, text in enumerate(lines, 1)
             if track and ASKS.search(text))  # fmt: skip
    return next(shown, None)


def due_from_parent(facts: Facts) -> Marker | None:
    """
    The last checkpoint, with its step, of a job before this one that was stopped, where this one
    says where it loads checkpoints from, was queued before the other had ended, and cannot reach
    its plan within its own limit either.

    Jobs of a sweep are queued at once as well, but each is given the time that it needs.
    """
    parent, job = facts.parent, facts.job
    began = [m for m in facts.markers_of("fresh") if m.progress.step in (0, 1)]
    if parent is None or parent.job is None or job is None or not began:
        return None
    queued, ended = job.submitted_at, parent.job.ended_at
    if _mended(parent) or queued is None or ended is None or queued > ended:
        return None
    if len({parent.planned_steps, facts.planned_steps} - {None}) != 1 or not plan_beyond_limit(
        facts
    ):
        return None
    told = (*_above(facts, began[0]), *facts.lines(began[0].cite.source, began[0].cite.line, NEAR))
    if not any(map(_LOADS_FROM.search, told)) or any(map(_BEGINS_FROM.search, told)):
        return None
    saved = saved_steps(parent)
    return max(saved, key=lambda m: m.progress.step or 0, default=None)


def plan_beyond_limit(facts: Facts) -> bool:
    """Whether its plan takes longer than its limit, at the pace of the job before it."""
    parent, job, plan = facts.parent, facts.job, facts.planned_steps
    if parent is None or parent.job is None or job is None or not plan or not job.limit_s:
        return False
    first, last = parent.last.first_step, parent.last.last_step
    began, ended = parent.job.started_at, parent.job.ended_at
    if first is None or last is None or last <= first or began is None or ended is None:
        return False
    return plan * (ended - began).total_seconds() / (last - first) > job.limit_s


def saved_steps(run: Facts) -> list[Marker]:
    """The checkpoints that it saved, with their steps as far as those are told; of a program that
    says no more than that it begins to, those behind which it made further steps."""
    said = [with_step(run, marker) for marker in run.markers_of("checkpoint_saved")]
    return said or [*_begun_and_gone_on(run)]


def _begun_and_gone_on(run: Facts) -> Iterator[Marker]:
    track = run.main_track()
    for begun in run.tagged("save-begun") if track is not None else ():
        named, epochs = AT_STEP.search(begun.cite.text), _AT_EPOCHS.search(begun.cite.text)
        if track is None or begun.cite.source != track.source:
            continue
        step = int(named[1]) if named else int(epochs[1]) * (track.per_epoch or 0) if epochs else 0
        behind = bisect_right(track.lines, begun.cite.line)
        if step and any(made > step for made in track.steps[behind : behind + NEAR]):
            saved = Progress("checkpoint_saved", step=step)
            yield Marker("checkpoint_saved", saved, begun.cite, None, begun.attempt)


def with_step(run: Facts, saved: Marker) -> Marker:
    """A checkpoint with the step that was printed before it, where it does not say which it is."""
    own = [track for track in run.tracks if track.source == saved.cite.source]
    if saved.kind != "checkpoint_saved" or saved.progress.step or not own:
        return saved
    track = max(own, key=len)
    made = [track.steps[i] for i in track.of_attempt(saved.attempt)
            if track.lines[i] < saved.cite.line]  # fmt: skip
    return replace(saved, progress=replace(saved.progress, step=max(made, default=None)))


def continued(facts: Facts) -> list[LogCite]:
    """The line that says that this job goes on from the one before it, where that saved
    something."""
    parent = facts.parent
    if parent is None or parent.job is None or not parent.markers_of("checkpoint_saved"):
        return []
    return goes_on_from(facts, parent.job.id)


def said_to_go_on(facts: Facts) -> tuple[tuple[LogCite, ...], int] | None:
    """The lines in which a script says, before the first step, how far the run before it had come
    and that this one goes on from there; with that step."""
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    end = track.lines[track.of_attempt(facts.last.n)[0]]
    first = max(1, end - LOOKED_BACK, _behind_what_was_made(track, end))
    head = enumerate(facts.lines(track.source, first, end - first), first)
    lines = [(n, text) for n, text in head if not _DOUBTS.search(text)]
    told = [(n, text, found[1]) for n, text in lines if (found := _CAME_TO.search(text))]
    alone = [(n, text, found[1]) for n, text in lines
             if (found := _GOES_ON_AT.search(text) or _IS_TO_GO_ON_AT.search(text)
                 or (None if _ANOTHER.search(text) else _GOES_ON_FROM.search(text)))]  # fmt: skip
    if alone:
        at, text, step = alone[-1]
        return (LogCite(track.source, at, text, track.place),), int(step.replace(",", ""))
    if not told:
        return None
    at, text, step = told[-1]
    says = _GOES_ON_WITH.search(text) and not _ANOTHER.search(text)
    goes_on = (at, text) if says else next(
        ((n, own) for n, own in lines if abs(n - at) <= NEAR and _SAYS_IT_GOES_ON.search(own)),
        None,
    )  # fmt: skip
    if goes_on is None:
        return None
    said = dict.fromkeys(((at, text), goes_on))
    cites = tuple(LogCite(track.source, n, own, track.place) for n, own in said)
    return cites, int(step.replace(",", ""))


def _behind_what_was_made(track: Track, end: int) -> int:
    """The line behind the last step before this one: what stands above is of the try before."""
    at = bisect_right(track.lines, end - 1)
    return track.lines[at - 1] + 1 if at else 1


SECOND = 2
"""An epoch in which no run begins anew, be its first 0 or 1."""


def went_on(facts: Facts, first: Point) -> bool:
    """Whether the first step is at or beyond the one a checkpoint was announced or saved for, or
    that the name of the one it was to go on from ends in; or the first epoch is at or beyond its
    epoch, where one was found."""
    named = [_LAST_NUMBER.search(m.cite.text) for m in facts.markers_of("resume")
             if m.attempt == facts.last.n]  # fmt: skip
    numbers = [int(found[1]) for found in named if found is not None]
    if (
        first.step is not None
        and first.step > UNCOUNTED
        and any(UNCOUNTED <= number <= first.step <= number + UNCOUNTED for number in numbers)
    ):
        return True
    epoch = first.track.epoch[first.index]
    found = not any(m.attempt == facts.last.n for m in facts.markers_of("fresh"))
    named_epochs = [m.progress.epoch or 0.0 for m in facts.markers_of("resume")
                    if m.attempt == facts.last.n]  # fmt: skip
    if found and any(
        (1 if epoch >= SECOND else 2) <= ceil(e) and e <= epoch for e in named_epochs
    ):
        return True
    steps = [
        m.progress.step
        for m in (with_step(facts, one) for one in facts.markers_of("resume", "checkpoint_saved"))
        if m.progress.step and (m.kind == "resume" or m.attempt < facts.last.n)
    ]
    steps += [told[1] for told in (said_to_go_on(facts),) if told is not None]
    return bool(steps) and first.step is not None and first.step >= min(steps) > 1


def goes_on_from(facts: Facts, job: str) -> list[LogCite]:
    """The line in a log's head that says so of a job, which it calls by its id."""
    track = facts.main_track(facts.last.n)
    called = re.compile(
        r"(?i)\b(?:continu|resum|restart)(?:e|es|ed|ing|ation)?\b[^\n]{0,60}"
        rf"(?<![\w./-]){re.escape(job)}(?![\w-])"
    )
    lines = facts.lines(track.source, 1, HEAD) if track is not None else ()
    return [LogCite(track.source, n, text, track.place)
            for n, text in enumerate(lines, 1) if track and called.search(text)][:1]  # fmt: skip


def sibling(saved: str, place: str) -> bool:
    """Whether the folder differs from the one that was saved to by a number alone: of a sweep."""
    scheme = re.sub(r"\d+", "#", place.rstrip("/"))
    whole = re.compile(rf"{re.escape(scheme)}(?![\w.-])")
    return "#" in scheme and whole.search(re.sub(r"\d+", "#", saved)) is not None


def names(saved: Marker, place: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(place)}(?![\w.-])", saved.cite.text) is not None


def _looked_in(facts: Facts, marker: Marker) -> str | None:
    """Where it says it searched, or the folder that the settings before it say it looks in."""
    if told := _NEMO.search(marker.cite.text):
        return told[1].rstrip("/")
    if searched := _SEARCHED.search(marker.cite.text):
        return searched[1].partition("*")[0].rstrip("/")
    named = [found[1] for line in _above(facts, marker) if (found := _LOAD.match(line))]
    return named[-1].rstrip("/") if named else None


def _above(facts: Facts, marker: Marker) -> Sequence[str]:
    first = max(1, marker.cite.line - LOOKED_BACK)
    return facts.lines(marker.cite.source, first, marker.cite.line - first)
