"""
The run ended as planned after next to no training.

Symptom:
    The run completes, and its plan was a handful of optimizer steps.

Mechanism:
    The step or epoch budget was set far too low (a debug value left in, epochs of a tiny split,
    max_steps from another config), so nothing was learnt that could be judged.

Told apart from:
    G1 healthy: benchmark, profile and smoke runs are short on purpose; they get a warning.  Their
    name says so, or an option that limits the run to a part of its data.
    E2 resume-from-scratch: the budget was right but counted from a checkpoint not loaded.

Do:
    Correct max_steps or the number of epochs and resubmit.

References:
    transformers TrainingArguments.max_steps; Megatron-LM --train-iters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import isfinite

from flatline.facts import Facts, Point, Track
from flatline.judging.claims import claim
from flatline.judging.shapes import FEW_STEPS
from flatline.model import Action, Cite, Claim, Cleared, Finding, Judgement, LogCite

CODE = "E3"
NAME = "undertrained"
NEEDS = ("training progress",)
DECIDED_BY = (
    "the number of optimizer steps that were planned, beside the last one made (the program's "
    "settings)"
)
EXPLAINS: dict[str, str] = {}
WARM_UP_POINTS = 8
"""A learning rate that only rose over so many printed values was still in its warm-up."""
ALIKE = 0.1
"""Of the values, so many may be printed as the one before: a judgement."""
CARRIED_OUT = 0.9
"""Of the plan: not every step is printed."""
HEAD_LINES = 2_000
"""Above the first step: settings are printed there."""
_WARM_UP = re.compile(
    r"(?i)(?<![a-z])warm[-_]?up(?:[_ -]?(?:num[_-]?)?(?:steps|iters|iterations|updates))?"
    r"['\"]?(?:\s{0,3}[=:]\s{0,3}|\s\.{2,60}\s|\s\(?)(\d{1,9})(?![\w.%])"
)
"""As settings are printed; a part of the run (0.03), tokens and samples are no steps."""
_ON_PURPOSE = re.compile(r"(?i)bench|profil|smoke|debug|sanity|dry.?run|unit.?test|perf\b")


def judge(facts: Facts) -> Judgement:
    """A plan under ten steps that was carried out; on purpose, as far as its name says, warns."""
    track = facts.main_track(facts.last.n)
    planned = facts.planned_steps
    made = _made(facts, track)
    if made is None:
        return _none_planned(facts)
    ran, cite = made
    if planned is None and track is None and facts.disposition == "completed":
        planned = ran
    if planned is None:
        text = f"{ran} or more steps were made"
        return Cleared(CODE, text, (cite,)) if ran >= FEW_STEPS else None
    if planned >= FEW_STEPS and ran < FEW_STEPS:
        return None
    if planned >= FEW_STEPS and facts.disposition == "completed" and track is not None:
        warming = _still_warming_up(facts, track, planned) or _planned_within(
            facts, track, planned
        )
        if warming is not None:
            return warming
    if planned >= FEW_STEPS:
        return Cleared(CODE, f"{planned} steps were planned and {ran} reached", (cite,))
    if facts.disposition != "completed" or ran < planned - 1:
        return None
    cites: list[Cite] = [cite]
    cites += [m.cite for m in facts.markers if m.progress.planned == planned][:1]
    meant = facts.tagged("short-on-purpose")
    cites += [m.cite for m in meant[:1]]
    on_purpose = _on_purpose(facts)
    return Finding(
        code=CODE,
        summary=f"The run completed after only {planned} planned optimizer "
        f"step{'s' if planned != 1 else ''}",
        attribution="job",
        strength=0.7,
        role="warning" if on_purpose else "cause",
        severity="warning" if on_purpose else "degraded",
        shows=(claim(f"{planned} steps were planned and carried out", *cites),),
        implies=(claim("So few steps train nothing that could be judged.", *cites[:1]),),
        scope="none",
        onset_step=ran,
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Whether so short a run was meant: its purpose is not in the log.",),
        actions=(Action("fix", "Correct max_steps or the number of epochs."),),
        resubmit="fix_first",
    )


def _none_planned(facts: Facts) -> Finding | None:
    """A trainer that announced no step at all, and made none; on purpose warns."""
    plans = [m for m in facts.markers_of("plan")
             if m.attempt == facts.last.n and m.progress.planned is not None]  # fmt: skip
    if not plans or any(m.progress.planned for m in plans) or facts.has_progress:
        return None
    done = [m for m in facts.markers_of("finished") if m.attempt == facts.last.n]
    ended = facts.disposition == "completed" or (done and facts.disposition == "unknown")
    if not ended or any(m.progress.step for m in done):
        return None
    cites = [plans[-1].cite, *(m.cite for m in done[-1:])]
    meant = _on_purpose(facts)
    return Finding(
        code=CODE,
        summary="The run ended after 0 optimizer steps: none was planned",
        attribution="job",
        strength=0.7,
        role="warning" if meant else "cause",
        severity="warning" if meant else "degraded",
        shows=(claim("The trainer announced 0 steps and ended without one", *cites),),
        implies=(claim("Nothing was trained: what was saved is what was loaded.", *cites[:1]),),
        scope="none",
        onset_step=0,
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Whether a count of steps or of epochs was set to 0, or the data gave no"
                       " batch.",),
        actions=(Action("fix", "Set max_steps (-1 leaves it to the epochs) or the number of"
                        " epochs, and see how many batches the data gives."),),
        resubmit="fix_first",
    )  # fmt: skip


def _on_purpose(facts: Facts) -> bool:
    """Whether its name, or an option, says that the run was to be short."""
    name = " ".join(filter(None, [facts.job.name if facts.job else None, *facts.targets]))
    return bool(facts.tagged("short-on-purpose") or _ON_PURPOSE.search(name))


def _made(facts: Facts, track: Track | None) -> tuple[int, Cite] | None:
    """How many steps were made at the least, by the steps that were read and by what the program
    said at its end."""
    done = [m for m in facts.markers_of("finished") if m.attempt == facts.last.n]
    counted = max(done, key=lambda m: m.progress.step or 0, default=None)
    told = (counted.progress.step or 0) if counted is not None else 0
    if track is not None:
        span = track.of_attempt(facts.last.n)
        # Lines of progress that number no step are of different steps all the same.
        seen = max(facts.last_step or 0, len(span), _in_whole_epochs(track, span))
        if seen >= told:
            return seen, facts.point(track, span[-1]).cite
    return (told, counted.cite) if counted is not None and told else None


def _in_whole_epochs(track: Track, span: Sequence[int]) -> int:
    """The steps of the epochs that it came through, of a log that numbers epochs alone."""
    made = {track.epoch[i] for i in span if isfinite(track.epoch[i])}
    counted = any(track.steps[i] >= 0 for i in span)
    return 0 if counted or not made else (track.per_epoch or 0) * (len(made) - 1)


def _planned_within(facts: Facts, track: Track, planned: int) -> Finding | None:
    """A run whose settings say that its warm-up is no shorter than what it was planned for."""
    span = track.of_attempt(facts.last.n)
    last = facts.point(track, span[-1])
    said = _stated(facts, track)
    if not said or last.step is None or any(steps < planned for steps, *_ in said):
        return None
    rates = [track.lr[i] for i in span if track.lr[i] == track.lr[i]]
    if not _only_rose(rates):
        return None  # it heeds another
    steps, line, text = said[0]
    cite = LogCite(track.source, line, text, track.place)
    return replace(
        _within(facts, last, (
            claim(f"Its warm-up is of {steps} steps, and it was planned for {planned}", cite,
                  last.cite),
        )),
        summary=f"The run completed inside its warm-up of {steps} steps: it was planned for"
        f" {planned}",
    )  # fmt: skip


def _only_rose(rates: Sequence[float]) -> bool:
    """Values that are printed with few digits may look alike at times."""
    alike = sum(a == b for a, b in pairwise(rates))
    return alike <= ALIKE * len(rates) and not any(b < a for a, b in pairwise(rates))


def _stated(facts: Facts, track: Track) -> list[tuple[int, int, str]]:
    """The steps of warm-up that settings state, with line and text."""
    first = track.lines[track.of_attempt(facts.last.n)[0]]
    head = facts.lines(track.source, 1, min(HEAD_LINES, first))
    return [(int(found[1]), n, text) for n, text in enumerate(head, 1)
            for found in _WARM_UP.finditer(text)]  # fmt: skip


def _still_warming_up(facts: Facts, track: Track, planned: int) -> Finding | None:
    """A run that ended as planned while its learning rate had only ever risen: by the warm-up that
    is stated; where none is, a schedule that was meant so does the same, and it is a warning."""
    span = [i for i in track.of_attempt(facts.last.n) if track.lr[i] == track.lr[i]]
    rates = [track.lr[i] for i in span]
    if len(rates) < WARM_UP_POINTS or not _only_rose(rates):
        return None
    first, last = facts.point(track, span[0]), facts.point(track, span[-1])
    stated = next((one for one in _stated(facts, track) if one[0] >= planned), None)
    if stated is None and (last.step or 0) < CARRIED_OUT * planned:
        return None  # it is to go on
    cites: list[Cite] = [first.cite, last.cite]
    if stated is not None:
        cites.append(LogCite(track.source, stated[1], stated[2], track.place))
    found = _within(facts, last, (
        claim(f"The learning rate rose from {rates[0]:g} to {rates[-1]:g} and never fell", *cites),
    ))  # fmt: skip
    return found if stated else replace(found, role="warning", severity="warning")


def _within(facts: Facts, last: Point, shows: tuple[Claim, ...]) -> Finding:
    return Finding(
        code=CODE,
        summary="The run completed inside its warm-up: the learning rate rose to the last step",
        fault_class="warm-up",
        attribution="job",
        strength=0.7,
        severity="degraded",
        shows=shows,
        implies=(claim("Training ended before it reached its working rate.", last.cite),),
        scope="none",
        onset_step=last.step,
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Whether so long a warm-up was meant: the schedule is not in the log.",),
        actions=(Action("fix", "Shorten the warm-up or plan more steps."),),
        resubmit="fix_first",
    )
