"""
The network between ranks failed.

Symptom:
    Retries exceeded towards one peer, a link that went down, no route to a host, connections that
    are reset though both ends live.

Mechanism:
    A cable, optic, switch or adapter drops traffic until the transport gives up.  Several ranks
    that name one peer point at that peer's link.

Told apart from:
    A2, A3, B1, F1: the peer's process or node was gone; its sockets closed with it.
    C1 rendezvous-hang: the ranks never reached each other at all.
    D4 network-degradation: traffic still flows, slower.

Do:
    Exclude the host whose link failed and resubmit; have cable, optic and port checked at both
    ends.

References:
    InfiniBand work-completion status codes (12: retries exceeded, 13: receiver not ready);
    NCCL net_ib; Linux errno 101, 110, 113.
"""

from __future__ import annotations

from flatline.facts import Facts
from flatline.judging.signed import signed
from flatline.model import Judgement

CODE = "C5"
NAME = "network-failure"
NEEDS = ("kernel log", "network link and RDMA counters")
EXPLAINS = {
    "C2": "a collective cannot complete when the traffic of one rank does not arrive",
    "A3": "the transport's error surfaces as an exception in the program",
    "C1": "ranks that cannot reach each other never form their group",
    "F1": "a node the controller cannot reach is set DOWN",
    "A2": "the watchdog aborts the process whose communicator failed",
    "F3": "ranks left waiting hold the allocation to the wall",
}


def judge(facts: Facts) -> Judgement:
    """Blame the first line that says a transport gave up or a link went down."""
    return signed(
        facts,
        CODE,
        implies="Traffic between ranks stopped; the training program did not cause it.",
        cannot_decide=(
            "Which end or which switch is at fault: link counters of both ports would tell.",
            "Whether the peer's process had ended before: its own log and record would show it.",
        ),
        advice="Have cable, optic and port checked at both ends.",
    )
