"""A loop that finds no checkpoint and begins anew, in words of its own."""

from __future__ import annotations

import re

import pytest

from flatline.parsers import begun_anew

HEAD = "[2026-03-15 09:13:13,000][trainer.ckpt][WARNING] - "


def said(text: str) -> list[str]:
    found = [one.kind for one in begun_anew.Reader().feed(text)]
    assert not found or any(re.search(t, text) for t in begun_anew.TRIGGERS), text
    return found


@pytest.mark.parametrize(
    "text",
    [
        "resume=auto: no checkpoint matched /runs/v3/checkpoint/*.ckpt, initialising a new run",
        "Could not find a checkpoint in /runs/v3; training from scratch",
        "checkpoint directory /runs/v3 is empty, starting fresh",
        "Checkpoint /runs/v3/last.ckpt does not exist, starting new training run",
        "No previous run found under /runs/v3; starting a new one",
        "latest.pt not found, starting a new run",
        "Resume checkpoint not found: starting training from epoch 0",
        "no checkpoint in /runs/v3 yet, beginning at step 0",
        "resume: 0 checkpoints under /runs/v3, start at step 0",
        "Latest checkpoint step: None; initializing from scratch",
        "Didn't find any checkpoint under /runs/v3, fresh start",
        "no restore point in /runs/v3 - new run",
        "auto_resume: no checkpoint-*.pth under /runs/v3",
        "auto-resume: no valid checkpoint found in /runs/v3",
        "resume=auto: no file at /runs/v3/last.ckpt, starting fresh",
        "resume: no such file: '/runs/v3/last.pt'; training from scratch",
        "no directory named checkpoints, starting a new run",
        "/runs/v3: no readable checkpoint (0 files match last_*.pt), initializing the weights",
    ],
)
def test_none_is_there_and_it_begins(text: str) -> None:
    assert said(text) == said(HEAD + text) == ["fresh"]


@pytest.mark.parametrize(
    "text",
    [
        "If no checkpoint is found, training starts from scratch",
        "no checkpoint given: would start from scratch",
        "No pretrained checkpoint found, initializing the encoder randomly",
        "EMA checkpoint not found, starting a new average from random",
        "optimizer state missing in checkpoint: not found, starting fresh",
        "checkpoint /runs/v3/last.ckpt not found, aborting the new run",
        "No checkpoint found, skipping evaluation at step 0",
        "starting from scratch, no checkpoint will be kept",
        "loaded checkpoint /runs/v3/last.ckpt, starting at step 1",
        "no checkpoints older than step 1 were removed",
        "auto_resume: if no checkpoint found in /runs/v3",
        "no file at /runs/v3/vocab.txt, starting fresh",
        "no file at /runs/v3/resnet50_backbone.pth, starting from scratch",
        "no file in /runs/v3/checkpoint/cfg.json, starting at step 0",
        "no file at /runs/v3/last.ckpt, aborting the new run",
        "auto_resume: no checkpoint interval given",
        "no checkpoint of the run in /runs/v3, initializing weights from resnet50.pth",
        'raise FileNotFoundError("checkpoint not found, start a new run")',
    ],
)
def test_near_misses(text: str) -> None:
    assert said(text) == said(HEAD + text) == []


@pytest.mark.parametrize(
    ("lines", "fresh"),
    [
        (("looking for checkpoints in /runs/v3", "none found, starting at step 0"), True),
        (("Searching for a checkpoint in /runs/v3", "nothing found; start from scratch"), True),
        (("looking for data in /runs/v3", "none found, starting at step 0"), False),
        (("looking for checkpoints in /runs/v3", "none found"), False),
        (("none found, starting at step 0",), False),
        (("looking for checkpoints", *["0 snapshots"] * 3, "none found, start at step 0"), False),
    ],
)  # fmt: skip
def test_what_was_found_where_it_looked(lines: tuple[str, ...], fresh: bool) -> None:
    """The one line says what for, the other that there was none."""
    reader = begun_anew.Reader()
    found = [one.kind for text in lines for one in reader.feed(HEAD + text)]

    assert found == ["fresh"] * fresh
