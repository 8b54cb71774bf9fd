"""What a log says is done between steps again and again, and what that took of the run's time."""

from __future__ import annotations

from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.costly_steps import repeated
from flatline.model import Action, Attribution, Cite, Finding

_SHOWN = 3
DOUBTED = 0.79
"""Just short of confident."""
SHARED = (
    "Whether something else was done in the same steps: it comes every so many of them, and no"
    " line says how long it took."
)
BESIDE = "Whether it was done beside the steps, and not between them: no step is without it."


@dataclass(frozen=True, slots=True)
class Doing:
    """One such thing: its tag, its names, whose it is, and what is told of it."""

    tag: str
    fault_class: str
    attribution: Attribution
    name: str
    happened: str
    open_: str
    action: Action


RECOMPILED = Doing(
    "recompile", "recompilation", "training", "Compiling anew", "The program was compiled anew",
    "Whether a baseline without it reaches the same loss: shapes may vary for good reason.",
    Action("fix", "Mark what varies as dynamic, pad or bucket shapes, or compile less of the"
           " model; the compiler's log names what changed.", "TORCH_LOGS=recompiles"),
)  # fmt: skip
COLLECTED = Doing(
    "garbage-collected", "garbage-collection", "job", "Collecting garbage",
    "Garbage was collected", "What makes so many objects: a count of them by type would tell.",
    Action("fix", "Collect less often, only the young generations, or gc.freeze() what is there"
           " once the model and the data are built; see what holds so much."),
)  # fmt: skip


def again(facts: Facts, code: str, doing: Doing) -> Finding | None:
    """None where it is not said often enough, or takes too little."""
    done = repeated(facts, doing.tag)
    if done is None:
        return None
    lost = done.lost
    open_ = (SHARED,) if done.doubted else (BESIDE,) if done.by_word else ()
    how = (
        f"; hardly a step is without it, and by its own word it took {lost.lost_s:.0f} s"
        if done.by_word
        else f"; steps in which it was took {lost.costly_s:.3g} s each, the others"
        f" {lost.usual_s:.3g} s"
    )
    points: list[Cite] = [lost.cite(at) for at in dict.fromkeys(lost.at)]
    return Finding(
        code=code,
        summary=f"{doing.name} took {lost.lost_s / lost.wall_s:.0%} of the run's time",
        fault_class=doing.fault_class,
        attribution=doing.attribution,
        shows=(
            claim(f"{doing.happened} {lost.events} times after its first steps{how}",
                  *done.cites[:_SHOWN], *points),
        ),
        implies=(
            claim(f"Of {lost.wall_s:.0f} s by the log's clock {lost.lost_s:.0f} s went into it.",
                  *points),
        ),
        strength=0.85,
        most=DOUBTED if done.doubted or done.by_word else 1.0,
        severity="degraded",
        took_s=(lost.lost_s, lost.wall_s),
        scope="all",
        attempt=lost.attempt,
        ended_run=False,
        cannot_decide=(*open_, doing.open_),
        actions=(doing.action,),
        resubmit="fix_first",
    )  # fmt: skip
