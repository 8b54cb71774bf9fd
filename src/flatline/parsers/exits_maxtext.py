"""
The word of the MaxText-on-Slurm launcher on how a node's part or the training ended.

    NODE_EXIT host=gpu07 exit=137
    [Node 3 @ gpu07] Training subprocess killed by SIGSEGV (signal 11)
    [Node 3 @ gpu07] Training subprocess exited with code 1
    == Training FAILED (exit=137, 12s) ==

The number after "Node" is the node's rank, which is a JAX process id only where a node runs one
process: it is not taken for a task.  The last line speaks of the whole stage and names no place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.model import Place
from flatline.parsers import Reported
from flatline.parsers._exits import ended

FORMAT = "exits-maxtext"
FRAMEWORK = None
TRIGGERS = (
    r"NODE_EXIT host=\S+ exit=[0-9]+",
    r"Training subprocess .{0,40}(?:killed by|exited with code) ",
    r"Training FAILED \(exit=[0-9]+",
)
_NODE = re.compile(r"NODE_EXIT host=(\S{1,255}) exit=(\d{1,9})")
_CHILD = re.compile(
    r"(?:\[Node \d{1,6}(?: @ (\S{1,255}))?\] )?Training subprocess .{0,40}?"
    r"(?:killed by SIG\w{1,12} \(signal (\d{1,3})\)|exited with code (-?\d{1,9}))"
)
_STAGE = re.compile(r"Training FAILED \(exit=(\d{1,9})")


class Reader:
    """Reads one stream; keeps nothing between lines."""

    def feed(self, text: str) -> Iterable[Reported]:
        found = _NODE.search(text)
        if found is not None:
            return self._failed(Place(host=found[1]), int(found[2]))
        found = _CHILD.search(text)
        if found is not None:
            place = Place(host=found[1])
            if found[2]:
                return (Reported("maxtext", place, signal=int(found[2])),)
            return self._failed(place, int(found[3]))
        found = _STAGE.search(text)
        return self._failed(Place(), int(found[1])) if found else ()

    def _failed(self, place: Place, status: int) -> tuple[Reported, ...]:
        return (Reported("maxtext", place, *ended(status)),) if status else ()
