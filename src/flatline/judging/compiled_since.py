"""
Steps that are slow since a compiler was at odds with the calls: it gave a function up there, or
compiles anew since the shape of a batch, which was one before, is now this and now that.
"""

from __future__ import annotations

from dataclasses import replace

from flatline.facts import Facts
from flatline.judging.again import RECOMPILED
from flatline.judging.claims import claim
from flatline.judging.left_uncompiled import NEAR, left_uncompiled
from flatline.judging.printed_sizes import printed_sizes
from flatline.judging.throughput import DROP, Course, Slow, course_in_order, shown, steps_of
from flatline.model import Claim, Finding

BEFORE, VARIED = 10, 8
"""Steps of the fast time, all of one size, and sizes of the slow time.  A curriculum has fewer."""
ANEW = 3
"""Times that it compiles anew; the first calls of two kinds are compiled once each."""
BOTH = (
    "What of it is compiling: batches of many sizes are more work to feed and to compute as well."
)


def compiled_since(facts: Facts, code: str) -> Finding | None:
    """None where throughput fell elsewhere, or the run became fast again."""
    told = left_uncompiled(facts)
    if told is not None:
        cite = told.said.cite
        said = claim("Torch says that it compiles a function no more", cite)
        implied = claim("Calls of kinds that were not compiled before run step by step.", cite)
        what = "where the compiler gave a function up: it is run uncompiled since"
        found = _finding(facts, code, (told.run, told.phase), (said, implied), what)
        return replace(found, onset=cite.at)
    return _varied(facts, code)


def _varied(facts: Facts, code: str) -> Finding | None:
    """By the sizes that the steps print, and what the compiler says in the slow time alone."""
    anew = [m for m in facts.tagged(RECOMPILED.tag) if m.attempt == facts.last.n]
    run = course_in_order(facts) if len(anew) >= ANEW else None
    track = run.pace.track if run is not None else None
    if run is None or track is None:
        return None
    after = [phase for phase in run.settled if phase.begins >= run.best.ends]
    ends_so = bool(after) and after[-1].points[1] == len(run.pace.indexes) - 1
    if not ends_so or any(phase.part >= 1 - DROP for phase in after):
        return None
    fell = after[0].points[0]
    around = [run.pace.indexes[max(0, min(fell + n, len(run.pace.indexes) - 1))]
              for n in (-NEAR, NEAR)]  # fmt: skip
    first = track.lines[around[0]]
    if any(m.cite.line <= first for m in anew if m.cite.source == track.source):
        return None
    for name, at, values in printed_sizes(facts, track):
        moved = next((n for n, value in enumerate(values) if value != values[0]), 0)
        if moved < BEFORE or len(set(values[moved:])) < VARIED:
            continue
        if around[0] <= at[moved] <= around[1]:
            point = facts.point(track, at[moved])
            said = claim(f"{name[:1].upper()}{name[1:]} was {values[0]:g} until then and has been"
                         f" of {len(set(values[moved:]))} sizes since", point.cite)  # fmt: skip
            cites = [m.cite for m in anew[:2]]
            implied = claim("The program was compiled anew since then, and not before", *cites)
            what = f"where {name} began to vary; the compiler compiles anew since"
            found = _finding(facts, code, (run, after[0]), (said, implied), what)
            return replace(found, onset=point.cite.at, cannot_decide=(BOTH, RECOMPILED.open_))
    return None


def _finding(
    facts: Facts, code: str, slow: tuple[Course, Slow], told: tuple[Claim, Claim], what: str
) -> Finding:
    run, phase = slow
    step = steps_of(run, phase)[0]
    return Finding(
        code=code,
        summary=f"Throughput fell by {1 - phase.part:.0%} at step {step}, {what}",
        fault_class=RECOMPILED.fault_class,
        attribution="training",
        shows=(told[0], shown(facts, run, phase)),
        implies=(told[1],),
        strength=0.75,
        severity="degraded",
        scope="all",
        onset_step=step,
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(RECOMPILED.open_,),
        actions=(RECOMPILED.action,),
        resubmit="fix_first",
    )
