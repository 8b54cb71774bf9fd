"""A name that a header must hold tells most logs from records: sooner, never otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flatline.collect import files, text_kinds
from flatline.errors import FormatError
from flatline.parsers import (
    _rows,
    kubectl_pods,
    record_formats,
    sacct_parsable,
    sacctmgr_events,
    scontrol,
    sinfo_text,
)

TESTS = Path(__file__).parents[1]
HELD = sorted(
    path
    for folder in ("fixtures", "scenarios")
    for path in (TESTS / folder).rglob("*")
    if path.is_file()
)
PODS = b"NAME     READY   STATUS    NODE\nrun-0    1/1     Running   worker-3\n"
GATED = (kubectl_pods, sacct_parsable, sacctmgr_events, sinfo_text)
DAMAGED: tuple[Callable[[bytes], bytes], ...] = (
    lambda head: head,
    lambda head: head.replace(b"\n", b"\r\n"),
    lambda head: b"\xef\xbb\xbf" + head,
    lambda head: b"one\n" * 39 + head,
    lambda head: b"one\n" * 40 + head,
    lambda head: head.lower(),
    lambda head: head[:700],
)
PIECES = st.sampled_from(
    [
        b"JobID|State",
        b"NODELIST",
        b"\r",
        b"\n",
        b"\n" * 19,
        b"\0",
        b"\xe2\x82",
        b"\xef\xbb\xbf",
        b"x ",
    ]
)


def heads() -> list[bytes]:
    return [PODS, *(path.read_bytes()[: files.HEAD_BYTES] for path in HELD)]


def test_records_are_recognised_as_where_each_line_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = [change(head) for head in heads() for change in DAMAGED]
    asked = [*GATED, scontrol]
    soon = [[one.recognise("x", head) for one in asked] for head in held]
    for one in GATED:
        monkeypatch.setattr(one, "mentions", lambda *_: True)
    assert [[one.recognise("x", head) for one in asked] for head in held] == soon
    assert all(map(any, zip(*soon, strict=True)))
    assert set(asked) <= set(record_formats())


@given(st.lists(PIECES, max_size=60).map(b"".join))
def test_the_first_lines_are_those_of_the_whole(head: bytes) -> None:
    try:
        whole = tuple(_rows.decoded(head).split("\n", _rows.HEAD_LINES)[: _rows.HEAD_LINES])
    except FormatError:
        whole = ()
    assert _rows.beginning(head) == whole


def test_what_may_be_no_log_is_looked_at() -> None:
    """What the patterns of kernels and daemons find has what they are asked by."""
    for head in heads():
        ends = b"\n%b\n%b" % (head[: text_kinds.ENDS_BYTES], head[-text_kinds.ENDS_BYTES :])
        if text_kinds._TELLING.search(ends):
            assert b"kernel: " in ends or text_kinds._MAY_TELL.search(ends)
