"""A checkpoint that was loaded without its count of steps."""

from __future__ import annotations

import re

from flatline.facts import Facts, Marker
from flatline.judging.claims import claim
from flatline.judging.fresh_start import LOOKED_BACK, UNCOUNTED
from flatline.model import Action, Finding

_RESET = re.compile(r"reset[_-]optimizer['\"]?(?:[=:]\s?True| |$)")
"""fairseq's, in the settings it prints or a command line."""


def uncounted(facts: Facts, loaded: Marker, code: str) -> Finding | None:
    """That a checkpoint of a later epoch brought no count of steps, and none was wanted away."""
    said = loaded.progress
    if said.step != 0 or (said.epoch or 0) <= 1:
        return None
    track = facts.main_track(facts.last.n)
    steps = [facts.point(track, i) for i in track.of_attempt(facts.last.n)[:1]] if track else []
    saved = [m for m in facts.markers_of("checkpoint_saved") if m.attempt == facts.last.n]
    told = [(p.step, p.cite) for p in steps] + [(m.progress.step, m.cite) for m in saved[:1]]
    first, begun = next(((n, cite) for n, cite in told if n is not None), (None, None))
    if first is None or begun is None or first > UNCOUNTED:
        return None
    before = max(1, loaded.cite.line - LOOKED_BACK)
    settings = facts.lines(loaded.cite.source, before, loaded.cite.line - before)
    if any(_RESET.search(line) for line in settings):
        return None
    return Finding(
        code=code,
        summary=f"The checkpoint of epoch {said.epoch:.0f} was loaded without its count of steps"
        " and its optimizer",
        attribution="job",
        strength=0.6,
        severity="degraded",
        shows=(
            claim(f"The checkpoint says epoch {said.epoch:.0f} and 0 updates", loaded.cite),
            claim(f"Training went on at step {first}", begun),
        ),
        implies=(
            claim("The learning rate's schedule begins anew on weights that were trained; the"
                  " optimizer's state is new.", loaded.cite, begun),
        ),
        scope="all",
        onset=begun.at,
        onset_step=first,
        order=(loaded.cite.source, loaded.cite.line),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Whether the optimizer was meant to be new: the settings were not read.",),
        actions=(
            Action("fix", "Resume from a checkpoint that holds the optimizer's state, and without"
                   " resetting it."),
        ),
        resubmit="fix_first",
    )  # fmt: skip
