"""Hosts that the data knows by address."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flatline.vocab import Exporter, LabelRule
from flatline.vocab.hosts import bare, named, names_of

NODE = Exporter("node_exporter", {"host": LabelRule("instance", port=True)}, {})


def test_node_exporter_names_who_answers_at_an_address() -> None:
    """`node_uname_info` joins the address of every exporter on that host."""
    names = names_of([("10.0.0.7:9100", "n7")], {})
    exporter, gaps = named(NODE, ["10.0.0.7:9400"], names)

    assert exporter.canonical({"instance": "10.0.0.7:9400"}) == {"host": "n7"}
    assert gaps == ()


def test_the_scheduler_names_an_address_too() -> None:
    """NodeAddr, where no node_exporter was read."""
    exporter, gaps = named(NODE, ["[fd00::7]:9100"], names_of([], {"fd00::7": "n7"}))

    assert exporter.host("[fd00::7]:9100") == "n7"
    assert gaps == ()


def test_an_address_nobody_names_is_a_gap() -> None:
    """It stays what it is: nothing is guessed from its digits."""
    exporter, gaps = named(NODE, ["10.0.0.7:9100", "n8:9100"], {})

    assert exporter.host("10.0.0.7:9100") == "10.0.0.7"
    assert "10.0.0.7" in gaps[0].reason
    assert "n8" not in gaps[0].reason


def test_an_address_two_hosts_had_names_neither() -> None:
    """Given anew in the middle of the run."""
    assert names_of([("10.0.0.7:9100", "n7"), ("10.0.0.7:9100", "n9")], {}) == {}


def test_long_and_short_names_of_a_host_agree() -> None:
    """uname says the short name, the scheduler the long one."""
    names = names_of([("10.0.0.7:9100", "n7")], {"10.0.0.7": "n7.cluster"})

    assert names == {"10.0.0.7": "n7"}


@given(st.ip_addresses(), st.integers(1, 65535))
def test_a_port_comes_off_any_address(address: object, port: int) -> None:
    """IPv4 plain, IPv6 in brackets."""
    text = str(address)
    instance = f"[{text}]:{port}" if ":" in text else f"{text}:{port}"

    assert bare(instance) == text
