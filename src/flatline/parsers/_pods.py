"""What the formats that show Kubernetes' pods have in common."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

GPUS = ("nvidia.com/gpu", "amd.com/gpu")
"""What a container asks its GPUs for by."""
_JOB_LABELS = (
    "training.kubeflow.org/job-name", "jobset.sigs.k8s.io/jobset-name", "ray.io/cluster",
    "volcano.sh/job-name", "batch.kubernetes.io/job-name", "job-name",
)  # fmt: skip
"""Kubeflow's trainer, JobSet, KubeRay, Volcano and Kubernetes itself; the outer one first."""


def job_by(labels: Mapping[str, str]) -> str | None:
    """The job whose pods bear such labels."""
    return next((labels[key] for key in _JOB_LABELS if labels.get(key)), None)


def described_time(text: str) -> datetime | None:
    """A time as `kubectl describe` prints it, `Wed, 02 Apr 2025 07:29:10 +0000`; None for other
    text."""
    try:
        return datetime.strptime(text, "%a, %d %b %Y %H:%M:%S %z")
    except ValueError:
        return None


def moment(text: str) -> datetime | None:
    """A time as it stands in an object, `2025-04-02T07:29:10Z`; None for other text."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else None
