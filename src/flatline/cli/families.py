"""
List the failure families, or show the page of one.

A family is a way a run can fail: its symptom, its mechanism, what it is told
apart from, and what to do. CODE is a code or a name. `flatline explain CODE`
adds what it can cause and be caused by, what it needs, and its signatures.

examples:
  flatline families
  flatline families B2
  flatline families collective-hang
"""

from __future__ import annotations

import argparse
import difflib
import sys
from typing import TYPE_CHECKING

from flatline.cli import HEALTHY, Engine, look_of, say
from flatline.errors import UsageError
from flatline.wording.columns import wrap

if TYPE_CHECKING:
    from flatline.families import Family
    from flatline.render.text import Look

USAGE = "[CODE]"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", nargs="?", metavar="CODE", help="show this family's page")


def run(options: argparse.Namespace, engine: Engine) -> int:
    families = engine.families()
    look = look_of(sys.stdout)
    if options.code is None:
        say(_list(families, look))
    else:
        from flatline.reference.page import family_prose

        say(family_prose(_named(families, options.code), look))
    return HEALTHY


def _named(families: tuple[Family, ...], word: str) -> Family:
    for family in families:
        if word.lower() in (family.code.lower(), family.name.lower()):
            return family
    names = [name for family in families for name in (family.code, family.name)]
    close = difflib.get_close_matches(word, names, 1)
    hint = f"; meant is perhaps {close[0]}" if close else ""
    raise UsageError(f"no family is called {word!r}{hint}; `flatline families` lists them")


def _list(families: tuple[Family, ...], look: Look) -> str:
    wide = max((len(family.name) for family in families), default=0)
    lines = []
    for family in families:
        mark = f"{family.code:<3} {family.name:<{wide}}  "
        title = wrap(family.title, max(look.width - len(mark), 20))
        lines.append(look.paint("bold", mark) + title[0])
        lines += [" " * len(mark) + line for line in title[1:]]
    return "\n".join(lines) + "\n"
