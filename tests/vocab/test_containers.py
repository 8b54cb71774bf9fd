"""Exporters in containers, which name these and are scraped at their host's address."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.model import Place
from flatline.sources.metrics import MetricsSource
from flatline.vocab.rewrite import Scope

T0 = 1_700_000_000
Scraped = tuple[str, str]
"""What the exporter calls its host, and the address of the scrape."""


def read(
    folder: Path, scraped: list[Scraped], nodes: dict[str, str], hosts: tuple[str, ...] = ()
) -> MetricsSource:
    """`nodes` has the host at each address, as node_exporter says there."""
    rows = [f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",Hostname="{name}",instance="{at}:9400"}} {n}'
            for n, (name, at) in enumerate(scraped)]  # fmt: skip
    rows += [f'node_uname_info{{nodename="{node}",instance="{at}:9100"}} 1'
             for at, node in nodes.items()]  # fmt: skip
    file = folder / "m.prom"
    file.write_text("".join(f"{row} {(T0 + 30 * n) * 1000}\n" for n in range(4) for row in rows))
    return MetricsSource([(file, "m.prom")], Scope(hosts))


def hosts(source: MetricsSource) -> dict[str | None, float]:
    return {row.place.host: row.last for row in source.ask("gpu_power_watts").rows}


PODS = [("dcgm-exporter-7kq2z", "10.1.0.3"), ("dcgm-exporter-0", "10.1.0.4")]
NODES = {"10.1.0.3": "ra3", "10.1.0.4": "ra4"}


@pytest.mark.parametrize("held", [(), ("ra3", "ra4")], ids=["no host is named", "the job's"])
def test_a_container_is_on_the_host_at_its_address(tmp_path: Path, held: tuple[str, ...]) -> None:
    """Whatever number stands in its name."""
    source = read(tmp_path, PODS, NODES, held)

    assert hosts(source) == {"ra3": 0.0, "ra4": 1.0}


def test_what_it_is_called_is_cited_and_found_again(tmp_path: Path) -> None:
    answer = read(tmp_path, PODS, NODES, ("ra3",)).ask("gpu_power_watts")
    cite = answer.cite(answer.rows[0], "power")

    assert cite.place == Place(host="ra3", gpu="0")
    assert read(tmp_path, PODS, NODES).replay(cite) == cite.value


@pytest.mark.parametrize(
    ("scraped", "nodes", "held", "known"),
    [
        ([("ra3", "10.1.0.3")], {"10.1.0.3": "ip-10-1-0-3"}, ("ra3",), {"ra3"}),
        ([("ra4", "10.1.0.3"), ("ra3", "10.1.0.9")], NODES, (), {"ra3", "ra4"}),
        ([("pod-a", "10.1.0.3"), ("pod-b", "10.1.0.3")], NODES, (), {"pod-a", "pod-b"}),
        ([("pod-a", "10.1.0.3"), ("pod-a", "10.1.0.4")], NODES, (), {"pod-a"}),
        ([("pod-a", "10.9.0.3")], NODES, (), {"pod-a"}),
    ],
    ids=["a host by another name", "hosts that are known", "a gateway", "it moved",
         "nobody answers there"],
)  # fmt: skip
def test_near_misses_keep_their_names(
    tmp_path: Path,
    scraped: list[Scraped],
    nodes: dict[str, str],
    held: tuple[str, ...],
    known: set[str],
) -> None:
    assert set(hosts(read(tmp_path, scraped, nodes, held))) == known


def test_a_citation_holds_by_either_name_of_its_host(tmp_path: Path) -> None:
    """It is read again without the run's record, by which the host was known."""
    scraped, nodes = [("ra3", "10.1.0.3")], {"10.1.0.3": "ip-10-1-0-3"}
    answer = read(tmp_path, scraped, nodes, ("ra3",)).ask("gpu_power_watts")
    cite = answer.cite(answer.rows[0], "power")

    assert cite.place.host == "ra3"
    assert read(tmp_path, scraped, nodes).replay(cite) == cite.value
