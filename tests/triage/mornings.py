"""Jobs of a made-up morning."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from flatline.model import Attribution, Disposition, Job, Place, RecordCite
from flatline.triage import Ended, Line, Told

START = datetime(2026, 11, 20, 4, tzinfo=UTC)


def row(
    job_id: object, disposition: Disposition = "completed", *nodes: str, **more: object
) -> Job:
    cite = RecordCite("sacct.txt", "row 1, State", disposition, "t")
    fields: dict[str, object] = {
        "user": f"user{job_id}",
        "name": f"job-{chr(97 + hash(str(job_id)) % 26)}{job_id}x",
        "partition": "gpu",
        "started_at": START,
        "ended_at": START + timedelta(hours=1),
    }
    return Job(str(job_id), state=disposition.upper(), disposition=disposition, cite=cite,
               nodes=nodes, **(fields | more))  # type: ignore[arg-type]  # fmt: skip


def success(job_id: object, *nodes: str, **more: object) -> Line:
    return Line(Ended((row(job_id, "completed", *nodes, **more),)), None)


def failure(
    job_id: object,
    *nodes: str,
    blames: Attribution = "unknown",
    at: tuple[str, ...] = (),
    storage: tuple[str, ...] = (),
    **more: object,
) -> Line:
    """A failed job; undetermined where nobody is blamed."""
    told = Told(
        str(job_id),
        "undetermined" if blames == "unknown" and not storage else "found",
        "it failed",
        code="B2" if blames != "unknown" else None,
        attribution=blames,
        culprits=tuple(Place(host=host) for host in at),
        storage=storage,
    )
    return Line(Ended((row(job_id, "failed", *nodes, **more),)), told)


def sound(count: int, hosts: int = 20, first: int = 1000) -> list[Line]:
    """Completed jobs of one node each, over n000, n001..."""
    return [success(first + i, f"n{i % hosts:03}") for i in range(count)]
