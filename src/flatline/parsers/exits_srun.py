"""
srun's word on how the tasks of a step ended.

    srun: error: n3: task 2: Exited with exit code 3
    srun: error: n[1-2]: tasks 0,3-5: Killed
    srun: error: n2: task 1: Out Of Memory

The order is that in which srun heard of them; once one task has failed, srun ends the others,
which then stand here as Terminated or Killed too.  "Out Of Memory" is given as signal 9, by
which the kernel's OOM killer ends a process.  Several hosts on one line leave it open which
task was where, unless the first tasks are as many: one each, in the order of the nodes.  slurmd's
own log is not read: it holds the tasks of every job of its node.
Source: Slurm src/plugins/launch/slurm/launch_slurm.c (src/srun/launch.c since 23.11).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from flatline.errors import FormatError
from flatline.logs.hostlists import expand
from flatline.model import Place
from flatline.parsers import Reported
from flatline.parsers._exits import ended, named

FORMAT = "exits-srun"
FRAMEWORK = None
TRIGGERS = (r"srun: error: \S+: tasks? ?[0-9\[]",)
CAP = 64
_SRUN = re.compile(r"srun: error: (\S{1,4000}): tasks? ?(\[?[\d,-]{1,4000}\]?): (.{1,120})")
_CODE = re.compile(r"Exited with exit code (-?\d{1,9})")


def _ended(words: str) -> tuple[int | None, int | None] | None:
    """(exit code, signal) that the words come to, None where they say no end."""
    code = _CODE.match(words)
    if code:
        return ended(int(code[1]))
    if words.startswith("Out Of Memory"):
        return None, 9
    signal = named(words)
    return None if signal is None else (None, signal)


def _hosts(text: str) -> tuple[str, ...]:
    try:
        return expand(text)
    except FormatError:
        return ()


def _tasks(text: str) -> tuple[int, ...]:
    """Task numbers of `0,3-5`; none where the list is hostile."""
    inner = text.strip("[]")
    return tuple(int(task) for task in _hosts(f"[{inner}]") if task.isdecimal())


def _reports(host_list: str, task_list: str, words: str) -> Iterator[Reported]:
    end = _ended(words)
    if end is None:
        return
    hosts = _hosts(host_list)
    host = hosts[0] if len(hosts) == 1 else None
    tasks = _tasks(task_list)
    one_each = len(hosts) == len(tasks) and tasks == tuple(range(len(tasks)))
    for n, task in enumerate(tasks[:CAP]):
        yield Reported("srun", Place(host=hosts[n] if one_each else host, task=task), *end)
    if len(tasks) > CAP or not tasks:
        yield Reported("srun", Place(host=host), *end)


class Reader:
    """Reads one stream; keeps nothing between lines."""

    def feed(self, text: str) -> Iterable[Reported]:
        found = _SRUN.search(text)
        return _reports(*found.groups()) if found else ()
