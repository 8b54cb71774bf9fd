"""How many inputs a strategy is given, and what must hold of a target made of each."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import jsonschema
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

import planted
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.errors import UsageError
from flatline.parsers import BROKE
from flatline.render import json as json_page
from flatline.render import markdown, text
from flatline.verify import verify

T = TypeVar("T")
ASKED = int(os.environ.get("FLATLINE_FUZZ", "0"))
"""Inputs in all, spread over the strategies; 0 is the quick, repeatable run of `make test`."""
QUICK = 25
CHUNK = 2_000
"""Hypothesis remembers every example of one run: more of them are several runs."""
LIMIT_S = 15.0
"""No input of a fuzzer is larger than some kilobytes; a busy machine is a hundred times slower
than an idle one at worst."""
SCHEMA = jsonschema.Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "docs" / "verdict.schema.json").read_text("utf-8"))
)
SECRETS = tuple({*planted.SHAPED.values(), *(secret for _, secret in planted.NAMED.values())})


def campaign(strategy: SearchStrategy[T], share: float, check: Callable[[T], None]) -> None:
    """Checks inputs of a strategy: its share of what was asked for, in runs of their own."""
    wanted = ceil(ASKED * share) if ASKED else QUICK
    start = random.SystemRandom().randrange(1 << 32) if ASKED else 0
    done = 0
    for run in range(ceil(wanted / CHUNK)):

        @seed(start + run)
        @settings(
            max_examples=min(CHUNK, wanted - run * CHUNK),
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def one(value: T) -> None:
            nonlocal done
            done += 1
            with within(LIMIT_S):
                check(value)

        one()
    if ASKED:
        sys.__stderr__.write(f"\n{check.__doc__} {done} inputs from seed {start}\n")


@contextmanager
def within(limit_s: float) -> Iterator[None]:
    """Fails where the work takes longer."""

    def late(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"no answer within {limit_s:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def folder() -> Iterator[Path]:
    """An empty folder, in memory where there is such a place."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


def holds(target: Path, **asked: Any) -> dict[str, Any] | None:
    """
    All that is promised of any target: it is answered or called wrong, no family breaks, every
    surface can show it, the document is valid, its evidence holds, and nothing shows a secret.
    """
    try:
        facts = collect(Request((str(target),), **asked))
    except UsageError as fault:
        assert str(fault)  # noqa: PT017
        return None
    broken = [gap for gap in facts.gaps if BROKE in gap.reason]
    assert not broken, broken
    facts.strict = True
    verdict = diagnose(facts)
    page = json_page.render(verdict)
    document: dict[str, Any] = json.loads(page)
    SCHEMA.validate(document)
    checks = verify(document, (str(target),))
    failed = [(check.evidence, check.said) for check in checks if not check.ok]
    assert not failed, (failed, [e for e in document["evidence"] if e["id"] == failed[0][0]])
    shown = [page, text.render(verdict, text.Look()), markdown.render(verdict), *map(repr, checks)]
    told = "\n".join(shown)
    assert [secret for secret in SECRETS if secret in told] == []
    assert "\x1b" not in told
    return document
