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
from datetime import datetime

from flatline.facts import Facts
from flatline.judging.by_words import names_a_card
from flatline.judging.claims import claim, number
from flatline.judging.echoes import echo_claim
from flatline.judging.leads import Lead, fix, lead, not_found, shows, subject
from flatline.judging.memory import Filled, counted_card, filled
from flatline.judging.occupied import occupied
from flatline.judging.own_exits import own_exits
from flatline.judging.steering import leave_out
from flatline.judging.strays import several, size_bytes, stray
from flatline.judging.tf_devices import card_of
from flatline.model import Action, Claim, Cleared, Finding, Judgement, Place

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
    full = filled(facts, first.cite.at, found.culprits, said, _latest(facts, found))
    if full is not None:
        claims.append(full.shows)
    other = stray(cites)
    if sizes:
        claims.append(claim(sizes, *cites))
    own = other is not None and _of_the_run(found)
    culprits = _with_card(facts, found, full, _cards(facts, found))
    if (before := _occupied(facts, found, culprits)) is not None:
        culprits, other, own = before[:1], before[1], False
    hosts = tuple(place.host for place in culprits if place.host)
    elsewhere = other is not None and not own and len(hosts) == 1
    return Finding(
        code=CODE,
        summary=f"{subject(found)} ran out of GPU memory" + (f": {sizes}" if sizes else ""),
        fault_class=first.fault_class,
        attribution="job" if other is None else "unknown" if own else "infrastructure",
        strength=first.strength,
        shows=tuple(claims),
        implies=_implied(facts, found, full, other),
        culprits=culprits,
        scope=found.scope,
        onset=first.cite.at,
        onset_step=facts.last_step,
        order=(first.cite.source, first.cite.line),
        attempt=first.attempt,
        cannot_decide=(
            "Which setting to change: the log does not hold the memory plan of the run.",
            *((_WHOSE,) if own else ()),
            *((_WHICH,) if _unnamed(found) else ()),
        ),
        actions=(
            *((leave_out(facts, hosts),) if elsewhere else ()),
            *((_LOOK,) if other is not None else ()),
            _fix(facts, found),
        ),
        resubmit="exclude" if elsewhere else "fix_first",
    )


def _latest(facts: Facts, found: Lead) -> datetime | None:
    """When it failed at the latest, where its line bears no time: as its attempt ended."""
    first, last = found.first, facts.last
    return last.ended_at if first.cite.at_assumed and first.attempt == last.n else None


def _occupied(
    facts: Facts, found: Lead, culprits: tuple[Place, ...]
) -> tuple[Place, Claim] | None:
    """The place with its card, where another process held before the run what was lacking then."""
    groups = found.first.match.groups if found.first.match else {}
    asked, free = (size_bytes(groups.get(key) or "") for key in ("size_asked", "size_free"))
    if asked is None or free is None or found.scope == "all" or len(culprits) > 1:
        return None
    place = next(iter(culprits), Place())
    before = occupied(facts, place, _cards(facts, found), asked - free)
    if before is None:
        return None
    return replace(place, host=place.host or before[0].host, gpu=before[0].gpu), before[1]


def _cards(facts: Facts, found: Lead) -> set[str]:
    """The numbers of cards that the messages say."""
    told = (_CARD.search(f.match.cite.text if f.match else f.cite.text) for f in found.group)
    counted = ((f.cite, f.match.groups.get("ordinal")) for f in found.group if f.match)
    created = {card_of(facts, cite, n) or n for cite, n in counted if n}
    return created | {card[1] for card in told if card}


def _implied(
    facts: Facts, found: Lead, full: Filled | None, other: Claim | None
) -> tuple[Claim, ...]:
    first = found.first
    text = "The run needs more GPU memory than the card has left; the hardware did its work."
    alike = full.alike if full is not None else None
    said = claim(text if first.fault_class != "nccl-buffers" else first.what, first.cite)
    return tuple(filter(None, (said, echo_claim(facts, first), alike, other)))


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
    if signature is None:
        return Action("fix", _LESS)
    if signature.origin == "jax" and _under_tensorflow(facts, found):
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


_WHOSE = (
    "Whose the other processes on the card are: several, or several ranks on one card, are as"
    " likely ranks of this run that all chose the same GPU."
)
_WHICH = "Whether it was a GPU's memory or the host's: the exception does not say."


def _unnamed(found: Lead) -> bool:
    """Whether nothing but an exception's own words tell of memory, and not of whose."""
    crash = found.first.crash
    return found.first.signature is None and crash is not None and not names_a_card(crash)


def _of_the_run(found: Lead) -> bool:
    """Whether the other processes on the card may well be ranks of this run."""
    cards: dict[str, set[object]] = {}
    for failure in found.group:
        text = failure.match.cite.text if failure.match else failure.cite.text
        if several(text):
            return True
        if card := _CARD.search(text):
            cards.setdefault(card[1], set()).add(number(failure.place))
    return any(len(ranks - {None}) > 1 for ranks in cards.values())


def _with_card(
    facts: Facts, found: Lead, full: Filled | None, said: set[str]
) -> tuple[Place, ...]:
    """
    The one place that failed with its card: the only one that was full, or the full one whose
    number the message says.

    The number alone tells no card, for a process counts those it was given: only where these were
    all of its host's.
    """
    if found.scope == "all" or len(found.culprits) > 1:
        return found.culprits
    place = next(iter(found.culprits), Place())
    if full is None:
        counted = counted_card(facts, place, next(iter(said))) if len(said) == 1 else None
        return found.culprits if counted is None else (counted,)
    host = facts.node_of(place.host or "") or (full.only or "")
    here = [card for card in full.gpus if host in ("", facts.node_of(card.host or ""))]
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
