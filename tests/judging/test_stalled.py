"""Whom Horovod's stall inspector lists as missing."""

from __future__ import annotations

import pytest

from flatline.facts import LOG, Facts, FileRead
from flatline.judging.stalled import REPORT, stalled
from flatline.model import LogCite, Match, Place, Signature

SUBMITTED = (
    "[0]<stderr>:[2026-03-02 04:12:57.345988: W horovod/common/stall_inspector.cc:107] One or more"
    " tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are"
    " waiting for remainder of ranks for more than 60 seconds."
)
STALL = Signature(REPORT, "x", "cascade", "", "", "", ("x",), family="C2", tags=("timeout",))


def listed(text: str, world: tuple[int, ...] = (0, 1, 2, 3)) -> tuple[tuple[int, ...], bool]:
    """The ranks the last report in a log lists, and whether they are the odd ones."""
    lines = text.split("\n")
    facts = Facts(
        targets=("run",),
        matches=tuple(
            Match(STALL, LogCite("job.log", n, line, Place(rank=0)), {})
            for n, line in enumerate(lines, 1)
            if "submitted to be reduced" in line
        ),
        files=[FileRead(f"rank{n}.log", LOG, 10, 100, Place(rank=n)) for n in world],
        read_line=lambda source, line: lines[line - 1] if 0 < line <= len(lines) else "",
    )
    found = stalled(facts, 0)
    if found is None:
        return (), False
    cites = [cite for cite in found.why.cites if isinstance(cite, LogCite)]
    assert all(cite.text == lines[cite.line - 1] for cite in cites)
    return tuple(place.rank for place in found.places if place.rank is not None), found.odd


@pytest.mark.parametrize("label", ["[0]<stderr>:", "[1,0]<stderr>:", "0: ", ""])
def test_a_line_a_rank(label: str) -> None:
    """Since 0.19, behind whatever a launcher puts before each line."""
    text = f"{SUBMITTED}\n{label}Missing ranks:\n{label}2!: [allreduce.fc.bias, allreduce.fc]"
    assert listed(text) == ((2,), True)


def test_a_line_a_tensor() -> None:
    """Up to 0.16: the first on the heading's line, each with its own ranks."""
    text = (
        f"{SUBMITTED}\n[0]<stderr>:Stalled ops:grads_1_0 [missing ranks: 1, 3]\n"
        "[0]<stderr>:[2026-03-02 04:12:57.346001: W horovod/common/operations.cc:588] grads_2_0"
        " [missing ranks: 3]"
    )
    assert listed(text) == ((1, 3), True)


def test_lines_of_others_stand_between() -> None:
    """Ranks share one stream."""
    text = (
        f"{SUBMITTED}\n[3]<stderr>:loss 2.1\nMissing ranks:\n[1]<stderr>:loss 2.1\n"
        "[0]<stderr>:0: [a.b]\n[0]<stderr>:1: [a.b]"
    )
    assert listed(text) == ((0, 1), True)


def test_the_last_report_counts() -> None:
    """What came after all is no longer listed."""
    report = f"{SUBMITTED}\nMissing ranks:\n{{}}: [a.b]"
    assert listed("\n".join(report.format(rank) for rank in (1, 2))) == ((2,), True)


def test_most_ranks_missing_single_out_nobody() -> None:
    """One that went ahead with another collective looks alike."""
    text = f"{SUBMITTED}\nMissing ranks:\n1: [x]\n2: [x]\n3: [x]"
    assert listed(text) == ((1, 2, 3), False)
    assert listed(text, world=(0,)) == ((1, 2, 3), False)


@pytest.mark.parametrize(
    "behind",
    ["", "Missing ranks:", "step 12: [====>   ] 40%", "epoch 3: [2.1]", "Missing ranks:\n3: []"],
)
def test_nothing_is_listed(behind: str) -> None:
    """A report cut off, or followed by a progress bar."""
    assert listed(f"{SUBMITTED}\n{behind}") == ((), False)
