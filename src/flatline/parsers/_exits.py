"""How a process ended, from the number or the words a launcher prints of it."""

from __future__ import annotations

import re
import signal as posix

_STANDARD = 31  # the signals of POSIX and Linux; real-time ones (34..64) end no training process
_ALIASES = {"SIGIOT": 6, "SIGCLD": 17, "SIGPOLL": 29}
WORDS = {
    "aborted": 6,
    "alarm clock": 14,
    "bad system call": 31,
    "broken pipe": 13,
    "bus error": 7,
    "cpu time limit exceeded": 24,
    "file size limit exceeded": 25,
    "floating point exception": 8,
    "hangup": 1,
    "illegal instruction": 4,
    "interrupt": 2,
    "killed": 9,
    "quit": 3,
    "segmentation fault": 11,
    "terminated": 15,
    "trace/breakpoint trap": 5,
    "user defined signal 1": 10,
    "user defined signal 2": 12,
}
"""What strsignal(3) of glibc says, lower case, to the number on Linux (x86-64 and aarch64)."""
_NAMES = {s.name: int(s) for s in posix.Signals if s <= _STANDARD} | _ALIASES
_OF_WINDOWS = {
    0xC0000005: 11,  # access violation
    0xC00000FD: 11,  # stack overflow
    0xC000001D: 4,  # illegal instruction
    0xC0000094: 8,  # integer division by zero
    0xC0000374: 6,  # heap corruption
    0xC0000409: 6,  # stack buffer overrun, and how abort() ends
    0xC000013A: 2,  # Ctrl-C
}
"""NTSTATUS to the signal of the same meaning, from [MS-ERREF]; a missing DLL (0xC0000135) is only
an exit code."""
_CORE = re.compile(r"\s*\(core dumped\)\s*$")


def ended(status: int) -> tuple[int | None, int | None]:
    """
    (exit code, signal) of a status as Python, shells and containers print it.

    -9 is signal 9 without an exit code (Python's `returncode`).  137 is both: the shell's 128+9
    is an exit code that reports a signal of its child.  255 and the numbers past the standard
    signals are only exit codes.  On Windows, where there are no signals, a status of 32 bits,
    also printed as a negative number, says what ended the process.
    """
    if abs(status) > 0xFFFF:
        return status, _OF_WINDOWS.get(status & 0xFFFFFFFF)
    if -_STANDARD <= status < 0:
        return None, -status
    if 128 < status <= 128 + _STANDARD:
        return status, status - 128
    return status, None


def waited(status: int) -> tuple[int | None, int | None]:
    """(exit code, signal) of a wait(2) status, one of them None: 256 is code 1, 9 is signal 9,
    137 is signal 9 with a core dump."""
    low = status & 0x7F
    return ((status >> 8) & 0xFF, None) if low == 0 else (None, low)


def named(word: str) -> int | None:
    """The signal that "SIGKILL", "9", "Killed" or "Segmentation fault (core dumped)" names."""
    text = _CORE.sub("", word.strip())
    if text.isdecimal() and len(text) < 4:
        return int(text) or None
    found = _NAMES.get(text.upper()) or _NAMES.get(f"SIG{text.upper()}")
    return found or WORDS.get(text.lower())
