"""
Findings that only a baseline shows: every place is alike, and other than it was.

What moved must have moved on every host, beyond chance among all signals compared, and the run
must be slower than its baseline at the same settings; at the same speed it is a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite

from flatline.facts import Facts
from flatline.judging.beside import Beside, beside
from flatline.judging.claims import claim
from flatline.judging.comparison import comparison
from flatline.judging.levels import settled
from flatline.judging.timeline import usual
from flatline.model import Action, Attribution, Claim, Cleared, Finding, QueryCite, Resubmit
from flatline.signals import ACTIVITY, LOSS

LOWER_CLOCK = 0.95
"""Of the baseline's clock: the median of many like GPUs varies far less than the 8 % of single
ones (arXiv 2208.11035)."""
LOWER_LIMIT = 0.97
"""Limits are set, they do not vary."""
IDLER, IDLER_BY = 0.85, 0.1
"""Activity below this part of the baseline's, and so much lower."""
MOVED_OVER = 0.5
"""Of the RDMA traffic that is gone where a transport was left."""


def uniform(
    known: Beside, code: str, *, fault_class: str | None, attribution: Attribution, summary: str,
    shows: Sequence[Claim], implies: str, strength: float, action: Action,
    cannot: Iterable[str] = (), resubmit: Resubmit = "fix_first",
) -> Finding:  # fmt: skip
    """A finding on every place alike: a cause where the run is slower, else a warning."""
    slower = known.slower
    said = f", and the run is {known.lost:.1%} slower" if slower else "; the run is no slower"
    return Finding(
        code=code,
        summary=summary + said,
        fault_class=fault_class,
        attribution=attribution,
        shows=(*shows, known.pace_claim()),
        implies=(claim(implies, *shows[0].cites),) if slower else (),
        strength=known.strength(strength) if slower else 0.3,
        role="cause" if slower else "warning",
        severity="degraded" if slower else "warning",
        scope="all",
        attempt=known.facts.last.n,
        ended_run=False,
        cannot_decide=(*cannot, *known.open_questions()),
        actions=(action,),
        resubmit=resubmit if slower else "unknown",
    )


def as_fast(facts: Facts, code: str, needed: Sequence[str]) -> Cleared | None:
    """That the run is no slower than a baseline set alike and that these signals are alike."""
    known = beside(facts)
    if known is None or not known.compared.alike or known.lost > known.pace.noise_ratio:
        return None
    if not all(name in known.levels and not known.rose(name) and not known.rose(name, -1)
               for name in needed):  # fmt: skip
        return None
    cites = (*known.pace_claim().cites, *(c for part in known.unmoved(()) for c in part.cites))
    return Cleared(code, "the run is as fast as a baseline that was set alike", cites)


# --- clocks -------------------------------------------------------------------------------------


def lower_clocks(facts: Facts, code: str) -> Finding | None:
    """Every GPU's clock below the baseline's under the same load."""
    known = beside(facts)
    if known is None or not known.alike or not known.rose("gpu_sm_clock_hertz", -1):
        return None
    level = known.levels["gpu_sm_clock_hertz"]
    activity = next((name for name in ACTIVITY if name in known.levels), None)
    if level.here > LOWER_CLOCK * level.there or activity is None or known.rose(activity, -1):
        return None
    limits = _limits(known)
    held = limits is not None and limits[0].value < LOWER_LIMIT * limits[1].value
    shows = [known.level_claim("gpu_sm_clock_hertz", "SM clock in Hz")]
    if held and limits is not None:
        shows.append(claim(f"The power limit of the median GPU is {limits[0].value:.0f} W, in the"
                           f" baseline {limits[1].value:.0f} W", *limits))  # fmt: skip
    if "gpu_power_watts" in known.levels:
        shows.append(known.level_claim("gpu_power_watts", "Power in watts", "{:.0f}"))
    return uniform(
        known, code,
        fault_class="power-limit" if held else "unexplained",
        attribution="infrastructure",
        summary=f"Every GPU ran at {level.here / level.there:.0%} of the baseline's clock"
        + (" under a lower power limit" if held else ""),
        shows=shows,
        implies="Every kernel takes longer on every device while its clock is held down.",
        strength=0.88 if held else 0.7,
        action=Action("fix", "Read limits and reasons on one node, and reset what was set.",
                      "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER"),
        cannot=() if held else ("What holds the clocks down: limits and reasons were not read"
                                " of both runs.",),
    )  # fmt: skip


def _limits(known: Beside) -> tuple[QueryCite, QueryCite] | None:
    """The power limit of the median GPU in both runs."""
    signal = "gpu_power_limit_watts"
    read = []
    for facts in (known.facts, known.other):
        cut = settled(facts)
        if cut is None or not facts.measured(signal):
            return None
        cite = usual(facts, f"last_over_time({signal}[{cut.length_s}s])", cut.ends[-1],
                     "power limit of the median GPU")  # fmt: skip
        if cite is None or not isfinite(cite.value):
            return None
        read.append(cite)
    return read[0], read[1]


# --- input --------------------------------------------------------------------------------------

_WAITS = (("storage", "host_io_pressure_seconds_total"), ("storage", "host_io_pressure_ratio"),
          ("cpu", "host_cpu_pressure_seconds_total"))  # fmt: skip


def idler(facts: Facts, code: str, signals: Sequence[str]) -> Finding | None:
    """GPUs on which less runs than in the baseline; a wait in a collective keeps them busy."""
    known = beside(facts)
    signal = next((name for name in signals if known is not None and name in known.levels), None)
    if known is None or signal is None or not known.slower or not known.rose(signal, -1):
        return None
    level = known.levels[signal]
    if level.here > IDLER * level.there or level.there - level.here < IDLER_BY:
        return None
    pressed = next(((k, name) for k, name in _WAITS if known.rose(name)), None)
    shows = [known.level_claim(signal, "Share of time in which something ran", "{:.0%}")]
    if pressed is not None:
        shows.append(known.level_claim(pressed[1], f"Waiting for {pressed[0]}", "{:.0%}"))
    return uniform(
        known, code,
        fault_class=pressed[0] if pressed is not None else None,
        attribution="job",
        summary=f"Something ran on the GPUs {level.here:.0%} of the time, in the baseline"
        f" {level.there:.0%}",
        shows=(*shows, *known.unmoved((signal,))),
        implies="Nothing was launched in the gaps: what feeds the GPUs is slower than it was.",
        strength=0.8 if pressed is not None else 0.65,
        action=Action("fix", "Compare the loaders' settings and the data's storage with the"
                      " baseline's; then give the loaders more workers and prefetching."),
        cannot=("What the gaps are made of: a profiler trace of a few steps would tell.",),
    )  # fmt: skip


# --- interconnect -------------------------------------------------------------------------------


def slow_fabric(facts: Facts, code: str) -> Finding | None:
    """Every host's ports at a lower rate, or its traffic moved off the fabric, without errors."""
    known = beside(facts)
    if known is None or not known.alike:
        return None
    clocks = known.rose("gpu_sm_clock_hertz", -1)
    if clocks or any(map(known.rose, LOSS)) or known.rose("host_procs_running"):
        return None
    shows: list[Claim] = []
    rate, sent, plain = ("rdma_port_rate_bytes_per_second", "rdma_transmit_bytes_total",
                         "network_transmit_bytes_total")  # fmt: skip
    if known.rose(rate, -1):
        shows.append(known.level_claim(rate, "Rate of the RDMA ports in bytes/s"))
        how = "Every host's RDMA ports were trained to a lower rate than in the baseline"
    elif known.rose(sent, -1) and known.rose(plain) and _moved_over(known, sent):
        shows += [known.level_claim(sent, "Sent over RDMA in bytes/s"),
                  known.level_claim(plain, "Sent over the plain network in bytes/s")]  # fmt: skip
        how = "The collectives moved from RDMA to the plain network on every host"
    else:
        return None
    return uniform(
        known, code,
        fault_class="slow-interconnect",
        attribution="infrastructure",
        summary=how,
        shows=(*shows, *known.unmoved((rate, sent, plain))),
        implies="Every collective takes longer, on every host alike and without an error.",
        strength=0.8,
        action=Action("escalate", "Compare links and transports of one node with the baseline's.",
                      "ibstat; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET"),
    )  # fmt: skip


def _moved_over(known: Beside, sent: str) -> bool:
    level = known.levels[sent]
    return level.here <= (1 - MOVED_OVER) * level.there


# --- the training itself ------------------------------------------------------------------------

_MEASURED = (("gpu_power_watts",), ("gpu_sm_clock_hertz",), ("host_procs_running",), LOSS)
"""What must be compared before the training itself is blamed, as in `judging.quiet`."""
_WORSE = {"gpu_power_watts": -1, "gpu_sm_clock_hertz": -1}


def other_dynamics(facts: Facts, code: str, moved: Iterable[tuple[str, str]]) -> Finding | None:
    """A training metric at another level than in the baseline while the machine is alike."""
    known = beside(facts)
    if known is None or not known.slower:
        return None
    for group in _MEASURED:
        here = [name for name in group if name in known.levels]
        if not here or any(known.rose(name, _WORSE.get(name, 1)) for name in here):
            return None
    for signal, words in moved:
        if signal in known.levels and known.rose(signal):
            return uniform(
                known, code,
                fault_class="expert-imbalance",
                attribution="training",
                summary=f"{words.capitalize()} is higher than in the baseline; no signal of the"
                " machine got worse",
                shows=(known.level_claim(signal, words.capitalize()), *known.unmoved((signal,))),
                implies="The model spreads its work otherwise, and a step costs more.",
                strength=0.7,
                action=Action("watch", "Look at the router: weight of the balance loss, capacity,"
                              " counts per expert, from the same step on in both runs."),
            )  # fmt: skip
    return None


# --- learning -----------------------------------------------------------------------------------

LOSS_APART = 0.1
"""A loss that ends a tenth above the baseline's: seeds and data orders make a few per cent."""


def apart_in_loss(facts: Facts, code: str) -> Finding | None:
    """The loss parted from the baseline's at the same steps, upwards, and stayed away: a warning
    where nothing tells that both were set alike."""
    compared = comparison(facts)
    loss = next((m for m in compared.measures if m.name == "loss"), None) if compared else None
    if (
        compared is None
        or loss is None
        or compared.learns_alike is False
        or loss.since_step is None
    ):
        return None
    if not loss.differs or loss.change_ratio < LOSS_APART:
        return None
    text = (
        f"From step {loss.since_step} the loss stands above the baseline's: {loss.ours:.4g}"
        f" against {loss.theirs:.4g} over the last third of {loss.points} equal steps"
    )
    return Finding(
        code=code,
        summary=text,
        fault_class="apart-from-baseline",
        attribution="training",
        shows=(claim(text, *loss.cites),),
        implies=(claim("Until there both runs learned alike; what changed there keeps this one"
                       " from what the other learned.", *loss.cites[:2]),),
        strength=0.75 if compared.learns_alike else 0.3,
        role="cause" if compared.learns_alike else "warning",
        severity="degraded" if compared.learns_alike else "warning",
        scope="all",
        onset_step=loss.since_step,
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Why they part (data, precision, a device that computes wrongly): the"
                       " batches of both runs at that step would tell.",),
        actions=(Action("fix", f"Compare both runs at step {loss.since_step}: the batch, the"
                        " learning rate, the gradients by rank."),),
        resubmit="fix_first",
    )  # fmt: skip
