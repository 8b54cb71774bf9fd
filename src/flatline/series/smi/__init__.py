"""
What `nvidia-smi`, `rocm-smi` and `amd-smi` printed into a file, as samples: one form a file.

A form's module has `TOOL`, `recognise(head)` and `read(text)`, which gives rows.  Values go by one
name whatever the form and the version called them, in base units: `smi_*` of NVIDIA's tool,
`amdsmi_*` of AMD's two; `vocab/nvidia_smi.toml` and `vocab/amd_smi.toml` read them.

Only what carries a time becomes a sample.  A time is the form's own, or that of a line before the
document that is nothing but a date, as `date` prints it in a loop.  What has none is no series,
however many times it was printed: it is a gap, which says what its counters stood at, since they
were no less by the end.  A file is taken for one of these forms only if nothing else stands in
its beginning: many a job log begins with such a table.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from flatline.errors import FormatError
from flatline.model import Gap
from flatline.series.smi._rows import Row, date

if TYPE_CHECKING:
    from flatline.series.storage import SeriesBuilder

__all__ = ["Form", "Row", "date", "form_of", "forms", "read_smi"]
FILE_BYTES = 256 << 20
MAX_SERIES = 200_000
SHOWN = 3


class Form(Protocol):
    TOOL: str

    def recognise(self, head: bytes) -> bool:
        """Whether a file begins in this form and holds nothing else as far as it is seen."""

    def read(self, text: str) -> Iterator[Row]:
        """What each GPU showed, in the order it was printed."""


@cache
def forms() -> tuple[Form, ...]:
    """Every form there is a module for."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__) if found.name[0] != "_")
    return tuple(cast(Form, importlib.import_module(f"{__name__}.{name}")) for name in names)


def form_of(head: bytes) -> Form | None:
    """The form a file begins in."""
    text = head.lstrip(b"\xef\xbb\xbf\r\n \t")
    if not text or b"\0" in text:
        return None
    return next((form for form in forms() if form.recognise(text)), None)


def read_smi(path: Path, source: str, builder: SeriesBuilder) -> tuple[Gap, ...]:
    """
    One file into the builder; what of it was not read.

    Raises FormatError where it holds nothing known, OSError where it cannot be read.
    """
    if path.stat().st_size > FILE_BYTES:
        raise FormatError(f"more than {FILE_BYTES >> 20} MiB of what an smi tool printed")
    data = path.read_bytes()
    form = form_of(data[:65_536])
    if form is None:
        raise FormatError("it has no form of an smi tool")
    seen = _Seen()
    for row in form.read(data.decode("utf-8", "replace").lstrip("\ufeff")):
        _keep(row, builder, seen)
    return seen.gaps(form.TOOL, source)


@dataclass(slots=True)
class _Seen:
    """What reading a file came to."""

    samples: int = 0
    untimed: int = 0
    local: bool = False
    left_out: int = 0
    counted: dict[tuple[str, str], float] = field(default_factory=dict)

    def gaps(self, tool: str, source: str) -> tuple[Gap, ...]:
        """Raises FormatError where nothing was seen."""
        found = []
        if self.untimed:
            found.append(Gap("metrics", f"{self.untimed} rows of {tool} carry no time, and are"
                             f" no series{self._least()}", source))  # fmt: skip
        if self.samples and self.local:
            found.append(Gap("time zone", f"{tool} states none; its times are read as UTC",
                             source))  # fmt: skip
        if self.left_out:
            found.append(Gap("metrics", f"only the first {MAX_SERIES} series were read", source))
        if not self.samples and not self.untimed:
            raise FormatError(f"nothing of {tool} in it is known")
        return tuple(found)

    def _least(self) -> str:
        """What the counters had come to at some unknown time: no less by the end."""
        told = [f"at least {value:,.0f} {metric.split('_', 1)[1].removesuffix('_total')} on {gpu}"
                for (metric, gpu), value in sorted(self.counted.items()) if value > 0]  # fmt: skip
        more = f" and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
        return f"; they show {', '.join(told[:SHOWN])}{more}" if told else ""


def _keep(row: Row, builder: SeriesBuilder, seen: _Seen) -> None:
    """A row's values as samples, or as what is told of it."""
    from flatline.redact import mask_value
    from flatline.series.storage import NAME, labels_of

    if row.at is None:
        seen.untimed += 1
        where = f"GPU {row.labels.get('gpu', '?')[:40]}"
        for metric, value in row.values.items():
            if metric.endswith("_total"):
                key = (metric, where)
                seen.counted[key] = max(value, seen.counted.get(key, 0.0))
        return
    seen.local |= not row.zoned
    shown = {name: mask_value(name, value) for name, value in row.labels.items()}
    for metric, value in row.values.items():
        if len(builder) >= MAX_SERIES:
            seen.left_out += 1
            continue
        builder.add(builder.row(labels_of({NAME: metric, **shown})), row.at, value)
        seen.samples += 1
