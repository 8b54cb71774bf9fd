"""Neutral text: nothing kept tells the answer, the machine or who recorded it."""

from __future__ import annotations

import os
import re
from pathlib import Path

LARGEST_CASE_BYTES = 300_000
STRAY_NULS = 4
"""PyTorch ends its bus-error message with one; more make a file binary."""

_REPLACED = (
    (re.compile(r"/roo[t]/\.pyenv/versions/[\d.]+"), "/usr/local"),
    (re.compile(r"/var/tmp/record/home/user"), "/home/user"),
    (re.compile(r"/tmp/(vt|vj)\b"), "/home/user/.venv"),
    (re.compile(r"(Hardware name: ).*"), r"\1Generic"),
    (re.compile(re.escape(os.uname().release)), "6.1.0-18-amd64"),
    (re.compile(r"#\d+ SMP (PREEMPT\S* )?[^)\n]*\d{4}"), "#1 SMP"),
)
_TELLING = re.compile(
    r"\binject(ed|ion|or)?\b|sabotag|\bvictim|\bculprit|expected verdict|fault_class|crash[-_]rank|harness"
    r"|/wor[k]/|/var/tmp/record|/roo[t]\b|runsc|\bgvisor|firecracker|feasib|flatline",
    re.IGNORECASE,
)


def neutralise(run: Path) -> list[str]:
    """
    Rewrites every file under `run` and returns what still tells too much.

    A file that is not UTF-8 text is refused; the size limit is that of a case.
    """
    trouble: list[str] = []
    total = 0
    host = (
        re.compile(rf"\b{re.escape(os.uname().nodename)}\b")
        if len(os.uname().nodename) > 3
        else None
    )
    for path in sorted(p for p in run.rglob("*") if p.is_file()):
        raw = path.read_bytes()
        text = raw.decode("utf-8", "surrogateescape")
        for pattern, neutral in _REPLACED:
            text = pattern.sub(neutral, text)
        if host:
            text = host.sub("node01", text)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        total += len(text)
        name = str(path.relative_to(run))
        if raw.count(b"\0") > STRAY_NULS:
            trouble.append(f"{name}: binary")
        for number, line in enumerate(text.split("\n"), 1):
            if found := _TELLING.search(line):
                trouble.append(f"{name}:{number}: says {found[0]!r}")
        if found := _TELLING.search(name):
            trouble.append(f"{name}: the name says {found[0]!r}")
    if total > LARGEST_CASE_BYTES:
        trouble.append(f"{total} bytes, more than {LARGEST_CASE_BYTES}")
    return trouble
