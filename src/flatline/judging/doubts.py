"""What makes any family's finding less sure: asked of each, in this order."""

from __future__ import annotations

from flatline.facts import Facts
from flatline.judging.belonging import (
    belonging,
    of_a_servers_hours,
    of_its_nodes,
    of_its_pods,
    of_its_time,
    on_shared_nodes,
)
from flatline.judging.bygone import long_before
from flatline.judging.crash_looping import beside_a_crash_loop
from flatline.judging.flapped import in_a_log_without_an_end
from flatline.judging.gone_beside import beside_a_failed_card, beside_the_gone
from flatline.judging.kernel_alone import of_the_host_alone
from flatline.judging.other_job import of_another_job
from flatline.judging.reruns import of_a_rerun
from flatline.judging.said_done import once_sent
from flatline.model import Finding

_DOUBTS = (belonging, of_its_pods, of_its_nodes, of_its_time, on_shared_nodes, long_before,
           of_a_servers_hours, beside_the_gone, beside_a_failed_card, once_sent,
           of_the_host_alone, of_a_rerun, of_another_job, beside_a_crash_loop,
           in_a_log_without_an_end)  # fmt: skip


def doubted(facts: Facts, finding: Finding) -> Finding:
    """The finding, less sure where what it rests on may be another run's, of another time, or not
    the whole answer."""
    for doubt in _DOUBTS:
        finding = doubt(facts, finding)
    return finding
