"""
Who the others waited for, by the stacks of the processes while the run stood still.

Ranks that wait stand in a collective, or where the host waits for the device: in `synchronize`,
or in the backward pass.  What a few others stand in meanwhile is what holds all: a data loader,
storage, a compiler, a lock, a prompt.  Where one stands in the training script's own code it may
wait as well: `.item()` and copies from the device are no Python calls and show as their caller.
Of a run that is known to stand still, all but one in one and the same line of it do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging.claims import cap, claim, distinct, name_places
from flatline.judging.pace import standstill
from flatline.judging.stacks import Frame, Stack, stacks
from flatline.model import Action, Claim, Finding, Place

FEW_RATIO = 0.25
"""Of those that wait (`waiting.FEW_RATIO`): with more, who holds whom is open."""
MANY, MOST = 4, 0.79
"""Ranks of which one stands in another collective: of three, two may have left a call out."""
ALONE, MOVING = 0.75, 0.5
"""Stacks of a run of which nothing shows that it stood still: dumped when somebody thought so.
All in the same wait is what a step at work looks like as well."""
COLLECTIVE, SET_UP, OWN = "in a collective", "setting up the process group", ""
DEVICE, BACKWARD = "waiting for its device", "in the backward pass"
WAITS = (COLLECTIVE, SET_UP, DEVICE, BACKWARD)

_CALLS = (
    (SET_UP, r"torch/distributed/(?:distributed_c10d|rendezvous|device_mesh)\.py",
     r"init_process_group|new_group\w*|rendezvous|_store_based_barrier|_new_process_group_helper"
     r"|_?create_(?:c10d_)?store|_\w*rendezvous_handler"),
    (SET_UP, r"jax/_src/distributed\.py", "initialize|connect"),
    (COLLECTIVE, r"torch/distributed/(?:distributed_c10d|_functional_collectives)\.py", ""),
    (COLLECTIVE, r"torch/distributed/.*fsdp",
     r"\w*(?:wait_for_unshard|all_gather|reduce_scatter|all_reduce)\w*"),
    (COLLECTIVE, r"torch/nn/parallel/distributed\.py",
     r"_sync\w*|_distributed_broadcast\w*|_verify\w*"),
    (COLLECTIVE, r"(?:horovod|mpi4py)/", ""),
    (DEVICE, r"torch/cuda/(?:__init__|streams)\.py", "synchronize|wait|wait_event|wait_stream"),
    (DEVICE, r"jax/_src/(?:array|api)\.py",
     r"block_until_ready|_value|_single_device_array\w*"),
    (BACKWARD, r"torch/autograd/(?:graph|__init__)\.py", "_engine_run_backward|backward|grad"),
    ("in its data loader",
     r"(?:torch/utils/data|torchdata|webdataset|datasets|streaming|litdata|nvidia/dali|grain|ffcv"
     r"|tensorflow/python/data|megatron/core/datasets)/", ""),
    ("reading or writing storage",
     r"(?:torch/serialization\.py|torch/distributed/checkpoint/|safetensors/|orbax/|shutil\.py"
     r"|fsspec/|s3fs/|gcsfs/|boto3/|botocore/|numpy/lib/_?npyio)", ""),
    ("compiling",
     r"(?:torch/_inductor/|torch/utils/cpp_extension\.py|triton/(?:compiler|runtime)"
     r"|jax/_src/compiler\.py)", ""),
    ("waiting for a file's lock", "filelock/", ""),
    ("at a debugger's prompt", r"(?:pdb|bdb)\.py|IPython/", ""),
    ("leaving", r"(?:multiprocessing/util|threading)\.py", "_exit_function|_shutdown"),
    ("calling a service over the network", "(?:wandb|mlflow|requests|urllib3|httpx)/", ""),
)  # fmt: skip
"""What a call is, by its file and its own name; any name where none is given."""
_KINDS = tuple(
    (kind, re.compile(rf"(?:^|/)(?:{file})"), re.compile(rf"(?:.*\.)?(?:{name or '.*'})$"))
    for kind, file, name in _CALLS
)
_INNERMOST = re.compile(r"(?:^|/)(?:torch/cuda/|torch/autograd/)")
"""What calls the program back: only as the innermost call is it the wait itself."""


@dataclass(frozen=True, slots=True)
class Stood:
    """What the processes of a run stood in. `places` are those that the others waited for, of
    whom `mismatch` tells that they stood in another collective; `doubt` is why none is named."""

    places: tuple[Place, ...]
    why: Claim
    set_up: bool
    mismatch: bool = False
    most: float = 1.0
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class _At:
    stack: Stack
    kind: str
    frame: Frame


def stood_apart(facts: Facts) -> Stood | None:
    """What the stacks show; None where none were dumped of two ranks, or nobody waited."""
    return facts.memo("stacks that stood apart", _judged)


def _judged(facts: Facts) -> Stood | None:
    at = [_at(stack) for stack in stacks(facts)]
    waits = [one for one in at if one.kind in WAITS]
    others = [one for one in at if one.kind not in WAITS]
    if not waits and standstill(facts) is not None:
        waits, others = _in_one_line(at)
    if len(at) < 2 or not waits or len(waits) < len(others):
        return None
    set_up = all(one.kind == SET_UP for one in waits)
    if not others:
        return _in_collectives(facts, waits, set_up)
    told = [*_texts(facts, others), *_texts(facts, waits)]
    why = claim(f"{cap('; '.join(told))}.", *(one.frame.cite for one in [*others[:3], *waits[:3]]))
    if any(one.kind == OWN for one in others):
        return Stood((), why, set_up, doubt="Whether a rank that stood in the script's own code"
                     " worked there or waited for its device: both look the same in a Python"
                     " stack; py-spy dump --native would tell.")  # fmt: skip
    few = len(others) == 1 or len(others) <= FEW_RATIO * len(waits)
    places = distinct(facts.on_host(one.stack.place) for one in others) if few else ()
    return Stood(places, why, set_up, most=MOST if waits[0].kind == OWN else 1.0)


def _in_one_line(at: Sequence[_At]) -> tuple[list[_At], list[_At]]:
    """Those that stand in one line of the script, and the one that stands in something else."""
    own = Counter(_call(one) for one in at if one.kind == OWN)
    usual, count = own.most_common(1)[0] if own else (None, 0)
    rest = [one for one in at if _call(one) != usual]
    alone = len(rest) == 1 and count >= MANY - 1 and rest[0].kind != OWN
    return ([one for one in at if _call(one) == usual], rest) if alone else ([], [])


def _in_collectives(facts: Facts, waits: Sequence[_At], set_up: bool) -> Stood:
    """All wait: of them one alone may stand in another collective."""
    calls = Counter(_call(one) for one in waits)
    usual = calls.most_common(1)[0][0]
    odd = [one for one in waits if _call(one) != usual]
    rest = [one for one in waits if _call(one) == usual]
    told = [*_texts(facts, odd), *_texts(facts, rest)]
    why = claim(f"{cap('; '.join(told))}.", *(one.frame.cite for one in [*odd[:2], *rest[:3]]))
    if len(odd) != 1 or len(waits) < MANY:
        return Stood((), why, set_up)
    return Stood((facts.on_host(odd[0].stack.place),), why, set_up, mismatch=True, most=MOST)


def _call(one: _At) -> tuple[str, str, int]:
    return one.frame.function.rpartition(".")[2], one.frame.file, one.frame.line


def _at(stack: Stack) -> _At:
    """By the innermost call that tells."""
    for n, frame in enumerate(stack.frames):
        if n and _INNERMOST.search(frame.file):
            continue
        for kind, file, name in _KINDS:
            if file.search(frame.file) and name.match(frame.function):
                return _At(stack, kind, frame)
    return _At(stack, OWN, stack.frames[0])


def _texts(facts: Facts, at: Sequence[_At]) -> list[str]:
    """Those that stood in one call, together; the four most common calls."""
    calls: dict[tuple[str, tuple[str, str, int]], list[_At]] = {}
    for one in at:
        calls.setdefault((one.kind, _call(one)), []).append(one)
    usual = sorted(calls.values(), key=len, reverse=True)[:4]
    return [_text(facts, group) for group in usual]


def _text(facts: Facts, group: Sequence[_At]) -> str:
    where = name_places(distinct(facts.on_host(one.stack.place) for one in group))
    one = group[0]
    processes = f"{len(group)} process{'es' if len(group) > 1 else ''}"
    return f"{where or processes} stood {one.kind + ', ' if one.kind else ''}in {one.frame}"


def stood_still(facts: Facts, code: str) -> Finding | None:
    """The finding of a family by stacks alone: C1 while the group is set up, else C2."""
    over = facts.end_seen or facts.reached_plan or facts.crashes
    if facts.disposition in ("completed", "failed", "out_of_memory", "node_fail") or over:
        return None
    stood = stood_apart(facts)
    if stood is None or code != ("C1" if stood.set_up and not facts.has_progress else "C2"):
        return None
    step = f" after step {facts.last_step}" if facts.last_step is not None else ""
    whom = name_places(stood.places)
    return Finding(
        code=code,
        summary=f"Training stood still{step} when its stacks were dumped: "
        + (f"the others waited for {whom}" if whom else "ranks waited for one another"),
        attribution="unknown",
        strength=ALONE if stood.places else MOVING,
        most=min(stood.most, MOST),
        shows=(stood.why,),
        implies=(claim("Ranks that stood in a wait are victims.", *stood.why.cites[-2:]),),
        culprits=stood.places,
        scope="place" if stood.places else "none",
        onset_step=facts.last_step,
        attempt=facts.last.n,
        cannot_decide=(
            "Whether the run stood still when the stacks were dumped: a second dump, minutes"
            " later, that shows the same would tell.",
            *((stood.doubt,) if stood.doubt else ()),
        ),
        actions=(
            Action("collect", "Dump all processes twice, minutes apart, with those they started.",
                   "py-spy dump --native --subprocesses --pid PID"),
        ),
        resubmit="unknown",
    )  # fmt: skip
