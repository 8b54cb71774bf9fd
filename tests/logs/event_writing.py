"""TensorBoard event files as frameworks write them, for tests."""

from __future__ import annotations

import struct

from google_crc32c import value as crc32c


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    head = struct.pack("<Q", len(data))
    return head + masked(head) + data + masked(data)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def part(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def event(at: float, step: int, *values: bytes) -> bytes:
    summary = b"".join(part(1, value) for value in values)
    return record(
        b"\x09" + struct.pack("<d", at) + b"\x10" + varint(step) + part(5, summary)
    )  # fmt: skip


def simple(tag: str, value: float) -> bytes:
    """A scalar of TensorFlow 1, PyTorch and JAX."""
    return part(1, tag.encode()) + b"\x15" + struct.pack("<f", value)


def tensor(tag: str, value: float, *, content: bool = False) -> bytes:
    """A scalar of TensorFlow 2 and Keras."""
    packed = struct.pack("<f", value)
    inside = b"\x08\x01" + b"\x12\x00" + (part(4, packed) if content else part(5, packed))
    return part(1, tag.encode()) + part(8, inside)


def first(at: float = 1e9) -> bytes:
    return record(b"\x09" + struct.pack("<d", at) + part(3, b"brain.Event:2"))


def written(*events: bytes) -> bytes:
    return first() + b"".join(events)
