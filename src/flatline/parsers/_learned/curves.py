"""
Lines of a training loop of which no format knows a word: learned from a sample of the log.

Lines of one shape belong together.  One of their numbers is the step: whole, and rising from line
to line by the same stride.  What the others are `roles` tells by their names, by a table's
heading and by how they go.  Lines that count something else (an evaluation, a download, a build)
are told by the words around the count, and a count beside which nothing speaks of training is left
alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from statistics import median

from flatline.model import Progress
from flatline.parsers import Columns
from flatline.parsers._learned import roles as meaning
from flatline.parsers._learned.numbered import Row, headed
from flatline.parsers._learned.roles import COMPUTING, Role, words
from flatline.parsers._loops import UNFALLING

LEAST_RISES = 4
RISES, IN_TURN = 0.75, 1 / 17
"""Of the pairs of lines so many rise; or so many where ranks print the same step in turn, of a
count that is linked to its plan or called a step."""
FALLS, SAME_STRIDE, WHOLE_STRIDES = 0.25, 0.4, 0.9
"""Of the rises so many fall (an epoch begins anew), keep the usual stride, and are whole strides
apart (a sample leaves lines out)."""
_CUT_OUT = {
    "planned", "loss", "grad_norm", "lr", "step_s", "data_s", "sync_s", "throughput", "since_s",
}  # fmt: skip
"""What a line says that lines of the same layout are cut for."""
MOST_NUMBERS = 48
LINKS = ("/", "of", "out of", "|", "]/")
"""What stands between a count and what it goes to."""
LATEST_STAMP = 1e9
"""Seconds since 1970 are no step."""
_OF_DATA = words(r"tok\w*|samples?|seen|consumed|examples?|images|frames|env_steps|timesteps")
"""What else a loop counts, of which a step takes many."""
_NO_COUNT = words(
    r"bytes?|mem\w*|[kgt]i?b|mib|rank|gpu|pid|port|time|elapsed",
    r"eta|secs?|ms|seconds?|ts|clock|wall|lr|loss|size|len\w*|seq\w*|rows|queue|epochs?|hits?|workers?",
    r"pod|host|task|container|replica|instance|shard|node|attempt|retry|trial|fold|request|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec",
)
_STEP_WORD = words(r"step|iter\w*|it|upd\w*|batch|i|n|k|s|u")
_MEASURE = re.compile(r"(?:[kmgt]i?b|bytes|m?s|sec|seconds|min|minutes|h|hours|%)(?![a-z/])")
_BYTES = re.compile(r"(?<![a-z])[kmgt]i?b/s(?![a-z])")
_PLAN_WORD = re.compile(
    r"^(?:of|total|out of|n|max|end|limit|planned|\w*(?:max|total|num)_?\w*|\w+_max|steps)$"
)
_EPOCH = re.compile(r"(?:^|[^a-z])(?:epoch|ep|e)$")
_HELD_OUT = re.compile(
    r"(?<![a-z])(?:val|valid(?:ation)?|eval(?:uat\w{1,4})?|test(?:ing)?|dev|held[- ]out"
    r"|infer\w{0,6}|predict\w{0,4})(?![a-z])"
)
_TRAINS = re.compile(
    r"(?<![a-z])(?:train(?:ing|ed)?|optim\w{0,7}|grad(?:ient)?|update[ds]?|updating)(?![a-z])"
)
_NO_LOOP = re.compile(
    r"\bprep\b|\blayer\b|minhash|dedup|roofline|gemm|\bfile\b"
    r"|denois|decod|bench|warm[-_ ]?up|calibrat|tokeni[sz]|pre-?process|prepar|download|upload"
    r"|load(?:ing|ed)|extract|index|cach|compil|captur|prob(?:e|ing)|sanity|search|tun(?:e|ing)\b"
    r"|writ|reading|shard|retry|attempt|tr(?:y|ies)\b|fetch|copy|restor|resum|saved|ckpt"
    r"|check ?point|quantiz|generat|sampling|init|snapshot|request|nvcc|[cg]\+\+|\bgcc|building"
    r"|\b[nr]?ccl (?:info|warn|trace)\b|ccl_(?:info|warn|debug)|\bucx +(?:info|diag|debug|warn)"
    r"|\bstor(?:e|ed|ing)\b|persist|wrote|export|dump|flush|linking|install|merg|convert|collect|pack|filter|scan"
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A line of the sample, and when it was printed in POSIX seconds, NaN where it does not say
    so."""

    row: Row
    at: float


@dataclass(frozen=True)
class Curve:
    """Which number of a line is what, by its place in lines of one shape, by its name in others
    that begin alike."""

    shape: tuple[str, ...]
    at: int
    roles: dict[int, Role]
    named: dict[tuple[str, str], Role]
    loss_name: str
    falling: bool
    of_data: bool
    """Whether what is counted is data, of which a step takes many: it numbers no steps."""

    @property
    def head(self) -> tuple[str, ...]:
        return self.shape[: self.at + 1]

    def read(self, row: Row) -> Progress | None:
        """What a line says; None where it is none of these."""
        if len(row.numbers) <= self.at or row.shape[: self.at + 1] != self.head:
            return None
        step = row.numbers[self.at].count
        if step is None:
            return None
        said: dict[str, float] = {}
        unit, alike = None, row.shape == self.shape
        for n, number in enumerate(row.numbers):
            role = self._role(row, n, alike)
            if role is None or (role.guessed and not isfinite(number.value)):
                continue
            if role.what == COMPUTING:
                said[COMPUTING] = said.get(COMPUTING, 0.0) + role.of(number.value)
            elif role.what not in said:
                said[role.what] = role.of(number.value)
                unit = role.unit or unit
        planned = _whole(said.get("planned"))
        return Progress(
            "train",
            None if self.of_data else step,
            None if self.of_data else planned,
            said.get("epoch"),
            said.get("loss"),
            self.loss_name,
            said.get("grad_norm"),
            said.get("lr"),
            said.get("step_s", _together(said)),
            said.get("throughput"),
            unit,
            data_s=said.get("data_s"),
            sync_s=said.get("sync_s"),
            since_s=said.get("since_s"),
            falling=self.falling,
        )

    def columns(self, row: Row) -> Columns | None:
        """Where the numbers of a line of this curve stand; None where they do not stand there by
        themselves."""
        told: dict[str, tuple[int, float]] = {}
        alike = row.shape == self.shape
        for n in range(len(row.numbers)):
            role = self._role(row, n, alike)
            if role is not None and (role.guessed or role.inverse):
                return None
            if role is not None:
                told.setdefault(role.what, (n, role.scale))
        if "step_s" in told:
            told.pop(COMPUTING, None)
        clocked = any(row.numbers[n].clocked for n, _ in told.values())
        if self.of_data or clocked or "loss" not in told or not told.keys() <= _CUT_OUT:
            return None
        numbers = [(row.numbers[n], by) for n, by in ((self.at, 1.0), *told.values())]
        places = tuple((one.at, one.at + len(one.text), by, 1.0) for one, by in numbers)
        return Columns(("step", *told), places, self.loss_name, self.falling)

    def _role(self, row: Row, n: int, alike: bool) -> Role | None:
        if alike:
            return self.roles.get(n)
        return self.named.get((row.numbers[n].name, row.numbers[n].unit))


def _together(said: Mapping[str, float]) -> float | None:
    """What a step took by its parts, where it waited and computed."""
    waits = [said[what] for what in ("data_s", "sync_s") if what in said]
    return said[COMPUTING] + sum(waits) if COMPUTING in said and waits else None


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None and isfinite(value) else None


def learn(streams: Sequence[Sequence[Seen]], heading: str | None = None) -> Curve | None:
    """
    From lines of one shape, by stream and in order; `heading` is the table's, if they are rows of
    one.  None where they are no training steps.
    """
    first = streams[0][0].row
    if not 0 < len(first.numbers) <= MOST_NUMBERS:
        return None
    names = _names(first, heading)
    at = _counter(streams, names)
    if at is None or not _may_train(first, at, names):
        return None
    columns = [
        [seen.row.numbers[n].value for stream in streams for seen in stream]
        for n in range(len(first.numbers))
    ]
    told = _Columns(streams, at, names, columns)
    roles = told.roles()
    if _BYTES.search(first.text) and not any(role.what == "loss" for role in roles.values()):
        return None
    # something is measured at each step
    more = any(
        n != at and n not in roles and len(set(column)) > 1 for n, column in enumerate(columns)
    )
    trains = (more and _TRAINS.search(" ".join(first.shape[: at + 2]))) or any(
        meaning.PARTS.search(name) for name, _ in names
    )
    rewarded = any(meaning.REWARD.search(name) for name, _ in names)
    policy = any(meaning.RETURN.search(name) for name, _ in names)
    telling = {role.what for n, role in roles.items() if n not in told.beside}
    called = _STEP_WORD.search(names[at][0]) or "planned" in {r.what for r in roles.values()}
    if telling == {"step_s"} and not called:  # whatever is done again and again takes its time
        telling = set()
    if not (telling or trains or rewarded):
        return None
    loss = next((n for n, role in roles.items() if role.what == "loss"), None)
    named = {names[n]: role for n, role in roles.items() if names[n][0] and n > at}
    loss_name = next(filter(None, names[loss]), "loss") if loss is not None else "loss"
    return Curve(
        first.shape, at, roles, named, loss_name,
        falling=not (policy or UNFALLING.search(loss_name)), of_data=told.of_data,
    )  # fmt: skip


def told_times(row: Row) -> set[str]:
    """Which times of a step a line seems to name, at a glance."""
    found = set()
    for number in row.numbers:
        make = meaning.part_role(number.name)
        scale = meaning.seconds(number.name, number.unit)
        if scale is not None and make is not None:
            found |= {make(1.0).what} - {COMPUTING}
        elif scale is not None and meaning.STEP.match(number.name):
            found.add("step_s")
    return found


def _names(row: Row, heading: str | None) -> list[tuple[str, str]]:
    """Name and unit of each number; where the line itself gives none, the heading's."""
    names = [(number.name, number.unit) for number in row.numbers]
    above = headed(row, heading) if heading is not None else None
    if above is None:
        return names
    return [(told or name, unit) for (name, unit), told in zip(names, above, strict=True)]


def _may_train(row: Row, at: int, names: Sequence[tuple[str, str]]) -> bool:
    """Whether the words around the count are none of something else."""
    around = " ".join(row.shape[: at + 1])
    behind = [word for gap in row.shape[at + 1 : at + 3] for word in gap.split()[:2]]
    said = " ".join((around, names[at][0], *behind))
    if _NO_LOOP.search(said):
        return False
    return not _HELD_OUT.search(said) or bool(_TRAINS.search(said))


def _counter(streams: Sequence[Sequence[Seen]], names: Sequence[tuple[str, str]]) -> int | None:
    """Which number counts the steps."""
    best: tuple[tuple[bool, bool, bool, int], int] | None = None
    first = streams[0][0].row
    for n, (name, unit) in enumerate(names):
        measured = _MEASURE.match(first.shape[n + 1]) if n + 1 < len(first.shape) else None
        part_of_name = re.search(r"[a-z]-$", first.shape[n])
        if measured or part_of_name or _MEASURE.match(unit):
            continue
        if _NO_COUNT.search(name):
            continue
        linked = n + 1 < len(names) and first.shape[n + 1] in LINKS
        sure = linked or _STEP_WORD.search(name)
        if _counts(streams, n) < (IN_TURN if sure else RISES):
            continue
        rank = bool(_OF_DATA.search(name)), not linked, not _STEP_WORD.search(name), n
        if best is None or rank < best[0]:
            best = rank, n
    return None if best is None else best[1]


def _counts(streams: Sequence[Sequence[Seen]], n: int) -> float:
    """In what part of the pairs of lines a number rises, where it does so as a count; else 0."""
    strides: Counter[int] = Counter()
    falls = pairs = 0
    for stream in streams:
        counts = [seen.row.numbers[n].count for seen in stream]
        if any(count is None or count >= LATEST_STAMP for count in counts):
            return 0.0
        for before, after in pairwise(count for count in counts if count is not None):
            if after > before:
                strides[after - before] += 1
            falls += after < before
            pairs += 1
    rises = strides.total()
    if rises < LEAST_RISES or falls > FALLS * rises:
        return 0.0
    usual, often = strides.most_common(1)[0]
    whole = sum(count for stride, count in strides.items() if stride % usual == 0)
    kept = often >= SAME_STRIDE * rises and whole >= WHOLE_STRIDES * rises
    return rises / pairs if kept else 0.0


class _Columns:
    """The numbers of lines of one shape, told apart."""

    def __init__(
        self,
        streams: Sequence[Sequence[Seen]],
        at: int,
        names: Sequence[tuple[str, str]],
        columns: Sequence[Sequence[float]],
    ) -> None:
        self.streams, self.at, self.names, self.columns = streams, at, names, columns
        self.of_data = bool(_OF_DATA.search(names[at][0]))
        self.beside: set[int] = set()
        """What speaks of no training by itself."""

    def roles(self) -> dict[int, Role]:
        found: dict[int, Role] = {}
        self._plan(found)
        self._epoch(found)
        since = self._since()
        wall_s = self._wall_s(since)
        for n, (name, unit) in enumerate(self.names):
            if n == self.at or n in found:
                continue
            if role := self._named(name, unit, self.columns[n], found):
                found[n] = role
        self._times(found, wall_s)
        self._unnamed_loss(found)
        if since is not None and not self._dated():
            found.setdefault(since[0], Role("since_s", since[1]))
            self.beside.add(since[0])
        return found

    def _plan(self, found: dict[int, Role]) -> None:
        most = max(self.columns[self.at])
        for n in (self.at + 1, *range(self.at + 2, len(self.names))):
            if n >= len(self.names):
                return
            column, rows = self.columns[n], [seen.row for one in self.streams for seen in one]
            linked = n == self.at + 1 and rows[0].shape[n] in LINKS
            whole = all(row.numbers[n].count is not None for row in rows)
            fixed = len({*column}) == 1 and column[0] >= most
            if whole and fixed and (linked or _PLAN_WORD.match(self.names[n][0])):
                found[n] = Role("planned")
                self.beside.add(n)
                return

    def _epoch(self, found: dict[int, Role]) -> None:
        for n, (name, _) in enumerate(self.names):
            if n != self.at and n not in found and _EPOCH.search(name):
                found[n] = Role("epoch")
                self.beside.add(n)
                return

    def _named(
        self, name: str, unit: str, values: Sequence[float], found: dict[int, Role]
    ) -> Role | None:
        held = {role.what for role in found.values()}
        if "throughput" not in held and (kind := meaning.throughput(name, unit)):
            thousand = 1e3 if (unit or name).startswith("k") else 1.0
            return Role("throughput", thousand, kind)
        if meaning.part_role(name):
            return None  # with the times
        if (
            "loss" not in held
            and meaning.loss_like(name or unit, values)
            and (not name or unit not in ("ms", "s", "%"))
        ):
            return Role("loss")
        if "lr" not in held and meaning.RATE.search(name):
            return Role("lr")
        if "grad_norm" not in held and meaning.NORM.search(name):
            return Role("grad_norm")
        return None

    def _unnamed_loss(self, found: dict[int, Role]) -> None:
        """The first column that behaves as a loss, where none is called one."""
        if any(role.what == "loss" for role in found.values()):
            return
        like = [
            n
            for n, (name, unit) in enumerate(self.names)
            if n != self.at
            and n not in found
            and not self.streams[0][0].row.numbers[n].clocked
            and meaning.falls_unsteadily(name, unit, self.columns[n])
        ]
        if like:
            found[like[0]] = Role("loss", guessed=True)

    def _times(self, found: dict[int, Role], wall_s: float | None) -> None:
        """The step's time and the parts of it, which have its unit where they state none."""
        free = [n for n in range(len(self.names)) if n != self.at and n not in found]
        chosen = meaning.steps_time([(*self.names[n], self.columns[n]) for n in free], wall_s)
        by, took = None, wall_s
        if chosen is not None:
            at, role = free[chosen[0]], chosen[1]
            found[at], by = role, None if role.inverse else role.scale
            took = role.of(median(self.columns[at]))
        parts_by = self._parts_scale(free, took)
        self._bare_waits(found, free, by if by is not None else parts_by)
        for n in free:
            name, unit = self.names[n]
            make, own = meaning.part_role(name), meaning.seconds(name, unit)
            scale = own if own is not None else by if by is not None else parts_by
            if n in found or make is None or scale is None:
                continue
            role, told = make(scale), [v for v in self.columns[n] if isfinite(v)]
            twice = role.what != COMPUTING and role.what in {one.what for one in found.values()}
            if twice or not told or min(told) < 0:
                continue
            if took is None or scale * median(told) <= took:
                found[n] = role

    def _bare_waits(self, found: dict[int, Role], free: Sequence[int], by: float | None) -> None:
        """Waits beside what is computed, for nobody knows what: for the others, where no wait for
        data stands beside them."""
        names = [self.names[n][0] for n in free]
        if any(meaning.DATA.search(name) for name in names):
            return
        if any(meaning.SYNC.search(name) for name in names) or not any(
            meaning.COMPUTE.search(name) for name in names
        ):
            return
        for n in free:
            scale = meaning.seconds(*self.names[n]) or by
            if n not in found and meaning.BARE_WAIT.search(self.names[n][0]) and scale:
                found[n] = Role("sync_s", scale)
                return

    def _parts_scale(self, free: Sequence[int], took: float | None) -> float | None:
        """What parts of a step that state no unit are multiplied by: together they are about what
        it took by the clock; without one they are taken for seconds."""
        bare = [
            median(told)
            for n in free
            if meaning.part_role(self.names[n][0]) and meaning.seconds(*self.names[n]) is None
            if (told := [v for v in self.columns[n] if isfinite(v)])
        ]
        if took is None:
            return 1.0
        low, high = (share * took for share in meaning.FITS)
        return next((by for by in (1.0, 1e-3) if low <= by * sum(bare) <= high), None)

    def _dated(self) -> bool:
        at = [seen.at for stream in self.streams for seen in stream]
        return 2 * sum(map(isfinite, at)) > len(at)

    def _since(self) -> tuple[int, float] | None:
        """Which number is what has passed since the start."""
        for n, (name, unit) in enumerate(self.names):
            scale = meaning.seconds(name, unit)
            clocked = self.streams[0][0].row.numbers[n].clocked
            said = meaning.SINCE.match(name) or (not name and n < self.at)
            if n == self.at or not (clocked or said):
                continue
            runs = [[seen.row.numbers[n].value for seen in stream] for stream in self.streams]
            if (
                all(a <= b for run in runs for a, b in pairwise(run))
                and max(max(run) for run in runs) < LATEST_STAMP
                and any(run[0] < run[-1] for run in runs)
            ):
                return n, scale or 1.0
        return None

    def _wall_s(self, since: tuple[int, float] | None) -> float | None:
        """What a step took by the clock, or by what has passed."""
        if self.of_data:
            return None
        steps: list[float] = []
        dated = self._dated()
        for stream in self.streams:
            if dated:
                times = [seen.at for seen in stream]
            elif since is not None:
                times = [seen.row.numbers[since[0]].value * since[1] for seen in stream]
            else:
                return None
            counts = [seen.row.numbers[self.at].value for seen in stream]
            pairs = pairwise(zip(times, counts, strict=True))
            steps += [(u - t) / (m - n) for (t, n), (u, m) in pairs if m > n and u > t]
        return median(steps) if len(steps) >= LEAST_RISES else None
