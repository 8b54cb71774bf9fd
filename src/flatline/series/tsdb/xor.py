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
ROWS = 8168
"""No power of two: a column of them would lie in a few lines of the cache."""

# by the first four bits of a timestamp: how long the prefix is, how long what follows it
_PREFIX = np.array([1] * 8 + [2] * 4 + [3] * 2 + [4, 4], dtype=np.uint64)
_PAYLOAD = np.array([0] * 8 + [14] * 4 + [17] * 2 + [20, 64], dtype=np.int64)
_BITS = _PREFIX.astype(np.int64) + _PAYLOAD
_KEEP = (63 - _PAYLOAD.clip(max=63)).astype(np.uint64)
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
    counts, bad = counted(chunks)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    times, values = np.empty(int(offsets[-1]), dtype=np.int64), np.empty(int(offsets[-1]))
    bad |= decode_into(chunks, counts, offsets[:-1], times, values)
    if bad.any():
        kept = np.repeat(~bad, counts)
        times, values = times[kept], values[kept]
        offsets = np.concatenate(([0], np.cumsum(np.where(bad, 0, counts)))).astype(np.int64)
    return Decoded(times, values, offsets, bad)


def counted(chunks: Sequence[bytes]) -> tuple[Ints, NDArray[np.bool_]]:
    """How many samples each chunk says it has, and which are too short for them: those count 0."""
    lengths = np.fromiter(map(len, chunks), dtype=np.int64, count=len(chunks))
    heads = b"".join([chunk[:2].ljust(2, b"\0") for chunk in chunks])
    counts = np.frombuffer(heads, dtype=">u2").astype(np.int64)
    least = np.where(counts > 0, 9 + (counts > 1) + (2 * (counts - 2).clip(min=0)) // 8, 0)
    bad = (lengths < 2) | (least > lengths - 2)  # a sample after the second has two bits or more
    return np.where(bad, 0, counts), bad


def decode_into(
    chunks: Sequence[bytes], counts: Ints, places: Ints, times: Ints, values: Floats
) -> NDArray[np.bool_]:
    """Writes the samples of chunk i to `places[i]` and behind, milliseconds and values; which
    chunks are bad: what is written there means nothing."""
    bad = np.zeros(len(chunks), dtype=np.bool_)
    for rows in _batches(counts):
        parts = [chunks[row] for row in rows.tolist()]
        ends = np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)))
        begins = np.concatenate(([0], ends[:-1])) + 2
        at_t, at_v, reached = _Lockstep(b"".join(parts), begins * 8, counts[rows]).run()
        bad[rows] = reached > ends * 8
        most, sizes, to = at_t.shape[0], counts[rows], places[rows]
        at_t, at_v = np.ascontiguousarray(at_t.T), np.ascontiguousarray(at_v.T)
        apart = (to[1:] != to[:-1] + most) | (sizes[:-1] != most)
        cuts = np.concatenate(([0], np.flatnonzero(apart) + 1, [rows.size])).tolist()
        flat_t, flat_v = at_t.reshape(-1), at_v.reshape(-1).view(np.float64)
        stops = ((np.array(cuts[1:]) - 1) * most + sizes[np.array(cuts[1:]) - 1]).tolist()
        for first, stop, place in zip(cuts, stops, to[cuts[:-1]].tolist(), strict=False):
            begin = first * most
            times[place : place + stop - begin] = flat_t[begin:stop]
            values[place : place + stop - begin] = flat_v[begin:stop]
    return bad


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
    """Chunks sorted by count, longest first: those not yet done are always the first ones.

    A shift by 64 bits or more gives 0, as numpy has it.
    """

    def __init__(self, stream: bytes, begins: Ints, counts: Ints) -> None:
        padded = stream + bytes(24 + -len(stream) % 8)
        self.words = np.frombuffer(padded, dtype=">u8").astype(np.uint64)
        self.pos = begins.astype(np.int64)
        self.counts = counts

    def peek(self, pos: Ints) -> U64:
        """The next 64 bits at each position; beyond the end whatever is there."""
        word = pos >> 6
        shift = (pos & 63).view(np.uint64)
        high = self.words.take(word, mode="clip")
        high <<= shift
        word += 1
        low = self.words.take(word, mode="clip")
        low >>= _U(64) - shift
        high |= low
        return high

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
        most, still = int(self.counts[0]), self.pos.size
        times = np.empty((most, still), dtype=np.int64)
        values = np.empty((most, still), dtype=np.uint64)
        ends = np.empty(still, dtype=np.int64)
        zigzag = self.varints()
        time = (zigzag >> _U(1)).astype(np.int64) ^ -(zigzag & _U(1)).astype(np.int64)
        state = _Values(self, self.peek(self.pos))
        self.pos += 64
        times[0], values[0] = time, state.value
        delta = np.zeros(still, dtype=np.int64)
        for number in range(1, most):
            left = int(np.searchsorted(-self.counts, -number, side="left"))
            if left < still:
                ends[left:still] = self.pos[left:]
                still = left
                delta, time = delta[:still].copy(), time[:still].copy()
                self.pos = self.pos[:still].copy()
                state.cut(still)
            if number == 1:
                delta = self.varints().astype(np.int64)
                rest = self.peek(self.pos)
            else:
                rest = self._time(delta)
            time += delta
            state.step(rest)
            times[number, :still], values[number, :still] = time, state.value
        ends[:still] = self.pos
        return times, values, ends

    def _time(self, delta: Ints) -> U64:
        """Reads how much each delta changes; what follows it in the stream."""
        bits = self.peek(self.pos)
        rest = bits << _U(1)
        self.pos += 1
        if bits.max() < _U(1 << 63):  # no interval changed
            return rest
        changed = np.flatnonzero(bits >> _U(63))
        bits = bits[changed]
        kind = (bits >> _U(60)).astype(np.intp)
        change = ((bits << _PREFIX.take(kind) >> _U(1)) >> _KEEP.take(kind)).view(np.int64)
        change -= np.where(change > _HALF.take(kind), _FULL.take(kind), 0)
        length = _BITS.take(kind)
        rest[changed] = bits << length.astype(np.uint64)
        wide = np.flatnonzero(kind == _WIDE)
        if wide.size:
            change[wide] = self.peek(self.pos[changed[wide]] + 3).view(np.int64)
        delta[changed] += change
        self.pos[changed] += length - 1
        if wide.size:
            rest[changed[wide]] = self.peek(self.pos[changed[wide]])
        return rest


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
        fresh = np.flatnonzero(bits >= _U(3 << 62))
        if fresh.size:
            of = bits[fresh]
            leading = ((of >> _U(57)) & _U(31)).view(np.int64)
            width = ((of >> _U(51)) & _U(63)).view(np.int64)
            width[width == 0] = 64
            self.width[fresh] = width
            self.trailing[fresh] = ((64 - leading - width) & 63).view(np.uint64)
        pos = self.stream.pos
        pos += 1
        if bits.max() < _U(1 << 63):  # no value changed
            return
        changed = (bits >> _U(63)).view(np.int64)
        pos += changed
        pos[fresh] += 11
        width = self.width & -changed  # of those that stay as they were: 0
        part = self.stream.peek(pos)
        part >>= (64 - width).view(np.uint64)
        part <<= self.trailing
        self.value ^= part
        pos += width
