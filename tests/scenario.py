"""A scenario: a run, and what may be said of it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import LogCite, Place, Verdict

ROOT = Path(__file__).parent / "scenarios"
_KEPT: dict[str, Verdict] = {}
PLACE_KEYS = ("host", "gpu", "device", "domain", "rank", "task")


@dataclass(frozen=True)
class Scenario:
    """`run/` as it was left, `expect.toml` with the truth, `found.txt` with the findings."""

    folder: Path
    expect: dict[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def request(self, *targets: Path) -> Request:
        args = list(self.expect.get("args", ()))
        job = args[args.index("--job") + 1] if "--job" in args else None
        return Request(tuple(map(str, targets or (self.run,))), job=job, baseline=self.baseline)

    @property
    def baseline(self) -> str | None:
        """The run it is compared with, where `args` name one."""
        args = list(self.expect.get("args", ()))
        if "--baseline" not in args:
            return None
        return str(self.folder / args[args.index("--baseline") + 1])

    def verdict(self, *targets: Path) -> Verdict:
        """Of the run as it was left, made once; or of other targets."""
        if targets:
            return self._judge(*targets)
        if self.name not in _KEPT:
            _KEPT[self.name] = self._judge()
        return _KEPT[self.name]

    def _judge(self, *targets: Path) -> Verdict:
        facts = collect(self.request(*targets))
        facts.strict = True
        return diagnose(facts)


def scenarios() -> list[Scenario]:
    return [
        Scenario(path.parent, tomllib.loads(path.read_text("utf-8")))
        for path in sorted(ROOT.glob("*/expect.toml"))
    ]


def listed(value: object) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def objections(verdict: Verdict, expect: dict[str, Any]) -> list[str]:
    """What of a verdict the truth does not allow."""
    want = expect.get("verdict", {})
    states = listed(want.get("state", "found"))
    if verdict.state not in states:
        return [f"state {verdict.state} ({verdict.code}, {verdict.headline}), allowed {states}"]
    if verdict.state != "found":
        return []
    wrong = [
        f"{key} {getattr(verdict, key)}, allowed {listed(want[key])}"
        for key in ("code", "fault_class", "attribution")
        if key in want and getattr(verdict, key) not in listed(want[key])
    ]
    if wrong:
        return wrong
    allowed = want.get("culprits")
    if allowed is not None:
        wrong += [
            f"culprit {place}"
            for place in verdict.culprits
            if not any(agrees(place, truth) for truth in allowed)
        ]
    wrong += [
        f"victim {place} is named"
        for place in verdict.culprits
        for truth in want.get("not_culprits", ())
        if agrees(place, truth)
    ]
    cited = {
        (cite.source, cite.line)
        for judged in verdict.findings
        for cite in judged.finding.cites
        if isinstance(cite, LogCite)
    }
    wrong += [
        f"{source}:{line} is not cited"
        for source, line in want.get("cited", ())
        if (source, line) not in cited
    ]
    return wrong


def agrees(place: Place, truth: dict[str, Any]) -> bool:
    """Whether a place is the true one, on the keys both name; a task may stand for its rank."""
    shared = [k for k in PLACE_KEYS if getattr(place, k) is not None and k in truth]
    if not shared:
        number = place.rank if place.rank is not None else place.task
        return number is not None and number in (truth.get("rank"), truth.get("task"))
    return all(getattr(place, k) == truth[k] for k in shared)


def answer(verdict: Verdict, code: str) -> str:
    if any(j.finding.code == code for j in verdict.findings) or verdict.code == code:
        return "found"
    if any(item.code == code for item in verdict.ruled_out):
        return "ruled_out"
    return "undetermined"


def found(verdict: Verdict) -> str:
    """The findings as they stand on file: code, class, role, culprits."""
    lines = []
    for judged in verdict.findings:
        finding = judged.finding
        culprits = ", ".join(map(str, finding.culprits)) or "-"
        lines.append(f"{finding.code} {finding.fault_class or '-'} {judged.role} {culprits}")
    return "".join(f"{line}\n" for line in sorted(lines))
