"""
What failures share: a host, the hosts of a leaf switch, a file system; never without controls.

Near misses decide the rules.  A busy host is touched by many failures and as many successes: the
test compares both.  A big job touches many hosts and fails more often, a partition may be worse
than another: jobs are compared only within their partition and with jobs of their size.  A broken
script that is sent again and again often lands on the same free node: failures that the verdict
blames on the job say nothing of a place and are left out, and repeats of one job (a user's jobs
whose names differ by digits) that never succeeded count once.  Where a verdict names the host at
fault, the others of that job are not accused.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from flatline.triage import Group, Line
from flatline.triage.exact import ALPHA, multiplicity, tail

MIN_FAILURES = 2
"""One failure shares nothing."""
OWN_DOING = ("job", "training", "scheduler", "none")
_DIGITS = re.compile(r"\d+")

Stratum = tuple[str, int]
Spot = Callable[[frozenset[str]], frozenset[str]]
"""From the hosts of a job to the places that are compared."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One observation: a failure (of `jobs`, repeats counted once) or a success, and the places
    that may be behind it."""

    failed: bool
    jobs: tuple[str, ...]
    hosts: frozenset[str]
    stratum: Stratum


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place with its counts; `hits` are the failures that touched it."""

    kind: str
    name: str
    hits: tuple[Seen, ...]
    successes: int
    p: float
    smallest: float


def own_doing(line: Line) -> bool:
    """Whether the verdict puts a failure to the job itself, or to the scheduler."""
    return (
        line.told is not None and line.told.state == "found" and line.told.attribution in OWN_DOING
    )


def shared(
    failures: Sequence[Line],
    successes: Sequence[Line],
    leaves: Sequence[tuple[str, tuple[str, ...]]] = (),
) -> tuple[Group, ...]:
    """Places that failures share more often than chance explains, the surest first, then the
    storage that their errors name."""
    open_ = [line for line in failures if not own_doing(line)]
    placed = _placed(open_, successes, leaves)
    return (*placed, *_storage(open_, failures, successes))


# --- observations -----------------------------------------------------------------------------


def _kin(line: Line) -> tuple[str, str]:
    """Jobs of one user whose names differ by digits at most are one job, sent again."""
    job = line.ended.job
    return job.user or "", _DIGITS.sub("#", job.name or "")


def _stratum(line: Line) -> Stratum:
    """Partition and size: 1, 2-3, 4-7, 8-15... nodes."""
    job = line.ended.job
    return job.partition or "", max(1, len(job.nodes) or job.node_count or 1).bit_length()


def _blamed(line: Line) -> frozenset[str]:
    """The hosts that may be behind a failure: those its verdict names, else all it held."""
    job = line.ended.job
    named = {p.host for p in line.told.culprits if p.host} if line.told is not None else set()
    own = frozenset(named & set(job.nodes))
    return own or frozenset(job.nodes)


def _observed(failures: Sequence[Line], successes: Sequence[Line], spot: Spot) -> list[Seen]:
    """
    Every failure and success with the places it touched, as `spot` names them.

    Failures of a job that also succeeded stand alone; those of one that never did are one, and
    what they share is where each of them was.  Of the completed, one that an earlier try of its
    own failed vouches for no place and is left out.
    """
    sound = {_kin(line) for line in successes}
    families: dict[tuple[str, str], list[Line]] = defaultdict(list)
    made = []
    for line in failures:
        if _kin(line) in sound or not line.ended.job.name:
            made.append(Seen(True, (line.id,), spot(_blamed(line)), _stratum(line)))
        else:
            families[_kin(line)].append(line)
    for lines in families.values():
        places = frozenset.intersection(*(spot(_blamed(line)) for line in lines))
        made.append(Seen(True, tuple(k.id for k in lines), places, max(map(_stratum, lines))))
    whole = [line for line in successes if len(line.ended.rows) == 1]
    made += [Seen(False, (k.id,), spot(frozenset(k.ended.job.nodes)), _stratum(k)) for k in whole]
    return made


# --- hosts and switches -----------------------------------------------------------------------


def _placed(
    open_: Sequence[Line],
    successes: Sequence[Line],
    leaves: Sequence[tuple[str, tuple[str, ...]]],
) -> list[Group]:
    leaf_of = {host: name for name, members in leaves for host in members}

    def leaf(hosts: frozenset[str]) -> frozenset[str]:
        return frozenset(leaf_of[host] for host in hosts if host in leaf_of)

    seen = _observed(open_, successes, lambda hosts: hosts)
    hosts = _candidates("host", seen)
    switches = _candidates("switch", _observed(open_, successes, leaf)) if leaf_of else []
    tested = multiplicity([c.smallest for c in (*hosts, *switches)])

    def sure(candidate: Candidate) -> bool:
        return len(candidate.hits) >= MIN_FAILURES and candidate.p * tested <= ALPHA

    named = [c for c in hosts if sure(c)]
    wide = []
    for switch in filter(sure, switches):
        own = frozenset(c.name for c in named if leaf_of.get(c.name) == switch.name)
        rest = [k for k in open_ if not own & set(k.ended.job.nodes)]
        sound = [k for k in successes if not own & set(k.ended.job.nodes)]
        again = [c for c in _candidates("switch", _observed(rest, sound, leaf)) if sure(c)]
        if _hosts_below(rest, switch.name, leaf_of) > 1 and switch.name in {c.name for c in again}:
            wide.append(switch)
    below = {c.name for c in wide}
    alone = [c for c in named if leaf_of.get(c.name) not in below]
    whole = sum(len(line.ended.rows) == 1 for line in successes)
    return _merged([*wide, *alone], tested, len(open_), whole)


def _hosts_below(lines: Sequence[Line], switch: str, leaf_of: dict[str, str]) -> int:
    """How many hosts of a switch these failures touched: by one alone the switch is not named."""
    return len({h for k in lines for h in _blamed(k) if leaf_of.get(h) == switch})


def _candidates(kind: str, seen: Sequence[Seen]) -> list[Candidate]:
    jobs: Counter[Stratum] = Counter(s.stratum for s in seen)
    failed: Counter[Stratum] = Counter(s.stratum for s in seen if s.failed)
    touched: dict[str, Counter[Stratum]] = defaultdict(Counter)
    hits: dict[str, list[Seen]] = defaultdict(list)
    for one in seen:
        for place in one.hosts:
            touched[place][one.stratum] += 1
            if one.failed:
                hits[place].append(one)
    made = []
    for place, counts in touched.items():
        own = hits.get(place, [])
        p, smallest = tail(((jobs[s], n, failed[s]) for s, n in counts.items()), len(own))
        successes = sum(counts.values()) - len(own)
        made.append(Candidate(kind, place, tuple(own), successes, p, smallest))
    return made


def _merged(found: Sequence[Candidate], tested: int, failed: int, whole: int) -> list[Group]:
    """Places the very same failures touched are one group: which of them it was cannot be told."""
    same: dict[tuple[object, ...], list[Candidate]] = defaultdict(list)
    for one in found:
        same[(one.kind, frozenset(s.jobs for s in one.hits))].append(one)
    groups = []
    for alike in same.values():
        best = min(alike, key=lambda c: c.p)
        jobs = tuple(job for hit in best.hits for job in hit.jobs)
        groups.append(
            Group(
                kind=best.kind,
                names=tuple(sorted(c.name for c in alike)),
                jobs=jobs,
                failures=len(jobs),
                of_failures=failed,
                successes=max(c.successes for c in alike),
                of_successes=whole,
                p=best.p,
                corrected=min(1.0, best.p * tested),
                tested=tested,
            )
        )
    return sorted(groups, key=lambda g: (g.p or 0.0, g.names))


# --- storage ----------------------------------------------------------------------------------


def _storage(
    open_: Sequence[Line], failures: Sequence[Line], successes: Sequence[Line]
) -> Iterable[Group]:
    """File systems that the storage errors of several jobs name; a path's controls are jobs that
    completed in a working directory below it."""
    named: dict[str, list[Line]] = defaultdict(list)
    for line in failures:
        for name in line.told.storage if line.told is not None else ():
            named[name].append(line)
    for name, lines in sorted(named.items()):
        if len({_kin(line) for line in lines}) < MIN_FAILURES:
            continue
        below = f"{name.rstrip('/')}/"
        touched = sum(f"{k.ended.job.work_dir or ''}/".startswith(below) for k in successes)
        yield Group(
            kind="storage",
            names=(name,),
            jobs=tuple(line.id for line in lines),
            failures=len(lines),
            of_failures=len({line.id for line in (*open_, *lines)}),
            successes=touched,
            of_successes=len(successes),
        )
