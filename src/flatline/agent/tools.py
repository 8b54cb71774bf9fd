"""
What the investigator may call: each reads, none writes, and every answer is typed and bounded.

A method's docstring is what a model is told of it.  A wrong call comes back as `refused` with what
to do instead, an empty answer as `no_data`: neither is an error, and neither is a finding.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, ParamSpec, get_args

from pydantic import Field

from flatline import reference
from flatline.agent import numbers
from flatline.agent.bench import Bench
from flatline.agent.pages import Answer, Row, shown
from flatline.agent.source import read_source, search_source
from flatline.collect.searching import search
from flatline.errors import FlatlineError, UsageError
from flatline.facts import Facts
from flatline.families import all_families
from flatline.model import LogCite
from flatline.model.reasoning import Look
from flatline.reference import page
from flatline.render import beside, located, ordered_findings, said
from flatline.render.text import Look as Width
from flatline.signals import SIGNALS
from flatline.wording.places import fold_hosts, fold_places
from flatline.wording.rows import confidence_text, instant, rows

P = ParamSpec("P")
Part = Literal["findings", "ruled_out", "undetermined", "gaps", "evidence", "attempts"]
PARTS: tuple[Part, ...] = get_args(Part)
HITS, PASSAGES = 200, 4


def answering(tool: Callable[P, Answer]) -> Callable[P, Answer]:
    """Faults as a model can use them, and a note of each look for people."""

    @functools.wraps(tool)
    def answered(*args: P.args, **kwargs: P.kwargs) -> Answer:
        kit: Any = args[0]
        given = ", ".join(str(value) for value in (*args[1:], *kwargs.values()) if value)
        try:
            made = tool(*args, **kwargs)
        except (FlatlineError, OSError, ValueError) as fault:
            made = kit.bench.pages.refused(given, str(fault))
        kit.bench.looks.append(Look(tool.__name__, shown(given, 160), _found(made)))
        return made

    return answered


def _found(answer: Answer) -> str:
    if answer.status == "refused":
        return shown(f"refused: {answer.text}", 120)
    if answer.status == "no_data":
        return shown(f"no data: {answer.text}", 120)
    return f"{answer.rows:,} row{'' if answer.rows == 1 else 's'}"


class Kit:
    """The tools over one bench."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    @answering
    def overview(self) -> Answer:
        """What the verdict's rows say, what was read of the run, which signals are measured."""
        facts, verdict = self.bench.facts, self.bench.verdict
        told = [Row(f"{name}: {words}") for name, words in rows(verdict)]
        kinds: dict[str, list[int]] = {}
        for read in facts.files:
            kinds.setdefault(read.kind, []).append(read.lines)
        told += [Row(f"read: {len(lines):,} of kind {kind}, {sum(lines):,} lines")
                 for kind, lines in sorted(kinds.items())]  # fmt: skip
        carried = [name for name in SIGNALS if facts.measured(name)]
        told.append(Row(f"signals measured: {', '.join(carried) or 'none'}"))
        told.append(Row(f"evidence e1 to e{len(self.bench.ledger.items)}"))
        return self.bench.pages.answer("overview", told)

    @answering
    def findings(
        self, part: Annotated[Part, Field(description="which part of the verdict")] = "findings"
    ) -> Answer:
        """A part of the rules' verdict, whole: findings, families ruled out and why, families
        undetermined and what telemetry they need, gaps, attempts, the list of evidence."""
        if part not in PARTS:
            raise UsageError(f"there is no part {part!r}; there are {', '.join(PARTS)}")
        return self.bench.pages.answer(part, _part(self.bench, part))

    @answering
    def evidence(
        self,
        ids: Annotated[list[str], Field(description="evidence ids, as e1 or t3; five at most")],
        context: Annotated[int, Field(description="lines of the log around, ten at most")] = 3,
    ) -> Answer:
        """Pieces of evidence whole, with the lines around them where they are lines of a log."""
        known, told = dict(self.bench.ledger.items), list[Row]()
        for name in ids[:5]:
            cite, brought = known.get(name), self.bench.brought.get(name)
            if cite is None and brought is None:
                raise UsageError(f"there is no evidence {name[:12]!r}; findings(part='evidence')")
            if cite is None and brought is not None:
                item = self.bench.known[name]
                told.append(Row(f"{name} {brought.where} | {brought.text}"))
                told += self._around(str(item.get("source")), item.get("line"), context)
            elif cite is not None:
                words = " ".join(part for part, _ in said(cite, self.bench.ledger))
                place = ", ".join(beside(cite))
                told.append(Row(f"{name} {located(cite)} {place} {words} | {cite.text}"))
                if isinstance(cite, LogCite):
                    told += self._around(cite.source, cite.line, context)
        note = "five ids at most are shown" if len(ids) > 5 else None
        return self.bench.pages.answer(", ".join(ids[:5]), told, note)

    def _around(self, source: str, line: Any, context: int) -> list[Row]:
        if not isinstance(line, int) or context <= 0:
            return []
        first = max(line - min(context, 10), 1)
        lines = self.bench.facts.lines(source, first, line + min(context, 10) - first + 1)
        return [
            Row(f"  {n}{'>' if n == line else ' '} {text}") for n, text in enumerate(lines, first)
        ]

    @answering
    def query(
        self,
        promql: Annotated[
            str, Field(description="over canonical signals, as max by (host) (gpu_power_watts)")
        ],
        at: Annotated[str | None, Field(description="one time, ISO 8601 with its zone")] = None,
        start: Annotated[
            str | None, Field(description="beginning of a range; default: all there is")
        ] = None,
        end: Annotated[str | None, Field(description="its end")] = None,
    ) -> Answer:
        """PromQL over the run's metrics, one row a series: its value at the end, which is the
        evidence; first, lowest and highest beside it. To claim a maximum, ask max_over_time."""
        when = at or " to ".join(filter(None, (start, end)))
        found, note = numbers.asked(self.bench.facts, self.bench.paths, promql, at, start, end)
        return self.bench.pages.answer(f"{promql} {when}".strip(), found, note)

    @answering
    def search_log(
        self,
        pattern: Annotated[
            str, Field(description="regular expression, letters of any case, no look-around")
        ],
        source: Annotated[
            str | None, Field(description="only the log of this name, or below this folder")
        ] = None,
    ) -> Answer:
        """Lines of the run's logs that match, 200 at most; each is evidence. No match in the logs
        that were read proves nothing of logs that were not."""
        files = list(self.bench.logs)
        if source is not None:
            files = [f for f in files if f.source == source or f.source.endswith(f"/{source}")
                     or f.source.startswith(f"{source.rstrip('/')}/")]  # fmt: skip
        if not files:
            names = ", ".join(file.source for file in self.bench.logs[:8]) or "none"
            return self.bench.pages.answer(pattern, (), f"no such log was read; logs: {names}")
        hits = search(files, pattern, HITS)
        told = [Row(f"{hit.source}:{hit.line} | {hit.text}", self._line(hit.source, hit.line))
                for hit in hits.hits]  # fmt: skip
        notes = [f"not searched: {shown(reason, 100)}" for reason in hits.unread[:3]]
        if hits.follows is not None:
            why = "5 s of reading" if hits.timed_out else f"{HITS} lines"
            notes.append(f"stopped after {why}: there is more; narrow the pattern or the source")
        if not told:
            notes.append(f"no line matches in {len(files)} logs")
        return self.bench.pages.answer(f"{pattern} {source or ''}", told, "; ".join(notes) or None)

    def _line(self, source: str, line: int) -> LogCite | None:
        """The line as it is cited: as the rules cite it, where a signature matched it."""
        known = self.bench.facts.at_line(source, line, line)
        if known:
            return known[0].cite
        text = self.bench.facts.text(source, line)
        return LogCite(source, line, text) if text else None

    @answering
    def records(self) -> Answer:
        """The scheduler's records: the job, its steps, the states its nodes were in."""
        told: list[Row] = []
        for job in self.bench.facts.jobs:
            ran = " to ".join(instant(at) if at else "?" for at in (job.started_at, job.ended_at))
            code = f", exit {job.exit_code}:{job.signal}" if job.exit_code is not None else ""
            why = f", reason {job.reason}" if job.reason else ""
            told.append(Row(f"job {job.id} {job.state}{code}{why}, {ran},"
                            f" nodes {fold_hosts(job.nodes)}", job.cite))  # fmt: skip
            told += [
                Row(f"step {step.id} {step.name} {step.state}, exit {step.exit_code}"
                    f":{step.signal}, nodes {fold_hosts(step.nodes)}", step.cite)
                for step in job.steps
            ]  # fmt: skip
        for event in self.bench.facts.node_events:
            since = f" since {instant(event.at)}" if event.at else ""
            until = f" until {instant(event.until)}" if event.until else ""
            reason = f": {event.reason}" if event.reason else ""
            told.append(Row(f"node {event.host} {'+'.join(event.states)}{since}{until}{reason}",
                            event.cite))  # fmt: skip
        return self.bench.pages.answer("records", told, None if told else "no record was read")

    @answering
    def topology(self) -> Answer:
        """Hosts of the run, which ranks are on which, and the leaf switch or block of each."""
        facts = self.bench.facts
        told = [Row(f"hosts: {fold_hosts(facts.hosts)} ({len(facts.hosts)}),"
                    f" world size {facts.world_size}")] if facts.hosts else []  # fmt: skip
        told += [Row(f"{name}: {fold_hosts(below)}") for name, below in _leaves(self.bench)]
        told += [
            Row(f"{host}: ranks {_ranges(sorted(ranks))}")
            for host, ranks in sorted(_ranks_on(facts).items())
        ]
        return self.bench.pages.answer("topology", told, None if told else "no host is known")

    @answering
    def families(
        self,
        what: Annotated[
            str | None, Field(description="code or name; all of them where none is named")
        ] = None,
    ) -> Answer:
        """The named families and what the rules say of each; of one its whole page: symptom,
        mechanism, what it is told apart from, what to do."""
        if what is None:
            told = [
                Row(f"{f.code} {f.name}: {_judged(self.bench, f.code)}") for f in all_families()
            ]
            return self.bench.pages.answer("families", told, quoted=False)
        family = reference.family_named(what)
        if family is None:
            raise reference.unknown(what)
        said_ = page.family_prose(family, Width(width=100)).splitlines()
        told = [Row(f"rules: {_judged(self.bench, family.code)}"), *map(Row, said_)]
        return self.bench.pages.answer(what, told, quoted=False)

    @answering
    def knowledge(
        self, words: Annotated[str, Field(description="an error message, symptom or component")]
    ) -> Answer:
        """Like failures that were met elsewhere, with their cause and fix. What helped others is
        no evidence of this run: find it here before you claim it."""
        shelf = self.bench.extras.shelf
        if shelf is None:
            return self.bench.pages.answer(words, (), "this Flatline has no knowledge base")
        told = [
            Row(f"{p.id} [{', '.join(p.families)}] {p.title}. {p.text} ({p.source})")
            for p in shelf.search(words, PASSAGES)
        ]
        return self.bench.pages.answer(words, told, None if told else "no record fits")

    @answering
    def comparison(self) -> Answer:
        """Differences against the baseline run: configuration first, then signals."""
        other = self.bench.document.get("comparison")
        if other is None:
            return self.bench.pages.answer("comparison", (), "no baseline was named (--baseline)")
        told = [Row(_difference(one)) for one in other]
        return self.bench.pages.answer("comparison", told, None if told else "nothing differs")

    @answering
    def source_search(
        self,
        pattern: Annotated[str, Field(description="regular expression over lines of source code")],
        folder: Annotated[
            str | None, Field(description="only below this folder of those allowed")
        ] = None,
    ) -> Answer:
        """Lines of source code in the folders the user allows. Code explains a mechanism; it is
        no evidence that this run took that path."""
        found, note = search_source(self.bench.extras.sources, pattern, folder)
        return self.bench.pages.answer(pattern, found, note)

    @answering
    def source_read(
        self,
        path: Annotated[str, Field(description="as source_search spells it")],
        line: Annotated[int, Field(description="first line")] = 1,
        count: Annotated[int, Field(description="lines, 120 at most")] = 60,
    ) -> Answer:
        """A part of one source file in the folders the user allows."""
        found, note = read_source(self.bench.extras.sources, path, line, count)
        return self.bench.pages.answer(f"{path}:{line}", found, note)

    def more(
        self,
        answer: Annotated[str, Field(description="the answer's name, as a3")],
        start: Annotated[int, Field(description="as `more` of it says")],
    ) -> Answer:
        """The next page of an answer that was too long for one."""
        made = self.bench.pages.more(answer, start)
        self.bench.looks.append(Look("more", f"{answer}, {start}", _found(made)))
        return made

    def every(self) -> Mapping[str, Callable[..., Answer]]:
        """The tools by name, in the order they are listed; source code only where allowed."""
        tools: list[Callable[..., Answer]] = [
            self.overview, self.findings, self.evidence, self.query, self.search_log, self.records,
            self.topology, self.families, self.knowledge, self.comparison, self.more,
        ]  # fmt: skip
        if self.bench.extras.sources is not None:
            tools += [self.source_search, self.source_read]
        return {tool.__name__: tool for tool in tools}


def described(tool: Callable[..., Answer]) -> str:
    return " ".join((inspect.getdoc(tool) or "").split())


# --- parts of a verdict -----------------------------------------------------------------------


def _part(bench: Bench, part: Part) -> list[Row]:
    verdict, ledger = bench.verdict, bench.ledger
    match part:
        case "findings":
            return [_finding(bench, judged) for judged in ordered_findings(verdict)]
        case "ruled_out":
            return [Row(f"{r.code} {r.family}: {r.why} [{', '.join(ledger.ids(r.cites)[:6])}]")
                    for r in verdict.ruled_out]  # fmt: skip
        case "undetermined":
            return [Row(f"{u.code} {u.family}: needs {'; '.join(u.missing)}")
                    for u in verdict.undetermined]  # fmt: skip
        case "gaps":
            return [Row(f"{g.need} ({g.where or 'everywhere'}): {g.reason}") for g in verdict.gaps]
        case "attempts":
            return [
                Row(
                    f"attempt {a.n}: {a.disposition}, steps {a.first_step} to {a.last_step}"
                    f" [{', '.join(ledger.ids(a.cites)[:6])}]"
                )
                for a in verdict.run.attempts
            ]
        case _:
            return [Row(f"{name} {located(cite)} | {cite.text}") for name, cite in ledger.items]


def _finding(bench: Bench, judged: Any) -> Row:
    finding = judged.finding
    where = f", where: {fold_places(finding.culprits)}" if finding.culprits else ""
    after = f", follows from {judged.explained_by[0].by}: {judged.explained_by[0].mechanism}" \
        if judged.explained_by else ""  # fmt: skip
    ids = ", ".join(bench.ledger.ids(finding.cites)[:6])
    return Row(f"{judged.id} {finding.code} {judged.family}, {judged.role},"
               f" confidence {confidence_text(judged.confidence)}: {finding.summary}"
               f"{where}{after} [{ids}]")  # fmt: skip


def _difference(one: Mapping[str, Any]) -> str:
    """One difference against the baseline, whatever kind it is of: its fields by name."""
    named = [f"{key} {value}" for key, value in one.items()
             if value is not None and key not in ("cites", "kind", "name")]  # fmt: skip
    cites = f" [{', '.join(map(str, one.get('cites') or ()))}]"
    return f"{one.get('kind')} {one.get('name')}: {', '.join(named)}{cites}"


def _judged(bench: Bench, code: str) -> str:
    verdict = bench.verdict
    for judged in verdict.findings:
        if judged.finding.code == code:
            return f"found, {judged.role}, confidence {confidence_text(judged.confidence)}"
    for ruled in verdict.ruled_out:
        if ruled.code == code:
            return f"ruled out: {ruled.why}"
    for open_ in verdict.undetermined:
        if open_.code == code:
            return f"undetermined: needs {'; '.join(open_.missing)}"
    return "it is the verdict" if verdict.code == code else "not judged"


# --- places -----------------------------------------------------------------------------------


def _leaves(bench: Bench) -> list[tuple[str, tuple[str, ...]]]:
    from flatline.parsers.topology import parse_topology, recognise_topology

    own = set(bench.facts.hosts)
    for file in bench.files:
        if file.path.is_file() and file.size < 8 << 20:
            with file.path.open("rb") as data:
                head = data.read(65_536)
                if recognise_topology(head):
                    leaves = parse_topology(head + data.read())
                    kept = ((name, tuple(h for h in below if h in own)) for name, below in leaves)
                    return [(name, below) for name, below in kept if below]
    return []


def _ranks_on(facts: Facts) -> dict[str, set[int]]:
    """Ranks (tasks, where no rank was printed) by the host anything of them was heard on."""
    heard = (
        *(event.place for event in facts.exits),
        *(match.cite.place for match in facts.matches),
        *(track.place for track in facts.tracks),
        *(read.place for read in facts.files),
    )
    found: dict[str, set[int]] = {}
    for place in heard:
        rank = place.task if place.rank is None else place.rank
        if place.host is not None and rank is not None:
            found.setdefault(place.host, set()).add(rank)
    return found


def _ranges(numbers_: list[int]) -> str:
    runs: list[list[int]] = []
    for number in sorted(numbers_):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
