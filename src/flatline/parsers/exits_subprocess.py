"""
A Python launcher that ran the training as a child and raises for how it ended.

    subprocess.CalledProcessError: Command '['/usr/bin/python3', 'train.py']' returned non-zero
        exit status 1.
    subprocess.CalledProcessError: Command '[...]' died with <Signals.SIGKILL: 9>.

So end accelerate launch, the old torch.distributed.launch, Lightning's subprocess script
launcher and many shells around them.  Only a command that is a Python program counts: a failed
`git rev-parse` or `ninja` is no process of the run, nor are `-c` and `-m pip`.
Source: CPython Lib/subprocess.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.parsers import Reported
from flatline.parsers._exits import ended

FORMAT = "exits-subprocess"
FRAMEWORK = None
TRIGGERS = (
    r"CalledProcessError: Command .* returned non-zero exit status -?[0-9]+",
    r"CalledProcessError: Command .* died with (?:<Signals\.|unknown signal )",
)
_COMMAND = re.compile(r"CalledProcessError: Command '\[?[\"']?([^'\" ,]{1,1000})(.{0,60})")
_PYTHON = re.compile(r"(?:^|[/\\])(?:python|pypy)[\d.]{0,8}(?:-dbg|w?\.exe)?$", re.IGNORECASE)
_NO_RUN = re.compile(r"^[\"', ]*-c\b|^[\"', ]*-m[\"', ]+(?:pip|venv|ensurepip)\b")
_STATUS = re.compile(r" returned non-zero exit status (-?\d{1,10})\.?\s*$")
_SIGNAL = re.compile(r" died with (?:<Signals\.SIG\w{1,12}: (\d{1,3})>|unknown signal (\d{1,3}))")


class Reader:
    """Reads one stream; keeps nothing between lines."""

    def feed(self, text: str) -> Iterable[Reported]:
        command = _COMMAND.search(text)
        if command is None or not _PYTHON.search(command[1]) or _NO_RUN.search(command[2]):
            return ()
        status = _STATUS.search(text)
        if status is not None:
            code, signal = ended(int(status[1]))
            return (Reported("subprocess", exit_code=code, signal=signal),)
        sign = _SIGNAL.search(text)
        return (Reported("subprocess", signal=int(sign[1] or sign[2])),) if sign else ()
