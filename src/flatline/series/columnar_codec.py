"""
Samples of many series as small whole numbers, and back, bit for bit.

A chunk is what one series holds in one stretch of time.  Nearly all that exporters say is a
decimal of few digits: with the fewest decimals that give every value of a chunk back exactly
(`scale`), its values are integers, their differences have a common divisor (`unit`: 4096 for
memory in pages), and what is left are small numbers, stored as (d << 1) ^ (d >> 63) so that the
high bytes are zero whichever the sign.  A chunk that is no decimal stores the bits of its values,
each XORed with the one before.  A chunk that never changes stores nothing.

What no integer can carry (NaN of any payload, the stale marker, infinities, -0) is *odd*: it
stands apart with its place in the chunk, and the value before it is stored in its place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flatline.series.storage import Floats, Ints

CONSTANT, SMALL, LARGE, BITS = range(4)
"""How a chunk is stored: not at all, as int32 or int64 differences, as XORed bits in int64."""
DECIMALS = 9
"""Most decimals tried: a counter in nanoseconds shown in seconds has nine."""
FACTORS = np.array([float(f"1e{n}") for n in range(DECIMALS + 1)])
EXACT = float(1 << 53)
ODD_SHARE = 0.1
"""Above this share of odd values the bits are stored: each odd value costs some 6 bytes."""


@dataclass(frozen=True, slots=True)
class Coded:
    """
    Chunks that were coded: chunk i has `sizes[i]` samples, of which the stored numbers are
    `numbers[begins[i]:begins[i] + sizes[i]]`, unless it is constant.

    `bases` are the first values: bits of a float where constant or BITS, else integers.
    `odd_chunks`, `odd_places` and `odd_bits` are of one length.
    """

    kinds: NDArray[np.int32]
    scales: NDArray[np.int32]
    units: Ints
    bases: Ints
    numbers: Ints
    odd_chunks: Ints
    odd_places: Ints
    odd_bits: Ints


def encode(values: Floats, offsets: Ints) -> Coded:
    """Chunk i is `values[offsets[i]:offsets[i + 1]]`; none is empty."""
    begins, sizes = offsets[:-1], np.diff(offsets)
    bits = values.view(np.int64)
    odd = ~np.isfinite(values) | (np.abs(values) >= EXACT) | ((values == 0) & np.signbit(values))
    share = np.add.reduceat(odd.astype(np.int64), begins) / sizes
    as_bits = share > ODD_SHARE
    odd &= ~np.repeat(as_bits, sizes)
    plain = _filled(values, odd, begins, sizes) if odd.any() else values
    whole, scales = _scaled(plain, begins, sizes, as_bits)
    as_bits |= scales < 0
    numbers = np.where(np.repeat(as_bits, sizes), bits, whole)
    odd &= ~np.repeat(as_bits, sizes)
    bases = numbers[begins]
    moved = _differences(numbers, begins, np.repeat(as_bits, sizes))
    units = np.gcd.reduceat(moved, begins)
    constant = units == 0
    units = np.where(as_bits | constant, 1, units)
    differ = np.where(np.repeat(as_bits, sizes), moved, moved // np.repeat(units, sizes))
    folded = np.where(np.repeat(as_bits, sizes), differ, (differ << 1) ^ (differ >> 63))
    largest = np.maximum.reduceat(folded, begins)
    kinds = np.where(largest < 1 << 31, SMALL, LARGE)
    kinds = np.where(as_bits, BITS, kinds)
    kinds = np.where(constant, CONSTANT, kinds)
    bases = np.where(constant, plain.view(np.int64)[begins], bases)
    at = np.flatnonzero(odd)
    chunk = np.searchsorted(offsets, at, side="right") - 1
    return Coded(
        kinds.astype(np.int32),
        np.maximum(scales, 0).astype(np.int32),
        units.astype(np.int64),
        bases,
        folded,
        chunk.astype(np.int64),
        at - begins[chunk],
        bits[at],
    )


def _filled(values: Floats, odd: NDArray[np.bool_], begins: Ints, sizes: Ints) -> Floats:
    """With the value before it for each odd one; at the start of a chunk the first that follows,
    and 0 where there is none."""
    places = np.arange(values.size)
    last = np.maximum.accumulate(np.where(odd, -1, places))
    first = np.minimum.reduceat(np.where(odd, values.size, places), begins)
    source = np.where(last < np.repeat(begins, sizes), np.repeat(first, sizes), last)
    return np.where(source < values.size, values[np.minimum(source, values.size - 1)], 0.0)


def _scaled(
    values: Floats, begins: Ints, sizes: Ints, skipped: NDArray[np.bool_]
) -> tuple[Ints, NDArray[np.int64]]:
    """The values as integers with as many decimals as it takes, -1 where none do."""
    scales = np.full(begins.size, -1, dtype=np.int64)
    whole = np.zeros(values.size, dtype=np.int64)
    left = np.flatnonzero(~skipped)
    for decimals in range(DECIMALS + 1):
        if not left.size:
            break
        index = spread(begins[left], sizes[left])
        some = values[index]
        factor = FACTORS[decimals]
        rounded = np.rint(some * factor)
        exact = (rounded / factor == some) & (np.abs(rounded) < EXACT)
        starts = np.cumsum(sizes[left]) - sizes[left]
        fits = np.logical_and.reduceat(exact, starts)
        taken = np.repeat(fits, sizes[left])
        whole[index[taken]] = rounded[taken].astype(np.int64)
        scales[left[fits]] = decimals
        left = left[~fits]
    return whole, scales


def _differences(numbers: Ints, begins: Ints, as_bits: NDArray[np.bool_]) -> Ints:
    """Each number against the one before it in its chunk; 0 for the first."""
    moved = np.zeros_like(numbers)
    apart = np.where(as_bits[1:], numbers[1:] ^ numbers[:-1], numbers[1:] - numbers[:-1])
    moved[1:] = apart
    moved[begins] = 0
    return moved


def spread(begins: Ints, sizes: Ints) -> Ints:
    """The places begins[i] … begins[i] + sizes[i] - 1, one run after the other."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if ends.size else 0
    places: Ints = np.arange(total) + np.repeat(begins - (ends - sizes), sizes)
    return places


def decode(
    kind: int, numbers: Ints, sizes: Ints, scales: Ints, units: Ints, bases: Ints
) -> Floats:
    """The values of chunks of one kind (not CONSTANT), `numbers` one chunk after the other."""
    begins = np.cumsum(sizes) - sizes
    if kind == BITS:
        running = np.bitwise_xor.accumulate(numbers.astype(np.int64, copy=False))
        reset = running[begins] ^ bases
        as_bits: Ints = running ^ np.repeat(reset, sizes)
        return as_bits.view(np.float64)
    differ = ((numbers >> 1) ^ -(numbers & 1)).astype(np.int64, copy=False)
    if np.any(units != 1):
        differ *= np.repeat(units, sizes)
    differ[begins] = 0
    lasts = bases + np.add.reduceat(differ, begins)
    differ[begins] = bases - np.concatenate(([0], lasts[:-1]))
    running = np.cumsum(differ, out=differ)
    factors = FACTORS[scales]
    if not scales.any():
        return running.astype(np.float64)
    alike = np.all(scales == scales[0])
    values: Floats = running / (factors[0] if alike else np.repeat(factors, sizes))
    return values
