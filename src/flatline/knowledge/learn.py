"""
What a site learns of a verdict that turned out right or wrong.

A confirmed one becomes a record of the site's own; the same problem met again (family, fault class
and shapes of the cited lines) is the same record, counted once more.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flatline.errors import UsageError
from flatline.knowledge.incident import LONGEST, LONGEST_LINE, MOST_LINES, Incident, load
from flatline.knowledge.site import CONFIRMED, add_one, note, site
from flatline.redact import excerpt

MOST_BYTES = 64 << 20
NOT_TOLD = "Not told."
_SHAPES = (
    (re.compile(r"https?://\S+"), "<url>"),
    (re.compile(r"(?<![\w<])/[\w.+/-]{2,}"), "<path>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "<address>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T _]\d\d:\d\d:\d\d[.,\dZ]*"), "<time>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"), "<hex>"),
    (re.compile(r"\d+(?:\.\d+)?"), "<n>"),
)


def learn(
    file: Path,
    outcome: str,
    where: Path,
    cause: str | None = None,
    fix: str | None = None,
    record: str | None = None,
) -> list[str]:
    """
    Writes the outcome, and a record where a confirmed problem is new; what was done, in sentences.

    `file` holds a verdict as JSON.  Raises `UsageError` where it holds none, where the verdict
    found nothing that could be right or wrong, or where `record` is not known.
    """
    document = _verdict(file)
    verdict, run = document["verdict"], _run(document)
    if record is not None:
        known = {i.id for i in (*load(), *site(where).incidents)}
        if record not in known:
            raise UsageError(f"no record is called {record!r}; `flatline kb search` finds them")
        return [_noted(where, record, outcome, run)]
    if outcome != CONFIRMED:
        return [_noted(where, str(verdict["code"]), outcome, run)]
    incident = _incident(document, cause, fix)
    told = next((o for o in site(where).outcomes if o[2] == run), None)
    if told is not None:  # before a record is made: a run has one vote
        return [_noted(where, incident.id, outcome, run)]
    done = []
    if incident.id not in {i.id for i in site(where).incidents}:
        done.append(f"a record was made: {add_one(incident, where)}")
    return [*done, _noted(where, incident.id, outcome, run)]


def _noted(where: Path, name: str, outcome: str, run: str) -> str:
    if note(where, name, outcome, run):
        return f"{name}: {outcome}, from {run}"
    return f"{name}: the outcome of {run} is known already, nothing was written"


def _verdict(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
        document = json.loads(data) if len(data) <= MOST_BYTES else None
    except OSError as fault:
        raise UsageError(f"{file}: {fault.strerror or fault}") from fault
    except (ValueError, RecursionError) as fault:
        raise UsageError(f"{file} is no JSON: {str(fault)[:120]}") from fault
    verdict = document.get("verdict") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(verdict, dict) or "state" not in verdict:
        raise UsageError(f"{file} holds no verdict: give what `diagnose --format json` printed")
    if verdict.get("state") != "found" or not isinstance(verdict.get("code"), str):
        raise UsageError(
            f"the verdict in {file} is {str(verdict.get('state'))[:20]}: there is no fault to "
            "confirm. What it was can be written as a record: flatline kb add FILE.toml"
        )
    if not re.fullmatch(r"[A-G][1-9]", verdict["code"]):
        raise UsageError(f"{file}: {verdict['code']!r:.40} is no family's code")
    return document


def _run(document: Mapping[str, Any]) -> str:
    """The run by its id, or by what the verdict rests on: one vote a run, not a file."""
    run = document.get("run")
    run = run if isinstance(run, dict) else {}
    evidence = json.dumps([e.get("text") for e in _tables(document.get("evidence"))])
    digest = hashlib.sha256(f"{run.get('started_at')}{evidence}".encode("utf-8", "replace"))
    name = re.sub(r"[^\w.-]", "_", str(run.get("id") or "run"))[:60]
    return f"{name}-{digest.hexdigest()[:8]}"


def _incident(document: Mapping[str, Any], cause: str | None, fix: str | None) -> Incident:
    verdict = document["verdict"]
    lines = _lines(document)
    fault_class = str(verdict.get("fault_class") or "")
    shape = "\n".join([verdict["code"], fault_class, *sorted(lines)])
    name = re.sub(r"[^a-z0-9]+", "-", f"site-{verdict['code']}-{fault_class}".lower()).strip("-")
    run = document.get("run")
    run = run if isinstance(run, dict) else {}
    around = [str(run[key])[:80] for key in ("framework", "launcher") if run.get(key)]
    implied = " ".join(_texts(verdict.get("implies")))
    advised = " ".join(_texts(verdict.get("actions")))
    return Incident(
        id=f"{name[:60]}-{hashlib.sha256(shape.encode('utf-8', 'replace')).hexdigest()[:8]}",
        problem=_short(verdict.get("headline"), "problem"),
        symptom=_short(". ".join(_first(_texts(verdict.get("shows")))), "symptom"),
        lines=tuple(lines) or (_short(verdict.get("headline"), "problem"),),
        environment=tuple(around) or ("any",),
        function=f"`flatline diagnose`, then `flatline families {verdict['code']}`",
        cause=_short(cause or implied or verdict.get("headline"), "cause"),
        fix=_short(fix or advised, "fix"),
        families=(verdict["code"],),
        source=f"run {_run(document)} of this site",
        settled=f"confirmed at this site on {datetime.now(UTC):%Y-%m-%d}",
    )


def _first(texts: Iterable[str]) -> list[str]:
    """Two sentences, so that a record stays a record: full stops within are commas."""
    return [re.sub(r"[.!?]+(?=\s|$)", ",", text).strip(" ,") for text in list(texts)[:2]]


def _lines(document: Mapping[str, Any]) -> list[str]:
    """Shapes of the log lines that the verdict's own finding cites, at most four."""
    findings = _tables(document.get("findings"))
    cited = findings[0].get("cites") if findings else []
    wanted = set(cited) if isinstance(cited, list) else set()
    made: dict[str, None] = {}
    for piece in _tables(document.get("evidence")):
        if piece.get("kind") == "log" and piece.get("id") in wanted and piece.get("text"):
            made.setdefault(shape_of(str(piece["text"])))
    return [line for line in made if line][:MOST_LINES]


def shape_of(line: str) -> str:
    """The line without what belongs to this run alone: numbers, paths, addresses, times."""
    line = _one_line(excerpt(line, 8 * LONGEST_LINE))
    for pattern, name in _SHAPES:
        line = pattern.sub(name, line)
    return line[:LONGEST_LINE].strip()


def _one_line(text: str) -> str:
    return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", text).split())


def _short(value: object, key: str) -> str:
    said = _one_line(excerpt(str(value or NOT_TOLD), 4 * LONGEST[key]))
    return said[: LONGEST[key]].strip() or NOT_TOLD


def _tables(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _texts(value: object) -> list[str]:
    return [str(item["text"]) for item in _tables(value) if item.get("text")]
