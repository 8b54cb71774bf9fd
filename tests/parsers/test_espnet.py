"""How the batches of ESPnet's epochs are counted on."""

from __future__ import annotations

import pytest

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
