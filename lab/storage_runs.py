"""The worlds of `generate_slow.py` in which file systems and clients of file servers count."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from generate_slow import Metric, World, counter
from paused_runs import SAVE_S, Said, hosts, training
from slow_runs import Labels
from undated_runs import FOUR, record

MOUNTS: Mapping[str, tuple[str, float]] = {
    "/": ("ext4", 4.4e11),
    "/var": ("ext4", 1.1e11),
    "/scratch": ("nfs4", 9.5e13),
}
"""Where each is mounted: its type and size in bytes."""
Left = Callable[[str, float], float]
"""(mount, seconds) -> the part that is left."""
SILENT_S = 900.0


def file_systems(left: Left) -> tuple[Metric, ...]:
    """node_exporter's: every mount of every host is one metric of its own here."""
    found = []
    for mount, (kind, size) in MOUNTS.items():
        fixed = {"mountpoint": mount, "fstype": kind, "device": f"dev{mount}"}

        def room(
            noise: random.Random, labels: Labels, at: float, mount: str = mount, size: float = size
        ) -> float:
            part = left(mount, at)
            return float(int(size * part * noise.gauss(1, 0.002))) if part else 0.0

        def whole(noise: random.Random, labels: Labels, at: float, size: float = size) -> float:
            return size

        found += [
            Metric("node_filesystem_avail_bytes", ("host",), room, fixed=fixed,
                   host_label="instance"),
            Metric("node_filesystem_size_bytes", ("host",), whole, fixed=fixed,
                   host_label="instance"),
        ]  # fmt: skip
    return tuple(found)


def saving(step: int) -> Said:
    if step % 200:
        return 0.0, None
    return SAVE_S, f"Saved checkpoint to /scratch/out/step_{step}.pt"


def dies(name: str, full: str) -> World:
    """The log ends at step 650 of 1000, without a word, a minute after a file system is full."""
    lines, _ = training(name, saving, steps=1000, finished=False)
    lines = tuple(line for line in lines if line[0] < 2800)
    ends = lines[-1][0]

    def left(mount: str, at: float) -> float:
        return 0.0 if mount == full and at > ends - 60 else 0.4

    return World(
        name, FOUR, (*hosts(lambda labels, at: 0.1, lambda labels, at: 0.95 * (at < ends)),
                     *file_systems(left)),
        ends + 60, 15.0, host_label="Hostname", log=lines,
        files={"sacct.txt": record("FAILED", ends)},
    )  # fmt: skip


def pauses(name: str, said: str | None, each_s: float, usual_s: float, *, asleep: bool) -> World:
    """After step 600 the run stands still for a quarter of an hour; its hosts send a request to
    their server again each `each_s` seconds of that time, each `usual_s` of the rest.  Where their
    tasks sleep, the log is cut off before its end: a run that was seen to end well is healthy."""
    lines, stood = training(
        name, lambda step: (SILENT_S, said) if step == 600 else saving(step), steps=1000,
        finished=not asleep,
    )  # fmt: skip

    def silent(at: float) -> bool:
        return 0 < at - stood[600] < SILENT_S

    retransmits = Metric(
        "node_nfs_rpc_retransmissions_total", ("host",),
        counter(lambda labels, at: 1 / (each_s if silent(at) else usual_s), 48113.0),
        kind="counter", host_label="instance",
    )  # fmt: skip
    return World(
        name, FOUR, (*hosts(lambda labels, at: 6.0 if asleep and silent(at) else 0.1,
                            lambda labels, at: 0.02 if silent(at) else 0.95), retransmits),
        lines[-1][0] + 20, 15.0, host_label="Hostname", log=lines,
        files={} if asleep else {"sacct.txt": record("COMPLETED", 6000)},
    )  # fmt: skip


WORLDS: tuple[World, ...] = (
    dies("scratch_fills_as_the_run_dies", "/scratch"),
    dies("var_fills_as_the_run_dies", "/var"),
    pauses("file_server_silent_by_its_clients", None, 40.0, 1e4, asleep=True),
    pauses("nfs_resends_all_the_time_and_an_evaluation_is_long", "evaluation: loss 2.31", 300.0,
           300.0, asleep=False),
)  # fmt: skip
