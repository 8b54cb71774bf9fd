"""What tests share: where scenarios lie, and the switch that rewrites their findings."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite found.txt of every scenario")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> bool:
    """Whether findings on file are rewritten instead of compared."""
    return bool(request.config.getoption("--golden"))
