"""
How a pod ended, where a person's shell shows that above the pod's own log: the lines stand in the
order of the commands, not in that of what they tell.
"""

from __future__ import annotations

import re

from flatline.facts import Facts
from flatline.model import Match

ORIGIN = "kubernetes"
ABOVE, BELOW = 80, 200
"""Lines of a description above the state of its container, and behind it (conditions, volumes,
events)."""
_KUBECTL = re.compile(r".{0,80}\b(?:kubectl|oc)\b(?P<said>.*)$")
_LOGS = re.compile(r"\slogs?\s(?!.*(?:\s-[fp]+\b|\s--(?:follow|previous)\b))")
"""Of the present container, as far as it had come."""
_OPTION = re.compile(r"\s--?[a-z-]+[ =]\S+")
_NAMED = re.compile(r"(?:^|\s)(?:pods?/)?([a-z0-9][a-z0-9.-]{0,252})(?=\s|$)")
_VERBS = {"logs", "log", "describe", "get", "pod", "pods", "po"}


def above_its_log(facts: Facts, match: Match) -> bool:
    """Whether the log of that very pod is shown below, and no step above."""
    if match.signature.origin != ORIGIN or match.signature.role != "root":
        return False
    source, line = match.cite.source, match.cite.line
    below = enumerate(facts.lines(source, line + 1, BELOW), line + 1)
    command = next(((n, found["said"]) for n, text in below if (found := _KUBECTL.match(text))),
                   None)  # fmt: skip
    if command is None or not _LOGS.search(command[1]):
        return False
    first = min((t.lines[i] for t in facts.tracks if t.source == source
                 for i in t.of_attempt(match.attempt)[:1]), default=0)  # fmt: skip
    start = max(1, line - ABOVE)
    above = facts.lines(source, start, line - start)
    told = [found["said"] for text in above if (found := _KUBECTL.match(text))][-1:]
    told += [text.partition(":")[2] for text in above if text.startswith("Name:")][-1:]
    own = {name for text in told for name in _names(text)}
    return first > command[0] and bool(own & _names(command[1]))


def _names(command: str) -> set[str]:
    """What a command is about, without its options and what they are given."""
    return set(_NAMED.findall(_OPTION.sub("", command.partition("|")[0]))) - _VERBS
