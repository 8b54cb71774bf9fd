"""
Search the records of incidents that were settled before.

  search WORDS...  the records that fit best: words, a log line, or an excerpt
                   from --file FILE or from standard input (-)
  show ID          one record, whole
  add FILE.toml    put the site's own records into its folder, secrets masked;
                   what is there already is never overwritten

The site's folder is $FLATLINE_KNOWLEDGE, else ~/.config/flatline/knowledge:
text, to be reviewed in git. A record says what a problem like this one was
elsewhere. It is no evidence: `flatline diagnose` says what this run shows.

Exit status: 0 found or added, 2 the call was wrong, 3 no record fits.

examples:
  flatline kb search 'training hangs after the first epoch' --family C2
  tail -50 slurm-8308.out | flatline kb search -
  flatline kb show pytorch-ddp-unused-parameters
  flatline kb add our-switches.toml
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from flatline.cli import HEALTHY, UNDETERMINED, Engine, complain, look_of, say
from flatline.errors import UsageError
from flatline.wording.untrusted import neutral

if TYPE_CHECKING:
    from flatline.knowledge.site import Site

USAGE = "search WORDS... | show ID | add FILE.toml  [options]"
MOST = 256 << 10
"""Bytes of an excerpt that are read."""
VERBS = ("search", "show", "add")


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("verb", choices=VERBS, metavar="VERB", help=", ".join(VERBS))
    add("words", nargs="*", metavar="WORDS", help="what to search, show or add; - is stdin")
    add("--file", metavar="FILE", help="search with an excerpt of a log")
    add("--family", metavar="CODE", help="only records of this family, as C2")
    add("--limit", metavar="N", type=int, default=5, help="at most so many; default: 5")
    add("--embedder", metavar="NAME", help="rank with this plug-in as well")
    add("--to", metavar="FOLDER", help="add there and not to the site's folder")
    add("--format", choices=("text", "json"), default="text", help="default: text")


def run(options: argparse.Namespace, engine: Engine) -> int:
    verbs = {"search": _search, "show": _show, "add": _add}
    return verbs[options.verb](options)


def _search(options: argparse.Namespace) -> int:
    text = _asked(options)
    if not 1 <= options.limit <= 100:
        raise UsageError(f"--limit {options.limit}: give a number from 1 to 100")
    family = _family(options.family)
    from flatline.knowledge.index import embedder_named
    from flatline.knowledge.site import folder, index
    from flatline.reference import incidents as page

    embedder = embedder_named(options.embedder) if options.embedder else None
    found, own = index(folder(), embedder)
    _warn(own)
    hits = found.search(text, family, options.limit)
    if options.format == "json":
        _say_json(page.hits_document(hits))
    else:
        say(page.hits(hits, look_of(sys.stdout).width))
    return HEALTHY if hits else UNDETERMINED


def _asked(options: argparse.Namespace) -> str:
    said = " ".join(options.words)
    if options.file and said:
        raise UsageError("give words or --file FILE, not both")
    if options.file:
        try:
            with Path(options.file).open("rb") as opened:
                return opened.read(MOST).decode("utf-8", "replace")
        except OSError as fault:
            raise UsageError(f"--file {options.file}: {fault.strerror or fault}") from fault
    if said == "-":
        return sys.stdin.buffer.read(MOST).decode("utf-8", "replace")
    if not said.strip():
        raise UsageError("nothing to search for: give words, --file FILE, or - for stdin")
    return said


def _family(said: str | None) -> str | None:
    if said is None:
        return None
    from flatline.reference import family_named

    family = family_named(said)
    if family is None:
        raise UsageError(
            f"no family is called {said!r}; `flatline families` lists codes and names"
        )
    return family.code


def _show(options: argparse.Namespace) -> int:
    if len(options.words) != 1:
        raise UsageError("name one record, as: flatline kb show pytorch-ddp-unused-parameters")
    import difflib

    from flatline.knowledge.outcome import Outcome
    from flatline.knowledge.site import folder, index
    from flatline.reference import incidents as page

    found, own = index(folder())
    _warn(own)
    known = {incident.id: incident for incident in found.incidents}
    wanted = options.words[0]
    if wanted not in known:
        close = difflib.get_close_matches(wanted, known, 3)
        hint = f"; meant is perhaps {', '.join(close)}" if close else ""
        raise UsageError(f"no record is called {wanted!r}{hint}")
    outcome = found.outcomes.get(wanted, Outcome())
    if options.format == "json":
        _say_json(page.document(known[wanted], outcome))
    else:
        say(page.record(known[wanted], outcome, look_of(sys.stdout).width))
    return HEALTHY


def _add(options: argparse.Namespace) -> int:
    if len(options.words) != 1:
        raise UsageError("name one file of records, as: flatline kb add our-switches.toml")
    from flatline.knowledge.site import add, folder

    file, made = add(Path(options.words[0]), folder(options.to))
    many = f"{len(made)} record{'s' * (len(made) != 1)}"
    say(f"{many} added: {neutral(str(file))}\nReview the file before it is shared.\n")
    return HEALTHY


def _warn(own: Site) -> None:
    for file, reason in own.broken:
        complain(f"flatline: the site's records, {neutral(file)}: {neutral(reason)}")


def _say_json(document: object) -> None:
    import orjson

    from flatline.render.json import plain

    said = orjson.dumps(plain(document), option=orjson.OPT_INDENT_2).decode()
    say(said + "\n", "utf-8")
