"""Family and fault class of an exception, in its phase of the run."""

from __future__ import annotations

import re
from dataclasses import replace

from flatline.facts import Facts
from flatline.judging.begun import at_nought, in_the_making
from flatline.judging.by_words import OPEN, by_words
from flatline.judging.cut_off import cut_off
from flatline.judging.frames import above, asked_for, kind_of_any
from flatline.judging.handles import not_started
from flatline.judging.loading import (
    begins_anew,
    between_ranks,
    found_none,
    of_a_model,
    of_data,
    reads_a_checkpoint,
    reads_weights,
    resumes,
    said_pretrained,
    state_does_not_fit,
    takes_up,
)
from flatline.judging.meeting import unreached
from flatline.judging.startup_class import (
    DEFAULT,
    asks_the_network,
    class_of_line,
    fetched,
    startup_class,
)
from flatline.judging.tuned_on import tuned_on
from flatline.judging.uncaught import late_class, shares_memory
from flatline.model import Crash, Match, Signature

LINES_ABOVE = 60
CUT_OFF, CUT_OFF_LATE = 0.25, 0.4
"""That something was raised, but not what: below what a verdict needs, unless steps were made."""
UNREACHED = 0.6
"""A rank that had met the others does not meet them anew, but its log may be cut off above."""
_COMMUNICATES = re.compile(r"(?:^|\.)Dist(?:Backend|Network|Store)?Error$")
"""What torch raises for its communication library: whose fault it is, it does not say."""
_OF_A_CALL = re.compile(
    r"(?:INTERNAL: )?(?:NCCL|RCCL) (?:operation|error)\b|Graph execution error"
    r"|\w+:torch_npu/\S{1,200} \w{2,8} function error\b|\[ERROR\] HCCL error in: |call aclnn"
)
"""What JAX raises for it, TensorFlow for whatever fails within a graph, torch_npu for any call."""

_BUILDERS = re.compile(r"(?:class `[\w.]{1,120}` in [\w./\\-]{1,240}\.py: )+")
"""What `build_from_cfg` of mmengine's registry puts before the words of what it was building, once
for each builder around it: their sources are not what was missed."""

MODEL_FILES = "assets-model-files-missing"
SHAPES, ASSERTED = "torch-shape-mismatch", "cuda-device-assert"
ILLEGAL_ADDRESS = "cuda-illegal-address"
_FETCHED = "network"
_WANTS, _WARNED = "wants-gpu", "no-gpu-warned"
"""A setting that only a GPU can follow is no fault where the driver hides the GPUs there are."""
_NO_GPU = "keras-no-gpu"
_OF_GPUS = re.compile(
    r"(?i)\b\w{0,40}(?:gpus?|devices?)\[|\bset_visible_devices\(|\bset_memory_growth\("
    r"|\bassert\b.*(?:gpus?|devices?)\b|\blist_(?:physical|logical)_devices\([^)]*\)\["
)
"""Where a program takes a GPU from the list of those that TensorFlow found."""
KEYS = ("size-mismatch", "missing-keys")
"""A model that is built anew may not fit the weights it is given either."""
_MISSING = re.compile(r"(?:FileNotFound|ModuleNotFound|Import|Permission|HfHub|Repository)")
_SELECTS = re.compile(r"(?:^|[._])(?:set_?[dD]evice|_?lazy_init|cuda_init|_cuda_setDevice)\b")
_CUDA = re.compile(r"CUDA error|CUDA kernel errors|HIP error|cudaError|CUBLAS_STATUS|CUDNN_STATUS")

IN_A_WORKER = "torch-worker-failed"


def resolve(signature: Signature, begun: bool | None) -> tuple[str, str | None]:
    """Family and fault class of a root signature in its phase."""
    if begun and signature.late_family:
        return signature.late_family, signature.late_class
    if begun and signature.late_class:
        return signature.family or "", signature.late_class
    return signature.family or "", signature.fault_class


def of_the_first_step(signature: Signature, fault_class: str | None) -> str:
    """A check that fails on the device within the first step is mostly of what the data holds; an
    address that is none, of how the kernel was built."""
    if fault_class != "cuda":
        return "config"
    return "env" if signature.id == ILLEGAL_ADDRESS else "data"


def communicates(crash: Crash | None) -> bool:
    return crash is not None and bool(
        _COMMUNICATES.search(crash.exception)
        or _OF_A_CALL.match(crash.message)
        or (crash.exception.endswith("EnforceNotMet") and not crash.message)
    )


def signed(facts: Facts, crash: Crash, best: Match, begun: bool | None) -> tuple[str, str | None]:
    """Family and class of an exception whose line is known, in its phase and by its frames."""
    family, fault_class = resolve(best.signature, begun)
    if family == "A1" and not begun and unreached(crash):
        return "C1", None
    if found := not_started(facts, best, crash if family == "A1" else None):
        return found
    if family == "A3" and not begun and at_nought(facts, crash.head):
        return "A1", of_the_first_step(best.signature, fault_class)
    failed = (family, fault_class) == ("A3", "cuda") and best.signature.id != ASSERTED
    if failed and not begun and in_the_making(crash):
        return "A1", "env"
    if found := _not_loaded(facts, crash, best, begun):
        return found
    if family == "E2" and (other := _no_checkpoint(facts, crash, fault_class, begun)):
        return other
    if family == "A1" and _WANTS in best.signature.tags and _no_gpu(facts, crash):
        return "A1", "env"
    if (family, fault_class) == ("A1", "env") or (
        family == "A1" and _FETCHED in best.signature.tags
    ):
        if _FETCHED in best.signature.tags and asks_the_network(crash.frames):
            fault_class = "asset"
        for_data = kind_of_any(asked_for(crash.frames)) == "data" and fault_class == "asset"
        return family, fetched(crash.message) or ("data" if for_data else fault_class)
    return _read(crash, best, family, fault_class)


def _not_loaded(
    facts: Facts, crash: Crash, best: Match, begun: bool | None
) -> tuple[str, str] | None:
    """What the run was to go on from, where the line is about weights of whatever kind."""
    loads = not begun and reads_a_checkpoint(crash) and not of_a_model(crash)
    fresh = not begun or facts.steps_before(crash.cite, crash.attempt) == 1
    if (best.signature.id == SHAPES and loads) or (fresh and state_does_not_fit(crash)):
        return "E2", "size-mismatch"
    if best.signature.id == MODEL_FILES and not begun and tuned_on(facts, crash):
        return "E2", "empty"
    return None


def _no_gpu(facts: Facts, crash: Crash) -> bool:
    """Whether torch had said before, in the same log, that it cannot use the GPUs."""
    warned = (m.cite for m in facts.tagged(_WARNED) if m.attempt == crash.attempt)
    return any(c.source == crash.cite.source and c.line < crash.cite.line for c in warned)


def _finds_no_gpus(facts: Facts, crash: Crash) -> bool:
    """Whether a list of GPUs was asked for one, and TensorFlow had said that it can use none."""
    if not crash.frames or not _OF_GPUS.search(crash.frames[-1].code or ""):
        return False
    return any(
        m.signature.id == _NO_GPU and m.attempt == crash.attempt and m.cite.line < crash.cite.line
        for m in facts.matches
        if m.cite.source == crash.cite.source
    )


def _read(
    crash: Crash, best: Match, family: str, fault_class: str | None
) -> tuple[str, str | None]:
    """By what was being read, where the line tells no more than that it failed."""
    if (family, fault_class) == ("A1", "data") and reads_weights(crash):
        return ("E2", "corrupt") if resumes(crash) else ("A1", "asset")
    in_a_worker = family == "A1" and best.signature.id == IN_A_WORKER
    if in_a_worker and startup_class(crash.exception, crash.message) == "env":
        return "A1", "env"  # a worker is the first to load what decodes its samples
    if family == "A1" and (fault_class is None or crash.exception.endswith("JSONDecodeError")):
        said = None if crash.complete else class_of_line(best.cite.text, crash.frames)
        return "A1", said or _at_startup(crash)
    return family, fault_class


def _no_checkpoint(
    facts: Facts, crash: Crash, fault_class: str | None, begun: bool | None
) -> tuple[str, str] | None:
    """What was read where it was no checkpoint of the run's: another rank's answer, the weights of
    a model, a data set."""
    if between_ranks(crash):
        return ("A3", "code") if begun else ("A1", DEFAULT)
    if fault_class in KEYS:
        return ("A1", "asset") if not begun and said_pretrained(crash) else None
    if not begun and (of_a_model(crash) or begins_anew(facts, crash)):
        return "A1", "asset"
    return ("A3" if begun else "A1", "data") if of_data(crash) else None


_PROGRAMS = ("A1", "A3")


def unsigned(facts: Facts, crash: Crash, begun: bool | None) -> tuple[str, str | None, float]:
    """Family, class and strength of an exception no signature knows: by its own words, where
    these tell of more than the program, or by its phase, its type and its frames."""
    family, fault_class, strength = _of_the_program(facts, crash, begun)
    told = by_words(crash, begun) if family in _PROGRAMS else None
    if told is None:
        return family, fault_class, strength
    strength = min(strength, told.strength)
    if told.family:
        return told.family, None, strength
    if family == "A3":
        fault_class = None if told.strength == OPEN else told.late_class or fault_class
    return family, fault_class, strength


def _of_the_program(
    facts: Facts, crash: Crash, begun: bool | None
) -> tuple[str, str | None, float]:
    said = crash.exception or (crash.chain[-1][0] if crash.chain else "")
    fresh = not begun or facts.steps_before(crash.cite, crash.attempt) == 1
    if fresh and (state_does_not_fit(crash) or found_none(crash)):
        return "E2", "empty" if found_none(crash) else "size-mismatch", 0.7
    reads = said and not _MISSING.search(said) and reads_a_checkpoint(crash)
    if not begun and (reads or takes_up(crash)):
        if of_a_model(crash):
            return "A1", "asset", 0.6
        lost = said.endswith("KeyError")
        return "E2", "missing-keys" if lost else None, 0.6 if lost or crash.complete else CUT_OFF
    if not crash.complete and not crash.message:
        vague = ("A3", None, CUT_OFF_LATE) if begun else ("A1", None, CUT_OFF)
        return cut_off(facts, crash, begun) or vague
    if not begun and unreached(crash):
        return "C1", None, UNREACHED
    if _COMMUNICATES.search(crash.exception):
        return "A3" if begun else "A1", None, CUT_OFF
    text = f"{crash.exception}: {crash.message}"
    alone = crash.head == crash.cite
    if alone or not crash.complete:  # it may have been caught and printed
        begun = begun if begun is not None else False
        return ("A3", "code", 0.5) if begun else ("A1", _at_startup(crash), 0.5)
    if _CUDA.search(text):
        early = not begun and (_selects(crash) or in_the_making(crash))
        return ("A1", "env", 0.6) if early else ("A3", "cuda", 0.6)
    if begun:
        return "A3", late_class(crash), 0.8
    lacks = shares_memory(crash) or _finds_no_gpus(facts, crash)
    fault_class = "env" if lacks else _at_startup(crash)
    return "A1", fault_class, 0.75 if begun is False else 0.6


def _selects(crash: Crash) -> bool:
    """Whether a device was only being chosen, or CUDA begun."""
    return any(_SELECTS.search(frame.function) for frame in crash.frames[-3:])


def with_frames(facts: Facts, crash: Crash) -> Crash:
    """An exception without a traceback's head, with the frames that stand above its line."""
    if crash.frames or not crash.exception or crash.head != crash.cite:
        return crash
    first = max(1, crash.cite.line - LINES_ABOVE)
    lines = facts.lines(crash.cite.source, first, crash.cite.line - first)
    label = crash.cite.text.partition(crash.exception)[0]
    return replace(crash, frames=above([line.removeprefix(label) for line in lines]))


def _at_startup(crash: Crash) -> str:
    handed = _BUILDERS.match(crash.message)
    said = crash.message if handed is None else crash.message[handed.end() :]
    return startup_class(crash.exception, said, crash.frames)
