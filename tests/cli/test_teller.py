"""How far an investigation is: a line a look, and on a terminal one that is drawn over."""

from __future__ import annotations

import io

import pytest

from flatline.cli import complain
from flatline.wording.telling import Teller


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(teller: Teller) -> None:
    teller.round(1, "extract and retrieve")
    teller.called("search_log", "NCCL WARN" + "x" * 200)
    teller.wrote(500)
    teller.found("search_log", "12 rows")
    teller.note("the endpoint answers 429; again in 1 s")
    teller.round(0, "one question more")


def test_in_a_pipe_there_are_lines_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    """Of 80 columns, without a control character."""
    stream = io.StringIO()
    told(Teller(stream, complain))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "1/3 extract and retrieve"
    assert lines[1].startswith("  search_log NCCL WARNxxx")
    assert lines[1].endswith("...: 12 rows")
    assert lines[2:] == ["  the endpoint answers 429; again in 1 s", "one question more"]
    assert max(map(len, lines)) <= 80
    assert stream.getvalue() == ""


def test_on_a_terminal_what_is_under_way_is_drawn_over() -> None:
    """And gone when it is cleared."""
    stream = Terminal()
    teller = Teller(stream, complain)
    told(teller)
    assert "waiting for the model" in stream.getvalue()
    assert "the model writes, 500 characters" in stream.getvalue()
    teller.clear()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_quiet_one_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither in lines nor over them."""
    stream = Terminal()
    told(Teller(stream, complain, quiet=True))
    assert capsys.readouterr().err == stream.getvalue() == ""


def test_what_a_tool_was_asked_cannot_steer_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It comes from a model."""
    teller = Teller(io.StringIO(), complain)
    teller.called("x", "\x1b[2J")
    teller.found("x", "\x1b[2J")
    assert "\x1b" not in capsys.readouterr().err
