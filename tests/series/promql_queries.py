"""
PromQL queries and data by chance: every function, operator and modifier of release 2.42.

The same seed gives the same queries.  A difference between two engines is to be one of meaning,
not of rounding: values are mostly multiples of 1/4, so that sums are exact in any order, and what
blows rounding up (the sine of a large number, rounding at a tie) is not asked of results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from flatline.series.storage import STALE

T0 = 1_700_000_000.0
SPAN_S = 3600
EVERY_S = 15

Samples = list[tuple[float, float]]
Row = tuple[dict[str, str], Samples]


# --- data ---------------------------------------------------------------------------------------


def data(seed: int) -> list[Row]:
    """An hour of counters with resets, gauges with NaN and Inf, gaps, series that begin late,
    end early or are marked stale, histograms sound and broken."""
    rng = Random(seed)
    rows: list[Row] = []
    for host in ("n1", "n2", "n3"):
        for gpu in ("0", "1", "2"):
            place = {"host": host, "gpu": gpu, "job": "train" if host != "n3" else "eval"}
            rows.append(({"__name__": "work_total", **place}, _holed(rng, _counter(rng))))
            rows.append(({"__name__": "power_watts", **place}, _holed(rng, _gauge(rng, 300))))
            rows.append(({"__name__": "temp", **place}, _holed(rng, _walk(rng))))
            rows.append(({"__name__": "odd", **place}, _holed(rng, _odd(rng))))
        rows.append(({"__name__": "node_info", "host": host, "rack": f"r{host[1]}"}, _flat(1)))
        rows.append(({"__name__": "limit", "host": host}, _flat(250 + int(host[1]))))
        rows.append(({"__name__": "started", "host": host}, _flat(T0 - 86_400 * int(host[1]))))
        rows += _histogram(rng, host)
    half = T0 + SPAN_S / 2
    for name, first in (("life_a", True), ("life_b", False)):
        kept = [s for s in _walk(rng) if (s[0] < half - 300) == first and s[0] != half]
        rows.append(({"__name__": name, "host": "n1"}, [*kept, (kept[-1][0] + 1, STALE)]))
    rows.append(({"__name__": "lonely"}, _walk(rng)))
    return sorted(rows, key=lambda row: sorted(row[0].items()))


def _times(rng: Random) -> list[float]:
    """Scrapes every 15 s at the target's own offset, some of them late."""
    phase = rng.choice([0.0, 0.0, rng.randrange(15_000) / 1000])
    late = rng.random() < 0.3
    out = []
    for i in range(SPAN_S // EVERY_S):
        wait = rng.randrange(3000) / 1000 if late and rng.random() < 0.2 else 0.0
        out.append(round(T0 + phase + i * EVERY_S + wait, 3))
    return out


def _flat(value: float) -> Samples:
    return [(T0 + i * EVERY_S, float(value)) for i in range(SPAN_S // EVERY_S)]


def _counter(rng: Random) -> Samples:
    value, out = float(rng.randrange(100)), []
    for time in _times(rng):
        value = 0.0 if rng.random() < 0.02 else value + rng.randrange(40) / 4
        out.append((time, value))
    return out


def _gauge(rng: Random, around: float) -> Samples:
    return [(time, around + rng.randrange(-400, 400) / 4) for time in _times(rng)]


def _walk(rng: Random) -> Samples:
    value, out = 40.0, []
    for time in _times(rng):
        value += rng.choice([-1, -0.5, 0, 0, 0, 0.25, 1])
        out.append((time, value))
    return out


def _odd(rng: Random) -> Samples:
    """Values few expect."""
    strange = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e9, -2.5, 0.5, 1, 1, 2, 3]
    return [(time, float(rng.choice(strange))) for time in _times(rng)]


def _holed(rng: Random, samples: Samples) -> Samples:
    """Samples with what happens to series: a gap, a late beginning, an early end."""
    kind = rng.randrange(6)
    cut = rng.randrange(20, len(samples) - 20)
    if kind == 0:
        samples = samples[:cut] + samples[cut + 20 + rng.randrange(20) :]
    elif kind == 1:
        samples = samples[cut:]
    elif kind == 2:
        samples = [*samples[:cut], (samples[cut][0], STALE)]
    elif kind == 3:
        samples = samples[:cut]
    elif kind == 4:
        samples = [(t, STALE if cut <= i < cut + 3 else v) for i, (t, v) in enumerate(samples)]
    return samples


def _histogram(rng: Random, host: str) -> list[Row]:
    bounds = ["0.1", "0.5", "1", "5", "+Inf"]
    broken = {"n2": "5", "n3": "wrong"}.get(host)
    totals = [0.0] * len(bounds)
    out: list[list[tuple[float, float]]] = [[] for _ in bounds]
    for time in _times(rng):
        running = 0.0
        for i in range(len(bounds)):
            running += rng.randrange(4)
            totals[i] += running if rng.random() > 0.01 or host != "n2" else 0.0
            out[i].append((time, totals[i]))
    rows: list[Row] = []
    for bound, samples in zip(bounds, out, strict=True):
        labels = {"__name__": "lat_bucket", "host": host, "le": bound}
        if bound == broken:
            samples = samples[: rng.randrange(10, len(samples))]
        rows.append((labels, samples))
    if broken == "wrong":
        rows.append(({"__name__": "lat_bucket", "host": host, "le": "much"}, out[0]))
    return rows


# --- queries ------------------------------------------------------------------------------------

PLAIN = ["abs", "ln", "log2", "log10", "sqrt", "sgn", "deg", "rad"]
TRIG = ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
        "atanh"]  # fmt: skip
DATES = ["minute", "hour", "day_of_week", "day_of_month", "day_of_year", "days_in_month", "month",
         "year"]  # fmt: skip
OVER = ["avg", "min", "max", "sum", "count", "stddev", "stdvar", "last", "present"]
CHANGE = ["rate", "increase", "delta", "irate", "idelta", "deriv", "changes", "resets"]
GROUPING = ["sum", "avg", "min", "max", "count", "stddev", "stdvar", "group"]
ARITHMETIC = ["+", "-", "*", "/", "%", "^", "atan2"]
COMPARISON = ["==", "!=", ">", "<", ">=", "<="]
NAMES = ["work_total", "power_watts", "temp", "odd"]
LABELS = ["host", "gpu", "job", "rack", "le", "nope"]


@dataclass(frozen=True, slots=True)
class Query:
    """A query at one time (`step` None), or over a range."""

    text: str
    start: float
    end: float
    step: float | None = None


class Generator:
    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)

    def query(self) -> Query:
        rng = self.rng
        text = self._top()
        start = T0 + rng.choice([rng.randrange(-400, SPAN_S + 600), 15 * rng.randrange(240)])
        start += rng.choice([0.0, 0.0, rng.randrange(1000) / 1000])
        if rng.random() < 0.5:
            return Query(text, start, start)
        step = rng.choice([1, 15, 15, 37, 60, 300, 0.7])
        return Query(text, start, round(start + step * rng.randrange(1, 30), 3), step)

    def _top(self) -> str:
        rng = self.rng
        kind = rng.random()
        if kind < 0.05:
            return self.scalar(2)
        if kind < 0.07:
            return self.range(1)
        if kind < 0.08:
            return '"text"'
        if kind < 0.10:
            return rng.choice([f"timestamp({self.vector(1)})", "time()", "minute(vector(time()))"])
        if kind < 0.15:
            return self._wrong()
        return self.vector(rng.choice([1, 1, 2, 2, 3]))

    def _wrong(self) -> str:
        """What no engine may answer, and what it may only sometimes."""
        vector, ranged = self.vector(1), self.range(1)
        return self.rng.choice([
            f"sum({ranged})", f"rate({vector})", f"{vector} + on() {ranged}", f"abs({vector}, 1)",
            f"{vector} and 1", "1 > 2", f"nonsense({vector})", f"topk(NaN, {vector})", "{}",
            f"{vector} +", f"label_replace({vector}, '', 'x', 'host', '.*')", "temp{host=~'('}",
            f"label_replace({vector}, 'a-b', 'x', 'host', '.*')", f"count_values('a-b', {vector})",
            f"label_replace({vector}, 'host', 'same', 'host', '.*')", '{__name__=~"temp|odd"} * 2',
            f"label_join({vector}, 'gpu', '-', 'job')", "temp * on (host) limit * on (job) temp",
            "limit / on (host) temp", "temp / on (host) power_watts",
            "temp * on (host) group_left () power_watts", "temp == on (job) power_watts",
            "limit > on (host) group_right (gpu) temp", 'holt_winters(temp[5m], 1, 0.5)',
            'rate({__name__=~"temp|work_total"}[5m])', "topk(1e20, temp)", 'sum_over_time(limit)',
            '-{__name__=~"life_.*"}', 'abs({__name__=~"life_.*"})', "temp[5m:0s]", "temp[0s]",
            'max_over_time({__name__=~"life_.*"}[10m])', "sum by (host) (temp) * temp",
            "mad_over_time(temp[5m])", "temp or on (host) limit", "scalar(1)", "vector(temp)",
        ])  # fmt: skip

    # --- pieces ---

    def number(self) -> str:
        return self.rng.choice(["0", "1", "2", "0.5", "-1", "10", "250", "1e3", "NaN", "Inf",
                                "-Inf", "0x10", "40", "3.25"])  # fmt: skip

    def duration(self) -> str:
        return self.rng.choice(["15s", "30s", "1m", "47s", "1m30s", "5m", "5m", "10m", "500ms"])

    def matchers(self) -> str:
        rng = self.rng
        if rng.random() < 0.5:
            return ""
        one = rng.choice([
            'host="n1"', 'host=~"n[12]"', 'host!="n2"', 'gpu!~"0|1"', 'job="train"', 'nope=""',
            'nope!=""', 'host=~".+"', 'gpu=~"1?"', "host='n3',gpu=\"1\"", 'host=~"n1|n3"',
        ])  # fmt: skip
        return "{" + one + "}"

    def selector(self) -> str:
        rng = self.rng
        if rng.random() < 0.1:
            return rng.choice(['{__name__="temp"}', "life_a", "life_b", "lonely", "missing",
                               'started', 'missing{host="n1"}'])  # fmt: skip
        return rng.choice([*NAMES, *NAMES, "limit", "node_info", "lat_bucket"]) + self.matchers()

    def modifiers(self) -> str:
        rng = self.rng
        kind = rng.random()
        if kind < 0.75:
            return ""
        at = rng.choice(
            ["start()", "end()", str(T0 + rng.randrange(SPAN_S)), f"{T0 + 300.25:.3f}"]
        )
        offset = rng.choice(["", "-"]) + self.duration()
        return rng.choice([f" offset {offset}", f" @ {at}", f" @ {at} offset {offset}",
                           f" offset {offset} @ {at}"])  # fmt: skip

    def range(self, depth: int) -> str:
        rng = self.rng
        if rng.random() < 0.75:
            return f"{self.selector()}[{self.duration()}]{self.modifiers()}"
        inside = self.vector(depth - 1)
        if not inside.endswith(")") or inside.startswith("-"):
            inside = f"({inside})"
        step = rng.choice(["", "15s", "20s", "1m"])
        return f"{inside}[{rng.choice(['1m', '2m', '5m', '7m'])}:{step}]{self.modifiers()}"

    def scalar(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.5:
            return self.number()
        return rng.choice([
            lambda: f"scalar({self.vector(depth - 1)})",
            lambda: f"(time() - {T0:.0f})",
            lambda: "pi()",
            lambda: f"(-{self.number().lstrip('-')})",
            lambda: f"({self.number()} {rng.choice(ARITHMETIC)} {self.scalar(depth - 1)})",
            lambda: f"({self.scalar(0)} {rng.choice(COMPARISON)} bool {self.scalar(depth - 1)})",
        ])()  # fmt: skip

    def labels(self) -> str:
        return ", ".join(self.rng.sample(LABELS, self.rng.randrange(3)))

    def grouping(self) -> str:
        return self.rng.choice(["", f" by ({self.labels()}) ", f" without ({self.labels()}) "])

    def vector(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0:
            return self.selector() + self.modifiers()
        makers: list[tuple[int, Callable[[int], str]]] = [
            (3, lambda d: self.selector() + self.modifiers()),
            (1, lambda d: f"{rng.choice(PLAIN)}({self.vector(d)})"),
            (1, lambda d: f"{rng.choice(TRIG)}(clamp({self.vector(d)}, -10, 10))"),
            (1, lambda d: f"{rng.choice(['ceil', 'floor'])}({self.vector(d)} + 0.03)"),
            (1, lambda d: f"exp(({self.vector(d)}) / 1000)"),
            (2, self._scaled),
            (4, lambda d: f"{rng.choice(OVER)}_over_time({self.range(d)})"),
            (4, lambda d: f"{rng.choice(CHANGE)}({self.range(d)})"),
            (2, self._fitted),
            (4, lambda d: f"{rng.choice(GROUPING)}{self.grouping()}({self.vector(d)})"),
            (2, self._parametric),
            (6, self._binary),
            (2, self._absent),
            (2, self._histogram),
            (2, self._labelled),
            (1, lambda d: f"{rng.choice(DATES)}({rng.choice(['', self.vector(d), 'started'])})"),
            (1, lambda d: f"{rng.choice(['sort', 'sort_desc'])}({self.vector(d)})"),
            (1, lambda d: f"(timestamp({self.vector(d)}) - {T0:.0f})"),
            (1, lambda d: f"vector({self.scalar(d)})"),
            (1, lambda d: f"-({self.vector(d)})"),
        ]
        weights = [weight for weight, _ in makers]
        return rng.choices([make for _, make in makers], weights)[0](depth - 1)

    def _scaled(self, depth: int) -> str:
        inside = self.vector(depth)
        one, two = self.scalar(1), self.scalar(1)
        return self.rng.choice([
            f"round({self.vector(0)})", f"round({inside} + 0.03, {one})",
            f"clamp({inside}, {one}, {two})",
            f"clamp_min({inside}, {one})", f"clamp_max({inside}, {one})",
        ])  # fmt: skip

    def _fitted(self, depth: int) -> str:
        """No `@` for predict_linear: release 2.42 lets its window slide nevertheless."""
        level = self.rng.choice(["0", "0.5", "0.9", "1", "-1", "2", "NaN", "0.25"])
        ahead = self.rng.choice(["60", "-30", "3600"])
        return self.rng.choice([
            f"quantile_over_time({level}, {self.range(depth)})",
            f"predict_linear({self.selector()}[{self.duration()}], {ahead})",
            f"holt_winters({self.range(depth)}, 0.5, 0.25)",
        ])  # fmt: skip

    def _parametric(self, depth: int) -> str:
        """A server's choice among equals is by chance (a map's order) unless its series come
        straight from the store."""
        rng, inside, how = self.rng, self.vector(depth), self.grouping()
        k, op = rng.choice(["1", "2", "3", "0", "-1", "50", "1.9"]), rng.choice(["top", "bottom"])
        new = rng.choice(["v", "host"])
        straight = rng.choice([self.vector(0), f"rate({self.selector()}[{self.duration()}])"])
        return rng.choice([
            f"{op}k{how}({k}, {straight})", f"sum({op}k{how}({k}, {inside}))",
            f"quantile{how}({rng.choice(['0.5', '0.9', '0', '1', '7', '-1', 'NaN'])}, {inside})",
            f'count_values{how}("{new}", {self.vector(0)})',
            f'count_values{how}("{new}", round(clamp({inside}, -999, 999), 0.25))',
        ])  # fmt: skip

    def _binary(self, depth: int) -> str:
        rng = self.rng
        left, right = self.vector(depth), self.vector(depth)
        kind = rng.random()
        if kind < 0.3:
            sides = [left, self.scalar(depth)]
            rng.shuffle(sides)
            how = rng.choice([*ARITHMETIC, *COMPARISON, *(f"{op} bool" for op in COMPARISON)])
            return f"({sides[0]}) {how} ({sides[1]})"
        labels = self.labels()
        matching = rng.choice(["", "", f" on ({labels})", f" ignoring ({labels})", " on (host)",
                               " on (host, gpu)", " on (host, gpu, job)"])  # fmt: skip
        if kind < 0.5:
            return f"({left}) {rng.choice(['and', 'or', 'unless'])}{matching} ({right})"
        op = rng.choice([*ARITHMETIC, *COMPARISON, *(f"{op} bool" for op in COMPARISON)])
        if kind < 0.7:
            many, one = rng.choice(NAMES), rng.choice(["limit", "node_info"])
            include = rng.choice(["", "rack"])
            if rng.random() < 0.5:
                return f"{many} {op} on (host) group_left ({include}) {one}"
            return f"{one} {op} on (host) group_right ({include}) {many}"
        return f"({left}) {op}{matching} ({right})"

    def _absent(self, depth: int) -> str:
        rng = self.rng
        return rng.choice([
            f"absent({self.vector(depth)})", f"absent_over_time({self.range(depth)})",
            'absent(missing{host="n1",gpu=~"x",job="a",job!="b"})', f"absent({self.selector()})",
            'absent_over_time(missing{host="n1"}[5m])',
        ])  # fmt: skip

    def _histogram(self, depth: int) -> str:
        rng = self.rng
        level = rng.choice(["0.5", "0.9", "0.99", "0", "1", "-1", "2", "NaN", "0.25"])
        inside = rng.choice([
            "lat_bucket", f"rate(lat_bucket[{self.duration()}])", "sum by (le) (lat_bucket)",
            f"sum by (le, host) (rate(lat_bucket[{self.duration()}]))", self.vector(depth),
            "lat_bucket" + self.matchers(),
        ])  # fmt: skip
        return f"histogram_quantile({level}, {inside})"

    def _labelled(self, depth: int) -> str:
        rng, inside = self.rng, self.vector(depth)
        target = rng.choice(["new", "host", "gpu", "__name__"])
        template = rng.choice(["$1", "x${1}y", "$0", "", "$$1", "plain", "${two}-$1", "$2"])
        source = rng.choice([*LABELS, "__name__"])
        pattern = rng.choice(["n(.*)", "(.*)", "(?P<two>.)(.*)", "nope", "", "[0-9]", "(n)?(.+)"])
        if rng.random() < 0.7:
            return f'label_replace({inside}, "{target}", "{template}", "{source}", "{pattern}")'
        names = ", ".join(f'"{label}"' for label in rng.sample(LABELS, rng.randrange(1, 4)))
        return f'label_join({inside}, "{target}", "{rng.choice(["-", "", ","])}", {names})'
