"""A finding that rests on root lines alone, for families whose other signals are metrics."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from flatline.facts import Facts
from flatline.judging.claims import claim, distinct, name_places
from flatline.judging.crashes import Failure
from flatline.judging.leads import Lead, fix, lead, lead_of, shows, subject
from flatline.judging.steering import leave_out
from flatline.model import Attribution, Finding, Place, Resubmit

SLACK_S = 300.0
"""By how much clocks of hosts differ, and what the kernel says in one breath lies apart."""
_UPTIME = re.compile(r"(?:<\d+>)?\[ *(\d{1,10}\.\d{3,6})\]")
WEIGHT, LINES, BREATH_S = 0.2, 16, 5.0
"""How much more a line must weigh, and how near it must stand: a judgement."""


def signed(
    facts: Facts,
    code: str,
    *,
    implies: str,
    cannot_decide: Sequence[str],
    advice: str,
    attribution: Attribution = "infrastructure",
    resubmit: Resubmit = "exclude",
) -> Finding | None:
    """The first fatal root line of a family, told as a finding; None without one."""
    found = lead(facts, code)
    if found is None:
        return None
    found = _plainer(facts, found)
    first = found.first
    culprits = _with_host(facts, found)
    hosts = tuple(sorted({place.host for place in culprits if place.host}))
    where = name_places(culprits)
    actions = [fix(found, advice)]
    if hosts and resubmit == "exclude":
        actions.insert(0, leave_out(facts, hosts))
    return Finding(
        code=code,
        summary=first.what.rstrip(".") + (f" ({where})" if where else ""),
        fault_class=first.fault_class,
        attribution=first.attribution if first.attribution != "unknown" else attribution,
        strength=first.strength,
        shows=(shows(found, _told(found)),),
        implies=(claim(implies, first.cite),),
        culprits=culprits,
        scope="place" if culprits and found.scope == "none" else found.scope,
        onset=first.cite.at,
        onset_step=facts.last_step,
        order=(first.cite.source, first.cite.line),
        attempt=first.attempt,
        cannot_decide=tuple(cannot_decide),
        actions=tuple(actions),
        resubmit=resubmit if hosts or resubmit != "exclude" else "unknown",
    )


def _plainer(facts: Facts, found: Lead) -> Lead:
    """The same led by what is said in the same breath with far more weight: the port of a card
    that falls off the bus errs first, and the card is what failed."""
    first = found.first
    heavier = (f for f in found.others if f.strength >= first.strength + WEIGHT)
    if not any(_in_a_breath(first, f) for f in heavier):
        return found
    return lead_of(facts, [f for f in (*found.group, *found.others) if f.key != first.key])


def _in_a_breath(one: Failure, other: Failure) -> bool:
    a, b = one.cite, other.cite
    if a.source != b.source or one.place.host != other.place.host:
        return False
    if a.at is None or b.at is None or not 0 < b.line - a.line <= LINES:
        return False
    return abs((b.at - a.at).total_seconds()) <= BREATH_S


def _told(found: Lead) -> str:
    """What the line means, behind the place that it is told of."""
    devices = [str(place) for place in found.culprits if place.device or place.gpu]
    told = devices[0] if len(devices) == 1 and not found.where else subject(found)
    return f"{told}: {found.first.what}"


def _with_host(facts: Facts, found: Lead) -> tuple[Place, ...]:
    """The culprits, with the host that other lines of the same fault stand on where no line of
    theirs names one: a program knows its rank, or nothing, the kernel its host and device.  The
    device is that of a line of the run's time, or of the last that the kernel wrote."""
    lately = [f for f in found.others if f.place.host and f.place.device and _lately(facts, f)]
    told = distinct(f.place for f in lately)
    if found.scope == "none":
        return told if len(told) == 1 else ()
    if len(found.culprits) != 1 or found.culprits[0].host is not None:
        return found.culprits
    hosts = {failure.place.host for failure in found.others} - {None}
    if len(hosts) != 1:
        return found.culprits
    only = found.culprits[0]
    device = told[0].device if len(told) == 1 and not (only.device or only.gpu) else only.device
    return (replace(only, host=hosts.pop(), device=device),)


def _lately(facts: Facts, failure: Failure) -> bool:
    at, attempt = failure.cite.at, facts.last
    if at is None:
        cite = failure.cite
        end = next((f.lines for f in facts.files if f.source == cite.source), 0)
        stamps = [_UPTIME.match(facts.text(cite.source, line)) for line in (cite.line, end)]
        told = [float(stamp[1]) for stamp in stamps if stamp is not None]
        return len(told) == 2 and told[1] - told[0] <= SLACK_S
    start = attempt.started_at or (facts.window[0] if facts.window else None)
    end_at = attempt.ended_at or (facts.window[1] if facts.window else None)
    slack = timedelta(seconds=SLACK_S)
    return (start is None or at >= start - slack) and (end_at is None or at <= end_at + slack)
