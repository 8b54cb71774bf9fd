"""
Diagnose the recorded runs that come with Flatline.

One line a run, with what is known of it and what was found, then the whole
verdict of one; with NAME, of that one. Status 0 where every answer is right,
1 where one is not.

examples:
  flatline demo
  flatline demo rank-killed
  flatline demo --list
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flatline.cli import FOUND, HEALTHY, Engine, look_of, say
from flatline.errors import CatalogueError, UsageError
from flatline.wording.columns import wrap

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from flatline.model import Verdict
    from flatline.render.text import Look

USAGE = "[NAME] [--list]"
NOTHING = "undetermined"
"""Stands for a code where the right answer is that it cannot be told."""
_OPTIONS = {"--job"}


@dataclass(frozen=True, slots=True)
class Demo:
    """A recorded run and the codes that are right for it. `args` are options of `diagnose`."""

    name: str
    title: str
    codes: tuple[str, ...]
    args: tuple[str, ...]
    folder: Traversable


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="only this run, its verdict whole")
    parser.add_argument("--list", action="store_true", help="what there is, nothing is run")


def run(options: argparse.Namespace, engine: Engine) -> int:
    from flatline.render import text

    demos = read_demos(engine.demos())
    if options.list:
        say(_titles(demos, look_of(sys.stdout).width))
        return HEALTHY
    chosen = demos if options.name is None else (_named(demos, options.name),)
    wide = max(len(demo.name) for demo in chosen), max(len(_expected(demo)) for demo in chosen)
    look = look_of(sys.stdout)
    verdicts = []
    for demo in chosen:
        verdict = _diagnose(demo, engine)
        verdicts.append(verdict)
        say(_line(demo, verdict, wide, look))
    demo, verdict = _worth_showing(list(zip(chosen, verdicts, strict=True)))
    title = "\n".join(wrap(f"{demo.name}: {demo.title}", look.width))
    say(f"\n{look.paint('bold', title)}\n\n{text.render(verdict, look)}")
    return HEALTHY if all(map(_right, chosen, verdicts)) else FOUND


def read_demos(folder: Traversable) -> tuple[Demo, ...]:
    """Every bundled run, by name. Raises `CatalogueError` where there is none."""
    entries = sorted(folder.iterdir(), key=lambda e: e.name) if folder.is_dir() else []
    demos = tuple(_read(entry) for entry in entries if (entry / "truth.toml").is_file())
    if not demos:
        raise CatalogueError("this installation brings no recorded runs along; install it anew")
    return demos


def _read(folder: Traversable) -> Demo:
    try:
        truth = tomllib.loads((folder / "truth.toml").read_text("utf-8"))
        codes = truth["codes"] if "codes" in truth else truth["code"]
        return Demo(
            folder.name,
            str(truth["title"]),
            (codes,) if isinstance(codes, str) else tuple(codes),
            tuple(truth.get("args", ())),
            folder,
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as fault:
        raise CatalogueError(f"demo/{folder.name}/truth.toml: {fault}") from fault


def _named(demos: Sequence[Demo], name: str) -> Demo:
    for demo in demos:
        if demo.name == name:
            return demo
    raise UsageError(f"no demo is called {name!r}: {', '.join(demo.name for demo in demos)}")


def _diagnose(demo: Demo, engine: Engine) -> Verdict:
    from importlib import resources

    from flatline.collect import Request

    given = dict(zip(demo.args[::2], demo.args[1::2], strict=False))
    if len(demo.args) % 2 or not set(given) <= _OPTIONS:
        raise CatalogueError(f"demo/{demo.name}/truth.toml: args {list(demo.args)}")
    with resources.as_file(demo.folder / "run") as run_folder:
        request = Request((str(run_folder),), job=given.get("--job"))
        return engine.diagnose(request, None)


def _got(verdict: Verdict) -> str:
    return verdict.code or NOTHING


def _expected(demo: Demo) -> str:
    return " or ".join(demo.codes)


def _right(demo: Demo, verdict: Verdict) -> bool:
    return _got(verdict) in demo.codes


def _line(demo: Demo, verdict: Verdict, wide: tuple[int, int], look: Look) -> str:
    right = "ok" if _right(demo, verdict) else look.paint("red", "WRONG")
    name, expected = demo.name.ljust(wide[0]), _expected(demo).ljust(wide[1])
    return f"{name}  expected {expected} got {_got(verdict):<12} {right}\n"


def _worth_showing(pairs: Sequence[tuple[Demo, Verdict]]) -> tuple[Demo, Verdict]:
    """The first that went wrong, else the first with a fault, else the first."""
    wrong = [pair for pair in pairs if not _right(*pair)]
    faults = [pair for pair in pairs if pair[1].state == "found"]
    return (wrong or faults or list(pairs))[0]


def _titles(demos: Sequence[Demo], width: int) -> str:
    wide = max(len(demo.name) for demo in demos)
    lines = []
    for demo in demos:
        title = wrap(demo.title, width - wide - 2)
        lines.append(f"{demo.name:<{wide}}  {title[0]}")
        lines += [" " * (wide + 2) + line for line in title[1:]]
    return "\n".join(lines) + "\n"
