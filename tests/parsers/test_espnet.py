"""How the batches of ESPnet's epochs are counted on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.judging.throughput import course
from flatline.parsers import espnet

LINE = "[g2] 2024-01-02 03:04:05,006 (trainer:1) INFO: {}epoch:train:{}-{}batch: loss=4.1"


@pytest.mark.parametrize(
    ("told", "steps"),
    [
        ([(1, 900), (1, 1000), (2, 100), (2, 1000), (3, 100)], [900, 1000, 1100, 2000, 2100]),
        ([(1, 1000), (3, 100)], [1000, None]),
        ([(4, 1000), (5, 100)], [None, None]),
        ([(1, 1000), (2, 100), (1, 100), (2, 100)], [1000, 1100, 100, 200]),
    ],
    ids=["counted on", "an epoch is missing", "a later one first", "begun again"],
)
@pytest.mark.parametrize("closes", [True, False])
def test_counted_on_without_the_count_of_an_epoch(
    told: list[tuple[int, int]], steps: list[int | None], closes: bool
) -> None:
    """Its results may be cut off, or name none."""
    reader, values = espnet.Reader(), []
    for epoch, end in told:
        values += reader.feed(LINE.format(epoch, end - 99, end))
        if closes and end == 1000:
            values += reader.feed(f"INFO: {epoch}epoch results: [train] loss=9.7, train_time=0.9")

    assert [value.step for value in values] == steps


def test_an_epoch_of_unknown_length_has_a_pace(tmp_path: Path) -> None:
    """A log that begins amid a training: its first epoch's steps bear no number."""
    at, text = datetime(2026, 1, 2, 3, tzinfo=UTC), ""
    for epoch, end in [(n, end) for n in (4, 5) for end in range(100, 2100, 100)]:
        took = 0.5 if epoch == 4 and end < 1000 else 0.9
        at += timedelta(seconds=100 * took)
        text += f"[g2] {at:%Y-%m-%d %H:%M:%S},006 (trainer:762) INFO: {epoch}epoch:train:"
        text += f"{end - 99}-{end}batch: iter_time=0.01, loss={9 - end / 900:.3f}"
        text += f", train_time={took:.3f}\n"
    (tmp_path / "train.log").write_text(text)
    run = course(collect(Request((str(tmp_path),))))

    assert run is not None
    assert len(run.pace.times) == 40
    assert [round(phase.part, 2) for phase in run.slow] == [0.56]
