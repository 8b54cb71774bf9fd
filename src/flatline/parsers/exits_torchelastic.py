"""
torchrun's word on how its workers ended: the agent's lines and the summary at the end.

    E1120 15:47:59 18374 api.py:1002] failed (exitcode: -9) local_rank: 2 (pid: 18397) of ...
    Root Cause (first observed failure):
    [0]:
      time      : 2026-11-20_15:47:59
      host      : gpu07
      rank      : 2 (local_rank: 2)
      exitcode  : -9 (pid: 18397)  (SIGKILL)

`first` marks the entry under "Root Cause", which is only the failure this agent noticed first:
in a hang it is often a victim.  An agent's line names a local rank; it becomes a global one only
where the agent has printed its `global_ranks`.

What the agent ended itself is told apart by the reporter: `CLOSED` for a worker that ended on
the agent's own signal, `FORCED` for one that ignored it and had to be killed, as a stopped or
stuck process does.  Source: torch/distributed/elastic/multiprocessing/{api,errors/__init__}.py,
torch 1.8 to 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from flatline.model import Place
from flatline.parsers import Reported
from flatline.parsers._exits import ended

FORMAT = "exits-torchelastic"
FRAMEWORK = None
TRIGGERS = (
    r"failed \(exitcode: -?[0-9]+\) local_rank: [0-9]+",
    r"failed \(exitcode: -?[0-9]+\) for binary located at ",
    r"global_ranks=\[",
    r"Sending process [0-9]+ closing signal",
    r"Unable to shutdown process [0-9]+ via",
    r"Root Cause\b.{0,40}:",
    r"Failures:\s*$",
    r"\bhost(?:: | : |  {1,7}: )\S",
    r"\brank\s{0,8}: [0-9]+ \(local_rank: [0-9]+\)",
    r"\bexitcode\s{0,8}: -?[0-9]+ \(pid: [0-9]+\)",
)
AGENT, CLOSED, FORCED = "torchelastic", "torchelastic-closed", "torchelastic-forced"
_FAILED = re.compile(
    r"failed \(exitcode: (-?\d{1,9})\) (?:for binary located at \S{1,400} with )?"
    r"local_rank: (\d{1,6}) \((?:pid|process ID): (\d{1,9})\)"
)
_RANKS = re.compile(r"global_ranks=\[([\d, ]{0,2000})\]")
_CLOSING = re.compile(r"Sending process (\d{1,9}) closing signal")
_FORCING = re.compile(r"Unable to shutdown process (\d{1,9}) via")
_SECTION = re.compile(r"^\W*(Root Cause\b.{0,40}|(?:Other )?Failures):\s*$")
_HOST = re.compile(r"^\W*host\s{0,8}: (\S{1,255})\s*$")
_RANK = re.compile(r"^\W*rank\s{0,8}: (\d{1,9}) \(local_rank: \d{1,6}\)")
_EXIT = re.compile(r"(?:^\W*|\))exitcode\s{0,8}: (-?\d{1,9}) \(pid: (\d{1,9})\)")


class Reader:
    """Reads one stream: the agent's signals, and where in the summary a line stands."""

    def __init__(self) -> None:
        self._root = False
        self._host: str | None = None
        self._rank: int | None = None
        self._ranks: tuple[int, ...] = ()
        self._closed: set[int] = set()
        self._forced: set[int] = set()
        self._said: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], None]], ...] = (
            (_SECTION, self._section),
            (_HOST, self._on_host),
            (_RANK, self._on_rank),
            (_CLOSING, lambda found: self._closed.add(int(found[1]))),
            (_FORCING, lambda found: self._forced.add(int(found[1]))),
            (_RANKS, self._on_ranks),
        )

    def feed(self, text: str) -> Iterable[Reported]:
        found = _EXIT.search(text)
        if found is not None:
            return (self._summed(int(found[1]), int(found[2])),)
        found = _FAILED.search(text)
        if found is not None:
            return (self._failed(int(found[1]), int(found[2]), int(found[3])),)
        for pattern, note in self._said:
            found = pattern.search(text)
            if found is not None:
                note(found)
                break
        return ()

    def _section(self, found: re.Match[str]) -> None:
        self._root = found[1].startswith("Root")
        self._host = self._rank = None

    def _on_host(self, found: re.Match[str]) -> None:
        self._host = None if found[1] in ("localhost", "<N/A>") else found[1]

    def _on_rank(self, found: re.Match[str]) -> None:
        self._rank = int(found[1])

    def _on_ranks(self, found: re.Match[str]) -> None:
        self._ranks = tuple(int(rank) for rank in re.findall(r"\d{1,9}", found[1]))

    def _reporter(self, pid: int, signal: int | None) -> str:
        if signal == 9 and pid in self._forced:
            return FORCED
        return CLOSED if signal in (2, 15) and pid in self._closed else AGENT

    def _summed(self, status: int, pid: int) -> Reported:
        """An entry of the summary, whose host and rank stand in the lines before."""
        code, signal = ended(status)
        place = Place(host=self._host, rank=self._rank)
        self._host = self._rank = None
        return Reported(self._reporter(pid, signal), place, code, signal, first=self._root)

    def _failed(self, status: int, local_rank: int, pid: int) -> Reported:
        code, signal = ended(status)
        known = local_rank < len(self._ranks)
        place = Place(rank=self._ranks[local_rank] if known else None)
        return Reported(self._reporter(pid, signal), place, code, signal)
