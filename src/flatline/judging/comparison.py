"""
A run beside its baseline: settings first, then equal steps, then every signal of every host.

A difference of settings comes before any other: where the work of a step, the hardware or the
software is not the same, a difference of speed is no fault.
"""

from __future__ import annotations

from flatline.facts import Facts
from flatline.judging.levels import Level, changes, hardware, levels, models
from flatline.judging.settings import WORK, settings
from flatline.judging.steps import measures
from flatline.model import Cite, Comparison, Gap, Measure, Setting

OTHER_LOSS = 0.2
"""Seeds and data orders part losses by a few per cent, from the first step on by no fifth."""
COURSE, TIGHT = 50, 0.05
"""Equal steps whose losses tell that the work was the same where no configuration is printed, and
how near to one another they must lie, from the first on."""
_BLOCKS_SPEED = ("work", "speed")
_BLOCKS_LEARNING = ("work", "learning")


def comparison(facts: Facts) -> Comparison | None:
    """What the run and its baseline differ in; None where it has none."""
    return facts.memo("comparison", _compared)


def beside_baseline(facts: Facts, gaps: list[Gap]) -> Comparison | None:
    """The run beside its baseline; a comparison that breaks is a gap, as a family is."""
    try:
        return comparison(facts)
    except Exception as fault:
        said = f"it broke: {type(fault).__name__}: {fault}"
        gaps.append(Gap("a comparison with a baseline", said))
        if facts.strict:
            raise
        return None


def signal_levels(facts: Facts) -> dict[str, Level]:
    """Every signal that the run and its baseline both carry; empty where it has none."""
    return facts.memo("comparison.levels", _levels)


def _levels(facts: Facts) -> dict[str, Level]:
    return {} if facts.baseline is None else dict(levels(facts, facts.baseline))


def _compared(facts: Facts) -> Comparison | None:
    other = facts.baseline
    if other is None:
        return None
    differ, agreed = settings(facts, other)
    printed = any(name in WORK for name in agreed)
    found = [*_program(facts, other), *_shape(facts, other)]
    found += [*_machines(facts, other, agreed), *differ]
    found = list({one.name: one for one in reversed(found)}.values())[::-1]
    order = ("work", "speed", "learning", "start", "place", "other")
    found.sort(key=lambda one: order.index(one.weight))
    start = _start(facts, other)
    found += [start] if start is not None else []
    same_hosts = bool(facts.hosts) and set(facts.hosts) == set(other.hosts)
    known = signal_levels(facts)
    if not facts.hosts and known:  # what the metrics cover, where neither log nor record tells
        first = next(iter(known.values()))
        same_hosts = first.ours.keys() == first.theirs.keys()
    told = measures(facts, other, same_hosts)
    found = [*_other_course(told), *found]
    same = printed or any(_one_course(measure) for measure in told)
    return Comparison(
        targets=other.targets,
        job=other.job.id if other.job is not None else None,
        chosen=other.chosen,
        hosts=other.hosts,
        alike=_alike(found, same, _BLOCKS_SPEED),
        learns_alike=_alike(found, printed, _BLOCKS_LEARNING),
        same_hosts=same_hosts,
        settings=tuple(found),
        agreed=tuple(agreed),
        measures=told,
        signals=changes(facts, other, known),
        compared=tuple(known),
        gaps=(*other.gaps, *_unmatched(facts, other)),
    )


def _alike(found: list[Setting], same: bool, blocking: tuple[str, ...]) -> bool | None:
    """False where a setting forbids to compare, None where none that matters is known alike or an
    unknown one differs."""
    if any(one.weight in blocking for one in found):
        return False
    return True if same and not any(one.weight == "other" for one in found) else None


def _one_course(measure: Measure) -> bool:
    """Whether the losses fall alike step by step: other work would not."""
    tight = not measure.differs and measure.noise_ratio <= TIGHT
    return measure.name == "loss" and measure.points >= COURSE and tight


def _other_course(told: tuple[Measure, ...]) -> list[Setting]:
    """That the losses were other from the first steps on: another model, data, or loss."""
    return [
        Setting("course of the loss", "work", f"{one.ours:.4g}", f"{one.theirs:.4g}", one.cites)
        for one in told
        if one.name == "loss"
        and one.differs
        and one.since_step is None
        and abs(one.change_ratio) > OTHER_LOSS
    ]


def _program(facts: Facts, other: Facts) -> list[Setting]:
    """That steps are printed in another format, by another program."""
    mine, its = facts.main_track(facts.last.n), other.main_track(other.last.n)
    if mine is None or its is None or mine.format == its.format:
        return []
    cites = (facts.point(mine, mine.of_attempt(facts.last.n)[0]).cite,
             other.point(its, its.of_attempt(other.last.n)[0]).cite)  # fmt: skip
    return [Setting("program", "work", mine.format, its.format, cites)]


def _unmatched(facts: Facts, other: Facts) -> list[Gap]:
    """That a store was read of one of the two alone."""
    return [
        Gap(f"a comparison of {kind}", "this run left them, the baseline did not")
        for kind in sorted(facts.stores - other.stores)
    ]


# --- what the records and the metrics say of the shape -----------------------------------------


def _shape(facts: Facts, other: Facts) -> list[Setting]:
    """Nodes and GPUs as accounting has them, and where the runs ran."""
    out: list[Setting] = []
    mine, its = facts.job, other.job
    if mine is not None and its is not None:
        cites: tuple[Cite, ...] = (mine.cite, its.cite)
        for name, a, b in (("nodes", mine.node_count, its.node_count),
                           ("GPUs", mine.gpus, its.gpus)):  # fmt: skip
            if a is not None and b is not None and a != b:
                out.append(Setting(name, "work", str(a), str(b), cites))
        if mine.nodes and its.nodes and set(mine.nodes) != set(its.nodes):
            left = len(set(mine.nodes) - set(its.nodes))
            theirs = f"without {left} of them"
            out.append(Setting("hosts", "place", ", ".join(mine.nodes[:4]), theirs, cites))
    return out


def _machines(facts: Facts, other: Facts, agreed: list[str]) -> list[Setting]:
    """What the metrics tell of the hardware; what is alike joins the settings that agree."""
    out: list[Setting] = []
    for name, weight, far, a, b in hardware(facts, other):
        if far:
            told = _number(a.value, a.unit), _number(b.value, b.unit)
            out.append(Setting(name, weight, *told, (a, b)))
        elif name in ("GPUs measured", "highest SM clock", "GPU memory"):
            agreed.append(name)
    (mine, cite), (its, its_cite) = models(facts), models(other)
    if mine and its and cite is not None and its_cite is not None:
        if mine != its:
            told = ", ".join(sorted(mine)), ", ".join(sorted(its))
            out.append(Setting("GPU model", "speed", *told, (cite, its_cite)))
        else:
            agreed.append("GPU model")
    return out


def _number(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value / 2**30:.0f} GiB"
    return f"{value / 1e6:.0f} MHz" if unit == "hertz" else f"{value:g}"


def _start(facts: Facts, other: Facts) -> Setting | None:
    """That one began from a checkpoint and the other did not, or from another step."""
    mine, its = restored(facts), restored(other)
    if (mine is None) == (its is None) and (mine is None or its is None or mine[0] == its[0]):
        return None
    told = [f"a checkpoint{at[0]}" if at is not None else "no checkpoint its log names"
            for at in (mine, its)]  # fmt: skip
    cites = tuple(at[1] for at in (mine, its) if at is not None)
    return Setting("starts from", "start", told[0], told[1], cites)


def restored(facts: Facts) -> tuple[str, Cite] | None:
    """From where the last attempt was restored, and what says so; None where nothing does."""
    marks = [
        mark
        for mark in facts.markers_of("checkpoint_loaded", "resume")
        if mark.attempt == facts.last.n
    ]
    if not marks:
        return None
    steps = [mark.progress.step for mark in marks if mark.progress.step is not None]
    return (f" of step {steps[0]:,}" if steps else ""), marks[0].cite


# --- what it leaves open ----------------------------------------------------------------------


def unexplained(compared: Comparison, *, found: bool) -> tuple[str, ...]:
    """A difference of speed that no setting allows to be judged, or that nothing explains."""
    pace = compared.pace
    if pace is None or not pace.differs:
        return ()
    how = f"{abs(pace.loss_ratio):.1%} {'slower' if pace.loss_ratio > 0 else 'faster'}"
    if compared.alike is False:
        weighty = [one for one in compared.settings if one.weight in _BLOCKS_SPEED]
        named = ", ".join(f"{one.name} {one.ours} against {one.theirs}" for one in weighty[:3])
        return (f"Whether it is a fault that the run is {how} than the baseline: they are set"
                f" differently ({named}), which comes before any other reason.",)  # fmt: skip
    if found or pace.loss_ratio <= 0:
        return ()
    seen = (
        f"of {len(compared.compared)} signals compared none that moved explains it"
        if compared.compared
        else "no signal could be compared, for not both runs left metrics"
    )
    return (f"Why the run is {how} than the baseline: {seen}.",)


def slower_unexplained(compared: Comparison | None) -> str | None:
    """That a run was slower than a baseline from which no setting sets it apart: such a run is not
    healthy until something explains it."""
    pace = compared.pace if compared is not None else None
    if compared is None or pace is None or compared.alike is False or pace.loss_ratio <= 0:
        return None
    if not pace.differs:
        return None
    how = f"{pace.loss_ratio:.1%} slower than its baseline"
    return f"The run is {how}, and nothing that was read shows why"
