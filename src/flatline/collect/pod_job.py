"""
What Kubernetes shows of a run's pods, as the record of one job.

A list of pods may be that of a whole namespace: what is no pod of the same job as all the others
makes it tell of none.  Pods that wait to be started say nothing of how a run ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from flatline.model import Disposition, Job, Match, Pod
from flatline.parsers._slurm import named_once

_ENDS: dict[Disposition, frozenset[str]] = {
    "out_of_memory": frozenset(("OOMKilled",)),
    "failed": frozenset(
        ("Error", "Failed", "CrashLoopBackOff", "ContainerCannotRun", "StartError",
         "RunContainerError", "DeadlineExceeded", "Evicted", "NodeLost", "NodeAffinity",
         "UnexpectedAdmissionError")
    ),
    "running": frozenset(("Running",)),
    "completed": frozenset(("Completed", "Succeeded")),
}  # fmt: skip
"""Phases and reasons that `kubectl get pods` shows (kubernetes/kubernetes pkg/printers)."""
_BADLY = ("failed", "out_of_memory")
_VAGUE = ("Error", "Failed")
"""What is said of a pod that failed where nothing tells why, so of the others of one that was
evicted."""
_STEM = re.compile(
    r"(?P<stem>[a-z0-9.-]{1,200}?)-(?:(?:gpu-?)?workers?|master|launcher|head|chief|ps|trainers?"
    r"|nodes?|replicas?|servers?|tasks?|ranks?)(?:-.{1,60})?$"
)
"""A job's name before its pods' roles: Kubeflow, JobSet, KubeRay, MPIJob."""
_NUMBERED = re.compile(r"(?P<stem>[a-z0-9.-]{1,200}?)(?:-\d{1,4}){1,3}(?:-[a-z0-9]{5})?$")
_DRAWN = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$")
"""What Kubernetes ends a name with that it draws (apimachinery/pkg/util/rand)."""

_OF_RAY = re.compile(r"(?:^|-)(?:raycluster-.{1,200}-(?:head|worker)(?:-|$)|(?<!x-)ray-)")
"""KubeRay's, as it names the cluster of a RayJob and those of its examples, and what is called
Ray's by whom else."""

ASSIGNED = "kubernetes-assigned"
MOST_EACH = 8
"""Ranks on a node: more, and the pods of some nodes are not told of.  Events are kept an hour."""


def assigned(matches: Iterable[Match]) -> dict[str, str]:
    """The nodes that pods were given, by the pods' names and by these without what is drawn, as
    an indexed Job's are called within; none of those that were given two."""
    told = [(m.groups["pod"], m.groups["node"]) for m in matches if m.signature.id == ASSIGNED]
    return named_once([*told, *((_DRAWN.sub("", pod), node) for pod, node in told)])


def nodes_of_its_pods(
    nodes: Mapping[str, str], matches: Sequence[Match], files: Iterable[str]
) -> tuple[str, ...]:
    """The nodes of all pods of the job whose pods a run's lines or files name, where its ranks, as
    many as it says or NCCL's largest communicator has, fill them."""
    heard = {match.cite.place.host for match in matches} | {*files}
    jobs = {stem(name) for name in heard if name and name in nodes}
    held = dict.fromkeys(node for pod, node in nodes.items() if stem(pod) in jobs)
    sizes = (m.groups.get(key, "") for m in matches for key in ("world_size", "comm_size"))
    world = max((int(size) for size in sizes if size.isdecimal()), default=0)
    each, left = divmod(world, len(held) or 1)
    whole = len(jobs) == 1 and len(held) > 1 and not left and 0 < each <= MOST_EACH
    return tuple(held) if whole else ()


def job_of(pods: Sequence[Pod]) -> Job | None:
    """One job that all pods are of; None where they are of several, where some wait to be started,
    or some run and others ended: what runs is of another try, left behind, or soon to be ended.
    So is one that failed where another of its name but for what is drawn did not: a Job starts a
    pod anew under another name."""
    told = list({pod.name: pod for pod in sorted(pods, key=_tells)}.values())
    names = {pod.job or stem(pod.name) for pod in told}
    ends = {_disposition(pod) for pod in told}
    disposition: Disposition | None = next((one for one in _ENDS if one in ends), None)
    if len(names) != 1 or None in ends or disposition is None or {"running"} < ends:
        return None
    tries = {(_DRAWN.sub("", pod.name), _disposition(pod) in _BADLY) for pod in told}
    if len(tries) > len({name for name, _ in tries}):
        return None
    if disposition == "running" and any(map(_outlives, told)):
        disposition = "unknown"
    such = [pod for pod in told if disposition == "unknown" or _disposition(pod) == disposition]
    first = next((pod for pod in such if pod.status not in _VAGUE), such[0])
    ended = [pod.ended_at for pod in told if pod.ended_at]
    gpus = [pod.gpus for pod in told if pod.gpus]
    return Job(
        id=(name := names.pop()),
        name=name,
        disposition=disposition,
        state=first.status,
        cite=first.cite,
        exit_code=first.exit_code,
        started_at=min((pod.started_at for pod in told if pod.started_at), default=None),
        ended_at=max(ended, default=None),
        nodes=tuple(dict.fromkeys(pod.node for pod in told if pod.node)),
        gpus=sum(gpus) if len(gpus) == len(told) else None,
        scheduler="kubernetes",
    )


def _outlives(pod: Pod) -> bool:
    """A Ray cluster runs on when what it was asked to do is done."""
    return pod.outlives or _OF_RAY.search(pod.name) is not None


def _disposition(pod: Pod) -> Disposition | None:
    return next((kind for kind, said in _ENDS.items() if pod.status in said), None)


def _tells(pod: Pod) -> int:
    """How much is told of a pod: of one that is listed and described the description counts."""
    return sum(part is not None for part in (pod.job, pod.started_at, pod.ended_at, pod.gpus))


def stem(name: str) -> str:
    found = _STEM.match(name) or _NUMBERED.match(name)
    return found["stem"] if found else name
