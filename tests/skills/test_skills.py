"""Runbooks: their form, and that every command in them exists."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

import flatline
from cli.calls import Oracle
from flatline.cli import Engine, _command, _parser, answer, command_names
from render import verdicts

SKILLS = sorted((Path(flatline.__file__).parent / "skills").glob("*/SKILL.md"))
NAMES = {path.parent.name for path in SKILLS}
TOKENS_PER_CHAR = 1 / 3
FIELDS = {"name", "description", "license", "compatibility", "allowed-tools"}
"""Those of agentskills.io that are used here."""


@pytest.fixture(params=SKILLS, ids=lambda path: path.parent.name)
def page(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def frontmatter(page: Path) -> dict[str, str]:
    head = page.read_text("utf-8").split("---\n")[1]
    return dict(line.split(": ", 1) for line in head.splitlines())


def commands(page: Path) -> list[str]:
    """Every call of flatline: in blocks of shell, and in code within a sentence."""
    text = page.read_text("utf-8")
    blocks = "\n".join(re.findall(r"```bash\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    inline = [c for c in re.findall(r"`(flatline [^`]+)`", prose)]
    return [line for line in blocks.splitlines() if line.startswith("flatline ")] + inline


def test_there_are_the_six() -> None:
    """Those that documents name."""
    assert {
        "job-log-triage", "tsdb-diagnosis", "performance-analysis", "compare-runs",
        "collective-hang", "incident-report",
    } == NAMES  # fmt: skip


def test_the_frontmatter_is_that_of_the_format(page: Path) -> None:
    """Name as its folder; a description that says when; sizes of agentskills.io."""
    fields = frontmatter(page)
    assert set(fields) <= FIELDS
    assert fields["name"] == page.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert 50 < len(fields["description"]) <= 1024
    assert "Use it" in fields["description"]
    assert len(fields.get("compatibility", "")) <= 500
    assert not set("<>") & set(fields["description"])
    for value in fields.values():  # plain scalars of YAML
        assert ": " not in value
        assert " #" not in value
        assert value[0] not in "\"'[{&*!|>%@`"


def test_it_fits_into_what_an_agent_loads(page: Path) -> None:
    """Under 500 lines and 5,000 tokens."""
    text = page.read_text("utf-8")
    assert len(text.splitlines()) < 500
    assert len(text) * TOKENS_PER_CHAR < 5_000


def test_it_says_when_to_stop_and_what_fools(page: Path) -> None:
    """A runbook without an end is a loop."""
    text = page.read_text("utf-8")
    assert "\n## Stop when\n" in text
    assert "\n## Pitfalls\n" in text or "\n## Rules\n" in text


def test_every_command_is_one_of_flatline(page: Path) -> None:
    """Each call is parsed by the real parser of its command."""
    found = commands(page)
    for line in found:
        words = shlex.split(line, comments=True)
        words = words[1 : next((at for at, w in enumerate(words) if w in (">", "|")), None)]
        assert words[0] in command_names(), line
        if len(words) > 1:
            _parsed(words)
    assert found


def _parsed(words: list[str]) -> argparse.Namespace:
    command = _command(words[0])
    parser = _parser(words[0], command)
    command.arguments(parser)
    return parser.parse_intermixed_args(words[1:])


def test_every_link_leads_somewhere(page: Path) -> None:
    """Hand-offs are links to other skills, installed beside this one."""
    links = re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).is_file()] == []
    assert links


def test_what_is_installed_is_what_is_there(tmp_path: Path) -> None:
    """All, where the tool asked for looks; twice is once."""
    call = ["skills", "install", "--for", "claude", "--dir", str(tmp_path)]
    assert [answer(call, Engine()) for _ in range(2)] == [0, 0]
    for page in SKILLS:
        copied = tmp_path / ".claude/skills" / page.parent.name / "SKILL.md"
        assert copied.read_bytes() == page.read_bytes()


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ([], [".agents"]),
        ([".cursor"], [".cursor"]),
        ([".claude", ".agents"], [".agents", ".claude"]),
    ],
)
def test_the_tools_a_project_uses_are_told_by_their_folders(
    tmp_path: Path, there: list[str], wanted: list[str]
) -> None:
    """Where there is none, the folder that all understand."""
    for name in there:
        (tmp_path / name).mkdir()
    assert answer(["skills", "install", "compare-runs", "--dir", str(tmp_path)], Engine()) == 0
    made = tmp_path.glob(".*/skills/compare-runs/SKILL.md")
    assert sorted(path.parts[-4] for path in made) == wanted


def test_what_was_changed_is_not_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only --force replaces it, and nothing else is written before that is known."""
    own = tmp_path / ".agents/skills/tsdb-diagnosis/SKILL.md"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    call = ["skills", "install", "--dir", str(tmp_path)]
    assert answer(call, Engine()) == 2
    assert "--force" in capsys.readouterr().err
    assert own.read_text() == "mine"
    assert list(tmp_path.rglob("SKILL.md")) == [own]
    assert answer([*call, "--force"], Engine()) == 0
    assert own.read_text() != "mine"


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    """A project that is not one's own may hold one."""
    (tmp_path / "elsewhere").mkdir()
    skills = tmp_path / "project/.agents/skills"
    skills.mkdir(parents=True)
    (skills / "compare-runs").symlink_to(tmp_path / "elsewhere")
    assert answer(["skills", "install", "--dir", str(tmp_path / "project")], Engine()) == 2
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    "args", [["install", "no-such"], ["install", "--dir", "/none/there"], ["remove"], []]
)
def test_a_wrong_call_is_two(args: list[str]) -> None:
    """Nothing is written."""
    assert answer(["skills", *args], Oracle(verdicts.found()).engine) == 2


def test_the_list_names_each(capsys: pytest.CaptureFixture[str]) -> None:
    """With what it is for."""
    assert answer(["skills", "list"], Engine()) == 0
    listed = capsys.readouterr().out
    assert {name for name in NAMES if f"\n{name} " in f"\n{listed}"} == NAMES
