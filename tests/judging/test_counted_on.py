"""C4 of a container that was ended for a probe of its steps while it evaluated."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

BEGAN = datetime(2026, 3, 9, 6, 0, tzinfo=UTC)
EVENTS = (
    "Events:\n"
    "  Warning  Unhealthy  95s (x3 over 2m35s)  kubelet  Liveness probe failed: \n"
    "  Normal   Killing    95s   kubelet  Container main failed liveness probe, will be"
    " restarted\n"
)
Count = Callable[[int], str]


def judged(folder: Path, count: Count, *, quiet_s: int = 9) -> str | None:
    """Ninety steps, forty lines of something else, twelve seconds apart, and a signal."""
    at, lines = BEGAN, []
    for n in range(90):
        at += timedelta(seconds=7)
        lines.append(f"{at:%F %T} INFO step {n} loss {4 - n / 60:.3f}")
    for n in range(1, 41):
        at += timedelta(seconds=12)
        lines.append(f"{at:%F %T} INFO {count(n)}")
    lines.append(f"{at + timedelta(seconds=quiet_s):%F %T} WARN got SIGTERM, leaving")
    (folder / "pod.log").write_text("\n".join(lines) + "\n")
    (folder / "events.log").write_text(EVENTS)
    return diagnose(collect(Request((str(folder),)))).code


@pytest.mark.parametrize(
    "count",
    [
        lambda n: f"decoded {210 * n} of 9600 utterances",
        lambda n: f'{{"ev": "valid", "done": {210 * n}, "of": 9600, "score": 4.{n}}}',
        lambda n: f"dev set {n}/64",
    ],
    ids=["of", "fields", "slash"],
)
def test_an_evaluation_that_went_on(tmp_path: Path, count: Count) -> None:
    assert judged(tmp_path, count) == "C4"


@pytest.mark.parametrize(
    ("count", "quiet_s"),
    [
        (lambda n: f"decoded {210 * n} of 9600 utterances", 90),
        (lambda n: f"decoded {min(n, 30)} of 96 utterances", 9),
        (lambda n: f"waited {12 * n} of 1800 s for rank 3", 9),
        (lambda n: f"retry {n}/100 of the upload", 9),
        (lambda n: "still decoding", 9),
    ],
    ids=["it had stopped", "it stands", "a wait", "tries", "no count"],
)
def test_what_is_no_work_up_to_the_signal(tmp_path: Path, count: Count, quiet_s: int) -> None:
    assert judged(tmp_path, count, quiet_s=quiet_s) != "C4"
