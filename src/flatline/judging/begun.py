"""
Whether steps had been made where no progress was recognised: by the frames that an exception came
out of, and by the bars drawn above it.
"""

from __future__ import annotations

import re

from flatline.facts import Facts
from flatline.judging.frames import prepares_data
from flatline.model import Crash, LogCite

LINES_ABOVE = 6
_FIRST = 400
"""Characters of a message."""

_IN_THE_LOOP = (
    "_maybe_log_save_evaluate",
    "_save_checkpoint",
    "on_epoch_end",
    "on_train_epoch_end",
    "on_train_batch_end",
    "on_step_end",
    "end_of_iteration",
    "end_of_epoch",
    "after_train_iter",
    "after_train_epoch",
)
"""Functions that training loops call once a step is made (transformers `Trainer`, Lightning,
mmengine, imaginaire)."""

_DRAWN = re.compile(r"([^|\r\n]{0,80})%\|[^|]{0,200}\| *([0-9]{1,12})/[0-9]{1,12} \[")
_LATER_PASS = re.compile(r"(?i)\b(?:val|eval|test|infer|predict|sanity)|epoch\W{0,3}(?:[2-9]|1\d)")
_SAVES = re.compile(
    r"torch\.save\(.*(?:state_dict|model|optim|ckpt|checkpoint)"
    r"|(?:\.save_(?:weights|model|state|checkpoint|pretrained)"
    r"|\b(?:model|net|network|saver|trainer|ckpt|checkpoint\w*)\.save)\("
    r"(?!.*\.(?:png|jpe?g|svg|pdf|json|np[yz]|wav|mp4|gif)\b)"
    r".*(?<!['\"./])\b(?:epoch|global_step|step|iteration)\b(?!['\".]|\s*=[^=])"
)
"""A file of weights, or one that is named after what a loop counts."""
_OF_STEPS = re.compile(r"\b(?:at|of|after|for) (?:\w+ )?[1-9][0-9]{0,9} (?:epoch|iter|step)"
                       r"|\b(?:iteration|step|epoch)[ =:]{1,12}[1-9]"
                       r"|checkpoint-[1-9]")  # fmt: skip
_AT_A_STEP = re.compile(
    r"\b(?:at|in|on|during|after) (?:(?:the|training|train|global|optimizer) ){0,2}"
    r"(?:(?:iteration|iter|epoch)[ _=:#]{1,3}(?:[2-9]|[1-9][0-9]{1,9})"
    r"|step[ _=:#]{1,3}(?:[2-9][0-9]|[1-9][0-9]{2,9}))(?![\w/-]|\.[0-9]| (?:of|to|or) )",
    re.IGNORECASE,
)
"""Some count from 1, and preparations are numbered in steps as well, some ten at the most."""
_OF_THE_PLAN = re.compile(
    r"checkpoint|ckpt|resum|restor|\b(?:load|save|file)|\.(?:pth?|h5|npz?|yaml|json)\b|sched|converg"
    r"|milestone|\b(?:both|beyond|given|missing|lies)\b|warm-?up|decay|config|option|argument|\b(?:must|should|expect\w*|requires?|required|will"
    r"|would|set|start\w*|begin\w*|plan\w*|before|until|from)\b",
    re.IGNORECASE,
)
"""What speaks of a step to come, of one of another run, of a solver's."""
_SAVING = re.compile(r"_?save_(?:\w+_)?(?:checkpoint|ckpt|model|state|weights|adapter)\w*")
_KEEPING = re.compile(
    r"_?(?:save|dump|store|write)_?(?:the_?)?(?:trained_?|final_?|best_?|all_?)?"
    r"(?:agent|model|network|net|weight|polic(?:y|ie)|checkpoint|ckpt)s?",
    re.IGNORECASE,
)
_WRITES = re.compile(
    r"\bopen\(.*,\s*(?:mode ?= ?)?['\"][wx]b?\+?['\"]|\.(?:dump|save)\("
    r"|\bFile\([^)]*,\s*['\"][wa]['\"]"
)
_AT_FIRST = re.compile(
    r"(?i)\b(?:epoch|step|iter\w*) ?= ?0\b|\binit|\bjson\.|onnx|\bbase\b|pre_?train"
    r"|\bconfig\b|\bcfg\b"
)
_HISTORY = re.compile(r"\bwandb: {1,12}(?:\S{0,60}[/_])?loss\S{0,40} [▁▂▃▄▅▆▇█ ]{2,}$")
HISTORY_LINES = 60
"""What wandb prints as a run ends, of a loss that was logged more than once."""
_EPOCH = re.compile(r"_?(?:train_(?:one_)?epoch|(?:run_)?(?:train|training)_epoch|fit_epoch)")
_VALIDATES = re.compile(
    r"_?(?:do_|run_)?(?:valid(?:ate|ation)?|val|eval(?:uate|uation)?)(?:_epoch)?"
)
_LOOPS = re.compile(
    r"(?:run_)?train(?:ing)?_(?:and_)?(?:val|eval)[a-z]{0,8}_loop|(?:_?(?:inner_)?train(?:ing)?(?:_?(?:step|loop|epoch|one_epoch|model|batch))?|fit(?:_generator"
    r"|_loop)?|run_epoch|_?process_(?:next_)?(?:data|batch)|do_train|one_epoch)",
    re.IGNORECASE,
)


def at_nought(facts: Facts, cite: LogCite) -> bool:
    """Whether a bar that stands at its beginning was drawn last, of a first pass over the data: no
    step of its loop was made."""
    above = range(cite.line, max(0, cite.line - LINES_ABOVE), -1)
    drawn = (_DRAWN.findall(facts.text(cite.source, line)) for line in above)
    last = next((found[-1] for found in drawn if found), None)
    first = last is not None and last[1] == "0" and not _LATER_PASS.search(last[0])
    return first and not facts.has_progress


_WRAPS = re.compile(r"\b\w{0,20}(?:DistributedDataParallel|FullyShardedDataParallel)\(")
"""Where a model is laid on its ranks, before any step."""
_NO_STEPS = re.compile(
    r"(?i)file|image|sample|example|token|shard|\bmap\b|load|data|cache|row|batches of"
)
"""What is counted while the data are made ready."""


def drawn_at_the_end(facts: Facts, crash: Crash) -> bool:
    """Whether the bar of the steps stands just below, where nothing follows: a bar draws itself
    once more as it is closed, and what it shows had been reached before the exception."""
    if facts.steps_after(crash.cite, crash.attempt) != 1:
        return False
    below = range(crash.end_line + 1, crash.end_line + 1 + LINES_ABOVE)
    shown = (_DRAWN.findall(facts.text(crash.cite.source, line)) for line in below)
    return any(int(steps) > 0 and not (_LATER_PASS.search(name) or _NO_STEPS.search(name))
               for found in shown for name, steps in found)  # fmt: skip


def within_the_loop(crash: Crash) -> bool:
    return any(
        frame.function in _IN_THE_LOOP
        or _called(frame.code or "").endswith(_IN_THE_LOOP)
        or _SAVES.search(frame.code or "")
        for frame in crash.frames
    ) or (in_a_loop(crash) and any(_SAVING.fullmatch(frame.function) for frame in crash.frames))


def validates(crash: Crash) -> bool:
    """Whether an epoch of training had come to its validation.  What checks the model before the
    first step is seldom called from within an epoch."""
    names = [frame.function for frame in crash.frames]
    epoch = next((n for n, name in enumerate(names) if _EPOCH.fullmatch(name)), None)
    inside = [] if epoch is None else names[epoch + 1 :]
    return any(map(_VALIDATES.fullmatch, inside)) and not any("sanity" in n for n in names)


def _called(code: str) -> str:
    """What a line calls first; "" where it calls nothing, as an import."""
    name, paren, _ = code.partition("(")
    return name if paren else ""


def had_saved(facts: Facts, crash: Crash) -> bool:
    """Whether a checkpoint of some steps was being saved above, as only a loop that ran does."""
    return any(
        m.attempt == crash.attempt
        and m.cite.source == crash.cite.source
        and m.cite.line < crash.head.line
        and _OF_STEPS.search(m.cite.text)
        for m in facts.tagged("save-begun")
    )


def names_its_step(facts: Facts, crash: Crash) -> bool:
    """Whether the message itself says at which step or epoch, beyond the first, it was raised; of
    a run that went on from a checkpoint that may have been the first it made."""
    if any(m.attempt == crash.attempt for m in facts.markers_of("resume", "checkpoint_loaded")):
        return False
    if crash.frames and not in_a_loop(crash):
        return False  # of a setting that is checked, a data set that is made, a table
    said = crash.message.lstrip(": ").split("\n", 1)[0][:_FIRST]
    return len(_AT_A_STEP.findall(said)) == 1 and not _OF_THE_PLAN.search(said)


def beside_the_loop(crash: Crash) -> bool:
    """Whether a thread of its own raised it: when, no frame tells."""
    return bool(crash.frames) and crash.frames[0].function in ("_feed", "_bootstrap_inner")


def keeps_a_model(crash: Crash) -> bool:
    """Whether a function that is named after it was writing a model down: mostly one that was
    trained, unless the names on the way say that it was new."""
    way = [f"{frame.function} {frame.code or ''}" for frame in crash.frames]
    return (
        any(_KEEPING.fullmatch(frame.function) for frame in crash.frames)
        and any(map(_WRITES.search, way))
        and not any(map(_AT_FIRST.search, way))
    )


def logged(facts: Facts, crash: Crash) -> bool:
    """Whether a history of losses is shown below it, as the tracker prints it as its run ends: one
    above may be an earlier run's."""
    below = facts.lines(crash.head.source, crash.end_line + 1, HISTORY_LINES)
    return any(map(_HISTORY.search, below))


def in_the_making(crash: Crash) -> bool:
    """Whether an object of the program was still being made when it was raised, and no function
    on the way is a loop's."""
    made = crash.frames[-1:] and crash.frames[-1].function == "__init__"
    wrapped = any(_WRAPS.search(frame.code or "") for frame in crash.frames)
    return bool(made or wrapped) and not in_a_loop(crash)


def in_a_loop(crash: Crash) -> bool:
    return any(_LOOPS.fullmatch(frame.function) for frame in crash.frames)


def within_a_bar(facts: Facts, crash: Crash) -> bool:
    """Whether a bar that says nothing of itself stood halfway when this was raised: most such
    bars are a training loop's own, unless the data set was still being made."""
    bars = [
        m
        for m in facts.markers_of("bar")
        if m.cite.source == crash.cite.source
        and m.attempt == crash.attempt
        and m.cite.line <= crash.head.line
    ]
    if not bars or prepares_data(crash.frames):
        return False
    last = bars[-1].progress
    return last.step is not None and last.planned is not None and last.step < last.planned
