"""
Which model is asked, where, and with which key.

Nothing but the named endpoint is ever asked: redirects are refused, proxies are those of the
environment (as httpx reads them).  A key comes from the environment or from a file that only its
owner can read, never from an argument, and a key that is meant for a provider is never sent to
another address.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from flatline.errors import UsageError
from flatline.wording.untrusted import neutral

if TYPE_CHECKING:
    from pydantic_ai.models import Model

EXTRA = "needs the extra: pip install 'flatline[{extra}]'"
KEYS_FILE = "~/.config/flatline/keys.toml"
LOCAL = {
    "ollama": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
    "llamacpp": "http://localhost:8080/v1",
}
"""Where these listen unless told otherwise: docs.ollama.com/openai, docs.vllm.ai (`vllm serve`),
llama.cpp's tools/server."""
KEY_NAMES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
PROVIDERS = ("anthropic", "openai", "gemini", "bedrock", "compatible", *LOCAL)
_EXTRAS = {"bedrock": "agent-bedrock", "gemini": "agent-gemini"}
CONNECT_S, READ_S = 10.0, 300.0


class NoKey(UsageError):
    """A model is named whose key is nowhere."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model by name and the address it is asked at. `key` goes there and nowhere else."""

    provider: str
    name: str
    base_url: str | None
    key: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"

    @property
    def where(self) -> str:
        """The host that is asked, without what a URL may hide."""
        if self.base_url is None:
            return f"the {self.provider} API"
        parts = urlsplit(self.base_url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

    @property
    def price_names(self) -> tuple[str, str]:
        """Provider and model as price tables spell them."""
        known = {"gemini": "google", "bedrock": "aws"}
        return known.get(self.provider, self.provider), self.name


def configured(
    model: str | None, base_url: str | None, environ: Mapping[str, str]
) -> Endpoint | None:
    """
    The endpoint that is named, by options first and FLATLINE_MODEL, FLATLINE_BASE_URL else.

    None where none is. Raises `UsageError` for what cannot be meant, and for a key that lacks.
    """
    said = model or environ.get("FLATLINE_MODEL")
    address = base_url or environ.get("FLATLINE_BASE_URL")
    if not said:
        if address:
            raise UsageError(
                "--base-url names a server; name its model too: --model compatible:NAME"
            )
        return None
    provider, _, name = said.partition(":")
    if provider not in PROVIDERS or not name.strip():
        raise UsageError(
            f"--model {said!r}: give it as PROVIDER:NAME, PROVIDER one of {', '.join(PROVIDERS)}"
        )
    if address is not None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"--base-url {neutral(address)!r}: give it as http://HOST:PORT/v1")
        if parts.username or parts.password:
            raise UsageError("--base-url holds a password; put it in the keys file instead")
    address = address or LOCAL.get(provider)
    if provider == "compatible" and address is None:
        raise UsageError("--model compatible:NAME needs the server's address: --base-url URL")
    return Endpoint(provider, name, address, _key(provider, address, environ))


def _key(provider: str, address: str | None, environ: Mapping[str, str]) -> str | None:
    """The key for this address: a provider's own key is for the provider's own address."""
    kept = _kept_keys(environ)
    if address is not None:
        return kept.get(address.rstrip("/")) or environ.get("FLATLINE_API_KEY") or None
    if provider == "bedrock":
        return None  # the AWS chain: environment, profile, role
    names = KEY_NAMES[provider]
    found = next((environ[name] for name in names if environ.get(name)), None) or kept.get(
        provider
    )
    if found is None:
        raise NoKey(
            f'no key for {provider}: set {names[0]}, or put {provider} = "..." into'
            f" {environ.get('FLATLINE_KEYS') or KEYS_FILE} (chmod 600)"
        )
    return found


def _kept_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """Provider or address to key, from a TOML file only its owner can read."""
    named = environ.get("FLATLINE_KEYS")
    path = Path(named or KEYS_FILE).expanduser()
    try:
        if not path.is_file():
            if named:
                raise UsageError(f"FLATLINE_KEYS={named}: there is no such file")
            return {}
        if path.stat().st_mode & 0o077:
            raise UsageError(f"{path} can be read by others: chmod 600 {path}")
        held = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        reason = getattr(fault, "strerror", None) or 'it is no TOML of provider = "key"'
        raise UsageError(f"{path}: {reason}") from None  # the fault's text may quote a key
    return {name.rstrip("/"): value for name, value in held.items() if isinstance(value, str)}


# --- the model --------------------------------------------------------------------------------


def made(endpoint: Endpoint) -> tuple[Model, Any]:
    """The model, nothing asked yet, and the HTTP client to close behind it. Raises `UsageError`
    where its extra is not installed."""
    make: Callable[[Endpoint, Any], Model] = {
        "anthropic": _anthropic,
        "gemini": _gemini,
        "bedrock": _bedrock,
    }.get(endpoint.provider, _openai)
    try:
        import httpx2
        import pydantic_ai  # noqa: F401
    except ImportError as fault:
        raise UsageError("a model " + EXTRA.format(extra="agent")) from fault
    timeout = httpx2.Timeout(READ_S, connect=CONNECT_S)
    client = httpx2.AsyncClient(follow_redirects=False, timeout=timeout)
    try:
        return make(endpoint, client), client
    except ImportError as fault:
        extra = _EXTRAS.get(endpoint.provider, "agent")
        raise UsageError(f"{endpoint.provider} " + EXTRA.format(extra=extra)) from fault
    except Exception as fault:
        words = re.sub(r"\s+", " ", str(fault))[:200]
        raise UsageError(f"--model {endpoint}: {words}") from fault


def _openai(endpoint: Endpoint, http: Any) -> Model:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(
        api_key=endpoint.key or "none-needed",
        base_url=endpoint.base_url or "https://api.openai.com/v1",
        http_client=http,
        max_retries=0,
    )
    provider = OpenAIProvider(openai_client=client)
    if endpoint.provider == "openai":
        return OpenAIChatModel(endpoint.name, provider=provider)
    # servers that speak the protocol all know `max_tokens`, its successor only some
    older = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)
    return OpenAIChatModel(endpoint.name, provider=provider, profile=older)


def _anthropic(endpoint: Endpoint, http: Any) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(
        api_key=endpoint.key or "none-needed",
        base_url=endpoint.base_url or "https://api.anthropic.com",
        http_client=http,
        max_retries=0,
    )
    return AnthropicModel(endpoint.name, provider=AnthropicProvider(anthropic_client=client))


def _gemini(endpoint: Endpoint, http: Any) -> Model:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(
        api_key=endpoint.key or "none-needed", base_url=endpoint.base_url, http_client=http
    )
    return GoogleModel(endpoint.name, provider=provider)


def _bedrock(endpoint: Endpoint, _: Any) -> Model:
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if endpoint.base_url is not None:
        provider = BedrockProvider(base_url=endpoint.base_url, region_name=region or "us-east-1")
    else:
        provider = BedrockProvider(region_name=region)
    return BedrockConverseModel(endpoint.name, provider=provider)
