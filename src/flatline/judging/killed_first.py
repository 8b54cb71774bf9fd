"""A process that the kernel killed for memory once the last step was made, before all who aborted
for the peer they had lost: nobody but the kernel tells of it where its launcher went with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from flatline.facts import Facts
from flatline.model import Cite, LogCite

LATEST = timedelta(hours=1)
"""Before a peer says that it lost it: NCCL's own waits are 10 and 30 minutes by default."""


def killed_first(
    facts: Facts, victims: Iterable[Cite], kernel: Sequence[Cite]
) -> tuple[LogCite, ...]:
    """The kernel's dated lines on such a kill; none that is known to be later than a victim's, or
    that none of them follows soon."""
    lines = [cite for cite in kernel if isinstance(cite, LogCite) and cite.at is not None
             and cite.source in facts.kernel_files and facts.steps_after(cite) == 0]  # fmt: skip
    later = [cite for cite in victims if isinstance(cite, LogCite)]
    told = [match.cite for match in facts.tagged("lost-peer")] if later else []
    after = (*later, *told)
    return tuple(
        cite
        for cite in lines
        if not any(facts.after(cite, v) for v in after)
        and any(v.at and cite.at and v.at - cite.at <= LATEST for v in after)
    )
