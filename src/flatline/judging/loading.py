"""
What was being read when an exception was raised, by the frames it came out of.

A checkpoint that a run was to go on from is another matter (E2) than the weights that a model is
built from (A1, asset), though the same function of the same library reads both.
"""

from __future__ import annotations

import re

from flatline.model import Crash

_LOADING = (
    r"_?(?:load|resume|restore|resume_from|load_from|maybe_load|read)_(?:last_|latest_|from_)?"
    r"(?:checkpoint|ckpt|state_dict)\w*"
)
_LOADS, _CALLED = re.compile(_LOADING), re.compile(rf"\b{_LOADING}\(")
"""Functions in which a checkpoint is read. A file that is not there is another matter (A1)."""
_BUILDS = re.compile(
    r"pre_?train|\bbackbone|(?:build|make|get|create)_(?:\w+_)?(?:model|encoder|backbone|network)\b"
)
_RESUMES = re.compile(r"resum|restor|check_?point|ckpt|\blast\b|load_state\b", re.IGNORECASE)
_PRETRAINED = re.compile(r"pre_?train")
_NO_CHECKPOINT = re.compile(r"invalid load key, '[<v]'")
"""A web page, or the pointer that git-lfs leaves: nothing a run wrote itself."""
_HUB = "from_pretrained"
_WEIGHTS = re.compile(r"_?load_(?:\w+_)?(?:weights|pretrained)\w*$")
_ITERATES = re.compile(
    r"(?:^|_)(?:iterator|dataloader|data_loader|dataset|indices)s?$|^__getitem__$"
)
"""Functions of the data that loaders of checkpoints set up as well (fairseq)."""


def of_a_model(crash: Crash) -> bool:
    """Whether what was read are the weights a model is built from, by the names on the way there:
    nothing is resumed.  Inside `from_pretrained` any file is a checkpoint to the library; what the
    program asked it for stands where it is called."""
    if _NO_CHECKPOINT.search(crash.message):
        return not _RESUMES.search(" ".join(frame.code or "" for frame in crash.frames))
    for frame in crash.frames:
        code = frame.code or ""
        if f"{_HUB}(" in code:
            return not _RESUMES.search(code)
        if (called := _CALLED.search(code)) and _PRETRAINED.search(code, called.end()):
            return True
    if any(frame.function == _HUB for frame in crash.frames):
        return True
    way = " ".join(f"{frame.function} {frame.code or ''}" for frame in crash.frames)
    return _BUILDS.search(way) is not None and not _RESUMES.search(way)


def reads_weights(crash: Crash) -> bool:
    """Whether a file that is no good was one of weights."""
    return any(
        _WEIGHTS.match(frame.function) or f"{_HUB}(" in (frame.code or "")
        for frame in crash.frames
    )


def reads_a_checkpoint(crash: Crash) -> bool:
    """Whether a checkpoint was read: weights that a library fetches by name are none."""
    if any(frame.function == _HUB for frame in crash.frames):
        return False
    called = [
        at
        for at, frame in enumerate(crash.frames)
        if _LOADS.fullmatch(frame.function) or _CALLED.search(frame.code or "")
    ]
    return bool(called) and not any(
        _ITERATES.search(frame.function) for frame in crash.frames[called[-1] :]
    )
