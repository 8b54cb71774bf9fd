"""The listing as the JSON document of `docs/jobs.schema.json`: its only writer."""

from __future__ import annotations

from datetime import datetime

import orjson

from flatline import __version__
from flatline.model import Place
from flatline.render.json import plain
from flatline.triage import Group, Line, Listing
from flatline.wording.rows import instant

SCHEMA_VERSION = 1
Json = object


def render(listing: Listing) -> str:
    """The document, indented, its keys in the order of the schema."""
    written = orjson.dumps(plain(document(listing)), option=orjson.OPT_INDENT_2)
    return written.decode() + "\n"


def document(listing: Listing) -> dict[str, Json]:
    """The document as plain values; jobs that completed are counted and named, not described."""
    diagnosed = (*listing.failed, *listing.undetermined, *listing.healthy, *listing.cancelled)
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"version": __version__},
        "since": _instant(listing.since),
        "until": _instant(listing.until),
        "counts": {
            "failed": len(listing.failed),
            "undetermined": len(listing.undetermined),
            "healthy": len(listing.healthy),
            "cancelled": len(listing.cancelled),
            "completed": len(listing.completed),
            "not_diagnosed": len(listing.unread),
        },
        "groups": [_group(group) for group in listing.groups],
        "jobs": [_job(line) for line in diagnosed],
        "completed": [line.id for line in listing.completed],
        "not_diagnosed": [line.id for line in listing.unread],
        "left_out_of_groups": listing.left_out,
        "gaps": [
            {"need": gap.need, "where": gap.where, "reason": gap.reason} for gap in listing.gaps
        ],
    }


def _group(group: Group) -> dict[str, Json]:
    return {
        "kind": group.kind,
        "names": list(group.names),
        "jobs": list(group.jobs),
        "failures": group.failures,
        "failures_compared": group.of_failures,
        "successes": group.successes,
        "successes_compared": group.of_successes,
        "p": group.p,
        "p_corrected": group.corrected,
        "places_tested": group.tested,
    }


def _job(line: Line) -> dict[str, Json]:
    job, told = line.ended.job, line.told
    assert told is not None
    return {
        "id": job.id,
        "name": job.name,
        "user": job.user,
        "partition": job.partition,
        "disposition": job.disposition,
        "tries": len(line.ended.rows),
        "started_at": _instant(job.started_at),
        "ended_at": _instant(job.ended_at),
        "elapsed_s": line.ended.elapsed_s,
        "nodes": list(job.nodes),
        "gpus": job.gpus,
        "gpu_hours_lost": told.gpu_hours_lost,
        "state": told.state,
        "code": told.code,
        "family": told.family,
        "fault_class": told.fault_class,
        "attribution": told.attribution,
        "confidence": told.confidence,
        "culprits": [_place(place) for place in told.culprits],
        "headline": told.headline,
        "resubmit": told.resubmit,
        "storage": list(told.storage),
        "logs": told.logs,
    }


def _place(place: Place) -> dict[str, Json]:
    return {
        "host": place.host,
        "gpu": place.gpu,
        "device": place.device,
        "domain": place.domain,
        "rank": place.rank,
        "task": place.task,
    }


def _instant(at: datetime | None) -> str | None:
    return None if at is None else instant(at)
