"""
The catalogue of signatures keeps its word: patterns, samples, near misses, families.

A pattern is scanned by Hyperscan and read again by `re`, so both must agree on every sample.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from itertools import pairwise

import hyperscan
import pytest

from flatline import signatures
from flatline.errors import CatalogueError
from flatline.model import Signature

FAMILIES = {
    "A1", "A2", "A3", "B1", "B2", "B3", "C1", "C2", "C3", "C4", "C5", "C6", "D1", "D2", "D3",
    "D4", "D5", "D6", "E1", "E2", "E3", "F1", "F2", "F3", "F4", "G1",
}  # fmt: skip
FAULT_CLASSES = {
    "A1": {"data", "config", "env", "asset"},
    "A2": {"host-oom", "cgroup-oom", "segv", "abort", "bus", "kill-unknown"},
    "A3": {"code", "data", "cuda", "io"},
    "C2": {"mismatch", "straggler-timeout", "lost-peer"},
    "E2": {"size-mismatch", "missing-keys", "corrupt", "empty"},
}
GROUPS = {
    "rank", "task", "host", "gpu", "device", "ordinal", "signal", "exit_code", "size_asked",
    "size_total", "size_free", "peer", "exception", "step", "errno", "timeout_ms", "xid",
    "sxid", "pid", "path", "module", "key", "seq", "last_enqueued", "last_completed", "op",
    "job", "node", "pod", "at", "comm_rank", "comm_size", "nvml", "bus",
    "what", "has_rank", "has_ranks", "on_host",
    "ranks_by_host", "launched",
    "uuid", "world_size", "seconds", "transport", "score", "size", "before", "after", "hosts",
}  # fmt: skip
TAGS = {
    "only-hint",
    "ray-given-up-at",
    "told-late",
    "forewarns",
    "ray-mistaken",
    "timeout", "lost-peer", "mismatch", "rendezvous", "heartbeat", "oom-kill", "gpu-oom",
    "gpu-handle", "gpu-alloc-refused",
    "dataloader", "storage", "network", "checkpoint-load", "disk-full", "launch",
    "time-limit", "cancelled", "preempted", "node-failure", "node-unheard", "ray-node-lost",
    "requeued", "end-ok",
    "attempt-start", "stack", "sigterm", "uncaught", "target-reached", "short-on-purpose",
    "resume-asked", "crash-loop", "ras",
    "always-asked",
    "no-gpu-warned", "wants-gpu", "stopped-early",
    "launch-blocking",
    "output-ends",
    "step-aborted", "watchdog-abort", "ignored-exception", "recompile", "compile-limit",
    "size-change", "rank-monitor",
    "save-begun", "names-no-call", "evaluation", "process-gone", "storage-back", "local-disk",
    "garbage-collected", "reduction-time", "step-parts",
    "profiled", "waited-for-data", "ddp-member",
    "link-down", "link-up", "script-goes-on", "said-above", "raised-below", "no-rdma",
    "said-of-the-next",
    "foreign-connection", "not-accepted",
    "mounted", "unmounted", "worker-given-up", "job-unheard", "per-rank-times", "per-rank-rows",
    "liveness-failed",
    "last-word", "far-end", "launcher-left", "exec-hosts", "input-bound",
}  # fmt: skip
LINE_LIMIT = 500

OUTRANKED = {
    ("nccl-watchdog-terminated", "cuda-illegal-address"): "the CUDA error it wraps is the cause",
    ("nccl-watchdog-terminated", "cuda-launch-failure"): "the CUDA error it wraps is the cause",
    (
        "checks-cuda-launch",
        "jax-check-failed",
    ): "a check names no call: left out beside its status",
    (
        "checks-library-call",
        "jax-check-failed",
    ): "a check names no call: left out beside its status",
    (
        "checks-library-memory",
        "jax-check-failed",
    ): "a check names no call: left out beside its status",
}
"""Samples that a root of another family wins: (whose sample, the winner) and why that is right."""


@cache
def catalogue() -> tuple[Signature, ...]:
    return signatures.load()


@cache
def compiled() -> dict[str, re.Pattern[str]]:
    return {entry.id: re.compile(entry.pattern) for entry in catalogue()}


@cache
def database() -> hyperscan.Database:
    found = hyperscan.Database()
    found.compile(
        expressions=[entry.pattern.encode() for entry in catalogue()],
        ids=list(range(len(catalogue()))),
        elements=len(catalogue()),
        flags=[hyperscan.HS_FLAG_SINGLEMATCH] * len(catalogue()),
    )
    return found


def scanned(line: str) -> set[str]:
    """Ids that Hyperscan finds in one line."""
    hits: set[str] = set()

    def note(number: int, _start: int, _end: int, _flags: int, _context: object) -> None:
        hits.add(catalogue()[number].id)

    database().scan(line.encode(), match_event_handler=note)
    return hits


def read(line: str) -> set[str]:
    """Ids that `re` finds in one line."""
    return {name for name, pattern in compiled().items() if pattern.search(line)}


def outranked_by(entry: Signature, line: str) -> list[str]:
    """Root signatures of another family that would win this line against `entry`."""
    own = {entry.family, entry.late_family}
    floor = entry.strength if entry.role == "root" else 0.0
    return [
        rival.id
        for rival in catalogue()
        if rival.role == "root"
        and rival.family not in own
        and rival.strength > floor
        and compiled()[rival.id].search(line)
    ]


def test_every_sample_is_found_by_both_engines() -> None:
    """Each recorded line matches its own signature in Hyperscan and in `re`."""
    lost = [
        (entry.id, engine.__name__, sample)
        for entry in catalogue()
        for sample in entry.samples
        for engine in (scanned, read)
        if entry.id not in engine(sample)
    ]
    assert not lost


def test_no_near_miss_is_found_by_either_engine() -> None:
    """A line that only looks like it does not match."""
    caught = [
        (entry.id, engine.__name__, line)
        for entry in catalogue()
        for line in entry.near_misses
        for engine in (scanned, read)
        if entry.id in engine(line)
    ]
    assert not caught


def test_both_engines_agree_on_every_recorded_line() -> None:
    """No construct means one thing to the scanner and another to the reader."""
    lines = {text for entry in catalogue() for text in (*entry.samples, *entry.near_misses)}
    differing = [(line, scanned(line) ^ read(line)) for line in lines]
    assert not [pair for pair in differing if pair[1]]


def test_samples_still_match_behind_labels() -> None:
    """A rank label before the message changes nothing."""
    label = "[default3]:[rank3]: "
    lost = [
        (entry.id, sample)
        for entry in catalogue()
        for sample in entry.samples
        if not compiled()[entry.id].search(label + sample)
    ]
    assert not lost


def test_a_root_candidate_names_a_family_and_a_near_miss() -> None:
    """What may be the verdict says which, and what it must not be taken for."""
    roots = [entry for entry in catalogue() if entry.role == "root"]
    assert roots
    assert not [entry.id for entry in roots if entry.family is None or not entry.near_misses]


def test_ids_are_kebab_case_and_start_with_their_origin() -> None:
    """An id tells the file it stands in."""
    shape = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
    bad = [
        entry.id
        for entry in catalogue()
        if not shape.fullmatch(entry.id)
        or not entry.id.startswith(entry.origin.replace("_", "-") + "-")
    ]
    assert not bad


def test_families_and_fault_classes_are_known() -> None:
    """Codes and classes are those of the design, early and late."""
    pairs = [
        (entry.id, family, fault)
        for entry in catalogue()
        for family, fault in (
            (entry.family, entry.fault_class),
            (entry.late_family, entry.late_class),
        )
    ]
    unknown = [pair for pair in pairs if pair[1] is not None and pair[1] not in FAMILIES]
    misplaced = [
        (name, family, fault)
        for name, family, fault in pairs
        if fault is not None and fault not in FAULT_CLASSES.get(family or "", {fault})
    ]
    assert (unknown, misplaced) == ([], [])


def test_a_fault_class_never_stands_without_its_family() -> None:
    """A class means nothing without a family."""
    assert not [
        entry.id
        for entry in catalogue()
        if (entry.fault_class and not entry.family) or (entry.late_class and not entry.late_family)
    ]


def test_patterns_are_bounded_and_portable() -> None:
    """No unbounded dot-star, no look-around, no back-reference, no trailing quantifier."""
    forbidden = re.compile(r"(?<!\\)\.[*+]|\(\?(?:[=!>]|<[=!])|\\[1-9]|\(\?P=|[*+?}]\+|\\[AZz]")
    trailing = re.compile(r"(?<!\\)(?:[*+?]|\{\d+,?\d*\})$")
    bad = [
        entry.id
        for entry in catalogue()
        if forbidden.search(entry.pattern)
        or trailing.search(entry.pattern)
        or entry.pattern.startswith("^")
    ]
    assert not bad


def test_named_groups_and_tags_keep_to_the_vocabulary() -> None:
    """Whoever reads a match knows every name it can hold."""
    groups = {
        (entry.id, name)
        for entry in catalogue()
        for name in compiled()[entry.id].groupindex
        if name not in GROUPS
    }
    tags = {(entry.id, tag) for entry in catalogue() for tag in entry.tags if tag not in TAGS}
    assert (groups, tags) == (set(), set())


def test_strengths_are_probabilities_below_certainty() -> None:
    """One line alone is never certain, and a root candidate is worth something."""
    assert not [entry.id for entry in catalogue() if not 0.0 < entry.strength < 1.0]


def test_no_sample_is_won_by_another_family_unawares() -> None:
    """Where a stronger root of another family matches a sample, the reason is on file."""
    taken = {
        (entry.id, rival)
        for entry in catalogue()
        for sample in entry.samples
        for rival in outranked_by(entry, sample)
    }
    assert taken == set(OUTRANKED)


def test_benign_lines_are_never_root_candidates() -> None:
    """What is known to be harmless is not taken for a cause by another signature."""
    wrong = [
        (entry.id, rival)
        for entry in catalogue()
        if entry.role == "benign"
        for sample in entry.samples
        for rival in outranked_by(entry, sample)
    ]
    assert not wrong


@pytest.mark.parametrize(
    "line",
    [
        "node03:812:990 [1] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via P2P/IPC",
        "iteration 200/1000 | lm loss: 2.31E+00 | error: 0 | number of nan iterations: 0 |",
        "2026-01-02 03:04:05,678 INFO step 10 loss 2.31 val_error 0.0 OOM retries 0",
        "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
        "    raise RuntimeError('CUDA error: device-side assert triggered')",
        "  --timeout SECONDS   kill the run if it is killed, aborted or hangs (default: 600)",
        "see https://pytorch.org/docs/stable/elastic/errors.html",
        "NCCL_ASYNC_ERROR_HANDLING=1 NCCL_IB_TIMEOUT=22 TORCH_NCCL_BLOCKING_WAIT=0",
        "0 new uncorrectable hardware errors, 0 XID errors, Volatile Uncorr. ECC: 0",
        "sample: allocate / NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus. / end",
        "sample: it printed Memory cgroup out of memory: Killed process 77 (python3) and left",
        "FileNotFoundError: [Errno 2] No such file or directory",
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 16384.0",
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 2, reducing to 1",
        "I cuda_driver.cc:732] failed to allocate 2.5G from device: CUDA_ERROR_OUT_OF_MEMORY",
        "WARNING: File cache/index.npy not found, building it",
        "UserWarning: Failed to import x plugin due to: RuntimeError('Failed to import x.y')",
        "early stopping when the loss is nan: off; stops training on NaN losses: on",
    ],
)
def test_harmless_lines_match_no_root_candidate(line: str) -> None:
    """Configuration, counters at zero, source lines and help texts are no failures."""
    roots = {entry.id for entry in catalogue() if entry.role == "root"}
    assert not (scanned(line) | read(line)) & roots


def test_files_stay_short_enough_to_read() -> None:
    """A file that outgrows its reader is split by origin."""
    long = [
        (entry.name, lines)
        for entry in resources.files(signatures).iterdir()
        if entry.name.endswith(".toml")
        and (lines := len(entry.read_text("utf-8").splitlines())) > LINE_LIMIT
    ]
    assert not long


def test_the_catalogue_is_sorted_and_ids_are_unique() -> None:
    """Loading is deterministic."""
    ids = [entry.id for entry in catalogue()]
    assert all(left < right for left, right in pairwise(ids))


def test_a_broken_table_names_itself() -> None:
    """An unknown field is refused with the file and the id."""
    text = '[[signature]]\nid = "x-y"\ncolour = "red"\n'
    with pytest.raises(CatalogueError, match=r"signatures/x\.toml: x-y: unknown \['colour'\]"):
        signatures.parse(text, "x")


def test_a_root_candidate_without_family_is_refused() -> None:
    """The loader itself keeps the rule."""
    fields = "".join(
        f'{name} = "x"\n' for name in ("pattern", "meaning", "not_proof", "source", "sample")
    )
    with pytest.raises(CatalogueError, match="needs a family and a near miss"):
        signatures.parse(f'[[signature]]\nid = "x-y"\nrole = "root"\n{fields}', "x")
