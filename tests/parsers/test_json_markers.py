"""A loop that logs in JSON lines, and what its events tell of checkpoints."""

from __future__ import annotations

import re

import pytest

from flatline.parsers import json_markers


def said(text: str) -> list[tuple[str, int | None]]:
    found = [(one.kind, one.step) for one in json_markers.Reader().feed(text)]
    assert not found or any(re.search(t, text) for t in json_markers.TRIGGERS), text
    return found


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('{"ts": "x", "event": "resume", "found": null, "start_step": 0}', ("fresh", None)),
        ('{"event": "auto_resume", "checkpoint": ""}', ("fresh", None)),
        ('{"msg": "resume", "path": "/c/step-00800.pt"}', ("resume", 800)),
        ('{"event": "resumed", "from": "/c/last.pt", "step": 70}', ("resume", 70)),
        ('{"event": "checkpoint", "path": "/c/step-1000.pt"}', ("checkpoint_saved", 1000)),
        ('{"event":"checkpoint_saved","step":50,"took_s":3.1}', ("checkpoint_saved", 50)),
        ('INFO {"type": "ckpt_loaded", "step": 9}', ("checkpoint_loaded", 9)),
    ],
)
def test_what_an_event_means(text: str, meant: tuple[str, int | None]) -> None:
    assert said(text) == [meant]


@pytest.mark.parametrize(
    "text",
    [
        '{"event": "checkpoint", "step": 1000}',
        '{"event": "checkpoint_start", "path": "/c/step-1000.pt"}',
        '{"event": "checkpoint", "path": "/c/step-1000.pt", "status": "failed"}',
        '{"event": "checkpoint_saved", "step": 5, "error": "disk quota exceeded"}',
        '{"event": "resume", "path": null, "step": 400}',
        '{"event": "checkpoint", "action": "load", "path": "/c/step-1000.pt"}',
        '{"event": "checkpoint_loaded", "path": "/models/base.safetensors"}',
        '{"event": "resume"}',
        '{"event": "resume training of the pretrained backbone", "path": null}',
        '{"event": "checkpoint", "path": "/c/step-1',
        '{"event": "checkpoint", "path": ' + "[" * 3_000,
        '["event", "resume"]',
        '{"event": 3, "resume": null}',
    ],
)
def test_what_none_means(text: str) -> None:
    assert said(text) == []
