"""Whether the hosts that are blamed are known to be the run's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from flatline.facts import Facts
from flatline.judging.timeline import instant
from flatline.logs.places import OWNER, beside_kernel_word, host_told_of
from flatline.model import Finding, LogCite, QueryCite
from flatline.signals import ACTIVITY, CLOCK, GPUS_HELD

UNKNOWN = 0.79
"""Just short of confident: metrics of a cluster hold other jobs' hosts as well, and one that
works on at its own pace looks like the one that the others wait for."""
UNSTATED = 0.79
_OBJECT = re.compile(
    r"\b(?P<kind>pod|node)/(?P<name>[a-z0-9][a-z0-9.-]{0,252})"
    r"|\bSystem OOM encountered, victim process: (?P<process>[^,]{1,40})"
    r"|\bNode (?P<node>[\w.-]{1,253}) status is"
    r"|^ {0,2}(?P<row>[a-z0-9][a-z0-9.-]{0,252}) +\d{1,3}/\d{1,3} "
)
"""What a row of `kubectl get events` or `kubectl get pods` is of: they list a whole namespace."""
_TROUBLE = re.compile(
    r"\b(?:down|drain\w*|fail\w*|errors?|ECC|S?Xid|exclud\w*|unreach\w*|respond\w*|left out|faulty"
    r"|broken|offline|unhealthy|not in|(?:node)?not ?ready)\b",
    re.IGNORECASE,
)
WATCHED = ("kernel", "nvidia", "amdgpu", "slurmctld", "checks", "transport", "storage")
"""Origins of what others tell of a host, and its own processes hardly ever."""
SEARCHED_FILES, SEARCHED_LINES = 16, 5_000
"""Of logs in which a host is looked for: a run names its hosts as it begins."""
OWN_CAUSE = 0.3
WAITING = ("C1", "C2", "C3", "C5", "F3")
"""Families by which a run tells that it waited for a host or lost one, and not why."""
OF_EVERY_GPU = ("gpu_power_watts", "gpu_sm_clock_hertz", *ACTIVITY, "gpu_memory_used_bytes")


def belonging(facts: Facts, finding: Finding) -> Finding:
    """The finding, less sure where metrics alone speak of a host that no record or log names."""
    if not any(isinstance(cite, QueryCite) for cite in finding.cites):
        return finding
    said = {cite.place.host for cite in finding.cites if isinstance(cite, LogCite)}
    blamed = {place.host for place in finding.culprits if place.host} - said
    strange = sorted(host for host in blamed if facts.node_of(host) not in facts.hosts)
    if not strange or none_besides(facts):
        return finding
    many = "" if len(strange) == 1 else f" and {len(strange) - 1} more"
    told = f"Whether {strange[0]}{many} ran this job: nothing read names it among its hosts."
    return replace(
        finding,
        most=min(finding.most, UNKNOWN),
        cannot_decide=(*finding.cannot_decide, told),
    )


def on_shared_nodes(facts: Facts, finding: Finding) -> Finding:
    """The finding, less sure where it blames a GPU by its metrics that may be another job's."""
    if not any(isinstance(cite, QueryCite) for cite in finding.cites):
        return finding
    shared = {gap.where: gap for gap in facts.gaps if gap.need == GPUS_HELD and gap.where}
    blamed = [(place, gap) for place in finding.culprits if place.gpu is not None
              and (gap := shared.get(facts.node_of(place.host or "")))]  # fmt: skip
    if not blamed:
        return finding
    place, gap = blamed[0]
    return replace(
        finding,
        most=min(finding.most, UNKNOWN),
        cannot_decide=(*finding.cannot_decide, f"Whether {place} was this job's: {gap.reason}."),
    )


def of_its_time(facts: Facts, finding: Finding) -> Finding:
    """The finding, less sure where metrics show it that may be of another time than the run."""
    lacking = next((gap for gap in facts.gaps if gap.need == CLOCK), None)
    if lacking is None or not any(isinstance(cite, QueryCite) for cite in finding.cites):
        return finding
    told = f"Whether the metrics are of the time of the run: {lacking.reason}."
    return replace(finding, most=min(finding.most, UNKNOWN),
                   cannot_decide=(*finding.cannot_decide, told))  # fmt: skip


def timeless(facts: Facts) -> bool:
    """Whether the metrics may be of another time than the run."""
    return any(gap.need == CLOCK for gap in facts.gaps)


def doubtful(facts: Facts) -> bool:
    """Whether a record lists the GPUs that the job held on a node, and is not believed."""
    told = {host for job in facts.jobs for host, _ in job.devices}
    return any(gap.need == GPUS_HELD and gap.where in told for gap in facts.gaps)


def of_its_pods(facts: Facts, finding: Finding) -> Finding:
    """The finding, less sure where lists of Kubernetes alone show it, and what they name is not
    known to be the run's."""
    rows = [cite for cite in finding.cites if isinstance(cite, LogCite)]
    named = [_strange(facts, cite) for cite in rows]
    if not rows or len(rows) < len(finding.cites) or not all(named):
        return finding
    told = f"Whether {named[0]} is of this run: nothing else read names it."
    return replace(finding, most=min(finding.most, UNKNOWN),
                   cannot_decide=(*finding.cannot_decide, told))  # fmt: skip


def of_its_nodes(facts: Facts, finding: Finding) -> Finding:
    """The finding, less sure where kernels' lines alone show it, of hosts that the job's record
    does not list: a node may go by another name, and the host may be another job's."""
    nodes = {node.partition(".")[0].lower() for job in facts.jobs for node in job.nodes}
    said = [cite for cite in finding.cites if isinstance(cite, LogCite)]
    if not nodes or not said or len(said) < len(finding.cites):
        return finding
    hosts = [
        cite.place.host or beside_kernel_word(cite.source)
        for cite in said
        if cite.source in facts.kernel_files
    ]
    strange = [
        host
        for host in hosts
        if host is not None
        and host.partition(".")[0].lower() not in nodes
        and facts.node_of(host) not in facts.hosts
    ]
    if len(strange) < len(said):
        return finding
    told = f"Whether {strange[0]} ran this job: its record lists no host of that name."
    return replace(finding, most=min(finding.most, UNKNOWN),
                   cannot_decide=(*finding.cannot_decide, told))  # fmt: skip


def of_a_servers_hours(facts: Facts, finding: Finding) -> Finding:
    """Less sure what metrics show where only a server's samples tell when the run was: another
    job's on the same hosts may lie as it would."""
    asked = any(isinstance(cite, QueryCite) for cite in finding.cites)
    if not asked or not any(gap.need == CLOCK and gap.where for gap in facts.gaps):
        return finding
    open_ = "Whether these samples are of this run: in which zone its times are, nothing states."
    return replace(finding, most=min(finding.most, UNSTATED),
                   cannot_decide=(*finding.cannot_decide, open_))  # fmt: skip


def told_of(facts: Facts, finding: Finding, found: Sequence[Finding]) -> Finding:
    """The finding, less sure where the run's own log tells it of a host that nothing else names:
    monitors and chats of a cluster write of every host into it.  A warning where the job's record
    lists its hosts, or the run has a cause of its own to have ended."""
    name = _told_of(facts, finding)
    if name is None:
        return finding
    listed = any(job.nodes for job in facts.jobs)
    told = f"Whether {name} ran this job: "
    told += "its record lists no host of that name." if listed else "nothing else read names it."
    own = any(
        other.ended_run
        and other.role == "cause"
        and other.strength >= OWN_CAUSE
        and other.code not in WAITING
        and _told_of(facts, other) is None
        for other in found
    )
    return replace(
        finding,
        most=min(finding.most, UNKNOWN),
        role="warning" if listed or own else finding.role,
        cannot_decide=(*finding.cannot_decide, told),
    )


def _told_of(facts: Facts, finding: Finding) -> str | None:
    """The host that is named by nothing but what a finding rests on."""
    said = [cite for cite in finding.cites if isinstance(cite, LogCite)]
    if not said or len(said) < len(finding.cites):
        return None
    strange = [_stranger(facts, cite) for cite in said]
    return strange[0] if all(strange) else None


def _stranger(facts: Facts, cite: LogCite) -> str | None:
    """The host that a line tells of in the words of kernels, where nothing else that was read
    names it."""
    lines = facts.at_line(cite.source, cite.line, cite.line)
    if not any(match.signature.origin in WATCHED for match in lines):
        return None
    name = host_told_of(cite.text)
    return None if name is None or _heard(facts, name) else name


def _heard(facts: Facts, name: str, listing: str | None = None) -> bool:
    """Whether anything but what tells of its trouble names a host; in a `listing` of Kubernetes
    rows of the run's own pods."""
    short = name.partition(".")[0].lower()
    nodes = [node for job in facts.jobs for node in job.nodes] + list(facts.last.hosts)
    places = [
        *(track.place.host for track in facts.tracks),
        *(read.place.host for read in facts.files),
        *(event.place.host for event in facts.exits),
    ]
    if short in {known.partition(".")[0].lower() for known in (*nodes, *places) if known}:
        return True
    return any(
        short in text.lower()
        and not _TROUBLE.search(text)
        and (read.source != listing or _of_its_pod(facts, text, listing))
        for read in facts.log_files()[:SEARCHED_FILES]
        for text in facts.lines(read.source, 1, SEARCHED_LINES)
    )


def _strange(facts: Facts, cite: LogCite) -> str | None:
    """The pod or node that a row is of, where nothing else names it."""
    found = _OBJECT.search(cite.text)
    lines = facts.at_line(cite.source, cite.line, cite.line)
    told = [match for match in lines if match.signature.origin == "kubernetes"]
    of = {} if found is None else found.groupdict()
    if not told:
        return None
    if of.get("process"):
        return f"process {of['process']}"
    name = of.get("name") or of.get("node") or of.get("row")
    if name and (of["node"] or of["kind"] == "node"):
        others = (m.cite.place.host for m in facts.matches if m.signature.origin != "kubernetes")
        own = facts.node_of(name) in map(facts.node_of, filter(None, others))
        return None if own or _heard(facts, name, cite.source) else f"node {name}"
    name = name or next((match.groups["pod"] for match in told if "pod" in match.groups), None)
    if name is None:
        return None
    return None if known_pod(facts, name, cite.source) else f"pod {name}"


def _of_its_pod(facts: Facts, text: str, listing: str) -> bool:
    of = found.groupdict() if (found := _OBJECT.search(text)) else {}
    pod = of.get("row") or (of.get("name") if of.get("kind") == "pod" else None)
    return pod is not None and known_pod(facts, pod, listing)


def known_pod(facts: Facts, pod: str, listing: str) -> bool:
    """Whether another file, a host or a record is named after a pod's owner."""
    owner = OWNER.sub("", pod)
    known = [read.source for read in facts.files if read.source != listing]
    known += [*facts.hosts, *(row.name or "" for row in facts.jobs)]
    return any(owner in one for one in known)


def gpus_seen(facts: Facts) -> bool:
    """Whether any GPU was measured: metrics may be of hosts alone."""
    return any(map(facts.measured, OF_EVERY_GPU))


def none_besides(facts: Facts) -> bool:
    """Whether only one host was measured, or no more GPUs than the run has ranks: then what was
    measured is the run's."""
    return facts.memo("belonging.none-besides", _none_besides)


def scoped(facts: Facts) -> bool:
    """Whether what was measured is known to be the run's: its hosts are named, or nothing else
    was measured."""
    return bool(facts.last.hosts) or none_besides(facts)


def _none_besides(facts: Facts) -> bool:
    signal = next(filter(facts.measured, OF_EVERY_GPU), None)
    if signal is None or facts.window is None:
        return False
    start, end = (moment.timestamp() for moment in facts.window)
    over = f"[{max(1, int(end - start))}s]"
    read = instant(facts, f"count by (host, gpu) (count_over_time({signal}{over}))", end)
    places = [row.place for row in read.rows] if read is not None else []
    alone = len({place.host for place in places}) == 1
    return alone or 0 < len(places) <= (facts.world_size or 0)
