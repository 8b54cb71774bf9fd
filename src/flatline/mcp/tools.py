"""
The tools: each reads, none writes, and what they answer is typed and bounded.

A docstring is what a model is told of the tool.  An error of the caller's comes back as a result
that says what to do instead; a fault of Flatline's own says that it says nothing of the run.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ParamSpec

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent
from pydantic import Field

from flatline import reference
from flatline.errors import FlatlineError, ManyJobs, UsageError
from flatline.mcp import doubt, lines, numbers, pack, parts, words
from flatline.mcp.lines import TAIL
from flatline.mcp.runs import Held, Runs
from flatline.mcp.shapes import (
    ContextLine,
    Details,
    Diagnosis,
    Evidence,
    Exhibit,
    Explanation,
    Failure,
    Jobs,
    Matches,
    Numbers,
    Shape,
    Verified,
)
from flatline.model import LogCite
from flatline.redact import mask
from flatline.reference import incidents, page
from flatline.render.text import Look
from flatline.triage import Ask
from flatline.wording.untrusted import defanged

P = ParamSpec("P")
Handle = Annotated[str, Field(description="as diagnose gave it", max_length=64)]
Cursor = Annotated[str | None, Field(description="next_cursor, as given")]
LISTED, FAILURES, JOBS = 15, 10, 15
MOST_IDS, MOST_CONTEXT = 5, 10
LINE, EXPLAINED = 400, 6_000
"""Characters of a line in context, and of an explanation."""

_log = logging.getLogger("flatline.mcp")


def answering(tool: Callable[P, CallToolResult]) -> Callable[P, CallToolResult]:
    """Faults as a model can use them."""

    @functools.wraps(tool)
    def answered(*args: P.args, **kwargs: P.kwargs) -> CallToolResult:
        try:
            return tool(*args, **kwargs)
        except ManyJobs as fault:
            raise ToolError(_listed(fault)) from fault
        except (FlatlineError, OSError) as fault:
            raise ToolError(pack.safe(mask(str(fault)), 900)) from fault
        except Exception as fault:
            _log.exception("%s failed", tool.__name__)
            raise ToolError(
                f"Flatline itself failed ({type(fault).__name__}) and says nothing about the run."
                " Do not conclude anything from this; report it."
            ) from fault

    return answered


def _listed(fault: ManyJobs) -> str:
    rows = [", ".join(pack.safe(part, 60) for part in job) for job in fault.jobs[:LISTED]]
    left = len(fault.jobs) - LISTED
    more = [f"and {left} more; the tool jobs with this target as source pages them"]
    said = f"the target holds {len(fault.jobs)} jobs; call again with job=ID (id, name, state):"
    return "\n".join([said, *words.quoted(rows), *(more if left > 0 else [])])


def _result(shape: Shape, text: str) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=shape.plain()
    )


@dataclass(frozen=True)
class Tools:
    """What a model may call."""

    runs: Runs

    @answering
    def diagnose(
        self,
        target: Annotated[str, Field(description="folder, file or Slurm job id; or a handle")],
        job: Annotated[
            str | None, Field(description="which job, where the target holds several")
        ] = None,
        also: Annotated[
            list[str] | None,
            Field(description="further parts of the run: records, dmesg", max_length=8),
        ] = None,
        baseline: Annotated[str | None, Field(description="a sound run to compare with")] = None,
    ) -> Annotated[CallToolResult, Diagnosis]:
        """
        Why a GPU training run failed, hung, slowed down or learned nothing; call this first.

        One call is enough where it is sure: headline, code, blame, culprits, since, resubmit,
        what to do, the lines it rests on, what else it was told apart from, what stays open.
        Where it is not, the log's striking and last lines stand here too. `next` says whether to
        look once more. Report with evidence ids; what you read yourself is your reading. A
        launcher's "root cause" is only the first it noticed.
        """
        held = self.runs.diagnosed(target, also or (), job, baseline)
        log = doubt.looked(self.runs, held)
        rivals = doubt.rivals(held.verdict, held.ledger)
        made = pack.diagnosis(held, log, rivals, doubt.following(held, log))
        return _result(made, words.diagnosis(held, made))

    @answering
    def evidence(
        self,
        handle: Handle,
        ids: Annotated[
            list[str], Field(description="evidence ids, as e1", min_length=1, max_length=MOST_IDS)
        ],
        context: Annotated[int, Field(description="lines around", ge=0, le=MOST_CONTEXT)] = 3,
    ) -> Annotated[CallToolResult, Evidence]:
        """Pieces of evidence whole, with the lines around them: to quote or to look closer."""
        held = self.runs.held(handle)
        known = dict(held.ledger.items)
        unknown = [name for name in ids if name not in known]
        if unknown:
            raise UsageError(
                f"there is no evidence {', '.join(unknown)[:80]}; this run has e1 to e{len(known)}"
            )
        made = Evidence(handle=handle, pieces=[self._exhibit(held, name, context) for name in ids])
        return _result(made, words.evidence(made))

    def _exhibit(self, held: Held, name: str, context: int) -> Exhibit:
        cite = dict(held.ledger.items)[name]
        one = pack.piece(name, cite, held.ledger, (), LINE * 2)
        if not isinstance(cite, LogCite) or not context:
            return Exhibit(piece=one)
        first = max(cite.line - context, 1)
        lines = self.runs.lines(held, cite.source, first, cite.line + context - first + 1)
        return Exhibit(
            piece=one,
            context=[
                ContextLine(
                    line=number,
                    cited=number == cite.line,
                    text=pack.quote(line, (), LINE),
                )
                for number, line in enumerate(lines, first)
            ],
        )

    @answering
    def details(
        self, handle: Handle, part: parts.Part, cursor: Cursor = None
    ) -> Annotated[CallToolResult, Details]:
        """What diagnose only counts, in short pages: all findings, families ruled out and why,
        those undecided and what would decide them, gaps, attempts, evidence."""
        made = parts.details(self.runs.held(handle), part, cursor)
        return _result(made, words.details(made))

    @answering
    def search_log(
        self,
        handle: Handle,
        pattern: Annotated[
            str | None,
            Field(description="regular expression, any case; no look-around",
                  max_length=200),
        ] = None,
        source: Annotated[str | None, Field(description="only this log")] = None,
        tail: Annotated[
            int | None, Field(description="the last so many", ge=1, le=TAIL)
        ] = None,
        cursor: Cursor = None,
    ) -> Annotated[CallToolResult, Matches]:  # fmt: skip
        """Lines of the run's logs that match, and how many do; with `tail` the last ones, without
        a pattern the log's last lines. One call is enough. No match proves nothing of logs that
        were not read."""
        held = self.runs.held(handle)
        made = lines.answer(self.runs, held, pattern, source, tail, cursor)
        return _result(made, words.matches(made))

    @answering
    def query(
        self,
        handle: Handle,
        promql: Annotated[
            str, Field(description="canonical signals or the exporters' names", max_length=2000)
        ],
        time: Annotated[str | None, Field(description="at one time, ISO 8601")] = None,
        start: Annotated[str | None, Field(description="over a range")] = None,
        end: Annotated[str | None, Field(description="likewise")] = None,
        everything: Annotated[bool, Field(description="other jobs' too")] = False,
    ) -> Annotated[CallToolResult, Numbers]:
        """PromQL over the run's metrics, of its own hosts and time where records tell them: ends,
        extremes, means of eighths of the time of the twelve extreme series, so aggregate. To look
        closer at what a verdict leaves open; what you read is your own."""
        held = self.runs.held(handle)
        own = None if everything else self.runs.own(held)
        asked = self.runs.asked(numbers.question(promql, held.paths, time, start, end, own))
        made = numbers.answer(handle, asked)
        return _result(made, words.numbers(made))

    @answering
    def explain(
        self,
        what: Annotated[
            str,
            Field(
                description="family code or name, signature or incident id, or a log line",
                max_length=4000,
            ),
        ],
    ) -> Annotated[CallToolResult, Explanation]:
        """What a failure family, an error signature, a recorded incident or one log line means,
        what it does not prove, what to do; of a line also incidents like it. One line is no run:
        diagnose the run where there is one."""
        look = Look(width=100)
        known = incidents.lookup(what)
        family, signature = reference.family_named(what), reference.signature_named(what)
        if family is not None:
            kind, name, said = (
                "family",
                f"{family.code} {family.name}",
                page.family_prose(family, look),
            )
        elif signature is not None:
            kind, name, said = "signature", signature.id, page.signature(signature, look)
        elif known is not None:
            kind, name, said = "incident", known.id, incidents.record_here(known, look.width)
        elif reference.looks_like_a_line(what):
            kind, name, said = (
                "line",
                "the line",
                page.line(reference.line_entry(mask(what)), look)
                + incidents.beside_line(mask(what), look.width),
            )
        else:
            raise reference.unknown(what)
        text = "\n".join(defanged(line) for line in said[:EXPLAINED].splitlines())
        return _result(Explanation(kind=kind, name=name, text=text), text)

    @answering
    def jobs(
        self,
        source: Annotated[
            str | None, Field(description="a file or folder of sacct's; without it Slurm is asked")
        ] = None,
        since: Annotated[str | None, Field(description="24h, 7d or ISO 8601")] = None,
        until: Annotated[str | None, Field(description="likewise")] = None,
        everyone: Annotated[bool, Field(description="all users' jobs")] = False,
        cursor: Cursor = None,
    ) -> Annotated[CallToolResult, Jobs]:
        """Every job that ended in a window, a verdict each, and what their failures share (a node,
        a switch, a file system) with its controls. For one job use diagnose."""
        if cursor is None:
            sources = self.runs.roots.paths((source,)) if source else ()
            ask = Ask(sources=sources, since=since, until=until, everyone=everyone)
            name, listing = self.runs.listed(ask)
            start = 0
        else:
            name, _, at = cursor.rpartition(":")
            listing, start = self.runs.listing(name), parts.offset(at)
        made = parts.jobs(listing, start, JOBS, f"{name}:{start + JOBS}")
        return _result(made, words.jobs(made))

    @answering
    def verify(self, handle: Handle) -> Annotated[CallToolResult, Verified]:
        """Reads, runs and computes every citation again: before the verdict is acted upon."""
        held = self.runs.held(handle)
        checks = self.runs.checked(held)
        failed = [check for check in checks if not check.ok]
        made = Verified(
            handle=handle,
            holds=not failed,
            checked=len(checks),
            failed=len(failed),
            failures=[
                Failure(id=pack.safe(check.evidence, 40), said=pack.safe(check.said))
                for check in failed[:FAILURES]
            ],
        )
        return _result(made, words.verified(made))

    def every(self) -> list[tuple[str, str, Callable[..., CallToolResult]]]:
        """(title, description, tool), in the order they are listed."""
        titles: dict[str, Callable[..., CallToolResult]] = {
            "Diagnose a run": self.diagnose,
            "Show evidence in context": self.evidence,
            "Page through parts of a verdict": self.details,
            "Search the run's logs": self.search_log,
            "Query the run's metrics": self.query,
            "Explain a family, signature or log line": self.explain,
            "List jobs with a verdict each": self.jobs,
            "Check every citation again": self.verify,
        }
        return [(title, inspect.getdoc(tool) or "", tool) for title, tool in titles.items()]
