"""
The same work for many items, done by several processes, the results in the order of the items.

Workers are forked, which costs milliseconds and shares what is in memory; forking is not safe
where other threads run, as in a server.  What comes back is pickled by our own worker: no file of
a target is ever unpickled so.

A worker ends with its parent, however that ends: left to itself it would wait for work for ever.
Ctrl-C reaches the whole group; the parent alone answers it, and waits for no item to be done.
The parent has one thread: `ProcessPoolExecutor` has a second, which waits for ever for a lock that
an interrupted first one holds (`Condition.__enter__` is Python, and a signal strikes within it).
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

MOST_WORKERS = 16
"""A login node has many cores, and many users."""
TASKS_PER_WORKER = 64
"""Few, and one worker does the last of them alone; handing one over takes 0.2 ms."""
AHEAD = 2
"""Shares asked of a worker at once: it does one while the next waits for it."""
JOIN_S = 1.0
"""One that waits for a file system that does not answer ends when it does."""
PARENT_ENDS = 1
"""PR_SET_PDEATHSIG of prctl(2): the signal that a process gets as its parent ends."""
LEFT_TO_PARENT = tuple(one for one in signal.Signals if one.name in ("SIGINT", "SIGHUP"))
"""What a terminal sends to all of its group."""

Item = TypeVar("Item")
Work = Callable[[Item], bytes]


def most_workers() -> int:
    """How many processes may be forked here; 1 where none is to be."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return 1
    if multiprocessing.current_process().daemon:
        return 1  # another's worker, which may have no children
    return min(len(os.sched_getaffinity(0)), MOST_WORKERS)


def forked(items: Sequence[Item], work: Work[Item], workers: int) -> Iterator[Any]:
    """
    What `work` pickles of each item, unpickled.

    Raises `EOFError` or `OSError` where a worker ends before its time, be it that `work` raised,
    or there is no room for one: what was not yielded is still to be done.
    """
    size = max(1, len(items) // (workers * TASKS_PER_WORKER))
    shares = [items[n : n + size] for n in range(0, len(items), size)]
    hired: dict[Connection, BaseProcess] = {}
    own = os.getpid()
    try:
        with _held_back():
            for _ in range(workers):
                _hire(hired, shares, work)
        yield from _in_order(list(hired), len(shares))
    finally:  # all is done, or nobody waits for the rest: Ctrl-C, or whoever asked has gone on
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


def _hire(
    hired: dict[Connection, BaseProcess], shares: Sequence[Sequence[Item]], work: Work[Item]
) -> None:
    """One more worker, by the parent's end of the pipe to it. Shares are known to it by birth:
    what goes to it are their numbers, what comes back are packed lists of what `work` packed."""
    context = multiprocessing.get_context("fork")
    ours, its = context.Pipe()
    inherited = [*hired, ours]
    given = its, inherited, shares, work, os.getpid()
    worker = context.Process(target=_serve, args=given, daemon=True)  # ends as the parent exits
    worker.start()
    its.close()  # so that its end is the pipe's
    hired[ours] = worker


def _in_order(links: Sequence[Connection], shares: int) -> Iterator[Any]:
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


def _serve(
    link: Connection, inherited: Sequence[Connection], shares: Sequence[Sequence[Any]],
    work: Work[Any], parent: int,
) -> None:  # fmt: skip
    _begin(parent)
    for end in inherited:
        end.close()
    try:
        while True:
            number = link.recv()
            packed = [work(item) for item in shares[number]]
            link.send_bytes(pickle.dumps((number, packed), pickle.HIGHEST_PROTOCOL))
    except Exception:  # noqa: BLE001 - nobody asks any more, or an item breaks the parent as well
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
