"""The core knows of no language model."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cli.calls import environment

ROOT = Path(__file__).parents[2]
MODELS = ("pydantic_ai", "openai", "anthropic", "genai_prices", "google.genai", "boto3",
          "pydantic", "httpx2", "opentelemetry")  # fmt: skip


def test_the_core_depends_on_no_package_of_models() -> None:
    """They are extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = " ".join(project["dependencies"]).lower()
    kept_out = ("pydantic", "openai", "anthropic", "langchain", "litellm", "boto")
    assert not [name for name in kept_out if name in core]
    extras = project["optional-dependencies"]
    assert {"agent", "agent-bedrock", "agent-gemini"} <= set(extras)


@pytest.mark.parametrize(
    "call",
    [
        "answer(['--help'], Engine())",
        "answer(['ask', '--help'], Engine())",
        "answer(['diagnose', '--help'], Engine())",
        "answer(['diagnose', TARGET], Engine())",
        "answer(['ask', TARGET, 'why?'], Engine())",
    ],
)
def test_nothing_of_models_is_imported_where_none_is_asked(call: str) -> None:
    """Neither for help, nor for a diagnosis, nor where the rules answer."""
    code = (
        "import sys; from flatline.cli import Engine, answer;"
        f"TARGET = {str(ROOT / 'src/flatline/demo/one-rank-stopped')!r}; {call};"
        f"print([m for m in {MODELS!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        encoding="utf-8",
        env=environment(FLATLINE_MODEL=""),
        check=True,
        timeout=120,
    )
    assert done.stdout.splitlines()[-1] == "[]"
