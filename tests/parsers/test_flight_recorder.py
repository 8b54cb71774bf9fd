"""Flight-recorder dumps: pickles that can hold nothing but data, and what they say."""

from __future__ import annotations

import json
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flatline.errors import FormatError
from flatline.judging.recorder_cites import values
from flatline.parsers._pickle import read_pickle
from flatline.parsers.flight_recorder import (
    parse_dump,
    rank_of_name,
    recognise_dump,
    resolve_dump,
)
from recorded import counters, entry, left, raw

HELD = raw(left(51), entry(52), status={"0": counters(52, 51)})
PLAIN = {"a": [1, -2, 2**40, 2.5, None, True, False], "b": ("x", "é", b"y"), "c": {"d": [[], {}]}}


class Hostile:
    """Runs a command where something unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, ("echo pwned",))


@pytest.mark.parametrize("protocol", range(6))
def test_plain_data_is_read_in_every_protocol(protocol: int) -> None:
    """Containers and scalars come out as they went in."""
    data = {key: value for key, value in PLAIN.items() if protocol > 2 or key != "b"}

    assert read_pickle(pickle.dumps(data, protocol=protocol)) == data


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("value", [Hostile(), os.getcwd, Path("x"), 1 + 2j, {1, 2}, bytearray(3)])
def test_anything_but_data_is_refused(value: object, protocol: int) -> None:
    """A name, a call or an object is an instruction the reader does not have."""
    with pytest.raises(FormatError, match="pickle"):
        read_pickle(pickle.dumps({"entries": value}, protocol=protocol))


def test_deep_nesting_is_refused() -> None:
    """A dump nests eight levels; a thousand are an attack on whoever walks it."""
    with pytest.raises(FormatError, match="nests deeper"):
        read_pickle(b"\x80\x02" + b"]" * 1000 + b"a" * 999 + b".")


def test_a_list_in_itself_does_not_keep_the_reader() -> None:
    """`x = []; x.append(x)` is legal pickle and is walked once."""
    read_pickle(b"\x80\x02]q\x00h\x00a.")


def test_a_number_that_is_none_is_not_quoted() -> None:
    """What stands in its place may be anything, and where the next text begins is not known."""
    with pytest.raises(FormatError, match="at byte") as caught:
        read_pickle(b"(lp0\nI20\x0bVhunter2\na.")
    assert "hunter2" not in str(caught.value)


def test_a_huge_memo_index_costs_nothing() -> None:
    """The memo is a table of what was put, not an array up to the index."""
    data = b"\x80\x02K\x05r" + struct.pack("<I", 2**32 - 1) + b"."

    assert read_pickle(data) == 5


def test_a_key_of_shared_tuples_is_refused() -> None:
    """Sixty doublings would be hashed 2**60 times."""
    doubled = b"".join(b"2\x86" for _ in range(60))

    with pytest.raises(FormatError, match="key"):
        read_pickle(b"\x80\x02}K\x01" + doubled + b"K\x00s.")


@pytest.mark.parametrize(
    "data", [b"X\xff\xff\xff\x7fab.", b"\x8e" + b"\xff" * 8 + b".", b"\x8b\xff\xff\xff\x7f.", b"(",
             b"I" + b"9" * 100_000 + b"\n.", b"", b"t.", b"h\x00.", b"\x80\x09.", b"Iabc\n."],
)  # fmt: skip
def test_lengths_are_not_believed(data: bytes) -> None:
    """A length beyond the file, an endless number, an empty stack: a clear refusal."""
    with pytest.raises(FormatError):
        read_pickle(data)


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_no_bytes_bring_a_traceback(noise: bytes) -> None:
    """Whatever follows a true beginning is data, or a FormatError."""
    for data in (noise, pickle.dumps(HELD, protocol=2)[:40] + noise, b'{"entries":' + noise):
        try:
            parse_dump(data, "_dump_0")
        except FormatError:
            continue


def test_a_dump_is_recognised_by_its_beginning() -> None:
    """As pickle and as JSON, under any name; other pickles and JSON are not dumps."""
    assert recognise_dump("x", pickle.dumps(HELD, protocol=2))
    assert recognise_dump("x", pickle.dumps(HELD, protocol=4))
    assert recognise_dump("x.json", json.dumps(HELD, sort_keys=True).encode())
    assert not recognise_dump("_dump_1", pickle.dumps(PLAIN))
    assert not recognise_dump("_dump_1", b'{"loss": 1.0, "entries": []}')
    assert not recognise_dump("_dump_1", b"the pg_status of rank 3\n")


@pytest.mark.parametrize(
    ("name", "rank"),
    [("_dump_12", 12), ("a/nccl_trace_rank_3", 3), ("fr_rank2.pkl", 2), ("fr_json.rank0", 0),
     ("comm_traces/rank_7", 7), ("trace_rank_3_node12", 3), ("5", 5), ("node12", None),
     ("dump_20260101", None), ("dump", None), ("rank_3/dump", None)],
)  # fmt: skip
def test_the_rank_stands_in_the_name(name: str, rank: int | None) -> None:
    """Behind the word or at the end; a host's number or a date is no rank."""
    assert rank_of_name(name) == rank


@pytest.mark.parametrize("as_json", [False, True])
def test_a_dump_says_how_far_its_process_came(as_json: bool) -> None:
    """Counters may be strings, ranks a string of a list; the operation loses its prefix."""
    held = raw(left(51), entry(52), status={"0": counters(52, 51)})
    held["pg_status"]["0"] = {k: str(v) for k, v in held["pg_status"]["0"].items()}
    data = json.dumps(held).encode() if as_json else pickle.dumps(held, protocol=2)

    dump = parse_dump(data, "_dump_3")

    (group,) = dump.groups
    assert (dump.rank, dump.version, dump.recorded, dump.pending) == (3, "2.10", 2, 1)
    assert (group.name, group.desc, group.ranks) == ("0", "default_pg", (0, 1, 2, 3))
    assert (group.last_enqueued, group.last_completed) == (52, 51)
    assert [(e.seq, e.op, e.pending) for e in dump.entries] == [
        (51, "all_reduce", False),
        (52, "all_reduce", True),
    ]


def test_unknown_keys_and_a_renamed_version_change_nothing() -> None:
    """A minor version adds keys; `nccl_version` was renamed."""
    held = {**HELD, "nccl_version": "2.19", "future": {"x": [1]}}
    del held["comm_lib_version"]
    held["entries"] = [{**each, "new": 1} for each in held["entries"]]

    assert parse_dump(pickle.dumps(held), "_dump_0") == parse_dump(pickle.dumps(HELD), "_dump_0")


def test_local_numbers_are_mapped_by_entries_and_by_order() -> None:
    """Group 35 is number 5 here; what no entry names is paired only where order agrees."""
    config = {"0": ("default_pg", (0, 1)), "35": ("TP", (0, 1)), "7": ("DP", (0,))}
    status = {"0": counters(9, 9), "5": counters(4, 3), "2": counters(6, 6)}
    named = entry(4, pg_id=5, process_group=("35", "TP"))

    dump = parse_dump(pickle.dumps(raw(named, status=status, config=config)), "_dump_0")
    crossed = entry(4, pg_id=2, process_group=("35", "TP"))
    other = parse_dump(pickle.dumps(raw(crossed, status=status, config=config)), "_dump_0")

    assert [(g.pg_id, g.name) for g in dump.groups] == [(0, "0"), (2, "7"), (5, "35")]
    assert [(g.pg_id, g.name) for g in other.groups] == [(0, ""), (2, "35"), (5, "")]


def test_gloo_shows_completion_by_retiring() -> None:
    """Its state stays "scheduled"; an NCCL operation retired past its counter timed out."""
    gloo = raw(entry(5, "gloo:all_reduce", retired=True), status={"0": counters(5, 4)})
    nccl = raw(entry(5, retired=True), status={"0": counters(5, 4)})

    assert parse_dump(pickle.dumps(gloo), "_dump_0").pending == 0
    assert parse_dump(pickle.dumps(nccl), "_dump_0").pending == 1


def test_no_entries_is_a_dump_and_no_dump_is_an_error() -> None:
    """An empty recorder says that nothing is pending; a cut or foreign file says nothing."""
    empty = raw(status={"0": counters(51, 51)})

    assert parse_dump(pickle.dumps(empty), "_dump_0").recorded == 0
    for data in (pickle.dumps(HELD)[:-20], json.dumps(HELD).encode()[:-20], pickle.dumps(PLAIN),
                 b'{"entries": [{"loss": 1}]}', b"[1]", b"plain text", b""):  # fmt: skip
        with pytest.raises(FormatError):
            parse_dump(data, "_dump_0")


def test_a_pointer_leads_back_to_its_value() -> None:
    """Counters, counts and fields of an entry; a pointer to nothing is an error."""
    data = pickle.dumps(HELD, protocol=2)

    assert resolve_dump(data, "group 0(default_pg), last_completed") == 51
    assert resolve_dump(data, "entries, pending") == 1
    assert resolve_dump(data, "entry 152, profiling_name") == "nccl:all_reduce"
    assert resolve_dump(data, "entry 152, input_sizes") == "[[1000]]"
    for pointer in ("", "group 9(x), last_completed", "entry 1, state", "entry 152, nothing"):
        with pytest.raises(FormatError):
            resolve_dump(data, pointer)


def test_what_is_kept_is_bounded() -> None:
    """Of thousands of completed entries the last of a group are kept, and what is pending."""
    held = raw(entry(1), *(left(seq) for seq in range(2, 2000)))

    dump = parse_dump(pickle.dumps(held), "_dump_0")

    assert dump.recorded == 1999
    assert len(dump.entries) == 65
    assert dump.entries[0].pending


def test_what_is_cited_is_read_again_as_it_was_read() -> None:
    """A number spelled as a string, a type that is none, an id that stands twice."""
    odd = entry(7, collective_seq_id="7", input_dtypes=[None, 3], input_sizes=[["1000", "x"]])
    data = pickle.dumps(raw(odd, entry(8, record_id=107)), 2)
    (read,) = parse_dump(data, "_dump_0").entries

    assert (read.seq, read.record_id) == (7, 107)
    for key, value in values(read).items():
        assert resolve_dump(data, f"entry 107, {key}") == value
