"""A site's own records: added masked, never overwritten, passed over where broken, learnt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatline.errors import UsageError
from flatline.knowledge.incident import load, parse
from flatline.knowledge.learn import learn, shape_of
from flatline.knowledge.site import OUTCOMES, add, folder, index, note, site, written
from flatline.render import format_named
from knowledge.test_records import written as record
from render import verdicts

OWN = record(id="our-switch", source="ticket 4711")


@pytest.fixture
def verdict(tmp_path: Path) -> Path:
    """A fault as `diagnose --format json` prints it."""
    file = tmp_path / "verdict.json"
    file.write_text(format_named("json").render(verdicts.found()), "utf-8")
    return file


def test_the_folder_is_the_variable_or_below_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """And an option goes before both."""
    monkeypatch.setenv("FLATLINE_KNOWLEDGE", "/srv/k")
    assert folder() == Path("/srv/k")
    assert folder("/x") == Path("/x")
    monkeypatch.delenv("FLATLINE_KNOWLEDGE")
    assert folder() == Path.home() / ".config/flatline/knowledge"


def test_what_is_added_is_found_and_holds_no_secret(tmp_path: Path) -> None:
    """The file is a copy, masked; the search finds it beside the shipped ones."""
    file = tmp_path / "switches.toml"
    file.write_text(
        record(id="our-switch", source="t", fix="login with password=hunter2222 there")
    )
    made, incidents = add(file, tmp_path / "site")
    assert "hunter2222" not in made.read_text("utf-8")
    assert incidents[0].fix == "login with password=[masked] there"
    found, own = index(tmp_path / "site")
    assert own.broken == ()
    assert found.search("a thing broke", limit=1)[0].incident.id == "our-switch"


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """Neither a file nor a record of another file, nor one that is shipped."""
    site_folder = tmp_path / "site"
    file = tmp_path / "switches.toml"
    file.write_text(OWN)
    add(file, site_folder)
    before = (site_folder / file.name).read_bytes()
    file.write_text(record(id="our-other", source="t"))
    with pytest.raises(UsageError, match="nothing is overwritten"):
        add(file, site_folder)
    other = tmp_path / "more.toml"
    for taken in ("our-switch", load()[0].id):
        other.write_text(record(id=taken, source="t"))
        with pytest.raises(UsageError, match="is there already"):
            add(other, site_folder)
    assert [p.read_bytes() for p in site_folder.iterdir()] == [before]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a b.toml", OWN, "no name for a file"),
        ("..toml", OWN, "no name for a file"),
        ("x.txt", OWN, "no name for a file"),
        ("x.toml", "x = 1", "holds [[incident]] tables"),
        ("x.toml", record(id="our-x", source="t", families=["A9"]), "no family has the code A9"),
        ("x.toml", record(id="our-x", source="t", signatures=["no-such"]), "no signature"),
        ("x.toml", "\udcff", "not UTF-8"),
    ],
)
def test_what_is_no_record_is_not_added(tmp_path: Path, name: str, text: str, said: str) -> None:
    """The message names the file and what is wrong; nothing is written."""
    file = tmp_path / name
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError) as raised:
        add(file, tmp_path / "site")
    assert said in str(raised.value)
    assert not (tmp_path / "site").exists()


def test_a_broken_file_does_not_hide_its_siblings(tmp_path: Path) -> None:
    """It is named with its reason, and the others are read."""
    (tmp_path / "a.toml").write_text("x = [")
    (tmp_path / "b.toml").write_text(OWN)
    (tmp_path / "c.toml").write_text(OWN)
    (tmp_path / OUTCOMES).write_text("2026-01-01\tour-switch\tconfirmed\trun-1\nno tabs\n")
    own = site(tmp_path)
    assert [incident.id for incident in own.incidents] == ["our-switch"]
    assert [file for file, _ in own.broken] == ["a.toml", "c.toml", OUTCOMES]
    assert own.counted()["our-switch"].confirmed == 1


def test_a_site_that_is_not_there_has_nothing(tmp_path: Path) -> None:
    """No folder is no fault."""
    assert site(tmp_path / "nowhere").incidents == ()
    assert site(tmp_path / "nowhere").broken == ()


def test_what_is_written_is_read_again() -> None:
    """Every record of the catalogue, through the writer and the reader."""
    incidents = load()
    again = parse(written(incidents), "all", shipped=False)
    assert [i.id for i in again] == [i.id for i in incidents]
    assert [i.lines for i in again] == [i.lines for i in incidents]


def test_a_confirmed_verdict_becomes_a_record(tmp_path: Path, verdict: Path) -> None:
    """With the cause that was told, shapes of lines and not the lines, and its outcome."""
    done = learn(verdict, "confirmed", tmp_path / "site", cause="a bent fibre", fix="replaced it")
    own = site(tmp_path / "site")
    (incident,) = own.incidents
    assert own.broken == ()
    assert (incident.cause, incident.fix) == ("a bent fibre", "replaced it")
    assert incident.families == ("B2",)
    assert not any(char.isdigit() for line in incident.lines for char in line)
    assert own.counted()[incident.id].confirmed == 1
    assert "a record was made" in done[0]


def test_a_run_has_one_vote(tmp_path: Path, verdict: Path) -> None:
    """The same again is no second one, another is refused and says where to change it."""
    where = tmp_path / "site"
    learn(verdict, "confirmed", where)
    assert "nothing was written" in learn(verdict, "confirmed", where)[0]
    with pytest.raises(UsageError, match="A run has one vote"):
        learn(verdict, "wrong", where)
    assert next(iter(site(where).counted().values())).confirmed == 1


def test_the_same_problem_again_is_counted_and_not_written_twice(
    tmp_path: Path, verdict: Path
) -> None:
    """Another run with the same lines: one record, confirmed twice."""
    where = tmp_path / "site"
    learn(verdict, "confirmed", where)
    document = json.loads(verdict.read_text("utf-8"))
    document["run"]["id"] = "another"
    verdict.write_text(json.dumps(document))
    learn(verdict, "confirmed", where)
    own = site(where)
    assert len(own.incidents) == 1
    assert own.counted()[own.incidents[0].id].confirmed == 2


def test_a_known_record_can_be_told_to_have_been_right(tmp_path: Path, verdict: Path) -> None:
    """Its outcome counts; no record is made."""
    known = load()[0].id
    learn(verdict, "confirmed", tmp_path, record=known)
    assert site(tmp_path).counted()[known].confirmed == 1
    assert site(tmp_path).incidents == ()
    with pytest.raises(UsageError, match="no record is called"):
        learn(verdict, "confirmed", tmp_path, record="no-such")


def test_a_wrong_verdict_is_noted_by_its_family(tmp_path: Path, verdict: Path) -> None:
    """It makes no record."""
    learn(verdict, "wrong", tmp_path)
    assert site(tmp_path).counted()["B2"].wrong == 1
    assert site(tmp_path).incidents == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("[1]", "holds no verdict"),
        ('{"verdict": {"state": "healthy", "code": "G1"}}', "there is no fault"),
        ('{"verdict": {"state": "found", "code": "x; rm"}}', "no family's code"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_what_is_no_verdict_teaches_nothing(tmp_path: Path, text: str, said: str) -> None:
    """A clear message; nothing is written."""
    file = tmp_path / "v.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        learn(file, "confirmed", tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_hostile_verdict_is_one_harmless_record(tmp_path: Path) -> None:
    """Wrong types, newlines, escapes, secrets: what is kept is text of bounded length."""
    file = tmp_path / "v.json"
    file.write_text(
        json.dumps(
            {
                "verdict": {
                    "state": "found", "code": "C2", "fault_class": "../../x", "shows": "no list",
                    "headline": "x\n\x1b[31m" + "y" * 5000, "implies": [{"text": 3}, 4],
                },
                "run": {"id": "../../etc", "framework": ["a"]},
                "findings": [{"cites": "e1"}],
                "evidence": [{"id": "e1", "kind": "log", "text": "token=ghp_" + "a1" * 20}],
            }
        )
    )  # fmt: skip
    learn(file, "confirmed", tmp_path / "site")
    own = site(tmp_path / "site")
    assert own.broken == ()
    assert "\x1b" not in own.incidents[0].problem
    assert sorted(p.parent for p in (tmp_path / "site").iterdir()) == [tmp_path / "site"] * 2


def test_the_shape_of_a_line_holds_what_is_common_to_runs() -> None:
    """Numbers, paths, addresses and times are placeholders."""
    line = "2026-03-01T04:12:55.1Z /data/u/x.py:12 rank 7 at 10.0.0.7:29500 0xdeadbeef took 3.5 s"
    assert shape_of(line) == "<time> <path>:<n> rank <n> at <address> <hex> took <n> s"


def test_an_outcome_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """The folder may be a file."""
    (tmp_path / "f").write_text("")
    with pytest.raises(UsageError):
        note(tmp_path / "f" / "g", "x", "confirmed", "run")
