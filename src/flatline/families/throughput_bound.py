"""
The run is slow everywhere alike, for a reason that can be named.

Symptom:
    Every rank advances at the same low pace: checkpoints at nearly every step, garbage
    collected again and again, collectives over sockets instead of the fast fabric, or every
    launch serialised by a debug setting.

Mechanism:
    Storage, interconnect or the launch path sets the pace of the step, not the compute.

Told apart from:
    D3 straggler: one rank sets the pace.
    D4 network-degradation: some hosts lose packets.
    D6 training-dynamics-slowdown: the work itself grew, or is compiled anew again and again.
    Frequent saves that cost little, being small or asynchronous, short collections of garbage,
    and pauses of which no line says what was done in them: they may be evaluations.
    Hosts that send much over both networks, or over the plain one alone while their GPUs are at
    work all the same, a message that advises CUDA_LAUNCH_BLOCKING, and a
    run that has it set and draws its power, or keeps its GPUs busy, all the same: its kernels are
    long.
    Ports at a lower rate than in a baseline run that was no faster.

Do:
    Save less often, collect less garbage, restore the fast transport, unset CUDA_LAUNCH_BLOCKING.

References:
    NCCL environment variables (NCCL_NET, NCCL_IB_DISABLE); CUDA_LAUNCH_BLOCKING;
    HIP_LAUNCH_BLOCKING and AMD_SERIALIZE_KERNEL of ROCm.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.judging.again import COLLECTED, again
from flatline.judging.beside import beside
from flatline.judging.beside_saves import nothing_else
from flatline.judging.bypassed import REASONS, bypassed, filled, used
from flatline.judging.claims import claim
from flatline.judging.congestion import congested
from flatline.judging.costly_steps import Cost, Stated, cost, saves_begun, stated_saves
from flatline.judging.fell_back import fell_back
from flatline.judging.launches import launches
from flatline.judging.losses import FELL_BACK
from flatline.judging.one_rail import one_rail
from flatline.judging.reductions import reduction
from flatline.judging.settings import NOT_SET, settings
from flatline.judging.slower_device import slower_device
from flatline.judging.throughput import checkpoint_steps
from flatline.judging.tries_beside import slower_than_before
from flatline.judging.two_logs import two_logs
from flatline.judging.two_networks import two_networks
from flatline.judging.two_tries import two_tries
from flatline.judging.uniform import as_fast, slow_fabric
from flatline.model import Action, Cite, Claim, Cleared, Finding, Judgement, LogCite
from flatline.signals import LOSS

CODE = "D2"
NAME = "throughput-bound"
NEEDS = ("GPU activity metrics", "network and storage metrics", "a baseline run")
DECIDED_BY = (
    "the part of a step spent in collectives, saving and launching (profiler trace of some steps)"
)
EXPLAINS = {"F3": "a run at a fraction of its pace does not reach its plan in time"}

STORM = 0.25
"""Of the time by the clock spent on saving: a quarter is not worth what it protects from."""
HEAVY, LONG_RUN_S = 0.15, 1800.0
"""The same of a run that was no trial, where the log says when each save had ended: some four
times what tuned schedules spend (3.5 %, CheckFreq, FAST 2021).  Told below 0.8."""
SAVES = 4
"""Fewer saves show no habit."""
LONG_SAVE_S = 120.0
"""A judgement: two saves are a habit where each holds the run for minutes."""
REDUCING = 0.5
"""Of a step that goes into reducing gradients: more than all of the computing takes."""
UNCOSTED = 0.79
"""Where nothing shows that the GPUs wait for what goes over the plain network."""
BESIDE = "Whether all of that time went into saving: no line says when a save ended."
EACH = "Whether all of that time went into saving: a save follows each of its lines."
MORE = "What else was done in that time: the log tells of more beside its saves."
PLAINLY, FED_LATE = 0.65, 0.2
"""What a network that much is sent over is worth where its rate is not known, and of a step what
may be spent on waiting for data."""
IN_GAPS = 0.6
"""Gaps have many makers; that the setting is on names the likeliest."""
UNLIKE_BASELINE = 0.86
"""A run that was set alike but for this had no such gaps."""
_WAITS_SET = re.compile(r"LAUNCH_BLOCKING|SERIALIZE_KERNEL")
_SHOWN = 3


def judge(facts: Facts) -> Judgement:
    """Saves that take the run's time, compiling anew or collecting garbage, by the log's clock;
    collectives that bypass the fast fabric, by its adapters' counters; launches that wait for one
    another, by the setting the log shows and the gaps or the unused power; a fabric slower on
    every host than in a baseline."""
    saved = checkpoint_steps(facts)
    saved = saved if len(saved) >= SAVES else saves_begun(facts)
    storm = cost(facts, saved, SAVES, HEAVY)
    if storm is not None and _a_storm(facts, storm):
        return _saving(facts, storm)
    stated = stated_saves(facts)
    if stated is not None and _heavy(stated):
        return _said_to_save(facts, stated)
    found = (
        again(facts, CODE, COLLECTED)
        or two_tries(facts, CODE)
        or two_logs(facts, CODE)
        or two_networks(facts, CODE)
        or _bypassed(facts)
        or slower_device(facts, CODE)
        or _on_a_plain_network(facts)
        or one_rail(facts, CODE)
        or slower_than_before(facts, CODE)
        or _serialised(facts)
        or slow_fabric(facts, CODE)
        or fell_back(facts, CODE)
        or _crowded(facts)
        or _reducing(facts)
    )
    return found or _cleared(facts)


def _a_storm(facts: Facts, saves: Cost) -> bool:
    """Whether saves took so much of the time, or, each of them about as much, a good part of a run
    that was no trial and says when each had ended."""
    if saves.lost_s >= STORM * saves.wall_s:
        return True
    ended = len(checkpoint_steps(facts)) >= SAVES
    usual_s = (saves.costly_s - saves.usual_s) * saves.events
    habit = ended and saves.wall_s >= LONG_RUN_S and usual_s >= HEAVY * saves.wall_s
    return habit and nothing_else(facts)


def _heavy(stated: Stated) -> bool:
    """Whether the saves that say what they took are many, or two that took minutes each."""
    enough = stated.events >= SAVES or (
        stated.sure and stated.events >= 2 and stated.lost_s >= stated.events * LONG_SAVE_S
    )
    habit = stated.sure and stated.events >= SAVES and stated.wall_s >= LONG_RUN_S
    return enough and stated.lost_s >= (HEAVY if habit else STORM) * stated.wall_s


def _cleared(facts: Facts) -> Cleared | None:
    """As fast as a baseline that was set alike, with as much resent and as much waited for."""
    lost = [name for name in LOSS if facts.measured(name)]
    waits = [name for name in ("host_io_pressure_seconds_total", "host_io_pressure_ratio")
             if facts.measured(name)]  # fmt: skip
    return as_fast(facts, CODE, (lost[0], waits[0])) if lost and waits else None


# --- saving -------------------------------------------------------------------------------------


def _said_to_save(facts: Facts, stated: Stated) -> Finding:
    share = stated.lost_s / stated.wall_s
    shown = stated.cites[:_SHOWN]
    return Finding(
        code=CODE,
        summary=f"Saving checkpoints {'took' if stated.sure else 'may have taken'} {share:.0%} of"
        " the run's time",
        fault_class="checkpoint-storm",
        attribution="job",
        shows=(
            claim(f"{stated.events} lines on saves say that these took {stated.lost_s:.0f} s of"
                  f" {stated.wall_s:.0f} s by {stated.clock}"
                  + (f", {stated.how}" if stated.sure else ""),
                  *shown, stated.cites[-1]),
        ),
        implies=(claim("Every rank waits while one saves, unless it is done beside the steps.",
                       *shown),),
        strength=0.4 if not stated.sure else 0.75 if share >= STORM else 0.6,
        role="cause" if stated.sure else "warning",
        severity="degraded" if stated.sure else "warning",
        took_s=(stated.lost_s, stated.wall_s) if stated.sure else None,
        scope="all",
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(
            "Whether the storage is slow or the checkpoints are large.",
            *(() if stated.sure else ("Whether they were saved beside the steps: nothing dates"
                                      " the log or the run.",)),
        ),
        actions=(
            Action("fix", "Save less often, or asynchronously: once in the time that may be"
                   " lost, not once a few steps."),
        ),
        resubmit="fix_first",
    )  # fmt: skip


def _saving(facts: Facts, storm: Cost) -> Finding:
    points: list[Cite] = [storm.cite(at) for at in dict.fromkeys(storm.at)]
    ended = facts.markers_of("checkpoint_saved")
    whole = len(ended) >= SAVES
    told = ended if whole else facts.tagged("save-begun")
    marks = [m.cite for m in told][:_SHOWN]
    share, other = storm.lost_s / storm.wall_s, not nothing_else(facts)
    alone = not (other or storm.printed)
    usual = "and by their own word" if storm.printed else "the others"
    return Finding(
        code=CODE,
        summary=f"Saving checkpoints took {share:.0%} of the run's time",
        fault_class="checkpoint-storm",
        attribution="job",
        shows=(
            claim(f"{storm.events} checkpoints were saved; steps beside a save took"
                  f" {storm.costly_s:.3g} s each, {usual} {storm.usual_s:.3g} s",
                  *marks, *points),
        ),
        implies=(
            claim(f"Of {storm.wall_s:.0f} s from its first step to its last {storm.lost_s:.0f} s"
                  + (" are in none of its steps." if storm.printed else " went into saving."),
                  *points),
        ),
        strength=0.6 if share < STORM else 0.85 if whole and alone else 0.7,
        most=1.0 if alone else UNCOSTED,
        role="warning" if share < STORM and facts.disposition == "timeout" else "cause",
        severity="degraded",
        took_s=(storm.lost_s, storm.wall_s),
        scope="all",
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Whether the storage is slow or the checkpoints are large.",
                       *(() if whole else (BESIDE,)), *((MORE,) if other else ()),
                       *((EACH,) if storm.printed else ())),
        actions=(
            Action("fix", "Save less often, or asynchronously: once in the time that may be"
                   " lost, not once a few steps."),
        ),
        resubmit="fix_first",
    )  # fmt: skip


def _crowded(facts: Facts) -> Finding | None:
    """A fabric ahead of every host's port that did not take their traffic, its links sound."""
    found = congested(facts)
    if found is None:
        return None
    lost = 1 - found.phase.part
    return Finding(
        code=CODE,
        summary=f"The fabric was congested for every host alike, and the run {lost:.0%} slower",
        fault_class="slow-interconnect",
        attribution="infrastructure",
        strength=0.76,
        severity="degraded",
        shows=found.shows,
        implies=(claim("Collectives take longer on every host: their ports may not send what they"
                       " have.", *found.shows[0].cites),),
        scope="all",
        onset=datetime.fromtimestamp(found.phase.begins, UTC),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Whose traffic filled it: the switches' counters and the other jobs' would"
                       " tell.",),
        actions=(
            Action("escalate", "See which jobs began to send at that time, and what the switches"
                   " between the hosts dropped or held back.", "sacct -a -X -S START -E END"),
        ),
        resubmit="as_is",
    )  # fmt: skip


def _reducing(facts: Facts) -> Finding | None:
    """Steps that consist of reducing gradients, by the program's own timers."""
    told = reduction(facts)
    if told is None or told.lost_s < REDUCING * told.wall_s:
        return None
    share = told.lost_s / told.wall_s
    whose = "the rank that waited least" if told.least else "the rank that prints it"
    return Finding(
        code=CODE,
        summary=f"{share:.0%} of a step goes into reducing gradients over the ranks",
        fault_class="slow-interconnect",
        attribution="infrastructure",
        strength=0.7 if told.least else 0.55,
        severity="degraded",
        shows=(
            claim(f"Of steps that tell their parts, {len(told.cites)} in all, {whose} spent"
                  f" {told.lost_s:.3g} s of {told.wall_s:.3g} s in the reduction of gradients",
                  *told.cites[:_SHOWN], told.cites[-1]),
        ),
        implies=(claim("The GPUs wait for the network longer than they compute.",
                       told.cites[-1]),),
        scope="all",
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(
            "Whether the fabric is slow for its kind or the steps are short for the model: its"
            " links were not measured.",
            *(() if told.least else ("Whether that rank waits for a late one: the other ranks'"
                                     " times were not printed.",)),
        ),
        actions=(
            Action("collect", "Measure the fabric on these hosts (nccl-tests all_reduce_perf) and"
                   " see by NCCL_DEBUG=INFO which network NCCL took; accumulate gradients over"
                   " more batches, or overlap their reduction, where the fabric is as it should"
                   " be."),
        ),
        resubmit="fix_first",
    )  # fmt: skip


# --- the fabric is not used ---------------------------------------------------------------------


def _bypassed(facts: Facts) -> Finding | None:
    """Hosts that send much over the plain network and nothing over adapters that are up, by what
    the GPUs make of it: a warning where they work all the same."""
    seen = bypassed(facts)
    if seen is None:
        return None
    known = used(facts)
    waits, works = known is not None and known.waits, known is not None and known.works
    if seen.ready is None and not (seen.fills or works):
        return None
    moved = claim(f"Every host {seen.verb} at least {seen.least.value / 1e6:,.0f} MB/s over its"
                  f" plain network and at most {seen.most.value / 1e6:.2f} MB/s over RDMA"
                  + (", whose ports were up" if seen.ready else ""),
                  *filter(None, (seen.least, seen.most, seen.ready)))  # fmt: skip
    shows = [
        moved,
        *([claim("NCCL says that it uses sockets", *seen.said)] if seen.said else []),
        *(
            [claim("It says why it uses no adapter", *seen.reasons[:_SHOWN])]
            if seen.reasons
            else []
        ),
        *([known.shows] if known is not None and waits else []),
    ]
    return Finding(
        code=CODE,
        summary="Collectives ran over the plain network while the RDMA adapters lay idle"
        + ("; the GPUs were at work all the same" if works else ""),
        fault_class="slow-interconnect",
        attribution="infrastructure",
        shows=tuple(shows),
        implies=() if works else (
            claim(f"{FELL_BACK}; every collective pays for it.", seen.least, seen.most),
        ),
        strength=0.3 if works else 0.88 if waits else 0.8,
        most=1.0 if seen.ready and (waits or seen.fills) else UNCOSTED,
        role="warning" if works else "cause",
        severity="warning" if works else "degraded",
        scope="all",
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(
            *(() if seen.reasons else ("Why it fell back: NCCL_DEBUG=INFO names the transport it"
                                       " chose.",)),
            *(() if seen.ready else ("Whether the adapters' ports were up: no exporter tells.",)),
            *(() if waits or works else ("What it costs: nothing that was read shows that"
                                         " the GPUs wait.",)),
        ),
        actions=(
            Action("rerun", "Run a few steps with the library's own log and look for NET/Socket.",
                   "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET")
            if not seen.reasons else
            Action("fix", "Give the processes the adapters: libibverbs and the devices in the"
                   " container (ibv_devinfo inside it), NCCL_IB_DISABLE unset."),
        ),
        resubmit="unknown" if works else "fix_first",
    )  # fmt: skip


def _fed_late(facts: Facts) -> bool:
    """Whether the steps say that they wait for their data for a good part of their time."""
    track = facts.main_track(facts.last.n)
    if track is None:
        return False
    known = [(track.data_s[i], track.step_s[i]) for i in track.of_attempt(facts.last.n)]
    parts = [data / whole for data, whole in known if isfinite(data) and whole > 0]
    return bool(parts) and median(parts) >= FED_LATE


def _on_a_plain_network(facts: Facts) -> Finding | None:
    """Hosts without a fast fabric that is known of, whose collectives fill the network they have
    while all GPUs wait."""
    sent, known = filled(facts), used(facts)
    if sent is None or known is None or not known.waits or _fed_late(facts):
        return None
    least, said = sent
    why = tuple(m.cite for m in facts.tagged(REASONS) if m.attempt == facts.last.n)[:_SHOWN]
    return Finding(
        code=CODE,
        summary="Collectives filled the plain network between the hosts, and all GPUs waited",
        fault_class="slow-interconnect",
        attribution="infrastructure",
        shows=(
            claim("NCCL says that it uses sockets", said, *why),
            claim(f"Every host sent at least {least.value / 1e6:,.0f} MB/s over it", least),
            known.shows,
        ),
        implies=(claim("Steps take as long as what their collectives send does.", least),),
        strength=PLAINLY,
        most=PLAINLY,
        severity="degraded",
        scope="all",
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Whether it was all that the network carries, and all of it collectives'.",
                       "Whether these hosts have a faster network that is theirs to use: their"
                       " adapters would tell.",),
        actions=(
            Action("rerun", "Have NCCL use the fast adapters where there are any: its log says"
                   " which plugin it looked for.  Where there are none, send less: accumulate"
                   " gradients, shard within a host.",
                   "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET"),
        ),
        resubmit="fix_first",
    )  # fmt: skip


# --- every launch waits -------------------------------------------------------------------------


def _serialised(facts: Facts) -> Finding | None:
    """
    The setting stands in the log, steps went on, and something shows what it costs: gaps on every
    GPU alike, or little power on GPUs that look busy.  Where neither was measured it is a warning.
    """
    found = launches(facts)
    if found is None or found.cheap:
        return None
    if found.costs is None:
        return _unweighed(facts, found.said)
    doubt = " A loader that is late leaves the same gaps." if found.gaps else (
        " Whether all else was the same then the log alone says." if found.told else
        " A small or memory-bound model draws little power too.")  # fmt: skip
    without = _without(facts)
    return Finding(
        code=CODE,
        summary="Every kernel launch waited for the one before it: a debugging setting is on",
        fault_class="launch-blocking",
        attribution="job",
        shows=(
            claim("The log shows the setting that makes each launch wait", *found.said[:_SHOWN]),
            found.costs,
            *(() if without is None else (without,)),
        ),
        implies=(
            claim("The host launches a kernel only when the last has ended, so that the gaps"
                  " between them set the pace.", found.said[0], *found.costs.cites),
        ),
        strength=0.5 if without is None else UNLIKE_BASELINE,
        most=IN_GAPS if found.gaps and without is None else 1.0,
        severity="degraded",
        scope="all",
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(
            f"How much the setting costs: a few steps without it would tell.{doubt}",
        ),
        actions=(
            Action("fix", "Unset CUDA_LAUNCH_BLOCKING (HIP_LAUNCH_BLOCKING, AMD_SERIALIZE_KERNEL)"
                   " and compare the step time.", "unset CUDA_LAUNCH_BLOCKING"),
        ),
        resubmit="fix_first",
    )  # fmt: skip


def _without(facts: Facts) -> Claim | None:
    """That a baseline was faster which printed its environment and was set alike but for this."""
    known, other = beside(facts), facts.baseline
    if known is None or other is None or known.lost <= known.pace.noise_ratio:
        return None
    differ = [one for one in settings(facts, other)[0] if one.weight not in ("place", "start")]
    alone = len(differ) == 1 and _WAITS_SET.search(differ[0].name) and differ[0].theirs == NOT_SET
    return known.pace_claim() if alone else None


def _unweighed(facts: Facts, said: Sequence[LogCite]) -> Finding:
    """A warning: the setting is on, and nothing shows what it costs."""
    return Finding(
        code=CODE,
        summary="A debugging setting makes every kernel launch wait for the one before it",
        fault_class="launch-blocking",
        attribution="job",
        shows=(claim("The log shows the setting", *said[:_SHOWN]),),
        implies=(),
        strength=0.25,
        role="warning",
        severity="warning",
        scope="all",
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("What it costs: power and activity of the GPUs were not measured.",),
        actions=(Action("fix", "Unset it, unless an error is being looked for.",
                        "unset CUDA_LAUNCH_BLOCKING"),),
        resubmit="unknown",
    )  # fmt: skip
