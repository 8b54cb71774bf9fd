"""
A GPU, its memory or its links failed under the run.

Symptom:
    The kernel log names an XID or SXid, an uncorrectable memory error, a row-remap failure, an
    NVLink error, or a GPU that fell off the bus; on AMD, a RAS event or a GPU reset.  Job logs
    show CUDA errors and peers that time out.

Mechanism:
    The device can no longer serve the process: it is reset, loses its memory's content, or stops
    answering.  Peers wait in a collective for a rank that cannot come.

Told apart from:
    A3 runtime-crash: XID 13, 31, 43 and 45 in a job are usually the program's own doing.
    XID 45 follows another error; 154 only carries the recovery action for one.
    Latent degradation: counters that are old and did not rise during the run are a warning, and
    so are those that rose while the run went on.  The last XID an exporter shows is a state that
    stays: only its change within the run is an event.
    A host whose readings all end: its exporter died, or the host did.  A GPU is lost where its
    readings end while its neighbours' go on.
    Replays and corrected errors: links and memory correct them, and healthy ones count a few;
    they slow a run only where one GPU's bursts make up the run's slow phases, or where it is
    slower just inside them than just outside.

Do:
    Exclude the node and resubmit; reset or replace the GPU; give the vendor the kernel lines.

References:
    NVIDIA XID errors catalogue; NVIDIA GPU debug guidelines; amdgpu RAS documentation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from flatline.facts import KERNEL, Facts
from flatline.judging.addresses import by_kernel, carded, numbered
from flatline.judging.anchored import MOST, UNPROVEN
from flatline.judging.claims import claim, distinct
from flatline.judging.counters import counted
from flatline.judging.crashes import of_family
from flatline.judging.health import (
    COUNTERS,
    SLACK_S,
    Fault,
    older,
    signs,
    stopped_by,
    window,
    within,
)
from flatline.judging.order import floor
from flatline.judging.pods_read import pods_read
from flatline.judging.signed import signed
from flatline.judging.steering import leave_out
from flatline.judging.throughput import step_at
from flatline.judging.timeline import by_host, instant, usual
from flatline.judging.told_within import told_within
from flatline.judging.worn_links import Worn, worn_links
from flatline.model import Action, Cite, Claim, Cleared, Finding, Judgement, LogCite, Place

CODE = "B2"
NAME = "gpu-hardware-fault"
NEEDS = ("kernel log", "GPU health metrics (XID, ECC, row remap, NVLink)")
DECIDED_BY = (
    "an XID, ECC, row-remap or link error of a named GPU that rose during the run (kernel "
    "log, nvidia-smi -q)"
)
EXPLAINS = {
    "C2": "a rank whose GPU failed cannot enter the collective its peers wait in",
    "A3/cuda": "the CUDA runtime reports the failed device as an error in the program",
    "A2": "the runtime aborts when its device is lost",
    "C5": "peers see the connection of the rank whose GPU failed close",
    "F1": "operations or the health check take a node with a failed GPU out of service",
    "B1": "a device in error refuses allocations",
    "E1": "corrupted memory reaches the weights",
    "D3": "the rank behind a link that sends again is the one the others wait for",
    "D2/slow-interconnect": "collectives over a link that errs wait for what is sent again",
    "F3": "a run slowed by a failing link does not reach its plan in time",
}


GOES_ON = "Whether it cost the run anything: its progress went on."
UNKNOWN_COST = "Whether it cost the run anything: nothing read dates its progress."
MOST_SHOWN = 4
SCRAPED_S = 120.0
"""By how much later a sample shows what happened: scrapes come every minute or two."""
READ_FROM, READ_TO = timedelta(seconds=60), timedelta(seconds=240)
"""Around a kernel's line: a reset takes a minute, a scrape comes every one or two."""


def judge(facts: Facts) -> Judgement:
    """Blame the first fault line that the vendor's catalogue counts as hardware; without one, a
    GPU whose counters rose, or that vanished, when the run stopped."""
    found = signed(
        facts,
        CODE,
        implies="The hardware failed under the run; the program did not cause it.",
        cannot_decide=("Whether the part will fail again: the vendor's diagnostics would tell.",),
        advice="Reset or replace the GPU and give the vendor the kernel lines.",
    )
    if found is not None and not found.culprits:
        found = _told_within(facts, found)
    told = signs(facts)
    timed = within(facts)
    worn = worn_links(facts)
    slowed = () if worn is None else (_slowed(facts, worn, timed),)
    if found is not None:
        placed = numbered(facts, _placed(facts, found, timed))
        return (carded(facts, by_kernel(facts, placed)), *slowed)
    findings = [*slowed]
    if worn is not None:
        timed = tuple(f for f in timed if f.fault_class != "link" or f.place not in worn.places)
    if timed:
        findings.append(_finding(facts, timed))
    latent = [f for f in told or () if f.at is None] or older(facts)
    if latent:
        findings.append(carded(facts, numbered(facts, _latent(facts, latent))))
    if findings:
        return tuple(findings)
    return _cleared(facts, told)


def _placed(facts: Facts, found: Finding, within: Sequence[Fault]) -> Finding:
    """What the log told, with the counters of its hosts.  A rank's own error names no card: where
    the counters of one GPU alone rose as the run stopped, it is that one."""
    read = pods_read(facts)
    found = replace(found, culprits=tuple(_on_its_node(facts, p, read) for p in found.culprits))
    hosts = {facts.node_of(place.host) for place in found.culprits if place.host}
    within = [replace(f, place=facts.on_host(f.place)) for f in within]
    ending = [f for f in within if f.at is not None and _as_it_ended(facts, found, f.at)]
    beside = [f for f in within if f.place.host in hosts] if hosts else ending
    shows = (*found.shows, *map(_shown, beside[:MOST_SHOWN]))
    cards = {f.place for f in beside if f in ending and f.place.host and f.place.gpu is not None}
    only = found.culprits[0] if len(found.culprits) == 1 else None
    if not cards and only is not None and only.device and _undated(facts, found):
        cards = {f.place for f in beside if f.place.host and f.place.gpu is not None}
    read_on = found.fault_class in ("bus", "link")
    if not cards and only is not None and only.device and not read_on and found.onset is not None:
        late = _read_late(facts, found.onset)
        cards, shows = set(late), (*shows, *late.values())
    if len(cards) == 1 and only is not None and only.device and not only.gpu:
        card = next(iter(cards))
        # the one card that failed there, by address and by number
        if card.host == facts.node_of(only.host or ""):
            return replace(found, shows=shows, culprits=(replace(only, gpu=card.gpu),))
    if len(cards) != 1 or any(p.gpu or p.device for p in found.culprits):
        return replace(found, shows=shows if hosts else found.shows)
    card = cards.pop()
    named = (card.host,) if card.host else ()
    if only is not None and only.host == card.host:
        card = replace(only, gpu=card.gpu)
    return replace(found, shows=shows, culprits=(card,), scope="place",
                   actions=_actions(facts, named, (card,)), resubmit="exclude")  # fmt: skip


def _told_within(facts: Facts, found: Finding) -> Finding:
    """With the rank or the host whose process was told of the error."""
    place, shown = told_within(facts, CODE, found.attempt)
    if place is None or shown is None:
        return found
    hosts = (place.host,) if place.host else ()
    return replace(found, summary=f"{found.summary} ({place})", culprits=(place,), scope="place",
                   shows=(*found.shows, shown),
                   actions=_actions(facts, hosts, (place,)) if hosts else found.actions,
                   resubmit="exclude" if hosts else found.resubmit)  # fmt: skip


def _on_its_node(facts: Facts, place: Place, read: Mapping[str, str]) -> Place:
    """A pod's name, by which its processes call their host, is that of the node by whose exporter
    its GPUs were read."""
    node = None if place.host is None or facts.job is not None else read.get(place.host)
    return place if node is None else replace(place, host=node)


def _read_late(facts: Facts, onset: datetime) -> dict[Place, Claim]:
    """The cards whose counters are seen to rise within minutes of a kernel's line, though the run
    was over by then: a card that is being reset is not read."""
    start, end = onset - READ_FROM, onset + READ_TO
    signals = [signal for signal, (kind, _) in COUNTERS.items() if kind == "memory"]
    rose = [one for signal in signals for one in counted(facts, signal, start, end)
            if one.rose and one.place.gpu is not None and one.place.host]  # fmt: skip
    return {
        facts.on_host(one.place): claim(
            f"{facts.on_host(one.place)}: {one.signal} rose by {one.rose:g} around that line",
            one.cite,
        )
        for one in rose
    }


def _undated(facts: Facts, found: Finding) -> bool:
    """Whether a kernel's line cannot be put in time beside the metrics: it has none, or states no
    zone, and neither does the run's log."""
    assumed = any(gap.need == "time zone" and gap.reason.endswith("UTC") for gap in facts.gaps)
    return found.onset is None or assumed


def _as_it_ended(facts: Facts, found: Finding, at: float) -> bool:
    """Whether the run's progress ended with a moment; where no progress is dated, whether the
    failure did that the log tells of, or the process, or else the job."""
    stopped = stopped_by(facts, at)
    if stopped is not None:
        return stopped
    died = [e.at for e in facts.exits if e.at is not None and e.attempt == found.attempt
            and not (isinstance(e.cite, LogCite) and e.cite.at_assumed)]  # fmt: skip
    onset = found.onset if found.onset and not floor(found, found.onset) else None
    ended = [m.cite.at for m in facts.standing("cancelled")
             if m.attempt == found.attempt and m.cite.at and not m.cite.at_assumed]  # fmt: skip
    moment = onset or min(died or ended, default=None) or facts.last.ended_at
    return moment is not None and abs(moment.timestamp() - at) <= SLACK_S


def _finding(facts: Facts, within: Sequence[Fault]) -> Finding:
    """What rose within the run: the cause where the run's progress ended with it."""
    ending = [f for f in within if f.at is not None and stopped_by(facts, f.at)]
    ended = bool(ending) and facts.disposition != "completed"
    went_on = not ended and any(stopped_by(facts, f.at) is False for f in within if f.at)
    first = (ending or within)[0]
    assert first.at is not None
    group = [f for f in (ending if ended else within) if f.fault_class == first.fault_class]
    culprits = distinct(f.place for f in group)
    hosts = tuple(sorted({p.host for p in culprits if p.host}))
    onset = datetime.fromtimestamp(first.at, UTC)
    return Finding(
        code=CODE,
        summary=f"{first.place}: {first.what}" + (", and the run went on" if went_on else ""),
        fault_class=first.fault_class,
        attribution="infrastructure",
        shows=tuple(map(_shown, group[:MOST_SHOWN])),
        implies=(
            claim("The hardware failed under the run; the program did not cause it.",
                  *first.cites),
        ) if ended else (),
        strength=max(f.strength for f in group) if ended else 0.5,
        role="cause" if ended else "warning",
        severity="fatal" if ended else "warning",
        culprits=culprits,
        onset=onset,
        onset_within_s=SCRAPED_S,
        onset_step=facts.last_step if ended else None,
        attempt=facts.last.n,
        ended_run=ended,
        cannot_decide=(
            "What the driver said of it: the kernel log of the host would tell.",
            *(() if ended else (GOES_ON if went_on else UNKNOWN_COST,)),
        ),
        actions=_actions(facts, hosts, culprits),
        resubmit="exclude" if hosts and ended else "unknown",
    )  # fmt: skip


def _slowed(facts: Facts, worn: Worn, timed: Sequence[Fault]) -> Finding:
    """Links that send again what they damaged: the run goes on, at their pace.  Where few per
    cent show it, an Xid of that GPU's link within the run earns what more may be believed."""
    hosts = tuple(sorted({place.host for place in worn.places if place.host}))
    more = f" and {len(worn.places) - 1} more" if len(worn.places) > 1 else ""
    own = [f for f in timed if f.fault_class == "link" and f.place in worn.places]
    return Finding(
        code=CODE,
        summary=f"links of {worn.places[0]}{more} erred while throughput was"
        f" {worn.lower:.0%} down",
        fault_class="link",
        attribution="infrastructure",
        shows=(*worn.shows, *map(_shown, own[:MOST_SHOWN])),
        implies=(worn.implies,),
        strength=MOST if own and worn.anchored else worn.strength,
        most=MOST if own and worn.anchored else worn.most,
        severity="degraded",
        culprits=worn.places,
        onset=datetime.fromtimestamp(worn.begins, UTC),
        onset_step=step_at(facts, worn.begins),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(
            "Which end of the link is at fault: the counters of its peer would tell.",
            *((UNPROVEN,) if worn.anchored else ()),
        ),
        actions=_actions(facts, hosts, worn.places),
        resubmit="exclude" if hosts else "unknown",
    )


def _latent(facts: Facts, latent: Sequence[Fault]) -> Finding:
    places = distinct(f.place for f in latent)
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    first = places[0] if places else "A GPU"
    return Finding(
        code=CODE,
        summary=f"{first}{more} carried faults older than the run: {latent[0].what}",
        fault_class=latent[0].fault_class or None,
        attribution="infrastructure",
        shows=tuple(map(_shown, latent[:MOST_SHOWN])),
        implies=(),
        strength=0.4,
        most=0.4,
        role="warning",
        severity="warning",
        culprits=places,
        attempt=facts.last.n,
        ended_run=False,
        actions=(Action("watch", "Have these GPUs tested when they are free."),),
    )


def _shown(fault: Fault) -> Claim:
    return claim(f"{fault.place}: {fault.what}", *fault.cites)


def _actions(
    facts: Facts, hosts: tuple[str, ...], culprits: Sequence[Place]
) -> tuple[Action, ...]:
    if not hosts:
        return (Action("escalate", "Have the GPU tested."),)
    gpus = ",".join(p.gpu for p in culprits if p.gpu is not None and p.host == hosts[0])
    return (
        leave_out(facts, hosts),
        Action("collect", "Keep the host's kernel log and the GPU's own report for the vendor.",
               f"nvidia-smi -q -i {gpus}" if gpus else "nvidia-smi -q", hosts),
    )  # fmt: skip


def _cleared(facts: Facts, told: Sequence[Fault] | None) -> Cleared | None:
    """What was searched and what was measured, each below its threshold; neither alone rules
    the family out, which is the needs' to say."""
    if any(not facts.outside(line.cite) for line in of_family(facts, CODE, fatal=False)):
        return None  # it was named, and did not stop the run
    absent = facts.absence(["family:B2"], "no hardware fault in any kernel log", KERNEL)
    cites: list[Cite] = [] if absent is None else [absent]
    span = window(facts)
    known = facts.measured("gpu_ecc_uncorrectable_total")
    read = (
        None
        if span is None or not known
        else by_host(
            instant(facts, "max by (host) (gpu_ecc_uncorrectable_total)", span[1].timestamp())
        )
    )
    short = {host.partition(".")[0] for host in (() if read is None else read.rows)}
    if {host.partition(".")[0] for host in facts.hosts} - short:
        told = None
    for signal in COUNTERS if told is not None and span is not None else ():
        if facts.measured(signal) and span is not None:
            zero = usual(facts, signal, span[1].timestamp(), f"highest {signal}", "max({})")
            cites += [zero] if zero is not None and zero.value == 0 else []
    if not cites:
        return None
    why = "no hardware fault in any kernel log" if absent is not None else ""
    counters = f"{len(cites) - (absent is not None)} fault counters at zero on every GPU"
    return Cleared(CODE, "; ".join(filter(None, (why, counters if told is not None else ""))),
                   tuple(cites))  # fmt: skip
