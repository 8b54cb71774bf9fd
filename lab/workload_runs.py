"""The worlds of `generate_slow.py` in which steps themselves, or one host's part in them, change."""

from __future__ import annotations

import random
from collections.abc import Callable

from generate_slow import Metric, World, stamped, steps
from slow_runs import Labels

SIX = tuple(f"rack{n:02d}" for n in range(1, 7))
Level = Callable[[Labels, float], float]


def cards(power: Level, busy: Level) -> tuple[Metric, ...]:
    """dcgm-exporter: what a card draws, and how long a kernel was on it (%)."""

    def noisy(level: Level, spread: float) -> Callable[..., float]:
        return lambda noise, labels, at: max(0.0, level(labels, at) + noise.gauss(0, spread))

    on = ("host", "gpu")
    return (
        Metric("DCGM_FI_DEV_POWER_USAGE", on, noisy(power, 7)),
        Metric("DCGM_FI_DEV_GPU_UTIL", on, noisy(busy, 0.6)),
    )


def gaps(always: bool) -> World:
    """The cards of one host are without a kernel a quarter of the time; the run is slower from its
    fiftieth minute on."""
    name = "one_host_has_gaps_all_the_time" if always else "one_host_has_gaps_as_pace_falls"

    def idles(labels: Labels, at: float) -> bool:
        return labels["Hostname"] == "rack04" and (always or at > 3000)

    return World(
        name, SIX,
        cards(lambda labels, at: 520 if at < 3000 else 440,
              lambda labels, at: 72 if idles(labels, at) else 95),
        6600, host_label="Hostname",
        log=steps(name, lambda at: 2.5 if at < 3000 else 3.2, until_s=6590, planned=9000,
                  finished=False, world=24),
    )  # fmt: skip


def longer(begins: float) -> World:
    """Sequences are twice as long from a moment on, as the loop prints with every step; the run is
    slower from its fiftieth minute on."""
    name = "sequences_longer_as_pace_falls" if begins == 3000 else "sequences_longer_before"
    lines = steps(name, lambda at: 2.5 if at < 3000 else 4.4, until_s=6590, planned=9000,
                  finished=False, world=24)  # fmt: skip
    sized = tuple((at, f"{text} seq_len {8192 if at > begins else 4096}" if "loss" in text else text)
                  for at, text in lines)  # fmt: skip
    return World(name, SIX, cards(lambda labels, at: 520, lambda labels, at: 95), 6600,
                 host_label="Hostname", log=sized)  # fmt: skip


def compiling(cost_s: float) -> World:
    """torch.compile compiles a function anew every 25 steps, as TORCH_LOGS=recompiles tells."""
    name = "compiled_anew_every_few_steps" if cost_s > 1 else "compiled_anew_at_no_cost"
    noise, at, lines = random.Random(name), 60.0, []
    lines.append((at, "world size 8, 4000 steps planned"))
    for step in range(1, 900):
        anew = step % 25 == 0
        if anew:
            lines.append((None, f"[rank0]:V0304 08:{int(at) // 60:02d}:11.104000 2211 torch/_dynamo"
                                f"/guards.py:2813] [0/{step // 25}] [__recompiles] Recompiling"
                                " function forward in /app/model.py:188"))  # fmt: skip
        at += 1.4 * noise.gauss(1, 0.02) + (cost_s if anew else 0.0)
        loss = 2 + 7 * 0.99**step + noise.gauss(0, 0.02)
        lines.append((at, f"step {step}/4000 loss {loss:.4f} lr 3.00e-04"))
    told = tuple((None, text if when is None else stamped(when, text)) for when, text in lines)
    return World(name, SIX[:1], (), 0, log=told)


WORLDS = (gaps(always=False), gaps(always=True), longer(3000), longer(900), compiling(11.0),
          compiling(0.02))  # fmt: skip
