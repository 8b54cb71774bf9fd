"""What the formats that show Kubernetes' pods have in common."""

from __future__ import annotations

from collections.abc import Mapping

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
