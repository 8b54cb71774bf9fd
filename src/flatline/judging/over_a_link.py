"""A file server that hosts cannot reach because their own link is down."""

from __future__ import annotations

from dataclasses import replace

from flatline.facts import Facts
from flatline.judging.bygone import LINK_DOWN, over
from flatline.judging.claims import claim
from flatline.judging.downed_ports import BEFORE
from flatline.judging.leads import Lead
from flatline.model import Finding, Match

CUT_OFF = "cut-off"
"""The class of a storage's silence that the network accounts for."""


def cut_off(facts: Facts, found: Finding, told: Lead) -> Finding:
    """
    The finding, as one of hosts that had lost their link, where peers were lost as well.

    Each of the kernels that tell of the silence must have said so before, on a link that was still
    down: a server that fails is silent to those whose link is up, and one that had been silent
    before a link went down has not failed of that.
    """
    kernels = [f for f in told.group if f.cite.source in facts.kernel_files]
    downs = [_down(facts, f.match) for f in kernels if f.match is not None]
    lost = [m for m in facts.tagged("lost-peer") if m.cite.source not in facts.kernel_files]
    links = [match for match in downs if match is not None]
    if not lost or not kernels or len(links) < len(told.group) or found.fault_class is not None:
        return found
    text = "The link of a host that the server does not answer had gone down before"
    shown = claim(text, *(match.cite for match in links[:4]))
    return replace(found, fault_class=CUT_OFF, shows=(*found.shows, shown))


def _down(facts: Facts, silent: Match) -> Match | None:
    """The line above by which the same kernel says that a link went down minutes before, and had
    not come back by then."""
    cite, at = silent.cite, silent.cite.at
    if "told-late" not in silent.signature.tags or "peer" not in silent.groups or at is None:
        return None
    for match in facts.tagged(LINK_DOWN):
        down = match.cite
        if (down.source, down.place.host) != (cite.source, cite.place.host) or down.at is None:
            continue
        back = over(facts, match)
        still = back is None or back.cite.line > cite.line
        if down.line < cite.line and at - BEFORE <= down.at <= at and still:
            return match
    return None
