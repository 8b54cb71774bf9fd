"""Recorded incidents for a model: beside a verdict, explained, and never as evidence."""

from __future__ import annotations

from mcp_server.asking import DEMOS, called, said

KNOWN = "pytorch-dataloader-bus-error-too-many-workers"


def test_a_verdict_names_the_incidents_like_it() -> None:
    """In the answer by a line, in details whole; the list of evidence has none of it."""
    diagnosis, related, evidence = called(
        DEMOS / "small-shm",
        ("diagnose", {"target": str(DEMOS / "small-shm")}),
        ("details", {"handle": "HANDLE", "part": "related"}),
        ("details", {"handle": "HANDLE", "part": "evidence"}),
    )
    assert "an incident like this (no evidence): Bus error in a" in said(diagnosis)
    assert KNOWN in said(related)
    assert KNOWN not in said(evidence)


def test_an_incident_can_be_explained() -> None:
    """By its id; of a line, the incidents like it stand below its explanation."""
    incident, line = called(
        DEMOS / "small-shm",
        ("explain", {"what": KNOWN}),
        ("explain", {"what": "RuntimeError: Expected to mark a variable ready only once"}),
    )
    assert incident.structured_content is not None
    assert incident.structured_content["kind"] == "incident"
    assert "prefetch" in said(incident)
    assert "none of them is evidence" in said(line)
    assert "pytorch-ddp-checkpoint-marked-ready-twice" in said(line)
