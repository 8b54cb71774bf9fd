"""What an investigation may cost."""

from __future__ import annotations

import pytest

from flatline.agent.budget import Budget, BudgetSpent, Price, price_known, price_said
from flatline.wording.reasoning import cost


def test_prices_carry_their_source() -> None:
    """A table that names whose prices they are, or the user's own."""
    known = price_known("anthropic", "claude-sonnet-4-5")
    assert known is not None
    assert known.input_usd > 0
    assert "genai-prices" in known.source
    assert "anthropic.com" in known.source
    assert price_known("compatible", "some-model-of-ours") is None
    assert price_said("3,15") == Price(3.0, 15.0, "given with --price")


def test_each_bound_is_kept_before_a_call() -> None:
    """Calls, tokens, seconds, money."""
    now = [0.0]
    budget = Budget(2, 10_000, 10.0, 1.0, Price(100, 100, "t"), clock=lambda: now[0])
    budget.start()
    assert budget.before(3_000) == 4_096
    budget.spend(1_000, 4_000)
    assert budget.paid_usd == pytest.approx(0.5)
    assert budget.before(3_000) == 4_000  # of tokens and money, what is left of each
    with pytest.raises(BudgetSpent, match="--max-tokens"):
        budget.before(15_000)
    now[0] = 11.0
    with pytest.raises(BudgetSpent, match="--max-seconds"):
        budget.before(0)
    budget.start()
    budget.spend(0, 0)
    with pytest.raises(BudgetSpent, match="--max-calls"):
        budget.before(0)


def test_money_is_kept_with_the_call_that_would_go_beyond() -> None:
    """Not after it."""
    budget = Budget(cost_usd=0.01, price=Price(3, 15, "t"))
    assert budget.before(300) == pytest.approx((0.01 - 100 * 3e-6) / 15e-6, abs=1)
    with pytest.raises(BudgetSpent, match="--max-cost"):
        budget.before(30_000)


def test_what_was_spent_is_said_with_its_bounds() -> None:
    """And that no price is known, where none is."""
    budget = Budget(5, 1_000, 30.0)
    budget.spend(100, 20)
    said = cost(budget.spent())
    assert said.startswith("1 call, 120 tokens (20 written), 0 s; of 5 calls, 1,000 tokens, 30 s")
    assert said.endswith("price unknown")
