"""Fuzzed logs, one or several, named as logs are or as an attacker would name them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import strategies as st

import planted
from fuzz.campaign import campaign, folder, holds
from fuzz.hostile_logs import logs, wide

NAMES = (
    b"job.log", b"rank_3.log", b"slurm-8308.out", b"attempt_0/2/stderr.log", b"p0.log",
    b"attempt_1/2/stderr.log", b"host_n1.log", b"dmesg.txt", b"-rf", b"--help", b"a\nb.log",
    b"a\x1b[31mb.log", b"\xff\xfe.log", b"a" * 255, "‮gol.exe".encode(), b" ", b"..log", b"*",
    b"$(reboot).log", b"a\\b.log", b"sub/sub/sub/x", "é".encode(), b"[x](y).log", b"%s%n.log",
    f"{planted.SHAPED['hugging face']}.log".encode(), f"x_{planted.SHAPED['gitlab']}".encode(),
)  # fmt: skip
NAMED = st.dictionaries(st.sampled_from(NAMES), logs(), min_size=1, max_size=4)


def test_one_log() -> None:
    """The commonest call."""

    def one(data: bytes) -> None:
        """One log:"""
        with folder() as at:
            (at / "job.log").write_bytes(data)
            holds(at / "job.log")

    campaign(logs(), 0.22, one)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
def test_wide_lines() -> None:
    """No pattern takes longer than its line."""

    def one(data: bytes) -> None:
        """Wide lines:"""
        with folder() as at:
            (at / "job.log").write_bytes(data)
            holds(at / "job.log")

    campaign(wide(), 0.01, one)


def test_folders_of_logs() -> None:
    """Any names beside one another."""

    def many(files: dict[bytes, bytes]) -> None:
        """Folders of logs:"""
        with folder() as at:
            for name, data in files.items():
                path = Path(os.fsdecode(os.fsencode(at) + b"/" + name))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            holds(at)

    campaign(NAMED, 0.08, many)
