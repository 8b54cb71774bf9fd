"""What a traceback says whose end is not there, so that nobody knows what was raised."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from flatline.facts import Facts
from flatline.judging.frames import NEAREST, above, asked_for, kind_of_any, on_import
from flatline.judging.loading import of_a_model, of_its_own, reads_a_checkpoint
from flatline.judging.startup_class import asks_the_network, startup_class
from flatline.judging.uncaught import late_class
from flatline.judging.wrappers import is_interrupt, is_wrapper
from flatline.model import Crash

STRENGTH = 0.5
"""What was being done is known, why it failed is not: a full card or a Ctrl-C may be cut off as
well."""
INNERMOST, NEAR, _COMPARED = 2, 20, 60
_RAISES = re.compile(
    r"^raise (?:[a-z_]\w*\.)*(?P<kind>[A-Z]\w*)(?:\((?:[frbu]*['\"](?P<said>[^'\"]{1,300}))?|$)"
)
_ELSEWHERE = re.compile(
    r"(?i)ResourceExhausted|XlaRuntime|Accelerator|BrokenPipe|Unavailable|Aborted|\bUnknownError"
    r"|InternalError|StopIteration|Pruned|Cancelled"
    r"|out.?of.?memory|\bCUDA|cublas|cudnn|nccl|rendezvous|time(?:d[ -]?)?out|DataLoader worker"
    r"|^(?:_?queue\.)?Empty\b|connection|\bDist\w*Error|Warning\b"
)
"""What is raised for a full card, for a peer or for a worker is of other families."""
RESTORES = re.compile(
    r"(?i)(?:\[[^\]]{1,60}\] |\S*\d\S* )*(?:restor|reload|resum)ing\b.{0,40}"
    r"\b(?:checkpoint|ckpt)\b.{0,12}[/\\:]"
)
_RESUMED = re.compile(r"\b(?:join|open|exists|load\w{0,20})\(resume_from_checkpoint\b")
_MEETS = re.compile(r"\b(?:_verify_param_shape_across_processes|_store_based_barrier)(?:\(|$)")
"""Where a rank waits for all others for the first time."""
_SAYS_NOTHING = ("RuntimeError", "Exception", "InternalError", "OSError", "SystemError")
"""What is raised for anything, a full card among it."""
_WAITS = re.compile(
    r"/(?:multiprocessing/(?:connection|queues|popen_\w+)|threading|queue|selectors|subprocess|socket|ssl)\.py$"
)
"""Where a process waits for another when it is interrupted."""
_AWAITS = re.compile(
    r"(?:queue|conn(?:ection)?|process|thread|event|future|worker)s?\w*(?:\[\w+\])?"
    r"\.(?:get|wait|join|poll|recv|result)\("
)


def cut_off(
    facts: Facts, crash: Crash, begun: bool | None
) -> tuple[str, str | None, float] | None:
    """Family, class and strength by what was being done; None where the frames do not tell."""
    if not crash.frames or any(_hands_on(crash, kind) for kind, _, _ in crash.chain):
        return None
    first = max(1, crash.head.line - NEAR)
    near = facts.lines(crash.head.source, first, crash.end_line + NEAR - first)
    if any("KeyboardInterrupt" in text or text.strip() == "^C" for text in near):
        return None
    resumed = not facts.has_progress and _RESUMED.search(crash.frames[-1].code or "")
    if resumed:
        return "E2", None, STRENGTH
    if not begun and reads_a_checkpoint(crash) and of_its_own(facts, crash):
        return None if of_a_model(crash) else ("E2", None, STRENGTH)
    raised = _RAISES.match((crash.frames[-1].code or "").strip())
    known = [" ".join(one[:2]) for one in crash.chain[-1:]] + [crash.exception]
    if raised is not None:
        known.append(f"{raised['kind']} {raised['said'] or ''}")
    if any(map(_ELSEWHERE.search, known)):
        return None
    if not facts.has_progress and _met(facts, crash):
        return "C1", None, STRENGTH
    found = _late(crash) if begun else _early(crash, raised, near)
    if found is None and not begun and raised is None and not crash.exception:
        above_it = near[: crash.head.line - first]
        found = ("E2", None) if _restores(crash, above_it) else None
    return None if found is None else (*found, STRENGTH)


def _met(facts: Facts, crash: Crash) -> bool:
    """Whether a rank waited for all others for the first time as its log ended."""
    last, end = crash.frames[-1], facts.last_lines.get(crash.head.source)
    if end is not None and end.line > crash.end_line + 1:
        return False
    return any(map(_MEETS.search, (last.function, last.code or "")))


def _restores(crash: Crash, above_it: Sequence[str]) -> bool:
    """Whether the line above says that a checkpoint is being read, and the frames go no deeper
    than the program's own beginning."""
    deep = any("/torch/" in frame.file.replace("\\", "/") for frame in crash.frames)
    return not deep and any(map(RESTORES.match, above_it[-1:]))


def _late(crash: Crash) -> tuple[str, str] | None:
    return None if _waits(crash) or _kind(crash) is None else ("A3", late_class(crash))


def _early(
    crash: Crash, raised: re.Match[str] | None, near: Sequence[str]
) -> tuple[str, str | None] | None:
    if crash.chain and crash.chain[-1][2] == "context":
        return "A1", _before_it(crash, near)
    fetched = asks_the_network(crash.frames[-NEAREST:])
    if not (raised or fetched) and _waits(crash):
        return None
    kind, said = (raised["kind"], raised["said"] or "") if raised else (crash.exception, "")
    named = bool(kind) and kind not in _SAYS_NOTHING
    if (raised is not None or named) and not _hands_on(crash, kind):
        return "A1", startup_class(kind, said, crash.frames)
    found = _kind(crash) or ("asset" if fetched else None)
    return None if found is None else ("A1", found)


def _waits(crash: Crash) -> bool:
    last = crash.frames[-1]
    return bool(_WAITS.search(last.file.replace("\\", "/")) or _AWAITS.search(last.code or ""))


def _kind(crash: Crash) -> str | None:
    if on_import(crash.frames):
        return "env"
    return kind_of_any(asked_for(crash.frames)[-INNERMOST:])


def _before_it(crash: Crash, lines: Sequence[str]) -> str:
    """The class of the exception while which was handled that whose end is cut off was raised: at
    start-up it is mostly the cause."""
    kind, said, _ = crash.chain[-1]
    named = f"{kind}: {said}"[:_COMPARED]
    at = next((n for n, text in enumerate(lines) if named in text), 0)
    label = lines[at].partition(named)[0] if at else ""
    return startup_class(kind, said, above([text.removeprefix(label) for text in lines[:at]]))


def _hands_on(crash: Crash, kind: str) -> bool:
    """Whether an exception of that name tells that something else failed, or somebody's Ctrl-C."""
    named = replace(crash, exception=kind)
    return is_wrapper(named) or is_interrupt(named)
