"""Incident records: each is valid, names what exists, has a source, and repeats no other."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from flatline.errors import FormatError
from flatline.knowledge.incident import KEYS, LIST_KEYS, Incident, check, load, parse

RECORDS = load()
GOOD = {
    "id": "nccl-made-up",
    "problem": "a thing broke",
    "symptom": "It stops. Nothing is said.",
    "lines": ["[rank<rank>] broke"],
    "environment": ["any"],
    "function": "`flatline diagnose`",
    "cause": "It was made up.",
    "fix": "Make it well.",
    "families": ["C2"],
    "source": "https://example.org/issues/1",
    "settled": "by its author",
}


def written(**changed: object) -> str:
    """One record as TOML; a value None leaves the key out."""
    held = {**GOOD, **changed}
    lines = [f"{key} = {json.dumps(value)}" for key, value in held.items() if value is not None]
    return "[[incident]]\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize("incident", RECORDS, ids=lambda i: i.id)
def test_a_record_names_what_exists(incident: Incident) -> None:
    """Its families and signatures are of this catalogue."""
    assert check(incident) is None


def test_there_is_one_origin_a_file() -> None:
    """The folder is the registry: what is loaded is what lies there."""
    assert {i.id.startswith(f"{i.origin}-") for i in RECORDS} == {True}


def test_a_thread_stands_behind_one_record() -> None:
    """A report of one problem is not counted as two."""
    threads = Counter(
        i.source for i in RECORDS if re.search(r"/(issues|pull|discussions)/\d", i.source)
    )
    assert [url for url, times in threads.items() if times > 1] == []


@pytest.mark.parametrize("key", ["problem", "symptom", "cause"])
def test_no_two_records_say_the_same(key: str) -> None:
    """A text that stands twice is one record too many."""
    said = Counter(" ".join(re.findall(r"\w+", getattr(i, key).lower())) for i in RECORDS)
    assert [text for text, times in said.items() if times > 1] == []


def test_a_good_record_is_read_whole() -> None:
    """Every key arrives as it was written."""
    wanted = {**GOOD, "signatures": ["nccl-timeout"]}
    (made,) = parse(written(**wanted), "nccl")
    for key in KEYS:
        value = getattr(made, key)
        assert (list(value) if key in LIST_KEYS else value) == {
            **GOOD,
            "signatures": ["nccl-timeout"],
        }[key]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"fix": None}, "missing keys ['fix']"),
        ({"colour": "red"}, "unknown keys ['colour']"),
        ({"id": "Nccl_x"}, "kebab-case"),
        ({"id": "gloo-made-up"}, "begins with the file's origin, nccl-"),
        ({"source": "a friend"}, "https address"),
        ({"lines": []}, "lines is a list of texts"),
        ({"lines": ["a"] * 5}, "at most 4"),
        ({"families": ["H9"]}, "a family is its code"),
        ({"symptom": "One. Two. Three. Four."}, "more than 3 sentences"),
        ({"problem": "x" * 141}, "141 characters, at most 140"),
        ({"cause": 3}, "cause is a text"),
        ({"cause": "two\nlines"}, "one line"),
    ],
)  # fmt: skip
def test_a_bad_record_is_refused_by_name(changed: dict[str, object], said: str) -> None:
    """One clear error, with the file and the id."""
    with pytest.raises(FormatError) as raised:
        parse(written(**changed), "nccl")
    assert said in str(raised.value)
    assert str(raised.value).startswith(f"nccl.toml: {changed.get('id', 'nccl-made-up')}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = [", "nccl.toml: "),
        ("x = 1", "found x"),
        ("", "found nothing"),
        ("incident = [1]", "incident 1: a record is a table"),
        (written() + written(), "two records have this id"),
    ],
)
def test_what_is_no_file_of_records_is_refused(text: str, said: str) -> None:
    """Never a traceback of the TOML reader, never silence."""
    with pytest.raises(FormatError, match=re.escape(said)):
        parse(text, "nccl")


def test_a_site_may_name_and_source_as_it_likes() -> None:
    """Only shipped records need a public report."""
    text = written(id="our-own-switch", source="ticket 4711")
    assert parse(text, "site", shipped=False)[0].source == "ticket 4711"
