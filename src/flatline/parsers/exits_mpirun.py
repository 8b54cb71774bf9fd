"""
The word of Open MPI's mpirun and prterun, MPICH's Hydra and Horovod on how a rank ended.

    mpirun noticed that process rank 3 with PID 0 on node gpu1 exited on signal 9 (Killed).
    prterun detected that one or more processes exited with non-zero status, ...
       Process name: [prterun-gpu1-147515@1,3]
       Exit code:    1
    =   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
    =   RANK 1 PID 65033 RUNNING AT gpu1
    =   KILLED BY SIGNAL: 9 (Killed)
    Process 3 exit with status code 137.

Open MPI names the first process it noticed, hence `first`; it wraps its sentences, so the signal
may stand on the next line.  Hydra's `EXIT CODE: 9` is signal 9 or exit code 9; it is given as a
code, and once more as a signal where Hydra's exit string names that same signal.
Source: PRRTE help-prun.txt, Open MPI help-orterun.txt, MPICH src/pm/hydra,
horovod/runner/gloo_run.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from flatline.model import NOWHERE, Place
from flatline.parsers import Reported
from flatline.parsers._exits import ended

FORMAT = "exits-mpirun"
FRAMEWORK = None
TRIGGERS = (
    r"noticed that process rank [0-9]+",
    r"(?:^|[ :\]])(?:exited )?(?:on )?signal [0-9]+ \([A-Z]",
    r"exited due to process rank [0-9]+",
    r"Process name: +\[",
    r"Exit code: +[0-9]+",
    r"MPI_ABORT was invoked on rank [0-9]+",
    r"[Ee]rrorcode:? -?[0-9]+",
    r"[0-9] RUNNING AT ",
    r"\s(?:KILLED BY SIGNAL|EXIT CODE): [0-9]",
    r"TERMINATED WITH THE EXIT STRING: ",
    r"Process [0-9]+ exit with status code -?[0-9]+",
)
_NOTICED = re.compile(
    r"(\w{0,8}(?:mpirun|mpiexec|orterun|prterun|prun)) noticed that process rank (\d{1,9})"
    r"(?: with PID \d{1,12})?(?: on node (\S{1,255}))?"
)
_ON_SIGNAL = re.compile(r"exited on signal (\d{1,3})\b")
_REST = re.compile(
    r"^\W*(?:(?:on )?node (\S{1,255}) |(\S{1,255}) (?=exited on))?"
    r"(?:exited )?(?:on )?signal (\d{1,3})\b"
)
_DUE = re.compile(
    r"exited due to process rank (\d{1,9}) with PID \d{1,12} on(?: node (\S{1,255}))?"
)
_NAME = re.compile(r"Process name:\s{1,12}\[\S{1,300},(\d{1,9})\]")
_CODE = re.compile(r"^\W*Exit code:\s{1,12}(\d{1,9})")
_ABORT = re.compile(r"MPI_ABORT was invoked on rank (\d{1,9})")
_ERRORCODE = re.compile(r"[Ee]rrorcode:? (-?\d{1,9})")
_RUNNING = re.compile(r"(?:RANK (\d{1,9}) )?PID \d{1,12} RUNNING AT (\S{1,255})")
_HYDRA_SIGNAL = re.compile(r"KILLED BY SIGNAL: (\d{1,3})")
_HYDRA_CODE = re.compile(r"=\s{1,8}EXIT CODE: (\d{1,9})")
_HYDRA_STRING = re.compile(r"TERMINATED WITH THE EXIT STRING: .{1,80}\(signal (\d{1,3})\)")
_HOROVOD = re.compile(r"Process (\d{1,9}) exit with status code (-?\d{1,9})")
Answer = tuple[Reported, ...]


class Reader:
    """Reads one stream; a message of several lines is put together."""

    def __init__(self) -> None:
        self._noticed: tuple[str, int, str | None] | None = None
        self._place: Place = NOWHERE
        self._aborting: Place | None = None
        self._hydra_code: int | None = None
        self._said: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Answer]], ...] = (
            (_DUE, self._due),
            (_NAME, self._name),
            (_CODE, self._code),
            (_ABORT, self._abort),
            (_ERRORCODE, self._errorcode),
            (_RUNNING, self._running),
            (_HYDRA_SIGNAL, self._hydra_signal),
            (_HYDRA_CODE, self._hydra_exit),
            (_HYDRA_STRING, self._hydra_string),
            (_HOROVOD, self._horovod),
        )

    def feed(self, text: str) -> Iterable[Reported]:
        noticed = _NOTICED.search(text)
        if noticed is not None:
            self._noticed = (noticed[1], int(noticed[2]), noticed[3])
            found = _ON_SIGNAL.search(text, noticed.end())
            return self._on_signal(int(found[1]), None) if found else ()
        if self._noticed is not None:
            found = _REST.search(text)
            if found is not None:
                return self._on_signal(int(found[3]), found[1] or found[2])
            self._noticed = None
        for pattern, answer in self._said:
            found = pattern.search(text)
            if found is not None:
                return answer(found)
        return ()

    def _on_signal(self, signal: int, host: str | None) -> Answer:
        if self._noticed is None:
            return ()
        reporter, rank, known = self._noticed
        self._noticed = None
        place = Place(host=known or host, rank=rank)
        return (Reported(reporter, place, signal=signal or None, first=True),)

    def _due(self, found: re.Match[str]) -> Answer:
        return (Reported("mpirun", Place(host=found[2], rank=int(found[1])), first=True),)

    def _name(self, found: re.Match[str]) -> Answer:
        self._place = Place(rank=int(found[1]))
        return ()

    def _code(self, found: re.Match[str]) -> Answer:
        place, self._place = self._place, NOWHERE
        if place is NOWHERE:
            return ()
        return (Reported("mpirun", place, *ended(int(found[1])), first=True),)

    def _abort(self, found: re.Match[str]) -> Answer:
        self._aborting = Place(rank=int(found[1]))
        return self._errorcode(code) if (code := _ERRORCODE.search(found.string)) else ()

    def _errorcode(self, found: re.Match[str]) -> Answer:
        place, self._aborting = self._aborting, None
        return (Reported("MPI_Abort", place, exit_code=int(found[1])),) if place else ()

    def _running(self, found: re.Match[str]) -> Answer:
        self._place = Place(host=found[2], rank=int(found[1]) if found[1] else None)
        self._hydra_code = None
        return ()

    def _hydra_signal(self, found: re.Match[str]) -> Answer:
        return (Reported("hydra", self._place, signal=int(found[1]) or None),)

    def _hydra_exit(self, found: re.Match[str]) -> Answer:
        status = int(found[1])
        self._hydra_code = status
        code, signal = ended(status >> 8 if status >= 256 and status % 256 == 0 else status)
        return (Reported("hydra", self._place, code, signal),)

    def _hydra_string(self, found: re.Match[str]) -> Answer:
        signal, code = int(found[1]), self._hydra_code
        self._hydra_code = None
        return (Reported("hydra", self._place, signal=signal),) if signal == code else ()

    def _horovod(self, found: re.Match[str]) -> Answer:
        return (Reported("horovod", Place(rank=int(found[1])), *ended(int(found[2]))),)
