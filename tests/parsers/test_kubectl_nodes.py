"""`kubectl get nodes` as text."""

from __future__ import annotations

import pytest

from flatline.errors import FormatError
from flatline.parsers import kubectl_nodes

BARE = b"""$ kubectl get nodes
NAME    STATUS                        ROLES           AGE    VERSION
cp-1    Ready                         control-plane   212d   v1.31.2
wk-1    Ready                         gpu             91d    v1.31.2
wk-2    NotReady                      <none>          91d    v1.31.2
wk-3    NotReady,SchedulingDisabled   <none>          91d    v1.31.2
wk-4    Ready,SchedulingDisabled      <none>          91d    v1.31.2
"""
WIDE = (
    b"NAME   STATUS     ROLES    AGE   VERSION   INTERNAL-IP   EXTERNAL-IP   OS-IMAGE      \n"
    b"wk-1   Ready      <none>   91d   v1.31.2   10.7.0.11     <none>        Ubuntu 24.04.1 LTS\n"
    b"wk-2   NotReady   <none>   91d   v1.31.2   10.7.0.12     <none>        Ubuntu 24.04.1 LTS\n"
)


def test_nodes_that_are_not_ready() -> None:
    told = kubectl_nodes.parse(BARE, "nodes.txt")

    assert kubectl_nodes.recognise("nodes.txt", BARE)
    assert [(event.host, event.states) for event in told.node_events] == [
        ("wk-2", ("NOT_RESPONDING",)),
        ("wk-3", ("NOT_RESPONDING", "DRAIN")),
        ("wk-4", ("DRAIN",)),
    ]
    assert {event.scheduler for event in told.node_events} == {"kubernetes"}
    assert all(event.at is None for event in told.node_events)
    assert [kubectl_nodes.resolve(BARE, e.cite.pointer) for e in told.node_events] == [
        e.cite.value for e in told.node_events
    ]


def test_addresses_of_the_wide_table() -> None:
    told = kubectl_nodes.parse(WIDE, "nodes.txt")

    assert told.addresses == {"10.7.0.11": "wk-1", "10.7.0.12": "wk-2"}
    assert [event.host for event in told.node_events] == ["wk-2"]


@pytest.mark.parametrize(
    "text",
    [
        b"NAME   READY   STATUS   RESTARTS   AGE\np-0    1/1     Running   0   3m\n",
        b"NAME STATUS ROLES AGE VERSION are the columns\nstep 1 loss 2.0\n",
        b"",
    ],
    ids=["pods", "prose", "nothing"],
)
def test_other_tables(text: bytes) -> None:
    assert not kubectl_nodes.recognise("nodes.txt", text)
    with pytest.raises(FormatError):
        kubectl_nodes.parse(text, "nodes.txt")
