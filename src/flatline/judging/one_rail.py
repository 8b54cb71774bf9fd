"""
Collectives over a part of a host's adapters, because the run was told to use no other.

`NCCL_IB_HCA` names the adapters, or what their names begin with (`mlx5` all of them), with `=` in
front exactly these and with `^` all but these (NCCL user guide).  One of four that carries all is
a setting that was kept from a test, or made for another machine; where the others belong to
storage it is meant.  So it is told only where they are up and idle, and those that are used have
to wait.
"""

from __future__ import annotations

from collections.abc import Mapping

from flatline.facts import Facts
from flatline.judging.bypassed import BYTES, UNUSED, used
from flatline.judging.claims import claim
from flatline.judging.throughput import pace
from flatline.judging.timeline import instant
from flatline.model import Action, Claim, Finding, LogCite, QueryCite

SAID = "nccl-topology-ib-hca"
SENT, UP, WAITS = "rdma_transmit_bytes_total", "rdma_port_up", "rdma_transmit_wait_total"
STRENGTH, WARNED, MOST = 0.65, 0.35, 0.79
MOSTLY = 0.9
"""Of the hosts that were read, on which it must be so."""
LEFT = 0.5
"""Of a host's adapters at least: a spare one is none of its rails."""


def one_rail(facts: Facts, code: str) -> Finding | None:
    """None where NCCL does not say so, or the adapters it leaves out are used, down or few."""
    said = next((m for m in facts.matches
                 if m.signature.id == SAID and m.attempt == facts.last.n), None)  # fmt: skip
    known = pace(facts)
    if said is None or known is None or not (facts.measured(SENT) and facts.measured(UP)):
        return None
    moved = _moved(facts, said.groups.get("what", ""), *map(int, known.span))
    if moved is None:
        return None
    costs = used(facts)
    works = costs is not None and costs.works
    return _finding(facts, code, said.cite, moved, works=works)


def _moved(facts: Facts, named: str, begins: int, ends: int) -> tuple[Claim, list[str]] | None:
    window = f"[{max(1, ends - begins)}s]"
    sent = instant(facts, f"sum by (host, device) (rate({SENT}{window}))", ends)
    up = instant(facts, f"max by (host, device) ({UP})", ends)
    waits = (instant(facts, f"max by (host, device) (rate({WAITS}{window}))", ends)
             if facts.measured(WAITS) else None)  # fmt: skip
    if sent is None or up is None:
        return None
    hosts: dict[str, dict[str, float]] = {}
    for row in sent.rows:
        if row.place.host and row.place.device:
            hosts.setdefault(row.place.host, {})[row.place.device] = row.last
    active = {(row.place.host, row.place.device) for row in up.rows if row.last == 1}
    held = () if waits is None else waits.rows
    waited = {(row.place.host, row.place.device): row.last for row in held}
    bound = [host for host, rates in hosts.items() if _bound(named, host, rates, active, waited)]
    if len(bound) < 2 or len(bound) < MOSTLY * len(hosts):
        return None
    first, rates = bound[0], hosts[bound[0]]
    own = [device for device in rates if chosen(named, device)]
    left = [device for device in rates if device not in own]
    cites: list[QueryCite] = [sent.cite(row, f"sent over {row.place.device}") for row in sent.rows
                              if row.place.host == first]  # fmt: skip
    if waits is not None:
        cites += [waits.cite(row, f"ticks that {row.place.device} waited") for row in held
                  if row.place.host == first and row.place.device in own]  # fmt: skip
    most, idle = sum(rates[d] for d in own) / 1e6, max(rates[d] for d in left) / 1e6
    text = (
        f"{first} sent {most:,.0f} MB/s over {', '.join(own)}, which had to wait, and {idle:.2f}"
        f" MB/s at most over {', '.join(left)}, which are up; so {len(bound)} of {len(hosts)}"
        " hosts"
    )
    return claim(text, *cites), left


def _bound(
    named: str,
    host: str,
    rates: Mapping[str, float],
    active: set[tuple[str | None, str | None]],
    waited: Mapping[tuple[str | None, str | None], float],
) -> bool:
    own = {device: rate for device, rate in rates.items() if chosen(named, device)}
    left = {device: rate for device, rate in rates.items() if device not in own}
    if not own or len(left) < LEFT * len(rates) or any((host, d) not in active for d in left):
        return False
    sent = sum(own.values())
    idle = max(left.values()) < UNUSED * sent
    waits = max((waited.get((host, device), 0.0) for device in own), default=0.0)
    calm = max((waited.get((host, device), 0.0) for device in left), default=0.0)
    return sent >= BYTES and idle and waits > max(1.0, 10 * calm)


def chosen(named: str, device: str) -> bool:
    """Whether `NCCL_IB_HCA` picks an adapter."""
    exact, without = "=" in named[:2], named.startswith("^")
    names = [name.partition(":")[0] for name in named.lstrip("^=").split(",") if name]
    meant = any(device == name if exact else device.startswith(name) for name in names)
    return meant is not without


def _finding(
    facts: Facts, code: str, said: LogCite, moved: tuple[Claim, list[str]], *, works: bool
) -> Finding:
    shows, left = moved
    return Finding(
        code=code,
        summary=f"Collectives used a part of the adapters: {', '.join(left)} lay idle, as"
        " NCCL_IB_HCA has it" + ("; the GPUs were at work all the same" if works else ""),
        fault_class="slow-interconnect",
        attribution="job",
        strength=WARNED if works else STRENGTH,
        most=MOST,
        role="warning" if works else "cause",
        severity="warning" if works else "degraded",
        shows=(claim("NCCL was told which adapters to use", said), shows),
        implies=() if works else (
            claim("All that the GPUs of a host send goes through the ports that are left.",
                  *shows.cites),
        ),
        scope="all",
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(
            "Whether the other adapters are this network's: they may belong to storage.",
            "What it costs: a run over all of them would tell.",
        ),
        actions=(
            Action("fix", "Unset NCCL_IB_HCA, or name all adapters of the compute network in it."),
        ),
        resubmit="unknown" if works else "fix_first",
    )  # fmt: skip
