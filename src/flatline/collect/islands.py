"""Whether a file that holds records of Slurm is the log of a job that printed them."""

from __future__ import annotations

import re

from flatline.parsers import RecordFormat

_OF_SLURM = ("scontrol", "sacct", "sinfo", "topology")
"""What scripts print of their own job and of the cluster before and after their work."""
_RECORD = re.compile(rb"\s*(?:[A-Z][\w:/]{0,60}=|[\w.+-]{1,60}\|)|[^|\n]{0,300}\|[^|\n]{0,300}\|")
"""A line of `scontrol`, a row of `sacct -P`."""
_SPOKEN = re.compile(
    rb"Traceback \(most recent call last\):|\d%\||^(?:srun|slurmstepd|torchrun|mpirun): "
    rb"|\b(?:step|iter(?:ation)?|epoch)\b[^\w\n]{1,3}\d|\bloss\b[^\w\n]{1,3}\d"
    rb"|^[\w.]{1,120}(?:Error|Exception): |\bNCCL (?:INFO|WARN|version) |\btorch[/.]distributed\b",
    re.IGNORECASE | re.MULTILINE,
)
"""What programs and launchers print, and no command of Slurm."""
LEAST = 2
"""Lines: one may be a remark of who kept the record."""


def printed_by_a_job(form: RecordFormat, head: bytes) -> bool:
    """Whether lines that no record holds, and programs print, stand beside the records."""
    if not form.FORMAT.startswith(_OF_SLURM) or head.lstrip()[:1] in (b"{", b"["):
        return False
    spoken = 0
    for line in head.split(b"\n"):
        spoken += bool(_SPOKEN.search(line) and not _RECORD.match(line))
        if spoken >= LEAST:
            return True
    return False
