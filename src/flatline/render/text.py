"""
The verdict for a terminal, a pipe or an e-mail: what to know first stands first.

Plain text of at most `Look.width` columns; only a command to paste may be wider, where no break
is safe.  Long lists are folded and with the format that shows them whole.  Text out of
the run cannot move the cursor, hide or reorder anything (`flatline.wording.neutral`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from flatline.knowledge.outcome import outcome_said
from flatline.model import (
    AbsenceCite,
    Action,
    Cite,
    Claim,
    Comparison,
    Judged,
    Reasoning,
    Related,
    State,
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
from flatline.wording.columns import break_command, cells, elided, excerpt, words_of, wrap
from flatline.wording.comparison import (
    HEADS,
    LEGEND,
    Line,
    chosen,
    counted_signals,
    lines,
    setting_lines,
    title,
    verdict_on_settings,
)
from flatline.wording.gaps import troubles
from flatline.wording.places import counted, fold_hosts, fold_places
from flatline.wording.reasoning import parts
from flatline.wording.rows import GLYPHS, STATES, confidence_text, moment, rows
from flatline.wording.untrusted import neutral, sentence

NAME = "text"
OWN_EVIDENCE, OTHER_EVIDENCE, ENOUGH = 12, 6, 8
"""Evidence shown for the verdict itself, for the other findings together, and how much is shown
where those cite less."""
CLAIMS, FINDINGS, GAPS, NEEDS, ATTEMPTS, WHYS = 12, 6, 8, 4, 6, 10
"""Entries of a list before it is folded; exclusions beyond `WHYS` lose their reasons first."""
QUOTE_LINES = 3
PLACES = 3
SURE = 0.9
"""DESIGN: confidence from which nobody goes looking for what would decide the other families."""
MIN_WIDTH = 40
TABLE_WIDTH = 60
"""Columns below which a comparison is told in sentences."""

_SGR = {"bold": "1", "dim": "2", "red": "1;31", "green": "1;32", "yellow": "1;33", "cyan": "36"}
_STATE_STYLE: dict[State, str] = {"found": "red", "healthy": "green", "undetermined": "yellow"}
_ASCII = str.maketrans({"✗": "x", "✓": "+"})
_TIED = "\x1f"
"""A space that does not break; `neutral` leaves none in any text."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the place of reading allows. `height` is that of a terminal; `brief` is one line."""

    width: int = 80
    height: int | None = None
    colour: bool = False
    unicode: bool = True
    brief: bool = False

    def paint(self, style: str, text: str) -> str:
        """The text in a style, where there is one and colour is allowed."""
        return f"\x1b[{_SGR[style]}m{text}\x1b[0m" if self.colour and style and text else text

    @property
    def ellipsis(self) -> str:
        return "…" if self.unicode else "..."


PLAIN = Look()


# --- the page ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Page:
    look: Look
    ledger: Ledger
    lines: list[str] = field(default_factory=list)

    def heading(self, text: str) -> None:
        self.lines += ["", self.look.paint("bold", text)]

    def put(
        self,
        text: str,
        mark: str = "  ",
        *,
        style: str = "",
        mark_style: str = "",
        ids: Iterable[str] = (),
    ) -> None:
        """A paragraph that hangs from its mark, the evidence ids behind it."""
        named = fold_ids(ids)
        tail = f"[{named}]".replace(" ", _TIED) if named else ""
        hang = " " * cells(mark)
        lines = wrap(f"{text} {tail}".strip(), self.look.width - len(hang))
        for at, line in enumerate(line.rstrip(_TIED) for line in lines):
            body = line.removesuffix(tail)
            margin = self.look.paint(mark_style, mark) if not at else hang
            shown = self.look.paint(style, body) + self.look.paint("cyan", line[len(body) :])
            self.lines.append(margin + shown.replace(_TIED, " "))

    def folded(self, left: int, noun: str, which: str = "") -> None:
        """That `left` entries are not shown here, and what shows them."""
        if left > 0:
            what = f"and {counted(left, 'more ' + noun)}{which and f': {which}'}"
            self.put(f"{what} (all with --format markdown)", style="dim")


def render(verdict: Verdict, look: Look = PLAIN) -> str:
    """The page; with `look.brief` its first line alone, unwrapped."""
    if look.width < MIN_WIDTH:
        look = Look(MIN_WIDTH, look.height, look.colour, look.unicode, look.brief)
    if look.brief:
        return _finished([_brief(verdict, look)], look)
    page = _Page(look, Ledger(verdict))
    _top(page, verdict)
    _attempts(page, verdict)
    _claims(page, "What the data shows", verdict.shows)
    _claims(page, "What it implies", verdict.implies)
    _open_questions(page, verdict)
    _actions(page, verdict.actions)
    _comparison(page, verdict.comparison)
    _related(page, verdict.related)
    _evidence(page, verdict)
    _others(page, verdict)
    _ruled_out(page, verdict)
    _undetermined(page, verdict)
    _gaps(page, verdict)
    if verdict.reasoning is not None:
        _reasoning(page, verdict.reasoning)
    if look.height is not None and len(page.lines) >= look.height:
        _top(page, verdict, again=True)
    return _finished(page.lines, look)


def _finished(lines: Iterable[str], look: Look) -> str:
    text = "\n".join(lines) + "\n"
    return text if look.unicode else text.translate(_ASCII)


# --- its sections -----------------------------------------------------------------------------


def _brief(verdict: Verdict, look: Look) -> str:
    code = verdict.code or "--"
    glyph = look.paint(_STATE_STYLE[verdict.state], GLYPHS[verdict.state])
    return f"{glyph} {code} {sentence(verdict.headline)}"


def _top(page: _Page, verdict: Verdict, again: bool = False) -> None:
    """The headline and the rows; `again` at the foot of a long page, the first rows only."""
    style = _STATE_STYLE[verdict.state]
    title = f"{STATES[verdict.state]}: {sentence(verdict.headline)}"
    if again:
        page.lines.append("")
    page.put(title, f"{GLYPHS[verdict.state]} ", style=style, mark_style=style)
    kept = [row for row in rows(verdict) if not again or row[0] in ("where", "resubmit")]
    if not again:
        page.lines.append("")
    for label, words in kept:
        page.put(words, f"  {label:<10} ", mark_style="dim", style="bold" * (label == "resubmit"))


def _attempts(page: _Page, verdict: Verdict) -> None:
    attempts = verdict.run.attempts
    if len(attempts) < 2:
        return
    page.heading(f"Attempts ({len(attempts):,})")
    for attempt in attempts[-ATTEMPTS:]:
        told = [attempt.disposition.replace("_", " ")]
        if attempt.started_at:
            told.append(f"from {moment(attempt.started_at)}")
        if attempt.ended_at:
            told.append(f"to {moment(attempt.ended_at)}")
        if attempt.last_step is not None:
            told.append(f"reached step {attempt.last_step:,}")
        if attempt.n in verdict.attempt_codes:
            told.append(verdict.attempt_codes[attempt.n])
        page.put(", ".join(told), f"  {attempt.n:<3} ")
    page.folded(len(attempts) - ATTEMPTS, "earlier attempt")


def _claims(page: _Page, heading: str, claims: Sequence[Claim]) -> None:
    if not claims:
        return
    page.heading(heading)
    for claim in claims[:CLAIMS]:
        page.put(sentence(claim.text), "  - ", ids=page.ledger.ids(claim.cites))
    page.folded(len(claims) - CLAIMS, "claim")


def _open_questions(page: _Page, verdict: Verdict) -> None:
    if not verdict.cannot_decide:
        return
    page.heading("What it cannot decide")
    for question in verdict.cannot_decide[:CLAIMS]:
        page.put(sentence(question), "  - ")
    page.folded(len(verdict.cannot_decide) - CLAIMS, "question")


def _actions(page: _Page, actions: Sequence[Action]) -> None:
    if not actions:
        return
    page.heading("What to do")
    for at, action in enumerate(actions[:CLAIMS], 1):
        page.put(sentence(action.text), f"  {at}. ")
        told = f"{action.text} {action.command or ''}"
        untold = [target for target in action.targets if target not in told]
        if untold:
            page.put(f"on {fold_hosts(untold)}", "     ")
        if action.command:
            _command(page, action.command)
    page.folded(len(actions) - CLAIMS, "action")


def _command(page: _Page, command: str) -> None:
    for part in command.splitlines():
        for line in break_command(neutral(part), page.look.width - 7):
            page.lines.append("       " + page.look.paint("bold", line))


def _related(page: _Page, related: Sequence[Related]) -> None:
    """Incidents like this one: no evidence, and so without evidence ids."""
    if not related:
        return
    page.heading("Incidents like this one (records, no part of the proof)")
    for one in related:
        told = outcome_said(one.confirmed, one.wrong)
        page.put(sentence(f"{one.problem}{told and f' ({told})'}"), "  - ")
        page.put(sentence(f"then the cause was: {one.cause}"), "    ")
        page.put(sentence(f"flatline kb show {one.id}"), "    ", style="dim")


def _comparison(page: _Page, compared: Comparison | None) -> None:
    """The baseline: how it was chosen, what is set otherwise, what differs, in columns."""
    if compared is None:
        return
    page.heading(title(compared))
    page.put(chosen(compared), style="dim")
    page.put(verdict_on_settings(compared))
    settings = setting_lines(compared)
    for name, ours, theirs, cites in settings[:CLAIMS]:
        page.put(f"{name}: {ours}, baseline: {theirs}", "  * ", ids=page.ledger.ids(cites))
    page.folded(len(settings) - CLAIMS, "setting")
    every = lines(compared)
    if every and page.look.width >= TABLE_WIDTH:
        page.lines.append(page.look.paint("dim", _columns(page, "", *HEADS)))
    noted = ""
    for line in every[:CLAIMS]:
        noted = _compared_line(page, line, noted)
    page.folded(len(every) - CLAIMS, "quantity")
    page.put(counted_signals(compared))
    if any(line.apart for line in every):
        page.put(LEGEND, style="dim")


def _compared_line(page: _Page, line: Line, noted: str) -> str:
    """A quantity in columns, its note where it is another than the one before; its note."""
    ids = page.ledger.ids(line.cites)
    mark = "*" if line.apart else " "
    if page.look.width < TABLE_WIDTH:
        told = f"{line.name}: {line.ours}, baseline {line.theirs}, {line.change}; {line.note}"
        page.put(sentence(told), f"  {mark} ", ids=ids)
        return line.note
    row = _columns(page, mark, neutral(line.name), line.ours, line.theirs, line.change)
    tail = f"  [{fold_ids(ids)}]"
    fits = cells(row + tail) <= page.look.width
    shown = page.look.paint("bold" if line.apart else "", row)
    page.lines.append(shown + page.look.paint("cyan", tail if fits else ""))
    if line.note != noted or not fits:
        page.put(line.note, "      ", style="dim", ids=() if fits else ids)
    return line.note


def _columns(page: _Page, mark: str, name: str, ours: str, theirs: str, change: str) -> str:
    """A row of the comparison; the name gives way where the page is narrow."""
    room = max(12, min(32, page.look.width - 48))
    shown = name if cells(name) <= room else name[: room - 1] + page.look.ellipsis
    pad = " " * (room - cells(shown))
    return f"  {mark:<1} {shown}{pad} {ours:>9} {theirs:>9} {change:>10}"


# --- evidence ---------------------------------------------------------------------------------


def _evidence(page: _Page, verdict: Verdict) -> None:
    """What the verdict rests on, then what its other findings begin with; the rest is counted."""
    if not page.ledger.items:
        return
    own = {
        name
        for claim in (*verdict.shows, *verdict.implies)
        for name in page.ledger.ids(claim.cites)
    }
    heads = [page.ledger.ids(judged.finding.cites[:1])[0] for judged in verdict.findings]
    words = words_of([verdict.headline, *(c.text for c in (*verdict.shows, *verdict.implies))])
    chosen = [name for name, _ in page.ledger.items if name in own][:OWN_EVIDENCE]
    chosen += list(dict.fromkeys(name for name in heads if name not in own))[:OTHER_EVIDENCE]
    rest = [name for name, _ in page.ledger.items if name not in chosen]
    chosen += rest[: max(ENOUGH - len(chosen), 0)]
    page.heading("Evidence")
    cut = False
    for name, cite in page.ledger.items:
        if name in chosen:
            cut |= _exhibit(page, name, cite, words, verdict.onset)
    if cut:
        page.put("queries cut short here: whole with --format json", style="dim")
    left = [name for name, _ in page.ledger.items if name not in chosen]
    page.folded(len(left), "piece", fold_ids(left))


def _exhibit(
    page: _Page, name: str, cite: Cite, words: frozenset[str], day: datetime | None
) -> bool:
    """A piece of evidence; whether a query of it had to be cut."""
    mark = f"  {name:<4} "
    room = page.look.width - cells(mark)
    where = neutral(located(cite))
    if cells(where) > room:
        where = page.look.ellipsis + where[len(page.look.ellipsis) - room :]
    heads = [head.replace(" ", _TIED) for head in (where, *beside(cite, day))]
    page.put(f"{_TIED} ".join(heads), mark, mark_style="cyan", style="cyan")
    margin = " " * cells(mark)
    quote = sentence(cite.text)
    if isinstance(cite, AbsenceCite):
        files, lines = counted(len(cite.files), "file"), counted(cite.lines, "line")
        page.put(f"{quote} (of {files}, {lines})", margin)
        return False
    cut = False
    for line, code in said(cite, page.ledger):
        whole = neutral(line)
        shown = elided(whole, room, page.look.ellipsis) if code else whole
        page.put(shown, margin)
        cut |= shown != whole
    if quote:
        page.put(
            excerpt(quote, (QUOTE_LINES - 1) * room + room // 2, words, page.look.ellipsis), margin
        )
    return cut


# --- beside the verdict -----------------------------------------------------------------------


def _others(page: _Page, verdict: Verdict) -> None:
    own = own_finding(verdict)
    others = [judged for judged in ordered_findings(verdict) if judged is not own]
    if not others:
        return
    page.heading(f"Other findings ({len(others):,})")
    names = {j.id: f"{j.finding.code} {j.family}" for j in verdict.findings}
    for judged in others[:FINDINGS]:
        _other(page, judged, names)
    if len(others) > FINDINGS:
        codes = ", ".join(f"{j.id} {j.finding.code}" for j in others[FINDINGS:])
        page.folded(len(others) - FINDINGS, "finding", codes)


def _other(page: _Page, judged: Judged, names: Mapping[str, str]) -> None:
    finding = judged.finding
    fault_class = f", {sentence(finding.fault_class)}" if finding.fault_class else ""
    title = f"{finding.code} {judged.family}{fault_class}: {judged.role}"
    page.put(f"{title}, confidence {confidence_text(judged.confidence)}", "  - ", style="bold")
    page.put(sentence(finding.summary), "    ", ids=page.ledger.ids(finding.cites))
    if finding.culprits:
        page.put(f"where: {fold_places(finding.culprits)}", "    ")
    for reason in judged.explained_by:
        cause = names.get(reason.by, reason.by)
        page.put(sentence(f"follows from {cause}: {reason.mechanism}"), "    ")


def _ruled_out(page: _Page, verdict: Verdict) -> None:
    if not verdict.ruled_out:
        return
    page.heading(f"Ruled out ({len(verdict.ruled_out):,})")
    if len(verdict.ruled_out) > WHYS:
        named = (f"{r.code}{_TIED}{r.family}" for r in verdict.ruled_out)
        page.put(", ".join(named))
        cited = [name for r in verdict.ruled_out for name in page.ledger.ids(r.cites)]
        page.put("why, family by family: --format markdown", style="dim", ids=cited)
        return
    for r in verdict.ruled_out:
        page.put(f"{r.code} {r.family}: {sentence(r.why)}", "  - ", ids=page.ledger.ids(r.cites))


def _undetermined(page: _Page, verdict: Verdict) -> None:
    """The codes of the families that stay open; where the verdict is not sure, what would decide
    most of them."""
    if not verdict.undetermined:
        return
    page.heading(f"Not decidable ({len(verdict.undetermined):,})")
    codes = fold_ids(u.code for u in verdict.undetermined)
    if verdict.confidence >= SURE:
        page.put(f"{codes}; why: --format json")
        return
    page.put(codes)
    page.put("What would help most to decide them:")
    needs = lacking(verdict)
    for need, codes in needs[:NEEDS]:
        page.put(f"{sentence(need)}: {codes}", "  - ")
    left = len(needs) - NEEDS
    more = f"and {counted(left, 'more need')}; " if left > 0 else ""
    page.put(f"{more}family by family: undetermined in --format json", style="dim")


def reasoned(verdict: Verdict, reasoning: Reasoning, look: Look = PLAIN) -> str:
    """An answer alone: the verdict in its rows, then what was said beside it."""
    page = _Page(look, Ledger(verdict))
    _top(page, verdict)
    _reasoning(page, reasoning)
    return _finished(page.lines, look)


def said_beside(verdict: Verdict, reasoning: Reasoning, look: Look = PLAIN) -> str:
    """What was said to a further question, under the verdict in one line."""
    page = _Page(look, Ledger(verdict), [_brief(verdict, look)])
    _reasoning(page, reasoning)
    return _finished(page.lines, look)


def _reasoning(page: _Page, reasoning: Reasoning) -> None:
    for part in parts(reasoning):
        page.heading(sentence(part.title))
        for entry in part.entries:
            margin = "  " + "  " * min(entry.depth, 6)
            mark = f"{margin}{entry.mark} " if entry.mark else margin
            page.put(sentence(entry.text), mark, ids=entry.cites, mark_style="cyan")


def _gaps(page: _Page, verdict: Verdict) -> None:
    """What could not be had; the same trouble in many places is one line."""
    told = troubles(verdict)
    if not told:
        return
    page.heading(f"Gaps ({len(told):,})")
    for one in told[:GAPS]:
        listed = ", ".join(one.wheres[:PLACES])
        left = len(one.wheres) - PLACES
        more = f" and {left:,} more" if left > 0 else ""
        where = f" ({listed}{more})" if one.wheres else ""
        page.put(sentence(f"{one.need}: {one.reason}{where}"), "  - ")
    page.folded(len(told) - GAPS, "gap")
