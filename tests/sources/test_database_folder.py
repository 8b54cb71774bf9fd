"""A database folder is told by its names, and answers canonical questions."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.collect.stores import Question, ask
from flatline.model import Place
from flatline.series.promql import ENGINE
from flatline.series.promql.evaluate import Matrix
from flatline.series.storage import each
from flatline.series.tsdb.database import Database
from flatline.sources.metrics import MetricsSource
from flatline.sources.tsdb import database, recognise
from sources.servers import exporter, free_port, program, running, scraping, wait_for

FIXTURE = Path(__file__).parent.parent / "fixtures" / "tsdb" / "db"
LINE = re.compile(r"\{.*\} (\S+) (-?\d+)")


def folders(path: Path) -> list[str]:
    return [entry.name for entry in path.iterdir() if entry.is_dir()]


def test_a_database_is_told_by_its_names(tmp_path: Path) -> None:
    """A head, a block, or a log of segments; not a folder that is merely called so."""
    block = next(path for path in FIXTURE.iterdir() if len(path.name) == 26)
    (tmp_path / "wal").mkdir()
    (tmp_path / "wal" / "0000000000000000-0000000000000000.wal").touch()

    assert recognise(FIXTURE, folders(FIXTURE))
    assert recognise(block, folders(block))
    assert not recognise(tmp_path, folders(tmp_path))
    assert not recognise(FIXTURE.parent, folders(FIXTURE.parent))


def test_a_database_answers_by_place() -> None:
    """With the embedded engine, and a citation that runs again."""
    until = datetime(2026, 11, 20, 17, 55, tzinfo=UTC)
    source = MetricsSource(engine=database(FIXTURE, "tsdb"), within=(None, until))
    answer = source.ask("min_over_time(gpu_sm_clock_hertz[5m])")
    row = answer.of(Place(host="n1", gpu="1"))

    assert row is not None
    assert min(row.values) == 200e6
    assert source.replay(answer.cite(row, "SM clock")) == 200e6
    assert (answer.engine, answer.source) == (ENGINE, "tsdb")


def test_a_database_in_a_run_is_one_source_of_it(tmp_path: Path) -> None:
    """Its files are not taken for logs; it is narrowed to the time that is asked for."""
    shutil.copytree(FIXTURE, tmp_path / "metrics" / "data")
    (tmp_path / "job.log").write_text("step 1/10 loss 2.0\n")
    first = datetime(2026, 11, 20, 16, 10, tzinfo=UTC)
    facts = collect(Request((str(tmp_path),), start=first, end=first + timedelta(minutes=30)))

    assert {(read.source, read.kind) for read in facts.files} == {
        ("metrics/data", "metrics"),
        ("job.log", "job log"),
    }
    assert facts.window == (first, first + timedelta(minutes=30))
    assert len(facts.series("gpu_sm_clock_hertz").rows) == 2


def test_a_database_of_another_time_is_a_gap(tmp_path: Path) -> None:
    """It is not passed off as the run's."""
    shutil.copytree(FIXTURE, tmp_path / "data")
    late = datetime(2031, 1, 1, tzinfo=UTC)
    facts = collect(Request((str(tmp_path),), start=late, end=late + timedelta(hours=1)))

    assert facts.window is None
    assert "no sample of the time" in " ".join(gap.reason for gap in facts.gaps)


# --- folders of a real server ---


def ours(folder: Path) -> list[str]:
    """Every sample as `value millisecond`; values of NaN as such."""
    store = Database(folder, "db")
    return sorted(
        f"{'NaN' if v != v else v} {round(t * 1000)}"
        for _, times, values in each(store.select((), -1e15, 1e15))
        for t, v in zip(times.tolist(), values.tolist(), strict=True)
    )


def theirs(folder: Path) -> list[str]:
    """The same from the server's own tool, which is given a copy: it writes into what it reads."""
    copy = folder.with_name(f"{folder.name}-for-promtool")
    shutil.copytree(folder, copy)
    said = subprocess.run([program("promtool"), "tsdb", "dump", str(copy)],
                          capture_output=True, text=True, check=True)  # fmt: skip
    found = [LINE.fullmatch(line) for line in said.stdout.splitlines()]
    return sorted(
        f"{'NaN' if m[1] == 'NaN' else float(m[1])} {m[2]}" for m in found if m is not None
    )


def cut(folder: Path) -> None:
    path = sorted((folder / "wal").iterdir())[-1]
    path.write_bytes(path.read_bytes()[:-300])


def test_a_live_a_killed_and_a_cut_folder_are_read(tmp_path: Path) -> None:
    """The first two as the server's own tool reads them; of the last nothing is made up."""
    path, port, data = program("prometheus"), free_port(), tmp_path / "data"
    program("promtool")
    with exporter() as scraped:
        config = scraping(tmp_path, scraped)
        config.write_text(config.read_text().replace("1s", "100ms, scrape_timeout: 100ms"))
        command = [path, f"--config.file={config}", f"--storage.tsdb.path={data}",
                   f"--web.listen-address=127.0.0.1:{port}"]  # fmt: skip
        copy: Callable[[str], Path] = lambda name: Path(  # noqa: E731
            shutil.copytree(
                data, tmp_path / name, ignore=shutil.ignore_patterns("lock", "queries*")
            )
        )
        with running(command, f"http://127.0.0.1:{port}/-/ready") as process:
            wait_for(lambda: data.exists() and len(ours(data)) > 200)
            live = copy("live")
            process.kill()
            process.wait(20)
        killed = copy("killed")

    assert ours(live) == theirs(live)
    assert ours(killed) == theirs(killed)
    whole = set(ours(killed))
    cut(killed)
    rest = ours(killed)
    assert set(rest) < whole
    assert len(rest) > len(whole) / 2
    assert Database(killed, "db").gaps


@pytest.mark.parametrize("name", ("lock", "queries.active"))
def test_what_a_server_needs_to_start_is_not_needed(name: str, tmp_path: Path) -> None:
    """Nor made."""
    copy = shutil.copytree(FIXTURE, tmp_path / "db")
    ours(Path(copy))

    assert not (tmp_path / "db" / name).exists()


def test_a_database_alone_is_asked_in_its_own_names() -> None:
    """As `flatline query` does: by its index, without reading the rest."""
    found = ask(Question("count(DCGM_FI_DEV_GPU_TEMP)", (str(FIXTURE),))).found

    assert isinstance(found, Matrix)
    assert found.values[0, 0] == 2.0
