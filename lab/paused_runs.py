"""The worlds of `generate_slow.py` that stand still between two steps and go on."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import timedelta

from generate_slow import BEGIN, Metric, World
from slow_runs import Labels, around
from undated_runs import FOUR, record

Said = tuple[float, str | None]
"""How long a run stands still after a step, and the line it prints then."""
SAVE_S, STOOD_S = 25.0, 900.0


def training(
    name: str, after: Callable[[int], Said], *, steps: int, finished: bool, every: int = 10
) -> tuple[tuple[tuple[float, str], ...], dict[int, float]]:
    """A line every so many steps of four seconds, and when each step that is followed by a pause ended."""
    noise = random.Random(name)
    step_s, at, lines, stood = 4.0, 60.0, [(60.0, f"world size 16, {steps} steps planned")], {}
    for step in range(1, steps + 1 if finished else steps - 50):
        at += step_s * noise.gauss(1, 0.006)
        if step % every == 0:
            loss = 2 + 7 * 0.99**step + noise.gauss(0, 0.02)
            lines.append((at, f"step {step}/{steps} loss {loss:.4f} lr 3.00e-04"
                              f" step_time {step_s * noise.gauss(1, 0.006):.3f} s"))  # fmt: skip
        wait_s, said = after(step)
        if wait_s:
            stood[step] = at
            at += wait_s * noise.gauss(1, 0.03)
        if said:
            lines.append((at, said))
    if finished:
        lines.append((at, f"training finished: {steps} steps"))
    return tuple(lines), stood


def kernel(host: str, *lines: tuple[float, str]) -> str:
    """What `journalctl -k -o short-iso-precise` prints."""
    out = [f"2026-02-11T05:31:20.000000+00:00 {host} kernel: perf: interrupt took too long"]
    for at, text in lines:
        when = BEGIN + timedelta(seconds=at)
        out.append(f"{when:%Y-%m-%dT%H:%M:%S.%f}+00:00 {host} kernel: {text}")
    return "\n".join(out) + "\n"


def hosts(
    blocked: Callable[[Labels, float], float], ran: Callable[[Labels, float], float]
) -> tuple[Metric, ...]:
    """What the cards draw, how long something ran on them, and the tasks in uninterruptible sleep
    on each host."""
    return (
        Metric("DCGM_FI_PROF_GR_ENGINE_ACTIVE", ("host", "gpu"), lambda noise, labels, at: max(
            0.0, min(1.0, noise.gauss(ran(labels, at), 0.01)))),
        Metric("DCGM_FI_DEV_POWER_USAGE", ("host", "gpu"), around(500, 9)),
        Metric("node_procs_blocked", ("host",), lambda noise, labels, at: float(round(max(
            0.0, noise.gauss(blocked(labels, at), 0.3)))), host_label="instance"),
    )  # fmt: skip


def world(
    name: str, after: Callable[[int], Said], files: Callable[[Mapping[int, float]], dict[str, str]],
    blocked: Callable[[Labels, float, Mapping[int, float]], float] = lambda labels, at, stood: 0.0,
    idle: Callable[[Labels, float, Mapping[int, float]], bool] = lambda labels, at, stood: False,
    *, finished: bool = True, every: int = 10,
) -> World:  # fmt: skip
    lines, stood = training(name, after, steps=1000, finished=finished, every=every)
    return World(
        name, FOUR,
        hosts(lambda labels, at: blocked(labels, at, stood),
              lambda labels, at: 0.02 if idle(labels, at, stood) else 0.95),
        lines[-1][0] + 20, 15.0, host_label="Hostname", log=lines, files=files(stood),
    )  # fmt: skip


# --- a file server ---------------------------------------------------------------------------------

SERVER = "nfs: server nas02.storage"


def silent_server(name: str, silent_s: float, told: tuple[str, ...], *, finished: bool) -> World:
    """A save every 200 steps; in that of step 600 the server says nothing for so long, as the
    kernels of these hosts tell after their first minute."""

    def after(step: int) -> Said:
        wait_s = SAVE_S + max(0.0, silent_s - SAVE_S) * (step == 600)
        return (
            (wait_s, f"Saved checkpoint to /nas/out/step_{step}.pt")
            if step % 200 == 0
            else (0, None)
        )

    def files(stood: Mapping[int, float]) -> dict[str, str]:
        begins, ends = stood[600] + min(64, SAVE_S / 2), stood[600] + max(silent_s, SAVE_S / 2 + 1)
        logs = {
            f"dmesg-{host}.txt": kernel(
                host,
                (begins + n, f"{SERVER} not responding, still trying"),
                (ends - 2 + n / 9 if silent_s > SAVE_S else begins + n + 1, f"{SERVER} OK"),
            )
            for n, host in enumerate(told)
        }
        return {**logs, **({"sacct.txt": record("COMPLETED", 6000)} if finished else {})}

    def blocked(labels: Labels, at: float, stood: Mapping[int, float]) -> float:
        return 9.0 if silent_s > SAVE_S and 0 < at - stood[600] < silent_s else 0.0

    return world(name, after, files, blocked, finished=finished)


# --- a local disk ----------------------------------------------------------------------------------

TIMED_OUT = "nvme nvme0: I/O 611 QID 14 timeout, aborting"


def timing_out(
    name: str, wait_s: float, *, finished: bool, times: int = 1, every: int = 10
) -> World:
    """The disk of pod03 does not answer for half a minute, every 25 steps, for which the run waits
    so long; or so many times for which it does not wait."""

    def after(step: int) -> Said:
        return (wait_s if 100 < step < 700 and step % 25 == 7 else 0.0), None

    def files(stood: Mapping[int, float]) -> dict[str, str]:
        begun = stood.values() if wait_s else [1200.0 + 90 * n for n in range(times)]
        lines = [line for at in begun for line in ((at + 30, TIMED_OUT),
                                                   (at + 31, "nvme nvme0: Abort status: 0x0"))]  # fmt: skip
        log = {"dmesg-pod03.txt": kernel("pod03", *lines)}
        return {**log, **({"sacct.txt": record("COMPLETED", 4200)} if finished else {})}

    def blocked(labels: Labels, at: float, stood: Mapping[int, float]) -> float:
        near = any(0 < at - begun < wait_s for begun in stood.values()) or (
            times > 1 and 1200 < at < 3400)  # fmt: skip
        return 14.0 if near and labels["instance"] == "pod03" else 0.1

    def idle(labels: Labels, at: float, stood: Mapping[int, float]) -> bool:
        near = any(0 < at - begun < wait_s for begun in stood.values())
        return near and labels["Hostname"] == "pod03"

    return world(name, after, files, blocked, idle, finished=finished, every=every)


# --- garbage, and pauses of which nothing is said --------------------------------------------------


def collecting(name: str, cost_s: float, said: str | None, *, finished: bool) -> World:
    """Every forty steps something takes so long, and says what it was, or nothing."""

    def after(step: int) -> Said:
        told = said and said.format(cost_s)
        return (cost_s, told) if step % 40 == 0 else (0.0, None)

    kept = {"sacct.txt": record("COMPLETED", 5400)} if finished else {}
    return world(name, after, lambda stood: kept, finished=finished)


COLLECTED = "[GC] Performing periodic GC collection took {:.2f} seconds"

WORLDS = (
    silent_server("server_stops_answering_during_a_save", STOOD_S, FOUR[:3], finished=False),
    silent_server("server_silent_for_a_second", 1.0, FOUR[:3], finished=True),
    silent_server("server_silent_for_hosts_of_others", STOOD_S, ("pod17", "pod18"), finished=True),
    timing_out("local_disk_times_out_again_and_again", 32.0, finished=False),
    timing_out("local_disk_times_out_between_lines", 32.0, finished=False, every=50),
    timing_out("local_disk_times_out_once", 0.0, finished=True),
    timing_out("local_disk_that_nobody_waits_for_times_out", 0.0, finished=True, times=24),
    collecting("garbage_collected_every_forty_steps", 27.0, COLLECTED, finished=False),
    collecting("garbage_collected_at_no_cost", 0.4, COLLECTED, finished=True),
    collecting("pauses_of_which_nothing_is_said", 27.0, None, finished=True),
)
