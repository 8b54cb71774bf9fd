"""What could not be had is said once."""

from dataclasses import replace

import pytest

from flatline.model import Claim, Gap, QueryCite, Verdict
from flatline.render import format_named
from flatline.wording.gaps import troubles
from render import verdicts

ABSENT = "no exporter that was read carries it"
GAPS = (
    Gap("time zone", "log lines state none; their times are read as UTC"),
    Gap("gpu_power_watts (what it draws)", ABSENT),
    Gap("gpu_xid (last error (Xid))", ABSENT),
    Gap("metrics of every host", "old from 10:00:05 to 10:02 UTC", "n1"),
    Gap("metrics of every host", "old from 10:00:20 to 10:03 UTC", "n2"),
    Gap("metrics of every host", "old from 10:00:20 to 10:03 UTC", "n2"),
    Gap("job log", "HTTP 404", "a.log"),
    Gap("job log", "HTTP 500", "a.log"),
)


def beside(*kinds: type) -> Verdict:
    """A verdict with these gaps that rests on evidence of these kinds alone."""
    made = verdicts.found()
    cites = [c for claim in (*made.shows, *made.implies) for c in claim.cites]
    kept = tuple(c for c in cites if isinstance(c, kinds)) or tuple(cites)
    return replace(made, gaps=GAPS, shows=(Claim("x", kept),), implies=())


def test_one_reason_is_one_gap_and_numbers_of_another_kind_are_not() -> None:
    told = [(t.need, t.reason, t.wheres) for t in troubles(beside())][-4:]

    assert told == [
        ("gpu_power_watts, gpu_xid", ABSENT, ()),
        ("metrics of every host", "old from 10:00:05 to 10:02 UTC", ("n1", "n2")),
        ("job log", "HTTP 404", ("a.log",)),
        ("job log", "HTTP 500", ("a.log",)),
    ]


def test_an_assumed_zone_is_told_where_clocks_meet() -> None:
    """Times of one log are in one zone, whichever it is."""
    from flatline.model import LogCite

    assert "time zone" not in [t.need for t in troubles(beside(LogCite))]
    assert "time zone" in [t.need for t in troubles(beside(LogCite, QueryCite))]


@pytest.mark.parametrize("name", ["text", "markdown", "html"])
def test_every_page_says_a_reason_once(name: str) -> None:
    page = " ".join(format_named(name).render(beside()).split())

    assert page.count("no exporter") == 1
