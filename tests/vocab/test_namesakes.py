"""Hosts of one name in several domains: that of the run is asked, another cluster's is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.series.matching import Matcher
from flatline.sources.metrics import MetricsSource
from flatline.vocab import Exporter, bind, vocabularies
from flatline.vocab.rewrite import Scope, restrictions

T0 = 1_700_000_000
HOSTS = ("n1", "n2", "n3")


def exporter(name: str, *labels: str) -> Exporter:
    vocabulary = next(v for v in vocabularies() if v.name == name)
    bound = bind(vocabulary, {c.metric: frozenset(labels) for c in vocabulary.carriers})
    assert bound is not None
    return bound


DCGM = exporter("dcgm-exporter", "Hostname", "gpu")
NODE = exporter("node_exporter", "instance")


def asked(scope: Scope, to: Exporter, *natives: str) -> set[str]:
    """The host values that the data is asked for."""
    groups, gaps = restrictions(scope, to, natives)
    assert not gaps
    matchers = [group[0] for group in groups]
    return {name.replace("\\", "") for m in matchers for name in m.value.split("|")}


@pytest.mark.parametrize(
    ("scope", "natives", "left_out"),
    [
        (HOSTS, ("n1", "n2", "n2.old.example", "n3"), {"n2.old.example"}),
        (HOSTS, ("n1.lan", "n2.lan", "n2.old.example", "n3.lan"), {"n2.old.example"}),
        (HOSTS, ("n1.lan", "n2.lan", "n2", "n3.lan"), {"n2"}),
        (HOSTS, ("n1.lan", "n2.LAN", "n2.old.example", "n3.Lan"), {"n2.old.example"}),
        (HOSTS, ("n1", "n2", "n2.old.example", "n2.lan", "n3"), {"n2.old.example", "n2.lan"}),
        (("n1.lan", "n2.lan", "n3.lan"), ("n1", "n2", "n2.old.example", "n3"), {"n2.old.example"}),
        (HOSTS, ("n1", "n2.lan", "n3", "n3.old.example"), set()),
        (HOSTS, ("n1.lan", "n2", "n2.old.example", "n3.old.example"), set()),
        (HOSTS, ("n1.lan", "n2", "n2.old.example", "n3.lan"), set()),
        (("n2",), ("n2", "n2.old.example"), set()),
        (HOSTS, ("n1", "n1.lan", "n2", "n2.lan", "n3", "n3.lan"), set()),
    ],
    ids=["short", "with their domain", "short among those with one", "in other cases",
         "of two others", "asked with a domain", "one with a domain", "two domains",
         "in no domain of theirs", "alone", "both spellings of each"],
)  # fmt: skip
def test_the_host_of_the_domain_of_the_others_is_asked(
    scope: tuple[str, ...], natives: tuple[str, ...], left_out: set[str]
) -> None:
    """Where those that stand there once have one domain, or none; else nothing is left out."""
    assert asked(Scope(scope), DCGM, *natives) == {*natives} - left_out


def test_a_port_is_no_part_of_a_domain() -> None:
    """node_exporter's hosts stand in `instance`."""
    natives = ("n1:9100", "n2:9100", "n2.old.example:9100", "n3:9101")

    assert asked(Scope(HOSTS), NODE, *natives) == {"n1:9100", "n2:9100", "n3:9101"}


def test_the_cards_that_a_host_holds_are_those_of_the_one_that_is_asked() -> None:
    scope = Scope(HOSTS, {"n2": ("0", "1")})
    groups, _ = restrictions(scope, DCGM, ("n1", "n2", "n2.old.example", "n3"))

    assert (Matcher("Hostname", "=", "n2"), Matcher("gpu", "=~", "0|1")) in groups


def test_what_another_clusters_host_draws_is_not_answered(tmp_path: Path) -> None:
    (tmp_path / "m.prom").write_text("".join(
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-{host}",Hostname="{host}"}} {watts}'
        f" {(T0 + 15 * n) * 1000}\n"
        for n in range(5)
        for host, watts in (("n1", 600), ("n2", 610), ("n2.old.example", 90), ("n3", 620))
    ))  # fmt: skip
    source = MetricsSource([(tmp_path / "m.prom", "m.prom")], Scope(HOSTS))

    assert sorted(row.last for row in source.ask("gpu_power_watts").rows) == [600, 610, 620]
