"""
`scontrol show topology` and topology.conf: which hosts stand below one leaf switch or in a block.

A line is `SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=gpu[01-04]`, or `BlockName=b1 ...
Nodes=gpu[01-18]` of the block plug-in.  Switches above the leaves name `Switches=` and are left
out, and so is a line that lists its hosts in no form that can be read (topology.conf(5)).
"""

from __future__ import annotations

import re

from flatline.parsers._slurm import hosts

FORMAT = "topology"
_FIELD = re.compile(r"(\w+)\s*=\s*(\S+)")
_NAMES = ("switchname", "blockname")


def _fields(line: str) -> dict[str, str]:
    return {key.lower(): value for key, value in _FIELD.findall(line.partition("#")[0])}


def recognise_topology(head: bytes) -> bool:
    """Whether the first line that says something names a switch or a block."""
    lines = [line.strip() for line in head[:65_536].decode("utf-8", "replace").splitlines()]
    first = next((line for line in lines if line and not line.startswith("#")), "")
    fields = _fields(first)
    return any(name in fields for name in _NAMES) and bool({"nodes", "switches"} & set(fields))


def parse_topology(data: bytes) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(leaf switch or block, its hosts) in order; empty where nothing of it can be read."""
    leaves: dict[str, tuple[str, ...]] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        fields = _fields(line)
        name = next((fields[key] for key in _NAMES if key in fields), None)
        if name is None or "switches" in fields or fields.get("level", "0") != "0":
            continue
        below = hosts(fields.get("nodes", ""))
        if below:
            leaves[name] = below
    return tuple(leaves.items())
