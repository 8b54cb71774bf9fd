"""Cards whose memory another process held when the job began, by the exporter's numbers."""

from __future__ import annotations

from collections.abc import Collection
from math import ceil
from statistics import median

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.gpus import PEERS, readings
from flatline.judging.strays import LEAST_OTHER
from flatline.judging.timeline import instant
from flatline.model import Claim, Place

SIGNAL = "gpu_memory_used_bytes"


def occupied(
    facts: Facts, culprit: Place, said: Collection[str], short_bytes: float
) -> tuple[Place, Claim] | None:
    """
    The card that failed, where what it held before the job began, and held throughout, is more
    than what was lacking there.

    It is the culprit's, or the only one of this kind whose number the message says (on the
    culprit's host where that is known).  Only the record tells when a job began; what all cards
    of a run hold is its driver's, or that of the job before, which was just leaving.
    """
    start = None if facts.job is None else facts.job.started_at
    if start is None or facts.window is None or not facts.measured(SIGNAL):
        return None
    first, last = int(start.timestamp()), int(facts.window[1].timestamp())
    if last <= first:
        return None
    before = readings(instant(facts, SIGNAL, first))
    least = readings(instant(facts, f"min_over_time({SIGNAL}[{ceil(last - first)}s])", last))
    if before is None or least is None or len(before.rows) <= PEERS:
        return None
    usual = median(row.last for row in before.rows.values())
    held = {
        place: min(row.last, least.rows[place].last) - usual
        for place, row in before.rows.items()
        if place in least.rows
    }
    host = facts.node_of(culprit.host) if culprit.host else None
    taken = [place for place, more in held.items()
             if more >= max(LEAST_OTHER, short_bytes)
             and (host is None or facts.node_of(place.host or "") == host)
             and (place.gpu == culprit.gpu if culprit.gpu else place.gpu in said)]  # fmt: skip
    if len(taken) != 1:
        return None
    card = taken[0]
    cites = [read.cite(card, read.rows[card].times[-1], text)
             for read, text in ((before, "memory in use as the job began"),
                                (least, "least memory in use since"))]  # fmt: skip
    text = (
        f"{card} held {(held[card] + usual) / 2**30:.1f} GiB before the job began and never less"
        f" since, the median GPU of the run {usual / 2**30:.1f}: another process has it."
    )
    return card, claim(text, *cites)
