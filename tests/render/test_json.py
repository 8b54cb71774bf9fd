"""The JSON document: valid against its schema, stable, and never more than JSON can say."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import jsonschema
import orjson
import pytest

from flatline.model import Claim, DerivedCite, Impact, LogCite, RecordCite, Verdict
from flatline.render.json import document, render
from render import verdicts

SCHEMA = orjson.loads((Path(__file__).parents[2] / "docs" / "verdict.schema.json").read_bytes())


def claiming(*cites: object) -> Verdict:
    claim = Claim("so it is", cites)  # type: ignore[arg-type]
    return replace(verdicts.undetermined(), shows=(claim,))


@pytest.mark.parametrize("name", ["found", "healthy", "undetermined", "huge"])
def test_every_verdict_is_valid_against_the_schema(name: str) -> None:
    """The document of any verdict holds what the schema asks for."""
    made = orjson.loads(render(getattr(verdicts, name)()))
    jsonschema.validate(made, SCHEMA, cls=jsonschema.Draft202012Validator)


def test_the_schema_refuses_a_document_without_evidence() -> None:
    """The schema is strict enough to notice a missing part."""
    made = orjson.loads(render(verdicts.found()))
    del made["evidence"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(made, SCHEMA)


def test_evidence_is_numbered_in_the_order_of_first_citation() -> None:
    """Direct citations come first, the inputs of a derived value after them."""
    first, second = LogCite("a.log", 1, "a"), LogCite("a.log", 2, "b")
    derived = DerivedCite("lag@1", (second, first), (), 1.0, "")
    third = LogCite("a.log", 3, "c")
    made = document(claiming(derived, third))
    assert [item.get("line", item.get("method")) for item in made["evidence"]] == [  # type: ignore[attr-defined]
        "lag@1",
        3,
        2,
        1,
    ]
    assert made["evidence"][0]["inputs"] == ["e3", "e4"]  # type: ignore[index]


def test_equal_citations_share_an_id_and_unequal_values_do_not() -> None:
    """`1` and `True` are equal in Python and different in a record."""
    one = RecordCite("r.json", "a", 1, "")
    cites = (one, replace(one), replace(one, value=True), replace(one, value=1.0))
    made = document(claiming(*cites))
    assert made["verdict"]["shows"][0]["cites"] == ["e1", "e2", "e3"]  # type: ignore[index]


def test_two_nans_of_one_record_are_one_piece_of_evidence() -> None:
    """NaN differs from itself; the place it was read does not."""
    cites = (RecordCite("r", "a", float("nan"), ""), RecordCite("r", "a", float("nan"), ""))
    assert len(document(claiming(*cites))["evidence"]) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "written"),
    [(math.nan, b'"NaN"'), (math.inf, b'"Infinity"'), (-math.inf, b'"-Infinity"')],
)
def test_a_value_json_cannot_say_is_a_string(value: float, written: bytes) -> None:
    """No bare NaN, which most readers of JSON refuse."""
    page = render(claiming(RecordCite("r", "a", value, ""))).encode()
    assert b'"value": ' + written in page


def test_a_number_the_schema_wants_is_null_where_it_is_not_finite() -> None:
    """A string in the place of a number would break every reader of `impact`."""
    verdict = replace(verdicts.found(), impact=Impact(gpu_hours_lost=math.nan, steps_lost=3))
    made = orjson.loads(render(verdict))
    assert made["verdict"]["impact"]["gpu_hours_lost"] is None
    jsonschema.validate(made, SCHEMA)


def test_instants_are_utc_with_z() -> None:
    """An instant given with another offset is the same instant in UTC."""
    at = datetime(2026, 3, 1, 5, 12, 55, tzinfo=timezone(timedelta(hours=1)))
    made = document(replace(verdicts.found(), onset=at))
    assert made["verdict"]["onset"] == "2026-03-01T04:12:55Z"  # type: ignore[index]


def test_the_verdicts_own_finding_stands_first() -> None:
    """Whatever the order of judging, a reader takes the first finding for the verdict's."""
    made = document(verdicts.found())
    assert [finding["id"] for finding in made["findings"]] == ["f1", "f2", "f3"]  # type: ignore[attr-defined,index]


def test_what_utf8_and_64_bits_cannot_carry_is_still_written() -> None:
    """A file name that is no UTF-8 and a number of 30 digits do not end the rendering."""
    page = render(claiming(RecordCite("a\udcff.json", "p", 10**30, "\ud800")))
    assert str(10**30) in page
    assert "a\\\\udcff.json" in page


def test_rendering_twice_is_the_same_text() -> None:
    """Keys, ids and order do not depend on the process."""
    assert render(verdicts.found()) == render(verdicts.found())


def test_an_assumed_time_says_so() -> None:
    """A reader can tell a time that was read from one that was supposed."""
    cite = LogCite("a.log", 1, "a", at=verdicts.ONSET, at_assumed=True)
    assert document(claiming(cite))["evidence"][0]["at_assumed"] is True  # type: ignore[index]
