"""
Many logs, read by as many processes as there are cores.

A log is read in Python line by line where it says something, so threads gain nothing.  Workers are
forked, which costs milliseconds and shares the compiled patterns; where forking is not safe (other
threads run, as in a server) or a worker dies, the logs are read one after another, with the same
result.  What comes back is pickled by our own worker: no file of a target is ever unpickled so.

A worker ends with its parent, however that ends: left to itself it would wait for work for ever.
Ctrl-C reaches the whole group; the parent alone answers it, and waits for no log to be read out.
The parent has one thread: `ProcessPoolExecutor` has a second, which waits for ever for a lock that
an interrupted first one holds (`Condition.__enter__` is Python, and a signal strikes within it).
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
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
AHEAD = 2
"""Shares asked of a worker at once: it reads one while the next waits for it."""
JOIN_S = 1.0
"""One that waits for a file system that does not answer ends when it does."""
PARENT_ENDS = 1
"""PR_SET_PDEATHSIG of prctl(2): the signal that a process gets as its parent ends."""
LEFT_TO_PARENT = tuple(one for one in signal.Signals if one.name in ("SIGINT", "SIGHUP"))
"""What a terminal sends to all of its group."""


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
        except (EOFError, OSError):
            pass  # a worker was killed, or there is no room for one: read on alone
    for task in tasks[done:]:
        yield _read(task, book)


def _workers(tasks: Sequence[Task]) -> int:
    if len(tasks) < FEWEST_FILES or sum(task.size for task in tasks) < FEWEST_BYTES:
        return 1
    if sys.platform != "linux" or threading.active_count() > 1:
        return 1
    if multiprocessing.current_process().daemon:
        return 1  # another pool's worker, which may have no children
    return min(len(os.sched_getaffinity(0)), MOST_WORKERS, len(tasks))


def _read(task: Task, book: Catalogue) -> LogEvents | SourceError:
    try:
        return read_log(task.path, task.source, book, task.setting)
    except SourceError as fault:
        return fault


# --- across processes ---

_known: dict[str, Signature] = {}
"""The signatures by name, set before workers are forked."""
_Share = Sequence[Task]


def _forked(
    tasks: Sequence[Task], book: Catalogue, workers: int
) -> Iterator[LogEvents | SourceError]:
    import numpy  # noqa: F401  # once, for all workers: it counts newlines at four times the speed

    _known.update((signature.id, signature) for signature in book.signatures)
    size = max(1, len(tasks) // (workers * TASKS_PER_WORKER))
    shares = [tasks[n : n + size] for n in range(0, len(tasks), size)]
    hired: dict[Connection, BaseProcess] = {}
    own = os.getpid()
    try:
        with _held_back():
            for _ in range(workers):
                _hire(hired, shares, book)
        yield from _in_order(list(hired), len(shares))
    finally:  # all is read, or nobody waits for the rest: Ctrl-C, or whoever asked has gone on
        with _held_back():
            for worker in hired.values() if os.getpid() == own else ():  # a fork has them not
                worker.kill()
            for link, worker in hired.items() if os.getpid() == own else ():
                worker.join(JOIN_S)
                link.close()


@contextmanager
def _held_back() -> Iterator[None]:
    """Signals come once a process can answer them: a worker that ignores them, a parent that
    knows its workers."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, LEFT_TO_PARENT)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _hire(hired: dict[Connection, BaseProcess], shares: Sequence[_Share], book: Catalogue) -> None:
    """One more worker, by the parent's end of the pipe to it. Shares are known to it by birth:
    what goes to it are their numbers, what comes back are packed lists of packed readings."""
    context = multiprocessing.get_context("fork")
    ours, its = context.Pipe()
    inherited = [*hired, ours]
    given = its, inherited, shares, book, os.getpid()
    worker = context.Process(target=_work, args=given, daemon=True)  # ends as the parent exits
    worker.start()
    its.close()  # so that its end is the pipe's
    hired[ours] = worker


def _in_order(links: Sequence[Connection], shares: int) -> Iterator[LogEvents | SourceError]:
    """Raises `EOFError` if a worker ends before its time."""
    asked = iter(range(shares))
    for _ in range(AHEAD):
        for link in links:
            _ask(link, asked)
    read: dict[int, list[bytes]] = {}
    for wanted in range(shares):
        while wanted not in read:
            ready = connection.wait(links)
            for link in (one for one in links if one in ready):
                number, packed = pickle.loads(link.recv_bytes())
                read[number] = packed
                _ask(link, asked)
        for one in read.pop(wanted):
            yield pickle.loads(one)


def _ask(link: Connection, asked: Iterator[int]) -> None:
    number = next(asked, None)
    if number is not None:
        link.send(number)


def _work(
    link: Connection, inherited: Sequence[Connection], shares: Sequence[_Share], book: Catalogue,
    parent: int,
) -> None:  # fmt: skip
    _begin(parent)
    for end in inherited:
        end.close()
    try:
        while True:
            number = link.recv()
            packed = [_packed(_read(task, book)) for task in shares[number]]
            link.send_bytes(pickle.dumps((number, packed), pickle.HIGHEST_PROTOCOL))
    except Exception:  # noqa: BLE001 - nobody asks any more, or a log breaks the parent as well
        return


def _begin(parent: int) -> None:
    import ctypes

    for one in LEFT_TO_PARENT:
        signal.signal(one, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, LEFT_TO_PARENT)
    ctypes.CDLL(None).prctl(PARENT_ENDS, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before it could be said
        os._exit(1)
    gc.freeze()  # what the parent made lives as long as this process: not to be gone over again


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
