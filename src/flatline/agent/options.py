"""The options that `ask` and `diagnose --agent` share; cheap to import, for `--help` does."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flatline.errors import UsageError

if TYPE_CHECKING:
    from flatline.agent.budget import Budget
    from flatline.agent.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class Settings:
    """Who is asked and within what. `endpoint` is None where nobody is, for the reason `why`."""

    endpoint: Endpoint | None
    why: str
    budget: Budget
    save: Path | None
    masked: bool
    sources: tuple[str, ...]


def declare(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the model").add_argument
    add("--model", metavar="PROVIDER:NAME",
        help="anthropic, openai, gemini, bedrock, ollama, vllm, llamacpp or compatible; or"
        " FLATLINE_MODEL")  # fmt: skip
    add("--base-url", metavar="URL", help="another address that speaks its protocol")
    add("--max-calls", metavar="N", type=int, help="calls of the model; default: 24")
    add("--max-tokens", metavar="N", type=int, help="tokens in and out; default: 300000")
    add("--max-seconds", metavar="N", type=float, help="seconds a question; default: 300")
    add("--max-cost", metavar="USD", type=float, help="dollars in all")
    add("--price", metavar="IN,OUT", help="dollars for a million tokens, where none is known")
    add("--save", metavar="FILE", help="keep a transcript there, secrets masked")
    add("--no-mask", action="store_true", help="show the model hosts, users and paths as they are")
    add("--allow-source", metavar="DIR", action="append", default=[],
        help="source code the model may read, repeatable")  # fmt: skip


def settings(options: argparse.Namespace, environ: Mapping[str, str]) -> Settings:
    """Raises `UsageError`; a model that lacks its key or its extra is a reason, no error."""
    from flatline.agent.budget import CALLS, SECONDS, TOKENS, Budget, price_known, price_said
    from flatline.agent.endpoint import NoKey, configured

    for name in ("max_calls", "max_tokens", "max_seconds", "max_cost"):
        given = getattr(options, name)
        if given is not None and not 0 < given < 1e12:
            raise UsageError(f"--{name.replace('_', '-')} {given:g}: give a number above 0")
    why = "none is configured (--model PROVIDER:NAME, or FLATLINE_MODEL)"
    endpoint = None
    try:
        endpoint = configured(options.model, options.base_url, environ)
    except NoKey as fault:
        why = str(fault)
    price = price_said(options.price) if options.price else None
    if price is None and endpoint is not None:
        price = price_known(*endpoint.price_names)
    if options.max_cost is not None and endpoint is not None and price is None:
        raise UsageError(
            f"--max-cost: no price of {endpoint} is known; give it as --price IN,OUT, in dollars"
            " for a million tokens"
        )
    budget = Budget(
        calls=options.max_calls or CALLS,
        tokens=options.max_tokens or TOKENS,
        seconds=options.max_seconds or SECONDS,
        cost_usd=options.max_cost,
        price=price,
    )
    return Settings(
        endpoint,
        why,
        budget,
        _outside(options),
        not options.no_mask,
        tuple(options.allow_source),
    )


def _outside(options: argparse.Namespace) -> Path | None:
    """Where the transcript goes: never into a TARGET. Raises `UsageError`."""
    if options.save is None:
        return None
    path = Path(options.save).expanduser().resolve()
    for named in options.target:
        target = Path(named)
        inside = target.is_dir() and path.is_relative_to(target.resolve())
        if inside or (path.exists() and target.exists() and path.samefile(target)):
            raise UsageError(
                f"--save {options.save} lies in the target {named}, into which nothing is ever"
                " written; name a file elsewhere"
            )
    if path.is_dir():
        raise UsageError(f"--save {options.save} is a folder; name a file")
    return path
