"""
The GPU ran out of memory.

Symptom:
    `OutOfMemoryError`, `RESOURCE_EXHAUSTED`, `hipErrorOutOfMemory`, or a library that could not
    make its handle or its buffers; the allocator names the size asked and the card's size.

Mechanism:
    Weights, gradients, optimizer state, activations and communication buffers together exceed
    the card: at once (one request larger than what is free) or by growth (a leak, longer
    sequences, fragmentation).  NCCL and RCCL allocate outside the framework's pool and starve
    when the pool takes everything.

Told apart from:
    A2 signal-kill: there the host's memory ran out and the kernel killed the process.
    A3 runtime-crash: cuBLAS and cuDNN handle errors without any sign of full memory.
    B2 gpu-hardware-fault: the card has less memory than its kind should (rows remapped).

Do:
    Ask for less per GPU: smaller micro-batch, activation checkpointing, sharding, shorter
    sequences; for fragmentation set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.  Where
    another process holds the memory, clear or exclude the node and resubmit as it is.

References:
    PyTorch CUDA memory management notes; XLA_PYTHON_CLIENT_MEM_FRACTION (JAX documentation).
"""

from __future__ import annotations

import re
from dataclasses import replace

from flatline.facts import Facts
from flatline.judging.claims import claim, number
from flatline.judging.echoes import echo_claim
from flatline.judging.kills import own_exits
from flatline.judging.leads import Lead, fix, lead, not_found, shows, subject
from flatline.judging.memory import Filled, filled
from flatline.model import Action, Claim, Cleared, Finding, Judgement, LogCite, Place

_LESS = (
    "Lower the memory each GPU needs (micro-batch, activation checkpointing, sharding, sequence"
    " length), then resume."
)
_LOOK = Action("collect", "See what else holds the card before the next try.", "nvidia-smi")
_TENSORFLOW = (
    "Lower the batch size; where another process shares the card, let TensorFlow take memory as it"
    " needs it (TF_FORCE_GPU_ALLOW_GROWTH=true)."
)
CODE = "B1"
NAME = "gpu-out-of-memory"
NEEDS = ("job log to its end",)
DECIDED_BY = (
    "the allocation that failed, in the exception's words, and whether the run went on after it"
)
EXPLAINS = {
    "C2": "the rank that ran out of memory left the collective its peers were waiting in",
    "A3": "a failed allocation surfaces as a CUDA, cuBLAS or NCCL error in the same process",
    "A2": "the runtime aborts, or the launcher ends the other ranks, after a failed allocation",
    "C1": "a rank that ran out of memory at start-up never joins the others",
    "C5": "peers see the connection of the rank that ran out of memory close",
    "F3": "ranks left waiting for the one that ran out of memory hold the allocation to the wall",
}
_CARD = re.compile(r"\bGPU (\d{1,3})\b")
"""As PyTorch's allocator names the device it asked."""
NAME_ALONE = "ray-task-gpu-memory"
"""An exception known by its name alone."""
_SIZE = r"([\d.]+ (?:bytes|[KMG]iB))"
_ACCOUNTS = (
    re.compile(rf"{_SIZE} total capacity; {_SIZE[1:-1]} already allocated; {_SIZE} free;"
               rf" {_SIZE} reserved in total"),
    re.compile(rf"total capaci?ty of {_SIZE} of which {_SIZE} is free\. Including non-PyTorch"
               rf" memory, this process has {_SIZE} memory in use"),
)  # fmt: skip
"""Total, free and own memory as PyTorch's allocator prints them (before 2.1, since)."""
LEAST_OTHER = 2.0 * 2**30
"""Bytes: a CUDA context and NCCL's buffers, which the older form does not count, take less."""
_UNITS = {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30,
          "BYTES": 1, "TIB": 2**40}  # fmt: skip


def judge(facts: Facts) -> Judgement:
    """Blame the first failed allocation, and say how what was asked compares with the card."""
    found = lead(facts, CODE)
    if found is None:
        return _cleared(facts)
    first = found.first
    if (
        first.signature is not None
        and first.signature.id == NAME_ALONE
        and facts.tagged("oom-kill")
    ):
        return None  # the host's memory, whose error in Ray has the same name
    found = _of_the_failed(facts, found)
    claims = [shows(found, f"{subject(found)} could not allocate GPU memory")]
    cites = [f.match.cite for f in found.group if f.match is not None][:3] or [first.cite]
    groups = first.match.groups if first.match else {}
    sizes, said = _sizes(groups), size_bytes(groups.get("size_total") or "")
    full = filled(facts, first.cite.at, found.culprits, said)
    if full is not None:
        claims.append(full.shows)
    text = "The run needs more GPU memory than the card has left; the hardware did its work."
    if sizes:
        claims.append(claim(sizes, *cites))
    implies = [claim(text if first.fault_class != "nccl-buffers" else first.what, first.cite)]
    echo = echo_claim(facts, first)
    if echo is not None:
        implies.append(echo)
    if full is not None and full.alike is not None:
        implies.append(full.alike)
    stray = _stray(cites)
    if stray is not None:
        implies.append(stray)
    own = stray is not None and _of_the_run(found)
    return Finding(
        code=CODE,
        summary=f"{subject(found)} ran out of GPU memory" + (f": {sizes}" if sizes else ""),
        fault_class=first.fault_class,
        attribution="job" if stray is None else "unknown" if own else "infrastructure",
        strength=first.strength,
        shows=tuple(claims),
        implies=tuple(implies),
        culprits=_with_card(facts, found, full),
        scope=found.scope,
        onset=first.cite.at,
        onset_step=facts.last_step,
        order=(first.cite.source, first.cite.line),
        attempt=first.attempt,
        cannot_decide=(
            "Which setting to change: the log does not hold the memory plan of the run.",
            *((_WHOSE,) if own else ()),
        ),
        actions=(*((_LOOK,) if stray is not None else ()), _fix(facts, found)),
        resubmit="fix_first",
    )


def _of_the_failed(facts: Facts, found: Lead) -> Lead:
    """One failure without a place is that of the one process that the launcher says failed."""
    if found.culprits or len(found.group) != 1 or found.others:
        return found
    own = own_exits(facts, found.first.attempt)
    place = next(iter(own)) if len(own) == 1 else Place()
    if place.rank is None or place.host is None:
        return found
    first = replace(found.first, place=place)
    return replace(found, first=first, group=(first,), scope="place", culprits=(place,))


def _fix(facts: Facts, found: Lead) -> Action:
    """The signature's advice, unless it is JAX's and the program TensorFlow's: both print what
    XLA says."""
    signature = found.first.signature
    if signature is not None and signature.origin == "jax" and _under_tensorflow(facts, found):
        return Action("fix", _TENSORFLOW)
    return fix(found, _LESS)


def _under_tensorflow(facts: Facts, found: Lead) -> bool:
    told = [f.cite.text for f in found.group]
    told += [f.crash.exception for f in found.group if f.crash is not None]
    said = " ".join(told).lower()
    if "jax" in said or any(m.signature.id.startswith("jax-") and "jax" in m.cite.text.lower()
                            for m in facts.matches):  # fmt: skip
        return False
    return "tensorflow" in said or any(
        "tensorflow" in m.cite.text.lower() for m in facts.matches if m.signature.origin == "keras"
    )


def size_bytes(text: str) -> float | None:
    """Bytes of a size as allocators print it (`91.60 GiB`, `20.00 MiB`, `1073741824`)."""
    found = re.fullmatch(r"\s*([\d.,]+)\s*([KMGT]?i?B|bytes)?\s*", text, re.IGNORECASE)
    if found is None:
        return None
    try:
        number = float(found[1].replace(",", ""))
    except ValueError:
        return None
    return number * _UNITS.get((found[2] or "B").upper(), 1)


def _sizes(groups: object) -> str | None:
    sizes = groups if isinstance(groups, dict) else {}
    asked, total, free = (sizes.get(k) for k in ("size_asked", "size_total", "size_free"))
    if not asked:
        return None
    asked, total, free = _readable(asked), total and _readable(total), free and _readable(free)
    text = f"{asked} were asked for"
    if free and total:
        return f"{text} with {free} free of {total}"
    if total:
        asked_bytes, total_bytes = size_bytes(asked), size_bytes(total)
        if asked_bytes and total_bytes and asked_bytes > total_bytes:
            return f"{text}, more than the whole card ({total})"
        return f"{text} on a card of {total}"
    return text


def _readable(size: str) -> str:
    """Bare bytes of a MiB or more in MiB or GiB; every other size as it was printed."""
    if not re.fullmatch(r"\s*\d+\s*(?:bytes|B)?\s*", size, re.IGNORECASE):
        return size
    number = size_bytes(size) or 0.0
    for unit, of in (("GiB", 2**30), ("MiB", 2**20)):
        if number >= of:
            return f"{number / of:.2f} {unit}"
    return f"{number:.0f} bytes"


def _stray(cites: list[LogCite]) -> Claim | None:
    """That other processes hold most of the card, where the allocator itself says so."""
    for cite in cites:
        found = re.search(
            r"Process \d+ has ([\d.]+ [KMG]iB) memory in use\."
            r".*?this process has ([\d.]+ [KMG]iB) memory in use",
            cite.text,
        )
        if found is None:
            rest = _unaccounted(cite)
            if rest is not None:
                return rest
            continue
        other, own = size_bytes(found[1]), size_bytes(found[2])
        if other and own and other > own:
            return claim(
                f"Another process holds {found[1]} of the card while this one has {found[2]}:"
                " it is the other that leaves too little.", cite,
            )  # fmt: skip
    return None


def _unaccounted(cite: LogCite) -> Claim | None:
    """The same by subtraction: what is neither free nor this process's."""
    for pattern in _ACCOUNTS:
        found = pattern.search(cite.text)
        sizes = [] if found is None else [size_bytes(size) for size in found.groups()]
        if len(sizes) != 3 or None in sizes:
            continue
        total, free, own = (size or 0.0 for size in sizes)
        rest = total - free - own
        if rest > own and rest >= LEAST_OTHER:
            return claim(
                f"Of the card's {total / 2**30:.1f} GiB this process holds {own / 2**30:.1f} and"
                f" {free / 2**30:.1f} are free: others hold the {rest / 2**30:.1f} that are"
                " missing.", cite,
            )  # fmt: skip
    return None


_WHOSE = (
    "Whose the other processes on the card are: several, or several ranks on one card, are as"
    " likely ranks of this run that all chose the same GPU."
)


def _of_the_run(found: Lead) -> bool:
    """Whether the other processes on the card may well be ranks of this run."""
    cards: dict[str, set[object]] = {}
    for failure in found.group:
        text = failure.match.cite.text if failure.match else failure.cite.text
        if len(re.findall(r"Process \d+ has ", text)) != 1:
            return True
        if card := _CARD.search(text):
            cards.setdefault(card[1], set()).add(number(failure.place))
    return any(len(ranks - {None}) > 1 for ranks in cards.values())


def _with_card(facts: Facts, found: Lead, full: Filled | None) -> tuple[Place, ...]:
    """
    The one place that failed with its card: the only one that was full, or the full one whose
    number the message says.

    The number alone tells no card: a process counts those it was given.
    """
    if full is None or found.scope == "all" or len(found.culprits) > 1:
        return found.culprits
    place = next(iter(found.culprits), Place())
    host = facts.node_of(place.host or "") or (full.only or "")
    here = [card for card in full.gpus if host in ("", facts.node_of(card.host or ""))]
    said = {card[1] for f in found.group
            if (card := _CARD.search(f.match.cite.text if f.match else f.cite.text))}  # fmt: skip
    told = [card for card in here if {card.gpu} == said and host]
    if not place.host and told and not _counts_so(place, told[0]):
        told = []
    named = here[:1] if full.alone else told
    return (
        (replace(place, host=place.host or named[0].host, gpu=named[0].gpu),)
        if named
        else found.culprits
    )


def _counts_so(place: Place, card: Place) -> bool:
    """Whether a rank of a run of one host, that is known by its number alone, has the card that
    its number counts to: a process that was given one card calls it 0, whichever it is."""
    rank, gpu = number(place), card.gpu or ""
    return rank is not None and gpu.isdecimal() and int(gpu) == rank > 0


def _cleared(facts: Facts) -> Cleared | None:
    return not_found(facts, CODE, ["family:B1"], "no failed GPU allocation in any log")
