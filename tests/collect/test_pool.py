"""Logs read by several processes say what they say to one, whatever befalls a worker."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cli.calls import started
from flatline.collect import pool
from flatline.collect.catalogue import catalogue
from flatline.collect.events import LogEvents
from flatline.collect.setting import Setting
from flatline.errors import SourceError
from flatline.logs.labels import NamePlace

LINE = "2026-11-20 15:47:{s:02d},000 [rank{r}] INFO step {n}/9000 loss {loss:.4f}\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


@pytest.fixture
def tasks(tmp_path: Path) -> list[pool.Task]:
    made = []
    for rank in range(12):
        path = tmp_path / f"rank_{rank}.log"
        steps = (LINE.format(s=n % 60, r=rank, n=n, loss=3 - n / 999) for n in range(200))
        path.write_text("".join(steps) + OOM)
        setting = Setting(NamePlace(rank=rank), None, False, 0)
        made.append(pool.Task(path, path.name, setting, path.stat().st_size))
    (tmp_path / "rank_3.log").unlink()
    return made


def told(read: LogEvents | SourceError) -> str:
    """By its words: a NaN equals no other."""
    if isinstance(read, SourceError):
        return repr(read)
    tracks = [(key, list(t.steps), list(t.at), t.place) for key, t in read.tracks.items()]
    return repr((read.source, read.matches, read.crashes, read.lines, read.last_line, tracks))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_several_processes_read_what_one_reads(
    tasks: list[pool.Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = list(map(told, pool.read_all(tasks, catalogue())))
    monkeypatch.setattr(pool, "_workers", lambda asked: 3)
    together = list(pool.read_all(tasks, catalogue()))
    assert list(map(told, together)) == alone
    assert isinstance(together[3], SourceError)
    known = {id(signature) for signature in catalogue().signatures}
    matches = [m for one in together if isinstance(one, LogEvents) for m in one.matches]
    assert matches
    assert all(id(match.signature) in known for match in matches)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_what_a_program_took_care_of_is_so_for_several_processes_too(
    tasks: list[pool.Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line makes its signature another: a marker, or one that is half believed."""
    for task in tasks[4:]:
        steps = [LINE.format(s=n % 60, r=0, n=n, loss=3 - n / 999) for n in range(200)]
        steps.insert(100, OOM.replace("GiB.", "GiB; skipping this batch, retrying with less"))
        task.path.write_text("".join(steps))
    alone = list(pool.read_all(tasks, catalogue()))
    monkeypatch.setattr(pool, "_workers", lambda asked: 3)
    assert list(map(told, pool.read_all(tasks, catalogue()))) == list(map(told, alone))
    known = set(map(id, catalogue().signatures))
    matches = [m for one in alone[4:] if isinstance(one, LogEvents) for m in one.matches]
    assert any(id(match.signature) not in known for match in matches)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_worker_that_dies_costs_time_and_nothing_else(
    tasks: list[pool.Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = list(map(told, pool.read_all(tasks, catalogue())))
    parent, read_log = os.getpid(), pool.read_log

    def killed(path: Path, *rest: object) -> LogEvents:
        if os.getpid() != parent and path.name == "rank_7.log":
            os._exit(9)
        return read_log(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(pool, "_workers", lambda asked: 2)
    monkeypatch.setattr(pool, "read_log", killed)
    assert list(map(told, pool.read_all(tasks, catalogue()))) == alone


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_what_breaks_the_reading_of_a_log_is_told_for_it(
    tasks: list[pool.Task], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(path: Path, *rest: object) -> LogEvents:
        raise ZeroDivisionError(path.name)

    monkeypatch.setattr(pool, "_workers", lambda asked: 2)
    monkeypatch.setattr(pool, "read_log", broken)
    told = list(pool.read_all(tasks, catalogue()))
    assert len(told) == len(tasks)
    for task, fault in zip(tasks, told, strict=True):
        assert isinstance(fault, SourceError)
        assert f"ZeroDivisionError: {task.path.name}" in str(fault)
    assert capfd.readouterr().err == ""
    assert not multiprocessing.active_children()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_who_reads_no_further_leaves_no_worker(
    tasks: list[pool.Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_workers", lambda asked: 2)
    reading = pool.read_all(tasks, catalogue())
    next(reading)
    assert len(multiprocessing.active_children()) == 2
    del reading
    assert not multiprocessing.active_children()


def test_no_forking_beside_other_threads(tasks: list[pool.Task]) -> None:
    large = [pool.Task(t.path, t.source, t.setting, pool.FEWEST_BYTES) for t in tasks]
    stop = threading.Event()
    waiting = threading.Thread(target=stop.wait)
    waiting.start()
    try:
        assert pool._workers(large) == 1
    finally:
        stop.set()
        waiting.join()
    assert pool._workers(tasks) == 1, "small logs are read before workers are up"


SLOW = """
import os, sys, time
from pathlib import Path
from flatline.collect import pool
from flatline.collect.catalogue import catalogue
from flatline.collect.setting import Setting
from flatline.logs.labels import NamePlace

def asleep(*_):
    os.write(1, b"%d\\n" % os.getpid())  # in one piece, beside the other worker's
    time.sleep(60)

pool.read_log, pool._workers = asleep, lambda tasks: 2
task = pool.Task(Path("x"), "x", Setting(NamePlace(), None, False, 0), 1)
try:
    list(pool.read_all([task] * 8, catalogue()))
except KeyboardInterrupt:
    sys.exit(130)
"""


def running(pid: int) -> bool:
    """Whether it is there, and not only its entry until somebody reads its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux alone")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_the_reading(how: signal.Signals) -> None:
    """Ctrl-C ends it at once, with nothing said by a worker; and whatever ends the parent ends its
    workers, which would wait for work for ever."""
    command = [sys.executable, "-c", SLOW]
    with started(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        assert all(map(running, workers))
        if how == signal.SIGINT:  # the terminal sends it to all of the group
            os.killpg(parent.pid, how)
        else:
            parent.send_signal(how)
        began = time.monotonic()
        status = parent.wait(60)
        while any(map(running, workers)) and time.monotonic() - began < 60:
            time.sleep(0.02)

        assert not any(map(running, workers))
        assert status == (130 if how == signal.SIGINT else -how)
        assert time.monotonic() - began < 60
        assert b"Traceback" not in parent.stderr.read()
