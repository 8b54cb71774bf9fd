"""
The rank whose process the kernel killed, by where DeepSpeed's launcher lists it.

The launcher names all of its processes as it takes them down, in the order of their local ranks,
and then the command that it had started last, which tells how many there are.
"""

from __future__ import annotations

import re
from dataclasses import replace

from flatline.facts import Facts
from flatline.model import LogCite, Place
from flatline.rank_hosts import communicating, process_of

LISTED, LAST = "deepspeed-killing-subprocess", "deepspeed-child-exit"
_LOCAL_RANK = re.compile(r"['\"]--local_rank=(\d{1,4})['\"]")


def killed_by_kernel(facts: Facts, attempt: int) -> LogCite | None:
    """The line that lists it, with its rank for a place, of the only launcher on the only host;
    None where the kernel did not kill one process of its list, or the list is not whole, or NCCL
    numbers its processes in another way."""
    listed, lasts = (
        [m for m in facts.matches if m.signature.id == name and m.attempt == attempt]
        for name in (LISTED, LAST)
    )
    last = _LOCAL_RANK.search(lasts[0].cite.text) if len(lasts) == 1 else None
    if last is None or len(facts.hosts) > 1:
        return None
    source = lasts[0].cite.source
    lines = {m.groups["pid"]: m.cite for m in listed if m.cite.source == source}
    order = [*lines]
    killed = {m.groups["pid"]: m.cite.place.host for m in facts.standing("oom-kill")
              if m.groups.get("pid") in order}  # fmt: skip
    if len(killed) != 1 or len(order) != int(last[1]) + 1:
        return None
    known = communicating(facts.matches, facts.hosts, facts.ranks, facts.world_size)
    for place, _, cite in known:
        own = process_of(cite)
        if own in lines and place.rank not in (None, order.index(own)):
            return None
    ((pid, host),) = killed.items()
    return replace(lines[pid], place=Place(host=host, rank=order.index(pid)))
