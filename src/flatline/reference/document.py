"""Entries of the catalogue as JSON."""

from __future__ import annotations

from flatline.model import Signature
from flatline.reference import ROLES, FamilyEntry, LineEntry, Mechanism

Json = object


def family(entry: FamilyEntry) -> dict[str, Json]:
    own = entry.family
    return {
        "kind": "family",
        "code": own.code,
        "name": own.name,
        "title": own.title,
        "page": own.page,
        "needs": list(own.needs),
        "decided_by": own.decided_by,
        "can_cause": [_mechanism(row) for row in entry.causes],
        "caused_by": [_mechanism(row) for row in entry.caused_by],
        "signatures": [{"id": s.id, "role": s.role} for s in entry.signs],
    }


def _mechanism(row: Mechanism) -> dict[str, Json]:
    return {
        "code": row.code,
        "family": row.family,
        "fault_class": row.fault_class,
        "mechanism": row.how,
    }


def signature(item: Signature) -> dict[str, Json]:
    return {
        "kind": "signature",
        "id": item.id,
        "origin": item.origin,
        "role": item.role,
        "role_means": ROLES[item.role],
        "family": item.family,
        "fault_class": item.fault_class,
        "late_family": item.late_family,
        "late_fault_class": item.late_class,
        "attribution": item.attribution,
        "strength": item.strength if item.role == "root" else None,
        "meaning": item.meaning,
        "does_not_prove": item.not_proof,
        "action": item.action,
        "samples": list(item.samples),
        "near_misses": list(item.near_misses),
        "source": item.source,
        "tags": list(item.tags),
        "pattern": item.pattern,
    }


def line(entry: LineEntry) -> dict[str, Json]:
    return {
        "kind": "line",
        "matches": [{**signature(m.signature), "groups": dict(m.groups)} for m in entry.matches],
        "exceptions": list(entry.exceptions),
        "progress": list(entry.progress),
    }
