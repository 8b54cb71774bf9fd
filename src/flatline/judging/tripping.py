"""An exception that a handler tripped over: it names what the code that failed was to bind."""

from __future__ import annotations

import re
from dataclasses import replace

from flatline.facts import Facts
from flatline.judging.frames import above
from flatline.judging.wrappers import is_wrapper
from flatline.model import Crash

_UNBOUND = re.compile(r"(?:^|\.)(?:NameError|UnboundLocalError)$")
_LOOKED = re.compile(
    r"(?:Key|Index|Lookup|Attribute|Import|ModuleNotFound|FileNotFound|Name)Error$"
    r"|(?:^|\.)(?:Empty|StopIteration)$"
)
"""What a program catches to go another way: there the handler is at fault."""
_COMPARED = 60


def tripped_over(facts: Facts, crash: Crash) -> Crash:
    """The exception that was being handled, where the handler met only a name that this one had
    kept from being bound; else the one given."""
    if not crash.chain or not _UNBOUND.search(crash.exception):
        return crash
    kind, said, how = crash.chain[-1]
    ended = is_wrapper(replace(crash, exception=kind, message=said))
    if how != "context" or ended or _LOOKED.search(kind):
        return crash
    head = crash.head.line
    lines = facts.lines(crash.head.source, head, crash.cite.line - head)
    named = (f"{kind}: {said}" if said else kind).split("\n")[0][:_COMPARED]
    at = next((n for n, text in enumerate(lines) if named in text), None)
    if at is None:
        return crash
    label = lines[at].partition(named)[0]
    return replace(
        crash,
        exception=kind,
        message=said,
        frames=above([text.removeprefix(label) for text in lines[:at]]),
        cite=replace(crash.cite, line=head + at, text=facts.text(crash.head.source, head + at)),
        chain=crash.chain[:-1],
        end_line=head + at + said.count("\n"),
    )
