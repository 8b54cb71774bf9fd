"""A reader of ours that breaks hides one line, one file: never the rest, and never in silence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.collect.logs import LogReader
from flatline.diagnose import diagnose
from flatline.facts import Facts
from flatline.parsers import BROKE, deepspeed, sacct_parsable

STEP = (
    "[2026-11-20 10:00:{s:02d},100] [INFO] [logging.py:96:log_dist] [Rank 0] step={n}, skipped=0, "
    "lr=[0.0001], mom=[[0.9, 0.999]]\n"
)
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
    "71|train|FAILED|1:0|2026-11-20T10:00:00|2026-11-20T10:02:00|n1\n"
)


def log(folder: Path) -> None:
    steps = (STEP.format(s=n, n=10 * n) for n in range(1, 21))
    (folder / "job.log").write_text("".join(steps) + OOM)


def primary(facts: Facts) -> str:
    (found,) = (one for one in diagnose(facts).findings if one.role == "cause")
    return found.finding.code


def test_a_format_that_breaks_on_lines_leaves_out_these(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(tmp_path)

    class Breaks(deepspeed.Reader):
        def feed(self, text: str) -> Iterator[object]:  # type: ignore[override]
            if "step=30," in text or "step=50," in text:
                raise ZeroDivisionError(text)
            yield from super().feed(text)

        def columns(self, text: str) -> None:
            raise KeyError(text)

    monkeypatch.setattr(deepspeed, "Reader", Breaks)
    facts = collect(Request((str(tmp_path),)))
    (gap,) = (gap for gap in facts.gaps if BROKE in gap.reason)
    assert gap.where == "job.log"
    assert "DeepSpeed" in gap.need or "deepspeed" in gap.need
    (track,) = facts.tracks
    assert [int(step) for step in track.steps] == [10 * n for n in range(1, 21) if n not in (3, 5)]
    assert primary(facts) == "B1"


def test_a_log_whose_reading_breaks_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(tmp_path)
    (tmp_path / "other.log").write_text("epoch 3 begins\n")
    read = LogReader.read

    def breaks(self: LogReader, sample: object = ()) -> object:
        if self.file.source == "other.log":
            raise IndexError("list index out of range")
        return read(self, sample)  # type: ignore[arg-type]

    monkeypatch.setattr(LogReader, "read", breaks)
    facts = collect(Request((str(tmp_path),)))
    (gap,) = (gap for gap in facts.gaps if BROKE in gap.reason)
    assert gap.where == "other.log"
    assert primary(facts) == "B1"


def test_a_record_whose_reader_breaks_is_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(tmp_path)
    (tmp_path / "sacct.psv").write_text(SACCT)

    def breaks(data: bytes, source: str) -> None:
        raise AttributeError(source)

    monkeypatch.setattr(sacct_parsable, "parse", breaks)
    facts = collect(Request((str(tmp_path),)))
    (gap,) = (gap for gap in facts.gaps if BROKE in gap.reason)
    assert gap.where == "sacct.psv"
    assert primary(facts) == "B1"
