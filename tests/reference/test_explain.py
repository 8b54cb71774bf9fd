"""`flatline explain`: families, signatures, lines of a log, and what is none of them."""

from __future__ import annotations

import io
import json

import pytest

from flatline import signatures
from flatline.cli import Engine, answer
from flatline.families import all_families
from flatline.reference import family_entry, line_entry, looks_like_a_line, nearest
from flatline.reference.page import family, signature
from flatline.render.text import Look


@pytest.mark.parametrize("width", [40, 80, 120])
def test_every_entry_keeps_to_the_width(width: int) -> None:
    """Samples and patterns of a thousand characters included."""
    look = Look(width)
    pages = [signature(item, look) for item in signatures.load()]
    pages += [family(family_entry(one), look) for one in all_families()]
    assert max(len(line) for page in pages for line in page.splitlines()) <= width


def test_a_signature_is_told_with_what_it_does_not_prove() -> None:
    """Role, family, samples, near misses, source: nothing on file is left out."""
    for item in signatures.load():
        words = " ".join(signature(item).split())
        for text in (item.meaning, item.not_proof, item.source, item.role, *item.near_misses):
            assert "".join(text.split()) in words.replace(" ", "")


def test_mechanisms_are_told_from_both_ends() -> None:
    """What A causes B by stands on B's page as well."""
    for one in all_families():
        for cause in family_entry(one).causes:
            effect = next(f for f in all_families() if f.code == cause.code)
            assert one.code in {row.code for row in family_entry(effect).caused_by}


@pytest.mark.parametrize("word", ["c2", "C2", "Collective-Hang"])
def test_a_family_is_explained_by_code_or_name(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what it can cause and be caused by."""
    assert answer(["explain", word], Engine()) == 0
    page = capsys.readouterr().out
    assert page.startswith("C2 collective-hang")
    assert "Can be caused by:\n" in page
    assert "A2 signal-kill: the killed rank never enters" in page


@pytest.mark.parametrize(
    "item", ["torch-oom", "C2", "RuntimeError: CUDA error: an illegal memory"]
)
def test_json_says_of_what_kind_it_is(item: str, capsys: pytest.CaptureFixture[str]) -> None:
    """For a program: signature, family or line."""
    answer(["explain", item, "--json"], Engine())
    made = json.loads(capsys.readouterr().out)
    assert made["kind"] in ("signature", "family", "line")


@pytest.mark.parametrize(
    ("word", "meant"),
    [("torch.cuda-oom", "torch-oom"), ("torch-oon", "torch-oom"),
     ("colective-hang", "collective-hang"), ("nccl-watchdog", "nccl-watchdog-timeout"),
     ("A9", None)],
)  # fmt: skip
def test_what_is_called_nothing_gets_the_nearest(
    word: str, meant: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong call, never a page of something else."""
    assert answer(["explain", word], Engine()) == 2
    assert meant is None or meant in nearest(word)
    assert f"no signature or family is called {word!r}" in capsys.readouterr().err


def test_a_line_is_read_as_a_log_would_be() -> None:
    """The samples of root signatures match their own; a cause is shown with its groups."""
    text = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total"
    )
    text += " capacity of 79.15 GiB of which 1.21 GiB is free."
    (match,) = (m for m in line_entry(text).matches if m.signature.id == "torch-oom")
    assert match.groups["size_asked"] == "2.00 GiB"


def test_a_line_of_progress_is_said_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    """No signature, but not nothing."""
    assert answer(["explain", "step 50/400 loss 1.65 lr 1e-3"], Engine()) == 0
    assert "read as progress: step 50, loss 1.65" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line", ["all is well here", "\x1b[2J \x00 \x1b]0;x\x07", "é" * 9000 + " ü"]
)
def test_a_line_that_says_nothing_is_status_3(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the page cannot steer a terminal."""
    assert answer(["explain", line], Engine()) == 3
    out = capsys.readouterr().out
    assert "No signature matches" in out
    assert "\x1b" not in out


def test_standard_input_holds_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`tail -1 log | flatline explain -`; secrets in it are not shown again."""
    raw = b"RuntimeError: CUDA error: device-side assert triggered\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
    assert answer(["explain", "-"], Engine()) == 0
    assert "cuda-device-assert" in capsys.readouterr().out


def test_names_and_lines_are_told_apart() -> None:
    """One word of an id's letters is a name, whatever it is; anything else is a line."""
    assert not looks_like_a_line("torch.cuda-oom")
    assert looks_like_a_line("CUDA error")
    assert looks_like_a_line("KeyError: 'x'")
