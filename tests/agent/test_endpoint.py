"""Which model is asked, where, with which key; and that no key goes anywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from flatline.agent.endpoint import Endpoint, NoKey, configured, made
from flatline.errors import UsageError

HERE = "http://127.0.0.1:8000/v1"
ALL = {
    "HOME": "/nonexistent",
    "ANTHROPIC_API_KEY": "key-a",
    "OPENAI_API_KEY": "key-o",
    "GEMINI_API_KEY": "key-g",
}


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("model", "url", "key", "where"),
    [
        ("anthropic:m", None, "key-a", "the anthropic API"),
        ("openai:m", None, "key-o", "the openai API"),
        ("gemini:m", None, "key-g", "the gemini API"),
        ("bedrock:m", None, None, "the bedrock API"),
        ("ollama:m:7b", None, None, "localhost:11434"),
        ("vllm:org/m", None, None, "localhost:8000"),
        ("llamacpp:m", None, None, "localhost:8080"),
        ("compatible:m", HERE, None, "127.0.0.1:8000"),
        ("openai:m", HERE, None, "127.0.0.1:8000"),
        ("anthropic:m", "https://gateway.example.org", None, "gateway.example.org"),
    ],
)
def test_a_key_of_a_provider_goes_to_the_provider_alone(
    model: str, url: str | None, key: str | None, where: str
) -> None:
    """Any other address gets FLATLINE_API_KEY or none."""
    found = configured(model, url, ALL)
    assert found is not None
    assert (found.key, found.where) == (key, where)
    other = configured(model, url, {**ALL, "FLATLINE_API_KEY": "key-f"})
    assert other is not None
    assert other.key == ("key-f" if found.base_url else key)


def test_nothing_is_configured_unless_it_is_named() -> None:
    """A key that lies in the environment is not reason enough to send logs away."""
    assert configured(None, None, ALL) is None
    named = configured(None, None, {**ALL, "FLATLINE_MODEL": "openai:m"})
    assert str(named) == "openai:m"


def test_keys_may_lie_in_a_file_of_ones_own(tmp_path: Path) -> None:
    """By provider or by address; one that others can read is refused, and no key is told."""
    file = tmp_path / "keys.toml"
    file.write_text(f'anthropic = "file-a"\n"{HERE}/" = "file-here"\n')
    file.chmod(0o600)
    environ: Mapping[str, str] = {"FLATLINE_KEYS": str(file)}
    first, second = (configured(*it, environ) for it in (("anthropic:m", None), ("vllm:m", HERE)))
    assert first is not None
    assert second is not None
    assert (first.key, second.key) == ("file-a", "file-here")
    file.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        configured("anthropic:m", None, environ)
    file.chmod(0o600)
    file.write_text('anthropic = "file-secret\n')
    with pytest.raises(UsageError) as fault:
        configured("anthropic:m", None, environ)
    assert "file-secret" not in str(fault.value)
    with pytest.raises(UsageError, match="no such file"):
        configured("anthropic:m", None, {"FLATLINE_KEYS": str(tmp_path / "none")})


def test_a_key_that_lacks_is_told_from_a_wrong_call() -> None:
    """For then the rules answer."""
    with pytest.raises(NoKey, match="set OPENAI_API_KEY"):
        configured("openai:m", None, {})


def test_a_key_is_in_no_words_of_an_endpoint() -> None:
    """Neither `str` nor `repr`, which end in errors and logs."""
    one = Endpoint("openai", "m", HERE, "sk-secret")
    assert "sk-secret" not in f"{one} {one!r} {one.where}"


@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini", "bedrock", "compatible"])
def test_each_provider_can_be_made(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And asks nothing until it is asked; its address is the one that was named."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    model, _ = made(Endpoint(provider, "some-model", "http://127.0.0.1:9/v1", "k"))
    assert model.model_name == "some-model"
    assert "127.0.0.1:9" in str(model.base_url)
