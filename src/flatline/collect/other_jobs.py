"""Logs that are named after another job than the one that was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from flatline.collect.files import Found
from flatline.collect.of_job import said_by
from flatline.facts import LOG
from flatline.model import Gap
from flatline.signals import JOB_ASKED

_NUMBER = re.compile(
    r"(?i)(?:^|[._-])(?:slurm|job|jobid)[._-]?(?P<said>\d{4,12})(?![0-9a-z])"
    r"|(?:^|[._-])(?P<last>\d{4,12})(?:[._]\d{1,6})?\.(?:out|err|log|txt)$"
    r"|\.[oe](?P<pbs>\d{4,12})$"
)
"""Of a job, in names that Slurm, LSF and PBS give to what a job prints."""
_DATE = re.compile(r"(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:[0-3]\d)(?:\d{4})?$")


def named_otherwise(found: Sequence[Found], asked: str | None) -> list[Gap]:
    """A gap for each log whose name bears a number like the asked one's and another, where no
    log is named after that one, or says that it is of it."""
    logs = [file for file in found if file.kind == LOG]
    if asked is None or not asked.isdigit() or any(asked in file.source for file in found):
        return []
    named = [(file, number) for file in logs for number in _numbers(file.source, len(asked))]
    if not named or any(asked in said_by(file) for file in logs):
        return []
    return [
        Gap(JOB_ASKED, f"its name bears {number}, and nothing that was read names {asked}",
            file.source)
        for file, number in named
    ]  # fmt: skip


def _numbers(source: str, digits: int) -> Iterator[str]:
    told: Iterable[re.Match[str]] = _NUMBER.finditer(PurePosixPath(source).name)
    for found in told:
        number = next(filter(None, found.groups()))
        if len(number) == digits and not _DATE.fullmatch(number):
            yield number
