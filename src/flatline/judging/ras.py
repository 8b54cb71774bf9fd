"""
Whom NCCL's own status service shows to be behind, or dead.

It counts for each communicator the collectives that its ranks have launched.  Of a run at work
some are always ahead by one: who is behind is who is waited for only where the run is known to
stand still, or where two answers show the same counts.

Source: NVIDIA/nccl src/ras/client_support.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from flatline.facts import Facts
from flatline.judging.claims import claim, distinct, name_places
from flatline.model import Action, Claim, Finding, LogCite, Place

TAG = "ras"
MOST_LINES = 5_000
ALONE, MOST = 0.75, 0.79
"""Two answers may be taken within one long step; whom nobody reaches may only be cut off."""
FEW_RATIO = 0.25
"""Of the ranks (`waiting.FEW_RATIO`): with more, who holds whom is open."""
_OF = re.compile(r"^\s*#\d{1,6}-\d{1,6} \((?P<hash>[0-9a-f]{1,16})\) (?P<what>[A-Z]+)")
_TOTAL = re.compile(r"^ *\d{1,6} +[\d-]{1,9} +[\d-]{1,9} +\d{1,7} +(?P<gpus>\d{1,7})\s*$")
"""The row of the summary: nodes, processes of each, GPUs of each, processes and GPUs in all."""
_DEAD = re.compile(r"^\s*DEAD\s*$")
_HEADED = re.compile(r"^\S")
_COUNT = re.compile(
    r"^\s*(?P<ranks>\d{1,6}) ranks? ha(?:s|ve) launched up to operation (?P<op>\d+)"
)
_PROCESS = (
    r"GPU (?P<gpu>\d{1,3})[^\n]{0,40}? managed by process \d{1,10} on node (?P<node>\S{1,253})"
)
_ALONE = re.compile(
    rf"^\s*Rank (?P<rank>\d{{1,6}}) has launched up to operation (?P<op>\d+) -- {_PROCESS}"
)
_LISTED = re.compile(rf"^\s*Rank (?P<rank>\d{{1,6}}) -- {_PROCESS}")
_GONE = re.compile(
    r"^\s*Process \d{1,10} on node (?P<node>\S{1,253}) managing GPUs? (?P<gpu>\d{1,3})"
)


@dataclass(slots=True)
class _Group:
    """Ranks of a communicator that had launched as many, those of them that are listed by their
    number in it, and where all that stands."""

    ranks: int
    op: int
    listed: list[tuple[int, Place]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Answer:
    source: str
    gpus: int = 0
    """Of the whole job."""
    counts: dict[str, list[_Group]] = field(default_factory=dict)
    dead: list[tuple[int, Place]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Behind:
    """`stuck` says whether another answer shows the same counts."""

    places: tuple[Place, ...]
    why: Claim
    stuck: bool


def behind(facts: Facts) -> Behind | None:
    """The dead, else those behind in the largest communicator in which only few are."""
    return facts.memo("ras.behind", _behind)


def stuck(facts: Facts, code: str) -> Finding | None:
    """What two answers alone show: that nothing more was launched between them."""
    seen = behind(facts)
    if seen is None or not seen.stuck or facts.disposition == "completed":
        return None
    return Finding(
        code=code,
        summary=f"The others wait in a collective for {name_places(seen.places)}",
        fault_class="straggler-timeout",
        attribution="unknown",
        strength=ALONE,
        most=MOST,
        shows=(seen.why,),
        implies=(),
        culprits=seen.places,
        attempt=facts.last.n,
        cannot_decide=("Why that process did not come: its stack or its host's kernel log would"
                       " tell.",),
        actions=(Action("collect", "Dump the stack of that process while it hangs.",
                        command="py-spy dump --pid PID"),),
        resubmit="unknown",
    )  # fmt: skip


def _behind(facts: Facts) -> Behind | None:
    texts: dict[tuple[str, ...], str] = {}
    for match in facts.tagged(TAG):
        texts.setdefault(facts.lines(match.cite.source, 1, MOST_LINES), match.cite.source)
    # a file that was copied tells of no second look
    answers = [
        answer for text, source in texts.items() for answer in _answers(facts, source, text)
    ]
    if not answers:
        return None
    last = answers[-1]
    if last.dead:
        places = distinct(place for _, place in last.dead)
        text = f"NCCL's status service reached {name_places(places)} no more."
        cites = _cited(facts, last.source, [line for line, _ in last.dead[:4]])
        return Behind(places, claim(text, *cites), stuck=True)
    for key, groups in sorted(last.counts.items(), key=lambda one: -_size(one[1])):
        if (found := _late(facts, last, groups)) is not None:
            places, why = found
            same = any(_same(groups, one.counts.get(key, [])) for one in answers[:-1])
            return Behind(places, why, same)
    return None


def _late(
    facts: Facts, answer: _Answer, groups: Sequence[_Group]
) -> tuple[tuple[Place, ...], Claim] | None:
    most = max(group.op for group in groups)
    late = [group for group in groups if group.op < most]
    ranks = sum(group.ranks for group in late)
    listed = [one for group in late for one in group.listed]
    if not ranks or len(listed) < ranks or ranks > FEW_RATIO * _size(groups):
        return None
    whole = _size(groups) == (facts.world_size or answer.gpus)
    places = distinct(
        Place(host=place.host, gpu=place.gpu, rank=n if whole else None) for n, place in listed
    )
    text = (
        f"By NCCL's status {_size(groups) - ranks} ranks of a communicator had launched {most}"
        f" collectives, {name_places(places)} fewer."
    )
    lines = sorted(line for group in groups for line in group.lines)
    return places, claim(text, *_cited(facts, answer.source, lines[:6]))


def _size(groups: Sequence[_Group]) -> int:
    return sum(group.ranks for group in groups)


def _same(one: Sequence[_Group], other: Sequence[_Group]) -> bool:
    return bool(other) and {(g.op, g.ranks) for g in one} == {(g.op, g.ranks) for g in other}


def _cited(facts: Facts, source: str, lines: Sequence[int]) -> Iterator[LogCite]:
    return (LogCite(source, line, facts.text(source, line), Place()) for line in lines)


def _answers(facts: Facts, source: str, lines: Sequence[str]) -> list[_Answer]:
    """Each answer of a file begins with what version answers."""
    answers, groups, dead = [_Answer(source)], None, False
    for line, text in enumerate(lines, 1):
        if text.startswith("NCCL version ") and (answers[-1].counts or answers[-1].dead):
            answers.append(_Answer(source))
        if head := _OF.match(text):
            groups = answers[-1].counts.setdefault(head["hash"], []) if (
                head["what"] == "MISMATCH") else None  # fmt: skip
        elif total := _TOTAL.match(text):
            answers[-1].gpus = int(total["gpus"])
        elif _HEADED.match(text):
            dead, groups = _DEAD.match(text) is not None, None
        elif dead and (gone := _GONE.match(text)):
            answers[-1].dead.append((line, _place(facts, gone)))
        elif groups is not None:
            _counted(facts, groups, line, text)
    for answer in answers:
        answer.counts = {key: told for key, told in answer.counts.items() if told}
    return [answer for answer in answers if answer.counts or answer.dead]


def _counted(facts: Facts, groups: list[_Group], line: int, text: str) -> None:
    if found := _COUNT.match(text):
        groups.append(_Group(int(found["ranks"]), int(found["op"]), lines=[line]))
    elif found := _ALONE.match(text):
        told = (int(found["rank"]), _place(facts, found))
        groups.append(_Group(1, int(found["op"]), [told], [line]))
    elif groups and (found := _LISTED.match(text)):
        groups[-1].listed.append((int(found["rank"]), _place(facts, found)))
        groups[-1].lines.append(line)


def _place(facts: Facts, found: re.Match[str]) -> Place:
    return Place(host=facts.node_of(found["node"]), gpu=found["gpu"])
