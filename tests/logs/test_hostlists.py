"""Slurm's host lists, written out."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flatline.errors import FormatError
from flatline.logs.hostlists import LIMIT, expand

MLPERF = Path(__file__).parents[3] / "shared/realdata/mlperf"


@pytest.mark.parametrize(
    "text, hosts",
    [
        ("n1", ("n1",)),
        ("n[1-4,7]", ("n1", "n2", "n3", "n4", "n7")),
        ("gpu[01-02,04]", ("gpu01", "gpu02", "gpu04")),
        ("n[08-11]", ("n08", "n09", "n10", "n11")),
        ("n[8-11]", ("n8", "n9", "n10", "n11")),
        ("rack[1-2]n[01-02]", ("rack1n01", "rack1n02", "rack2n01", "rack2n02")),
        ("a,b[1-2]-ib0, c", ("a", "b1-ib0", "b2-ib0", "c")),
        ("login-1.site.org", ("login-1.site.org",)),
        ("n[1-2],,n3,", ("n1", "n2", "n3")),
        ("None assigned", ()),
        ("(null)", ()),
        ("", ()),
    ],
)
def test_lists_are_written_out_in_their_order(text: str, hosts: tuple[str, ...]) -> None:
    """Padding, several brackets, suffixes and Slurm's words for none are read as Slurm means."""
    assert expand(text) == hosts


@pytest.mark.parametrize(
    "text",
    [
        "n[1-999999999]",
        "n[1-999999999999999999999]",
        "n[1-300]x[1-300]",
        "n[1-60000],m[1-60000]",
        "n[1-2",
        "n1-2]",
        "n[[1-2]]",
        "n[a-b]",
        "n[4-1]",
        "n[]",
        "n[1--2]",
    ],
)
def test_hostile_and_broken_lists_are_refused(text: str) -> None:
    """More hosts than any cluster has, or brackets that do not close, are a FormatError."""
    with pytest.raises(FormatError, match="host list"):
        expand(text)


@given(st.text("n01[]-, ", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text raises anything but FormatError, and no answer is larger than the limit."""
    with suppress(FormatError):
        assert len(expand(text)) <= LIMIT


@given(st.integers(0, 5000), st.integers(0, 300), st.integers(1, 5))
def test_a_range_names_every_number_once(low: int, more: int, width: int) -> None:
    """A padded range names as many hosts as it spans, each as wide as the padding asks."""
    hosts = expand(f"n[{low:0{width}d}-{low + more}]")
    assert [int(host[1:]) for host in hosts] == list(range(low, low + more + 1))


@pytest.mark.skipif(not MLPERF.exists(), reason="the recorded MLPerf logs are not here")
def test_node_counts_of_recorded_launches() -> None:
    """The launch lines of MLPerf logs state the node count beside the list."""
    seen = 0
    for path in MLPERF.rglob("*.[tl][xo][tg]"):
        for found in re.finditer(
            r":::DLPAL \S+ \d+ (\d+) (\S+)", path.read_text(errors="replace")
        ):
            assert len(expand(found[2])) == int(found[1])
            seen += 1
    assert seen > 5
