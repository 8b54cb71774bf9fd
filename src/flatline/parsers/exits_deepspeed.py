"""
The DeepSpeed launcher's word on how a process ended, and pdsh's on how a host's part ended.

    [2023-11-29 08:57:32,274] [ERROR] [launch.py:321:sigkill_handler] ['python', ...,
        '--local_rank=7', ...] exits with return code = -9
    pdsh@login1: worker-2: ssh exited with exit code 255

The command printed is the last one launched, not the one that failed, so its `--local_rank` is
no place.  The launcher on a host leaves with the number it prints, so that pdsh tells of -9 as
247.  "Killing subprocess N" lines are the launcher's own doing and tell of no end; which rank has
which N see `flatline.judging.launched_order`.  Exit code 255 of ssh is also what it gives when it
could not connect.
Source: deepspeed/launcher/launch.py; pdsh src/modules/sshcmd.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.model import Place
from flatline.parsers import Reported
from flatline.parsers._exits import ended

FORMAT = "exits-deepspeed"
FRAMEWORK = None
TRIGGERS = (
    r"sigkill_handler\].*exits with return code = -?[0-9]+",
    r"pdsh@\S+: \S+: ssh exited with exit code [0-9]+",
)
FIRST_SIGNED = 256 - 31
_LAUNCH = re.compile(r"sigkill_handler\].*exits with return code = (-?\d{1,9})\s*$", re.DOTALL)
_PDSH = re.compile(r"pdsh@\S{1,255}: (\S{1,255}): ssh exited with exit code (\d{1,9})")


class Reader:
    """Reads one stream; keeps nothing between lines."""

    def feed(self, text: str) -> Iterable[Reported]:
        found = _PDSH.search(text)
        if found is not None:
            status = int(found[2])
            signed = status - 256 if FIRST_SIGNED <= status < 255 else status
            signal = ended(signed)[1]
            return (Reported("pdsh", Place(host=found[1]), status, signal),)
        found = _LAUNCH.search(text)
        if found is not None and int(found[1]) != 0:
            code, signal = ended(int(found[1]))
            return (Reported("deepspeed", exit_code=code, signal=signal, first=True),)
        return ()
