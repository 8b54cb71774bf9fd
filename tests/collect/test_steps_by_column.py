"""What is read by the column is what is read line by line."""

from __future__ import annotations

from array import array
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flatline.collect import steps
from flatline.collect.catalogue import catalogue
from flatline.collect.events import LogEvents
from flatline.collect.logs import read_log
from flatline.collect.setting import Setting
from flatline.logs.hits import Hit
from flatline.logs.labels import NamePlace
from flatline.tracks import Track

STAMPS = (
    "", "2026-11-20 15:{s:02d}:{s:02d},{n:03d} ", "2026-{s:02d}-20T15:04:05 ",
    "[2026-11-2{d} 2{d}:00:{s:02d}.{n:03d}] ", "2026-11-20 15:04:{s:02d}Z ",
    "9{n:03d}-01-01 0{d}:00:00 ",
    "2026/11/20 15:04:{s:02d} ", "I1120 15:04:{s:02d}.000000 7 a.py:1] ", "[{s}.{n:03d}123] ",
    "I0000 00:00:17{n:08d}.0 7 a.py:1] ", "I{n:04d} 0{d}:00:{m:010d}.0 7 a.py:1] ",
)  # fmt: skip
LABELS = ("", "[rank{d}]: ", "{d}: ", "node{d}: ", "[default{d}]:", "(W pid={n}, ip=10.0.0.{d}) ")
OWN = ("", "[rank{d}] INFO ", "INFO worker {n} ", "[RANK={d}] ", "rank={d} | ", "{n}: ")
SAID = (
    "step {m}/9000 loss {d}.{n:03d} grad_norm 0.{n:03d}", "step {m} loss {d}.{n:03d}",
    "step: {n} | loss: {d}.5 | lr: {d}.0e-0{d} | tok/s: {d},{n:03d} | {s:.1f} ms/step",
    "iter {m}.{d} loss {d}.1", "loss {d}.{n:03d} at step {n} rank={d}", "step {n}/{m} loss nan",
    "Epoch {d}: step {n}/{m} loss {d}.5", "step {n} loss {d}.5 val loss {d}.6", "step {n}:",
    "step {n} policy_loss {d}.{n:03d}", "[{n}/{m}] loss {d}.1.2", "step {m}{m}{m} loss 1.{d}",
    "step {d}/{d},000,000,000,000,{n:03d} loss 1.{d}",
    "ERROR: step {n} loss {d}.1: CUDA out of memory. Tried to allocate {d}.00 GiB.",
    "[step={n}/{m}]", "train loss: {d}.5", "\rstep {n} loss {d}.25", "step {n} loss {d}.5  ",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {d}.00 GiB.",
)  # fmt: skip
NUMBERS = st.tuples(st.integers(0, 9), st.integers(0, 999), st.integers(0, 61))
ROW = st.tuples(*(st.sampled_from(part) for part in (STAMPS, LABELS, OWN, SAID)))


def told(read: LogEvents) -> str:
    """All that was read, by its words and bytes: a NaN equals no other."""
    held = {f.name: getattr(read, f.name) for f in fields(read)}
    held["tracks"] = {key: _columns(track) for key, track in read.tracks.items()}
    return repr(held)


def _columns(track: Track) -> list[object]:
    values = [getattr(track, f.name) for f in fields(track)]
    return [value.tobytes() if isinstance(value, array) else value for value in values]


def both_ways(data: bytes) -> tuple[LogEvents, LogEvents]:
    setting = Setting(NamePlace(), 2026, True)
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        path = Path(name) / "log"
        path.write_bytes(data)
        columns = read_log(path, "log", catalogue(), setting)
        patch.setattr(steps.StepLines, "take", lambda self, hit: False)
        return columns, read_log(path, "log", catalogue(), setting)


@settings(deadline=None)  # the first to run compiles what the others use
@given(
    st.lists(ROW, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), NUMBERS, st.integers(0, 10**9)), max_size=60),
)
def test_any_log_reads_the_same_by_the_column(
    rows: list[tuple[str, ...]], lines: list[tuple[int, tuple[int, int, int], int]]
) -> None:
    """Lines of few layouts, in any order, with numbers that no stamp or step may have."""
    said = [
        "".join(rows[row % len(rows)]).format(d=d, n=n, s=s, m=many)
        for row, (d, n, s), many in lines
    ]

    columns, alone = both_ways("\n".join(said).encode())

    assert told(columns) == told(alone)


def test_a_loop_is_read_by_the_column(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All but the first two of its lines."""
    taken: list[bool] = []
    take = steps.StepLines.take

    def counted(self: steps.StepLines, hit: Hit) -> bool:
        taken.append(take(self, hit))
        return taken[-1]

    monkeypatch.setattr(steps.StepLines, "take", counted)
    path = tmp_path / "log"
    line = "[rank{r}]: 2026-11-20 15:{m:02d}:07,123 step {n}/9000 loss 2.{n} | tok/s: 1,{n}\n"
    path.write_text("".join(line.format(r=n % 2, m=n % 60, n=n) for n in range(100, 300)))

    read = read_log(path, "log", catalogue(), Setting(NamePlace(), None, True))

    assert sum(taken) == 197
    assert [list(track.steps) for track in read.tracks.values()] == [
        list(range(100, 300, 2)), list(range(101, 300, 2))
    ]  # fmt: skip
    assert {track.throughput[0] for track in read.tracks.values()} == {1100, 1101}


def test_points_beyond_what_a_track_holds_are_thinned_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from flatline.collect import logs

    monkeypatch.setattr(logs, "POINTS_PER_STREAM", 700)
    lines = (f"step {n:04d}/9000 loss 2.5 grad_norm 0.{n:04d}\n" for n in range(3000))

    columns, alone = both_ways("".join(lines).encode())

    assert told(columns) == told(alone)
    assert len(next(iter(columns.tracks.values()))) < 700
