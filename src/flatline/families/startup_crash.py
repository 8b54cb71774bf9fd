"""
The program failed before its first training step.

Symptom:
    A traceback within seconds or minutes of the start, no training step anywhere, usually the
    same exception on every rank.

Mechanism:
    Something the run needs was not as it expects: a dataset it cannot read (data), a setting it
    does not accept (config), a package or driver that is missing or does not fit (env), a model,
    tokenizer or checkpoint file it cannot get (asset).  It dies the same way every time.

Told apart from:
    A3 runtime-crash: there a training step was made first.
    B1 gpu-out-of-memory: memory is the cause, whatever the phase.
    C1 rendezvous-hang: no rank raised anything of its own; they could not find each other.
    E2 resume-from-scratch: the exception is about the checkpoint the run was to go on from.
    F4 launch-failure: the program never ran; the launcher or the container refused.

Do:
    Fix what the exception names and resubmit.  Where one host alone fails, compare its software
    with its neighbours', exclude it, and resubmit as it is.

References:
    Python documentation, built-in exceptions and the traceback module; pages of the signatures
    cited with the finding.
"""

from __future__ import annotations

from flatline.facts import Facts
from flatline.judging.alone_raised import alone_raised
from flatline.judging.claims import claim
from flatline.judging.crashes import Failure, failures
from flatline.judging.leads import Lead, fix, lead, on_one_host, phase, raised, shows
from flatline.judging.steering import leave_out
from flatline.model import Action, Attribution, Cleared, Finding, Judgement, Resubmit

CODE = "A1"
NAME = "startup-crash"
NEEDS = ("job log",)
DECIDED_BY = (
    "the first traceback of each rank, and a line that tells whether a step came before it "
    "(all ranks' stderr)"
)
EXPLAINS = {
    "C1": "a rank that died at start-up never joins, so the others wait for it in the rendezvous",
    "C2": "a rank that died at start-up never enters the first collective the others wait in",
    "A2": "the launcher ends the other ranks once one has died",
    "F3": "ranks left waiting for one that died hold the allocation to the wall",
}
_WENT_ON = 0.5
_FIXES = {
    "data": "Repair or re-export the dataset the exception names, then resubmit.",
    "config": "Correct the setting the exception names, then resubmit.",
    "env": "Install the version of the package or driver the exception names, then resubmit.",
    "asset": "Make the file, model or token the exception names available, then resubmit.",
}


UNHEARD_MOST = 0.79
"""Just short of confident: a container that does not start has the same cause on record."""


def judge(facts: Facts) -> Judgement:
    """Blame the first exception before any step; echoes and wrappers are not candidates."""
    found = lead(facts, CODE)
    if found is None:
        return _passed(facts)
    found, past = alone_raised(facts, on_one_host(facts, found))
    first = found.first
    if _by_kernel(facts, first) and _never_launched(facts, first):
        return None
    host = first.place.host or _of_its_own(found)
    one_host = _one_host_of_several(facts, host, found.scope)
    attribution: Attribution = "infrastructure" if one_host else first.attribution
    if attribution == "unknown":
        attribution = "job"
    when = phase(facts, first)
    implies = [claim(_means(first.fault_class, first.what), first.cite)]
    actions: tuple[Action, ...] = (
        fix(found, _FIXES.get(first.fault_class or "", "Fix the error and resubmit.")),
    )
    resubmit: Resubmit = "fix_first"
    if one_host and host:
        why = ", the one host that fails"
        actions = (leave_out(facts, (host,), why), *actions)
        resubmit = "exclude"
    return Finding(
        code=CODE,
        summary=(raised(found).rstrip(".") if when.told else raised(found)) + when.told,
        fault_class=first.fault_class,
        attribution=attribution,
        strength=first.strength * when.left * (_WENT_ON if _waited(facts, first) else 1.0),
        most=min(when.most, UNHEARD_MOST if _by_kernel(facts, first) else 1.0),
        shows=(shows(found), *filter(None, (past,))),
        implies=tuple(implies),
        culprits=found.culprits,
        scope=found.scope,
        onset=first.cite.at,
        order=(first.cite.source, first.cite.line),
        attempt=first.attempt,
        cannot_decide=_open(facts, found, when.asked),
        actions=actions,
        resubmit=resubmit,
    )


def _by_kernel(facts: Facts, first: Failure) -> bool:
    return first.cite.source in facts.kernel_files


def _never_launched(facts: Facts, first: Failure) -> bool:
    """Whether the launcher or the container's runtime says that there was no program yet."""
    return any(
        f.family == "F4" and not f.started and f.attempt == first.attempt
        and not _by_kernel(facts, f) and f.place.host in (None, first.place.host)
        for f in failures(facts)
    )  # fmt: skip


def _open(facts: Facts, found: Lead, asked: str | None) -> tuple[str, ...]:
    others = len(found.others)
    return tuple(filter(None, (
        asked,
        "Whether the program had begun (else F4): the kernel's log alone tells of it."
        if _by_kernel(facts, found.first) else None,
        f"Whether {others} other errors are consequences: they come later or in another file."
        if others else None,
    )))  # fmt: skip


def _waited(facts: Facts, first: Failure) -> bool:
    """Whether the run lived on to its limit after a bare line: then the script survived it."""
    bare = first.crash is None or first.crash.head == first.crash.cite
    return bare and facts.disposition == "timeout"


def _means(fault_class: str | None, what: str) -> str:
    kinds = {
        "data": "The fault is in the data the run was given, not in the cluster.",
        "config": "The fault is in the run's own configuration, not in the cluster.",
        "env": "What the nodes provide does not fit what the run needs.",
        "asset": "Something the run must load is not where it looks, or not readable.",
    }
    lead_in = kinds.get(fault_class or "", "The program failed while it was being set up.")
    return f"{lead_in} {what}" if not what.endswith("not caught") else lead_in


def _one_host_of_several(facts: Facts, host: str | None, scope: str) -> bool:
    return host is not None and len(facts.hosts) > 1 and scope == "place"


def _of_its_own(found: Lead) -> str | None:
    """The one host of several ranks that failed for what their node provides, however that is
    known: what else fails one rank alone is its own."""
    hosts = {place.host for place in found.culprits}
    several = len(found.culprits) > 1 and len(hosts) == 1
    return hosts.pop() if several and found.first.fault_class == "env" else None


def _passed(facts: Facts) -> Cleared | None:
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    first = facts.point(track, track.of_attempt(facts.last.n)[0])
    return Cleared(CODE, "start-up was passed: training steps were made", (first.cite,))
