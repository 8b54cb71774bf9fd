"""
The verdict as the JSON document of `docs/verdict.schema.json`: the only writer of it.

Instants end in Z.  JSON has no NaN and no infinity: where any value may stand they are the
strings "NaN", "Infinity" and "-Infinity", where the schema wants a number they are null.  Text
is left as the evidence has it; a character UTF-8 cannot carry is spelled as its escape.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import assert_never

import orjson

from flatline import __version__
from flatline.model import (
    AbsenceCite,
    Action,
    Attempt,
    Cite,
    Claim,
    Comparison,
    DerivedCite,
    DumpCite,
    Judged,
    LogCite,
    Measure,
    Place,
    QueryCite,
    Reasoning,
    RecordCite,
    Related,
    Run,
    Scalar,
    SignalChange,
    Verdict,
)
from flatline.render import Ledger, first_source, ordered_findings
from flatline.wording.rows import instant

NAME = "json"
SCHEMA_VERSION = 1

Json = object
"""A tree of dict, list and scalars."""


def render(verdict: Verdict) -> str:
    """The document, indented, its keys in the order of the schema."""
    written = orjson.dumps(plain(document(verdict)), option=orjson.OPT_INDENT_2)
    return written.decode() + "\n"


def document(verdict: Verdict) -> dict[str, Json]:
    """The document as plain values: what `verify` takes."""
    ledger = Ledger(verdict)
    reasoning = verdict.reasoning
    made: dict[str, Json] = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"version": __version__, "catalogue": verdict.catalogue},
        "run": _run(verdict, ledger),
        "verdict": _verdict(verdict, ledger),
        "findings": [_finding(judged, ledger) for judged in ordered_findings(verdict)],
        "ruled_out": [
            {"family": r.family, "code": r.code, "why": r.why, "cites": list(ledger.ids(r.cites))}
            for r in verdict.ruled_out
        ],
        "undetermined": [
            {"family": u.family, "code": u.code, "missing": list(u.missing)}
            for u in verdict.undetermined
        ],
        "gaps": [
            {"need": gap.need, "where": gap.where, "reason": gap.reason} for gap in verdict.gaps
        ],
        "evidence": [
            *(evidence_object(name, cite, ledger) for name, cite in ledger.items),
            *(dict(found.item) for found in (reasoning.found if reasoning else ())),
        ],
        "related": [_related(one) for one in verdict.related],
        **_compared(verdict.comparison, ledger),
    }
    return made if reasoning is None else {**made, "reasoning": _reasoning(reasoning)}


def _reasoning(reasoning: Reasoning) -> dict[str, Json]:
    """What an agent said; evidence that its looks brought stands with the rest of it."""
    spent = reasoning.spent
    return {
        "question": reasoning.question,
        "model": reasoning.model,
        "answered": reasoning.answered,
        "code": reasoning.code,
        "family": reasoning.family,
        "stands": reasoning.stands,
        "overturned": reasoning.overturned,
        "ruling": reasoning.ruling,
        "claims": [{"text": s.text, "cites": list(s.cites)} for s in reasoning.claims],
        "prose": [{"text": s.text, "cites": list(s.cites)} for s in reasoning.prose],
        "rejected": [{"text": r.text, "why": r.why} for r in reasoning.rejected],
        "thoughts": [
            {
                "id": t.id,
                "role": t.role,
                "round": t.round,
                "on": list(t.on),
                "text": t.text,
                "cites": list(t.cites),
                "holds": t.holds,
            }
            for t in reasoning.thoughts
        ],
        "looks": [{"tool": w.tool, "asked": w.asked, "found": w.found} for w in reasoning.looks],
        "spent": None
        if spent is None
        else {
            "calls": spent.calls,
            "tokens_in": spent.tokens_in,
            "tokens_out": spent.tokens_out,
            "seconds": spent.seconds,
            "cost_usd": spent.cost_usd,
            "price_from": spent.price_from,
            "limits": spent.limits,
        },
        "stopped": reasoning.stopped,
    }


def _related(one: Related) -> dict[str, Json]:
    """An incident that resembles the run; it is no evidence, and cites none."""
    return {
        "id": one.id,
        "problem": one.problem,
        "cause": one.cause,
        "fix": one.fix,
        "source": one.source,
        "settled": one.settled,
        "share": one.share,
        "confirmed_here": one.confirmed,
        "wrong_here": one.wrong,
    }


def _compared(compared: Comparison | None, ledger: Ledger) -> dict[str, Json]:
    """The run it was compared with, and each difference: settings, equal steps, signals."""
    if compared is None:
        return {"baseline": None, "comparison": None}
    baseline = {
        "target": list(compared.targets),
        "job": compared.job,
        "chosen": compared.chosen,
        "hosts": list(compared.hosts),
        "same_hosts": compared.same_hosts,
        "same_speed_settings": compared.alike,
        "same_learning_settings": compared.learns_alike,
        "agreed": list(compared.agreed),
        "signals_compared": list(compared.compared),
        "gaps": [{"need": g.need, "where": g.where, "reason": g.reason} for g in compared.gaps],
    }
    differences: list[Json] = [
        {
            "kind": "configuration",
            "name": one.name,
            "weight": one.weight,
            "ours": one.ours,
            "theirs": one.theirs,
            "cites": list(ledger.ids(one.cites)),
        }
        for one in compared.settings
    ]
    differences += [_measure(one, ledger) for one in compared.measures]
    differences += [_signal(one, ledger) for one in compared.signals]
    return {"baseline": [baseline], "comparison": differences}


def _measure(one: Measure, ledger: Ledger) -> dict[str, Json]:
    return {
        "kind": "steps",
        "name": one.name,
        "unit": one.unit,
        "ours": _finite(one.ours),
        "theirs": _finite(one.theirs),
        "change_ratio": _finite(one.change_ratio),
        "noise_ratio": _finite(one.noise_ratio),
        "differs": one.differs,
        "points": one.points,
        "axis": one.axis,
        "first_step": one.steps[0] if one.steps and one.axis == "steps" else None,
        "last_step": one.steps[1] if one.steps and one.axis == "steps" else None,
        "since_step": one.since_step,
        "cites": list(ledger.ids(one.cites)),
    }


def _signal(one: SignalChange, ledger: Ledger) -> dict[str, Json]:
    return {
        "kind": "signal",
        "name": one.signal,
        "unit": one.unit,
        "ours": _finite(one.ours),
        "theirs": _finite(one.theirs),
        "chance": _finite(one.chance),
        "scope": "place" if one.hosts else "all",
        "hosts": list(one.hosts),
        "hosts_measured": one.measured_on,
        "cites": list(ledger.ids(one.cites)),
    }


def _run(verdict: Verdict, ledger: Ledger) -> dict[str, Json]:
    run: Run = verdict.run
    return {
        "id": run.id,
        "target": list(run.target),
        "disposition": run.disposition,
        "framework": run.framework,
        "launcher": run.launcher,
        "hosts": list(run.hosts),
        "world_size": run.world_size,
        "started_at": _instant(run.started_at),
        "ended_at": _instant(run.ended_at),
        "now": _instant(run.now),
        "last_step": run.last_step,
        "planned_steps": run.planned_steps,
        "attempts": [_attempt(attempt, verdict, ledger) for attempt in run.attempts],
    }


def _attempt(attempt: Attempt, verdict: Verdict, ledger: Ledger) -> dict[str, Json]:
    return {
        "n": attempt.n,
        "started_at": _instant(attempt.started_at),
        "ended_at": _instant(attempt.ended_at),
        "disposition": attempt.disposition,
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "hosts": list(attempt.hosts),
        "first_step": attempt.first_step,
        "last_step": attempt.last_step,
        "code": verdict.attempt_codes.get(attempt.n),
        "cites": list(ledger.ids(attempt.cites)),
    }


def _verdict(verdict: Verdict, ledger: Ledger) -> dict[str, Json]:
    impact = verdict.impact
    return {
        "state": verdict.state,
        "headline": verdict.headline,
        "family": verdict.family,
        "code": verdict.code,
        "fault_class": verdict.fault_class,
        "attribution": verdict.attribution,
        "confidence": verdict.confidence,
        "onset": _instant(verdict.onset),
        "onset_step": verdict.onset_step,
        "scope": verdict.scope,
        "domain": verdict.domain,
        "culprits": _places(verdict.culprits),
        "cleared": _places(verdict.cleared),
        "severity": verdict.severity,
        "impact": None
        if impact is None
        else {
            "gpu_hours_lost": _finite(impact.gpu_hours_lost),
            "steps_lost": impact.steps_lost,
            "last_checkpoint_step": impact.last_checkpoint_step,
            "slowdown_ratio": _finite(impact.slowdown_ratio),
        },
        "resubmit": verdict.resubmit,
        "shows": _claims(verdict.shows, ledger),
        "implies": _claims(verdict.implies, ledger),
        "cannot_decide": list(verdict.cannot_decide),
        "actions": [_action(action) for action in verdict.actions],
    }


def _action(action: Action) -> dict[str, Json]:
    return {
        "kind": action.kind,
        "text": action.text,
        "command": action.command,
        "targets": list(action.targets),
    }


def _finding(judged: Judged, ledger: Ledger) -> dict[str, Json]:
    finding = judged.finding
    return {
        "id": judged.id,
        "family": judged.family,
        "code": finding.code,
        "fault_class": finding.fault_class,
        "role": judged.role,
        "attribution": finding.attribution,
        "confidence": judged.confidence,
        "severity": finding.severity,
        "summary": finding.summary,
        "onset": _instant(finding.onset),
        "onset_step": finding.onset_step,
        "attempt": finding.attempt,
        "scope": finding.scope,
        "domain": finding.domain,
        "culprits": _places(finding.culprits),
        "cleared": _places(finding.cleared),
        "explained_by": [{"id": e.by, "mechanism": e.mechanism} for e in judged.explained_by],
        "shows": _claims(finding.shows, ledger),
        "implies": _claims(finding.implies, ledger),
        "cites": list(ledger.ids(finding.cites)),
    }


def _claims(claims: Iterable[Claim], ledger: Ledger) -> list[Json]:
    return [{"text": claim.text, "cites": list(ledger.ids(claim.cites))} for claim in claims]


def _places(places: Iterable[Place]) -> list[Json]:
    return [place_object(place) for place in places]


def place_object(place: Place) -> dict[str, Json]:
    return {
        "host": place.host,
        "gpu": place.gpu,
        "device": place.device,
        "domain": place.domain,
        "rank": place.rank,
        "task": place.task,
    }


def evidence_object(name: str, cite: Cite, ledger: Ledger) -> dict[str, Json]:
    match cite:
        case LogCite():
            return {
                "id": name,
                "kind": "log",
                "source": cite.source,
                "line": cite.line,
                "text": cite.text,
                **_stands(cite.place, cite.at),
                "at_assumed": cite.at_assumed,
            }
        case RecordCite():
            return {"id": name, "kind": "record", **_pointed(cite)}
        case DumpCite():
            return {"id": name, "kind": "dump", **_pointed(cite)}
        case QueryCite():
            return {"id": name, "kind": "query", **_asked(cite)}
        case AbsenceCite():
            return {
                "id": name,
                "kind": "absence",
                "source": cite.source,
                "text": cite.text,
                "searched": {
                    "patterns": list(cite.patterns),
                    "files": list(cite.files),
                    "lines": cite.lines,
                },
            }
        case DerivedCite():
            return {"id": name, "kind": "derived", **_derived(cite, ledger)}
        case _:  # pragma: no cover
            assert_never(cite)


def _pointed(cite: RecordCite | DumpCite) -> dict[str, Json]:
    return {
        "source": cite.source,
        "pointer": cite.pointer,
        "value": _value(cite.value),
        "text": cite.text,
        **_stands(cite.place, cite.at),
    }


def _asked(cite: QueryCite) -> dict[str, Json]:
    return {
        "source": cite.source,
        "query": cite.query,
        "engine": cite.engine,
        "start": _instant(cite.start),
        "end": _instant(cite.end),
        "step_s": _finite(cite.step_s),
        "value": _value(cite.value),
        "unit": cite.unit,
        "text": cite.text,
        "place": place_object(cite.place) if cite.place else None,
    }


def _derived(cite: DerivedCite, ledger: Ledger) -> dict[str, Json]:
    return {
        "source": first_source(cite),
        "method": cite.method,
        "inputs": list(ledger.ids(cite.inputs)),
        "params": {key: _value(value) for key, value in cite.params},
        "value": _value(cite.value),
        "unit": cite.unit,
        "tolerance": _finite(cite.tolerance),
        "text": cite.text,
        "place": place_object(cite.place) if cite.place else None,
    }


def _stands(place: Place, at: datetime | None) -> dict[str, Json]:
    return {"place": place_object(place) if place else None, "at": _instant(at)}


def _instant(at: datetime | None) -> str | None:
    return None if at is None else instant(at)


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _value(value: Scalar) -> Scalar:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def plain(tree: Json) -> Json:
    """The same tree in what UTF-8 and orjson can carry: escapes for lone surrogates, and
    integers beyond 64 bits written out digit by digit."""
    match tree:
        case dict():
            return {plain(key): plain(value) for key, value in tree.items()}
        case list():
            return [plain(value) for value in tree]
        case str() if not tree.isascii():
            return tree.encode("utf-8", "backslashreplace").decode()
        case int() if tree.bit_length() > 63:
            return orjson.Fragment(str(tree))
        case _:
            return tree
