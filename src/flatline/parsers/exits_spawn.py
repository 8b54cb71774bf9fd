"""
How a process started by `torch.multiprocessing.spawn` ended, as its parent raises it.

    torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL
    Exception: process 2 terminated with exit code 1

The number counts the processes of one host, which need not be ranks.  A child that raised is told
with its traceback ("Process 1 terminated with the following error"), which says more and is read
as one.  Source: `ProcessContext.join` of torch/multiprocessing/spawn.py, 1.0 to 2.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.parsers import Reported
from flatline.parsers._exits import ended, named

FORMAT = "exits-spawn"
FRAMEWORK = None
TRIGGERS = (r"xception: process [0-9]+ terminated with (?:signal|exit code) ",)
_ENDED = re.compile(
    r"xception: process \d{1,5} terminated with (?:signal (?P<signal>\w{1,12})"
    r"|exit code (?P<code>-?\d{1,10}))\s*$"
)


class Reader:
    """Reads one stream; keeps nothing between lines."""

    def feed(self, text: str) -> Iterable[Reported]:
        found = _ENDED.search(text)
        if found is None:
            return ()
        if found["signal"] is not None:
            return (Reported("spawn", signal=named(found["signal"]), first=True),)
        code, signal = ended(int(found["code"]))
        return (Reported("spawn", exit_code=code, signal=signal, first=True),)
