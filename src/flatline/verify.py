"""
Evidence is executable: every citation of a verdict is read, run, recomputed or searched again.

Works on the JSON document alone and on the target it was made from; nothing of the diagnosis is
trusted, only the same readers, masks and engine are used.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from flatline.collect import Request, collect, read
from flatline.collect.baseline import FOUND
from flatline.collect.catalogue import catalogue
from flatline.collect.files import Found, walk
from flatline.collect.live import resolve
from flatline.collect.logs import read_log
from flatline.collect.numbers import OPEN, Numbers, Window
from flatline.collect.setting import Setting
from flatline.errors import FlatlineError, UsageError
from flatline.facts import METRICS, SCHEDULER, Facts, stands_for
from flatline.judging.by_steps import METHOD as STEP_SECONDS
from flatline.judging.by_steps import laid
from flatline.judging.comparison import comparison
from flatline.judging.steps import METHOD as COMPARED
from flatline.logs.labels import Labels, NamePlace, place_of_name
from flatline.logs.reading import TextFile, clean, open_text
from flatline.model import Comparison, Gap
from flatline.parsers import parsed, record_format_of
from flatline.parsers.flight_recorder import resolve_dump
from flatline.redact import mask
from flatline.tracks import BASELINE

Evidence = Mapping[str, Any]
Result = tuple[bool, str]
SCHEMA_VERSION = 1
RECORD_BYTES = 128 << 20
_LINES_OF = re.compile(r"(.+):([1-9]\d{0,11})-([1-9]\d{0,11})")
OPEN_FILES = 64
"""Logs held open; a verdict may cite thousands."""


@dataclass(frozen=True, slots=True)
class Check:
    """Whether one piece of evidence holds, and what was found."""

    evidence: str
    ok: bool
    said: str


class Target:
    """The files of the target, opened as they are needed."""

    def __init__(
        self,
        targets: tuple[str, ...],
        server: str | None,
        asked_over: Window,
        origin: str = "",
        of_server: Callable[[], Mapping[str, bytes]] | None = None,
    ) -> None:
        """`of_server` asks the server once more for the records that it gave."""
        self.gaps: list[Gap] = []
        self.origin = origin
        self._of_server = of_server
        self._server, self._asked_over = server, asked_over
        resolved = resolve(targets)
        found = walk(tuple(resolved.paths), self.gaps, origin)
        self.found = {f.source: f for f in found}
        self._texts: dict[str, TextFile] = {}
        self._labels: dict[str, Labels] = {}
        self._fetched = {origin + name: data for name, data in resolved.records}
        self._numbers: Numbers | None = None

    def file(self, source: str) -> Found:
        found = self.found.get(source)
        if found is None:
            raise UsageError(f"{source!r} is not in the target")
        return found

    def line(self, source: str, number: int) -> str:
        if source not in self._texts:
            if len(self._texts) >= OPEN_FILES:
                self._texts.pop(next(iter(self._texts))).close()
            self._texts[source] = open_text(self.file(source).path, source)
        text = self._texts[source].line(number)
        if text is None:
            raise UsageError(f"{source!r} has no line {number}")
        return text

    def labels(self, source: str) -> Labels:
        if source not in self._labels:
            self._labels[source] = Labels.learn(self.sample(source))
        return self._labels[source]

    def sample(self, source: str) -> list[str]:
        """Cleaned lines of a log, from its head, middle and tail."""
        self.line(source, 1)
        return list(map(clean, self._texts[source].sample()))

    def data(self, source: str) -> bytes:
        if source in self._fetched:
            return self._fetched[source]
        if source.startswith(("http://", "https://")):
            return self._served(source)
        file = self.file(source)
        if file.size > RECORD_BYTES:
            raise UsageError(f"{source!r} has {file.size} bytes, more than is read")
        return file.path.read_bytes()

    def _served(self, source: str) -> bytes:
        """Of the server that the caller names, wherever it is reached by now."""
        if self._server is None or self._of_server is None:
            raise UsageError("a server answered it: name it with --prometheus")
        name = PurePosixPath(source).name
        for told, data in self._of_server().items():
            if PurePosixPath(told).name == name:
                return data
        raise UsageError(f"the server tells no {name} of this run")

    def numbers(self) -> Numbers:
        if self._numbers is None:
            metrics = [f for f in self.found.values() if f.kind == METRICS]
            self._numbers = Numbers(
                metrics,
                self.gaps,
                addresses=self._addresses(),
                server=self._server,
                run=self._asked_over,
                origin=self.origin,
            )
        return self._numbers

    def _addresses(self) -> dict[str, str]:
        """Which node an address is, as the target's scheduler records say."""
        found: dict[str, str] = {}
        for file in self.found.values():
            if file.kind == SCHEDULER and file.size <= RECORD_BYTES:
                data = file.path.read_bytes()
                form = record_format_of(file.path.name, data)
                if form is not None:
                    found.update(parsed(form, data, file.source).addresses)
        return found


class Runs:
    """
    The run and what it was compared with.  Evidence whose source begins with `BASELINE` lives in
    the baseline; where none is named, that is another job in the run's own target.
    """

    def __init__(
        self, document: Mapping[str, Any], request: Request, within: Window | None = None
    ) -> None:
        """`within` is the time a server is asked over, by default that of the citations."""
        self._request, self._document = request, document
        self._listed: Sequence[Evidence] = document.get("evidence") or ()
        over = asked_over(self._listed) if within is None else within
        self.own = Target(request.targets, request.prometheus, over, of_server=self._served)
        self._other: Target | None = None
        self._compared: Comparison | None = None
        self._facts: Facts | None = None
        self._of_server: Mapping[str, bytes] | None = None

    def of(self, source: str) -> Target:
        if not source.startswith(BASELINE):
            return self.own
        if self._other is None:
            asked = self._request
            named = (asked.baseline,) if asked.baseline else self._sought()
            over = asked_over(self._listed, BASELINE)
            self._other = Target(named, asked.prometheus, over, BASELINE)
        return self._other

    def _sought(self) -> tuple[str, ...]:
        """The baseline that was found without being named: a Slurm job, or in the target."""
        listed = self._document.get("baseline") or []
        told = listed[0] if listed and isinstance(listed[0], dict) else {}
        if not str(told.get("chosen")).startswith(FOUND):
            raise UsageError("it lives in the baseline: name that with --baseline TARGET")
        here = any(Path(target).exists() for target in self._request.targets)
        return self._request.targets if here else (str(told.get("job")),)

    def compared(self) -> Comparison:
        """The comparison, made anew from the two runs."""
        if self._compared is None:
            self._compared = comparison(self.facts())
            if self._compared is None:
                raise UsageError("name the run that it was compared with: --baseline TARGET")
        return self._compared

    def _served(self) -> Mapping[str, bytes]:
        if self._of_server is None:  # a run whose pods are asked for has no record that names it
            self._of_server = dict(read(replace(self._request, job=None)).fetched)
        return self._of_server

    def facts(self) -> Facts:
        """The run, read anew: for what is computed from more than what is cited."""
        if self._facts is None:
            self._facts = collect(self._request)
        return self._facts


def verify(
    document: Mapping[str, Any],
    targets: tuple[str, ...],
    prometheus: str | None = None,
    baseline: str | None = None,
) -> tuple[Check, ...]:
    """
    One check per piece of evidence, and one per citation that names none.

    Only the server the caller names is asked, and with it what a server answered: a document may
    name any address.

    Raises `UsageError` for what is no verdict of this schema and for a target that is not there.
    """
    listed = document.get("evidence")
    if document.get("schema_version") != SCHEMA_VERSION or not isinstance(listed, list):
        raise UsageError(f"this is no Flatline verdict (schema_version {SCHEMA_VERSION})")
    if not all(isinstance(item, dict) and item.get("id") for item in listed):
        raise UsageError("this is no Flatline verdict: its evidence has no ids")
    run = document.get("run")
    job = run.get("id") if isinstance(run, dict) else None
    request = Request(targets, job if isinstance(job, str) else None, baseline, prometheus)
    runs = Runs(document, request)
    evidence = {str(item["id"]): item for item in listed}
    if len(evidence) != len(listed):
        raise UsageError("this is no Flatline verdict: two pieces of evidence share an id")
    checks = [executed(name, item, runs, evidence) for name, item in evidence.items()]
    dangling = sorted(_cited(document) - set(evidence))
    checks += [Check(name, False, "cited, but not among the evidence") for name in dangling]
    return tuple(checks)


def asked_over(listed: Sequence[Evidence], origin: str = "") -> Window:
    """The time all query citations into the run, or into its baseline, span; one without a
    readable time fails when it is checked."""
    times = []
    for item in listed:
        lives = BASELINE if str(item.get("source")).startswith(BASELINE) else ""
        if item.get("kind") == "query" and lives == origin:
            try:
                times += [datetime.fromisoformat(item[key]) for key in ("start", "end")]
            except (KeyError, TypeError, ValueError):
                continue
    aware = [time for time in times if time.tzinfo is not None]
    return (min(aware), max(aware)) if aware else OPEN


def executed(name: str, item: Evidence, runs: Runs, known: Mapping[str, Evidence]) -> Check:
    """One piece of evidence read, run, searched or computed again."""
    check = _CHECKS.get(str(item.get("kind")))
    if check is None:
        return Check(name, False, f"no evidence is of kind {item.get('kind')!r}")
    try:
        if item.get("method") in OVER_THE_RUN and item.get("kind") == "derived":
            ok, said = OVER_THE_RUN[str(item.get("method"))](item, runs)
        else:
            ok, said = check(item, runs.of(str(item.get("source"))), known)
    except KeyError as fault:
        ok, said = False, f"it does not say its {fault.args[0]!r}, or names what is not there"
    except (FlatlineError, OSError, ValueError, TypeError, AttributeError, OverflowError) as fault:
        ok, said = False, str(fault)
    return Check(name, ok, mask(said))


def _cited(document: Mapping[str, Any]) -> set[str]:
    """Every id that stands in a list called `cites`, wherever in the document it is."""
    found: set[str] = set()
    left: list[Any] = [document]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            cites = node.get("cites")
            if isinstance(cites, list):
                found.update(map(str, cites))
            left += node.values()
        elif isinstance(node, list):
            left += node
    return found


def _log(item: Evidence, target: Target, _: Mapping[str, Evidence]) -> Result:
    text = target.line(item["source"], int(item["line"]))
    wanted = str(item.get("text") or "")
    shown = mask(text)
    drawn = (mask(part) for part in text.split("\r"))  # what a line drew over itself is cited
    held = wanted in shown or any(wanted in part for part in drawn)
    if held and wanted and (other := _elsewhere(item, target, text)):
        return False, f"{other}: {shown[:100]}"
    return bool(wanted) and held, shown[:120]


def _elsewhere(item: Evidence, target: Target, text: str) -> str:
    """What the line's own label says against the rank or task that is cited; "" where nothing
    does. A number that stands in the line, as a launcher names others, is the line's word too."""
    place = item.get("place") or {}
    label = target.labels(item["source"]).split(text).place
    for kind, said in (("rank", label.rank), ("task", label.task)):
        cited = place.get(kind)
        if said is None or cited is None or cited == said:
            continue
        if re.search(rf"(?<!\d){int(cited)}(?!\d)", text) is None:
            return f"the line is of {kind} {said}, not {cited}"
    return ""


def _record(item: Evidence, target: Target, _: Mapping[str, Evidence]) -> Result:
    source, pointer = item["source"], item["pointer"]
    data = target.data(source)
    name = Path(source.removeprefix(BASELINE)).name
    form = record_format_of(name, data)
    if form is None:
        return False, "no scheduler record that is known"
    value = form.resolve(data, pointer)
    value = mask(value) if isinstance(value, str) else value
    return value == item.get("value"), f"{pointer} is {value!r}"


def _dump(item: Evidence, target: Target, _: Mapping[str, Evidence]) -> Result:
    value = resolve_dump(target.data(item["source"]), item["pointer"])
    return value == item.get("value"), f"{item['pointer']} is {value!r}"


def _query(item: Evidence, target: Target, _: Mapping[str, Evidence]) -> Result:
    value = target.numbers().replay(item)
    wanted = float(item["value"])
    close = abs(value - wanted) <= 1e-9 * max(1.0, abs(wanted))
    return close or (value != value and wanted != wanted), f"the query gives {value:g}"


def _absence(item: Evidence, target: Target, _: Mapping[str, Evidence]) -> Result:
    searched = item.get("searched") or {}
    tokens = [str(token) for token in searched.get("patterns", ())]
    lines = 0
    unknown = [token for token in tokens if not _searchable(token)]
    if unknown:
        return False, f"nothing can be searched for by {unknown[0]!r}"
    for name in dict.fromkeys(searched.get("files", ())):
        source, first, last = _part(target, str(name))
        file = target.file(source)
        setting = Setting(place_of_name(source.removeprefix(BASELINE)) or NamePlace(), None, True)
        events = read_log(file.path, source, catalogue(), setting)
        lines += max(0, min(events.lines, last) - first + 1)
        crashes = [one for one in events.crashes if first <= one.cite.line <= last]
        matches = [one for one in events.matches if first <= one.cite.line <= last]
        for token in tokens:
            if token == "traceback" and crashes:
                return False, f"a traceback stands in {source}"
            for match in matches:
                if stands_for(token, match):
                    return False, f"{source}:{match.cite.line} is {match.signature.id}"
    if lines != searched.get("lines"):
        return False, f"{lines} lines were searched, not {searched.get('lines')}"
    return bool(tokens and lines), f"nothing of {', '.join(tokens)} in {lines} lines"


def _part(target: Target, name: str) -> tuple[str, int, int]:
    """A file and the lines of it that were searched: `train.log:813-1024`, or all of them."""
    found = None if name in target.found else _LINES_OF.fullmatch(name)
    return (found[1], int(found[2]), int(found[3])) if found else (name, 1, sys.maxsize)


def _searchable(token: str) -> bool:
    """Whether a token of an absence names anything: what stands for nothing is never found."""
    kind, _, name = token.partition(":")
    known = catalogue().signatures
    if kind == "family":
        return re.fullmatch(r"[A-G]\d", name) is not None
    if kind == "tag":
        return any(name in signature.tags for signature in known)
    if kind == "signature":
        return any(name == signature.id for signature in known)
    return token == "traceback"


def _derived(item: Evidence, _: Target, evidence: Mapping[str, Evidence]) -> Result:
    method = METHODS.get(item.get("method") or "")
    if method is None:
        return False, f"no method is called {item.get('method')!r}"
    inputs = [evidence[name] for name in item.get("inputs", ())]
    value = method(inputs, item.get("params") or {})
    wanted = item.get("value")
    if isinstance(value, float) and isinstance(wanted, int | float):
        return abs(value - wanted) <= float(item.get("tolerance") or 0.0), f"it is {value:g}"
    return value == wanted, f"it is {value}"


def _compared(item: Evidence, runs: Runs) -> Result:
    """What equal steps of the two runs differ by, over all of them once more."""
    wanted = (item.get("params") or {})["quantity"]
    for measure in runs.compared().measures:
        if measure.name == wanted:
            close = abs(measure.change_ratio - float(item["value"])) <= float(
                item.get("tolerance") or 0.0
            )
            return close, f"{wanted} differs by {measure.change_ratio:+.4%}"
    return False, f"{wanted} cannot be compared"


def _laid(item: Evidence, runs: Runs) -> Result:
    """The sum of what all steps of the last attempt say they took."""
    known = laid(runs.facts())
    if known is None:
        return False, "the steps cannot be added up"
    close = abs(known.spent_s - float(item["value"])) <= float(item.get("tolerance") or 0.0)
    return close, f"they add up to {known.spent_s:g} s"


OVER_THE_RUN: Mapping[str, Callable[[Evidence, Runs], Result]] = {
    COMPARED: _compared,
    STEP_SECONDS: _laid,
}


def _elapsed(inputs: Sequence[Evidence], _: Mapping[str, Any]) -> float:
    """Seconds from the first input to the second."""
    first, second = (datetime.fromisoformat(item["at"]) for item in inputs[:2])
    return (second - first).total_seconds()


def _ranks_not_among(inputs: Sequence[Evidence], params: Mapping[str, Any]) -> str:
    """Ranks (or tasks) of the world that are the place of no input."""
    seen = set()
    for item in inputs:
        place = item.get("place") or {}
        seen.add(place.get("rank") if place.get("rank") is not None else place.get("task"))
    return ",".join(str(n) for n in range(int(params["world_size"])) if n not in seen)


METHODS: dict[str, Callable[[Sequence[Evidence], Mapping[str, Any]], float | str]] = {
    "elapsed@1": _elapsed,
    "ranks-not-among@1": _ranks_not_among,
}
_CHECKS: dict[str, Callable[[Evidence, Target, Mapping[str, Evidence]], Result]] = {
    "log": _log,
    "record": _record,
    "query": _query,
    "dump": _dump,
    "absence": _absence,
    "derived": _derived,
}
