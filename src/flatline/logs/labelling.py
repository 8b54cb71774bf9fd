"""
Whether a file is labelled, and how: the labels that one line alone does not give away.

`3: ` before a line is srun's task number, or the third item of a list; `worker-1: ` a host, or a
heading.  What tells is the file: a label stands before most lines, or before many in a row, its
values come back, and srun's all have one width.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

SHARE = 0.5
"""Of the sampled lines that are not empty."""
NEARLY_ALL = 0.9
RUN_LINES = 20
"""Or so many in a row: a labelled step within an unlabelled script."""
FEWEST = 3
WIDTH_SHARE = 0.02
NO_LABEL = ""
"""Stands for a line that none of these patterns matches."""
IN_ORDER = 0.95
"""A table counts its rows; the output of several processes interleaves."""

TASK = re.compile(r"(?:P(\d{1,4}) )?( {0,6}\d{1,6}):(?: |$)")
"""srun --label: `"%*d: "`, blank-padded to the digits of the highest task (zero-padded by older
versions), with `P<offset> ` for a component of a heterogeneous job
(Slurm, `src/common/write_labelled_message.c`)."""
HOST = re.compile(r"([A-Za-z][A-Za-z0-9.-]{0,62}|\d{1,3}(?:\.\d{1,3}){3}):(?: |$)")
"""A name or, as pdsh prints it of a hostfile of addresses, an IPv4 address."""
STAMP = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)"
    r"(?: (std(?:out|err) [FP])(?= |$))?(?: |$)"
)
"""`docker logs --timestamps`, `kubectl logs --timestamps`, and the files of container engines."""
BOXED = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?\](?: |$)")
"""As schedulers of a site and `ts '[%F %T]'` put it before each line; many programs date their own
lines so, but no frames."""
_FRAME = re.compile(STAMP.pattern + r"\s{1,8}File \"")
_BOXED_FRAME = re.compile(BOXED.pattern + r"\s{1,8}File \"")
_ROLE = re.compile(r"\[([A-Za-z_]{1,24})(\d{1,6})\]:")
_BARE = re.compile(r"\[(\d{1,6})\](?: |$)")
_DIGITS = re.compile(r"\d+")
_PADDED = re.compile(r"[Gg][Pp][Uu]-?0\d{1,4}")
"""`gpu0: ` is a device; a cluster that calls its machines so pads their numbers."""
_RAISED = re.compile(r"(?:[a-z]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Timeout)")
"""`torch.distributed.DistStoreError: ` stands at the start of a line as well."""
_WORDS = frozenset(
    (
        "batch",
        "class",
        "cuda",
        "debug",
        "dev",
        "device",
        "ep",
        "epoch",
        "error",
        "eval",
        "expert",
        "fatal",
        "file",
        "fold",
        "gpu",
        "group",
        "head",
        "hint",
        "http",
        "https",
        "info",
        "iter",
        "iteration",
        "layer",
        "loss",
        "note",
        "notice",
        "param",
        "progress",
        "python",
        "sh",
        "srun",
        "slurmstepd",
        "stage",
        "step",
        "sudo",
        "test",
        "top",
        "torchrun",
        "trace",
        "train",
        "training",
        "traceback",
        "trial",
        "usage",
        "val",
        "validation",
        "warn",
        "warning",
    )
)

COUNTED = 8
"""Rises: of a few ranks, each heard of once, the numbers may rise so as well."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """
    The labels a file uses: widths of srun's label without `: `, host names and their shapes,
    torchrun's role names, ranks in bare brackets, time stamps of a collector, `boxed` or not.
    """

    widths: frozenset[int] = frozenset()
    hosts: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset({"default"})
    bare: bool = False
    stamps: bool = False
    boxed: bool = False


def shape(name: str) -> str:
    """A host name with its numbers taken out: names of one cluster share it."""
    return _DIGITS.sub("#", name)


def learn(lines: Sequence[str], known: Kinds) -> Kinds:
    """`known` and what else these lines are labelled with."""
    if sum(map(bool, lines)) < FEWEST:
        return known
    stamped = sum(1 for match in _matches(STAMP, lines) if match)
    return replace(
        known,
        widths=known.widths | _widths(lines),
        hosts=known.hosts | _hosts(lines),
        roles=known.roles | _roles(lines),
        bare=known.bare or _bare(lines),
        stamps=known.stamps or stamped >= NEARLY_ALL * len(lines) or _in_traces(_FRAME, lines),
        boxed=known.boxed or _in_traces(_BOXED_FRAME, lines),
    )


def _in_traces(frame: re.Pattern[str], lines: Sequence[str]) -> bool:
    """Whether frames are stamped one by one: no program does, so a collector stamped these lines,
    whatever else was pasted beside them."""
    return sum(map(bool, _matches(frame, lines))) > 1


def _matches(pattern: re.Pattern[str], lines: Sequence[str]) -> list[re.Match[str] | None]:
    return [pattern.match(line) if line else None for line in lines]


def _widths(lines: Sequence[str]) -> frozenset[int]:
    found = _matches(TASK, lines)
    if not _labels([match and match[0] for match in found]):
        return frozenset()
    counts = Counter(len(match[2]) for match in found if match)
    fewest = max(2, WIDTH_SHARE * sum(counts.values()))
    common = counts.most_common(1)[0][0]
    return frozenset(width for width, n in counts.items() if n >= fewest or width == common)


def _bare(lines: Sequence[str]) -> bool:
    found = [match and match[0] for match in _matches(_BARE, lines)]
    return _labels(found) and not _counts_on([int(re.sub(r"\D", "", one)) for one in found if one])


def _counts_on(numbers: Sequence[int]) -> bool:
    """Whether they only rise, never by one: steps of which not all are printed."""
    rises = [b - a for a, b in pairwise(numbers) if b != a]
    return len(rises) >= COUNTED and min(rises) > 1


def _roles(lines: Sequence[str]) -> frozenset[str]:
    found = _matches(_ROLE, lines)
    names = {match[1] for match in found if match} - {"rank"}
    return frozenset(
        name
        for name in names
        if name.lower() not in _WORDS
        and _labels([match[2] if match and match[1] == name else None for match in found])
    )


def _hosts(lines: Sequence[str]) -> frozenset[str]:
    """Names that come back and look like machines; with a number, their shape stands for all."""
    found = _matches(HOST, lines)
    counts = Counter(match[1] for match in found if match)
    names = {name for name, n in counts.items() if n >= FEWEST and _machine(name)}
    if not _labels([match[1] if match and match[1] in names else None for match in found]):
        return frozenset()
    return frozenset(names | {shape(name) for name in names if "#" in shape(name)})


def _machine(name: str) -> bool:
    word = _DIGITS.split(name.lower())[0].strip("-.")
    if _PADDED.fullmatch(name):
        return True
    if word in _WORDS or _RAISED.fullmatch(name):
        return False
    return name == "localhost" or bool(re.search(r"[\d.-]", name))


def _labels(values: Sequence[str | None]) -> bool:
    """Whether these are labels, line by line: None stands for a line without one."""
    said = [value for value in values if value is not None]
    if len(said) < FEWEST:
        return False
    share, distinct = len(said) / len(values), len(set(said))
    if share < SHARE and _longest_run(values) < RUN_LINES:
        return False
    if len(said) < 2 * distinct:  # each hardly more than once: a list, or a very short log
        return share >= NEARLY_ALL and _in_order(said) < 1
    return share >= NEARLY_ALL or distinct < 3 or _in_order(said) < IN_ORDER


def _longest_run(values: Sequence[str | None]) -> int:
    longest = run = 0
    for value in values:
        run = run + 1 if value is not None else 0
        longest = max(longest, run)
    return longest


def _in_order(said: Sequence[str]) -> float:
    """The share of values that follow the one before by exactly one, or start again."""
    numbers = [int(digits[-1]) for value in said if (digits := _DIGITS.findall(value))]
    if len(numbers) < 2:
        return 0.0
    least = min(numbers)
    steps = pairwise(numbers)
    return sum(b == a + 1 or (b == least and b < a) for a, b in steps) / (len(numbers) - 1)
