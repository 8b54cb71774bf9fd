"""What starts the run, and how a host is left out in its words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from flatline.facts import Facts
from flatline.model import Action, Scheduler

_SLURM = ("slurm", "slurmctld", "srun")
_KUBERNETES = ("cloud-pod-preempted",)
_PODS = ("var/log/pods/", "var/log/containers/")
"""Where the kubelet keeps what containers print: its `--root-dir` documentation."""
_OF_POD = "[pod/"
"""How `kubectl logs --prefix` begins a line."""
_NODE_NAME = re.compile(r"^(?=.*[A-Za-z])[\w.-]+$")
"""What sbatch, bsub and kubectl take."""


def scheduler(facts: Facts) -> Scheduler | None:
    """What the data shows to have started the run; None where nothing read says so."""
    return facts.memo("scheduler", _scheduler)


def _scheduler(facts: Facts) -> Scheduler | None:
    if facts.jobs:
        return facts.jobs[-1].scheduler
    if facts.node_events:
        return facts.node_events[-1].scheduler
    if any(e.reporter == "srun" for e in facts.exits):
        return "slurm"
    if any(match.signature.origin in _SLURM for match in facts.matches):
        return "slurm"
    if any(match.signature.origin == "lsf" for match in facts.matches):
        return "lsf"
    if any(match.signature.id in _KUBERNETES for match in facts.matches):
        return "kubernetes"
    if any(part in file.source for file in facts.files for part in _PODS):
        return "kubernetes"
    told = any(match.cite.text.startswith(_OF_POD) for match in facts.matches)
    return "kubernetes" if told else None


def leave_out(facts: Facts, hosts: Sequence[str], why: str = "") -> Action:
    """
    Keep the next try off these hosts, by what was seen to start this one.

    The command can be pasted: `sbatch --exclude`, LSF's `select`, or `kubectl cordon` and PBS's
    `pbsnodes -o`, which also keep other jobs away.  Where none was seen, or a host is known by its
    address alone, there is none.
    """
    named = tuple(hosts)
    listed = ", ".join(named)
    command = None
    match scheduler(facts):
        case "slurm":
            text = f"Resubmit without {listed}{why}."
            command = "sbatch --exclude=" + ",".join(named)
        case "kubernetes":
            text = f"Cordon or taint {listed}{why}, and start the run again elsewhere."
            command = "kubectl cordon " + " ".join(named)
        case "pbs":
            text = f"Have {listed} taken offline{why}, and submit again: PBS leaves out no host."
            command = "pbsnodes -o " + " ".join(named)
        case "lsf":
            text = f"Resubmit without {listed}{why}."
            apart = " && ".join(f"hname!='{name}'" for name in named)
            command = f'bsub -R "select[{apart}]"'
        case _:
            text = f"Leave {listed} out of the next try{why}."
    known = all(_NODE_NAME.match(host) for host in named)
    return Action("exclude", text, command if known else None, named)
