"""What tests share: where scenarios lie, and the switch that rewrites their findings."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

os.environ["FLATLINE_KNOWLEDGE"] = str(Path(__file__).parent / "no-such-knowledge")
"""The records of whoever runs the tests are no part of them."""

for ignored in (signal.SIGINT, signal.SIGHUP):
    # As a shell's background and nohup leave them. What is ignored here would be by every process
    # that the tests start; what is handled is theirs to answer.
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, lambda *_: None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite found.txt of every scenario")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> bool:
    """Whether findings on file are rewritten instead of compared."""
    return bool(request.config.getoption("--golden"))
