"""
Exceptions that say that something else ended: a child, an actor, a job, a person; or that another
way is tried (`_FallbackException`, within TensorFlow).
"""

from __future__ import annotations

import re

from flatline.model import Crash

_WRAPPERS = re.compile(
    r"(?:^|\.)(ChildFailedError|CalledProcessError|ProcessRaisedException|ProcessExitedException"
    r"|SignalException|SystemExit|TaskExecutionError|WorkerGroupError|TuneError|_FallbackException)$"
    r"|\b(?:ActorDied|ActorUnavailable|RayActor|WorkerCrashed|NodeDied|OwnerDied|LocalRayletDied)"
    r"Error\)?$"
)
_HANDED_BACK = re.compile(r"RuntimeError: Job failed with:\s+code: \d")
_CUT_SHORT = re.compile(r"pickle data was truncated|EOFError: Ran out of input")
_CLEARS = re.compile(r"unlink|clean|close|shut_?down|stop|__(?:del|exit)__|finali[sz]e|release")
_INTERRUPTS = re.compile(r"(?:^|\.)(KeyboardInterrupt|SignalException|SystemExit)$")


def is_wrapper(crash: Crash) -> bool:
    said = f"{crash.exception}: {crash.message[:80]}"
    return bool(_WRAPPERS.search(crash.exception) or _HANDED_BACK.match(said))


def of_a_dead_parent(crash: Crash) -> bool:
    """Whether a process that was being spawned found nothing, or a part, of what its parent was to
    hand it: the parent had failed while it did."""
    born = any(frame.function == "spawn_main" for frame in crash.frames[:2])
    inside = "/multiprocessing/" in crash.frames[-1].file.replace("\\", "/") if born else False
    return inside and _CUT_SHORT.search(f"{crash.exception}: {crash.message[:80]}") is not None


def clears_away(crash: Crash) -> bool:
    """Whether shared memory was to be removed that was gone: so ends a process whose others have
    cleared up before it."""
    clears = any(_CLEARS.search(frame.function) for frame in crash.frames)
    gone = clears and crash.exception.endswith("FileNotFoundError")
    return gone and any("shm_unlink(" in (frame.code or "") for frame in crash.frames[-1:])


def is_interrupt(crash: Crash) -> bool:
    """Somebody's Ctrl-C, also where native code under it made another exception of it."""
    wrapped = crash.message.lstrip(": ").startswith("KeyboardInterrupt")
    if not crash.exception and crash.head.text.lstrip().startswith("^C"):
        return True  # a terminal's echo of it, and the end is cut off
    return wrapped or bool(_INTERRUPTS.search(crash.exception))
