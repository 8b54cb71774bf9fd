"""Records that lie with a run and are of another: by when they were made and the logs written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flatline.collect.events import LogEvents
from flatline.collect.files import Found
from flatline.facts import LOG, SCHEDULER, ZONES_S
from flatline.model import Gap, Job, Records


def strangers(
    rows: Sequence[Job],
    logs: Iterable[tuple[Found, object, LogEvents]],
    named: Sequence[str | None],
    given: Iterable[Records],
) -> frozenset[str]:
    """The job of the rows, where every log that is dated was written so long before it was
    submitted, or after it had ended, that no time zone makes the two one; not one that was named
    or that the caller gave."""
    meant = {*named, *(job.id for one in given for job in one.jobs)}
    rows = [row for row in rows if row.id not in meant]
    told = (one for file, _, one in logs if file.kind == LOG and not one.yearless)
    dated = [(one.first_seen, one.last_seen) for one in told if one.first_seen and one.last_seen]
    made = [at for row in rows if (at := row.submitted_at or row.started_at)]
    over = [row.ended_at for row in rows if row.ended_at]
    if not dated or not made:
        return frozenset()
    first, last = min(begun for begun, _ in dated), max(end for _, end in dated)
    before = (min(made) - last).total_seconds() > ZONES_S
    after = len(over) == len(rows) and (first - max(over)).total_seconds() > ZONES_S
    return frozenset(row.id for row in rows) if before or after else frozenset()


def without(jobs: Sequence[Job], left_out: frozenset[str], gaps: list[Gap]) -> list[Job]:
    """The rows without those of these jobs, which are gaps."""
    gaps += [Gap(SCHEDULER, f"the record of job {job} is of another time than the logs: left out")
             for job in sorted(left_out)]  # fmt: skip
    return [job for job in jobs if job.id not in left_out]
