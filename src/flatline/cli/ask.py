"""
Ask about a run; what a model answers is checked by the rules.

The rules' verdict comes first and stands whatever the model answers. The model
gets a short pack of evidence and read-only tools; each of its claims is
executed again, and those that do not hold are shown as rejected. Without a
model, a key or an answer the rules answer alone, and it is said so.

Without a question: one a line from standard input, or from the keyboard, until
an empty line. Keys come from ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY,
the AWS chain, or for any other address FLATLINE_API_KEY, or a file that only
you can read (FLATLINE_KEYS); nothing but the named endpoint is asked. Names of
hosts, users and paths are masked before the model sees them, secrets always.

Needs the extra for a model: pip install 'flatline[agent]'
Exit status: that of the verdict, as for diagnose; 3 too where --replay does
not give the recorded answer.

examples:
  flatline ask ./outputs/8308 "which rank stopped first?"
  flatline ask ./outputs/8308 "is it the network?" --model anthropic:NAME
  flatline ask 8308 "why?" --model vllm:NAME --base-url http://gpu01:8000/v1
  flatline ask ./outputs/8308 "why?" --model openai:NAME --save why.jsonl
  flatline ask ./outputs/8308 --replay why.jsonl
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from flatline.cli import (
    STATUS,
    UNDETERMINED,
    Engine,
    complain,
    declare_run,
    look_of,
    progress_shown,
    request_said,
    say,
)
from flatline.errors import UsageError
from flatline.wording.telling import Teller
from flatline.wording.untrusted import neutral

if TYPE_CHECKING:
    from flatline.agent.session import Session
    from flatline.model.reasoning import Reasoning

USAGE = 'TARGET... ["QUESTION"] [options]'
PROMPT = "ask> "


def arguments(parser: argparse.ArgumentParser) -> None:
    from flatline.agent.options import declare

    add = parser.add_argument
    add("words", nargs="+", metavar="TARGET... QUESTION", help="the run, and what is asked of it")
    declare_run(parser)
    add("--continue", dest="resume", metavar="TRANSCRIPT", help="go on from a saved one")
    add("--replay", metavar="TRANSCRIPT", help="run a saved one again, without a model")
    add("--quiet", action="store_true", help="the answer alone; no progress")
    declare(parser)


def run(options: argparse.Namespace, engine: Engine) -> int:
    options.target, question = _told_apart(options.words)
    if options.replay and (question or options.resume):
        raise UsageError("--replay runs what was recorded; give no question and no --continue")
    request = request_said(options)
    from flatline.agent.options import settings
    from flatline.agent.session import Session, benched

    chosen = settings(options, os.environ)
    with progress_shown(options.quiet) as progress:
        bench = benched(request, chosen, progress)
    teller = Teller(sys.stderr, complain, options.quiet)
    with Session(bench, chosen, teller) as session:
        if options.replay:
            return _replay(session, Path(options.replay), teller)
        if options.resume:
            session.resumed(Path(options.resume))
        for at, asked in enumerate(_questions(question)):
            _show(session, session.asked(asked), teller, first=not at)
    return STATUS[bench.verdict.state]


def _told_apart(words: list[str]) -> tuple[list[str], str | None]:
    """The targets, which exist or are job ids, and the question, which comes last."""
    from flatline.collect.live import JOB_ID

    last = words[-1]
    if len(words) > 1 and not _exists(last) and not JOB_ID.fullmatch(last):
        return words[:-1], last
    return words, None


def _exists(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):
        return False


def _questions(question: str | None) -> Iterator[str]:
    """The one that was given; else those that are typed or piped, until an empty line."""
    if question is not None:
        yield question
        return
    typed = sys.stdin.isatty() and sys.stdout.isatty()
    asked = 0
    while True:
        if typed:
            say(PROMPT)
        line = sys.stdin.readline()
        if not line.strip():
            break
        asked += 1
        yield line.strip()
    if typed:
        say("\n")
    elif not asked:
        raise UsageError('ask something, as: flatline ask ./outputs/8308 "which rank was first?"')


def _show(session: Session, reasoning: Reasoning, teller: Teller, *, first: bool) -> None:
    from flatline.render import text

    teller.clear()
    shown = text.reasoned if first else text.said_beside
    say(shown(session.bench.verdict, reasoning, look_of(sys.stdout)))
    for name, path in session.bench.pages.spilled.items():
        complain(f"flatline: the whole of answer {name} is in {path}")
    session.bench.pages.spilled.clear()


def _replay(session: Session, path: Path, teller: Teller) -> int:
    differs: list[str] = []
    for at, again in enumerate(session.replayed(path)):
        _show(session, again.reasoning, teller, first=not at)
        differs += [f"question {at + 1}: {what}" for what in again.differs]
    if differs:
        complain(f"flatline: not as it was recorded: {neutral('; '.join(differs))}")
        return UNDETERMINED
    complain("flatline: the same as it was recorded")
    return STATUS[session.bench.verdict.state]
