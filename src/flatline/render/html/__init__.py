"""
The verdict as one page for a browser, a ticket's attachment or paper.

Self-contained: it asks for nothing, its policy forbids that it could, and without its few lines of
script it says the same.  What the run wrote is text wherever it stands
(`flatline.render.html.markup`).  Long lists are folded and counted.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from flatline import __version__
from flatline.exhibit.model import NOTHING, Exhibit
from flatline.knowledge.outcome import outcome_said
from flatline.model import Action, Claim, Judged, Related, Verdict
from flatline.render import ordered_findings, own_finding
from flatline.render.html.cascade import cascade_section
from flatline.render.html.comparison import comparison_section
from flatline.render.html.curves import curves_section
from flatline.render.html.evidence import Anchors, evidence_section
from flatline.render.html.markup import asset, h, more, prose, raw, section, written
from flatline.render.html.places import places_section
from flatline.render.html.reasoning import reasoning_sections
from flatline.render.html.tables import (
    attempts_section,
    gaps_section,
    ruled_out_section,
    undetermined_section,
)
from flatline.wording.places import fold_hosts, fold_places
from flatline.wording.rows import GLYPHS, STATES, confidence_text, rows
from flatline.wording.untrusted import neutral, sentence

NAME = "html"
LIST = 100
"""Claims, actions and findings before the rest is counted."""
FIRST = ("resubmit", "impact", "where", "since", "blame")
"""Rows that stand large beside the headline."""


def render(verdict: Verdict) -> str:
    """The page without what only the run itself can show."""
    return illustrate(verdict, NOTHING)


def illustrate(verdict: Verdict, exhibit: Exhibit) -> str:
    """The page, ending in a newline."""
    anchors = Anchors(verdict)
    before = [
        _actions(verdict.actions),
        _claims("shows", "What the data shows", verdict.shows, anchors),
        _claims("implies", "What it implies", verdict.implies, anchors),
        _open_questions(verdict),
        _comparison(verdict, exhibit, anchors),
        curves_section(exhibit.curves) if exhibit.curves else None,
        *(places_section(places, verdict.onset, anchors) for places in exhibit.places),
        cascade_section(verdict),
        _others(verdict, anchors),
        _related(verdict.related),
        *(reasoning_sections(verdict.reasoning, anchors) if verdict.reasoning else ()),
    ]
    after = [
        ruled_out_section(verdict, anchors),
        undetermined_section(verdict),
        attempts_section(verdict, anchors),
        gaps_section(verdict),
    ]
    evidence = evidence_section(anchors, exhibit)  # made last: it links to what cites it
    shown = [part for part in (*before, evidence, *after) if part is not None]
    body = h("body", _top(verdict), _contents(shown), h("main", shown), _foot(verdict))
    script = asset("script.js")
    body.append(raw("script", script))
    return written(h("html", _head(verdict, script), body, lang="en"))


def _comparison(verdict: Verdict, exhibit: Exhibit, anchors: Anchors) -> ET.Element | None:
    if verdict.comparison is None:
        return None
    return comparison_section(verdict.comparison, exhibit.compared, anchors)


def _head(verdict: Verdict, script: str) -> ET.Element:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    named = f"{verdict.run.id}: " if verdict.run.id else ""
    return h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", http_equiv="Content-Security-Policy", content=policy),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="color-scheme", content="light dark"),
        h("meta", name="referrer", content="no-referrer"),
        h("meta", name="format-detection", content="telephone=no"),
        h("title", f"{named}{STATES[verdict.state]}: {sentence(verdict.headline)}"),
        raw("style", asset("style.css")),
    )


def _top(verdict: Verdict) -> ET.Element:
    every = dict(rows(verdict))
    tiles = [
        h(f"div.tile.{label}", h("dt", label), h("dd", prose(every[label])))
        for label in FIRST
        if label in every
    ]
    others = [
        h("div", h("dt", label), h("dd", prose(words)))
        for label, words in every.items()
        if label not in FIRST
    ]
    state = h(
        "span.state",
        h("span", GLYPHS[verdict.state], aria_hidden="true"),
        f" {STATES[verdict.state]}",
    )
    named = f"job {sentence(verdict.run.id)}" if verdict.run.id else ", ".join(verdict.run.target)
    return h(
        f"header.top.{verdict.state}",
        h("p.brand", "Flatline", h("span.note", f" {named}") if named else None),
        h("p", state),
        h("h1", prose(verdict.headline)),
        h("dl.tiles", tiles),
        h("dl.facts", others),
    )


def _contents(shown: Sequence[ET.Element]) -> ET.Element:
    links = [
        h("a", (part.findtext("h2") or ""), href=f"#{part.get('id')}")
        for part in shown
        if part.get("id")
    ]
    return h("nav", [[link, " "] for link in links], aria_label="Contents")


def _foot(verdict: Verdict) -> ET.Element:
    catalogue = f", catalogue {verdict.catalogue}" if verdict.catalogue else ""
    return h(
        "footer",
        h("p", f"Flatline {__version__}{catalogue}. "),
        h("p", h("code", "flatline verify VERDICT.json TARGET"), " reads every citation again."),
    )


# --- what is said -----------------------------------------------------------------------------


def _claims(name: str, title: str, claims: Sequence[Claim], anchors: Anchors) -> ET.Element | None:
    if not claims:
        return None
    entries = []
    for n, claim in enumerate(claims[:LIST], 1):
        own = f"{name}-{n}"
        chips = anchors.chips(claim.cites, own, f"{name} {n}")
        entries.append(h("li", prose(claim.text), chips, id=own))
    return section(name, title, h("ol.claims", entries), more(len(claims) - LIST, "claims"))


def _open_questions(verdict: Verdict) -> ET.Element | None:
    if not verdict.cannot_decide:
        return None
    entries = [h("li", prose(question)) for question in verdict.cannot_decide[:LIST]]
    left = more(len(verdict.cannot_decide) - LIST, "questions")
    return section("questions", "What it cannot decide", h("ul", entries), left)


def _actions(actions: Sequence[Action]) -> ET.Element | None:
    if not actions:
        return None
    entries = []
    for action in actions[:LIST]:
        told = f"{action.text} {action.command or ''}"
        untold = [target for target in action.targets if target not in told]
        on = h("p.note", f"on {fold_hosts(untold)}") if untold else None
        command = h("pre.command", h("code", _command(action.command))) if action.command else None
        entries.append(h("li", h("p", prose(action.text)), on, command))
    left = more(len(actions) - LIST, "actions")
    return section("actions", "What to do", h("ol.actions", entries), left)


def _command(command: str) -> list[ET.Element | str]:
    """Its lines, each disarmed; only the breaks between them are kept."""
    made: list[ET.Element | str] = []
    for n, line in enumerate(command.splitlines()):
        made += [h("br")] * bool(n) + [neutral(line)]
    return made


def _others(verdict: Verdict, anchors: Anchors) -> ET.Element | None:
    own = own_finding(verdict)
    others = [judged for judged in ordered_findings(verdict) if judged is not own]
    if not others:
        return None
    return section(
        "findings",
        f"Other findings ({len(others):,})",
        [_finding(judged, anchors) for judged in others[:LIST]],
        more(len(others) - LIST, "findings"),
    )


def _related(related: Sequence[Related]) -> ET.Element | None:
    if not related:
        return None
    entries = []
    for one in related:
        told = outcome_said(one.confirmed, one.wrong)
        entries.append(
            h(
                "li",
                h("p", prose(one.problem), h("span.note", f" {told}") if told else None),
                h("p.note", "cause then: ", prose(one.cause)),
                h("p.note", "fix then: ", prose(one.fix)),
                h("p.note", h("code", sentence(one.id)), ", ", prose(one.source)),
            )
        )
    note = h("p.note", "Records of other runs: no part of the proof.")
    return section("related", "Incidents like this one", note, h("ul", entries))


def _finding(judged: Judged, anchors: Anchors) -> ET.Element:
    finding = judged.finding
    fault_class = f", {finding.fault_class}" if finding.fault_class else ""
    told = f": {judged.role}, confidence {confidence_text(judged.confidence)}"
    where = f"where: {fold_places(finding.culprits)}" if finding.culprits else ""
    words = f"{finding.code} {judged.role}"
    claims = [
        h("li", prose(claim.text), anchors.chips(claim.cites, judged.id, words))
        for claim in (*finding.shows, *finding.implies)[:LIST]
    ]
    left = len(finding.shows) + len(finding.implies) - LIST
    return h(
        "article.finding",
        h("h3", f"{finding.code} {judged.family}{fault_class}", h("span.note", told)),
        h("p", prose(finding.summary)),
        h("p.note", where) if where else None,
        h("ul", claims),
        more(left, "claims"),
        id=judged.id,
    )
