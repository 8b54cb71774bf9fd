"""Findings, the three answers, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from flatline.model.comparison import Comparison
from flatline.model.events import Attempt, Gap
from flatline.model.evidence import (
    ActionKind,
    Attribution,
    Cite,
    Disposition,
    Place,
    Resubmit,
    Role,
    Scope,
    Severity,
    State,
)
from flatline.model.reasoning import Reasoning


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence and what it rests on."""

    text: str
    cites: tuple[Cite, ...]

    def __post_init__(self) -> None:
        if not self.cites:
            raise ValueError(f"a claim without a citation: {self.text!r}")


@dataclass(frozen=True, slots=True)
class Action:
    """What to do. `command` can be pasted; `targets` are hosts or files it acts on."""

    kind: ActionKind
    text: str
    command: str | None = None
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """
    A family's word that it happened.  It cannot be built without evidence.

    `strength` is the belief (0..1) this evidence earns alone; `diagnose` raises it for
    independent corroboration and lowers it for rivals.  `role` is "cause" unless the family
    itself knows it to be a warning; only `diagnose` says "consequence".  `ended_run` is true
    where the attempt ended by it.
    """

    code: str
    summary: str
    attribution: Attribution
    shows: tuple[Claim, ...]
    implies: tuple[Claim, ...]
    strength: float
    fault_class: str | None = None
    role: Role = "cause"
    severity: Severity = "fatal"
    culprits: tuple[Place, ...] = ()
    cleared: tuple[Place, ...] = ()
    scope: Scope = "place"
    domain: str | None = None
    onset: datetime | None = None
    onset_step: int | None = None
    onset_within_s: float = 0.0
    """How far off the onset may be, where it is read off stretches or undated steps."""
    order: tuple[str, int] | None = None
    """(source, line) where it was noticed, for order within one log where no time is known."""
    noticed: datetime | None = None
    """When it was reported, where that is later than its onset; orders it among findings."""
    most: float = 1.0
    """No further store raises it above this: what they share may not be what is in doubt."""
    unordered: bool = False
    """True where its reports are echoes, which may be printed before or after their cause's."""
    took_s: tuple[float, float] | None = None
    """Of what is blamed for lost time: the seconds it took, of how many; None where that shows in
    the pace alone."""
    attempt: int = 0
    ended_run: bool = True
    cannot_decide: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    resubmit: Resubmit = "unknown"

    def __post_init__(self) -> None:
        if not self.shows:
            raise ValueError(f"finding {self.code} shows nothing")
        if not 0.0 < self.strength <= 1.0:
            raise ValueError(f"finding {self.code}: strength {self.strength} is not in (0, 1]")

    @property
    def cites(self) -> tuple[Cite, ...]:
        """Every citation of its claims, once, in order."""
        seen: dict[Cite, None] = {}
        for claim in (*self.shows, *self.implies):
            for cite in claim.cites:
                seen.setdefault(cite)
        return tuple(seen)


@dataclass(frozen=True, slots=True)
class Cleared:
    """Each discriminator of a family was measured and stood below its threshold. Whether that
    rules the family out depends on coverage, which only `diagnose` knows."""

    code: str
    why: str
    cites: tuple[Cite, ...]
    decisive: bool = False
    """True where what was measured excludes it whatever else was not read: a run that went on to
    its planned end did not hang."""

    def __post_init__(self) -> None:
        if not self.cites:
            raise ValueError(f"{self.code} cleared without a citation")


Judgement = Finding | tuple[Finding, ...] | Cleared | None


@dataclass(frozen=True, slots=True)
class Explained:
    """That one finding follows from another, and by what mechanism."""

    by: str
    mechanism: str


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding with its place in the whole: id, final role, what explains it, confidence."""

    id: str
    family: str
    finding: Finding
    role: Role
    confidence: float
    explained_by: tuple[Explained, ...] = ()


@dataclass(frozen=True, slots=True)
class RuledOut:
    code: str
    family: str
    why: str
    cites: tuple[Cite, ...]


@dataclass(frozen=True, slots=True)
class Undetermined:
    code: str
    family: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """The run as its evidence describes it."""

    id: str | None
    target: tuple[str, ...]
    disposition: Disposition
    framework: str | None = None
    launcher: str | None = None
    hosts: tuple[str, ...] = ()
    world_size: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    now: datetime | None = None
    last_step: int | None = None
    planned_steps: int | None = None
    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True)
class Impact:
    gpu_hours_lost: float | None = None
    steps_lost: int | None = None
    last_checkpoint_step: int | None = None
    slowdown_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Related:
    """
    An incident record that resembles the run; never part of the proof.

    `share` (0..1) is how much of what the run's lines say the record holds; `confirmed` and
    `wrong` count the verdicts that were settled by it at this site.
    """

    id: str
    problem: str
    cause: str
    fix: str
    source: str
    settled: str
    share: float
    confirmed: int = 0
    wrong: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer. Every surface shows this and nothing else."""

    run: Run
    state: State
    headline: str
    code: str | None
    family: str | None
    fault_class: str | None
    attribution: Attribution
    confidence: float
    scope: Scope
    culprits: tuple[Place, ...]
    cleared: tuple[Place, ...]
    severity: Severity | None
    onset: datetime | None
    onset_step: int | None
    impact: Impact | None
    resubmit: Resubmit
    shows: tuple[Claim, ...]
    implies: tuple[Claim, ...]
    cannot_decide: tuple[str, ...]
    actions: tuple[Action, ...]
    findings: tuple[Judged, ...]
    ruled_out: tuple[RuledOut, ...]
    undetermined: tuple[Undetermined, ...]
    gaps: tuple[Gap, ...]
    domain: str | None = None
    catalogue: str | None = None
    attempt_codes: Mapping[int, str] = field(default_factory=dict)
    reasoning: Reasoning | None = None
    """What an agent said beside it; the verdict is the same with and without."""
    related: tuple[Related, ...] = ()
    comparison: Comparison | None = None
    """The run beside its baseline; None where it was compared with none."""
