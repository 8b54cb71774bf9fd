"""What a traceback says whose end is not there, so that nobody knows what was raised."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from flatline.facts import Facts
from flatline.judging.frames import above, asked_for, kind_of_any, on_import
from flatline.judging.loading import of_a_model, of_its_own, reads_a_checkpoint
from flatline.judging.startup_class import startup_class
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
    r"(?i)out.?of.?memory|\bCUDA|cublas|cudnn|nccl|rendezvous|time(?:d[ -]?)?out|DataLoader worker"
    r"|^(?:_?queue\.)?Empty\b|connection|\bDist\w*Error|Warning\b"
)
"""What is raised for a full card, for a peer or for a worker is of other families."""
_WAITS = re.compile(
    r"/(?:multiprocessing/(?:connection|queues|popen_\w+)|threading|queue|selectors|subprocess|socket|ssl)\.py$"
)
"""Where a process waits for another when it is interrupted."""


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
    raised = _RAISES.match((crash.frames[-1].code or "").strip())
    if not begun and reads_a_checkpoint(crash) and of_its_own(facts, crash):
        return None if of_a_model(crash) else ("E2", None, STRENGTH)
    if raised is not None and _ELSEWHERE.search(f"{raised['kind']} {raised['said'] or ''}"):
        return None
    if crash.chain and _ELSEWHERE.search(" ".join(crash.chain[-1][:2])):
        return None
    if crash.chain and crash.chain[-1][2] == "context" and not begun:
        return "A1", _before_it(crash, near), STRENGTH
    if raised is None and _WAITS.search(crash.frames[-1].file.replace("\\", "/")):
        return None
    if raised is not None and not begun and not _hands_on(crash, raised["kind"]):
        return "A1", startup_class(raised["kind"], raised["said"] or "", crash.frames), STRENGTH
    kind = "env" if on_import(crash.frames) else kind_of_any(asked_for(crash.frames)[-INNERMOST:])
    if kind is None:
        return None
    return ("A3", late_class(crash), STRENGTH) if begun else ("A1", kind, STRENGTH)


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
