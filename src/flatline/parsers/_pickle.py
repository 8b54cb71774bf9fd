"""
A reader of pickles that can hold nothing but data.

A pickle is a program for a small stack machine.  This machine knows the instructions of protocols
0 to 5 that build lists, tuples, dicts, strings, bytes, numbers, booleans and None.  It has none
for naming, calling or building anything else: a file that asks for one is refused, not skipped.
`pickle.Unpickler` with a refusing `find_class` would not do: a memo index makes it reserve
memory without bound, and a dict key of nested shared tuples keeps it hashing for ever.  Keys are
strings here.

Instructions: CPython Lib/pickletools.py.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from flatline.errors import FormatError

MAX_BYTES = 64 << 20
"""Ten times a recorder of 20 000 entries without stack frames; its own default is 2 000."""
MAX_DEPTH = 32
"""A dump nests eight levels deep (entries, entry, frames, frame ...)."""
MAX_INTEGER_BYTES = 32
_STOP = 0x2E


def read_pickle(data: bytes) -> Any:
    """The value a pickle holds. Raises `FormatError` for anything but plain, bounded data."""
    if len(data) > MAX_BYTES:
        raise FormatError(f"a pickle of {len(data)} bytes; at most {MAX_BYTES} are read")
    value = _Machine(data).run()
    _measure(value)
    return value


def _measure(value: object) -> None:
    """Refuses what nests too deep, and what holds itself only once however often it does."""
    level: list[object] = [value]
    seen: set[int] = set()
    for _ in range(MAX_DEPTH):
        inner: list[object] = []
        for each in level:
            if isinstance(each, list | tuple | dict) and id(each) not in seen:
                seen.add(id(each))
                inner.extend(each.values() if isinstance(each, dict) else each)
        if not inner:
            return
        level = inner
    raise FormatError(f"a pickle that nests deeper than {MAX_DEPTH} levels")


class _Machine:
    """The stack, the memo, and the place in the file."""

    __slots__ = ("at", "data", "marks", "memo", "stack")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        data, actions = self.data, _ACTIONS
        try:
            while (code := data[self.at]) != _STOP:
                self.at += 1
                action = actions.get(code)
                if action is None:
                    raise FormatError(
                        f"a pickle that asks for more than data (instruction {code:#04x} at byte "
                        f"{self.at - 1}): refused"
                    )
                action(self)
            return self.stack.pop()
        except (IndexError, struct.error):
            raise FormatError("a pickle that is cut off or not well-formed") from None
        except (KeyError, ValueError, OverflowError):
            # its own words would quote the file, in which a letter may stand before a secret
            raise FormatError(f"a pickle that is not well-formed at byte {self.at}") from None

    def take(self, count: int) -> bytes:
        found = self.data[self.at : self.at + count]
        if count < 0 or len(found) < count:
            raise IndexError
        self.at += count
        return found

    def number(self, count: int) -> int:
        if count == 1:  # nine in ten of a recorder's arguments
            self.at += 1
            return self.data[self.at - 1]
        return int.from_bytes(self.take(count), "little")

    def text_line(self) -> str:
        end = self.data.index(b"\n", self.at)
        line = self.data[self.at : end]
        self.at = end + 1
        return line.decode("utf-8")

    def since_mark(self) -> list[Any]:
        start = self.marks.pop()
        found = self.stack[start:]
        del self.stack[start:]
        return found


def _skip_protocol(m: _Machine) -> None:
    if (protocol := m.number(1)) > 5:
        raise FormatError(f"a pickle of protocol {protocol}; 0 to 5 are read")


def _skip_frame_length(m: _Machine) -> None:
    m.take(8)  # nothing is buffered here


def _mark(m: _Machine) -> None:
    m.marks.append(len(m.stack))


def _pop(m: _Machine) -> None:
    if m.marks and m.marks[-1] == len(m.stack):
        m.marks.pop()
    else:
        m.stack.pop()


def _pop_mark(m: _Machine) -> None:
    m.since_mark()


def _tuple(m: _Machine) -> None:
    m.stack.append(tuple(m.since_mark()))


def _tuple_of(count: int) -> Callable[[_Machine], None]:
    def act(m: _Machine) -> None:
        if len(m.stack) < count:
            raise IndexError
        m.stack[-count:] = [tuple(m.stack[-count:])]

    return act


def _append(m: _Machine) -> None:
    value = m.stack.pop()
    _list_on_top(m).append(value)


def _appends(m: _Machine) -> None:
    values = m.since_mark()
    _list_on_top(m).extend(values)


def _list_on_top(m: _Machine) -> list[Any]:
    top = m.stack[-1]
    if not isinstance(top, list):
        raise FormatError("a pickle that appends to what is no list")
    return top


def _set_item(m: _Machine) -> None:
    value, key = m.stack.pop(), m.stack.pop()
    _fill(m.stack[-1], [key, value])


def _set_items(m: _Machine) -> None:
    pairs = m.since_mark()
    _fill(m.stack[-1], pairs)


def _dict(m: _Machine) -> None:
    found: dict[Any, Any] = {}
    _fill(found, m.since_mark())
    m.stack.append(found)


def _fill(target: object, pairs: list[Any]) -> None:
    if not isinstance(target, dict) or len(pairs) % 2:
        raise FormatError("a pickle that sets items of what is no dict")
    for index in range(0, len(pairs), 2):
        key = pairs[index]
        if not isinstance(key, str):  # chosen integers collide, nested tuples hash for ever
            raise FormatError(f"a pickle with a key that is no string: {type(key).__name__}")
        target[key] = pairs[index + 1]


def _integer_line(m: _Machine) -> None:
    text = m.text_line().removesuffix("L")
    if len(text) > 2 * MAX_INTEGER_BYTES:
        raise FormatError("a pickle with an integer of unlikely length")
    m.stack.append({"00": False, "01": True}[text] if text in ("00", "01") else int(text))


def _long(size: int) -> Callable[[_Machine], None]:
    def act(m: _Machine) -> None:
        length = m.number(size)
        if length > MAX_INTEGER_BYTES:
            raise FormatError("a pickle with an integer of unlikely length")
        m.stack.append(int.from_bytes(m.take(length), "little", signed=True))

    return act


def _float_line(m: _Machine) -> None:
    m.stack.append(float(m.text_line()))


def _float(m: _Machine) -> None:
    m.stack.append(struct.unpack(">d", m.take(8))[0])


def _quoted(m: _Machine) -> None:
    m.stack.append(m.text_line().strip("'\""))


def _unicode_line(m: _Machine) -> None:
    m.stack.append(m.text_line().encode().decode("raw-unicode-escape"))


def _text(size: int) -> Callable[[_Machine], None]:
    def act(m: _Machine) -> None:
        m.stack.append(m.take(m.number(size)).decode("utf-8", "replace"))

    return act


def _bytes(size: int) -> Callable[[_Machine], None]:
    def act(m: _Machine) -> None:
        m.stack.append(m.take(m.number(size)))

    return act


def _unsigned(size: int) -> Callable[[_Machine], None]:
    def act(m: _Machine) -> None:
        m.stack.append(m.number(size))

    return act


def _signed(m: _Machine) -> None:
    m.stack.append(int.from_bytes(m.take(4), "little", signed=True))


def _put(size: int) -> Callable[[_Machine], None]:
    def act(m: _Machine) -> None:
        m.memo[m.number(size)] = m.stack[-1]

    return act


def _fetch(size: int) -> Callable[[_Machine], None]:
    def act(m: _Machine) -> None:
        m.stack.append(m.memo[m.number(size)])

    return act


def _put_line(m: _Machine) -> None:
    m.memo[int(m.text_line())] = m.stack[-1]


def _fetch_line(m: _Machine) -> None:
    m.stack.append(m.memo[int(m.text_line())])


def _memoize(m: _Machine) -> None:
    m.memo[len(m.memo)] = m.stack[-1]


def _fixed(value: object) -> Callable[[_Machine], None]:
    return lambda m: m.stack.append(value)


_BY_NAME: dict[bytes, Callable[[_Machine], None]] = {
    b"\x80": _skip_protocol,
    b"\x95": _skip_frame_length,
    b"(": _mark,
    b"0": _pop,
    b"1": _pop_mark,
    b"2": lambda m: m.stack.append(m.stack[-1]),
    b"]": lambda m: m.stack.append([]),
    b"}": lambda m: m.stack.append({}),
    b")": _fixed(()),
    b"l": lambda m: m.stack.append(m.since_mark()),
    b"t": _tuple,
    b"d": _dict,
    b"\x85": _tuple_of(1),
    b"\x86": _tuple_of(2),
    b"\x87": _tuple_of(3),
    b"a": _append,
    b"e": _appends,
    b"s": _set_item,
    b"u": _set_items,
    b"N": _fixed(None),
    b"\x88": _fixed(True),
    b"\x89": _fixed(False),
    b"I": _integer_line,
    b"L": _integer_line,
    b"J": _signed,
    b"K": _unsigned(1),
    b"M": _unsigned(2),
    b"\x8a": _long(1),
    b"\x8b": _long(4),
    b"F": _float_line,
    b"G": _float,
    b"S": _quoted,
    b"V": _unicode_line,
    b"U": _text(1),
    b"T": _text(4),
    b"X": _text(4),
    b"\x8c": _text(1),
    b"\x8d": _text(8),
    b"C": _bytes(1),
    b"B": _bytes(4),
    b"\x8e": _bytes(8),
    b"p": _put_line,
    b"q": _put(1),
    b"r": _put(4),
    b"\x94": _memoize,
    b"g": _fetch_line,
    b"h": _fetch(1),
    b"j": _fetch(4),
}
_ACTIONS = {code[0]: action for code, action in _BY_NAME.items()}
