"""Findings as a graph: what follows from what, and by which mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree as ET

from flatline.model import Judged, Verdict
from flatline.render import ordered_findings, own_finding
from flatline.render.html.markup import h, more, prose, section
from flatline.wording.places import fold_places
from flatline.wording.rows import confidence_text

NODES = 40
Below = Mapping[str, list[tuple[Judged, str]]]


def cascade_section(verdict: Verdict) -> ET.Element | None:
    """Causes with what followed from each, then warnings; nothing where nothing was found."""
    found = ordered_findings(verdict)[:NODES]
    if not found:
        return None
    roots, below = _tree(found)
    own = own_finding(verdict)
    names = {j.id: f"{j.finding.code} {j.family}" for j in found}
    nodes = [_branch(root, None, below, names, own, verdict) for root in roots]
    return section(
        "cascade",
        "How it came about",
        h("p.note", "Each box is a finding; an arrow says by what mechanism the next followed."),
        h("ul.cascade", nodes),
        more(len(verdict.findings) - len(found), "findings"),
    )


def _tree(found: tuple[Judged, ...]) -> tuple[list[Judged], Below]:
    """Each finding once, below the first that explains it and is not below itself."""
    known = {judged.id: judged for judged in found}
    below: dict[str, list[tuple[Judged, str]]] = {}
    above: dict[str, str] = {}
    roots = []
    for judged in found:
        for reason in judged.explained_by:
            if reason.by in known and not _leads(reason.by, judged.id, above):
                below.setdefault(reason.by, []).append((judged, reason.mechanism))
                above[judged.id] = reason.by
                break
        else:
            roots.append(judged)
    return roots, below


def _leads(start: str, to: str, above: Mapping[str, str]) -> bool:
    at: str | None = start
    while at is not None:
        if at == to:
            return True
        at = above.get(at)
    return False


def _branch(
    judged: Judged,
    mechanism: str | None,
    below: Below,
    names: Mapping[str, str],
    own: Judged | None,
    verdict: Verdict,
) -> ET.Element:
    follows = [_branch(j, why, below, names, own, verdict) for j, why in below.get(judged.id, [])]
    ended = verdict.run.disposition.replace("_", " ")
    known = verdict.state == "found" and ended != "unknown"
    if judged is own and judged.finding.ended_run and known:
        follows.append(h("li", _edge("it ended the attempt"), h("div.node.end", f"run: {ended}")))
    arrow = None if mechanism is None else _edge(mechanism)
    return h("li", arrow, _node(judged, names, own), h("ul", follows) if follows else None)


def _edge(mechanism: str) -> ET.Element:
    return h("p.edge", h("span.arrow", "↳", aria_hidden="true"), " ", prose(mechanism))


def _node(judged: Judged, names: Mapping[str, str], own: Judged | None) -> ET.Element:
    finding = judged.finding
    told = f"{judged.role}, confidence {confidence_text(judged.confidence)}"
    where = fold_places(finding.culprits) if finding.culprits else ""
    others = [
        h("p.note", f"also follows from {names[reason.by]}: ", prose(reason.mechanism))
        for reason in judged.explained_by[1:]
        if reason.by in names
    ]
    name = "node.own" if judged is own else f"node.{judged.role}"
    link = "#shows" if judged is own else f"#{judged.id}"
    fault_class = f", {finding.fault_class}" if finding.fault_class else ""
    return h(
        f"div.{name}",
        h(
            "p",
            h("a.code", f"{finding.code} {judged.family}", href=link),
            fault_class,
            h("span.role", " the verdict" if judged is own else f" {judged.role}"),
        ),
        h("p", prose(finding.summary)),
        h("p.note", "; ".join(part for part in (where, told) if part)),
        others,
    )
