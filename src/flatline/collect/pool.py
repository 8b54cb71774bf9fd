"""
Many logs, read by as many processes as there are cores.

A log is read in Python line by line where it says something, so threads gain nothing.  Workers are
forked, which costs milliseconds and shares the compiled patterns; where forking is not safe (other
threads run, as in a server) or a worker dies, the logs are read one after another, with the same
result.  What comes back is pickled by our own worker: no file of a target is ever unpickled so.

A worker ends with its parent, however that ends: left to itself it would wait for work for ever.
Ctrl-C reaches the whole group; the parent alone answers it, and waits for no log to be read out.
"""

from __future__ import annotations

import copyreg
import gc
import io
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flatline.collect.catalogue import Catalogue
from flatline.collect.events import LogEvents
from flatline.collect.logs import Setting, read_log
from flatline.errors import SourceError
from flatline.model import Signature

FEWEST_FILES = 8
FEWEST_BYTES = 24 << 20
"""Less is read before workers are up: two of them start in 30 ms and read 1 MB in 5 ms each."""
MOST_WORKERS = 16
"""A login node has many cores, and many users."""
TASKS_PER_WORKER = 64
"""Few, and one worker reads the last of them alone; handing one over takes 0.2 ms."""
PARENT_ENDS = 1
"""PR_SET_PDEATHSIG of prctl(2): the signal that a process gets as its parent ends."""


@dataclass(frozen=True, slots=True)
class Task:
    """A log to be read."""

    path: Path
    source: str
    setting: Setting
    size: int


def read_all(tasks: Sequence[Task], book: Catalogue) -> Iterator[LogEvents | SourceError]:
    """What each log holds, or why it cannot be opened, in the order of the tasks."""
    done = 0
    workers = _workers(tasks)
    if workers > 1:
        try:
            for read in _forked(tasks, book, workers):
                yield read
                done += 1
        except (BrokenProcessPool, OSError):
            pass  # a worker was killed, or there is no room for one: read on alone
    for task in tasks[done:]:
        yield _read(task, book)


def _workers(tasks: Sequence[Task]) -> int:
    if len(tasks) < FEWEST_FILES or sum(task.size for task in tasks) < FEWEST_BYTES:
        return 1
    if sys.platform != "linux" or threading.active_count() > 1:
        return 1
    return min(len(os.sched_getaffinity(0)), MOST_WORKERS, len(tasks))


def _read(task: Task, book: Catalogue) -> LogEvents | SourceError:
    try:
        return read_log(task.path, task.source, book, task.setting)
    except SourceError as fault:
        return fault


# --- across processes ---

_book: Catalogue | None = None
"""A worker's own, set when it begins."""
_known: dict[str, Signature] = {}
"""The signatures by name, set before workers are forked."""


def _forked(
    tasks: Sequence[Task], book: Catalogue, workers: int
) -> Iterator[LogEvents | SourceError]:
    import numpy  # noqa: F401  # once, for all workers: it counts newlines at four times the speed

    _known.update((signature.id, signature) for signature in book.signatures)
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        workers,
        multiprocessing.get_context("fork"),
        initializer=_begin,
        initargs=(book, os.getpid()),
    )
    try:
        with warnings.catch_warnings():  # of threads of other libraries, none of which we call
            warnings.simplefilter("ignore", DeprecationWarning)
            share = max(1, len(tasks) // (workers * TASKS_PER_WORKER))
            # Not `map`, which cancels what is left as it is given up: a worker killed then makes
            # the executor's own thread fall over those, with a traceback (CPython 3.11 to 3.13).
            left = [pool.submit(_work, tasks[n : n + share]) for n in range(0, len(tasks), share)]
        left.reverse()
        while left:
            for one in left.pop().result():
                yield pickle.loads(one)
    except BaseException:  # nobody waits for the rest: Ctrl-C, or whoever asked has gone on
        for worker in set(multiprocessing.active_children()) - before:
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(book: Catalogue, parent: int) -> None:
    global _book
    import ctypes

    for one in (signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PARENT_ENDS, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before it could be said
        os._exit(1)
    _book = book
    gc.freeze()  # what the parent made lives as long as this process: not to be gone over again


def _work(tasks: Sequence[Task]) -> list[bytes]:
    assert _book is not None
    return [_packed(_read(task, _book)) for task in tasks]


def _named(name: str) -> Signature:
    return _known[name]


def _by_name(signature: Signature) -> str | tuple[Any, ...]:
    if signature is _known.get(signature.id):
        return _named, (signature.id,)
    return signature.__reduce_ex__(pickle.HIGHEST_PROTOCOL)


_REDUCED = {**copyreg.dispatch_table, Signature: _by_name}
"""Signatures go by name: each is the same object in both processes, and large.  One that a line
made another, for it is half believed or was taken care of, goes as it is."""


def _packed(read: LogEvents | SourceError) -> bytes:
    out = io.BytesIO()
    pickler = pickle.Pickler(out, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _REDUCED
    pickler.dump(read)
    return out.getvalue()
