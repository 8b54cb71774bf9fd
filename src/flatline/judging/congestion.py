"""
A fabric that every host of the run waits for at once, while its links are sound.

An InfiniBand port counts the ticks in which it had data to send and no credits to send it with
(PortXmitWait): it does so where the fabric ahead of it is congested, whoever fills it.
"""

from __future__ import annotations

from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.throughput import Slow, course
from flatline.judging.timeline import usual
from flatline.model import Claim, QueryCite
from flatline.signals import LOSS

WAIT = "rdma_transmit_wait_total"
ERRED = ("rdma_link_downed_total", "rdma_link_recoveries_total", "rdma_receive_errors_total",
         "rdma_symbol_errors_total")  # fmt: skip
TIMES = 3.0
"""The least waiting host of the slow phase above the most waiting one of the best phase: waits
scatter twofold with the traffic itself.  A judgement."""
FLOOR = 1e5
"""Ticks a second.  A tick is some nanoseconds (the vendor's own unit), so that fewer are less than
a thousandth of the time, which slows nothing."""
LOST = 1.0
"""Packets a second resent or dropped, of the worst host: beyond it links are to be asked first."""


@dataclass(frozen=True, slots=True)
class Congested:
    """The slow phase, and what shows that all hosts waited and no link erred."""

    phase: Slow
    shows: tuple[Claim, ...]


def congested(facts: Facts) -> Congested | None:
    """None where the waits were not measured, the pace has no slow phase, or some host did not
    wait more than before."""
    run = course(facts)
    if run is None or not run.slow or not facts.measured(WAIT):
        return None
    phase = max(run.slow, key=lambda one: one.ends - one.begins)
    least = _over(facts, phase, WAIT, "min", "ticks a second waited, the host that waits least")
    most = _over(facts, run.best, WAIT, "max", "before, the host that waits most")
    if least is None or most is None or least.value <= max(TIMES * most.value, FLOOR):
        return None
    lost = [c for name in LOSS if (c := _worst(facts, phase, name))]
    erred = [c for name in ERRED if (c := _worst(facts, phase, name))]
    if any(one.value > LOST for one in lost) or any(one.value > 0 for one in erred):
        return None
    if not (lost or erred):
        return None
    waits = claim(
        f"Every host's ports waited for the fabric {least.value / max(most.value, 1.0):.0f} times"
        " as long as in the fastest phase, at the least", least, most)  # fmt: skip
    quiet = claim(
        "Meanwhile no host's links erred or resent more than a packet a second",
        *(*lost, *erred)[:4],
    )
    return Congested(phase, (waits, quiet))


def _worst(facts: Facts, phase: Slow, signal: str) -> QueryCite | None:
    if not facts.measured(signal):
        return None
    return _over(facts, phase, signal, "max", f"{signal} a second, the worst host")


def _over(facts: Facts, phase: Slow, signal: str, reduce: str, text: str) -> QueryCite | None:
    window = f"[{max(1, int(phase.ends - phase.begins))}s]"
    rate = f"sum by (host) (rate({signal}{window}))"
    return usual(facts, rate, float(int(phase.ends)), text, reduce + "({})")
