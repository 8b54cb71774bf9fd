"""A fleet read into facts, for tests of families that judge numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from flatline.facts import Facts
from flatline.model import NOWHERE, Attempt, Cleared, Finding, Judgement, Progress, QueryCite
from flatline.sources.metrics import MetricsSource
from flatline.tracks import Track

T0 = 1_700_000_000


def sample(metric: str, labels: str, value: float, at: float) -> str:
    return f"{metric}{{{labels}}} {value} {int((T0 + at) * 1000)}"


def facts_of(
    tmp_path: Path, lines: Iterable[str], track: Track | None = None, **more: object
) -> tuple[Facts, MetricsSource]:
    """Facts over an exposition, and what answers for them."""
    file = tmp_path / "metrics.prom"
    file.write_text("\n".join(lines), "utf-8")
    source = MetricsSource([(file, file.name)])
    made = Facts(
        targets=("run",),
        ask=source.ask,
        window=source.window,
        measured=source.measured,
        tracks=(track,) if track is not None else (),
        read_line=lambda source, line: f"line {line}",
        **{"attempts": (Attempt(0, "unknown"),), **more},  # type: ignore[arg-type]
    )
    return made, source


def stepping(until_s: float, took: Callable[[float], float] = lambda at: 2.0) -> Track:
    """A dated track of steps, each as long as is said for its time."""
    track = Track("job.log", NOWHERE, None, "plain")
    at, step = 0.0, 0
    while at < until_s:
        seconds = took(at)
        at, step = at + seconds, step + 1
        progress = Progress("train", step=step, loss=2.0, step_s=seconds)
        track.add(progress, step, datetime.fromtimestamp(T0 + at, UTC), 0)
    return track


def findings(answer: Judgement) -> tuple[Finding, ...]:
    if isinstance(answer, Finding):
        return (answer,)
    return answer if isinstance(answer, tuple) else ()


def checked(answer: Judgement, source: MetricsSource) -> Judgement:
    """The judgement, once every query it cites gives its value again."""
    cited = answer.cites if isinstance(answer, Cleared) else [
        cite for finding in findings(answer) for cite in finding.cites
    ]  # fmt: skip
    for cite in cited:
        if isinstance(cite, QueryCite):
            assert source.replay(cite) == cite.value
    return answer
