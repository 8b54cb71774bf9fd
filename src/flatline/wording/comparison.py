"""A comparison in the words and rows that every surface shows."""

from __future__ import annotations

from dataclasses import dataclass

from flatline.model import Cite, Comparison, Measure, SignalChange
from flatline.wording.places import counted, fold_hosts
from flatline.wording.untrusted import sentence

TITLE = "Compared with a baseline"
NAMED = 6
"""Settings that agree that are named before the rest is counted."""
HEADS = ("", "this run", "baseline", "change")
WITHIN = "in noise"
LEGEND = "* beyond what repeats of a run, or chance among all compared, make"


@dataclass(frozen=True, slots=True)
class Line:
    """One quantity in both runs; `apart` where it differs beyond noise."""

    apart: bool
    name: str
    ours: str
    theirs: str
    change: str
    note: str
    cites: tuple[Cite, ...]


def compact(value: float) -> str:
    """Four digits, with k, M, G or T: `3,262`, `1.41G`, `0.034`."""
    size = abs(value)
    for least, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e5, "k")):
        if size >= least:
            return f"{value / (1e3 if name == 'k' else least):.3g}{name}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if size >= 1e-3 or not size else f"{value:.1e}"


def title(compared: Comparison) -> str:
    """Which run it was compared with."""
    return f"Compared with job {sentence(compared.job)}" if compared.job else TITLE


def chosen(compared: Comparison) -> str:
    """The baseline, how it was chosen, and what of it could not be had."""
    named = ", ".join(compared.targets)
    said = f"Baseline {sentence(named)}, {sentence(compared.chosen)}."
    if compared.gaps:
        gaps = counted(len(compared.gaps), "gap")
        first = ", first" if len(compared.gaps) > 1 else ""
        said += f" It has {gaps} of its own{first}: {sentence(compared.gaps[0].need)}."
    return said


def verdict_on_settings(compared: Comparison) -> str:
    """Whether the two were set alike, in one sentence."""
    alike = list(compared.agreed)
    named = ", ".join(alike[:NAMED])
    more = f" and {len(alike) - NAMED} more" if len(alike) > NAMED else ""
    same = f" Alike in both: {sentence(named)}{more}." if alike else ""
    if compared.alike is False:
        return "They are set differently: their speeds are not compared as faults." + same
    if compared.alike is None:
        return "What they print does not settle whether they are set alike." + same
    return "They are set alike." + same


def setting_lines(compared: Comparison) -> tuple[tuple[str, str, str, tuple[Cite, ...]], ...]:
    """(name, ours, theirs, evidence) of every setting that differs."""
    return tuple(
        (sentence(one.name), sentence(one.ours), sentence(one.theirs), one.cites)
        for one in compared.settings
    )


def lines(compared: Comparison) -> tuple[Line, ...]:
    """Every quantity of training, then every signal that differs."""
    return (*map(_measured, compared.measures), *map(_signalled, compared.signals))


def _measured(one: Measure) -> Line:
    unit = f" ({one.unit})" if one.unit else ""
    equal = "equal steps" if one.axis == "steps" else "equal parts of epochs"
    over = f"{one.points:,} {equal}" if one.steps else "levels, no equal steps"
    note = f"over {over}; less than {one.noise_ratio * 100:.2g}% is noise"
    if one.since_step is not None and one.differs:
        note += f", apart since step {one.since_step:,}"
    change = f"{one.change_ratio:+.1%}" if one.differs else WITHIN
    return Line(one.differs, one.name + unit, compact(one.ours), compact(one.theirs),
                change, note, one.cites)  # fmt: skip


def _signalled(one: SignalChange) -> Line:
    change = f"{one.ours / one.theirs - 1:+.0%}" if one.theirs else "from 0"
    if one.hosts:
        return Line(True, one.signal, compact(one.ours), compact(one.theirs), "some hosts",
                    f"apart from the others: {fold_hosts(one.hosts)}", one.cites)  # fmt: skip
    where = f"on all {one.measured_on} hosts" if one.measured_on > 1 else "on the one host"
    return Line(True, one.signal, compact(one.ours), compact(one.theirs), change,
                f"median, {where}", one.cites)  # fmt: skip


def counted_signals(compared: Comparison) -> str:
    """How many signals were compared and how many differ."""
    count, differ = len(compared.compared), len(compared.signals)
    if not count:
        return "No signal was compared: both runs must have left metrics."
    what = "differs" if differ == 1 else "differ"
    return (
        f"Of {counted(count, 'signal')} compared {differ} {what}; by chance any one would in fewer"
        " than 1 of 100 comparisons."
    )
