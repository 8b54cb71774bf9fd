"""
How a run ended that was started from an editor (PyCharm, IntelliJ, CLion).

    Process finished with exit code 137 (interrupted by signal 9: SIGKILL)
    Process finished with exit code -1073741819 (0xC0000005)

One program a console.  Code 0 ends whatever was run, which need not have been the training to its
end, and is not read.  Source: com.intellij.execution.process (IntelliJ platform); public reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.parsers import Reported
from flatline.parsers._exits import ended

FORMAT = "exits-ide"
FRAMEWORK = None
TRIGGERS = (r"Process finished with exit code -?[1-9][0-9]{0,9}\b",)
_ENDED = re.compile(
    r"^\s*Process finished with exit code (-?[1-9]\d{0,9})(?: \(0x[0-9A-Fa-f]{1,8}(?:: .{1,80})?\)"
    r"| \(interrupted by signal (\d{1,3}):? ?\w{0,12}\))?\s*$"
)


class Reader:
    """Reads one stream; keeps nothing between lines."""

    def feed(self, text: str) -> Iterable[Reported]:
        found = _ENDED.match(text)
        if found is None:
            return ()
        code, signal = ended(int(found[1]))
        return (Reported("ide", exit_code=code, signal=int(found[2]) if found[2] else signal),)
