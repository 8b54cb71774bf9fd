"""
What an exception that no signature knows says in its own words: that memory was short, that a peer
was lost, waited for in vain or never came, or that storage did not serve.

Such words are not the program's fault, whichever library speaks them.  How much they say depends
on what they leave open: whose memory it was, whether the peer died or the path to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from flatline.model import Crash

SAID, HALF_SAID, OPEN = 0.7, 0.6, 0.25
"""What was short is named; it is not, or what failed for it may be a program's own; who was lost,
and why, is left open, so that it decides nothing."""
MOST = 300
"""Characters of a message: what follows is advice and the state of the program."""

_MEMORYS = re.compile(r"OutOf(?:\w{1,8})?Memory\w{0,12}$|ResourceExhaustedError$")
_OF_NAMES = re.compile(r"(?:Key|Attribute|Import|ModuleNotFound|Name|Type|Syntax)Error$")
"""What they say are names of the program's, of its settings and its packages."""
_MEMORY = re.compile(
    r"\bout[ _-]of[ _-](?:\w{1,12}[ _-])?memory\b|\bOOM\b|RESOURCE_EXHAUSTED|_OUT_OF_\w{0,8}MEMORY"
    r"|\bmemory\b.{0,20}\b(?:not (?:be )?enough|insufficient|exhausted)"
    r"|\b(?:not enough|insufficient) (?:\w{1,12} ){0,2}memory\b"
    r"|\bmemory (?:\w{1,12} )?allocation (?:\w{1,12} )?fail"
    r"|\balloc\w* (?:\w{1,12} )?memory\b.{0,40}\bfail"
    r"|\b(?:failed to|unable to|could(?: not|n't)|can(?:not|'t)) allocate\b.{0,40}"
    r"(?:\bmemory\b|\bbytes\b|\d ?[KMGT]i?B\b|\btensor|\bbuffer|\bworkspace)",
    re.IGNORECASE,
)
_CARD = re.compile(r"(?i)\b(?:GPU|CUDA|HIP|ROCm|XPU|NPU|TPU|VRAM|HBM|device)|CUDA_|cuMem")
_NOT_THE_CARDS = re.compile(
    r"(?i)\bhost\b|\bCPU\b|shared.?memory|/dev/shm|pinned|\bswap\b|\bheap\b|\bJava\b|\bstack\b|Errno"
    r"|\bquota\b|\b429\b|\brate\b|\bspace\b|\bdisk\b|open files|\blarger than\b|\bthreads?\b"
    r"|\bmmap\b|\bkilled\b|\bvirtual\b|\bsockets?\b|\bports?\b|\bslots?\b|\bqueue"
    r"|sqlite|\bdatabase\b|\bsql\b|duckdb|polars|spark|\bdask\b"
)
_AT_THE_HOSTS = re.compile(r"(?i)\bcpu(?:_\w{1,20})?\.(?:cc|cpp)\b|alloc_cpu|device:CPU")
"""Where the program's source says that it was, below."""
_SUPPOSES = re.compile(
    r"(?i)\b(?:if|avoid\w*|prevent\w*|unless|might|would|could(?! not)|until|unknown|invalid"
    r"|unrecognized|unexpected) [^.;]{0,80}$"
)
"""What stands before words that tell of no event."""
_LOSSES = re.compile(r"(?:ConnectionReset|ConnectionAborted|BrokenPipe)Error$")
_LOST = re.compile(
    r"\bconnection (?:\S{1,60} ){0,4}(?:reset|closed|aborted|lost|dropped)\b|\bbroken pipe\b"
    r"|\bsocket (?:\w{1,8} ){0,2}closed\b|\bECONNRESET\b|\bEPIPE\b|\bErrno (?:32|103|104)\]"
    r"|\b(?:peer|remote (?:process|worker|host|end))\b.{0,30}"
    r"\b(?:reset|closed|gone|died|exited|disconnected|terminated|unresponsive)\b",
    re.IGNORECASE,
)
_IN_VAIN = re.compile(
    r"\b(?:timed[ -]out|deadline(?: was)? exceeded|time-?out (?:expired|reached|after|of \d))\b"
    r"|\bno (?:answer|response|heartbeat) from\b",
    re.IGNORECASE,
)
_BETWEEN_RANKS = re.compile(
    r"/(?:torch/distributed|torch/csrc/distributed|horovod|byteps|mpi4py|chainermn|oneccl\w*|gloo"
    r"|tensorflow/python/distribute|paddle/distributed|mindspore/communication|deepspeed/comm)\b"
    r"|\b(?:gloo|c10d|nccl|rccl|hccl|oneccl|ucx|mpi)/|\btransport/\w{1,8}/"
    r"|\b(?:all_?reduce|all_?gather\w{0,12}|reduce_?scatter\w{0,12}|broadcast\w{0,8}|barrier)\b"
)
_NEVER_CAME = re.compile(
    r"\b(?:tasks?|workers?|ranks?|process(?:es)?|nodes?|peers?|hosts?|participants?|members?)\b.{0,60}"
    r"\b(?:never|not yet|(?:did|have|has)(?: not|n't)|failed to) (?:register|join|check in|show up"
    r"|connect(?:ed)? (?:in time|within|to the (?:coordinat|master|rendezvous|store|tracker)))"
    r"|\bwaiting for (?:all |other |the |more ){0,2}(?:\w{1,12} )?"
    r"(?:tasks|workers|ranks|processes|nodes|peers|participants|members) to "
    r"(?:register|join|connect|check in|arrive)\b",
    re.IGNORECASE,
)
_STORAGE = re.compile(
    r"\bno space left on device\b|\bdisk quota exceeded\b|\bstale (?:\w{1,4} )?file handle\b"
    r"|\binput/output error\b|\bread-only file ?system\b|\btransport endpoint is not connected\b"
    r"|\bremote I/O error\b|\bErrno (?:5|28|30|107|108|116|121|122)\]|\bdisk (?:is )?full\b",
    re.IGNORECASE,
)
_SHARED = re.compile(r"(?i)/dev/shm|shared.?memory|/torch_\d|\bshm\b|\binotify\b")
"""Memory that looks like a file, and what else a kernel has no room for."""


@dataclass(frozen=True, slots=True)
class Told:
    """The family, empty for whichever the phase gives; how strongly at most; and the class, of an
    exception after the first step."""

    family: str
    strength: float
    late_class: str | None = None


def short_of_memory(crash: Crash) -> bool:
    """Whether it says that an allocation failed, of a card or of what it does not say."""
    said = _said(crash)
    told = _MEMORY.search(said)
    event = told is not None and _SUPPOSES.search(said[: told.start()]) is None
    return event or _MEMORYS.search(crash.exception) is not None


def names_a_card(crash: Crash) -> bool:
    """Whether it says that the memory was a GPU's, or that of another accelerator."""
    return _CARD.search(f"{crash.exception}: {_said(crash)}") is not None


def by_words(crash: Crash, begun: bool | None = None) -> Told | None:
    """What the words tell of, in a phase; None where they tell of nothing of the kind."""
    said = _said(crash)
    if _OF_NAMES.search(crash.exception):
        return None
    if _NEVER_CAME.search(said):
        return Told("" if begun else "C1", HALF_SAID)
    if _STORAGE.search(said):
        return Told("" if _SHARED.search(said) else "C6", HALF_SAID)
    if _LOSSES.search(crash.exception) or _LOST.search(said) or _IN_VAIN.search(said):
        return Told("", OPEN if _among_ranks(crash, said) else HALF_SAID, "io")
    if short_of_memory(crash):
        others = _NOT_THE_CARDS.search(f"{crash.exception}: {said}")
        if others or _AT_THE_HOSTS.search(crash.message):
            return Told("", HALF_SAID)
        return Told("B1", SAID if names_a_card(crash) else HALF_SAID)
    return None


def _said(crash: Crash) -> str:
    return crash.message[:MOST].partition("\n")[0]


def _among_ranks(crash: Crash, said: str) -> bool:
    near = (
        f"{f.file.replace(chr(92), '/')} {f.function} {f.code or ''}" for f in crash.frames[-3:]
    )
    return any(map(_BETWEEN_RANKS.search, (said, *near)))
