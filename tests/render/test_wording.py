"""Ranges, instants and numbers as people read them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from flatline.model import Place
from flatline.wording.columns import excerpt, words_of
from flatline.wording.places import fold_hosts, fold_numbers, fold_places
from flatline.wording.rows import confidence_text, duration, moment, rows, value_text
from flatline.wording.untrusted import neutral, sentence
from render import verdicts


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["node07"], "node07"),
        (["node01", "node02", "node03", "node07"], "node[01-03,07]"),
        (["n9", "n10", "n11"], "n[9-11]"),
        (["n09", "n10"], "n[09-10]"),
        (["a1.x.org", "a2.x.org"], "a[1-2].x.org"),
        (["10.0.0.5", "10.0.0.6"], "10.0.0.[5-6]"),
        (["login", "login", "gpu1"], "login,gpu1"),
        (["node1-ib0", "node2-ib0"], "node1-ib0,node2-ib0"),
        ([], ""),
    ],
)
def test_hosts_fold_as_slurm_lists_them(names: list[str], folded: str) -> None:
    """What is folded can be pasted behind --exclude."""
    assert fold_hosts(names) == folded


def test_a_fold_of_hosts_unfolds_to_the_same_hosts() -> None:
    """Slurm's own reading of the list gives the names back."""
    hostlist = pytest.importorskip("flatline.logs.hostlists")
    names = [f"gpu{n:03d}" for n in (1, 2, 3, 9, 10, 99, 100, 101)] + ["login"]
    assert sorted(hostlist.expand(fold_hosts(names))) == sorted(names)


def test_numbers_beyond_the_limit_are_counted() -> None:
    """A scattered set says how much is missing."""
    assert fold_numbers(range(0, 100, 2), limit=3) == "0,2,4 and 47 more"


def test_places_of_one_host_are_said_together() -> None:
    """Rank and GPU numbers of a host are ranges."""
    places = [Place(host="n1", gpu=str(n), rank=n) for n in range(8)]
    assert fold_places(places) == "ranks 0-7 GPUs 0-7 on n1"


def test_order_of_hosts_is_the_order_of_severity() -> None:
    """The worst place is named first, whatever its name."""
    assert fold_places([Place(host="z"), Place(host="a")]) == "z; a"


def test_gpus_that_are_no_numbers_are_listed() -> None:
    """A UUID is not made into a range."""
    places = [Place(gpu="GPU-aa"), Place(gpu="GPU-bb")]
    assert fold_places(places) == "GPUs GPU-aa, GPU-bb"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (59, "59 s"), (60, "1 min"), (3661, "1 h 1 min"), (90_000, "1 d 1 h")],
)
def test_durations_have_two_units_at_most(seconds: float, said: str) -> None:
    """Nobody needs the seconds of a day."""
    assert duration(seconds) == said


def test_the_date_is_left_out_on_the_same_day_only() -> None:
    """A time alone is never of another day."""
    at = datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC)
    assert moment(at, at) == "23:59:59Z"
    assert moment(at, at.replace(day=2)) == "2026-03-01 23:59:59Z"


@pytest.mark.parametrize(
    ("value", "said"),
    [(float("nan"), "NaN"), (float("inf"), "inf"), (0.123456, "0.1235"), (True, "true")],
)
def test_values_are_said_plainly(value: float, said: str) -> None:
    """NaN and infinity have names."""
    assert value_text(value) == said


def test_confidence_is_cut_not_rounded() -> None:
    """0.29 stays 0.29, 0.7999 becomes 0.79."""
    assert [confidence_text(c) for c in (0.29, 0.7999, 0.8, 1.0)] == [
        "0.29",
        "0.79",
        "0.80",
        "1.00",
    ]


def test_what_steers_is_spelled_out() -> None:
    """Escapes, directions and tags are visible, ordinary text of any language is not touched."""
    assert neutral("\x1b[1m\u202e\U000e0041\u2069") == "\\x1b[1m\\u202e\\U000e0041\\u2069"
    assert neutral("Größe 節点 ✗ é") == "Größe 節点 ✗ é"
    assert sentence(" a\r\n\u2028b\t c ") == "a b c"


def test_what_is_not_known_has_no_row() -> None:
    """An undetermined verdict blames nobody and names no family."""
    labels = [label for label, _ in rows(verdicts.undetermined())]
    assert labels == ["resubmit", "run"]


def test_a_fault_every_place_shares_blames_no_place() -> None:
    """Scope says so in words."""
    said = dict(rows(replace(verdicts.found(), scope="all", culprits=())))
    assert said["where"] == "every place alike"


def test_what_places_share_is_named() -> None:
    """A domain stands before the places in it."""
    verdict = replace(verdicts.found(), scope="shared", domain="leaf switch 12")
    assert dict(rows(verdict))["where"].startswith("shared by many: leaf switch 12 (rank 59")


def test_a_run_still_going_says_when_it_was_last_heard_of() -> None:
    """Now is the latest time a source vouches for."""
    run = replace(verdicts.RUN, disposition="running", ended_at=None)
    said = dict(rows(replace(verdicts.found(), run=run)))
    assert said["ran"].startswith("since 2026-03-01 01:10:02Z, last heard of 04:43:11Z")


def test_a_cut_line_keeps_what_failed_before_the_word_that_says_so() -> None:
    """Where the telling word is the last one the rest of the room goes to what stands before."""
    line = (
        "/opt/pytorch/aten/src/THCUNN/ClassNLLCriterion.cu:108: "
        "cunn_ClassNLLCriterion_updateOutput_kernel: block: [0,0,0], thread: [6,0,0] "
        "Assertion t >= 0 && t < n_classes failed."
    )
    shown = excerpt(line, 100, words_of(["A bounds check failed"]), "…")

    assert shown.startswith("…")
    assert shown.endswith("thread: [6,0,0] Assertion t >= 0 && t < n_classes failed.")
    assert 70 < len(shown) <= 100
    assert excerpt(line, len(line) - 3, frozenset(), "…").endswith(" failed.")
    assert excerpt(f"{'x' * 300} failed", 40, frozenset(), "…") == "…" + "x" * 31 + " failed"
