"""One run as the investigator's tools see it: its facts, its verdict, and evidence by id."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from flatline.agent.pages import Pages, shown, spill_folder
from flatline.agent.seams import Shelf
from flatline.collect import Request, collect
from flatline.collect.files import Found, walk
from flatline.collect.live import resolve
from flatline.diagnose import diagnose
from flatline.facts import KERNEL, LOG, Facts
from flatline.knowledge.related import with_related
from flatline.mcp.roots import Roots
from flatline.mcp.runs import Held
from flatline.model import Cite, Gap, Verdict
from flatline.model.reasoning import Found as Brought
from flatline.model.reasoning import Look
from flatline.render import Ledger, located
from flatline.render.json import document, evidence_object, plain
from flatline.wording.progress import Progress


@dataclass(frozen=True, slots=True)
class Extras:
    """What is brought beside the run: folders of source code, a shelf."""

    sources: Roots | None = None
    shelf: Shelf | None = None


@dataclass
class Bench:
    """
    Facts and verdict of one run, and every piece of evidence by its id.

    Evidence of the verdict keeps its ids (`e1` ...); what a look brings gets `t1` ... in the
    order it was shown, so that the same calls give the same ids again.
    """

    request: Request
    facts: Facts
    verdict: Verdict
    extras: Extras = Extras()
    looks: list[Look] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.verdict)
        made: Any = plain(document(self.verdict))
        self.document: Mapping[str, Any] = made
        self.known: dict[str, Mapping[str, Any]] = {
            str(item["id"]): item for item in made["evidence"]
        }
        self.brought: dict[str, Brought] = {}
        self._minted: dict[str, str] = {}
        self.pages = Pages(self.mint, spill_folder(self.request.targets))

    @classmethod
    def of(
        cls, request: Request, extras: Extras = Extras(), progress: Progress | None = None
    ) -> Bench:
        """Reads the run and judges it. Raises `UsageError`."""
        facts = collect(request, progress)
        return cls(request, facts, with_related(diagnose(facts)), extras)

    def mint(self, cite: Cite) -> str:
        """The id of a citation, which is evidence from now on."""
        for name, own in self.ledger.items:
            if own == cite:
                return name
        key = repr(cite)
        if key not in self._minted:
            name = f"t{len(self._minted) + 1}"
            self._minted[key] = name
            made: Any = plain(evidence_object(name, cite, self.ledger))
            self.known[name] = made
            self.brought[name] = Brought(
                name, shown(located(cite), 160), shown(cite.text, 240), made
            )
        return self._minted[key]

    @property
    def held(self) -> Held:
        """The verdict as the pack of the MCP server takes it."""
        read = (file for file in self.facts.files if file.kind in (LOG, KERNEL))
        logs = {file.source: file.lines for file in read}
        targets = self.request.targets
        return Held("", targets, targets, self.verdict, self.ledger, logs)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        return tuple(resolve(self.request.targets, self.request.job).paths)

    @cached_property
    def logs(self) -> tuple[Found, ...]:
        """The logs that were read of this run."""
        read = set(self.held.logs)
        return tuple(file for file in self.files if file.source in read)

    @cached_property
    def files(self) -> Sequence[Found]:
        gaps: list[Gap] = []
        return tuple(walk(self.paths, gaps)) if self.paths else ()

    @cached_property
    def digest(self) -> str:
        """Of the verdict: says whether a recording was made of this very run."""
        import orjson

        run = {key: value for key, value in self.document["run"].items() if key != "target"}
        kept = {**self.document, "run": run, "tool": None}
        written = orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(written).hexdigest()[:16]

    @property
    def spill(self) -> Path | None:
        return next(iter(self.pages.spilled.values()), None)
