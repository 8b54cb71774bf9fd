"""Fuzzed records, dumps, metrics, archives and trees, beside a log or alone."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st

from flatline.collect.files import walk
from flatline.errors import UsageError
from flatline.logs.clock import Clock
from flatline.redact import mask
from flatline.verify import verify
from fuzz.campaign import campaign, folder, holds
from fuzz.hostile_files import dumps, json_records, metrics, packed, text_records
from fuzz.hostile_logs import lines, logs

CRASH = b"step 1/9 loss 3\nstep 2/9 loss 2\nTraceback (most recent call last):\nValueError: x\n"
Files = list[tuple[str, bytes]]


def beside_a_log(files: Files) -> None:
    with folder() as at:
        (at / "job.log").write_bytes(CRASH)
        for name, data in files:
            (at / name).write_bytes(data)
        holds(at)


def test_slurm_json() -> None:
    """One or two documents."""

    def records(files: Files) -> None:
        """Slurm's JSON:"""
        beside_a_log(files)

    campaign(st.lists(json_records(), min_size=1, max_size=2), 0.14, records)


def test_slurm_text() -> None:
    """Tables and pages, several of one job."""

    def records(files: Files) -> None:
        """Slurm's text:"""
        beside_a_log(files)

    campaign(st.lists(text_records(), min_size=1, max_size=3), 0.12, records)


def test_dumps() -> None:
    """Of several ranks."""

    def ranks(files: Files) -> None:
        """Flight-recorder dumps:"""
        beside_a_log(files)

    campaign(st.lists(dumps(), min_size=1, max_size=3), 0.12, ranks)


def test_metrics() -> None:
    """One file."""

    def scrape(file: tuple[str, bytes]) -> None:
        """Metrics:"""
        beside_a_log([file])

    campaign(metrics(), 0.08, scrape)


def test_archives() -> None:
    """Of logs and of anything."""

    def archive(data: bytes) -> None:
        """Archives:"""
        beside_a_log([("x.log.gz", data)])

    campaign(packed(logs() | st.binary(max_size=200)), 0.06, archive)


def test_anything() -> None:
    """Bytes without a meaning, with the beginnings of formats."""

    def blob(data: bytes) -> None:
        """Bytes:"""
        with folder() as at:
            (at / "x").write_bytes(data)
            holds(at / "x")

    heads = st.sampled_from([b"", b"{", b"[", b"\x80\x02", b"\x1f\x8b\x08", b"(\xb5/\xfd",
    b"\xff\xfe",
                             b"\xfd7zXZ\0", b"BZh91AY&", b"JobID|State\n", b"# TYPE ",
                             b"PK\x03\x04"])  # fmt: skip
    campaign(st.builds(bytes.__add__, heads, st.binary(max_size=400)), 0.05, blob)


def test_lines_alone() -> None:
    """What every line goes through: the clock and the masks."""

    def line(text: str) -> None:
        """Lines masked and dated:"""
        once = mask(text)
        assert mask(once) == once
        assert once.count("\n") == text.count("\n")
        Clock.learn([text], year=2026).read(text)

    campaign(lines() | st.text(max_size=200), 0.115, line)


def test_verdicts_that_verify_reads() -> None:
    """A document is as untrusted as a log."""
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
        | st.sampled_from(["log", "record", "absence", "derived", "dump", "query", "e1",
        "job.log"]),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "kind", "source", "line", "text", "pointer",
            "searched", "patterns", "files", "method", "inputs", "cites", "params"]), inner,
            max_size=6),
        max_leaves=12,
    )  # fmt: skip

    def document(evidence: object) -> None:
        """Verdicts:"""
        with folder() as at:
            (at / "job.log").write_bytes(CRASH)
            held = json.loads(json.dumps({"schema_version": 1, "evidence": evidence}))
            try:
                checks = verify(held, (str(at),))
            except UsageError:
                return
            assert all(isinstance(check.said, str) for check in checks)

    campaign(st.lists(values, max_size=4), 0.005, document)


def _file(at: Path) -> None:
    with at.open("xb") as file:  # a pipe that is there already would wait for a reader
        file.write(CRASH)


def _socket(at: Path) -> None:
    here = Path.cwd()
    os.chdir(at.parent)  # a socket's path may have 107 characters
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(at.name[:90])
    finally:
        os.chdir(here)


KINDS: tuple[Callable[[Path], None], ...] = (
    _file, _file, os.mkfifo, _socket, lambda at: at.symlink_to("."),
    lambda at: at.symlink_to(".."),
    lambda at: at.symlink_to(at.name), lambda at: at.symlink_to("nowhere"),
    lambda at: at.symlink_to("/dev/zero"), lambda at: at.symlink_to("/etc/passwd"),
    lambda at: at.symlink_to("/"), lambda at: at.symlink_to("job.log"),
    lambda at: at.mkdir(mode=0),
)  # fmt: skip
PARTS = st.sampled_from(
    ["a", "b", "job.log", "-x", "a\nb", "\udcff", "é" * 100, " ", "*", "~", "..."]
)


def test_trees() -> None:
    """Links in circles and out, pipes, sockets, closed folders, at any depth."""

    def tree(nodes: list[tuple[list[str], Callable[[Path], None]]]) -> None:
        """Trees:"""
        with folder() as at:
            for parts, make in nodes:
                path = at.joinpath(*parts)
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    make(path)
                except OSError:
                    continue
            holds(at)
            assert all(f.path.resolve().is_relative_to(at.resolve()) for f in walk((str(at),), []))

    part = st.lists(PARTS, min_size=1, max_size=4)
    campaign(st.lists(st.tuples(part, st.sampled_from(KINDS)), max_size=10), 0.01, tree)
