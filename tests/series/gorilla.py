"""Float chunks as Prometheus writes them, a bit at a time: slow, and plainly right."""

from __future__ import annotations

import struct


class Bits:
    def __init__(self) -> None:
        self.bits: list[str] = []

    def write(self, value: int, width: int) -> None:
        self.bits.append(f"{value & ((1 << width) - 1):0{width}b}" if width else "")

    def data(self) -> bytes:
        joined = "".join(self.bits)
        joined += "0" * (-len(joined) % 8)
        return bytes(int(joined[at : at + 8], 2) for at in range(0, len(joined), 8))


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def varint(value: int) -> bytes:
    return uvarint((value << 1) ^ (value >> 63) if value < 0 else value << 1)


def bits_of(value: float) -> int:
    return int.from_bytes(struct.pack(">d", value), "big")


def encode(samples: list[tuple[int, float]]) -> bytes:
    """Count and stream of (millisecond, value) pairs; times rise."""
    out = Bits()
    leading, trailing = 99, 0
    for number, (time, value) in enumerate(samples):
        if number == 0:
            for byte in varint(time):
                out.write(byte, 8)
            out.write(bits_of(value), 64)
            continue
        delta = time - samples[number - 1][0]
        if number == 1:
            for byte in uvarint(delta):
                out.write(byte, 8)
        else:
            _change(out, delta - (samples[number - 1][0] - samples[number - 2][0]))
        leading, trailing = _value(
            out, bits_of(value) ^ bits_of(samples[number - 1][1]), leading, trailing
        )
    return struct.pack(">H", len(samples)) + out.data()


def _change(out: Bits, change: int) -> None:
    if change == 0:
        return out.write(0, 1)
    for prefix, length, width in ((0b10, 2, 14), (0b110, 3, 17), (0b1110, 4, 20)):
        if -((1 << (width - 1)) - 1) <= change <= 1 << (width - 1):
            out.write(prefix, length)
            return out.write(change, width)
    out.write(0b1111, 4)
    return out.write(change, 64)


def _value(out: Bits, xor: int, leading: int, trailing: int) -> tuple[int, int]:
    if xor == 0:
        out.write(0, 1)
        return leading, trailing
    out.write(1, 1)
    front = min(31, 64 - xor.bit_length())
    back = (xor & -xor).bit_length() - 1
    if leading != 99 and front >= leading and back >= trailing:
        out.write(0, 1)
        out.write(xor >> trailing, 64 - leading - trailing)
        return leading, trailing
    width = 64 - front - back
    out.write(1, 1)
    out.write(front, 5)
    out.write(width & 63, 6)
    out.write(xor >> back, width)
    return front, back
