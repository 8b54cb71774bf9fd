"""Memory of the GPUs before an allocation failed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from families.fleet import T0, facts_of, sample
from flatline.judging.memory import filled
from flatline.model import Claim, Place


def told(tmp_path: Path, used: float, at: float = 590, host: str | None = None) -> Claim | None:
    """Two hosts; the second's GPU climbs to so many of 80,000 MiB within ten minutes."""
    lines = []
    for n in range(0, 601, 30):
        for name, level in (("n0", 20_000.0), ("n1", used * n / 600)):
            label = f'Hostname="{name}",gpu="0"'
            lines.append(sample("DCGM_FI_DEV_FB_USED", label, level, n))
            lines.append(sample("DCGM_FI_DEV_FB_TOTAL", label, 80_000.0, n))
    facts, source = facts_of(tmp_path, lines)
    found = filled(facts, datetime.fromtimestamp(T0 + at, UTC), [Place(host=host)] if host else [])
    for cite in () if found is None else found.cites:
        assert source.replay(cite) == cite.value  # type: ignore[arg-type]
    return found


def test_a_gpu_that_filled_up_is_named(tmp_path: Path) -> None:
    """With what it held and what it has."""
    found = told(tmp_path, 79_000)

    assert found is not None
    assert found.text.startswith("GPU 0 on n1 was 9")
    assert len(found.cites) == 2


@pytest.mark.parametrize(("used", "at", "host"), [(40_000, 590, None), (79_000, 300, None),
                                                  (79_000, 590, "n0")])  # fmt: skip
def test_half_full_says_nothing(tmp_path: Path, used: float, at: float, host: str | None) -> None:
    """Nor what came after the failure, nor another host's."""
    assert told(tmp_path, used, at, host) is None
