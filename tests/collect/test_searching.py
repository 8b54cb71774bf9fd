"""A search by somebody who is not trusted: bounded, exact, and blind to secrets."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flatline.collect.files import Found
from flatline.collect.searching import Hit, search
from flatline.errors import UsageError


def logs(folder: Path, *texts: str) -> list[Found]:
    made = []
    for number, text in enumerate(texts):
        path = folder / f"{number}.log"
        path.write_bytes(text.encode())
        made.append(Found(path, path.name, "log", len(text)))
    return made


def every(files: list[Found], pattern: str, most: int) -> list[Hit]:
    """All pages, one after the other."""
    hits: list[Hit] = []
    begin: tuple[int, int] | None = (0, 1)
    while begin is not None:
        found = search(files, pattern, most, begin)
        assert len(found.hits) <= most
        hits += found.hits
        begin = found.follows
    return hits


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.sampled_from(["", "error", "an Error here", "fine", "x" * 50]), max_size=40),
    most=st.integers(1, 7),
)
def test_pages_together_are_what_one_page_is(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], most: int
) -> None:
    """Each line that matches once, in order, whatever the size of a page."""
    files = logs(tmp_path_factory.mktemp("s"), "\n".join(rows), "one error\n")
    wanted = [n for n, row in enumerate(rows, 1) if "error" in row.lower()]
    hits = every(files, "error", most)
    assert [hit.line for hit in hits if hit.source == "0.log"] == wanted
    assert [hit.line for hit in hits if hit.source == "1.log"] == [1]


@pytest.mark.parametrize(
    ("line", "pattern", "shown"),
    [
        ("\x1b[31mred\x1b[0m alert", "red alert", "red alert"),
        ("Epoch 1\rEpoch 2\rEpoch 3", "epoch 2", "Epoch 2"),
        ("ends here\r", "here$", "ends here"),
        ("token=hf_abcdEFGH1234ijklMNOP5678", "token", "token=[masked]"),
        ("ünïcode Fehler", "fehler", "ünïcode Fehler"),
    ],
)
def test_what_is_shown_is_what_matches(
    tmp_path: Path, line: str, pattern: str, shown: str
) -> None:
    """Of a line drawn over itself the part that matches; never escapes, never secrets."""
    assert [hit.text for hit in search(logs(tmp_path, line + "\n"), pattern, 5).hits] == [shown]


@pytest.mark.parametrize("pattern", ["hf_abcd", "=h", "1234$", "MNOP"])
def test_a_secret_is_not_found(tmp_path: Path, pattern: str) -> None:
    """What is masked cannot be searched for, not even a character of it."""
    files = logs(tmp_path, "token=hf_abcdEFGH1234ijklMNOP5678qrst1234\n")
    assert search(files, pattern, 5).hits == ()


def test_a_key_over_many_lines_is_masked_whole(tmp_path: Path) -> None:
    """Each line is masked with those before it."""
    body = "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7" for _ in range(20))
    text = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"
    assert search(logs(tmp_path, text), "ggSjAgEA", 5).hits == ()


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|a)*b",
        "(.*a){12}",
        "(x+x+)+y",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(a.*b.*a|.*c.*d|e.*a){16}!",
    ],
)
def test_no_pattern_is_catastrophic(tmp_path: Path, pattern: str) -> None:
    """Time is linear in the text: backtracking would take longer than anybody waits."""
    files = logs(tmp_path, ("a" * 5_000 + "!\n") * 100)
    began = time.monotonic()
    search(files, pattern, 3)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "pattern",
    ["", "  ", "(?=a)", r"(a)\1", "a{1,9999}", "((a.{64}){64}b){64}", "x" * 161, "(", "x*"],
)
def test_a_pattern_that_is_not_taken_is_told_why(tmp_path: Path, pattern: str) -> None:
    """The caller can write another."""
    with pytest.raises(UsageError, match="pattern"):
        search(logs(tmp_path, "x\n"), pattern, 3)


def test_a_long_search_stops_and_goes_on(tmp_path: Path) -> None:
    """Where time is up it says where; nothing is lost."""
    files = logs(tmp_path, "no\n" * 800_000 + "yes\n")
    ticks = iter([0.0, 1.0, 99.0])
    found = search(files, "yes", 3, clock=lambda: next(ticks, 99.0))
    assert found.timed_out
    assert found.follows is not None
    assert 1 < found.follows[1] < 800_000
    assert [hit.line for hit in search(files, "yes", 3, found.follows).hits] == [800_001]


def test_a_log_that_went_away_is_named(tmp_path: Path) -> None:
    """It was not searched, which is not the same as no match."""
    files = logs(tmp_path, "yes\n", "yes\n")
    files[0].path.unlink()
    found = search(files, "yes", 3)
    assert [hit.source for hit in found.hits] == ["1.log"]
    assert "0.log" in found.unread[0]
