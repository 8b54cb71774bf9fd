"""
Ray's word on how a worker process ended.

    ... Worker IP address: 10.80.8.181 Worker port: 45555 Worker PID: 26103 Worker exit type:
        SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2.

The detail goes on to list SIGKILL, `ray stop` and SIGSEGV as *possible* causes: no signal is
taken from it, and "connection error code 2" is no exit code.  Exits that were intended are left
out.  Source: ray src/ray/protobuf/common.proto (WorkerExitType), raylet/node_manager.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.model import Place
from flatline.parsers import Reported
from flatline.parsers._exits import ended

FORMAT = "exits-ray"
FRAMEWORK = None
TRIGGERS = (r"Worker exit type: [A-Z]",)
_TYPE = re.compile(r"Worker exit type: ([A-Z_]{1,40})")
_ADDRESS = re.compile(r"Worker IP address: ([0-9A-Fa-f.:]{3,45})\b")
_CODE = re.compile(r"Worker exit detail: Worker exits with an exit code (-?\d{1,9})\b")
_KILLED = {"NODE_OUT_OF_MEMORY": 9}  # Ray's memory monitor ends workers by SIGKILL


class Reader:
    """Reads one stream; keeps nothing between lines."""

    def feed(self, text: str) -> Iterable[Reported]:
        kind = _TYPE.search(text)
        if kind is None or kind[1].startswith("INTENDED"):
            return ()
        address = _ADDRESS.search(text)
        place = Place(host=address[1] if address else None)
        code = _CODE.search(text)
        status, signal = ended(int(code[1])) if code else (None, _KILLED.get(kind[1]))
        return (Reported("ray", place, status, signal),)
