"""TensorFlow's CNN benchmarks, to their end and without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.parsers import tf_cnn_benchmarks

RULE = "-" * 64


@pytest.mark.parametrize(("ended", "code"), [(True, "G1"), (False, None)])
def test_the_total_is_its_last_word(tmp_path: Path, ended: bool, code: str | None) -> None:
    """A run of which it was not read may have been ended."""
    lines = ["Step\tImg/sec\ttotal_loss"]
    lines += [f"{n}\timages/sec: 98.{n % 9} +/- 0.2 (jitter = 0.7)\t{9.1 - n / 20:.3f}"
              for n in (1, *range(10, 101, 10))]  # fmt: skip
    lines += [RULE, "total images/sec: 196.41", RULE] if ended else []
    (tmp_path / "job.log").write_text("\n".join(lines) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))
    assert (verdict.code, verdict.confidence < 0.8) == (code, True)


@pytest.mark.parametrize(
    "line",
    [
        "images/sec: 98.1 +/- 0.2 (jitter = 0.7)",
        "mean images/sec: 98.1",
        "total images/sec: 196.41 expected",
        "ETA 10 images/sec: 98.1",
    ],
)
def test_lines_alike(line: str) -> None:
    assert list(tf_cnn_benchmarks.Reader().feed(line)) == []
