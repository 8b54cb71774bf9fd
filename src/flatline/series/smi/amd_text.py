"""
`amd-smi metric`: `GPU: 0` and its sections by indentation, one GPU after another.

With `--watch` each has `TIMESTAMP`, seconds since 1970; else a date may stand on a line before.
Layout: ROCm 6.0 to 7.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flatline.series.smi._amd import METRIC, values_of
from flatline.series.smi._rows import LINE_CHARS, UNKNOWN, Row, begins, documents, epoch, only

TOOL = "amd-smi"
_LINE = re.compile(r"GPU: \d{1,4}\s*$|\s{4,}\S|WARNING: |'CTRL' \+ 'C'")
_GPU = re.compile(r"(?m)^GPU: (\d{1,4})\s*$")
_FIELD = re.compile(r"( +)([A-Za-z0-9_#]+):(?: (.*))?")
_SECTION = re.compile(
    r"\s{4,}(?:USAGE|POWER|CLOCK|TEMPERATURE|ECC|MEM_USAGE|PCIE|TIMESTAMP|THROTTLE):"
)


def recognise(head: bytes) -> bool:
    first = [line for line in begins(head) if not line.startswith(("WARNING", "'CTRL'"))]
    return (
        len(first) > 1
        and _GPU.match(first[0]) is not None
        and _SECTION.match(first[1]) is not None
        and only(head, _LINE)
    )


def read(text: str) -> Iterator[Row]:
    for at, document in documents(text):
        parts = _GPU.split(document)
        for gpu, body in zip(parts[1::2], parts[2::2], strict=True):
            fields = _fields(body)
            own = epoch(fields.get("timestamp", ""))
            when, zoned = own if own != UNKNOWN else at
            yield Row(when, zoned, {"gpu": gpu}, values_of(fields, METRIC))


def _fields(body: str) -> dict[str, str]:
    """Each value by its sections and name, in small letters."""
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in body.split("\n"):
        field = _FIELD.fullmatch(line.rstrip()[:LINE_CHARS])
        if field is None:
            continue
        depth, name = len(field[1]), field[2].lower()
        while above and above[-1][0] >= depth:
            above.pop()
        above.append((depth, name))
        if field[3]:
            found.setdefault("/".join(part for _, part in above), field[3].strip())
    return found
