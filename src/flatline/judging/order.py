"""Which of two findings began first, as far as times and the lines of a log can tell."""

from __future__ import annotations

from datetime import datetime, timedelta

from flatline.facts import Facts
from flatline.judging.claims import number, same_rank
from flatline.model import Finding, LogCite

NEIGHBOURS = 64
"""Lines in which the ranks of a host tell that its device failed."""
KERNELS = ("kernel", "nvidia", "amdgpu")
STATES = ("cuda-gpu-lost", "slurm-oom-kill")
"""What a tool of the driver says of a card whenever it is asked, and slurmstepd of the kernel's
kills once their step is over: they were before."""
OF_THEN = timedelta(minutes=10)
"""From the last time that a log tells before a death without one: as long as a step, or a save
with nothing printed, may take.  A judgement."""
OF_ONE_PROCESS = ("A2", "A3", "B1", "B2")
"""Families whose line is the death of the process that wrote it; its peers' lines follow from it
however late it is written out."""


def later(facts: Facts, a: Finding, b: Finding) -> bool | None:
    """Whether a began after b; None where neither time nor place in one log tells."""
    if a.unordered or b.unordered:
        return None
    if a.order and b.order and a.order[0] == b.order[0]:
        if a.order[1] == b.order[1] or _buffered(facts, a, b):
            return None
        last, before = (a, b) if a.order[1] > b.order[1] else (b, a)
        if _told_again(facts, last):
            return None
        if not _listed(facts, last, before):
            return last is a
    first, second = a.noticed or a.onset, b.noticed or b.onset
    if first is None or second is None:
        return None
    delta = (first - second).total_seconds()
    room_s = facts.skew_s + a.onset_within_s + b.onset_within_s
    if delta > room_s and not floor(b, second):
        return True
    return False if delta < -room_s and not floor(a, first) else None


def _told_again(facts: Facts, finding: Finding) -> bool:
    """Whether its line is a kernel's or its tool's without a time, in a log of a program: an
    epilog or a script prints at the end what a kernel had said before."""
    said = _spoken(finding)
    return said is not None and not _dated(said) and _by_kernel(facts, finding, said)


def _listed(facts: Facts, last: Finding, before: Finding) -> bool:
    """Whether a kernel's line with a time of its own stands in a program's log behind a death that
    has none: what was looked up there afterwards has its place by its time alone."""
    said, died = _spoken(last), _spoken(before)
    if said is None or died is None or before.code not in OF_ONE_PROCESS or _dated(died):
        return False
    far = died.at is not None and said.at is not None and said.at - died.at > OF_THEN
    return _dated(said) and not far and _by_kernel(facts, last, said)


def _dated(cite: LogCite) -> bool:
    return cite.at is not None and not cite.at_assumed


def _by_kernel(facts: Facts, finding: Finding, said: LogCite) -> bool:
    return said.source not in facts.kernel_files and any(
        (m.signature.origin in KERNELS or m.signature.id in STATES)
        and (m.cite.source, m.cite.line) == finding.order
        for m in facts.matches
    )


def _buffered(facts: Facts, a: Finding, b: Finding) -> bool:
    """
    Whether two ranks of one file may have been written out in another order than they spoke.

    Each rank has a buffer of its own: a line without a time may be older than those of other
    ranks before it, unless its rank had told there that it lost a peer.  A kernel that failed on
    other GPUs and the device that failed under its own rank are told in no order either.
    """
    one, two = _spoken(a), _spoken(b)
    if one is None or two is None or not one.place or not two.place:
        return False
    early, late = sorted((one, two), key=lambda cite: cite.line)
    last, first = (a, b) if late is one else (b, a)
    of_a_device = (last.code, first.code, first.fault_class) == ("B2", "A3", "cuda")
    of_a_device = of_a_device and late.line - early.line <= NEIGHBOURS
    if last.code not in OF_ONE_PROCESS or (first.code in OF_ONE_PROCESS and not of_a_device):
        return False
    if _dated(late) or number(late.place) is None or same_rank(early.place, late.place):
        return False
    return not any(
        match.cite.source == late.source
        and match.cite.line < late.line
        and same_rank(match.cite.place, late.place)
        and (match.signature.role == "cascade" or "timeout" in match.signature.tags)
        for match in facts.matches
        if match.attempt == a.attempt
    )


def _spoken(finding: Finding) -> LogCite | None:
    """The line a finding has its place in the order from."""
    return next(
        (
            cite
            for cite in finding.cites
            if isinstance(cite, LogCite) and (cite.source, cite.line) == finding.order
        ),
        None,
    )


def floor(finding: Finding, at: datetime) -> bool:
    """Whether a time is only the least it can be: a line without one took it from those before."""
    told = [cite for cite in finding.cites if isinstance(cite, LogCite) and cite.at == at]
    return bool(told) and all(cite.at_assumed for cite in told)
