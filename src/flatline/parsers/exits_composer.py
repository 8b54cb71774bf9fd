"""
How a process of MosaicML Composer's launcher ended: `Rank 1 crashed with exit code -7.`, and in
later versions `ERROR:composer.cli.launcher:Global rank 1 (PID 2712) exited with code -7`.

The launcher says so of the first that it finds; a negative code is the signal that killed it.

Source: `_monitor_processes` of composer/cli/launcher.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.model import Place
from flatline.parsers import Reported
from flatline.parsers._exits import ended

FORMAT = "exits-composer"
FRAMEWORK = None
TRIGGERS = (
    r"Rank [0-9]+ crashed with exit code -?[0-9]",
    r"Global rank [0-9]{1,7} \(PID [0-9]{1,10}\) exited with code -?[0-9]",
)
_ENDED = re.compile(
    r"(?:^|[\s:])(?:Rank ([0-9]{1,7}) crashed with exit code (-?[0-9]{1,3})\."
    r"|Global rank ([0-9]{1,7}) \(PID [0-9]{1,10}\) exited with code (-?[0-9]{1,3}))(?:\s|$)"
)


class Reader:
    """Reads one stream; keeps nothing between lines."""

    def feed(self, text: str) -> Iterable[Reported]:
        found = _ENDED.search(text[:2_048])
        if found is None:
            return ()
        rank, status = (int(one) for one in found.groups() if one is not None)
        code, signal = ended(status)
        return (Reported("composer", Place(rank=rank), code, signal),)
