"""A process that the kernel killed for memory once the last step was made, before all who aborted
for the peer they had lost: nobody but the kernel tells of it where its launcher went with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flatline.facts import Facts
from flatline.model import Cite, LogCite


def killed_first(
    facts: Facts, victims: Iterable[Cite], kernel: Sequence[Cite]
) -> tuple[LogCite, ...]:
    """The kernel's dated lines on such a kill; none that is known to be later than a victim's."""
    lines = [cite for cite in kernel if isinstance(cite, LogCite) and cite.at is not None
             and cite.source in facts.kernel_files and facts.steps_after(cite) == 0]  # fmt: skip
    later = [cite for cite in victims if isinstance(cite, LogCite)]
    told = [match.cite for match in facts.tagged("lost-peer")] if later else []
    return tuple(cite for cite in lines
                 if later and not any(facts.after(cite, v) for v in (*later, *told)))  # fmt: skip
