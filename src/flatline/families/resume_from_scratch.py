"""
The checkpoint the run was to go on from was not loaded.

Symptom:
    A run that was asked to resume begins at step 0 with the loss of a fresh model, without any
    error; or it crashes while loading: sizes do not match, keys are missing, the file is corrupt
    or empty.

Mechanism:
    A wrong path or an empty folder is taken for "no checkpoint yet"; a changed model or world
    size no longer fits the file; a save that was cut short left a broken file behind.

Told apart from:
    A1 startup-crash (asset): the base model or tokenizer cannot be loaded, no resume was asked.
    E1 loss-divergence: the loss starts where it should and then rises.

Do:
    Correct the checkpoint path (or fall back to the last complete one) and resubmit; make a
    missing checkpoint an error when a resume was asked for.

References:
    torch.load and load_state_dict error texts; Megatron-LM --load, --exit-on-missing-checkpoint;
    transformers Trainer resume_from_checkpoint.
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import isfinite

from flatline.facts import LOG, Facts, Marker, Point
from flatline.judging.begun_alike import Begun, begun_alike, left_unfinished
from flatline.judging.by_epochs import left_behind
from flatline.judging.claims import claim
from flatline.judging.far_before import far_before, far_before_it
from flatline.judging.fresh_start import (
    LOOKED_BACK,
    asked_as_before,
    begins_where_it_saves,
    continued,
    due_from_parent,
    handed_on,
    in_its_own_folder,
    left_by_parent,
    looked_beside,
    said_to_go_on,
    saved_steps,
    went_on,
    with_step,
)
from flatline.judging.leads import fix, lead, raised, shows
from flatline.judging.newly_asked import Told, newly_asked
from flatline.judging.recounted import recounted
from flatline.judging.rounds import in_rounds
from flatline.judging.shown_before import Shown, shown_before
from flatline.judging.tracked_before import UNSAVED, tracked_before
from flatline.judging.uncounted import uncounted
from flatline.judging.wrappers import is_interrupt
from flatline.logs.places import PREVIOUS
from flatline.model import Action, Cite, Cleared, Finding, Judgement

CODE = "E2"
NAME = "resume-from-scratch"
NEEDS = ("training progress", "job log")
DECIDED_BY = (
    "the checkpoint it looked for and the step it began at (the program's lines on loading)"
)
EXPLAINS = {
    "C2": "the rank that failed to load left the collective its peers were waiting in",
    "C1": "a rank that failed to load never joins the others",
    "A2": "the launcher ends the other ranks once one has failed",
    "F3": "ranks left waiting for one that failed to load hold the allocation to the wall",
}
_WANTED = re.compile(r"resume|from_checkpoint")
_NAMED = re.compile(
    r"(?:resume|from_checkpoint|load)[\w-]*[= ]['\"]?(?!auto|latest|last|none|null|true|false)"
    r"[^\s'\"]*(?:/|(?:step|iter|epoch|ckpt|checkpoint)[-_]?\d)"
)
"""A checkpoint by its name; `--resume auto` in the line of a first try asks for none."""
_NUMBERED = re.compile(
    r"(?:resume|from_checkpoint)[\w-]*[= ]\S{0,400}?(?:step|iter|epoch|ckpt|checkpoint)[-_=]?"
    r"0{0,8}(\d{1,9})"
)
"""The step or epoch of a checkpoint that a command names."""
_SETTING = re.compile(
    r"(?:resume|from_checkpoint)\w*['\"]?\s{0,3}[=:]\s{0,3}['\"]?"
    r"(?!auto|latest|last|none|null|true|false)[^\s'\",]{0,400}(?:/|(?:step|iter|epoch|ckpt|checkpoint)"
    r"[-_]?\d)|^\s{0,4}load \.{5,80} /",
    re.IGNORECASE,
)
"""A checkpoint by its name, as settings are printed (argparse, YAML, Megatron)."""
_A_PLACE = re.compile(r"(?i)\b(?:in|under|searched|at(?! (?:epoch|step))) ['\"]?[\w.~/]")
"""A line that says where it looked may have looked in the wrong one."""
BESIDE = 0.85
"""The same where one command asks both to go on, and they kept and sought in two folders of it."""
CHAINED = 0.72
"""How sure a shared name and plan make: whoever changed something may begin anew on purpose."""
LISTED = 0.79
"""A listing bears no date: the run may have gone on where its log was cut."""
UNNAMED = "Why the checkpoints that are there were not found, and whether they are whole."
WHOSE_LOG = (
    "Whether the log is of the run that this one was to go on from: a shell shows it, no more."
)
STOPPED = "The try before this one was stopped behind a checkpoint, and this one began anew"
MEANT = "Whether a new beginning was meant: somebody stopped the try before it by hand."
ORDER = "Whether the other log is of the run before this one: their names alone say so."
FRESH_SHARE = 0.5
"""A first step below half of the last saved one is a new beginning: a sound resume goes on."""


def judge(facts: Facts) -> Judgement:
    """A crash while loading, or a resume that was asked for and did not happen."""
    found = lead(facts, CODE)
    if found is not None:
        first = found.first
        return Finding(
            code=CODE,
            summary=f"The checkpoint could not be loaded: {raised(found)}",
            fault_class=first.fault_class,
            attribution="job",
            strength=first.strength,
            shows=(shows(found),),
            implies=(claim(first.what, first.cite),),
            culprits=found.culprits,
            scope=found.scope,
            onset=first.cite.at,
            order=(first.cite.source, first.cite.line),
            attempt=first.attempt,
            cannot_decide=("Whether an older checkpoint is whole: it was not looked at.",),
            actions=(fix(found, "Point the run at a whole checkpoint that fits the model."),),
            resubmit="fix_first",
        )
    return _silent(facts)


def _silent(facts: Facts) -> Judgement:
    track = facts.main_track(facts.last.n)
    loaded = [m for m in facts.markers_of("checkpoint_loaded") if m.attempt == facts.last.n]
    if loaded and (lost := uncounted(facts, loaded[-1], CODE)) is not None:
        return lost
    if track is None:
        return None
    span = track.of_attempt(facts.last.n)
    first = facts.point(track, next((i for i in span if track.steps[i] >= 0), span[0]))
    if loaded:
        return Cleared(CODE, "a checkpoint was loaded", (loaded[0].cite, first.cite))
    fresh = [m for m in facts.markers_of("fresh") if m.attempt == facts.last.n]
    if (kept := left_behind(facts, first)) is not None:
        return _restarted(facts, first, [kept.cite], fresh)
    left = _unfinished(facts, looked=bool(fresh))
    asked = _asked(facts, left)
    goes_on = went_on(facts, first)
    anew = fresh or _from_the_start(facts, first, left) or _before_its_parent(facts, first)
    if asked and not goes_on and anew:
        found = _restarted(facts, first, asked, fresh)
        if _named_alone(facts, first, asked):
            found = replace(found, strength=CHAINED, most=CHAINED,
                            cannot_decide=(ORDER, *found.cannot_decide))  # fmt: skip
        if _stopped_by_hand(facts, asked, fresh):
            found = replace(found, strength=CHAINED, most=CHAINED, summary=STOPPED,
                            cannot_decide=(MEANT, *found.cannot_decide))  # fmt: skip
        return _by_habit(found) if _said_at_nought(facts, asked) else found
    counted = recounted(facts, first) if asked and not goes_on else None
    if counted is not None:
        return _recounted(facts, first, *counted)
    if asked and goes_on:
        return Cleared(CODE, f"training went on at step {first.step}", (asked[-1], first.cite))
    return _not_asked(facts, first, asked, fresh, left)


def _recounted(facts: Facts, first: Point, resume: Marker, far: Point) -> Finding:
    """The checkpoint was named, and the count of steps began anew with its schedule."""
    found = _restarted(facts, first, [resume.cite], [])
    rates = (f"{point.track.lr[point.index]:g}" for point in (far, first))
    text = "At step {}, before, the learning rate was {}; now it is {}".format(far.step, *rates)
    return replace(
        found,
        summary="The run was to go on from a checkpoint; its count of steps and its learning rate"
        " began anew",
        strength=CHAINED,
        most=CHAINED,
        shows=(*found.shows, claim(text, far.cite, first.cite)),
        implies=(claim("The schedule begins anew, on weights that were trained if those were"
                       " loaded.", first.cite),),
        cannot_decide=("Whether a new schedule was meant: no settings were read.",),
        actions=(Action("fix", "Restore the step with the weights (the program's flag or the state"
                        " it saves), and resubmit from the checkpoint."),),
    )  # fmt: skip


def _said_at_nought(facts: Facts, asked: list[Cite]) -> bool:
    """Whether all that asks for a resume is the program's word that it goes on at step 0: one
    that looks for a checkpoint each time it begins says so at its first start as well."""
    resumes = [m for m in facts.markers_of("resume") if m.attempt == facts.last.n]
    always = {m.cite for m in facts.tagged("always-asked")}.issuperset(asked)
    return always or (len(asked) == len(resumes) and all(m.progress.step == 0 for m in resumes))


def _named_alone(facts: Facts, first: Point, asked: list[Cite]) -> bool:
    """Whether all that asks for a resume is what another log tells that was saved, and no date
    but the logs' names say which came first."""
    track = first.track
    saved = [m.cite for m in facts.markers_of("checkpoint_saved") if m.cite in asked]
    beside = all(cite.source != track.source and cite.at is None for cite in saved)
    return len(saved) == len(asked) and beside and not any(isfinite(at) for at in track.at)


def _stopped_by_hand(facts: Facts, asked: list[Cite], fresh: list[Marker]) -> bool:
    """Whether somebody's Ctrl-C ended the try that saved, and nothing but what it saved asks for
    more: neither did this one look for a checkpoint nor did a scheduler begin it again."""
    if any(m.progress.step is None for m in fresh) or (facts.job and facts.job.restarts):
        return False
    saved = {m.cite for m in saved_steps(facts)}
    before = [crash for crash in facts.crashes if crash.attempt == facts.last.n - 1]
    return saved.issuperset(asked) and any(is_interrupt(crash) for crash in before)


def _by_habit(found: Finding) -> Finding:
    why = "Whether an earlier run left one: a program that always resumes says so of none too."
    return replace(found, strength=CHAINED, most=CHAINED,
                   cannot_decide=(why, *found.cannot_decide))  # fmt: skip


def _not_asked(
    facts: Facts, first: Point, asked: list[Cite], fresh: list[Marker], left: frozenset[int]
) -> Judgement:
    """Where no resume was asked for, or nothing tells whether it was heeded."""
    met = [m for m in facts.tagged("target-reached") if m.attempt == facts.last.n]
    if met:
        text = "whatever it began from, the program measured that its target quality was reached"
        return Cleared(CODE, text, (met[-1].cite, first.cite))
    left_behind = left_by_parent(facts) or due_from_parent(facts)
    if left_behind is not None and _anew(first, left_behind):
        return _chained(facts, first, left_behind, fresh)
    begun = begun_alike(facts, first)
    if begun is not None:
        return _as_before(_chained(facts, first, begun.saved, fresh), first, begun)
    told = newly_asked(facts, first)
    if told is not None:
        return _told(_chained(facts, first, told.begun.saved, fresh), first, told)
    shown = shown_before(facts, first, fresh)
    if shown is not None:
        return _shown(facts, first, shown, fresh)
    looked = [m for m in fresh if m.progress.step is None]
    far = None if asked else far_before(facts, first, left, fresh)
    far = far or (None if asked else far_before_it(facts, first, fresh))
    if far is not None:
        return _looked_in_vain(facts, first, far, fresh)
    tracked = tracked_before(facts, first) if looked and not asked else None
    if tracked is not None:
        return replace(_restarted(facts, first, [tracked], fresh), strength=CHAINED, most=CHAINED,
                       cannot_decide=(UNSAVED,))  # fmt: skip
    if not asked and begins_where_it_saves(facts):
        text = "it looked where it saves itself, and nothing that was read tells of an earlier run"
        return Cleared(CODE, text, (looked[0].cite, first.cite))
    if asked or (looked and _one_was_due(facts, looked)):
        return None  # a checkpoint was looked for: whether one should have been there is open
    return Cleared(CODE, "nothing that was read asked for a resume", (first.cite,))


def _asked(facts: Facts, left: frozenset[int]) -> list[Cite]:
    """What says that the run was to go on from a checkpoint."""
    said: list[Cite] = [m.cite for m in facts.markers_of("resume") if m.attempt == facts.last.n]
    earlier = [m for m in _saved(facts, left) if (m.progress.step or 0) > 0]
    said += [m.cite for m in earlier[-1:]]
    said += [m.cite for m in facts.tagged("resume-asked") if m.attempt == facts.last.n][:1]
    habit = _first_try(facts) and not left_unfinished(facts)
    asks = () if habit else facts.tagged("always-asked")
    said += [m.cite for m in asks if m.attempt == facts.last.n]
    said += continued(facts)
    said += (said_to_go_on(facts) or ((), 0))[0]
    job = facts.job
    line = (job.submit_line or "").lower() if job else ""
    wanted = _NAMED.search(line) or (_WANTED.search(line) and not _first_try(facts))
    if job is not None and wanted:
        said.append(job.cite)
    return said


def _unfinished(facts: Facts, *, looked: bool) -> frozenset[int]:
    """
    Earlier tries that left something to go on with.

    A seed, a fold or a stage that was whole is followed by another run, which begins at its own
    beginning; one that was whole for less than is planned now, where this try `looked` for a
    checkpoint, is the parent of this one, unless it looked for one itself: such a program always
    does.  A job on record as restarted is no other run.
    """
    if in_rounds(facts):
        return frozenset()
    planned = facts.planned_steps or 0
    always = {m.attempt for m in facts.markers_of("fresh")}
    again = facts.last.n - ((facts.job.restarts if facts.job else None) or 0)
    return frozenset(
        a.n
        for a in facts.attempts[:-1]
        if a.disposition != "completed"
        or (looked and (a.n not in always or a.n >= again) and (a.last_step or planned) < planned)
    )


def _from_the_start(facts: Facts, first: Point, left: frozenset[int]) -> bool:
    saved = [m.progress.step for m in _saved(facts, left) if m.progress.step]
    if saved and first.step is not None:
        return first.step < FRESH_SHARE * max(saved)
    return _counts_anew(facts, first, left)


def _saved(facts: Facts, left: frozenset[int]) -> list[Marker]:
    """The checkpoints that these tries say they saved, with the steps they are of; of a container
    that was begun again those as well that they began to save before they went on."""
    begun = any(PREVIOUS.search(read.source) for read in facts.log_files(LOG))
    saved = saved_steps(facts) if begun else [
        with_step(facts, m) for m in facts.markers_of("checkpoint_saved")]  # fmt: skip
    return [m for m in saved if m.attempt in left]


def _counts_anew(facts: Facts, first: Point, left: frozenset[int]) -> bool:
    """Whether the run, whose command names a checkpoint, begins far below what the same line of
    its log had come to before, in steps or in epochs."""
    asked = [m for m in facts.tagged("resume-asked") if m.attempt == facts.last.n]
    if not asked:
        return False
    track, at = first.track, first.index
    command = facts.lines(asked[0].cite.source, asked[0].cite.line, 1)
    named = [int(n) for text in command for n in _NUMBERED.findall(text)]
    if any(0 < n <= max(track.steps[at], track.epoch[at]) + 1 for n in named):
        return False  # it went on at the checkpoint it was given
    before = [(t, i) for t in facts.tracks if t.format == track.format
              for n in left for i in t.of_attempt(n)]  # fmt: skip
    epochs = max((t.epoch[i] for t, i in before if isfinite(t.epoch[i])), default=0.0)
    if epochs > 1 and isfinite(track.epoch[at]):  # steps may be counted within an epoch
        return bool(track.epoch[at] <= 1 and track.epoch[at] < FRESH_SHARE * epochs)
    steps = max((t.steps[i] for t, i in before), default=-1)
    return steps > 0 and 0 <= track.steps[at] < FRESH_SHARE * steps


def _looked_in_vain(facts: Facts, first: Point, far: Point, fresh: list[Marker]) -> Finding:
    """It looks for its checkpoint after one that had gone on from one, begun to save one, or come
    so far that there is one."""
    found = _restarted(facts, first, [far.cite], fresh)
    epoch = far.track.epoch[far.index]
    came_to = f"epoch {epoch:g}" if epoch >= 1 else f"step {far.step}"
    which = "try" if far.track in facts.tracks else "job"
    return replace(
        found,
        summary=f"Training had come to {came_to}; begun again, it found no checkpoint and"
        " silently began anew",
        strength=CHAINED,
        most=CHAINED,
        shows=(claim(f"The {which} before this one had come to {came_to}", far.cite),
               *found.shows[1:]),
        cannot_decide=("Whether a new beginning was meant: nothing that was read says so.",
                       *found.cannot_decide),
    )  # fmt: skip


def _shown(facts: Facts, first: Point, shown: Shown, fresh: list[Marker]) -> Finding:
    """A checkpoint, or what an earlier run had come to, as a shell shows it below this one."""
    found = _restarted(facts, first, [], fresh)
    beside = (f"checkpoints of up to step {shown.step} are there" if shown.listed
              else f"an earlier run had come to step {shown.step}")  # fmt: skip
    text = ("The folder in which it looked for a checkpoint holds those of up to step"
            if shown.listed else "The log of an earlier run is shown to come to step")  # fmt: skip
    return replace(
        found,
        summary=f"The run found no checkpoint and silently began anew, though {beside}",
        strength=BESIDE if shown.listed else CHAINED,
        most=LISTED if shown.listed else CHAINED,
        shows=(claim(f"{text} {shown.step}", *shown.cites), *found.shows[1:]),
        cannot_decide=(UNNAMED,) if shown.listed else (WHOSE_LOG, *found.cannot_decide),
        actions=(Action("fix", "Stop it; make what names the latest checkpoint (a tracker file, a"
                        " link) name one that is whole, and resubmit."),
                 ) if shown.listed else found.actions,
    )  # fmt: skip


def _first_try(facts: Facts) -> bool:
    """Whether the scheduler's record shows a job that follows no other."""
    job = facts.job
    return job is not None and not job.dependency and not job.restarts and len(facts.jobs) == 1


def _one_was_due(facts: Facts, looked: list[Marker]) -> bool:
    """Whether the checkpoint that was not there, or its place, was named, or may have been left by
    an earlier run: many programs look whether there is one each time they begin."""
    if any(_set(facts, marker) for marker in looked):
        return True
    if any(_A_PLACE.search(marker.cite.text) for marker in looked):
        return not _first_try(facts)
    job = facts.job
    follows = job is not None and bool(job.dependency or job.restarts)
    return follows or len(facts.jobs) > 1 or facts.last.n > 0


def _set(facts: Facts, marker: Marker) -> bool:
    """Whether the settings printed before it name a checkpoint."""
    first = max(1, marker.cite.line - LOOKED_BACK)
    lines = facts.lines(marker.cite.source, first, marker.cite.line - first)
    return any(_SETTING.search(line) for line in lines)


def _before_its_parent(facts: Facts, first: Point) -> bool:
    """Whether it begins far before the step that the job which it goes on from had come to."""
    reached = facts.parent.last_step if facts.parent is not None and continued(facts) else None
    return reached is not None and first.step is not None and first.step < FRESH_SHARE * reached


def _anew(first: Point, saved: Marker) -> bool:
    return first.step is not None and first.step < FRESH_SHARE * (saved.progress.step or 0)


def _chained(facts: Facts, first: Point, saved: Marker, fresh: list[Marker]) -> Finding:
    """The job before this one, of the same name, saved a checkpoint and was not done."""
    parent = facts.parent.job if facts.parent is not None else None
    command, beside = asked_as_before(facts), looked_beside(facts, saved)
    asked: list[Cite] = [*([parent.cite] if parent else []), saved.cite]
    asked += handed_on(facts.parent) + ([command] if command is not None and beside else [])
    where = ("its own folder, which bears its id" if in_its_own_folder(facts)
             else "another folder of the same output")  # fmt: skip
    found = _restarted(facts, first, asked, fresh)
    called = f"Job {parent.id}, of the same name," if parent is not None else "The job before it"
    begun = any(m.cite == saved.cite for m in (facts.parent or facts).tagged("save-begun"))
    kept = "began to save step {}, went on" if begun else "saved step {}"
    return replace(
        found,
        summary="The job before this one left a checkpoint, and this one silently began anew",
        strength=BESIDE if beside else CHAINED,
        most=1.0 if beside else CHAINED,
        shows=(claim(f"{called} {kept.format(saved.progress.step)} and was not done"
                     + (f", and this one's command, the same, asks to go on; it looked in {where}"
                        if beside else ""), *asked),
               *found.shows[1:]),
        cannot_decide=() if beside else (
            "Whether a new beginning was meant: the jobs share a name and, as far as is known, a"
            " plan; nothing that was read says more.", *found.cannot_decide),
    )  # fmt: skip


def _as_before(found: Finding, first: Point, begun: Begun) -> Finding:
    """The loss tells of a new model where no line does."""
    (was, at_first), (came_to, at_last) = begun.first, begun.last
    text = f"The loss began at {begun.loss:.4g}; in the log of the job before it, it goes from"
    told = claim(f"{text} {was:.4g} to {came_to:.4g}", first.cite, at_first, at_last)
    return replace(found, shows=(*found.shows, told))


def _told(found: Finding, first: Point, told: Told) -> Finding:
    """The settings of this job ask for a resume, as those of the one before it did not."""
    where = f"; it was given {told.place}, a name of that one's folder spelt otherwise"
    asks = claim("This job asks for a resume and the one before it did not"
                 + (where if told.place else ""), told.asks, told.begun.saved.cite)  # fmt: skip
    found = _as_before(found, first, told.begun)
    found = replace(found, shows=(asks, *found.shows),
                    summary="The run was told to resume what the job before it saved, and silently"
                    " began anew")  # fmt: skip
    return replace(found, strength=BESIDE, most=1.0, cannot_decide=()) if told.sure else found


def _restarted(facts: Facts, first: Point, asked: list[Cite], fresh: list[Marker]) -> Finding:
    cites = [m.cite for m in fresh[:2]] or [first.cite]
    numbered = first.step is not None or not isfinite(first.track.epoch[first.index])
    saved: set[Cite] = {m.cite for m in saved_steps(facts)}
    where = f"step {first.step}" if numbered else f"epoch {first.track.epoch[first.index]:g}"
    return Finding(
        code=CODE,
        summary="The run was to go on from a checkpoint and silently began anew",
        attribution="job",
        strength=0.88 if fresh else 0.75,
        severity="degraded",
        shows=(
            claim("An earlier try had saved a checkpoint" if {*asked} and {*asked} <= saved
                  else "A resume was asked for", *(asked[:3] or cites)),
            claim(f"Training began at {where}", *cites, first.cite),
        ),
        implies=(claim("The work of the earlier run is not in this model.", first.cite),),
        scope="all",
        onset=first.cite.at,
        onset_step=first.step,
        order=(cites[0].source, cites[0].line),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Why no checkpoint was found: the path was not looked at.",),
        actions=(
            Action("fix", "Correct the checkpoint path and resubmit; make a missing checkpoint an"
                   " error when a resume is asked for."),
        ),
        resubmit="fix_first",
    )  # fmt: skip
