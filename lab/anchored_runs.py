"""The worlds of `generate_slow.py` that slow down by little, or for minutes, while a counter
bursts: what only shows at the moments that the counter names."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

from generate_slow import Value, World, counter, steps
from slow_runs import CLEAN, TWELVE, Labels, gpu, lamp, maxtext, until

RACK = tuple(f"rack{n:02d}" for n in range(1, 5))
When = Callable[[float], bool]
SPAN = 6600.0


# --- an NVLink that errs ------------------------------------------------------------------------


def link(
    name: str,
    errs: When,
    took: Callable[[float], float],
    *,
    xid_s: float = SPAN,
    ends: bool = True,
) -> World:
    """One GPU's NVLink sends again at some times, and the driver names it from a moment on; a run
    of 2,950 steps that ends well, or that is cut off."""

    def xid(noise: random.Random, labels: Labels, at: float) -> float:
        return 74.0 if lamp(labels, "rack03", "2") and at > xid_s else 0.0

    def each(rate: float) -> Value:
        return counter(
            lambda labels, at: rate if lamp(labels, "rack03", "2") and errs(at) else 0.0005, 3.0
        )

    counters = {
        **CLEAN,
        "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": each(140),
        "NVLINK_REPLAY_ERROR_COUNT_TOTAL": each(60),
        "XID_ERRORS": xid,
    }
    log = steps(name, took, until_s=SPAN, planned=2950 if ends else 9000, every=20,
                finished=ends, world=16)  # fmt: skip
    return World(name, RACK, gpu(until(SPAN, 620, 72), until(SPAN, 98, 0), **counters),
                 SPAN + 60, host_label="Hostname", log=log)  # fmt: skip


def one_onset() -> World:
    """From 55 minutes on a link errs and every step takes 4 % longer; its Xid follows."""
    return link("gpu_link_errs_from_an_onset_at_four_percent", lambda at: at > 3300,
                lambda at: 2.12 if at < 3300 else 2.21, xid_s=3340, ends=False)  # fmt: skip


def drifting() -> World:
    """The cards grow warm and the pace falls by 4 % within 20 minutes; a link errs from a moment
    long after that."""
    return link("gpu_link_errs_long_after_a_drift", lambda at: at > 4400,
                lambda at: 2.12 * (1 + 0.04 * min(1.0, max(0.0, (at - 1200) / 1200))))  # fmt: skip


def always() -> World:
    """A link errs from the first minute to the last; the pace falls by 4 % at some moment."""
    return link("gpu_link_errs_all_the_time_pace_falls", lambda at: True,
                lambda at: 2.12 if at < 3300 else 2.21)  # fmt: skip


def steady() -> World:
    """A link errs in the second half and its Xid follows; the pace never changes."""
    return link("gpu_link_errs_at_a_steady_pace", lambda at: at > 3300, lambda at: 2.12,
                xid_s=3340)  # fmt: skip


# --- adapters that resend for minutes -----------------------------------------------------------


def spells(seed: str, count: int, until_s: float) -> tuple[tuple[float, float], ...]:
    """So many spells of four to eight minutes, apart by seven at least."""
    dice = random.Random(seed)
    room = until_s / count
    begins = [600 + n * room + dice.uniform(0, room - 900) for n in range(count)]
    return tuple((at, at + dice.uniform(240, 480)) for at in begins)


DIPS = spells("dips", 12, 16000)
BETWEEN = tuple((end + 120, min(end + 420, begin - 60)) for (_, end), (begin, _) in pairwise(DIPS))


def within(times: tuple[tuple[float, float], ...]) -> When:
    return lambda at: any(begin <= at < end for begin, end in times)


def noisy_log(name: str, pace: Callable[[float], float]) -> tuple[tuple[float, str], ...]:
    """A line a step of 20 s, with 4 % of noise on the time of each."""
    noise = random.Random(name + " steps")
    return steps(name, lambda at: 20.0 / pace(at) * noise.gauss(1, 0.04), until_s=17300,
                 planned=5000, every=1, finished=False, world=96)  # fmt: skip


def lossy(name: str, bursts: When, dips: When, part: float = 0.93) -> World:
    """Two hosts resend in some spells; the pace is lower in some."""

    def lost(labels: Labels, at: float) -> float:
        if labels["device"] != "rdma1" or labels["host"] not in ("chi45", "chi49"):
            return 0.0
        return 240.0 if bursts(at) else 0.0

    pace = lambda at: part if dips(at) else 1.0  # noqa: E731
    metrics = tuple(m for m in maxtext(lambda at: 3290.0, lost) if not m.name.startswith("tb_"))
    return World(name, TWELVE, metrics, 17400, 60, 2, log=noisy_log(name, pace))


def never(at: float) -> bool:
    return False


WORLDS = (
    one_onset(),
    drifting(),
    always(),
    steady(),
    lossy("rdma_loss_in_a_dozen_short_dips", within(DIPS), within(DIPS)),
    lossy("rdma_loss_between_a_dozen_short_dips", within(BETWEEN), within(DIPS)),
    lossy("rdma_loss_in_spells_pace_only_noisy", within(DIPS), never),
)
