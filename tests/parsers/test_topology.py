"""`scontrol show topology` and topology.conf."""

from __future__ import annotations

import pytest

from flatline.parsers.topology import parse_topology, recognise_topology

SHOWN = b"""SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=gpu[1-2]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=gpu[3-4]
SwitchName=spine Level=1 LinkSpeed=1 Nodes=gpu[1-4] Switches=leaf[1-2]
"""
CONF = b"# our fabric\nSwitchName=a Nodes=n[01-02]\nswitchname=b nodes=n03 # the odd one\n"
BLOCKS = b"BlockName=b1 BlockIndex=0 Nodes=n[1-3] BlockSize=4\n"


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        (SHOWN, (("leaf1", ("gpu1", "gpu2")), ("leaf2", ("gpu3", "gpu4")))),
        (CONF, (("a", ("n01", "n02")), ("b", ("n03",)))),
        (BLOCKS, (("b1", ("n1", "n2", "n3")),)),
    ],
)
def test_leaves_and_blocks_are_read_and_spines_left_out(text: bytes, leaves: object) -> None:
    """A spine holds every host: it tells nothing apart."""
    assert recognise_topology(text)
    assert parse_topology(text) == leaves


@pytest.mark.parametrize(
    "text",
    [b"", b"\0\xff", b"step 1 loss 2\n", b"NodeName=n1 State=IDLE\n", b"SwitchName=x\n",
     b"train.py: SwitchName\n"],
)  # fmt: skip
def test_anything_else_is_no_topology(text: bytes) -> None:
    """A log that speaks of a switch is a log."""
    assert not recognise_topology(text)


def test_a_list_that_cannot_be_read_is_left_out() -> None:
    """Nothing is claimed of its hosts."""
    assert parse_topology(b"SwitchName=a Nodes=n[01-\nSwitchName=b Nodes=n2\n") == (
        ("b", ("n2",)),
    )
