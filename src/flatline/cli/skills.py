"""
Put runbooks for coding agents where these look for them.

A skill is a folder with a SKILL.md: how an agent with a shell triages a job,
reads its metrics, compares runs, or writes an incident report with Flatline.
`install` copies all, or those named, into the project in --dir: where the
tools named with --for look, else where folders of theirs are, else
.agents/skills. What is there and differs stays, unless --force is given.

examples:
  flatline skills list
  flatline skills install
  flatline skills install --for claude --dir ~
  flatline skills install job-log-triage --for cursor
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from flatline.cli import HEALTHY, Engine, look_of, say
from flatline.errors import CatalogueError, UsageError
from flatline.wording.columns import wrap

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

USAGE = "list | install [NAME...] [--for TOOL] [options]"
FOLDERS = {"agents": ".agents/skills", "claude": ".claude/skills", "cursor": ".cursor/skills"}
"""Where tools look in a project, and below the home directory (agentskills.io, their manuals)."""
PAGE = "SKILL.md"
_FIELD = re.compile(r"(?m)^(name|description): (.+)$")


@dataclass(frozen=True, slots=True)
class Skill:
    """A runbook and the files that belong to it, by their path in its folder."""

    name: str
    description: str
    files: dict[str, bytes]


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("what", metavar="list|install", choices=("list", "install"), help="what to do")
    add("name", nargs="*", metavar="NAME", help="these skills; all where none is named")
    add("--for", dest="tools", metavar="TOOL", action="append", choices=sorted(FOLDERS),
        help="agents, claude or cursor; repeatable")  # fmt: skip
    add("--dir", metavar="FOLDER", default=".", help="the project, or ~ for every project")
    add("--force", action="store_true", help="replace what is there and differs")


def run(options: argparse.Namespace, engine: Engine) -> int:
    skills = _chosen(read_skills(resources.files("flatline") / "skills"), options.name)
    if options.what == "list":
        say(_listed(skills, look_of(sys.stdout).width))
        return HEALTHY
    project = Path(options.dir).expanduser()
    if not project.is_dir():
        raise UsageError(f"--dir {options.dir} is no folder")
    for tool in options.tools or _tools_of(project):
        folder = project / FOLDERS[tool]
        _check(skills, folder, options.force)
        new = sum(_written(skill, folder) for skill in skills)
        say(f"{folder}: {len(skills)} skills, {new} of them new or changed\n")
    return HEALTHY


def read_skills(folder: Traversable) -> tuple[Skill, ...]:
    """Every skill that comes with this installation. Raises `CatalogueError` where none does."""
    entries = sorted(folder.iterdir(), key=lambda e: e.name) if folder.is_dir() else []
    skills = tuple(_read(entry) for entry in entries if (entry / PAGE).is_file())
    if not skills:
        raise CatalogueError("this installation brings no skills along; install it anew")
    return skills


def _read(folder: Traversable) -> Skill:
    files = dict(_files(folder, ""))
    fields = dict(_FIELD.findall(files[PAGE].decode("utf-8").partition("\n---")[0]))
    if fields.get("name") != folder.name or "description" not in fields:
        raise CatalogueError(f"skills/{folder.name}/{PAGE}: its frontmatter has no right name")
    return Skill(folder.name, fields["description"], files)


def _files(folder: Traversable, before: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _files(entry, f"{before}{entry.name}/")
        else:
            found.append((before + entry.name, entry.read_bytes()))
    return found


def _chosen(skills: Sequence[Skill], names: Sequence[str]) -> tuple[Skill, ...]:
    known = {skill.name: skill for skill in skills}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"no skill is called {unknown[0]!r}: there are {', '.join(known)}")
    return tuple(known[name] for name in names) if names else tuple(skills)


def _tools_of(project: Path) -> list[str]:
    """Those whose own folder the project has; the one all understand where it has none."""
    there = [tool for tool in FOLDERS if (project / f".{tool}").is_dir()]
    return there or ["agents"]


def _check(skills: Sequence[Skill], folder: Path, force: bool) -> None:
    """Refuses before anything is written: links are not followed, changes are not lost."""
    for skill in skills:
        for name, data in skill.files.items():
            path = folder / skill.name / name
            linked = [
                p for p in (path, *path.parents) if p.is_symlink() and p.is_relative_to(folder)
            ]
            if linked:
                raise UsageError(f"{linked[0]} is a link, through which nothing is written")
            if not force and path.exists() and path.read_bytes() != data:
                raise UsageError(f"{path} is there and differs; --force replaces it")


def _written(skill: Skill, folder: Path) -> bool:
    """Whether anything of it was new."""
    changed = False
    for name, data in skill.files.items():
        path = folder / skill.name / name
        try:
            if path.exists() and path.read_bytes() == data:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as fault:
            raise UsageError(f"{path}: {fault.strerror or fault}") from fault
        changed = True
    return changed


def _listed(skills: Sequence[Skill], width: int) -> str:
    wide = max(len(skill.name) for skill in skills) + 2
    lines = []
    for skill in skills:
        words = wrap(skill.description, max(width - wide, 20))
        lines += [f"{skill.name:<{wide}}{words[0]}", *(" " * wide + line for line in words[1:])]
    return "\n".join(lines) + "\n"
