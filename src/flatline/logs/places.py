"""What the name of a log says of the process that wrote it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NamePlace:
    """What a path says; None is "not said". `attempt` is torchrun's, counted from 0."""

    rank: int | None = None
    local_rank: int | None = None
    task: int | None = None
    host: str | None = None
    attempt: int | None = None


PREVIOUS = re.compile(r"(?i)[._-]prev(?:ious)?(?=\.[a-z]{2,6}$|$)")
"""Of a log of the container before the one that runs."""
_ELASTIC = re.compile(r"(?:^|/)attempt_(\d{1,4})/(\d{1,6})/(?:stdout|stderr|error)\b[^/]*$")
_RANK = re.compile(
    r"(?:^|(?P<before>[A-Za-z]*)[._-])(?:(?P<local>local)[_-]?)?rank[_-]?(?P<number>\d{1,6})"
    r"(?=[._-]|$)",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"^(?:p|proc|process|task|jax_process)[_-]?(\d{1,6})$|^task[_-]?(\d{1,6})_(?=\w*-)(?=[\w-]*\d)"
    r"|^(?:worker|process)-(\d{1,6})-(?=[a-z])(?=[\w.-]*-)(?=[\w.-]*\d)",
    re.IGNORECASE,
)
_HOST = re.compile(r"^(?:host|hostname)[._-]([A-Za-z0-9][A-Za-z0-9.-]{0,252})$")
_SLURMD = re.compile(r"^slurmd[._-]([A-Za-z][A-Za-z0-9.-]{0,252}?)\.log$")
_KERNEL_WORD = r"(?:dmesg|kern|kernel|kmsg|journal|journalctl|syslog|messages)"
_KERNEL_OF = re.compile(
    rf"^(?:{_KERNEL_WORD}(?:-T)?[._-](?P<behind>.+)|(?P<before>.+)[._-]{_KERNEL_WORD}(?:-T)?)$"
)
_OF_A_KERNEL = re.compile(r"(?:^|[/._-])(?:dmesg|kern|kernel|kmsg)(?:[/._-]|$)")
_DATE = re.compile(r"[._-]20\d\d-?[01]\d-?[0-3]\d(?:[T._-]?\d{4,6}Z?)?$")
"""Behind the name of a host: when its log was taken."""
_HOST_FOLDER = re.compile(rf"(?:^|/)(?:hosts|nodes|{_KERNEL_WORD})/(?P<host>[^/]+?)(?:/|$)")
_HOST_LIKE = re.compile(
    r"^(?:(?:node|nid|host|gpu|dgx|hgx|worker|compute|cn|server|[abh][1-9]00|gb200|mi[23]\d\d)"
    r"(?:-?[a-z]{0,8})?-?\d{1,6}(?:-\d{1,6}){0,3}|ip(?:-\d{1,3}){4})(?:\.[A-Za-z0-9.-]{1,60})?$"
)
"""What hosts are called, where a file's name is all there is: `with-xid-119`, which may stand
beside `dmesg` as well, is none."""
_RAY_FOLDER = re.compile(r"(?:^|/)ray_logs/([A-Za-z0-9][\w.-]{0,252})/")
_SUFFIX = re.compile(r"(?:\.(?:log|out|err|txt|stdout|stderr|gz|xz|zst|bz2))+$", re.IGNORECASE)
OWNER = re.compile(r"-(?:\d{1,5}|(?:[b-df-hj-np-tv-z2-9]{8,10}-)?[b-df-hj-np-tv-z2-9]{5})$")
"""What a pod's name has behind that of what made it (apimachinery pkg/util/rand)."""
_NOT_GLOBAL = frozenset(("node", "group", "tp", "pp", "dp", "ep", "cp", "data", "model"))


_NAME = r"(?P<{}>(?=[\w.-]{{0,60}}[A-Za-z])(?=[\w.-]{{0,60}}\d)[A-Za-z0-9][\w.-]{{1,252}}?)"
_TOLD_OF = re.compile(
    r"\b(?:hosts?|nodes?|machine|hostname|instance)(?: |=|: ?)['\"]?"
    + _NAME.format("called")
    + r"(?=[\s,;:)\]'\"]|\.?$)"
    r"|\bon (?:the )?" + _NAME.format("on") + r"(?=[\s,;:)\]]|\.?$)"
    r"|(?:^|[\s\])>|])"
    + _NAME.format("before")
    + r"(?=:? (?:NVRM|amdgpu|mlx5|nfs|Lustre|GPU|EDAC|Xid|SXid)\b)"
)
"""Where a line that no kernel wrote says what the host is called that it tells of."""
_KERNEL_SAYS = re.compile(r"\bkernel: |\[ *\d{1,9}\.\d{6}\] ")
_NO_HOST = re.compile(
    r"(?:rank|gpu\W?\d$|cuda|mlx\d|mthca|hfi\d|ib\d|eth\d|en[ospx]\d|bond|step|epoch|task|pid|device|card"
    r"|dev|sd[a-z]\d|nvme|port|pci|nvlink|nvswitch|dcgm|thread|process|v?\d+\.)",
    re.IGNORECASE,
)


def host_told_of(text: str) -> str | None:
    """The host that a line says something of; None also where its kernel says it itself."""
    if _KERNEL_SAYS.search(text):
        return None
    for found in _TOLD_OF.finditer(text):
        name = found["called"] or found["on"] or found["before"]
        if not _NO_HOST.match(name):
            return name
    return None


def place_of_name(relative: str) -> NamePlace | None:
    """
    The place a path within the target names, or None.

    Only what has one meaning counts: `attempt_0/2/stderr.log` is torchrun's local rank 2,
    `rank_3.log` a rank, `p0.log` a process.  `slurm-123_4.out` is element 4 of a job array and
    `log_12_3.out` may be anything, so neither names a place.
    """
    elastic = _ELASTIC.search(relative)
    attempt = int(elastic[1]) if elastic else None
    local = int(elastic[2]) if elastic else None
    rank = task = None
    host = None
    for part in relative.split("/"):
        stem = _SUFFIX.sub("", part)
        for found in _RANK.finditer(part):
            if (found["before"] or "").lower() in _NOT_GLOBAL:
                continue
            if found["local"] or (found["before"] or "").lower() == "local":
                local = int(found["number"])
            else:
                rank = int(found["number"])
        if named := _TASK.match(stem):
            task = int(named[1] or named[2] or named[3])
        if named := _HOST.match(stem) or _SLURMD.match(part):
            host = named[1]
    if named := _RAY_FOLDER.search(relative):
        host = named[1]
    given = None if host else beside_kernel_word(relative)
    if given is not None and _HOST_LIKE.match(given):
        host = given
    place = NamePlace(rank, local, task, host, attempt)
    return place if place != NamePlace() else None


def of_a_kernel(relative: str) -> bool:
    """Whether a file is named as what a kernel wrote."""
    return _OF_A_KERNEL.search(relative) is not None


def beside_kernel_word(relative: str) -> str | None:
    """What may be a host in `dmesg-node02.txt`, `node02.kern.log`, `hosts/node02/dmesg`: dmesg's
    lines name none."""
    folder, _, name = relative.rpartition("/")
    stem = _DATE.sub("", _SUFFIX.sub("", name))
    if found := _KERNEL_OF.match(stem):
        return found["behind"] or found["before"]
    if found := _HOST_FOLDER.search(f"{folder}/" if folder else ""):
        return found["host"]
    return stem if folder.rpartition("/")[2] in ("dmesg", "kern", "kernel") else None
