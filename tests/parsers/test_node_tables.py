"""`sacctmgr show event -P` and sinfo's tables."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flatline.errors import FormatError
from flatline.parsers import sacctmgr_events, sinfo_text

FIXTURES = Path(__file__).parents[1] / "fixtures/slurm"
EVENTS = (FIXTURES / "sacctmgr-events.psv").read_bytes()
TABLES = [
    (FIXTURES / name).read_bytes()
    for name in ("sinfo.drain.txt", "sinfo-R.drain.txt", "sinfo-R.down.txt")
]
PLAIN = b"""\
PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
train*       up   infinite      1 drain* gpu03
train*       up   infinite      2   idle gpu[01-02]
debug        up   infinite      1 drain* gpu03
"""


def test_recorded_events_are_intervals() -> None:
    """The node lost for 71 s, the one set DOWN for an Xid; the cluster's own row is left out."""
    events = sacctmgr_events.parse(EVENTS, "events.psv").node_events
    lost = [event for event in events if event.states == ("DOWN", "NOT_RESPONDING")]
    assert [(event.host, event.reason) for event in lost] == [("n3", "Not responding")] * 2
    assert (lost[0].at, lost[0].until) == (
        datetime(2026, 11, 20, 15, 55, 15, tzinfo=UTC),
        datetime(2026, 11, 20, 15, 56, 26, tzinfo=UTC),
    )
    assert "Xid 79: GPU has fallen off the bus" in {event.reason for event in events}
    assert all(event.host for event in events)


def test_a_lasting_event_has_no_end_and_a_reason_may_hold_the_delimiter() -> None:
    """TimeEnd is Unknown while it lasts."""
    text = (
        b"Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
        b"lab|n1|2026-11-20T15:00:00|Unknown|DRAIN|a|b|root(0)\n"
    )
    (event,) = sacctmgr_events.parse(text, "s").node_events
    assert (event.until, event.reason, event.states) == (None, "a|b", ("DRAIN",))


def test_sinfo_tables() -> None:
    """`-N -l` with its date, `-R` with and without a state, and the plain summary."""
    long, why, down = (sinfo_text.parse(data, "sinfo.txt") for data in TABLES)
    assert long.now == datetime(2026, 11, 20, 15, 56, 34, tzinfo=UTC)
    assert [(e.host, e.states) for e in long.node_events][3] == ("n4", ("IDLE", "DRAIN"))
    assert (why.node_events[0].reason, why.node_events[0].states) == ("ECC errors", ("DRAIN",))
    assert (down.node_events[0].host, down.node_events[0].states) == ("gpu03", ())
    assert down.node_events[0].at == datetime(2026, 11, 20, 16, 29, 35, tzinfo=UTC)


def test_the_plain_summary_names_every_node_once() -> None:
    """A node stands in several partitions; its marks are spelled out."""
    events = sinfo_text.parse(PLAIN, "s").node_events
    assert [(event.host, event.states) for event in events] == [
        ("gpu03", ("DRAIN", "NOT_RESPONDING")),
        ("gpu01", ("IDLE",)),
        ("gpu02", ("IDLE",)),
    ]


def test_every_citation_resolves_again() -> None:
    """`row 2, STATE` leads back to the value."""
    for module, files in ((sacctmgr_events, [EVENTS]), (sinfo_text, [*TABLES, PLAIN])):
        for data in files:
            for event in module.parse(data, "s").node_events:
                assert module.resolve(data, event.cite.pointer) == event.cite.value


def test_recognised_by_content() -> None:
    """Each by its own header and not by the other's, nor by accounting or a queue."""
    assert sacctmgr_events.recognise("x", EVENTS)
    assert all(sinfo_text.recognise("x", data) for data in [*TABLES, PLAIN])
    others = [
        b"JobID|State\n5|FAILED\n",
        b"JOBID PARTITION NAME ST NODELIST(REASON)\n",
        b"\0\0",
        b"",
    ]
    for data in others:
        assert not sacctmgr_events.recognise("x", data)
        assert not sinfo_text.recognise("x", data)


@pytest.mark.parametrize("data", [b"", b"n1 idle\n", b"NODELIST STATE\nn1 idle extra word\n"])
def test_tables_that_do_not_fit_are_refused(data: bytes) -> None:
    """Columns that have run into each other are not guessed apart."""
    with pytest.raises(FormatError):
        sinfo_text.parse(data, "s")


def test_a_header_alone_is_an_answer() -> None:
    """`sinfo -R` prints no more when every node is well."""
    assert sinfo_text.parse(TABLES[2].splitlines()[0], "s").node_events == ()


@given(st.binary(max_size=100), st.sampled_from([b"", EVENTS[:60], PLAIN[:50], TABLES[1][:110]]))
def test_arbitrary_bytes_raise_only_format_error(data: bytes, head: bytes) -> None:
    """No bytes, under any header, raise anything but FormatError."""
    for module in (sacctmgr_events, sinfo_text):
        assert module.recognise("x", head + data) in (True, False)
        with suppress(FormatError):
            module.parse(head + data, "s")
