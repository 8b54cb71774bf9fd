"""Calls of the command line: in this process with an engine of the test's, or in another."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import flatline
from flatline.cli import Engine
from flatline.collect import OnProgress, Request
from flatline.model import Verdict

SRC = Path(flatline.__file__).parents[1]
TESTS = Path(__file__).parents[1]


class Oracle:
    """An engine that answers with one verdict, or raises, and keeps what it was asked."""

    def __init__(self, answer: Verdict | BaseException) -> None:
        self.answer = answer
        self.asked: list[Request] = []

    def __call__(self, request: Request, on_progress: OnProgress | None) -> Verdict:
        self.asked.append(request)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    @property
    def engine(self) -> Engine:
        return Engine(diagnose=self)


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("FLATLINE_DEBUG", "NO_COLOR")}
    return {**kept, "PYTHONPATH": f"{SRC}{os.pathsep}{TESTS}", **more}


def flatline_process(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    """`python -m flatline` with the real engine."""
    return subprocess.run(
        [sys.executable, "-m", "flatline", *argv],
        capture_output=True,
        encoding="utf-8",
        env=environment(**env),
        check=False,
        timeout=60,
    )


PROGRAM = """
import sys
from render import verdicts
from flatline.cli import Engine, main
def answer(request, on_progress):
    {body}
main(sys.argv[1:], Engine(diagnose=answer))
"""


def program(body: str) -> list[str]:
    """A command line whose diagnosis is `body`."""
    return [sys.executable, "-c", PROGRAM.format(body=body)]


def answered(body: str, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A process of its own whose diagnosis is `body`."""
    return subprocess.run(
        [*program(body), *argv],
        capture_output=True,
        encoding="utf-8",
        env=environment(**env),
        check=False,
        timeout=60,
    )


@contextmanager
def started(command: Sequence[str], **how: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process that does not outlive its test, however that ends."""
    with subprocess.Popen(list(command), **how) as process:
        try:
            yield process
        finally:
            process.kill()
