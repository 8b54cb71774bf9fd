"""What an investigation may cost: calls, tokens, seconds, money; counted, printed and kept."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from flatline.errors import FlatlineError, UsageError
from flatline.model.reasoning import Spent

CALLS, TOKENS, SECONDS = 24, 300_000, 300.0
"""Defaults: three rounds of a model that looks six times in each; a pack and its answers are some
2,000 tokens each, and are sent again with every call."""
OUTPUT_TOKENS = 4_096
LEAST_OUTPUT_TOKENS = 256
CHARS_PER_TOKEN = 3
_PRICE = re.compile(r"(\d+(?:\.\d+)?)[,:](\d+(?:\.\d+)?)")


class BudgetSpent(FlatlineError):
    """A bound was reached before the answer; what was found until then stands."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens in and out, and whose word that is."""

    input_usd: float
    output_usd: float
    source: str

    def cost_usd(self, tokens_in: int, tokens_out: int) -> float:
        return (tokens_in * self.input_usd + tokens_out * self.output_usd) / 1e6


def price_said(said: str) -> Price:
    """`3,15` as dollars for a million tokens in and out. Raises `UsageError`."""
    found = _PRICE.fullmatch(said.strip())
    if found is None:
        raise UsageError(
            f"--price {said!r}: give dollars for a million tokens in and out, as 3,15"
        )
    return Price(float(found[1]), float(found[2]), "given with --price")


def price_known(provider: str, model: str) -> Price | None:
    """The price of genai-prices, a table that comes with the extra and names its sources."""
    try:
        from importlib.metadata import version

        from genai_prices import Usage, calc_price

        found = calc_price(
            Usage(input_tokens=1_000, output_tokens=1_000), model_ref=model, provider_id=provider
        )
    except (ImportError, LookupError, ValueError):
        return None
    page = next(iter(found.provider.pricing_urls or ()), "no page named")
    source = f"genai-prices {version('genai-prices')} after {page}"
    return Price(float(found.input_price) * 1e3, float(found.output_price) * 1e3, source)


@dataclass(slots=True)
class Budget:
    """Bounds and what was spent of them. `clock` counts seconds."""

    calls: int = CALLS
    tokens: int = TOKENS
    seconds: float = SECONDS
    cost_usd: float | None = None
    price: Price | None = None
    clock: Callable[[], float] = time.monotonic
    made: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    paid_usd: float = 0.0
    began: float = field(default=-1.0)
    reserved: int = 0
    """Calls kept back for the rounds that follow."""

    def start(self) -> None:
        """The clock runs from here; a follow-up has its own seconds."""
        self.began = self.clock()

    @property
    def seconds_left(self) -> float:
        return self.seconds if self.began < 0 else self.seconds - (self.clock() - self.began)

    @property
    def last_of_round(self) -> bool:
        """Whether the next call must be the answer of its round."""
        share = 1.0 - self.reserved / self.calls
        used = self.tokens_in + self.tokens_out
        return self.made >= self.calls - self.reserved - 1 or used > 0.8 * share * self.tokens

    def before(self, prompt_chars: int) -> int:
        """How many tokens the next call may answer with. Raises `BudgetSpent`."""
        asked = prompt_chars // CHARS_PER_TOKEN
        if self.made >= self.calls:
            raise BudgetSpent(f"all {self.calls} calls of the model are spent (--max-calls)")
        if self.seconds_left <= 0:
            raise BudgetSpent(f"the {self.seconds:g} seconds are over (--max-seconds)")
        left = self.tokens - self.tokens_in - self.tokens_out - asked
        if left < LEAST_OUTPUT_TOKENS:
            raise BudgetSpent(
                f"{self.tokens_in + self.tokens_out:,} of {self.tokens:,} tokens are spent, and"
                f" the next call needs some {asked + LEAST_OUTPUT_TOKENS:,} (--max-tokens)"
            )
        return min(OUTPUT_TOKENS, left, self._payable(asked))

    def _payable(self, asked: int) -> int:
        if self.cost_usd is None or self.price is None:
            return OUTPUT_TOKENS
        left = self.cost_usd - self.paid_usd - self.price.cost_usd(asked, 0)
        payable = int(left * 1e6 / self.price.output_usd) if self.price.output_usd else 1 << 30
        if left < 0 or payable < LEAST_OUTPUT_TOKENS:
            raise BudgetSpent(
                f"${self.paid_usd:.4f} of ${self.cost_usd:.4f} are spent, and the next call would"
                " go beyond it (--max-cost)"
            )
        return payable

    def spend(self, tokens_in: int, tokens_out: int) -> None:
        """One call more; a call that failed on the way counts too."""
        self.made += 1
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out
        if self.price is not None:
            self.paid_usd += self.price.cost_usd(tokens_in, tokens_out)

    def spent(self) -> Spent:
        elapsed = 0.0 if self.began < 0 else self.clock() - self.began
        limits = f"{self.calls} calls, {self.tokens:,} tokens, {self.seconds:g} s"
        if self.cost_usd is not None:
            limits += f", ${self.cost_usd:g}"
        return Spent(
            calls=self.made,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            seconds=round(elapsed, 1),
            cost_usd=round(self.paid_usd, 6) if self.price is not None else None,
            price_from=self.price.source if self.price is not None else None,
            limits=limits,
        )
