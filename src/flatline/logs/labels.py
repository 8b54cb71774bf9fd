"""
Which process said a line: the labels launchers put before it, and the prefixes programs print.

A *label* is what a launcher or collector puts before every line it passes on; labels nest in any
order and are taken off.  Those that can be mistaken for text (`3: `, `worker-1: `) count only
where the file as a whole is labelled so, which `Labels.learn` finds out.  A *prefix* such as
`[rank2] INFO` is the program's own and stays in the text.  Nothing is derived: a local rank is
not made a rank, an address not a host name; the caller decides, who knows more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import overload

from flatline.logs.labelling import BOXED, FEWEST, HOST, NO_LABEL, STAMP, TASK, Kinds, learn, shape
from flatline.logs.layout import layouts
from flatline.logs.places import NamePlace, place_of_name
from flatline.logs.reading import clean
from flatline.model import NOWHERE, Place

__all__ = ["Labelled", "Labels", "NamePlace", "place_of_name"]

NESTED = 6
_T = slice(10, 11)
"""Where a collector's stamp has its `T`; told faster than by its pattern."""
CUT_BYTES = 1000
"""slurmstepd passes a longer line on in messages of 1,024 bytes (`SLURM_IO_MAX_MSG_LEN`); what
cleaning and inner labels take off is allowed for."""
MOST_PLACES = 1 << 16
OWN_WITHIN = 160
"""Prefixes of loggers end here; what follows is the message."""

_BRACKET = re.compile(
    r"\[(?:"
    r"(?:[\w.-]{1,80}@)?\d{1,9},(?P<mpi>\d{1,6})\]<std(?:out|err|diag)>:?"  # Open MPI, PRRTE
    r"|\d{1,9},mpirank:(?P<sage>\d{1,6}),(?P<algo>[\w.-]{1,63})\]<std(?:out|err|diag)>:?"
    r"|(?P<gloo>\d{1,6})\]<std(?:out|err)>:?"  # horovodrun
    r"|rank(?P<rank>\d{1,6})\]:(?: |$)?"  # torch's exception hook and c10d
    r"|(?P<role>[A-Za-z_]{1,24})(?P<local>\d{1,6})\]:"  # torchrun --tee
    r"|(?P<pod>pod/[\w./-]{1,200})\](?: |$)"  # kubectl logs --prefix
    r"|(?:epi|pro)log (?P<hook>[A-Za-z][\w.-]{0,80})\]:?(?: |$)"  # what sites call their hooks
    r"|(?!(?i:rank|gpu|task|proc|worker)[_-]?\d{1,2}\])(?P<checked>(?=[\w.-]*\d)[A-Za-z][\w.-]{0,80})"
    r"\] (?=(?:dmesg|kernel|journalctl|nvidia-smi|dcgmi|rocm-smi|amd-smi|ibstat|ipmitool): )"
    r"|(?P<since>\d{4}-\d\d-\d\dT[\d:.]{8,18}Z)\] {1,12}(?:(?P<container>[0-9a-f]{8}) {1,4})?"
    r"(?:\[rank=(?P<of>\d{1,6})\] )?\|\|(?: |$)"  # det trial logs, det task logs
    r"|(?P<bare>\d{1,6})\](?: |$)"  # mpiexec -l, -prepend-rank
    r")"
)
_MPI_STAMP = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}"
    r"(?=\[(?:\d{1,9},)?\d{1,6}\]<std)"
)
"""mpirun --timestamp-output, horovodrun -prefix-timestamp: right before the label."""
_RAY = re.compile(
    r"\((?P<actor>[A-Za-z_][\w.<>:()+-]{0,80} )?pid=(?P<pid>\d{1,10})"
    r"(?:, ip=(?P<ip>[\w.:-]{1,64}))?\)(?: |$)"
)
_LABELS = (_BRACKET, _RAY, HOST, TASK, STAMP, BOXED)
_NCCL = re.compile(
    r"(?:\[[\d: .-]{10,29}\] )?(?P<host>[A-Za-z0-9][\w.-]{0,252}):(?P<pid>\d{1,10}):\d{1,10} "
    r"\[(?P<gpu>\d{1,3})\] (?:\S{1,80}:\d{1,6} )?[NR]?CCL (?:INFO|WARN|TRACE|VERSION)"
)
_SYSLOG = re.compile(
    r"(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?) "
    r"(?P<host>[A-Za-z0-9][\w.-]{0,252}) "
    r"(?:kernel|slurm(?:d|stepd|ctld|dbd)|nvidia-[\w-]{1,30}|nv-[\w-]{1,30}|dcgm[\w-]{0,30}"
    r"|systemd(?:-\w{1,30})?|rasdaemon|mcelog|ipmi\w{0,20}|opensm|NetworkManager|rpc[\w.-]{1,20}"
    r"|mmfs\w{0,20}|containerd|dockerd|kubelet|earlyoom|chronyd|sshd|auditd)"
    r"(?:\[\d{1,10}\])?: "
)
"""Lines of syslog and journalctl, by daemons that run on nodes: a program's own
`2026-03-02T04:10:58 INFO main:` has the same shape."""
_OWN = re.compile(
    r"\[(?:(?:[Rr]ank|RANK)(?:[ :=_-]| {2,4})?(\d{1,6})(?:/\d{1,6})?"
    r"(?:, ?(?!ranks?\b)[A-Za-z]\w{0,30}[ =:]{1,2}[^\[\],]{0,60}\d[^\[\],]{0,40})?"
    r"|PG [^\[\]]{0,120}\(default_pg\) Rank (\d{1,6}))\]"
    r"|\b(?:rank|RANK)=(\d{1,6})(?=[\s,|]|$)"
)
_PROCESS = re.compile(r"\[p(\d{1,6})\](?: |$)")
_LOGGER = re.compile(
    r"(?:(?:\[[^\[\]]{0,120}\]|\([^()]{0,120}\)|[IWEF]\d{3,4}\b|[\w./-]{1,80}:\d{1,6}\]"
    r"|[\d:.,/TZ+-]+|[A-Z]{4,8}\b|[\w.]{1,60}:|(?<=\| )[\w.]{1,60}(?= \|)|-|\|)[:|]?\s*+)*+"
)
_LINE_START = re.compile(
    r"[\[({]|\d{4}[-/]\d\d|\d\d:\d\d|[IWEF]\d{3,4} |[A-Z]{4,8}\b|Traceback |  File "
)


@dataclass(frozen=True, slots=True)
class Labelled:
    """
    A line without its labels, and what they say.

    Two lines have the same `key` where one process said both, as far as their labels tell.
    `place.rank` and `place.task` are what was printed as such; `local_rank` counts within a node
    and is a rank only in a run that has one node.
    """

    place: Place
    text: str
    key: str
    local_rank: int | None = None


class _Found:
    """What the labels of one line said so far."""

    __slots__ = ("gpu", "host", "keys", "local", "rank", "stamped", "task")

    def __init__(self) -> None:
        self.host: str | None = None
        self.gpu: str | None = None
        self.rank: int | None = None
        self.task: int | None = None
        self.local: int | None = None
        self.stamped = False
        self.keys: list[str] = []


QUOTED = "> "
KEPT_BEHIND, MOSTLY, HEAD_LINES = ("# ", QUOTED, "    "), 0.95, 20
"""One of these before so many of the lines: a log that was kept in a program's source, quoted in
a mail, or pasted as an issue's indented block."""
_NAMED = re.compile(r"(?:[A-Za-z0-9][\w.-]{0,62}[-_]\d{1,3} {1,40}\||std(?:err|out):)(?: |$)")
"""What `docker compose logs` puts before each line, the container's name, padded; or the stream
that a runner collected it from."""
_RUN_PL = re.compile(r"# (?:Started at|Running on|Ended \(code|Accounting:) ")
"""Kaldi's launcher writes so itself; of a job that printed nothing there is nothing else."""


def _kept_behind(lines: Sequence[str]) -> str:
    head = [line for line in lines[:HEAD_LINES] if line]
    named = _NAMED.match(head[-1]) if head else None
    if named is None and 2 * sum(line[0] in "#> " for line in head) < len(head):
        return ""  # most files, told in no time
    said = [line for line in lines if line.strip(" #>")]
    if len(said) < 2 or any(map(_RUN_PL.match, said)):
        return ""
    marks = KEPT_BEHIND if named is None else (named[0].rstrip(),)
    return next((mark for mark in marks if _behind(said, mark)), "")


def _behind(said: Sequence[str], mark: str) -> bool:
    """Whether so many lines stand behind it; what is quoted may have a heading that is not."""
    begins = (n for n, line in enumerate(said) if line.startswith(mark))
    rest = said[next(begins, 0) if mark == QUOTED else 0 :]
    marked = sum(line.startswith(mark) for line in rest)
    return marked >= MOSTLY * len(rest) and 2 * marked >= len(said)


def _off(line: str, mark: str) -> str:
    rest = line.removeprefix(mark)
    return rest.removeprefix(" ") if mark[-1] in "|:" and line.startswith(mark) else rest


WIDEST_BYTES = 4 << 10


class Bared(Sequence[str]):
    """Raw lines without their labels, each worked out where it is asked for.

    What is asked of lines around another is how they begin and end: the midst of one of more than
    4 KiB is left out.
    """

    def __init__(self, labels: Labels, raw: Sequence[bytes]) -> None:
        self.raw, self._labels = raw, labels

    def __len__(self) -> int:
        return len(self.raw)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Bared: ...
    def __getitem__(self, at: int | slice) -> str | Bared:
        if isinstance(at, slice):
            return Bared(self._labels, self.raw[at])
        raw = self.raw[at]
        if len(raw) > WIDEST_BYTES:
            raw = raw[: WIDEST_BYTES // 2] + b" ... " + raw[-WIDEST_BYTES // 2 :]
        return self._labels.split(clean(raw)).text


_OF_WORLD = re.compile(
    r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]{4,8} \[[\w.]{1,60}\.py:\d{1,6}\] "
    r"\((\d{1,5})/(\d{1,5})\) "
)
"""icefall's `setup_logger`: rank and world size behind the place in the program."""


class Labels:
    """
    Takes the labels of one file off its lines.

    `[Rank 3]` in a line of c10d is a rank of its process group: of torch up to 2.2 nothing says
    which group, so it is believed only where no label names a rank; later versions name the
    group, and only the default one counts.
    """

    def __init__(
        self, kinds: Kinds | None = None, *, syslog: bool = False, behind: str = ""
    ) -> None:
        self._kinds = kinds or Kinds()
        self._syslog = syslog
        self._behind = behind
        self._places: dict[tuple[str | None, str | None, int | None, int | None], Place] = {}
        self._first = None if self._kinds.hosts or self._kinds.widths else frozenset("[(12")

    @classmethod
    def learn(cls, sample: Iterable[str], same: Sequence[bytes] | None = None) -> Labels:
        """What a file is labelled with, from cleaned lines of its head, middle and tail; `same`
        are their layouts, where they are known."""
        lines = [line.partition("\r")[0] for line in sample]
        behind = _kept_behind(lines)
        if behind:
            lines = [_off(line, behind) for line in lines]
        same = same or layouts(lines)
        alike = dict(zip(same, lines, strict=True))
        none = {key for key, line in alike.items() if not any(p.match(line) for p in _LABELS)}
        said = zip(same, lines, strict=True)
        lines = [NO_LABEL if key in none else line for key, line in said if line.strip()]
        kinds = Kinds()
        rounds = 3 if sum(map(bool, lines)) >= FEWEST else 0  # most files, told in no time
        for _ in range(rounds):  # a label within a label shows once the outer one is off
            labels = cls(kinds)
            bare = [line and labels._bare(line) for line in lines]
            pairs = zip(lines, bare, strict=True)
            more = learn([rest for line, rest in pairs if not line or rest.strip()], kinds)
            if more == kinds:
                break
            kinds = more
        syslog = any(map(_SYSLOG.match, alike.values()))
        return cls(kinds, syslog=syslog, behind=behind)

    def split(self, text: str, head: str = "") -> Labelled:
        """
        A cleaned line, or segment of one, without its labels.

        `head` is the beginning of the physical line where `text` is a later segment of it: the
        label before the first segment holds for all.
        """
        found = _Found()
        if self._behind:
            text, head = _off(text, self._behind), _off(head, self._behind)
        if head:
            self._strip(head, found)
        rest = self._strip(text, found)
        if self._syslog and found.host is None and (match := _SYSLOG.match(text)):
            found.host = match["host"]
            found.keys.append(match["host"])
        self._own(rest, found)
        if not found.keys:
            return Labelled(NOWHERE, rest, "")
        keys = found.keys
        key = keys[0] if len(keys) == 1 else "/".join(dict.fromkeys(keys))
        return Labelled(self._place(found), rest, key, found.local)

    def continues(self, previous: Labelled, this: Labelled) -> bool:
        """
        Whether `this` is the rest of the line that `previous` began.

        slurmstepd hands a line of more than 1,024 bytes to srun in messages of that size, and
        srun labels each message and ends it with a newline of its own.  So the first part has
        1,024 bytes, inner labels included, and the rest comes without them.  With
        `srun --unbuffered` a line may be cut anywhere; such cuts cannot be told from line ends
        and are left as they are.
        """
        if not 0 < CUT_BYTES <= len(previous.text.encode("utf-8", "replace")) <= 1024:
            return False
        if this.key != previous.key and not previous.key.startswith(this.key + "/"):
            return False
        return bool(self._kinds.widths) and not _LINE_START.match(this.text)

    def _place(self, found: _Found) -> Place:
        what = (found.host, found.gpu, found.rank, found.task)
        place = self._places.get(what)
        if place is None:
            if len(self._places) >= MOST_PLACES:
                self._places.clear()
            host, gpu, rank, task = what
            place = self._places[what] = Place(host=host, gpu=gpu, rank=rank, task=task)
        return place

    def _bare(self, text: str) -> str:
        first = text[:1]
        if self._first is not None and (
            first not in self._first or (first in "12" and text[_T] != "T")
        ):
            return text
        return self._strip(text, _Found())

    def _strip(self, text: str, found: _Found) -> str:
        for _ in range(NESTED):
            first = text[:1]
            if first in "MTWFS" and (stamp := _MPI_STAMP.match(text)):
                text, first = text[stamp.end() :], "["
            if first == "[":
                rest = self._bracket(text, found)
            elif first == "(":
                rest = self._ray(text, found)
            elif first.isalpha() and not (first == "P" and self._kinds.widths):
                rest = self._host(text, found)
            else:
                rest = self._task(text, found)
                rest = self._host(text, found) if rest is None else rest
            if rest is None:
                return text
            text = rest
        return text

    def _bracket(self, text: str, found: _Found) -> str | None:
        match = _BRACKET.match(text)
        if match is None:
            return self._boxed(text, found)
        kind = match.lastgroup
        if kind == "local":
            if match["role"] not in self._kinds.roles:
                return None
            found.local = int(match["local"])
            found.keys.append(f"{match['role']}{found.local}")
        elif kind == "algo":
            found.host = match["algo"]
            self._rank(int(match["sage"]), found)
        elif kind in ("hook", "checked"):
            found.host = found.host or match[kind]
            found.keys.append(match[kind])
        elif kind == "pod":
            found.keys.append(match["pod"])
            found.host = found.host or match["pod"].split("/")[1]
        elif kind in ("since", "container"):
            found.keys += filter(None, [match["container"]])
        elif kind == "bare" and not self._kinds.bare:
            return None
        else:
            said = (match[one] for one in ("rank", "mpi", "gloo", "of", "bare"))
            self._rank(int(next(filter(None, said))), found)
        return text[match.end() :]

    def _boxed(self, text: str, found: _Found) -> str | None:
        """Once: what a program dates its line with is left."""
        match = BOXED.match(text) if self._kinds.boxed and not found.stamped else None
        found.stamped |= match is not None
        return None if match is None else text[match.end() :]

    @staticmethod
    def _rank(rank: int, found: _Found) -> None:
        if found.rank is None:
            found.rank = rank
            found.keys.append(f"r{rank}")

    def _ray(self, text: str, found: _Found) -> str | None:
        match = _RAY.match(text)
        if match is None:
            return None
        found.host = match["ip"] or found.host
        found.keys.append(f"{(match['actor'] or '').strip()}({match['pid']}@{match['ip'] or ''})")
        return text[match.end() :]

    def _host(self, text: str, found: _Found) -> str | None:
        if not self._kinds.hosts or found.host is not None:
            return None
        match = HOST.match(text)
        if match is None:
            return None
        name = match[1]
        kind = shape(name)
        if name not in self._kinds.hosts and ("#" not in kind or kind not in self._kinds.hosts):
            return None
        if kind == "rank#":
            self._rank(int(name[4:]), found)
        else:
            found.host = name
            found.keys.append(name)
        return text[match.end() :]

    def _task(self, text: str, found: _Found) -> str | None:
        if self._kinds.widths and found.task is None:
            match = TASK.match(text)
            if match is not None and len(match[2]) in self._kinds.widths:
                found.task = int(match[2])
                group = f"P{match[1]}" if match[1] else ""
                found.keys.append(f"{group}t{found.task}")
                return text[match.end() :]
        if text[:1] in ("1", "2") and text[_T] == "T":
            match = STAMP.match(text)
            if match is not None and (self._kinds.stamps or match[1]):
                return text[match.end() :]
        return None

    def _own(self, text: str, found: _Found) -> None:
        """What the program itself says of its place at the beginning of the line."""
        if "CCL " in text[:400] and (match := _NCCL.match(text)):
            found.host, found.gpu = match["host"], match["gpu"]
            found.keys.append(f"{match['host']}:{match['pid']}")
            return
        if text.startswith("[p") and (match := _PROCESS.match(text)):
            if found.task is None:
                found.task = int(match[1])
            found.keys.append(f"p{match[1]}")
            return
        start = text[:OWN_WITHIN]
        if found.rank is None and "] (" in start and (match := _OF_WORLD.match(text)):
            if int(match[1]) < int(match[2]):
                self._rank(int(match[1]), found)
            return
        if found.rank is None and ("ank" in start or "RANK" in start):
            match = _OWN.search(start)
            if match is not None and _LOGGER.fullmatch(start, 0, match.start()):
                self._rank(int(match[1] or match[2] or match[3]), found)
