"""
Failures told apart: what each traceback and each root line is, in its phase of the run.

An exception is classed by the strongest root signature that stands in its traceback; without one,
by its type and by the library its innermost frames belong to.  Wrappers and echoes are left out:
they prove that something failed, never what.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from flatline.facts import Facts
from flatline.judging.begun import (
    at_nought,
    beside_the_loop,
    drawn_at_the_end,
    had_saved,
    in_a_loop,
    keeps_a_model,
    logged,
    names_its_step,
    validates,
    within_a_bar,
    within_the_loop,
)
from flatline.judging.by_object import UNEXPECTED
from flatline.judging.bygone import of_another_time, recovered
from flatline.judging.claims import same_rank
from flatline.judging.classing import (
    KEYS,
    communicates,
    of_the_first_step,
    resolve,
    signed,
    unsigned,
    with_frames,
)
from flatline.judging.described import above_its_log
from flatline.judging.feeding import feeds
from flatline.judging.handles import not_started
from flatline.judging.headless import headless
from flatline.judging.julia import julia_class
from flatline.judging.last_words import last_words
from flatline.judging.loading import (
    of_a_model,
    of_its_own,
    published,
)
from flatline.judging.lua import lua_class
from flatline.judging.said_above import said_above
from flatline.judging.sole_failure import of_the_sole_failure
from flatline.judging.startup_class import (
    DEFAULT,
    class_of_line,
    of_a_tracker,
)
from flatline.judging.tripping import tripped_over
from flatline.judging.uncaught import raised_by, uncaught
from flatline.judging.wrappers import clears_away, is_interrupt, is_wrapper, of_a_dead_parent
from flatline.model import Attribution, Crash, LogCite, Match, Place, Signature

WEAK_ROOT = 0.5
"""A root line weaker than this is outweighed by an echo in the same traceback."""
IN_A_THREAD, OF_A_FEEDER = 0.25, 0.5
"""The process goes on: too little for a verdict, though it may wait for what the thread was to
do.  Where that was the data, and nothing came after it, it does."""
NAMES_NO_CALL, SAID_BELOW = "names-no-call", 120
"""Lines: what NCCL warned of last, the traceback that Hydra shortens, and what TensorFlow met in a
graph, below the place where it was defined, are printed below."""
GOES_ON, SAID_ABOVE, ONLY_HINT = "script-goes-on", "said-above", "only-hint"
RAISED_BELOW, BELOW = "raised-below", 3
"""A line that announces the traceback right under it; lines below one that may say its class."""
LOOP_DOUBT = 0.8
"""A step may have been made where the frames are a loop's and the log prints no progress."""
UNNAMED, UNSAID = 0.75, ("corrupt", "size-mismatch", "missing-keys")
"""A file that cannot be read or does not fit, of which nothing says that the run wrote it."""
AFTER_ALL = 0.5
"""A traceback in an error stream of its own, of a run whose output shows its end: it may have been
caught at any time before."""

_CARRIES = re.compile(r"\b(?:ProcessRaisedException|RayTaskError(?:\(([\w.]{1,200})\))?)$")
_CAUGHT = re.compile(
    r"Caught (\w{1,100}) in (?:DataLoader worker process|replica|pin memory thread) "
)
"""How torch and Ray hand on what another process or thread raised, its traceback in the message
(torch/_utils.py `ExceptionWrapper`, ray/exceptions.py `RayTaskError`)."""
_SPAWNED = re.compile(r"/multiprocessing/spawn\.py$")

_CHECKPOINT = re.compile(r"\b(?:checkpoint|ckpt)\w{0,12}\[['\"]")
"""What is read of a checkpoint may be read to go on from it (E2)."""
_LOOKED = re.compile(r"(?:FileNotFound|Key)Error$")
_COMPARED = 60


@dataclass(frozen=True, slots=True)
class Failure:
    """
    One line or traceback that could be the cause, classed for its phase.

    `started` is whether a training step had been seen, None where that cannot be told; `fatal`
    is False where the attempt went on or ended well after it.
    """

    family: str
    fault_class: str | None
    attribution: Attribution
    strength: float
    cite: LogCite
    place: Place
    what: str
    started: bool | None
    fatal: bool
    signature: Signature | None = None
    crash: Crash | None = None
    match: Match | None = None
    attempt: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """Failures of the same kind share it, whichever rank they are on."""
        if self.signature is not None:
            return self.family, self.signature.id
        return self.family, self.crash.exception if self.crash else self.what


_LIBRARYS_CLASS = re.compile(
    r"Error in call to target '(?:pytorch_lightning|lightning|torch\w*|transformers|datasets|timm"
    r"|accelerate|monai|wandb|diffusers|peft|deepspeed)\."
)
"""What Hydra was to build: a library's class takes other arguments in another version."""
_ON_THE_CPU = "failed call to cuInit: "
_STARTS_PROGRAMS = re.compile(
    r"(?:^|[\s/])(?:torchrun|python[\d.]*|srun|mpirun|mpiexec(?:\.hydra)?|aprun|jsrun|ibrun|flux"
    r"|deepspeed|accelerate|horovodrun|colossalai|composer|lightning|axolotl|llamafactory-cli|ray"
    r"|xtuner|swift|litgpt|tune|nemo\w*|uv|poetry|julia|Rscript|matlab|\w*train[\w.-]*"
    r"|\.\.?/[\w./-]+): (?:command )?not found"
)
"""What starts the program that a script is for: what follows is done without it."""
_CONVENIENT = re.compile(
    r": (?:(?:module|ml|conda|mamba|micromamba|nvidia-smi|rocm-smi|amd-smi|npu-smi|nvcc|scontrol"
    r"|squeue|sinfo|sacct|hostname|lscpu|lspci|free|git|tput|figlet|bc|jq|nvtop|htop|tree|ibstat"
    r"|lsb_release|mail|sendmail|notify-send|SBATCH|[A-Z][A-Z0-9_]{3,60}_[A-Z0-9_]{1,20}):"
    r" (?:command )?not found|command not found: (?:module|ml|conda|nvidia-smi|rocm-smi|git)\b)"
)
"""Commands that show or load something, a setting without its `export`, a directive without #."""
FAR = 2
"""Frames of a program that began, more than those of one that could not be read."""


def failures(facts: Facts) -> tuple[Failure, ...]:
    """Every root candidate, in the order of the logs."""
    return facts.memo("failures", _failures)


def of_family(facts: Facts, code: str, *, fatal: bool = True) -> tuple[Failure, ...]:
    return tuple(f for f in failures(facts) if f.family == code and f.fatal is fatal)


def _failures(facts: Facts) -> tuple[Failure, ...]:
    found: list[Failure] = []
    inside: set[int] = set()
    for last in facts.crashes:
        inside.update(map(id, crash_matches(facts, last)))
        crash = tripped_over(facts, last)
        block = crash_matches(facts, crash)
        left_over = of_a_dead_parent(crash) or clears_away(crash)
        failure = None if left_over else _from_crash(facts, crash, block)
        if failure is not None:
            found.append(failure)
    bare = [_from_line(facts, m) for m in facts.of_role("root") if id(m) not in inside]
    ends = _ends(found) if any(f.family == "E2" for f in bare) else {}
    found += [replace(f, fatal=f.fatal and not _raised_later(f, ends)) for f in bare]
    told = [f for f in found if f.crash is None or f.crash.complete or f.signature is not None]
    # a traceback cut off before its exception says least of all
    left = [f for f in told or found if not (_restates(facts, f, found) or _went_on(f, found))]
    left = _without_hints(facts, left)
    if any(f.fatal for f in left):
        return tuple(left)
    if (words := last_words(facts)) is not None:
        return (*left, _from_line(facts, words))
    cut = headless(facts)
    failure = None if cut is None else _from_crash(facts, cut, [])
    return tuple(left) if failure is None else (*left, failure)


def _without_hints(facts: Facts, found: list[Failure]) -> list[Failure]:
    """Without lines that tell only where nothing else does how the run ended."""
    hints = [f for f in found if f.signature is not None and ONLY_HINT in f.signature.tags]
    if not hints:
        return found
    others = [f for f in found if f not in hints]
    told = facts.disposition not in ("failed", "unknown") or any(f.fatal for f in others)
    told = told or any(event.signal for event in facts.exits)
    return others if told or any("timeout" in m.signature.tags for m in facts.matches) else found


def _restates(facts: Facts, vague: Failure, found: Iterable[Failure]) -> bool:
    """Whether an exception that says only that some call failed stands beside the line that names
    the call: NCCL warns before the library above it raises."""
    known = vague.signature
    if known is None and not communicates(vague.crash):
        return False
    if known is not None and NAMES_NO_CALL not in known.tags:
        return False
    return any(
        f.strength >= WEAK_ROOT
        and f.attempt == vague.attempt
        and f.fatal
        and (f.crash is None or f.signature is not None or _announced(vague, f.crash))
        and not (f.signature is not None and NAMES_NO_CALL in f.signature.tags)
        and f.signature is not known
        and (facts.after(f.cite, vague.cite) is not True or _just_below(f.cite, vague.cite))
        for f in found
    )


def _announced(line: Failure, crash: Crash) -> bool:
    """Whether a traceback, whole and with frames, is the one that the line says follows."""
    known = line.signature is not None and RAISED_BELOW in line.signature.tags
    below = crash.head.line - line.cite.line if crash.head.source == line.cite.source else 0
    return known and 0 < below <= BELOW and crash.complete and bool(crash.frames)


def _went_on(missed: Failure, found: Iterable[Failure]) -> bool:
    """Whether a script went on after a command that it missed, to something that kept it from
    starting and says more, or to the death of what it ran: a shell does, and `module` or `conda`
    may not have been needed.  TensorFlow and JAX go on without a GPU, to nothing but a kill."""
    known = missed.signature
    if known is None:
        return False
    on_the_cpu = _ON_THE_CPU in missed.cite.text
    if not on_the_cpu and GOES_ON not in known.tags:
        return False
    further = {"A2"} if on_the_cpu else {"A1", "A2", "F4"}
    if _STARTS_PROGRAMS.search(missed.cite.text) is not None:
        return False
    idle = not on_the_cpu and _CONVENIENT.search(missed.cite.text) is not None
    return any(
        (f.family in further or (idle and _came_far(f)))
        and f.attempt == missed.attempt
        and f.cite.source == missed.cite.source
        and f.cite.line > missed.cite.line
        and (f.strength > missed.strength or _came_far(f) or on_the_cpu)
        and f.fatal
        for f in found
    )


def _came_far(failure: Failure) -> bool:
    crash = failure.crash
    return crash is not None and crash.complete and len(crash.frames) >= FAR


def _just_below(line: LogCite, exception: LogCite) -> bool:
    return line.source == exception.source and 0 < line.line - exception.line <= SAID_BELOW


def crash_matches(facts: Facts, crash: Crash) -> tuple[Match, ...]:
    """Signature matches that stand in a traceback of the same stream."""
    lines = facts.at_line(crash.cite.source, crash.head.line, crash.end_line)
    return tuple(m for m in lines if _same_stream(m.cite.place, crash.cite.place))


def _same_stream(a: Place, b: Place) -> bool:
    return a == b or not a or not b or same_rank(a, b)


def started(facts: Facts, cite: LogCite, attempt: int) -> bool | None:
    """
    Whether a training step was seen before this line, in its attempt.

    Where the order is unknown (an error stream in a file of its own, without times) and steps
    were made, they came first: a rank that fails in set-up keeps all of them from stepping.
    """
    before = facts.steps_before(cite, attempt)
    if before is None:
        return any(track.of_attempt(attempt) for track in facts.tracks) or None
    return before > 0


def survived(facts: Facts, cite: LogCite, attempt: int) -> bool:
    """Whether the attempt is known to have gone on, or to have ended well, after this line."""
    if attempt == facts.last.n and facts.disposition == "completed":
        return True
    return facts.went_on(cite, attempt)


def _from_line(facts: Facts, match: Match) -> Failure:
    begun = started(facts, match.cite, match.attempt)
    family, fault_class = resolve(match.signature, begun)
    family, fault_class = not_started(facts, match) or (family, fault_class)
    if family == "A1" and fault_class is None:
        fault_class = lua_class(facts, match) or julia_class(match) or _class_beside(facts, match)
    if (
        family == "E2"
        and fault_class not in KEYS
        and any(of_a_model(crash) for crash in _just_under(facts, match.cite))
    ):
        family, fault_class = "A1", "asset"
    if family == "A3" and not begun and at_nought(facts, match.cite):
        family, fault_class = "A1", of_the_first_step(match.signature, fault_class)
    return Failure(
        family=family,
        fault_class=fault_class,
        attribution=match.signature.attribution,
        strength=match.signature.strength * _phase_doubt(facts, family, fault_class),
        cite=match.cite,
        place=match.cite.place,
        what=match.signature.meaning,
        started=begun,
        fatal=_ended(facts, match),
        signature=match.signature,
        match=match,
        attempt=match.attempt,
    )


def _class_beside(facts: Facts, match: Match) -> str:
    """By the exception that the line names, or one just below it, or above where that is known to
    be its place."""
    source, line = match.cite.source, match.cite.line
    before = facts.lines(source, line - 1, 1) if SAID_ABOVE in match.signature.tags else ()
    said = (match.cite.text, *before, *facts.lines(source, line + 1, BELOW))
    told = next(filter(None, map(class_of_line, said)), DEFAULT)
    older = any(map(_LIBRARYS_CLASS.search, said)) and any(UNEXPECTED in text for text in said)
    return "env" if told == DEFAULT and older else told


def _just_under(facts: Facts, cite: LogCite) -> Iterable[Crash]:
    """Tracebacks that a program printed under its own word on them."""
    return (
        c for c in facts.crashes if c.cite.source == cite.source and c.head.line == cite.line + 1
    )


def _ended(facts: Facts, match: Match) -> bool:
    """Whether a line may have ended its attempt."""
    cite = match.cite
    on = survived(facts, cite, match.attempt) and not above_its_log(facts, match)
    gone = facts.outside(cite) or recovered(facts, match) or of_another_time(facts, match)
    return not (on or gone)


def _ends(found: Iterable[Failure]) -> Mapping[str, Sequence[Failure]]:
    """Exceptions that may have ended their program, by the log they stand in."""
    ends: dict[str, list[Failure]] = {}
    for f in found:
        if f.crash is not None and f.crash.complete and f.fatal and f.strength > IN_A_THREAD:
            ends.setdefault(f.cite.source, []).append(f)
    return ends


def _raised_later(line: Failure, ends: Mapping[str, Sequence[Failure]]) -> bool:
    """Whether the program ended by an exception of its own further down: what a loader of
    checkpoints printed before, outside any traceback, was caught."""
    return line.family == "E2" and any(
        f.cite.line > line.cite.line
        and f.attempt == line.attempt
        and _same_stream(f.place, line.place)
        for f in ends.get(line.cite.source, ())
    )


def _phase_doubt(facts: Facts, family: str, fault_class: str | None) -> float:
    """Bad data is met in any step, and a kernel that fails in the first one too: where no progress
    was recognised, "before the first" is a guess, and so is "after it"."""
    if facts.has_progress:
        return 1.0
    return LOOP_DOUBT if (family, fault_class) in (("A1", "data"), ("A3", "cuda")) else 1.0


def _reading_doubt(facts: Facts, crash: Crash, family: str, fault_class: str | None) -> float:
    """Whether what was read is a checkpoint of the run's own is not always said."""
    if family == "E2":
        return UNNAMED if fault_class in UNSAID and not of_its_own(facts, crash) else 1.0
    read = any(_CHECKPOINT.search(frame.code or "") for frame in crash.frames[-1:])
    read |= published(crash)
    return UNNAMED if read and family == "A1" else 1.0


def _from_crash(facts: Facts, crash: Crash, block: Sequence[Match]) -> Failure | None:
    inner = _innermost(crash)
    handed = inner is not crash or any(_CARRIES.search(one) for one, _, _ in inner.chain)
    gone_on = crash.caught or survived(facts, crash.cite, crash.attempt)
    crash = inner if gone_on else with_frames(facts, inner)
    hushing = ("cascade", "benign", *(() if handed else ("wrapper",)))
    echoed = any(m.signature.role == "cascade" for m in block)
    roots = [
        m
        for m in block
        if m.signature.role == "root"
        and (m.signature.strength >= WEAK_ROOT or not echoed)
        and not _handled(crash, m)
    ]
    best = max(roots, key=lambda m: (m.signature.strength, -m.cite.line), default=None)
    best = best or said_above(facts, crash)
    if of_a_tracker(crash.frames):
        hushing = ("benign",)
    if best is None and (
        is_wrapper(crash) or is_interrupt(crash) or any(m.signature.role in hushing for m in block)
    ):
        return None
    begun, in_doubt, halfway = _phase(facts, crash)
    if best is not None:
        family, fault_class = signed(facts, crash, best, begun)
        strength, attribution = best.signature.strength, best.signature.attribution
    else:
        family, fault_class, strength = unsigned(facts, crash, begun)
        attribution = "unknown" if family == "C1" else "job"
    if halfway or (in_doubt and family == "A1" and best is not None):
        strength *= LOOP_DOUBT
    elif best is not None:
        strength *= _phase_doubt(facts, family, fault_class)
    if not begun and not facts.has_progress and beside_the_loop(crash):
        strength *= LOOP_DOUBT
    strength *= _reading_doubt(facts, crash, family, fault_class)
    if family == "A1" and best is not None and best.signature.fault_class in KEYS:
        strength *= UNNAMED  # called pretrained; a checkpoint of the run's may be called so too
    if best is None and in_a_thread(facts, crash):
        waited = not begun and feeds(facts, crash)
        strength = min(strength, OF_A_FEEDER if waited else IN_A_THREAD)
    strength = min(strength, crash.share)
    failed = facts.job is not None and facts.job.disposition == "failed"
    if facts.end_seen and not failed and facts.steps_before(crash.cite, crash.attempt) is None:
        strength = min(strength, AFTER_ALL)
    return Failure(
        family=family,
        fault_class=fault_class,
        attribution=attribution,
        strength=strength,
        cite=crash.cite if best is None or crash.complete else best.cite,
        place=of_the_sole_failure(facts, crash, raised_by(facts, crash)),
        what=best.signature.meaning if best else uncaught(crash),
        started=begun,
        fatal=not gone_on,
        signature=best.signature if best else None,
        crash=crash,
        match=best,
        attempt=crash.attempt,
    )


def _phase(facts: Facts, crash: Crash) -> tuple[bool | None, bool, bool]:
    """Whether a step had been made, None where that cannot be told; whether that is doubted for a
    loop on the way; and whether a bar alone tells."""
    begun = started(facts, crash.cite, crash.attempt)
    known = within_the_loop(crash) or had_saved(facts, crash) or names_its_step(facts, crash)
    known = known or (begun is False and drawn_at_the_end(facts, crash))
    known = known or (not begun and logged(facts, crash))
    begun = begun or known or begun
    in_doubt = begun is False and not facts.has_progress and in_a_loop(crash)
    begun = None if in_doubt else begun
    halfway = within_a_bar(facts, crash) or keeps_a_model(crash) or validates(crash)
    halfway = halfway and not begun and not facts.has_progress
    return begun or halfway or begun, in_doubt, halfway


def _innermost(crash: Crash) -> Crash:
    """With the exception of the process that raised it, where another hands it on, or that it was
    raised from where its own name is cut off; with what is known of it where that is cut off."""
    while handed := _CARRIES.search(crash.exception) or _CAUGHT.match(crash.message):
        kind = handed[1]
        last, said, how = crash.chain[-1] if crash.chain else ("", "", "")
        if how == "cause" and (not kind or last.endswith(kind) or _CARRIES.search(last)):
            crash = replace(crash, exception=last, message=said, chain=crash.chain[:-1])
        elif handed.re is _CAUGHT:
            break
        elif kind:
            return replace(crash, exception=kind, message="")
        else:
            inside = any(_SPAWNED.search(frame.file) for frame in crash.frames[1:])
            return replace(crash, exception="", complete=False) if inside else crash
    if not crash.complete and crash.chain and crash.chain[-1][2] == "cause":
        return replace(crash, exception=crash.chain[-1][0], message=crash.chain[-1][1])
    return crash


def in_a_thread(facts: Facts, crash: Crash) -> bool:
    """Whether it ended a thread, a destructor or a hook at exit, which ends no process."""
    said = facts.memo("ignored exceptions", _ignored)
    return any((crash.cite.source, crash.head.line - above) in said for above in (0, 1))


def _ignored(facts: Facts) -> frozenset[tuple[str, int]]:
    return frozenset((m.cite.source, m.cite.line) for m in facts.tagged("ignored-exception"))


def _handled(crash: Crash, match: Match) -> bool:
    """Whether a line is that of an absence the program went on from: it looks whether a file or a
    key is there, and another exception came while it made up for it."""
    looked = (one for one in crash.chain if one[2] == "context" and _LOOKED.search(one[0]))
    return match.cite.line < crash.cite.line and any(
        f"{kind}: {said}"[:_COMPARED] in match.cite.text for kind, said, _ in looked
    )
