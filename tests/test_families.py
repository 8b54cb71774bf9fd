"""What every family owes."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.facts import Facts
from flatline.families import SECTIONS, Family, all_families
from flatline.model import Finding

CODES = [*("A1", "A2", "A3", "B1", "B2", "B3", "C1", "C2", "C3", "C4", "C5", "C6")]
CODES += [*("D1", "D2", "D3", "D4", "D5", "D6", "E1", "E2", "E3", "F1", "F2", "F3", "F4", "G1")]
EACH = pytest.mark.parametrize("family", all_families(), ids=lambda f: f.code)


def test_every_fixed_code_is_there_once() -> None:
    """The codes are a contract: none is missing, none is new."""
    assert [family.code for family in all_families()] == CODES


@EACH
def test_a_page_has_its_five_sections_in_order(family: Family) -> None:
    """A page reads the same way for every family."""
    places = [family.page.index(f"\n{section}") for section in SECTIONS]

    assert places == sorted(places)
    assert not family.title.startswith(("The family", "This"))


@EACH
def test_a_family_is_named_as_its_file(family: Family) -> None:
    """`startup-crash` lives in startup_crash.py."""
    name = Path(__import__(family.judge.__module__, fromlist=["x"]).__file__ or "").stem

    assert family.name == name.replace("_", "-")


@EACH
def test_a_family_explains_only_families_that_exist(family: Family) -> None:
    """A mechanism towards a code that does not exist would never be used."""
    for key, mechanism in family.explains.items():
        assert key.partition("/")[0] in CODES
        assert key.partition("/")[0] != family.code
        assert len(mechanism.split()) > 4


@EACH
def test_a_family_finds_nothing_in_nothing(family: Family) -> None:
    """Without telemetry nothing is found and nothing is cleared: it is not measurable."""
    assert family.judge(Facts(targets=())) is None


@EACH
def test_a_family_names_what_it_needs(family: Family) -> None:
    """Needs are words a person can act on."""
    assert family.needs
    assert all(len(need) > 3 for need in family.needs)


def test_a_finding_cannot_be_built_without_evidence() -> None:
    """Neither without a claim nor with a belief outside (0, 1]."""
    with pytest.raises(ValueError, match="shows nothing"):
        Finding("A1", "it broke", "job", (), (), 0.5)
