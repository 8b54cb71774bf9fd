"""
Hosts that stand in the data as addresses, by name.

A scrape knows its target as `10.0.3.7:9100`; node_exporter's `node_uname_info` says which host
answers there, and Slurm's NodeAddr which node an address is.  One that neither names stays as it
is and is a gap: whatever it shows cannot be joined with the logs of a host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from ipaddress import ip_address

from flatline.model import Gap
from flatline.vocab import Exporter

UNAME = "node_uname_info"
SHOWN = 4


def bare(instance: str) -> str:
    """An address or name without the port and the brackets of IPv6."""
    host, colon, tail = instance.rpartition(":")
    if not (colon and tail.isdigit() and (host.startswith("[") or ":" not in host)):
        host = instance
    return host.strip("[]")


def names_of(
    answered: Iterable[tuple[str, str]], addresses: Mapping[str, str]
) -> Mapping[str, str]:
    """
    Address -> host, from (instance, nodename) pairs and the scheduler's addresses.

    An address that two hosts answered at (it was given anew) names neither.
    """
    found: dict[str, set[str]] = {}
    for instance, name in answered:
        if instance and name:
            found.setdefault(bare(instance), set()).add(name)
    for address, name in addresses.items():
        found.setdefault(bare(address), set()).add(name)
    return {
        address: min(names, key=len)
        for address, names in found.items()
        if len({name.partition(".")[0] for name in names}) == 1
    }


def named(
    exporter: Exporter, natives: Iterable[str], names: Mapping[str, str]
) -> tuple[Exporter, tuple[Gap, ...]]:
    """The exporter with names for the addresses among its host values, and the gap of those
    without one."""
    rule = exporter.labels.get("host")
    if rule is None:
        return exporter, ()
    known: dict[str, str] = {}
    unknown: list[str] = []
    for native in sorted(set(natives)):
        name = names.get(bare(native)) or names.get(native)
        if name is not None and name != rule.value(native):
            known[native] = name
        elif name is None and is_address(bare(native)):
            unknown.append(bare(native))
    if not unknown:
        return (replace(exporter, hosts=known) if known else exporter), ()
    shown = ", ".join(unknown[:SHOWN])
    more = f" and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else ""
    gap = Gap(
        f"the host names of {exporter.name} metrics",
        f"nothing that was read says which host answers at {shown}{more}",
    )
    return replace(exporter, hosts=known), (gap,)


def is_address(text: str) -> bool:
    """Whether it is an IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
