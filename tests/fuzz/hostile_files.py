"""Records, dumps, metrics and archives that are nearly what they should be."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import pickle
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import zstandard
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import planted
import recorded

FIXTURES = Path(__file__).parents[1] / "fixtures" / "slurm"
SECRET = planted.SHAPED["hugging face"]
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 2**31, 2**53, 2**63, 2**64 - 1, -(2**63), 10**25, 1e308,
    float("nan"), float("inf"), "", " ", "x", "0", "-1", "9" * 400, "\0", "\x1b[31m", "‮x",
    "\ud800",
    "node[0-99999999]", "n[1-", "FAILED", "CANCELLED by 0", ["FAILED", "REQUEUED"], [], {}, [[]],
    [None], {"set": True, "infinite": False, "number": 3}, {"number": -1}, {"set": True},
    {"number": float("nan"), "set": True}, SECRET, f"--token {SECRET}", "a" * 10_000, [1] * 200,
    {"": {"": {"": 0}}}, 253402300800, 1772338375, "2026-03-01T04:12:55", "0000-00-00T00:00:00",
)  # fmt: skip
Path_ = tuple[Any, ...]


@cache
def _document(name: str) -> Any:
    return json.loads((FIXTURES / name).read_text("utf-8"))


def places(value: Any, at: Path_ = ()) -> list[Path_]:
    """Every place of a document, by the keys that lead there."""
    found = [at] if at else []
    if isinstance(value, dict):
        inner = list(value.items())
    else:
        inner = list(enumerate(value)) if isinstance(value, list) else []
    for key, item in inner:
        found += places(item, (*at, key))
    return found


@cache
def _places(name: str) -> tuple[Path_, ...]:
    return tuple(places(_document(name)))


def changed(value: Any, edits: Sequence[tuple[Path_, Any]]) -> Any:
    """The document with values put in places, as far as these are still there."""
    made = deepcopy(value)
    for path, new in edits:
        held = made
        try:
            for key in path[:-1]:
                held = held[key]
            if new is DELETED:
                del held[path[-1]]
            else:
                held[path[-1]] = deepcopy(new)
        except (KeyError, IndexError, TypeError):
            continue
    return made


DELETED = object()


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def cut(data: bytes, part: float | None, flips: Sequence[tuple[float, int]]) -> bytes:
    """Bytes flipped, and the end missing."""
    made = bytearray(data)
    for at, value in flips:
        if made:
            made[int(at * (len(made) - 1))] ^= value
    return bytes(made if part is None else made[: int(part * len(made))])


def damage() -> SearchStrategy[Callable[[bytes], bytes]]:
    flips = st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), max_size=4)
    part = st.none() | st.floats(0, 1)
    return st.builds(lambda p, f: lambda data: cut(data, p, f), part, flips)


def whole() -> SearchStrategy[Callable[[bytes], bytes]]:
    return st.just(lambda data: data) | damage()


def edits(paths: Sequence[Path_]) -> SearchStrategy[list[tuple[Path_, Any]]]:
    new = st.sampled_from([*ODD, DELETED, DELETED])
    return st.lists(st.tuples(st.sampled_from(paths), new), max_size=6)


def json_records() -> SearchStrategy[tuple[str, bytes]]:
    """Slurm's JSON with fields of other kinds, missing, and bytes damaged."""

    def of(name: str) -> SearchStrategy[tuple[str, bytes]]:
        return st.builds(
            lambda e, d: (name, d(as_json(changed(_document(name), e)))),
            edits(_places(name)),
            whole(),
        )

    return st.one_of(*(of(p.name) for p in sorted(FIXTURES.glob("*.json"))))


WORDS = (
    "FAILED", "NODE_FAIL", "CANCELLED by 1", "TIMEOUT", "OUT_OF_MEMORY", "COMPLETED", "RUNNING",
    "DOWN*+DRAIN", "0:9", "0:125", "-1:-1", "9" * 40 + ":0", "Unknown", "2026-03-01T04:00:00",
    "9999-12-31T23:59:59", "0000-01-01T00:00:00", "1-00:00:00", "UNLIMITED", "n[1-4,7]",
    "n[1-9999999]",
    "gres/gpu=8", "billing=9", "8308.batch", "8308.4294967294", "8308+1", "8308_[1-5%2]", SECRET,
    "",
    "|", "||||||", "\0", "\x1b[31m", "‮", "\udcff", "a" * 3_000, "JobId=", "NodeName=x State=",
)  # fmt: skip


def text_records() -> SearchStrategy[tuple[str, bytes]]:
    """Tables and pages of Slurm's commands, with words of other columns, lines gone or doubled."""

    def edited(name: str, moves: list[tuple[int, str]], drop: list[int]) -> tuple[str, bytes]:
        lines = (FIXTURES / name).read_text("utf-8").split("\n")
        for at, word in moves:
            row = at % len(lines)
            separator = "|" if "|" in lines[row] else " "
            cells = lines[row].split(separator)
            cells[at // 7 % len(cells)] = word
            lines[row] = separator.join(cells)
        kept = [line for at, line in enumerate(lines) if at not in drop]
        return name, "\n".join(kept).encode("utf-8", "surrogateescape")

    names = [p.name for p in sorted(FIXTURES.iterdir()) if p.suffix in (".txt", ".psv")]
    moves = st.lists(st.tuples(st.integers(0, 4_000), st.sampled_from(WORDS)), max_size=6)
    made = st.builds(
        edited, st.sampled_from(names), moves, st.lists(st.integers(0, 40), max_size=3)
    )
    return st.builds(lambda record, d: (record[0], d(record[1])), made, whole())


def _dump() -> dict[str, Any]:
    frames = [{"name": "f", "filename": "/a.py", "line": 3}]
    return recorded.raw(
        recorded.left(6, frames=frames, process_group=("0", f"pg {SECRET}")),
        recorded.entry(7, frames=frames),
        recorded.entry(8, f"nccl:send {SECRET}", is_p2p=True),
        status={"0": recorded.counters(7, 6)},
    )


def dumps() -> SearchStrategy[tuple[str, bytes]]:
    """Flight-recorder dumps, as pickle of any protocol or as JSON, edited and damaged."""
    held = edits(places(_dump()))
    names = st.sampled_from(["_dump_0", "_dump_1", "nccl_trace_rank_2", "fr.pkl", "_dump_999999"])

    def written(name: str, e: list[tuple[Path_, Any]], protocol: int, d: Any) -> tuple[str, bytes]:
        value = changed(_dump(), e)
        data = as_json(value) if protocol < 0 else pickle.dumps(value, protocol)
        return name, d(data)

    return st.builds(written, names, held, st.integers(-1, 5), whole())


METRIC_LINES = (
    "# TYPE DCGM_FI_DEV_GPU_TEMP gauge", "# HELP x y", "# EOF", "# EOF\n# EOF", "#", "",
    'DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-1",Hostname="n1"} 1980 1772338375000',
    'DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-1",Hostname="n1"} 300 1772338435000',
    'DCGM_FI_DEV_SM_CLOCK{gpu="1",UUID="GPU-2",Hostname="n1"} 1980 1772338375.000',
    'DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="0",Hostname="n1"} 8 1772338375000',
    'DCGM_FI_DEV_POWER_USAGE{gpu="0",Hostname="n1"} NaN 1772338375000',
    'DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="n1"} 1e999 1772338375000',
    'DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="n1"} -Inf 1772338375000 # {trace_id="x"} 1 1',
    f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",Hostname="{SECRET}"}} 90 1772338375000',
    f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",token="{SECRET}"}} 91 1772338495000',
    'x{a="\\"\\\\\\n"} 1 1', 'x{a="b} 1 1', "x{} 1 1", '{"x",a="b"} 1 1', 'x{a="1",a="2"} 1 1',
    "x 1 253402300800000", "x 1 -1", "x 1 1_0", "x 0x10 1", "x", "x 1 1 1", 'x{‮="b"} 1 1',
    'gpu_junction_temperature{gpu_id="0",hostname="n1"} 90 1772338375000',
    "x" * 70_000, '{"a"="b"}', "\0", "x{" + 'a="b",' * 300 + "} 1 1",
)  # fmt: skip


def metrics() -> SearchStrategy[tuple[str, bytes]]:
    """Prometheus text and OpenMetrics in any order, damaged."""
    lines = st.lists(st.sampled_from(METRIC_LINES), max_size=30)
    return st.builds(lambda rows, d: ("m.prom", d("\n".join(rows).encode())), lines, whole())


def _zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


PACKERS = (gzip.compress, lzma.compress, bz2.compress, _zst)


def packed(inside: SearchStrategy[bytes]) -> SearchStrategy[bytes]:
    """Archives, of one another too, damaged, with others or anything behind them."""

    def made(data: bytes, layers: list[Any], tail: bytes, d: Any) -> bytes:
        for layer in layers:
            data = layer(data)
        return d(data) + tail

    layers = st.lists(st.sampled_from(PACKERS), min_size=1, max_size=3)
    tails = st.sampled_from([b"", b"\0" * 9, b"x", gzip.compress(b"step 1/2\n"), b"\x1f\x8b\x08"])
    return st.builds(made, inside, layers, tails, whole())
