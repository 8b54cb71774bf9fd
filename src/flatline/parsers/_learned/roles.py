"""
What the numbers of a training loop's lines are, by what they are called and by how they go.

Names tell losses, rates and times in the words that programs use; a name that means other things
elsewhere counts only where the numbers behave as a loss does.  A time of a step has to agree with
the clock beside it, where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, nan
from statistics import mean, median


def words(*alternatives: str) -> re.Pattern[str]:
    """One of these as a word of a name, in lower case."""
    return re.compile(rf"(?:^|[^a-z])(?:{'|'.join(alternatives)})(?:$|[^a-z])")


ASIDE = words(
    r"val(?:id(?:ation)?)?|eval(?:uation)?|test|dev|held[- ]?out|best|ema|lowest|min|max|target",
    r"prev|final|scale|weight|coef|eta|left|remaining|acc(?:uracy)?|aux|std",
)
"""What is no loss or pace of the step, or stands beside it."""
LOSS = words(
    r"[a-z]*loss(?:es)?|xent|x-?entropy|cross[_ -]?ent(?:ropy)?|n?ll|b?ce|(?:info_?)?n[c]e",
    r"n?r?mse|mae|l[12]|huber|elbo|silog|mlm|ppl|perplexity|bp[bcd]|chamfer|denoising",
    r"recon(?:struction)?|contrastive|nats|ctc|distill(?:ation)?",
    r"bits?(?:[/_ -]|[_ -]per[_ -])(?:byte|char|dim|token)",
)
WEAK_LOSS = words(
    r"lm|obj(?:ective)?|energy|err(?:or)?|cost|l|residual|misfit|train(?:ing)?|nelbo|bits|score",
)
"""Losses where they fall."""
RATE = words(r"lr|learning[_ ]rate|eta_t|step[_ ]?size")
NORM = words(r"gn|gnorm|g|grads?n?|grad(?:ient)?s?[_ -]?norm|norm|clip[_ ]norm|gradnorm")
_RETURNS = r"rew(?:ard)?s?|ep(?:isode)?_?(?:ret(?:urn)?|rew|len)|returns?|advantages?"
RETURN = words(_RETURNS)
REWARD = words(r"kl|entropy", _RETURNS)
PLANNED = words(
    r"lr|rate|temp(?:erature)?|eps(?:ilon)?|beta|mem\w*|gib|gb|wait|queue|tok\w*|len|size|seq|acc|util\w*",
    r"time|secs?|eta|dt|ms|free|left|noise|sigma|power|clock|mhz|norm|gn|grad\w*|g|share|ratio",
)
PARTS = words(r"fwd|bwd|forward|backward|opt(?:im(?:izer)?)?|mfu|tflops?")
COMPUTE = re.compile(
    r"(?:^|[^a-z])(?:fb|fwd|bwd|forward|backward|comp(?:ute)?|kernels?|opt(?:im(?:izer)?)?|env"
    r"|own|busy|device|body|work|self|roll-?outs?|simul\w*|learn(?:ing)?|act(?:ing)?|gen(?:eration)?)"
    r"(?:[_ ](?:time|step))?(?:[_ ]m?s(?:ec)?)?$"
)
DATA = re.compile(
    r"(?:^|[^a-z])(?:data|fetch|(?:data)?loader?|dataload(?:ing|er)?|dl|input|read|io|prefetch|feed"
    r"|batch[_ ]?wait|blocked|(?:a?wait|waiting)[_ ](?:for[_ ])?(?:next[_ ])?"
    r"(?:batch|data|input|loader|samples?)"
    r"|starv(?:ed|ation)|stall(?:ed)?)"
    r"(?:[_ ](?:wait|time|load|ing))?(?:[_ ]m?s(?:ec)?)?$"
)
SYNC = re.compile(
    r"all[_ -]?reduce|reduce[_ -]?scatter|all[_ -]?gather|(?:^|[^a-z])(?:(?:grad[_ ])?sync"
    r"|comm(?:unication|s)?|collectives?|barrier|exposed|[nr]ccl|ar|rs|ag|exchange|gate|peers?"
    r"|push|pull|a2a|all[_ -]?to[_ -]?all|halo)(?:$|[^a-z])"
)
BARE_WAIT = re.compile(
    r"^(?:t_)?(?:a?wait(?:ing|ed)?|idle|stall(?:ed)?)(?:[_ ](?:time|m?s(?:ec)?))*$"
)
_OF_STEP = r"it(?:er(?:ation)?)?|step|update|upd|batch|mb|opt"
_UNIT = r"m?s(?:ec(?:s|onds)?)?|seconds"
STEP = re.compile(
    rf"^(?:(?:train|global|opt|full|wall|total|t)[_ ./-])?(?:(?:{_OF_STEP})[_ ./-]?"
    rf"(?:time|dur(?:ation)?|{_UNIT}|took|wall|latency|t)?|time|dur(?:ation)?|[bs]?t|dt|took|pace"
    rf"|cadence|(?:done |took )?in|elapsed|{_UNIT}|(?:{_UNIT})[_ /](?:per[_ ])?(?:{_OF_STEP}))"
    rf"(?:[_ (\[](?:{_UNIT})[)\]]?)?$"
)
SINCE = re.compile(
    r"^(?:t|time|elapsed|wall(?:[_ ]?(?:time|clock))?|clock|since|at|\+)(?:[_ ](?:s|secs?))?$"
)
_A_SECOND = re.compile(
    r"^(?:[kmg]?([a-z]{2,12})(?:/|[_ ]per[_ ])s(?:ec(?:ond)?)?"
    r"|(tok(?:en)?s?|samples?|smpls?|seqs?|im(?:a)?gs?|images|frames?|clips?|graphs?|t|w|f|s)"
    r"(?:_?p|_)s(?:ec)?)(?:$|[/ ])"
)
_STEPS_A_SECOND = re.compile(r"^(?:its?|iter(?:ation)?s?|steps?|batch(?:es)?)(?:/|[_ ]per[_ ])s")
_NO_SAMPLES = re.compile(
    r"[kmgt]?i?(?:b|bits?|bytes?)|files?|docs?|documents?|lines?|rows?|reqs?|requests?|u|records?"
    r"|objs?|objects?|ops|calls?|msgs?|messages?|chunks?|shards?|keys?|fp"
)
"""What is counted by the second where nothing trains: bytes, files, documents, requests."""
_MILLI = re.compile(r"(?:^|[_ (\[/])ms(?:$|[)\]/ ])|^ms[_ /]")
_SECOND = re.compile(
    r"(?:^|[_ (\[/])s(?:ec(?:s|onds?)?)?(?:$|[)\]/ ])"
    r"|^s(?:ec(?:s|onds)?)?[_ /](?:per[_ ])?(?:[a-z]|$)"
)
COMPUTING = "computing"
"""What a step computes, which no point has: with its waits it is what the step took."""
FALLS, SHOWS_A_WAY = 0.985, 6
LEAST_TOLD, FALLEN, UNSTEADY = 20, 0.9, (0.05, 0.6)
"""Numbers that are enough, what is left of them in the last third, and the part of those behind
the highest that lie above the one before: a schedule that is warmed up falls without a rise."""
AS_LONG = (0.9, 1.1)
"""The same of a time whose name says nothing: what takes as long is the step."""
FITS = (0.3, 1.25)
"""Of what the clock says a step took: what it may print of it."""


@dataclass(frozen=True, slots=True)
class Role:
    """`what` of `Progress`, and what the number is multiplied by."""

    what: str
    scale: float = 1.0
    unit: str | None = None
    guessed: bool = False
    """By how the numbers go alone: one that is no number says nothing."""
    inverse: bool = False
    """Of steps a second."""

    def of(self, value: float) -> float:
        """What a number says in the unit of `what`."""
        if self.inverse:
            return self.scale / value if value > 0 else nan
        return value * self.scale


def loss_like(name: str, values: Sequence[float]) -> bool:
    """Whether a name is a loss's; one that may be another thing's has to fall as a loss does."""
    if ASIDE.search(name) or all(value.is_integer() for value in values if isfinite(value)):
        return False
    if LOSS.search(name):
        return True
    return bool(WEAK_LOSS.search(name)) and (falls(values) or not all(map(isfinite, values)))


def falls(values: Sequence[float]) -> bool:
    """Whether the last third of some numbers lies below the first."""
    told = [value for value in values if isfinite(value)]
    third = len(told) // 3
    if len(told) < SHOWS_A_WAY or min(told) < 0:
        return False
    return mean(told[-third:]) < FALLS * mean(told[:third])


def falls_unsteadily(name: str, unit: str, values: Sequence[float]) -> bool:
    """Whether numbers that nothing names a loss behave as one: they fall, and not by a plan."""
    told = [value for value in values if isfinite(value)]
    if unit or ASIDE.search(name) or PLANNED.search(name) or len(told) < LEAST_TOLD:
        return False
    third, pairs = len(told) // 3, list(pairwise(told[told.index(max(told)) :]))
    rises = sum(after > before for before, after in pairs) / max(1, len(pairs))
    whole = all(value.is_integer() for value in told)
    fallen = mean(told[-third:]) < FALLEN * mean(told[:third])
    return min(told) > 0 and not whole and fallen and UNSTEADY[0] <= rises <= UNSTEADY[1]


def throughput(name: str, unit: str) -> str | None:
    """What is counted by the second, where it is something that trains on it."""
    for said in (unit, name):
        found = _A_SECOND.match(said)
        kind = (found[1] or found[2]) if found else ""
        if not kind or _NO_SAMPLES.fullmatch(kind) or kind in ("it", "step", "steps"):
            continue
        if kind.startswith("tok") or kind in ("t", "w"):
            return "tokens/s"
        return "images/s" if kind.startswith("im") else "samples/s"
    return None


def seconds(name: str, unit: str) -> float | None:
    """What a time is multiplied by to be in seconds; None where nothing says its unit."""
    for said in (unit, name):
        if _MILLI.search(said):
            return 1e-3
        if _SECOND.search(said):
            return 1.0
    return (
        60.0 if unit in ("min", "mins", "minutes") else 3600.0 if unit in ("h", "hours") else None
    )


def steps_time(
    columns: Sequence[tuple[str, str, Sequence[float]]], wall_s: float | None
) -> tuple[int, Role] | None:
    """Which column is what a step took, and how it says so.  `wall_s`: what one took by the clock;
    without it a unit is asked for."""
    found: list[tuple[float, int, Role]] = []
    computed = sum(COMPUTE.search(name) is not None for name, *_ in columns)
    for n, (name, unit, values) in enumerate(columns):
        told = [value for value in values if isfinite(value)]
        scale = seconds(name, unit)
        if not told or min(told) <= 0 or ASIDE.search(name) or _rises(told):
            continue
        rate = bool(_STEPS_A_SECOND.search(unit) or _STEPS_A_SECOND.search(name))
        if COMPUTE.search(name) and computed > 1:  # the optimiser's part of it
            continue
        named = rate or bool(STEP.match(name)) or (not name and scale is not None)
        if wall_s is not None and scale is not None:
            low, high = (share * wall_s for share in AS_LONG)
            named = named or low <= scale * median(told) <= high
        if not named:
            continue
        tried = (scale,) if scale is not None else (1.0, 1e-3) if wall_s is not None else ()
        for by in (1.0,) if rate else tried:
            role = Role("step_s", by, inverse=rate)
            took = role.of(median(told))
            if wall_s is None or FITS[0] * wall_s <= took <= FITS[1] * wall_s:
                found.append((took, n, role))
    best = max(found, default=None, key=lambda one: (not one[2].inverse, one[0]))
    return None if best is None else (best[1], best[2])


def _rises(told: Sequence[float]) -> bool:
    """Whether it is what has passed: it only ever grows."""
    return len(told) > 3 and all(a < b for a, b in pairwise(told))


def part_role(name: str) -> Callable[[float], Role] | None:
    """What makes the role of a part of a step by its name, given its scale."""
    if ASIDE.search(name):
        return None
    if DATA.search(name):
        return lambda scale: Role("data_s", scale)
    if SYNC.search(name):
        return lambda scale: Role("sync_s", scale)
    if COMPUTE.search(name):
        return lambda scale: Role(COMPUTING, scale)
    return None
