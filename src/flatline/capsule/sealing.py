"""
A run into a capsule: what `diagnose` would read of the targets, and nothing else.

The same reading decides what belongs to the run (which job, which hosts, what time), so that a
diagnosis of the capsule starts from the same.  It is made beside its final place and moved there
when it is whole; the targets are only read.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from glob import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from flatline import __version__
from flatline.capsule.archive import pack
from flatline.capsule.names import file_name
from flatline.capsule.texts import masked_dump_of, masked_record, write_log
from flatline.collect import RECORD_BYTES, Reading, Request, read
from flatline.collect.files import Found, OnProgress
from flatline.collect.numbers import Read
from flatline.collect.of_job import named_by
from flatline.errors import FormatError, SourceError, UsageError
from flatline.facts import DUMPS, EVENTS, KERNEL, LOG, METRICS, SCHEDULER
from flatline.model import Gap
from flatline.redact import mask
from flatline.sources.capsule import MAGIC, MANIFEST, UNFINISHED, VERSION

if TYPE_CHECKING:
    from flatline.series.columnar_write import Selection, Written
    from flatline.series.storage import Store

MARGIN = timedelta(hours=1)
"""Metrics kept from before the run, where they are narrowed to it: lookbacks reach five minutes
back, and what people ask of a capsule (`rate(...[30m])` at its first step) further."""
LIBRARIES = ("arro3-core", "arro3-io", "numpy", "promql-parser")
TEXTS = (LOG, KERNEL, EVENTS)


@dataclass(frozen=True, slots=True)
class Sealed:
    """What was made: files, lines that were masked, series, samples, size and what is missing."""

    path: Path
    files: int
    masked_lines: int
    series: int
    samples: int
    size: int
    gaps: tuple[Gap, ...]


@dataclass
class _Making:
    folder: Path
    reading: Reading
    progress: OnProgress
    files: list[dict[str, Any]] = field(default_factory=list)
    stores: list[dict[str, Any]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    def gap(self, need: str, fault: Exception, source: str) -> None:
        reason = getattr(fault, "strerror", None) or str(fault)
        self.gaps.append(Gap(need, mask(f"not in the capsule: {reason}"), source))


def seal(request: Request, output: Path, one_file: bool, progress: OnProgress) -> Sealed:
    """
    Makes the capsule at `output`, which must not be there yet.

    Raises UsageError where the call is wrong, where nothing was found to seal, and where it
    cannot be written.
    """
    reading = read(request, progress)
    if not reading.found and not reading.fetched and not reading.numbers.read:
        raise UsageError("nothing was found that could be sealed")
    try:
        with _beside(output) as folder:
            making = _Making(folder, reading, progress)
            _write_texts(making)
            for number, held in enumerate(reading.numbers.read):
                _write_metrics(making, number, held)
            _write_manifest(making)
            sealed = _sealed(making, output)
            _move(folder, output, one_file)
    except OSError as fault:
        reason = fault.strerror or str(fault)
        raise UsageError(f"--output {output}: {reason}") from fault
    return sealed


@contextmanager
def _beside(output: Path) -> Iterator[Path]:
    folder = output.with_name(f".{output.name}.{os.getpid()}.part")
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _move(folder: Path, output: Path, one_file: bool) -> None:
    """Into its place, without taking that of anything that came there meanwhile."""
    if not one_file:
        if output.exists():
            raise UsageError(f"--output {output} is there by now; nothing is overwritten")
        folder.chmod(0o755)
        folder.rename(output)
        return
    beside = folder.with_suffix(".tar")
    try:
        pack(folder, beside)
        _link(beside, output)
    finally:
        beside.unlink(missing_ok=True)


def _link(beside: Path, output: Path) -> None:
    try:
        os.link(beside, output)
    except OSError as fault:  # there already, or a file system without links
        if os.path.lexists(output):
            raise UsageError(
                f"--output {output} is there by now; nothing is overwritten"
            ) from fault
        beside.rename(output)


# --- logs, records, dumps -----------------------------------------------------------------------


def _write_texts(making: _Making) -> None:
    logs = {found.source: events for found, _, events in making.reading.logs}
    files = [file for file in making.reading.found if file.kind in (*TEXTS, SCHEDULER, DUMPS)]
    total = sum(file.size for file in files)
    done = 0
    for file in files:
        if file.kind in TEXTS and file.source not in logs:
            continue  # it could not be read, and a gap says so

        def tell(size: int, before: int = done) -> None:
            making.progress("sealing logs", min(before + size, total), total)

        try:
            _write_file(making, file, tell)
        except (OSError, SourceError, FormatError) as fault:
            making.gap(file.kind, fault, file.source)
        done += file.size
        making.progress("sealing logs", done, total)
    for source, data in making.reading.fetched:
        try:
            _put(making, source, SCHEDULER, "scheduler", masked_record(source, data))
        except FormatError as fault:
            making.gap(SCHEDULER, fault, source)


def _write_file(making: _Making, file: Found, tell: Callable[[int], None]) -> None:
    if file.kind not in TEXTS:
        if file.size > RECORD_BYTES:
            raise FormatError(f"{file.size} bytes are more than is read")
        data = file.path.read_bytes()
        if file.kind == DUMPS:
            shown = masked_dump_of(data, file.source)
        else:
            shown = masked_record(file.path.name, data)
        _put(making, file.source, file.kind, "file", shown)
        return
    path = _path(making, file.source)
    seen = 0

    def read_on(size: int) -> None:
        nonlocal seen
        seen += size
        tell(seen)

    with path.open("xb") as out:
        changed = write_log(file.path, file.source, out, read_on)
    _note(making, path, file.source, file.kind, "file", masked_lines=changed)


def _path(making: _Making, source: str) -> Path:
    folder = making.folder / "files" / str(len(making.files))
    folder.mkdir(parents=True)
    return folder / file_name(source)


def _put(making: _Making, source: str, kind: str, origin: str, data: bytes) -> None:
    path = _path(making, source)
    path.write_bytes(data)
    _note(making, path, source, kind, origin)


def _note(
    making: _Making, path: Path, source: str, kind: str, origin: str, masked_lines: int = 0
) -> None:
    size, digest = _hashed(path)
    making.files.append({
        "path": path.relative_to(making.folder).as_posix(), "source": mask(source), "kind": kind,
        "from": origin, "bytes": size, "sha256": digest, "masked_lines": masked_lines,
    })  # fmt: skip


def _hashed(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()


# --- metrics ------------------------------------------------------------------------------------


def _write_metrics(making: _Making, number: int, held: Read) -> None:
    from flatline.series.columnar_write import write_store

    opened = _store(held)
    if opened is None:
        return
    origin, store = opened
    span = _window(held, store, origin)
    if span is None:
        return
    name = f"metrics/{number}-{origin}"
    folder = making.folder / name
    folder.parent.mkdir(exist_ok=True)
    stage = "fetching metrics" if origin == "server" else "sealing metrics"

    def tell(done: int, total: int) -> None:
        making.progress(stage, done, total)

    try:
        written = write_store(store, folder, _selections(held, store, origin), span, tell)
    except SourceError as fault:
        shutil.rmtree(folder, ignore_errors=True)
        making.gap(METRICS, fault, held.source.name)
        return
    making.gaps += [gap for gap in held.engine.gaps if gap not in making.gaps]
    source = "metrics of the server" if origin == "server" else held.source.name
    making.stores.append(_described(folder, name, source, held, written))


def _store(held: Read) -> tuple[str, Store] | None:
    """What the samples come from, and how that is called."""
    from flatline.capsule.fetching import FetchedStore
    from flatline.series.columnar import ColumnarStore
    from flatline.series.engine import Embedded
    from flatline.series.storage import MemoryStore
    from flatline.sources.prometheus import PrometheusServer

    if isinstance(held.engine, PrometheusServer):
        return "server", FetchedStore(held.engine)
    if not isinstance(held.engine, Embedded):
        return None
    store = held.engine.store
    undated = isinstance(store, MemoryStore) or (
        isinstance(store, ColumnarStore) and store.folder.name.endswith("-text")
    )
    return ("text" if undated else "database"), store


def _window(held: Read, store: Store, origin: str) -> tuple[float, float] | None:
    """The time to keep: all of what stands in files, of the rest that of the run."""
    if store.span is None:
        return None
    first, last = store.span
    after, until = held.within
    if origin != "text":
        begin = (after - MARGIN).timestamp() if after else first
        first = begin if origin == "server" else max(first, begin)
        last = min(last, until.timestamp()) if until else last
    return (first, last) if first <= last else None


def _selections(held: Read, store: Store, origin: str) -> list[Selection]:
    """One for each metric; those an exporter is known to write only of the run's hosts, and of a
    server only those."""
    from flatline.series.matching import Matcher
    from flatline.series.storage import NAME

    groups: dict[str, set[tuple[tuple[Matcher, ...], ...]]] = {}
    if origin != "text":
        for metric, narrowed in held.source.selectors():
            groups.setdefault(metric, set()).add(narrowed)
    found: list[Selection] = []
    for metric in sorted(store.names()):
        own = groups.get(metric, set())
        narrowed = next(iter(own)) if len(own) == 1 else ((),)
        found += [(Matcher(NAME, "=", metric), *matchers) for matchers in narrowed]
    return found


def _described(
    folder: Path, name: str, source: str, held: Read, written: Written
) -> dict[str, Any]:
    files = {}
    for path in sorted(folder.iterdir()):
        size, digest = _hashed(path)
        files[path.name] = {"bytes": size, "sha256": digest}
    span = written.span or (None, None)
    first, last = (None if ms is None else _spelled(ms / 1000) for ms in span)
    return {
        "path": name, "source": mask(source), "from": mask(held.source.name),
        "engine": held.engine.name, "series": written.series, "samples": written.samples,
        "first": first, "last": last, "files": files,
    }  # fmt: skip


def _spelled(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


# --- the manifest -------------------------------------------------------------------------------


def _write_manifest(making: _Making) -> None:
    reading = making.reading
    request = reading.request
    gaps = [*reading.gaps, *(gap for gap in making.gaps if gap not in reading.gaps)]
    document = {
        MAGIC: VERSION,
        "flatline": __version__,
        "versions": {name: version(name) for name in LIBRARIES} | {
            "python": platform.python_version()},
        "sealed_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "targets": [mask(Path(target).name) for target in request.targets],
        "jobs": [job.id for job in reading.rows],
        "asked": {
            "job": request.job,
            "named": named_by(request.targets),
            "start": request.start and request.start.isoformat(),
            "end": request.end and request.end.isoformat(),
            "hosts": list(map(mask, request.hosts)),
        },
        "files": making.files,
        "metrics": making.stores,
        "gaps": [{"need": gap.need, "reason": gap.reason, "where": gap.where} for gap in gaps],
    }  # fmt: skip
    (making.folder / MANIFEST).write_bytes(orjson.dumps(document) + b"\n")


def _sealed(making: _Making, output: Path) -> Sealed:
    size = sum(item["bytes"] for item in making.files)
    size += sum(part["bytes"] for store in making.stores for part in store["files"].values())
    return Sealed(
        path=output,
        files=len(making.files),
        masked_lines=sum(item["masked_lines"] for item in making.files),
        series=sum(store["series"] for store in making.stores),
        samples=sum(store["samples"] for store in making.stores),
        size=size,
        gaps=(*making.reading.gaps, *making.gaps, *_left(output, making.folder)),
    )


def _left(output: Path, own: Path) -> list[Gap]:
    """What capsules to this place left that were killed; their process may live on another
    host, so they are named and not removed."""
    others = [path for path in output.parent.glob(f".{escape(output.name)}.*") if path != own]
    return [
        Gap("the room it takes", "a capsule that was not finished: remove it", path.name)
        for path in sorted(others)
        if UNFINISHED.fullmatch(path.name)
    ]
