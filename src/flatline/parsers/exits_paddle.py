"""
How a trainer ended that PaddlePaddle's launcher watched.

    LAUNCH ERROR 2024-03-09 23:58:52,617 Container failed !!!
    Container rank 1 status failed cmd ['python', '-u', 'train.py'] code -9 log log/workerlog.1

A container is a process here; the launcher prints the first of those that failed, in the order of
their ranks, and ends the others.  Source: `Container.__str__` of
python/paddle/distributed/launch/job/container.py, `Controller.watch` of controllers/controller.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.model import Place
from flatline.parsers import Reported
from flatline.parsers._exits import ended

FORMAT = "exits-paddle"
FRAMEWORK = None
TRIGGERS = (r"Container rank [0-9]+ status failed cmd ",)
_ENDED = re.compile(
    r"\bContainer rank (\d{1,7}) status failed cmd \[.{0,4000}\] code (-?\d{1,9}) log "
)


class Reader:
    """Reads one stream; keeps nothing between lines."""

    def feed(self, text: str) -> Iterable[Reported]:
        found = _ENDED.search(text)
        if found is None:
            return ()
        code, signal = ended(int(found[2]))
        return (Reported("paddle", Place(rank=int(found[1])), exit_code=code, signal=signal),)
