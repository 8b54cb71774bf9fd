"""What in a text is a name: of a host, a user, a project, a folder, an address."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from flatline.errors import FormatError
from flatline.logs.hostlists import expand

Kind = Literal["HOST", "HOSTS", "DOMAIN", "USER", "PROJECT", "PATH", "IP", "MAIL", "TEXT"]
"""`TEXT` stands for what already looked like a placeholder."""

LEFT, RIGHT = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"
_USER = r"[A-Za-z_][A-Za-z0-9_.-]{0,31}"
_OTHER = r"[A-Za-z0-9][\w.-]{0,63}"
_HOSTS = (
    r"[A-Za-z][\w.-]*(?:\[[0-9,\s-]+\][\w.-]*)?(?:,[A-Za-z][\w.-]*(?:\[[0-9,\s-]+\][\w.-]*)?)*"
)


def _given(keys: str, name: str) -> str:
    """`key=name`, `"key": "name"`, and `key: name` where nothing follows."""
    quote = r"\\{0,2}[\"']"
    return (
        rf"(?<![A-Za-z0-9_-])(?:{keys})(?:{quote})?"
        rf"(?:\s?=\s?(?:{quote})?|\s?:\s?{quote}|:\s(?={name}\s*(?:$|[,;|)])))({name})"
    )


USERS = re.compile(
    r"(?im)" + _given(r"user(?:_?name|_?id)?|owner|login|requeued by", _USER) + r"(?![\w(])"
    rf"|(?<![A-Za-z0-9_])(?:userid|uid|gid|groupid)[=:]\s?(?:[0-9]+\()?({_USER})[()]"
    rf"|(?<![A-Za-z0-9_.@-])({_USER})@(?=[A-Za-z][A-Za-z0-9-]*(?![\w-]*\.[A-Za-z])|\d{{4}}-\d\d-)"
    rf"|~({_USER})(?=/)"
    rf"|/(?:home|export/home)/(?:[A-Za-z]/)?({_USER})(?=/|[\s'\",:)]|$)"
    rf"|/(?:scratch|work|users)/({_USER})(?=/)"
)
PROJECTS = re.compile(
    r"(?im)" + _given(r"(?:slurm_job_)?account|project(?:_?name|_?id)?|(?:wandb_)?entity"
    r"|wandb_project|wckey", _OTHER)
    + rf"|(?<![\w-])(?:--account[= ]|-A )({_OTHER})"
)  # fmt: skip
HOSTS = re.compile(
    r"(?im)" + _given(r"host_?name|node_?name|node_?list|batch_?host|host|node|nodes|instance"
    r"|slurmd_nodename|slurm_job_nodelist|master_addr", _HOSTS)
)  # fmt: skip
LISTED = re.compile(
    r"(?<![A-Za-z0-9_.\[-])[A-Za-z][A-Za-z0-9_-]*\[[0-9]+(?:[-,][0-9]+)*\]"
    r"(?:[A-Za-z0-9_-]*(?:\[[0-9]+(?:[-,][0-9]+)*\])?)*"
)
MAIL = re.compile(
    rf"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{{1,64}}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+{RIGHT}"
)
IPV4 = re.compile(r"(?<![\w.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?!\w|\.[0-9])")
IPV6 = re.compile(
    r"(?<![\w:.])(?=[0-9A-Fa-f:]*::|(?:[0-9A-Fa-f]{1,4}:){7})"
    r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])"
)
NOBODYS_IP = re.compile(r"127\.|0\.0\.0\.0$|255\.255|::1?$")
PATH = re.compile(r"(?<![\w.~/-])(?:~|/)(?:[\w.+@=-]+/)*[\w.+@=-]+/?")
SITE = re.compile(r"(?<=://)(?:[A-Za-z0-9-]+\.)+[A-Za-z][A-Za-z0-9-]*(?![\w.-]*@)")
PUBLIC = ("github.com", "pytorch.org", "huggingface.co", "nvidia.com", "wandb.ai", "python.org",
          "docs.rs", "readthedocs.io", "schedmd.com", "kernel.org")  # fmt: skip
"""Sites of the field, which are nobody's."""
LIBRARY = re.compile(r"/(?:site-packages|dist-packages)(?=/|$)")
SYSTEM = frozenset(
    ("usr", "lib", "lib64", "bin", "sbin", "dev", "proc", "sys", "etc", "run", "boot", "opt",
     "tmp", "var", "__w", "workspace", "root")
)  # fmt: skip
"""Where folders are alike on every machine: what of them is private is so by a name in it."""
ROOTS = frozenset(
    (
        "home",
        "scratch",
        "data",
        "mnt",
        "work",
        "users",
        "lustre",
        "fsx",
        "gpfs",
        "projects",
        "shared",
    )
)
"""Folders that say nothing by themselves."""
NOBODY = frozenset(
    ("root", "nobody", "slurm", "munge", "daemon", "system", "none", "null", "unknown", "true",
     "false", "localhost", "localdomain", "no", "yes", "default", "not", "error", "is", "was",
     "the", "and", "for", "in", "to", "of", "on", "at", "by", "from", "with", "assigned", "n")
)  # fmt: skip
"""Accounts of every system, and words: nobody's name."""
_WORDS = """
abort adam admin app art avg batch bill bin bool build byte bytes cache call cancelled cat chase
checkpoint ci claim class clock cluster code collective completed compute confidence config core
count cpu cuda data dataset date dean debug demo dev device dim dist docker down driver dump ecc
end epoch err errors eval event evidence exception exit exp experiment fabric failed faith
family fault file final fix float found gen gloo gpu gpus grace grad group guest hang head
healthy hello hertz home hope host ib idle image inf info init int jax job jobs json kernel key
killed lab label large layer learning len lib line link linux list llm load log login logs loss
lost lr main map mark master max may mean mem memory min ml mlx mnt model models mpi name nan
nccl net network nlp node nodes none norm normal now nvlink oom ops order out output over part
partition pat path pid pip place point port power print process program project projects python
quantile query rank ranks rate ratio ray rdma reason recv release request research rich rob role
rows run runner running runs sample save scale scope scratch script seconds send seq serial
server service shape shared sigabrt sigkill signal sigterm size source srun start state step
steps storage str string sue sum sxid system tag target task tcp team temp temperature tensor
test tester tests text throttle time timeout tmp tok token tokens tools top torch total trace
traceback train trainer training type ubuntu undetermined unit user users utils val value
verdict version vision wait wandb warn warning watch watts web will work worker workers world
write xid zone
"""
WORDS = frozenset(_WORDS.split())
"""Words that logs, queries and records of training use themselves, and names that are words: a
user or host who is called so is masked only where the text says that it is one."""


HOST_STEMS = frozenset(("node", "nodes", "host", "worker", "compute"))
"""Words of the trade that hosts are called by, with a number behind them."""
NO_NAME = re.compile(
    r"[a-get]\d{1,4}|(?:rank|step|gpu|epoch|layer|cuda|attempt|attempt_|task)\d+", re.I
)
"""Codes of families, evidence ids, and what a program numbers: a text that calls a user or host so
may want them hidden."""


def hosts_in(text: str) -> Iterator[str]:
    """The hosts of Slurm's short form."""
    try:
        yield from expand(text)
    except FormatError:
        return


def columns(text: str) -> Iterator[tuple[Kind, str]]:
    """Names in the columns of sacct's `-P`, by its header."""
    found: dict[int, Kind] = {}
    kinds: dict[str, Kind] = {"user": "USER", "account": "PROJECT", "nodelist": "HOST",
                              "wckey": "PROJECT"}  # fmt: skip
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 3:
            continue
        if "jobid" in (header := [cell.lower() for cell in cells]):
            found = {n: kinds[name] for n, name in enumerate(header) if name in kinds}
            continue
        yield from ((kind, cells[n]) for n, kind in found.items() if n < len(cells) and cells[n])


def any_of(names: Iterable[str]) -> str:
    """Longest first: a name may begin another."""
    return "|".join(map(re.escape, sorted(names, key=lambda name: (-len(name), name))))
