"""
The verdict as a Markdown page to put into a ticket: everything text shows, and the reasons.

GitHub's dialect, no raw HTML.  What the run wrote is always inside code: it cannot become a link,
a mention, a heading or markup of any kind, and a pipe cannot end a table cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from flatline import __version__
from flatline.knowledge.outcome import outcome_said
from flatline.model import (
    Action,
    Cite,
    Claim,
    Comparison,
    Judged,
    Reasoning,
    Related,
    Verdict,
)
from flatline.render import (
    Ledger,
    beside,
    fold_ids,
    lacking,
    located,
    ordered_findings,
    own_finding,
    said,
)
from flatline.wording.columns import excerpt, words_of
from flatline.wording.comparison import (
    HEADS,
    chosen,
    counted_signals,
    setting_lines,
    title,
    verdict_on_settings,
)
from flatline.wording.comparison import lines as compared_lines
from flatline.wording.gaps import Trouble, troubles
from flatline.wording.places import fold_hosts, fold_places
from flatline.wording.reasoning import parts
from flatline.wording.rows import GLYPHS, STATES, confidence_text, moment, rows
from flatline.wording.untrusted import neutral, sentence

NAME = "markdown"
EVIDENCE, LIST, NEEDS = 200, 100, 9
"""Rows of the evidence table, entries of any other list and of what would decide the families that
stay open; what is beyond is counted."""
QUOTE, PLACES = 300, 6
"""Columns of one piece of evidence, about what tells, and files of one gap."""

_SPAN = re.compile(r"(`[^`]{1,200}`)")
# What Markdown or GitHub acts on inside a line: markup, entities, mathematics, mentions, issue
# references and bare addresses (GFM 0.29, section 6; mentions and references are GitHub's own).
_ACTIVE = re.compile(r"[\\`*_\[\]<>|~&$@#{}]|://|(?i:\bwww\.)")
_CORE = re.compile(r"([(\"']*)(.*?)([)\"'.,;:!?]*)", re.DOTALL)
_OPENING = re.compile(r"[-+](?=[\s-]|$)|\d{1,9}[.)](?=\s|$)")


# --- what the run wrote -----------------------------------------------------------------------


def code(text: str) -> str:
    """An inline code span no text can leave."""
    shown = sentence(text)
    if not shown:
        return ""
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _word(word: str) -> str:
    if not _ACTIVE.search(word):
        return word
    found = _CORE.fullmatch(word)
    before, core, after = found.groups() if found else ("", word, "")
    return f"{before}{code(core)}{after}" if not _ACTIVE.search(before + after) else code(word)


def prose(text: str) -> str:
    """A sentence whose active words are code; what is code already stays so."""
    parts = []
    for part in _SPAN.split(sentence(text)):
        if _SPAN.fullmatch(part):
            parts.append(code(part[1:-1]))
        else:
            parts.append(" ".join(_word(word) for word in part.split(" ")))
    joined = ""
    for part in filter(None, parts):
        joined += (" " if joined.endswith("`") and part.startswith("`") else "") + part
    opening = _OPENING.match(joined)
    return joined[: opening.end() - 1] + "\\" + joined[opening.end() - 1 :] if opening else joined


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _block(command: str) -> list[str]:
    lines = [neutral(line) for line in command.splitlines()]
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(longest + 1, 3)
    return [f"   {line}" for line in (f"{fence}sh", *lines, fence)]


# --- the page ---------------------------------------------------------------------------------


def render(verdict: Verdict) -> str:
    """The page, ending in a newline."""
    ledger = Ledger(verdict)
    title = f"# {GLYPHS[verdict.state]} {STATES[verdict.state]}: {prose(verdict.headline)}"
    lines = [title, ""]
    lines += [f"- **{label}:** {prose(words)}" for label, words in rows(verdict)]
    lines += _attempts(verdict)
    lines += _claims("## What the data shows", verdict.shows, ledger)
    lines += _claims("## What it implies", verdict.implies, ledger)
    lines += _section("## What it cannot decide", map(prose, verdict.cannot_decide))
    lines += _actions(verdict.actions)
    lines += _comparison(verdict.comparison, ledger)
    lines += _section(
        "## Incidents like this one (records, no part of the proof)",
        map(_related, verdict.related),
    )
    lines += _evidence(verdict, ledger)
    lines += _findings(verdict, ledger)
    lines += _ruled_out(verdict, ledger)
    lines += _section(
        f"## Not decidable ({len(verdict.undetermined):,})",
        _open(verdict),
        NEEDS,
    )
    told = troubles(verdict)
    lines += _section(f"## Gaps ({len(told):,})", map(_gap, told))
    lines += _reasoning(verdict.reasoning) if verdict.reasoning is not None else []
    catalogue = f", catalogue {prose(verdict.catalogue)}" if verdict.catalogue else ""
    check = "`flatline verify VERDICT.json TARGET` reads every citation again."
    lines += ["", "---", f"Flatline {__version__}{catalogue}. {check}"]
    return "\n".join(lines) + "\n"


def _open(verdict: Verdict) -> Iterable[str]:
    """The families that stay open, then what would decide most of them."""
    if verdict.undetermined:
        yield ", ".join(f"{u.code} {u.family}" for u in verdict.undetermined)
    for need, codes in lacking(verdict):
        yield f"{prose(need)}: would help with {codes}"


def _section(heading: str, entries: Iterable[str], most: int = LIST) -> list[str]:
    """Nothing where there are no entries; a long list is cut and counted."""
    every = list(entries)
    if not every:
        return []
    shown = [f"- {entry}" for entry in every[:most]]
    if len(every) > most:
        shown.append(f"- and {len(every) - most:,} more, all with `--format json`")
    return ["", heading, "", *shown]


def _reasoning(reasoning: Reasoning) -> list[str]:
    """What an agent said, under headings of its own; thoughts are told by their ids."""
    lines: list[str] = []
    for part in parts(reasoning):
        entries = (
            f"**{prose(entry.mark)}** {prose(entry.text)}{_ids(entry.cites)}"
            if entry.mark not in ("", "-", "x")
            else prose(entry.text) + _ids(entry.cites)
            for entry in part.entries
        )
        lines += _section(f"## {prose(part.title)}", entries)
    return lines


def _ids(ids: Iterable[str]) -> str:
    named = fold_ids(ids)
    return f" ({named})" if named else ""


def _claims(heading: str, claims: Sequence[Claim], ledger: Ledger) -> list[str]:
    return _section(heading, (prose(c.text) + _ids(ledger.ids(c.cites)) for c in claims))


def _attempts(verdict: Verdict) -> list[str]:
    attempts = verdict.run.attempts
    if len(attempts) < 2:
        return []
    entries = []
    for attempt in attempts:
        told = [f"attempt {attempt.n}: {attempt.disposition.replace('_', ' ')}"]
        told += [f"from {moment(attempt.started_at)}"] if attempt.started_at else []
        told += [f"to {moment(attempt.ended_at)}"] if attempt.ended_at else []
        told += [f"reached step {attempt.last_step:,}"] if attempt.last_step is not None else []
        told += [verdict.attempt_codes[attempt.n]] if attempt.n in verdict.attempt_codes else []
        entries.append(", ".join(told))
    return _section(f"## Attempts ({len(attempts):,})", entries)


def _actions(actions: Sequence[Action]) -> list[str]:
    if not actions:
        return []
    lines = ["", "## What to do", ""]
    for at, action in enumerate(actions, 1):
        told = f"{action.text} {action.command or ''}"
        untold = [target for target in action.targets if target not in told]
        targets = f" On {prose(fold_hosts(untold))}." if untold else ""
        lines.append(f"{at}. {prose(action.text)}{targets}")
        if action.command:
            lines += ["", *_block(action.command), ""]
    return lines


def _related(one: Related) -> str:
    told = outcome_said(one.confirmed, one.wrong)
    settled = f" ({prose(told)})" if told else ""
    return (
        f"{prose(one.problem)}{settled}. Cause then: {prose(one.cause)} Fix then: {prose(one.fix)}"
        f" {code(one.id)}, {prose(one.source)}"
    )


def _comparison(compared: Comparison | None, ledger: Ledger) -> list[str]:
    if compared is None:
        return []
    made = ["", f"## {prose(title(compared))}", "", prose(chosen(compared)), ""]
    made += [prose(verdict_on_settings(compared)), ""]
    heads = " | ".join(("", *HEADS[1:], "", "evidence"))
    rows = [(name, ours, theirs, "", "set differently", cites)
            for name, ours, theirs, cites in setting_lines(compared)]  # fmt: skip
    rows += [(line.name, line.ours, line.theirs, f"**{line.change}**" if line.apart
              else line.change, line.note, line.cites)
             for line in compared_lines(compared)]  # fmt: skip
    if rows:
        made += [f"| {heads} |", "|---|---|---|---|---|---|"]
    for name, ours, theirs, change, note, cites in rows[:LIST]:
        cells = (prose(name), prose(ours), prose(theirs), change, prose(note),
                 fold_ids(ledger.ids(cites)))  # fmt: skip
        made.append("| " + " | ".join(map(_cell, cells)) + " |")
    if len(rows) > LIST:
        made += ["", f"and {len(rows) - LIST:,} more, all with `--format json`"]
    return [*made, "", prose(counted_signals(compared))]


def _evidence(verdict: Verdict, ledger: Ledger) -> list[str]:
    if not ledger.items:
        return []
    words = words_of([verdict.headline, *(c.text for c in (*verdict.shows, *verdict.implies))])
    lines = ["", f"## Evidence ({len(ledger.items):,})", ""]
    lines += ["| id | where | place, time | what it says |", "|---|---|---|---|"]
    for name, cite in ledger.items[:EVIDENCE]:
        told = ", ".join(prose(part) for part in beside(cite))
        cells = (name, code(located(cite)), told, _said(cite, ledger, words))
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    left = [name for name, _ in ledger.items[EVIDENCE:]]
    if left:
        lines += ["", f"and {len(left):,} more ({fold_ids(left)}), all with `--format json`"]
    return lines


def _said(cite: Cite, ledger: Ledger, words: frozenset[str]) -> str:
    parts = [code(excerpt(sentence(cite.text), QUOTE, words, "…"))]
    parts += [code(told) if is_code else prose(told) for told, is_code in said(cite, ledger)]
    return " · ".join(part for part in parts if part)


def _findings(verdict: Verdict, ledger: Ledger) -> list[str]:
    own = own_finding(verdict)
    others = [judged for judged in ordered_findings(verdict) if judged is not own]
    if not others:
        return []
    names = {j.id: f"{j.finding.code} {j.family}" for j in verdict.findings}
    lines = ["", f"## Other findings ({len(others):,})"]
    for judged in others[:LIST]:
        lines += _finding(judged, names, ledger)
    if len(others) > LIST:
        lines += ["", f"and {len(others) - LIST:,} more, all with `--format json`"]
    return lines


def _finding(judged: Judged, names: Mapping[str, str], ledger: Ledger) -> list[str]:
    finding = judged.finding
    fault_class = f", {prose(finding.fault_class)}" if finding.fault_class else ""
    told = f"{judged.role}, confidence {confidence_text(judged.confidence)}"
    lines = [
        "",
        f"### {finding.code} {judged.family}{fault_class}: {told}",
        "",
        prose(finding.summary) + _ids(ledger.ids(finding.cites)),
        "",
    ]
    if finding.culprits:
        lines.append(f"- **where:** {prose(fold_places(finding.culprits))}")
    for reason in judged.explained_by:
        cause = prose(names.get(reason.by, reason.by))
        lines.append(f"- **follows from** {cause}: {prose(reason.mechanism)}")
    claims = (*finding.shows, *finding.implies)
    return [*lines, *(f"- {prose(c.text)}{_ids(ledger.ids(c.cites))}" for c in claims)]


def _ruled_out(verdict: Verdict, ledger: Ledger) -> list[str]:
    if not verdict.ruled_out:
        return []
    lines = ["", f"## Ruled out ({len(verdict.ruled_out):,})", ""]
    lines += ["| family | why | evidence |", "|---|---|---|"]
    for r in verdict.ruled_out:
        cells = (f"{r.code} {r.family}", prose(r.why), fold_ids(ledger.ids(r.cites)))
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return lines


def _gap(one: Trouble) -> str:
    left = len(one.wheres) - PLACES
    more = f" and {left:,} more" if left > 0 else ""
    where = f" ({', '.join(map(code, one.wheres[:PLACES]))}{more})" if one.wheres else ""
    return f"{prose(one.need)}: {prose(one.reason)}{where}"
