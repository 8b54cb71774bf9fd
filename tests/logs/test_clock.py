"""Time stamps: read where a line begins with one, in UTC, honest about what was assumed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from flatline.logs.clock import Clock


def read(text: str, year: int | None = 2024) -> tuple[str, bool] | None:
    stamp = Clock(year).read(text)
    if stamp is None:
        return None
    assert stamp.at.tzinfo is UTC
    return stamp.at.isoformat().removesuffix("+00:00"), stamp.assumed


@pytest.mark.parametrize(
    ("text", "at"),
    (
        ("2024-05-01T05:42:27Z x", "2024-05-01T05:42:27"),
        ("2024-05-01T05:42:27.5+02:00 x", "2024-05-01T03:42:27.500000"),
        ("2024-05-01T05:42:27.123456789-0730 host x", "2024-05-01T13:12:27.123456"),
        ("2024-05-01 05:42:27 UTC x", "2024-05-01T05:42:27"),
        ('{"timestamp": "2024-05-01T05:42:27Z", "x": 1}', "2024-05-01T05:42:27"),
        ('time="2024-05-01T05:42:27Z" level=info', "2024-05-01T05:42:27"),
        (':::MLLOG {"namespace": "", "time_ms": 1714542128419, "x"', "2024-05-01T05:42:08.419000"),
        ("[1714542128.419000] [node4:655226:0] UCC WARN", "2024-05-01T05:42:08.419000"),
        ("I0000 00:00:1714542128.419000    4846 port.cc:153]", "2024-05-01T05:42:08.419000"),
        ("Wed May  1 05:42:27 UTC 2024", "2024-05-01T05:42:27"),
        ("1714542128.419 rank=0 n=300", "2024-05-01T05:42:08.419000"),
        ("ts=1714542128.4 msg=update n=150", "2024-05-01T05:42:08.400000"),
        ("@1714542128 E0 B0087/0900 L=0.2", "2024-05-01T05:42:08"),
        ('{"at": 1714542128.41, "i": 580}', "2024-05-01T05:42:08.410000"),
        ('{"wall": "2024-05-01T05:42:27.5Z", "n": 28}', "2024-05-01T05:42:27.500000"),
    ),
)
def test_a_stated_time_is_not_assumed(text: str, at: str) -> None:
    """Zone and year stand in the line."""
    assert read(text, year=None) == (at, False)


@pytest.mark.parametrize(
    "text",
    (
        "2024-05-01 05:42:27,000 x",
        "[2024-05-01 05:42:27,000] [INFO] x",
        "2024/05/01 05:42:27 x",
        "2024.05.01 05:42:27 x",
        "01-05-2024 05:42:27,000 | INFO | x",
        "01.05.2024 05:42:27 x",
        "[Wed May  1  5:42:27 2024] x",
        "24/05/01-05:42:27 x",
        "240501-054227  s00005 x",
        "20240501_054227 x",
        "[20240501 05:42:27][rank-7/8][INFO ] [--------trainer.py:2560] : x",
        "01/May/2024 05:42:27 iter=3",
        "[01/May/2024:05:42:27 x",
        "2024-05-01,05:42:27 | INFO | x",
        "05/01/2024 05:42:27 - INFO - x",
        "[05/01/2024 05:42:27 AM] x",
        "2024-05-01 05:42:27 AM x",
        "0: [NeMo W 2024-05-01 05:42:27 nemo_logging:349] x",
        "[INFO|trainer.py:1146] 2024-05-01 05:42:27,000 >> x",
        "[default3]:2024-05-01 05:42:27,000 [rank3] INFO x",
        "(Actor pid=1, ip=10.0.0.2) 2024-05-01 05:42:27 x",
        "[1,3]<stdout>:2024-05-01 05:42:27 x",
        "INFO:2024-05-01 05:42:27 x",
        "INFO:2024-05-01 05:42:27:train.py:9: x",
        "INFO:root:2024-05-01 05:42:27 x",
        "2024-05-01 05:42:27:INFO:x",
        "[Wed May  1 05:42:27 2024] NVRM: Xid",
        "slurmstepd: error: *** STEP 2.7 ON n1 CANCELLED AT 2024-05-01T05:42:27 DUE TO TIME LIMIT",
        "12: slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-05-01T05:42:27 ***",
        "  time      : 2024-05-01_05:42:27",
        "I20240501 05:42:27.000000 12 x.cc:3] y",
    ),
)
def test_a_time_without_a_zone_is_assumed(text: str) -> None:
    """The zone is taken to be UTC and the stamp says so."""
    assert read(text, year=None) == ("2024-05-01T05:42:27", True)


@pytest.mark.parametrize(
    "text",
    (
        "E0501 05:42:27.000000 1234 x",
        "[rank0]:[E501 05:42:27.000 x".replace("E501", "E0501"),
        "3: W0501 05:42:27.000000 21317 torch/x.py:1028] y",
        "May  1 05:42:27 gpu01 kernel: NVRM: Xid",
        "<6>May 01 05:42:27 gpu01 x",
    ),
)
def test_a_time_without_a_year_needs_one(text: str) -> None:
    """Known from elsewhere, or there is no time."""
    assert read(text, year=2024) == ("2024-05-01T05:42:27", True)
    assert read(text, year=None) is None


@pytest.mark.parametrize(
    "text",
    (
        "saved to /ckpt/2024-05-01T05:42:27/model",
        "Checkpoint date: 2024-05-01 05:42:27",
        "resumed the run of 2024-05-01 05:42:27",
        "step 3 took 05:42:27",
        "2024-05-01 05:42:27:03 x",
        " 50%|█████     | 5/10 [05:42<27:00,  1.00s/it]",
        "[12345.678901] NVRM: Xid",
        "elapsed [0:05:42]",
        "0123 05:42:27",
        "20241301 05:42:27 x",
        "20240501 05 42 27",
        "",
    ),
)
def test_a_date_within_a_message_is_not_its_time(text: str) -> None:
    """Nor is a duration, a counter, or time since boot."""
    assert read(text) is None


def test_time_since_boot_counts_where_boot_is_known() -> None:
    """The kernel's own clock is a duration."""
    clock = Clock(boot=datetime(2024, 5, 1, tzinfo=UTC))
    stamp = clock.read("[  100.500000] NVRM: Xid")

    assert stamp is not None
    assert stamp.at == datetime(2024, 5, 1, 0, 1, 40, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "at"),
    (
        ("2024-02-30 00:00:00 x", None),
        ("9999-01-01 00:00:00 x", None),
        ("0000-00-00 00:00:00 x", None),
        ("2024-05-01 25:00:00 x", None),
        ("2024-05-01 05:61:00 x", None),
        ("E0230 05:42:27.000 x", None),
        ("2024-05-01T05:42:27+99:99 x", "2024-05-01T05:42:27"),
        ("2016-12-31 23:59:60 x", "2017-01-01T00:00:00"),
        ("2024-05-01 24:00:00 x", "2024-05-02T00:00:00"),
        ("2024-05-01 12:10:00 AM x", "2024-05-01T00:10:00"),
        ("2024-05-01 05:10:00 PM x", "2024-05-01T17:10:00"),
    ),
)
def test_impossible_dates_are_no_dates(text: str, at: str | None) -> None:
    """A leap second and midnight as 24:00 are possible ones."""
    found = read(text)

    assert (found and found[0]) == at


def test_a_run_over_new_year_stays_in_order() -> None:
    """Whichever way the lines of several ranks interleave."""
    clock = Clock(2023)
    texts = ("E1231 23:59:58.0 1 x", "E0101 00:00:01.0 1 x", "E1231 23:59:59.0 1 x",
             "E0101 00:00:02.0 1 x", "E0302 00:00:00.0 1 x")  # fmt: skip
    years = [stamp.at.year for text in texts if (stamp := clock.read(text))]

    assert years == [2023, 2024, 2023, 2024, 2024]


def test_a_clock_learns_the_year_from_a_dated_line() -> None:
    """And puts others near it, over New Year too."""
    clock = Clock.learn(["hello", "2023-12-31 23:00:00,1 x", "E0101 00:00:01.000 1 x"])
    stamp = clock.read("E0101 00:00:02.000 1 x")

    assert stamp is not None
    assert stamp.at == datetime(2024, 1, 1, 0, 0, 2, tzinfo=UTC)


def test_what_the_caller_knows_serves_where_the_log_says_nothing() -> None:
    """The year of the job record."""
    assert Clock.learn(["nothing dated"], year=2022).year == 2022
    assert Clock.learn(["2024-05-01 05:42:27 x"], year=2022).year == 2024
    assert Clock.learn([]).year is None


def test_a_time_that_is_known_beside_the_file_tells_the_year() -> None:
    """The one that brings its stamps nearest, unless a line of the file is dated in full; without
    either a stamp was met that has no year."""
    near = datetime(2024, 1, 2, tzinfo=UTC)
    clock = Clock.learn(["Dec 30 04:00:00 n1 kernel: x"], near=near)
    stamp = clock.read("Dec 30 04:00:00 n1 kernel: x")

    assert stamp is not None
    assert stamp.at == datetime(2023, 12, 30, 4, tzinfo=UTC)
    assert not clock.lacks_year
    assert Clock.learn(["2020-05-01 05:42:27 x"], near=near).year == 2020

    bare = Clock.learn(["Dec 30 04:00:00 n1 kernel: x"])
    assert not bare.lacks_year
    assert bare.read("Dec 30 04:00:00 n1 kernel: x") is None
    assert bare.lacks_year


def test_an_offset_that_lines_state_is_the_zone_of_the_file() -> None:
    """A bare Z is not: a collector writes it whatever the zone of the program."""
    local = Clock.learn(["2024-05-01T05:42:27+02:00 x", "2024-05-01 05:42:28 y"])
    stamp = local.read("2024-05-01 05:42:28 y")
    utc = Clock.learn(["2024-05-01T05:42:27Z x"])

    assert stamp is not None
    assert (stamp.at.hour, stamp.assumed) == (3, False)
    assert local.zone == timezone(timedelta(hours=2))
    assert not utc.zone_stated
    assert not Clock.learn(
        ["2024-05-01T05:42:27+02:00 x", "2024-05-01T05:42:27-05:00"]
    ).zone_stated


def test_days_go_first_where_a_month_would_be_the_thirteenth() -> None:
    """One line of the file settles what all of them mean."""
    clock = Clock.learn(["13/05/2024 05:42:27 x"])
    stamp = clock.read("05/01/2024 05:42:27 x")

    assert stamp is not None
    assert (stamp.at.month, stamp.at.day) == (1, 5)


def test_a_level_before_the_time_within_one_bracket_is_passed_over() -> None:
    """LLaMA-Factory's lines."""
    clock = Clock()
    stamp = clock.read("[INFO|2026-04-19 19:05:00] llamafactory.train.callbacks:143 >> {}")
    assert stamp is not None
    assert stamp.at == datetime(2026, 4, 19, 19, 5, tzinfo=UTC)


def test_an_impossible_date_at_the_end_hides_no_earlier_one() -> None:
    """A program that prints nonsense last still told the year before."""
    lines = ["2024-05-01 05:42:27 x", "9999-99-99 05:42:28 x", "0000-13-01 00:00:00 x"]

    assert Clock.learn(lines, year=2022).year == 2024


def test_months_of_c10_are_not_padded() -> None:
    """`LOG(ERROR)` of torch prints month times a hundred plus day (c10/util/Logging.cpp)."""
    clock = Clock(2026)
    read = [clock.read(f"[rank0]:[E{date} 22:52:10.549819871 x.cpp:632] x")
            for date in ("105", "708", "1120")]  # fmt: skip

    assert [(s.at.month, s.at.day) for s in read if s] == [(1, 5), (7, 8), (11, 20)]


@pytest.mark.parametrize(
    ("line", "month", "day"),
    [
        ("[11-22 17:31:12 gpu1:0] iter 28/300 loss 1.75", 11, 22),
        ("04/12 17:31:12 - mmengine - INFO - Iter(train) [ 50/768]", 4, 12),
        ("INFO 03-02 17:31:12 [core.py:1] waiting", 3, 2),
    ],
)
def test_a_numeric_date_without_a_year(line: str, month: int, day: int) -> None:
    """Of vLLM, mmengine's console and loops of one's own; without any year it is no time."""
    stamp = Clock(year=2026).read(line)

    assert stamp is not None
    assert stamp.at == datetime(2026, month, day, 17, 31, 12, tzinfo=UTC)
    assert Clock().read(line) is None


@pytest.mark.parametrize(
    "line", ["13-22 17:31:12 x", "11-32 17:31:12 x", "loss 01-02 17:31:12", "11-22 17:31:12:5 x"]
)
def test_no_numeric_date(line: str) -> None:
    assert Clock(year=2026).read(line) is None


def test_the_year_of_slurms_last_word_serves_the_lines_before_it() -> None:
    lines = ("[11-22 17:31:12 n:0] iter 28/300", "slurmstepd: error: *** JOB 15 ON n CANCELLED AT"
             " 2026-11-22T17:32:22 DUE TO TIME LIMIT ***")  # fmt: skip
    stamp = Clock.learn(lines).read(lines[0])

    assert stamp is not None
    assert stamp.at.year == 2026


def counted(at: datetime) -> str:
    return f'0: :::MLLOG {{"namespace": "", "time_ms": {int(at.timestamp() * 1000)}, "key": "k"}}'


def beside(*apart_s: float, ahead_h: float = 8.0, between: int = 3) -> Clock:
    """The clock of a log in which a line that counts from 1970 stands so many seconds before each
    of some lines in local time."""
    lines, at = [], datetime(2026, 3, 7, 21, 14, 9, tzinfo=UTC)
    for apart in apart_s:
        lines += [counted(at)]
        local = at + timedelta(hours=ahead_h, seconds=apart)
        lines += [f"{local:%Y-%m-%d %H:%M:%S} INFO step"] + ["loading"] * between
        at += timedelta(minutes=7)
    return Clock.learn(lines)


@pytest.mark.parametrize(
    ("apart", "ahead_h", "told_h"),
    [
        ((0.0,), 8.0, 8.0),
        ((4.0, 7.0), -7.0, -7.0),
        ((0.0, 3.0, 61.0), 5.5, 5.5),
        ((4.0,), 8.0, None),
        ((400.0, 612.0), 8.0, None),
        ((0.0, 1.0), 0.0, None),
        ((0.0, 1.0), 8.3, None),
        ((0.0, 3600.0), 8.0, None),
        ((0.0, -28800.0), 8.0, None),
    ],
    ids=["one at once", "two within seconds", "one of them late", "one alone and late",
         "none within seconds", "UTC", "no offset in use", "two offsets", "one in UTC"],
)  # fmt: skip
def test_lines_that_count_from_1970_tell_the_zone_of_those_beside_them(
    apart: tuple[float, ...], ahead_h: float, told_h: float | None
) -> None:
    """Whole offsets that are in use, within seconds, and the same at every place."""
    clock = beside(*apart, ahead_h=ahead_h)

    assert clock.zone_stated == (told_h is not None)
    assert clock.zone.utcoffset(None) == timedelta(hours=told_h or 0)
    stamp = clock.read("2026-03-08 05:14:09 INFO step")
    assert stamp is not None
    assert stamp.assumed == (told_h is None)


def test_dashes_part_the_month_from_a_day_that_is_no_month() -> None:
    assert read("05-31-2024 05:42:27 x") == ("2024-05-31T05:42:27", True)
    assert read("31-05-2024 05:42 x") == ("2024-05-31T05:42:00", True)


@pytest.mark.parametrize(
    "line", ["| {n:4d} | {at} | 2.13 |", '{{"t": "{at}", "u": {n}}}', "update {n} of 9 clock {at}"]
)
def test_a_time_within_the_lines_where_nothing_else_says_when(line: str) -> None:
    """It runs on; the day is the one that the caller knows."""
    near = datetime(2026, 6, 3, 20, tzinfo=UTC)
    lines = [
        line.format(n=n, at=f"{(23 + n // 6) % 24:02d}:{n % 6 * 10:02d}:05") for n in range(9)
    ]
    clock = Clock.learn(lines, near=near)
    stamps = [stamp for text in lines if (stamp := clock.read(text))]

    assert len(stamps) == len(lines)
    assert stamps[0].at == datetime(2026, 6, 3, 23, 0, 5, tzinfo=UTC)
    assert stamps[-1].at == datetime(2026, 6, 4, 0, 20, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    "line",
    ["step {n} eta {back}", "step {n} left 0 {back}", "node {back} answered {n}", "step {n}"],
)
def test_what_counts_down_is_no_time_of_the_line(line: str) -> None:
    near = datetime(2026, 6, 3, 20, tzinfo=UTC)
    lines = [line.format(n=n, back=f"0{9 - n}:30:00") for n in range(9)]
    clock = Clock.learn(lines, near=near)

    assert not any(map(clock.read, lines))


def test_a_time_within_a_line_beside_lines_with_stamps_is_no_stamp() -> None:
    lines = [f"2026-06-03 20:0{n}:00 x" for n in range(5)]
    lines += [f"copied at 1{n}:00:00" for n in range(6)]
    clock = Clock.learn(lines)

    assert clock.read(lines[-1]) is None


def test_the_name_of_a_host_before_a_date() -> None:
    """pdsh and mpirun put it there; a word without a number before one is a field of its own."""
    clock = Clock(2026)

    for text in ("hx-05: [W217 22:17:37 socket.cpp:758] [c10d] The", "n1: 2026-02-17 22:17:37 x"):
        stamp = clock.read(text)
        assert stamp is not None
        assert stamp.at == datetime(2026, 2, 17, 22, 17, 37, tzinfo=UTC)
    for text in ("deadline: 2027-01-01 00:00:00", "s3_until: 2027-01-01 00:00:00"):
        assert clock.read(text) is None
