"""MLPerf result lines: what a position counts, and how a run ended."""

from __future__ import annotations

import json
import re

import pytest

from flatline.model import Progress
from flatline.parsers import mlperf


def line(key: str, value: object = None, **metadata: object) -> str:
    event = {"namespace": "", "time_ms": 1700000000000, "event_type": "POINT_IN_TIME"}
    return ":::MLLOG " + json.dumps({**event, "key": key, "value": value, "metadata": metadata})


def said(*lines: str) -> list[Progress]:
    reader = mlperf.Reader()
    found = []
    for text in lines:
        assert any(re.search(t, text) for t in mlperf.TRIGGERS), text
        found += list(reader.feed(text))
    return found


def test_samples_become_steps_by_the_batch_size() -> None:
    """The LoRA benchmark counts samples, also under `step`."""
    points = said(
        line("global_batch_size", 64),
        line("block_start", samples_count=0),
        line("tracked_stats", {"throughput": 71.5}, step=4224),
        line("eval_accuracy", 0.94, samples_count=4224),
    )
    assert [(p.kind, p.step) for p in points] == [("train", 66), ("eval", 66)]
    assert points[0].throughput == 71.5
    assert points[1].loss is None


def test_tokens_become_steps_by_batch_and_length() -> None:
    """The GPT-3 benchmark counts tokens under `step` and `epoch_num`."""
    points = said(
        line("global_batch_size", 2048),
        line("max_sequence_length", 2048),
        line("tracked_stats", {"train_step_timing in s": 10.5}, step=4194304),
        line("eval_accuracy", 2.75, epoch_num=50331648),
    )
    assert [(p.kind, p.step) for p in points] == [("train", 1), ("eval", 12)]
    assert points[0].step_s == 10.5


def test_small_epoch_numbers_are_epochs() -> None:
    """ResNet and SSD count epochs, also under `step`; no step is made of them."""
    points = said(
        line("global_batch_size", 3200),
        line("epoch_start", epoch_num=1),
        line("tracked_stats", {"throughput": 18785.5}, step=1),
        line("eval_accuracy", 0.29, epoch_num=1),
    )
    assert [(p.step, p.epoch) for p in points] == [(None, 1.0), (None, 1.0)]


def test_a_step_by_its_own_name() -> None:
    """Stable Diffusion prints loss and rate."""
    (point,) = said(
        line("tracked_stats", {"throughput": 386.5, "loss": 1.125, "lr": 2.5e-06}, step_num=100)
    )
    assert (point.step, point.loss, point.lr) == (100, 1.125, 2.5e-06)


def test_the_training_loss_of_the_newer_rounds() -> None:
    """Its own key, the rate in the metadata."""
    _, point = said(
        line("max_steps", 1024),
        line("train_loss", 1.25, samples_count=640, lr=0.0003),
    )
    assert (point.loss, point.lr, point.planned, point.step) == (1.25, 0.0003, 1024, None)


def test_a_nan_loss_is_kept() -> None:
    """Python writes it as NaN, which is no JSON."""
    (point,) = said(line("train_loss", float("nan"), step_num=7))
    assert (point.step, str(point.loss)) == (7, "nan")


def test_a_block_that_ended_is_progress_where_nothing_else_is_printed() -> None:
    """Said once for each position."""
    points = said(
        line("global_batch_size", 8),
        line("block_stop", samples_count=80),
        line("block_stop", samples_count=80),
        line("block_stop", samples_count=160),
    )
    assert [p.step for p in points] == [10, 20]


@pytest.mark.parametrize(("status", "kinds"), [("success", ["finished"]), ("aborted", [])])
def test_only_success_is_an_end(status: str, kinds: list[str]) -> None:
    """An aborted run missed its target."""
    assert [v.kind for v in said(line("run_stop", status=status))] == kinds


@pytest.mark.parametrize(
    "text",
    [
        line("opt_learning_rate_training_steps", 1024),
        line("seed", 42),
        line("init_start"),
        ':::MLLOG {"key": "tracked_stats", "value": {"loss": 1.0}',
        ':::MLLOG {"key": "tracked_stats", "value": [[[}',
        ':::MLLOG {"key": "run_stop", "metadata": 3}',
        ':::MLLOG {"key": "eval_stop", "value": 1e999}',
    ],
)
def test_near_misses_say_nothing(text: str) -> None:
    """Settings, lines cut short, odd types."""
    assert said(text) == []


def test_a_number_beyond_all_floats_is_none() -> None:
    """JSON sets integers no bound."""
    line = f':::MLLOG {{"key": "train_loss", "value": {"9" * 400}, "metadata": {{"step": 3}}}}'

    assert [item.loss for item in mlperf.Reader().feed(line)] in ([], [None])
