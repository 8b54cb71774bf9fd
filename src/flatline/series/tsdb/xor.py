"""
Float chunks (Gorilla's XOR encoding), many at once.

A chunk is a stream of bits whose length is known only by reading it, so one chunk cannot be
decoded by array operations; but thousands of chunks can, sample by sample in lockstep: one round
reads the next sample of each.  Layout: `tsdb/chunkenc/xor.go` of Prometheus.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flatline.series.storage import Floats, Ints

U64 = NDArray[np.uint64]
CELLS = 1 << 20
"""Samples decoded at once: the arrays of a round stay in the processor's cache."""
ROWS = 8192

# by the first four bits of a timestamp: how long the prefix is, how long what follows it
_PREFIX = np.array([1] * 8 + [2] * 4 + [3] * 2 + [4, 4], dtype=np.int64)
_PAYLOAD = np.array([0] * 8 + [14] * 4 + [17] * 2 + [20, 64], dtype=np.int64)
_BITS = _PREFIX + _PAYLOAD
_KEEP = (np.uint64(63) - _PAYLOAD.clip(max=63).astype(np.uint64)).astype(np.uint64)
_HALF = np.where(_PAYLOAD > 0, 1 << (_PAYLOAD.clip(1, 20) - 1), 1).astype(np.int64)
_FULL = np.where(_PAYLOAD > 0, 1 << _PAYLOAD.clip(max=20), 0).astype(np.int64)
_WIDE = 15
_U = np.uint64


@dataclass(frozen=True, slots=True)
class Decoded:
    """Chunk i holds `times[offsets[i]:offsets[i + 1]]` in milliseconds and the same of `values`;
    it is empty where `bad[i]`: its bits do not make the samples it says it has."""

    times: Ints
    values: Floats
    offsets: Ints
    bad: NDArray[np.bool_]


def decode(chunks: Sequence[bytes]) -> Decoded:
    """Samples of chunks: two bytes of count, then the stream."""
    lengths = np.fromiter(map(len, chunks), dtype=np.int64, count=len(chunks))
    counts = np.fromiter(
        (int.from_bytes(chunk[:2], "big") for chunk in chunks), dtype=np.int64, count=len(chunks)
    )
    least = np.where(counts > 0, 9 + (counts > 1) + (2 * (counts - 2).clip(min=0)) // 8, 0)
    bad = (lengths < 2) | (least > lengths - 2)  # a sample after the second has two bits or more
    counts = np.where(bad, 0, counts)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    times = np.empty(int(offsets[-1]), dtype=np.int64)
    values = np.empty(times.size, dtype=np.uint64)
    for rows in _batches(counts):
        stream = b"".join(chunks[row][2:] for row in rows.tolist())
        begins = np.concatenate(([0], np.cumsum(lengths[rows] - 2)))
        lockstep = _Lockstep(stream, begins[:-1] * 8, counts[rows])
        at_t, at_v, ends = lockstep.run()
        bad[rows] = ends > begins[1:] * 8
        first, last, most = int(rows[0]), int(rows[-1]), at_t.shape[0]
        if last - first + 1 == rows.size and counts[last] == most:  # neighbours of one length
            part = slice(int(offsets[first]), int(offsets[last + 1]))
            times[part].reshape(-1, most)[:] = at_t.T
            values[part].reshape(-1, most)[:] = at_v.T
            continue
        there = np.arange(most)[None, :] < counts[rows][:, None]
        places = (offsets[rows][:, None] + np.arange(most)[None, :])[there]
        times[places] = at_t.T[there]
        values[places] = at_v.T[there]
    if bad.any():
        kept = np.repeat(~bad, counts)
        times, values = times[kept], values[kept]
        offsets = np.concatenate(([0], np.cumsum(np.where(bad, 0, counts)))).astype(np.int64)
    return Decoded(times, values.view(np.float64), offsets, bad)


def _batches(counts: Ints) -> Iterator[Ints]:
    """Rows that are decoded together: of about the same count, the longest first."""
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    at = 0
    while at < order.size:
        size = max(1, min(ROWS, CELLS // int(counts[order[at]])))
        yield order[at : at + size]
        at += size


class _Lockstep:
    """Chunks sorted by count, longest first: those not yet done are always the first ones."""

    def __init__(self, stream: bytes, begins: Ints, counts: Ints) -> None:
        padded = stream + bytes(24 + -len(stream) % 8)
        self.words = np.frombuffer(padded, dtype=">u8").astype(np.uint64)
        self.pos = begins.astype(np.int64)
        self.counts = counts

    def peek(self, pos: Ints) -> U64:
        """The next 64 bits at each position; beyond the end whatever is there."""
        word = pos >> 6
        shift = (pos & 63).astype(np.uint64)
        high = self.words.take(word, mode="clip") << shift
        low = self.words.take(word + 1, mode="clip") >> _U(1)
        return high | (low >> (_U(63) - shift))

    def varints(self) -> U64:
        """The next base-128 number of each chunk, unsigned."""
        value = np.zeros(self.pos.size, dtype=np.uint64)
        more = np.ones(self.pos.size, dtype=np.bool_)
        for shift in range(0, 70, 7):
            byte = self.peek(self.pos) >> _U(56)
            value |= np.where(more, (byte & _U(127)) << _U(min(shift, 63)), _U(0))
            self.pos += np.where(more, 8, 0)
            more &= byte > _U(127)
            if not more.any():
                break
        return value

    def run(self) -> tuple[Ints, U64, Ints]:
        """Times and values, one row a round, and the bit each chunk ended at."""
        most = int(self.counts[0])
        times = np.empty((most, self.pos.size), dtype=np.int64)
        values = np.empty((most, self.pos.size), dtype=np.uint64)
        zigzag = self.varints()
        times[0] = (zigzag >> _U(1)).astype(np.int64) ^ -(zigzag & _U(1)).astype(np.int64)
        values[0] = self.peek(self.pos)
        self.pos += 64
        ends = self.pos.copy()
        still = int(np.searchsorted(-self.counts, -1, side="left"))
        if not still:
            return times, values, ends
        self.pos = self.pos[:still]
        delta = self.varints().astype(np.int64)
        time = times[0, :still] + delta
        state = _Values(self, values[0, :still].copy())
        state.step(self.peek(self.pos))
        times[1, :still], values[1, :still] = time, state.value
        ends[:still] = self.pos
        for number in range(2, most):
            left = int(np.searchsorted(-self.counts, -number, side="left"))
            if left < still:
                still = left
                delta, time = delta[:still].copy(), time[:still].copy()
                self.pos = self.pos[:still].copy()
                state.cut(still)
            rest = self._time(delta)
            time += delta
            state.step(rest)
            times[number, :still], values[number, :still] = time, state.value
            ends[:still] = self.pos
        return times, values, ends

    def _time(self, delta: Ints) -> U64:
        """Reads how much each delta changes; what follows it in the stream."""
        bits = self.peek(self.pos)
        kind = (bits >> _U(60)).astype(np.intp)
        if not kind.any() or int(kind.max()) < 8:  # no interval changed
            self.pos += 1
            return bits << _U(1)
        shifted = bits << _PREFIX_U.take(kind)
        change = ((shifted >> _U(1)) >> _KEEP.take(kind)).astype(np.int64)
        change -= np.where(change > _HALF.take(kind), _FULL.take(kind), 0)
        length = _BITS.take(kind)
        rest = bits << length.astype(np.uint64)
        wide = np.flatnonzero(kind == _WIDE)
        if wide.size:
            change[wide] = self.peek(self.pos[wide] + 4).astype(np.int64)
        delta += np.where(kind < 8, 0, change)
        self.pos += length
        if wide.size:
            rest[wide] = self.peek(self.pos[wide])
        return rest


_PREFIX_U = _PREFIX.astype(np.uint64)


class _Values:
    """The value each chunk is at, and which of its bits the last change touched."""

    def __init__(self, stream: _Lockstep, value: U64) -> None:
        self.stream = stream
        self.value = value
        self.trailing = np.zeros(value.size, dtype=np.uint64)
        self.width = np.zeros(value.size, dtype=np.int64)

    def cut(self, still: int) -> None:
        self.value = self.value[:still].copy()
        self.trailing = self.trailing[:still].copy()
        self.width = self.width[:still].copy()

    def step(self, bits: U64) -> None:
        """Reads how each value changes; `bits` are the next of each chunk (13 at least)."""
        pos = self.stream.pos
        changed = np.flatnonzero(bits >> _U(63))
        if not changed.size:
            pos += 1
            return
        head = bits[changed]
        anew = (head & _U(1 << 62)) != 0
        length = np.where(anew, 13, 2)
        fresh = changed[anew]
        if fresh.size:
            of = head[anew]
            leading = ((of >> _U(57)) & _U(31)).astype(np.int64)
            width = ((of >> _U(51)) & _U(63)).astype(np.int64)
            width[width == 0] = 64
            self.width[fresh] = width
            self.trailing[fresh] = ((64 - leading - width) & 63).astype(np.uint64)
        width = self.width[changed]
        at = pos[changed] + length
        drop = (63 - width.clip(0, 63)).astype(np.uint64)
        whole = self.stream.peek(at)
        part = np.where(width == 64, whole, (whole >> _U(1)) >> drop)
        self.value[changed] ^= part << self.trailing[changed]
        pos += 1
        pos[changed] += length - 1 + width
