"""What tests share: where scenarios lie, and the switch that rewrites their findings."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

os.environ["FLATLINE_KNOWLEDGE"] = str(Path(__file__).parent / "no-such-knowledge")
"""The records of whoever runs the tests are no part of them."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background by a shell, and so would every process the tests start ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite found.txt of every scenario")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> bool:
    """Whether findings on file are rewritten instead of compared."""
    return bool(request.config.getoption("--golden"))
