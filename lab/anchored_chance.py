"""
How often bursts that have nothing to do with a run's pace are said to slow it.

    PYTHONPATH=src python lab/anchored_chance.py [RUNS] [SEED]

makes runs up (4000): a pace with noise of 0.3 to 4 % a point, half of it correlated over 2 to 60
points, alone, with a drift of up to 6 %, or with slow phases of its own; beside it one to four of
the places burst at random: from a moment on, a few times, many times, or at even distances.  The
last two rows are the power: the same, but each place's bursts lower the pace by 4 %.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from datetime import UTC, datetime
from itertools import accumulate

from flatline.judging.anchored import anchored
from flatline.judging.throughput import Pace
from flatline.judging.timeline import SHORTEST_S, STRETCHES, Timeline

BEGIN = 1_700_000_000.0
PACES = ("noise", "drift", "own phases")
BURSTS = ("onset", "few", "many", "even")
COST = 0.04


def correlated(dice: random.Random, count: int, spread: float) -> list[float]:
    """White noise and a first-order process of the same variance."""
    keep = math.exp(-1 / dice.uniform(2, 60))
    half, state, out = spread / 2**0.5, 0.0, []
    for _ in range(count):
        state = keep * state + dice.gauss(0, half * (1 - keep * keep) ** 0.5)
        out.append(state + dice.gauss(0, half))
    return out


def course(dice: random.Random, kind: str, count: int) -> list[float]:
    """What the pace does of itself, as a logarithm."""
    if kind == "drift":
        most, bend = dice.uniform(-0.06, 0.03), dice.choice((0.0, 3.0, 10.0))
        return [
            most * (at / count if not bend else 1 - math.exp(-bend * at / count))
            for at in range(count)
        ]
    if kind == "own phases":
        marks = burst(dice, dice.choice(BURSTS), count)
        fall = dice.uniform(0.02, 0.2)
        return [-fall * mark for mark in marks]
    return [0.0] * count


def burst(dice: random.Random, kind: str, count: int) -> list[bool]:
    """Marks over `count` moments."""
    out = [False] * count
    if kind == "onset":
        begin = dice.randrange(count // 10, count - count // 10)
        return [at >= begin for at in range(count)]
    if kind == "even":
        every = dice.uniform(count / 20, count / 4)
        length, first = every * dice.uniform(0.1, 0.5), dice.uniform(0, every)
        return [at >= first and (at - first) % every < length for at in range(count)]
    for _ in range(dice.randint(1, 4) if kind == "few" else dice.randint(6, 20)):
        begin = dice.randrange(count)
        end = begin + int(count * dice.uniform(0.01, 0.15 if kind == "few" else 0.04)) + 1
        out[begin:end] = [True] * len(out[begin:end])
    return out


def made(
    dice: random.Random, pace_kind: str, burst_kind: str | None, cost: float = 0.0
) -> tuple[Pace, Timeline, dict[str, list[bool]]]:
    """A run: its pace, its stretches, and each place's bursts on them."""
    count = dice.randint(150, 1200)
    step_s = dice.uniform(3, 45)
    values = [a + b for a, b in zip(course(dice, pace_kind, count),
                                    correlated(dice, count, dice.uniform(0.003, 0.04)),
                                    strict=True)]  # fmt: skip
    names = [f"n{n}" for n in range(1 if cost else dice.randint(1, 4))]
    fine = {name: burst(dice, burst_kind or dice.choice(BURSTS), count) for name in names}
    values = [
        v - cost * any(fine[n][at] for n in names) + (at < 2) * -0.3 for at, v in enumerate(values)
    ]
    times = list(accumulate((step_s * math.exp(-v) for v in values), initial=BEGIN))
    length_s = math.ceil(max(SHORTEST_S, (times[-1] - BEGIN) / STRETCHES, 2 * step_s))
    start, end = (datetime.fromtimestamp(math.floor(t), UTC) for t in (BEGIN, times[-1]))
    cut = Timeline(start, end, length_s)
    lit = {name: [False] * len(cut.ends) for name in names}
    for name in names:
        for time, on in zip(times[1:], fine[name], strict=True):
            at = cut.index(time)
            if on and at is not None:
                lit[name][at] = True
    pace = Pace(tuple(times[1:]), tuple(math.exp(v) / step_s for v in values), "steps/s", "x")
    return pace, cut, lit


def rate(runs: int, seed: str, pace_kind: str, burst_kind: str, cost: float = 0.0) -> int:
    dice = random.Random(f"{seed} {pace_kind} {burst_kind} {cost}")
    return sum(anchored(*made(dice, pace_kind, burst_kind, cost)) is not None for _ in range(runs))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    seed = sys.argv[2] if len(sys.argv) > 2 else "1"
    each = runs // (len(PACES) * len(BURSTS))
    total: Counter[str] = Counter()
    print("pace \\ bursts", *BURSTS, sep="\t")
    for kind in PACES:
        found = [rate(each, seed, kind, bursts) for bursts in BURSTS]
        total[kind] = sum(found)
        print(kind, *(f"{n / each:.1%}" for n in found), sep="\t", flush=True)
    every = each * len(PACES) * len(BURSTS)
    print(f"{sum(total.values())} of {every}: {sum(total.values()) / every:.2%}")
    for kind in ("noise", "drift"):
        found = [rate(each, seed, kind, bursts, COST) for bursts in BURSTS]
        print(f"4 % in bursts, {kind}", *(f"{n / each:.1%}" for n in found), sep="\t", flush=True)


if __name__ == "__main__":
    main()
