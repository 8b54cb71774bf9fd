"""Every surface shows the same verdict."""

from __future__ import annotations

import re

import orjson
import pytest

from flatline.errors import CatalogueError, UsageError
from flatline.render import format_named, format_names
from render import verdicts

NAMES = ["found", "healthy", "undetermined"]
SURFACES = ["text", "markdown"]


def open_codes(page: str) -> set[str]:
    """Codes of the families that stay open, its ranges written out: the first line below the
    heading of a terminal's page."""
    listed = page.split("\nNot decidable (")[1].splitlines()[1]
    found = set(re.findall(r"\b[A-G]\d\b", listed))
    for letter, first, last in re.findall(r"\b([A-G])(\d)-[A-G](\d)\b", listed):
        found |= {f"{letter}{n}" for n in range(int(first), int(last) + 1)}
    return found


def ids(page: str) -> set[str]:
    """Evidence ids of a page, its ranges written out."""
    found = set(re.findall(r"\be\d+\b", page))
    for first, last in re.findall(r"\be(\d+)-e(\d+)\b", page):
        found |= {f"e{n}" for n in range(int(first), int(last) + 1)}
    return found


@pytest.mark.parametrize("name", [*NAMES, "huge"])
@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_names_the_same_evidence(name: str, surface: str) -> None:
    """No id is lost where a list is folded, and none is invented."""
    verdict = getattr(verdicts, name)()
    document = orjson.loads(format_named("json").render(verdict))
    assert ids(format_named(surface).render(verdict)) == {e["id"] for e in document["evidence"]}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_tells_the_same_findings(name: str, surface: str) -> None:
    """Codes and families of findings, exclusions and open questions stand on each; a terminal is
    told the codes alone of those that stay open."""
    verdict = getattr(verdicts, name)()
    document = orjson.loads(format_named("json").render(verdict))
    whole = format_named(surface).render(verdict)
    page = " ".join(whole.split())
    groups = ["findings", "ruled_out"]
    if surface == "text" and document["undetermined"]:
        assert open_codes(whole) == {item["code"] for item in document["undetermined"]}
    else:
        groups.append("undetermined")
    for group in groups:
        for item in document[group]:
            assert f"{item['code']} {item['family']}" in page


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_says_the_same_sentences(name: str, surface: str) -> None:
    """Headline, claims, questions, actions and summaries are word for word the document's."""
    verdict = getattr(verdicts, name)()
    document = orjson.loads(format_named("json").render(verdict))["verdict"]
    page = " ".join(format_named(surface).render(verdict).replace("`", "").split())
    said = [document["headline"], *document["cannot_decide"]]
    said += [item["text"] for key in ("shows", "implies", "actions") for item in document[key]]
    assert [text for text in said if text.replace("`", "") not in page] == []


def test_the_folder_is_the_registry() -> None:
    """Each format's module is named as its NAME and renders."""
    assert {"html", "json", "markdown", "text"} <= set(format_names())
    for name in format_names():
        assert name == format_named(name).NAME
        assert format_named(name).render(verdicts.undetermined()).endswith("\n")


def test_an_unknown_format_is_the_callers_fault() -> None:
    """The message lists what there is."""
    with pytest.raises(UsageError, match="html, json, markdown, text"):
        format_named("yaml")


def test_a_private_name_is_no_format() -> None:
    """Nothing is imported for a name that is not in the folder."""
    with pytest.raises((UsageError, CatalogueError)):
        format_named("..cli")
