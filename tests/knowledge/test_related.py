"""Incidents beside a verdict: of its family, clearly alike, and no part of the proof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.knowledge.incident import load
from flatline.knowledge.index import Index
from flatline.knowledge.related import MOST, fitting, with_related
from flatline.model import Related, Verdict
from flatline.render import Ledger, format_named
from knowledge.test_records import written as record
from render import verdicts

DEMOS = Path(__file__).parents[2] / "src" / "flatline" / "demo"
ONE = Related(
    "our-switch", "a thing\x1b[31m broke", "made `up`", "mend | it", "https://example.org/1",
    "by its author", 0.7, 3, 1,
)  # fmt: skip


def verdict_on(demo: str) -> Verdict:
    return diagnose(collect(Request((str(DEMOS / demo),), None, None, None, None, None, ())))


def test_a_bus_error_of_a_loader_has_been_met_before() -> None:
    """What is found is of the verdict's family, at most three, and changes nothing of it."""
    plain = verdict_on("small-shm")
    told = with_related(plain)
    assert "pytorch-dataloader-bus-error-too-many-workers" in [r.id for r in told.related]
    assert len(told.related) <= MOST
    families = {incident.id: incident.families for incident in load()}
    assert {plain.code in families[r.id] for r in told.related} == {True}
    assert replace(told, related=()) == plain
    assert Ledger(told).items == Ledger(plain).items


@pytest.mark.parametrize("demo", ["healthy", "log-cut-off"])
def test_a_verdict_without_a_fault_has_none(demo: str) -> None:
    """Nothing is alike to what was not found."""
    assert with_related(verdict_on(demo)).related == ()


def test_a_line_that_many_problems_print_tells_of_none() -> None:
    """More records than can be shown fit it: none is."""
    index = Index(load())
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert len(index.search(text, "B1", 20)) > MOST
    assert fitting(index, text, "B1", 0.1, 0.0) == []


def test_two_words_find_nothing() -> None:
    """Any record may hold both of them whole."""
    assert fitting(Index(load()), "killed worker", "A2") == []


def test_what_is_broken_at_the_site_is_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict stands; the file is named."""
    (tmp_path / "bad.toml").write_text("x = [")
    monkeypatch.setenv("FLATLINE_KNOWLEDGE", str(tmp_path))
    gaps = with_related(verdict_on("small-shm")).gaps
    assert [gap.where for gap in gaps if gap.need == "the site's incident records"] == ["bad.toml"]


def test_a_record_of_the_site_is_found_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it was found to be here."""
    line = "RuntimeError: DataLoader worker is killed by signal: Bus error. out of shared memory"
    own = record(
        id="our-shm", source="t", families=["A2"], lines=[line], problem=line, symptom=line
    )
    (tmp_path / "own.toml").write_text(own)
    (tmp_path / "outcomes.tsv").write_text("2026-01-01\tour-shm\tconfirmed\tr1\n")
    monkeypatch.setenv("FLATLINE_KNOWLEDGE", str(tmp_path))
    told = {r.id: r for r in with_related(verdict_on("small-shm")).related}
    assert told["our-shm"].confirmed == 1


@pytest.mark.parametrize("name", ["text", "markdown", "html"])
def test_every_page_shows_them_apart_from_the_evidence(name: str) -> None:
    """Problem and cause, that it is no proof, what held here; nothing of it steers."""
    page = format_named(name).render(replace(verdicts.found(), related=(ONE,)))
    words = " ".join(page.split())
    assert "Incidents like this one" in words
    assert "no part of the proof" in words
    assert "confirmed 3 times at this site" in words
    assert "our-switch" in words
    assert "\x1b" not in page
    assert "Incidents like" not in format_named(name).render(verdicts.found())


def test_the_document_lists_them_beside_the_evidence() -> None:
    """An added field: what the schema knows is as it was."""
    plain = orjson.loads(format_named("json").render(verdicts.found()))
    told = orjson.loads(format_named("json").render(replace(verdicts.found(), related=(ONE,))))
    assert plain.pop("related") == []
    assert told.pop("related")[0]["confirmed_here"] == 3
    assert told == plain
