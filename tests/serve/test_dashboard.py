"""The dashboard's queries are answered by the run they were made for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from flatline.cli import Engine, answer
from flatline.collect.stores import open_store
from flatline.series.promql.evaluate import over
from flatline.series.storage import MemoryStore, Store, series_of
from flatline.serve.dashboard import ROWS, dashboard
from flatline.vocab import Vocabulary, vocabularies
from serve import generated

RUN = str(Path(__file__).parents[1] / "scenarios" / "gpu_throttled_one_of_many" / "run")


def graphs(board: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def unanswered(board: Mapping[str, Any], store: Store) -> list[str]:
    """Queries that give no series over the time of the run."""
    assert store.span is not None
    first, last = store.span
    return [
        target["expr"]
        for panel in graphs(board)
        for target in panel["targets"]
        if not over(target["expr"], store, first, last, 60.0).labels
    ]


@pytest.mark.parametrize("vocabulary", vocabularies(), ids=lambda v: v.name)
def test_every_panel_of_every_exporter_shows_something(vocabulary: Vocabulary) -> None:
    """On a generated run that has all the exporter's metrics."""
    store = generated.store(vocabulary)
    board = dashboard(store, "run")

    assert unanswered(board, store) == []
    carried = {carrier.signal for carrier in vocabulary.carriers}
    asked = {t["expr"] for panel in graphs(board) for t in panel["targets"]}
    assert asked or not carried & {"gpu_power_watts", "host_procs_running", "training_loss"}
    assert len(board["panels"]) == len({panel["id"] for panel in board["panels"]})


def test_panels_do_not_cover_one_another() -> None:
    """Nor is any cell of the grid used twice."""
    rows = [row for v in vocabularies() for row in generated.rows(v)]
    cells: set[tuple[int, int]] = set()
    for panel in dashboard(MemoryStore(series_of(rows)), "run")["panels"]:
        at = panel["gridPos"]
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"])
               for y in range(at["y"], at["y"] + at["h"])}  # fmt: skip
        assert not own & cells
        cells |= own
    assert max(x for x, _ in cells) < 24


def test_every_wanted_panel_can_be_had_from_some_exporter() -> None:
    """A panel that nothing could fill would never be seen."""
    every = MemoryStore(series_of([row for v in vocabularies() for row in generated.rows(v)]))
    titles = {panel["title"] for panel in graphs(dashboard(every, "run"))}

    assert {panel.title for _, panels in ROWS for panel in panels} <= titles


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    """With the run's own time and names, and what nothing measures."""
    assert answer(["serve", RUN, "--dashboard"], Engine()) == 0
    board = orjson.loads(capsys.readouterr().out)

    assert board["time"]["from"] == "2026-01-14T09:00:00.000Z"
    assert "DCGM_FI_DEV_POWER_USAGE" in {t["expr"] for p in graphs(board) for t in p["targets"]}
    assert "Run queue" in board["description"]
    assert unanswered(board, open_store((RUN,)).store) == []


def test_scalars_of_event_files_are_shown(tmp_path: Path) -> None:
    """Loss and throughput by the tags frameworks use."""
    from logs.event_writing import event, first, simple, written

    events = [
        event(1e9 + 10 * n, n, simple("train/loss", 2.0 - n), simple("tokens_per_sec", 100.0))
        for n in range(30)
    ]
    (tmp_path / "events.out.tfevents.1.x").write_bytes(written(first(), *events))
    store = open_store((str(tmp_path),)).store
    board = dashboard(store, "run")

    titles = [panel["title"] for panel in graphs(board)]
    assert titles == ["Loss (TensorBoard)", "Throughput (TensorBoard)", "Step (TensorBoard)"]
    assert unanswered(board, store) == []
