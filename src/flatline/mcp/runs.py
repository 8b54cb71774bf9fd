"""
Runs that were diagnosed, each under a handle.

A handle is a digest of the verdict and of what it was asked of: a run that has not changed has the
same one again.  The latest are held; one that is no longer is asked for again by its target.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flatline.collect import Request, collect, own
from flatline.collect.asking import Own
from flatline.collect.files import Found, walk
from flatline.collect.line_reader import LineReader
from flatline.collect.searching import Searched, search
from flatline.collect.stores import Question, Reply, ask
from flatline.diagnose import diagnose
from flatline.errors import UsageError
from flatline.facts import KERNEL, LOG
from flatline.judging.unanswered import speaking
from flatline.knowledge.related import with_related
from flatline.mcp.roots import Roots
from flatline.model import Gap, Verdict
from flatline.render import Ledger, json
from flatline.triage import Ask, Ended, Listing, Selected
from flatline.triage.listing import listing
from flatline.triage.select import select
from flatline.verify import Check, verify

_HANDLE = re.compile(r"run-[0-9a-f]{1,16}")
_WORD = re.compile(r"\w")
HELD_RUNS, HELD_LISTINGS = 48, 4
"""A verdict of a large run takes some MB."""


@dataclass(frozen=True, slots=True)
class Held:
    """A verdict, its evidence by id, and where the run lies.

    `logs` are those that were read, with their lines; `speaking` is the one that speaks for the
    run.
    """

    handle: str
    targets: tuple[str, ...]
    paths: tuple[str, ...]
    verdict: Verdict
    ledger: Ledger
    logs: Mapping[str, int]
    speaking: str | None = None
    baseline: str | None = None

    def document(self) -> dict[str, Any]:
        return json.document(self.verdict)


class Runs:
    """Diagnoses one run at a time: a login node has other users, and the scanner is one."""

    def __init__(self, roots: Roots, prometheus: str | None = None) -> None:
        """`prometheus` is the one server that is asked; no caller can name another."""
        self.roots = roots
        self._prometheus = prometheus
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._listings: OrderedDict[str, Listing] = OrderedDict()
        self._lock = threading.RLock()

    def diagnosed(
        self,
        target: str,
        also: Sequence[str] = (),
        job: str | None = None,
        baseline: str | None = None,
    ) -> Held:
        """The run, read now; a handle gives what is held. Raises `UsageError`."""
        if target in self._held and not also and job is None and baseline is None:
            return self.held(target)
        with self._lock:
            found = self.roots.target(target, job)
            beside = self.roots.paths(also)
            against = self.roots.paths((baseline,))[0] if baseline else None
            named = (found.job,) if target == found.job and found.job else tuple(found.paths)
            targets, paths = (*named, *beside), (*found.paths, *beside)
            # What lies of another job of Slurm may be outside the roots.
            live = target == found.job
            request = Request(targets, job, against, self._prometheus, seek_baseline=not live)
            facts = collect(request)
            verdict = with_related(diagnose(facts))
            logs = {read.source: read.lines for read in facts.files if read.kind in (LOG, KERNEL)}
            main = speaking(facts)
            made = Held("", targets, paths, verdict, Ledger(verdict), logs,
                        main.source if main else None, against)  # fmt: skip
            held = replace(made, handle=_handle(made))
            self._keep(held)
        return held

    def held(self, handle: str) -> Held:
        """A target serves as well as its handle: it is read anew. Raises `UsageError` where it is
        not, or no longer, held."""
        with self._lock:
            found = self._held.get(handle)
            if found is None and not _HANDLE.fullmatch(handle):
                return self.diagnosed(handle)
            if found is None:
                known = f"; held are {', '.join(self._held)}" if self._held else ""
                raise UsageError(
                    f"no run is held under {handle[:40]!r}{known}. Call diagnose with the run's"
                    " target and use the handle it gives"
                )
            self._held.move_to_end(handle)
            return found

    def lines(self, held: Held, source: str, first: int, count: int) -> tuple[str, ...]:
        """Lines of a log, masked."""
        with self._lock:
            return LineReader(self._files(held), []).lines(source, first, count)

    def searched(
        self, held: Held, pattern: str, source: str | None, most: int, begin: tuple[int, int]
    ) -> Searched:
        """Lines that match, of all logs of the run or those below `source`."""
        with self._lock:
            return search(self._named(held, source), pattern, most, begin)

    def sources(self, held: Held, source: str | None) -> list[str]:
        """The logs a search goes through, in its order."""
        return [file.source for file in self._named(held, source)]

    def _named(self, held: Held, source: str | None) -> list[Found]:
        named = self.logs(held, source)
        return [file for file in self._files(held) if file.source in named]

    def logs(self, held: Held, source: str | None) -> tuple[str, ...]:
        """The logs of the run that are called so, or all. Raises `UsageError` where none is."""
        named = tuple(name for name in held.logs
                      if source in (None, name) or name.endswith(f"/{source}"))  # fmt: skip
        if not named:
            raise UsageError(_no_log(held, source))
        return named

    def last(self, held: Held, source: str, count: int) -> list[tuple[int, str]]:
        """The last lines of a log that hold a word, numbered, masked."""
        first = max(held.logs[source] + 2 - 3 * count, 1)
        lines = enumerate(self.lines(held, source, first, 3 * count), first)
        return [(number, text) for number, text in lines if _WORD.search(text)][-count:]

    def checked(self, held: Held) -> tuple[Check, ...]:
        """Every citation, read or computed again."""
        with self._lock:
            return verify(held.document(), held.targets, self._prometheus, held.baseline)

    def own(self, held: Held) -> Own:
        """What its records say is the run's."""
        with self._lock:
            return own(held.targets, held.verdict.run.id)

    def asked(self, question: Question) -> Reply:
        """PromQL over what the run holds. Raises `QueryRejected` for a query that is wrong."""
        with self._lock:
            return ask(question)

    def listed(self, ask: Ask) -> tuple[str, Listing]:
        """Every job that ended, read now; logs outside the roots are not opened."""

        def chosen(asked: Ask) -> Selected:
            selected = select(asked)
            return replace(selected, find=self._confined(selected))

        with self._lock:
            made = listing(ask, selecting=chosen)
            name = f"jobs-{hashlib.sha256(repr(made).encode()).hexdigest()[:8]}"
            _hold(self._listings, name, made, HELD_LISTINGS)
        return name, made

    def listing(self, name: str) -> Listing:
        with self._lock:
            found = self._listings.get(name)
        if found is None:
            raise UsageError("that listing is no longer held; call jobs again without a cursor")
        return found

    def _confined(self, selected: Selected) -> Any:
        def find(ended: Ended) -> Ended:
            one = selected.find(ended) if selected.find is not None else ended
            kept = tuple(path for path in one.logs if self.roots.holds(Path(path)))
            refused = tuple(str(path) for path in one.logs if path not in kept)
            return replace(one, logs=kept, looked=(*one.looked, *refused))

        return find

    def _files(self, held: Held) -> list[Found]:
        gaps: list[Gap] = []
        return walk(held.paths, gaps) if held.paths else []

    def _keep(self, held: Held) -> None:
        _hold(self._held, held.handle, held, HELD_RUNS)


def _hold(kept: OrderedDict[str, Any], name: str, value: object, most: int) -> None:
    kept[name] = value
    kept.move_to_end(name)
    while len(kept) > most:
        kept.popitem(last=False)


def _handle(held: Held) -> str:
    digest = hashlib.sha256(repr(held.targets).encode("utf-8", "replace"))
    digest.update(json.render(held.verdict).encode())
    return f"run-{digest.hexdigest()[:8]}"


def _no_log(held: Held, source: str | None) -> str:
    if not held.logs:
        return "no log of this run was read: there is nothing to search"
    more = f" and {len(held.logs) - 8} more" if len(held.logs) > 8 else ""
    return (
        f"no log of this run is called {source!r}: there are {', '.join([*held.logs][:8])}{more}"
    )
