"""More worlds of `generate_slow.py`: what the training itself, its input or its settings slow."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from generate_slow import Metric, World
from slow_runs import TWELVE, around, maxtext, maxtext_log, pace_of

Labels = Mapping[str, str]
LAST = 13_500


def sliding(at: float) -> float:
    """Full speed until step 250, then down by an eighth within twenty minutes."""
    return 1.0 - 0.125 * min(1.0, max(0.0, (at - 7500) / 1200))


def experts(
    name: str,
    spike: float,
    clock: Callable[[float], float] = lambda at: 2350.0,
    speed: Callable[[float], float] = sliding,
) -> World:
    """A mixture of experts whose balance loss jumps at a moment and stays high for a while."""

    def balance(at: float) -> float:
        return 0.012 if at < spike else 0.012 + 0.045 * max(0.3, 1 - (at - spike) / 2500)

    pace = pace_of(speed)
    sclk = Metric(
        "hw_gpu_clock_mhz",
        ("host", "gpu"),
        lambda noise, labels, at: noise.gauss(clock(at), 8),
        fixed={"type": "sclk"},
    )
    heat = Metric("hw_gpu_temperature_celsius", ("host", "gpu"), around(71, 1.5))
    hosts = TWELVE[:6]
    return World(
        name,
        hosts,
        (*maxtext(pace, lambda labels, at: 0.0, balance), sclk, heat),
        LAST, 60, 2, log=maxtext_log(pace, LAST),
    )  # fmt: skip


DYNAMICS = (
    experts("experts_out_of_balance_as_pace_falls", 7500),
    experts("experts_out_of_balance_long_before_pace_falls", 2400),
    experts("clocks_fall_as_experts_lose_balance", 7500,
            lambda at: 2350.0 if at < 7500 else 1700.0),
    experts("experts_lose_balance_and_pace_holds", 7500, speed=lambda at: 1.0),
)  # fmt: skip
WORLDS = DYNAMICS
