"""
Words of a log and of a report, as the search compares them.

Log text is no prose: `torch.distributed.DistBackendError` is one name and four words,
`0x7fbacdf3` and `1800000` are none.  A name with a structure is kept whole as well as in its parts
(at `_`, `.`, `::` and where the case changes); numbers, addresses and placeholders are dropped but
for those that name an error (`Xid 79`, `errno 116`, `exitcode: -9`, `failure 802`); two words that
others write as one (`data loader`) are that one too; words of one meaning, as users say it
(`stuck`, `frozen`) and as programs do (`deadlock`), share a token.
"""

from __future__ import annotations

import re
from functools import lru_cache

MOST_TOKENS = 400
"""Of a query: a log excerpt of a few hundred lines has no more that tell it from others."""
MOST_LINES = 60
"""Lines of an excerpt that are asked with, those that speak of trouble first."""

_PLACEHOLDER = re.compile(r"<[A-Za-z][\w ,|.-]{0,30}>")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:(?:::|\.|-)[A-Za-z_][A-Za-z0-9_]*)*")
_HEX = re.compile(r"(?:0x[0-9a-f]+|(?=[0-9a-f]*[0-9])[0-9a-f]{8,})", re.IGNORECASE)
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_NUMBERED = re.compile(
    r"(?i)\b(xid|sxid|errno|error|failure|exit ?code|exitcode|status|signal|result|rc)"
    r"(?: \(PCI[^)\n]{1,24}\))?[ =:#'\"()\[\]]{0,4}(-?\d{1,4})\b(?![.:/]\d)"
)
_CODE = re.compile(r"(?i)\b(?:error|errno|failure|code|returned|status)[ =:(]{1,3}(\d{1,4})\b")
"""The number of an error alone: programs call one and the same a failure, a status or a code."""
_PAIR = re.compile(r"\b([A-Za-z]{3,})[ -](?=([A-Za-z]{3,})\b)")
_PHRASES = re.compile(
    r"(?i)\b(?:(?P<oom>out[ -]of[ -](?:\w{2,6} ){0,2}memory)"
    r"|(?P<timeout>tim(?:ed|es|ing)?[ -]out|giv(?:es?|ing) up|gave up)"
    r"|(?P<timelimit>time[ -](?:limit|value)|wall[ -]?(?:time|clock))"
    r"|(?P<multinode>(?:two|three|four|\d{1,4}|several|many|other|both) "
    r"(?:\w{2,10} )?(?:nodes|machines|hosts|boxes)|multi-?(?:node|machine))"
    r"|(?P<slow>(?:samples|tokens|images|iterations|steps) per second|s/iter|it/s|s/it"
    r"|times (?:slower|longer)|per iteration)"
    r"|(?P<hostmemory>(?:host|cpu|system|main|node|physical|server)(?:'s)? (?:ram|memory)|ram"
    r"|memfree|rss|resident)"
    r"|(?P<loopback>127\.0\.\d\.\d|localhost|loopback)"
    r"|(?P<sharedmemory>shared memory|dev/shm|shm|shmem)"
    r"|(?P<checkpoint>\.(?:ckpt|pt|pth|safetensors)))\b"
)
"""What is said in several words."""
_TROUBLE = re.compile(
    r"(?i)error|exception|fail|fatal|abort|timed? ?out|kill|nan\b|warn|assert|refus|denied|"
    r"unable|cannot|not found|mismatch|out of|overflow|xid|oom|lost|reset|watchdog"
)
_STOP = frozenset(
    re.findall(
        r"\w+",
        """
        a about above across actually after afterwards again against ago all almost alone along
        already also although always am among an and another any anybody anyone anything anywhere
        are around as aside at away back be because become been before began begin behind being
        below beside besides between beyond both but by came can cannot come could course day days
        dear did different do does doing done down during each either else elsewhere end enough
        even ever every everyone everything except fact far few fine first for former found four
        from full further gave get gets give given gives giving go goes going gone good got had
        half hand happen happened happens hard has have having he hello help helped hence her here
        hi high him his hours how however i idea if in indeed instead into is it its itself keep
        keeps kind knew know known last later latter least left less let lets like likely little
        long longer look looks lot made mainly make makes making many may maybe me mean means
        meanwhile might mine minutes month more moreover most mostly much must my myself near
        nearly need neither nevertheless next nice nine no nobody none nor not nothing now nowhere
        number of off often ok old on once one only onto or other others otherwise our ours out
        over own part parts per perhaps place please possible probably put quite rather real
        really right said same saw say says second see seem seems seen self sense several she
        should show shows side simply since six small so some somebody someone something sometimes
        somewhere soon still such sure take taken takes tell ten than thank thanks that the their
        them themselves then there therefore these they thing things think this those though three
        through throughout thus time times to today together told too took toward towards tried
        try trying twice two under until up upon us use used uses using usually various very want
        wants was way we week weeks well went were what whatever when where whereas wherever
        whether which while who whole whom whose why will wish with within without word words work
        works would yes yesterday yet you your yours
        call com com file github http https lib line packages py python recent run running runs
        site train trained training www
        """,
    )
)
_MEANINGS = """
hang: hang hung stuck freez frozen froz deadlock stall wait standstill idl sit stand block
oom: oom outofmemoryerror outofmemory
die: die dead died kill sigkill crash abort terminat exit vanish drop disappear gone lost
checkpoint: checkpoint ckpt save snapshot
resume: resum restart reload continu restor requeu resubmit preempt
diverge: diverg explod spike blow collaps unstabl
nan: nan nonfinit inf
slow: slow slower slowdown degrad throughput speed faster
mismatch: mismatch differ inconsist
dataset: dataset corpus
install: instal compil build built wheel
unreachable: unreach refus firewall blocked
timeout: timeout timedout deadline expir watchdog
disk: disk drive filesystem nfs lustre storag quota
gpu: gpu card device accelerator
node: node host machin box server worker
network: network ethernet infiniband interconnect fabric nic
uneven: uneven unequal odd divisibl leftover remainder
grow: grow increas leak climb accumulat rise
launch: launch start startup spawn
power: power psu watt circuit supply voltag
"""
_MEANS = {
    word: f"={meaning}"
    for meaning, _, words in (row.partition(":") for row in _MEANINGS.split("\n") if row)
    for word in words.split()
}


def tokens(text: str) -> list[str]:
    """The tokens of a text, in its order, each as often as it stands there."""
    text = _PLACEHOLDER.sub(" ", text)
    made = [f"={found.lastgroup}" for found in _PHRASES.finditer(text)]
    made += [
        f"{found[1][:4].lower()}:{found[2].lstrip('-')}" for found in _NUMBERED.finditer(text)
    ]
    made += [f"#{number}" for number in _CODE.findall(text)]
    for found in _NAME.finditer(text):
        made += _of_name(found[0])
    return made


def asked(text: str) -> list[str]:
    """The tokens of a query or a log excerpt, once each: what repeats in a log weighs no more."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > MOST_LINES:
        telling = [line for line in lines if _TROUBLE.search(line)]
        lines = telling[:MOST_LINES] or lines[-MOST_LINES:]
    text = "\n".join(lines)
    joined = [stemmed((a + b).lower()) for a, b in _PAIR.findall(text)]
    return list(dict.fromkeys((*tokens(text), *joined)))[:MOST_TOKENS]


@lru_cache(maxsize=1 << 16)
def _of_name(name: str) -> tuple[str, ...]:
    if _HEX.fullmatch(name):
        return ()
    pieces = [(piece, _parts(piece)) for piece in re.split(r"[^A-Za-z0-9_]+", name)]
    made = [stem for _, parts in pieces for part in parts for stem in _words(part)]
    wholes = [piece.lower().strip("_") for piece, parts in pieces if parts != [piece.lower()]]
    made += [whole for whole in wholes if len(whole) > 1 and not _HEX.fullmatch(whole)]
    if len(pieces) > 1:
        made.append(name.lower())
    return tuple(made)


def _parts(piece: str) -> list[str]:
    if _HEX.fullmatch(piece):
        return []
    return [part.lower() for part in _PART.findall(piece)]


def _words(word: str) -> list[str]:
    if len(word) < 2 or word in _STOP:
        return []
    stem = stemmed(word)
    meaning = _MEANS.get(stem) or _MEANS.get(word)
    return [stem, meaning] if meaning else [stem]


def stemmed(word: str) -> str:
    """The word without the endings of number and tense; not a stemmer's full art, since most of
    what is compared are names."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word.endswith("e") else word
