"""
What can go wrong, by who can act on it.

FlatlineError
  x UsageError           the caller can fix the call: exit status 2
    - ManyJobs           the target holds several jobs and none was named
  x SourceError          a source could not answer; `collect` turns it into a gap
    - SourceUnreachable
    - SourceRefused
    - QueryRejected      a query of ours was wrong, or not supported
    - QueryTimedOut      it was given up at the time it was allowed
  x FormatError          a file is not what its parser reads; a gap for that file
  x CatalogueError       a family, signature or vocabulary of the installation is broken
"""

from __future__ import annotations


class FlatlineError(Exception):
    """Anything Flatline raises on purpose. The message says what to do next."""


class UsageError(FlatlineError):
    """The call was wrong."""


class ManyJobs(UsageError):
    """The target holds several jobs; `jobs` lists (id, name, state)."""

    def __init__(self, jobs: tuple[tuple[str, str, str], ...]) -> None:
        self.jobs = jobs
        listed = ", ".join(job_id for job_id, _, _ in jobs[:12])
        more = f" and {len(jobs) - 12} more" if len(jobs) > 12 else ""
        super().__init__(
            f"the target holds records of {len(jobs)} jobs ({listed}{more}); "
            "name one with --job ID"
        )


class SourceError(FlatlineError):
    """A source could not answer."""


class SourceUnreachable(SourceError):
    """It is not there, or not now."""


class SourceRefused(SourceError):
    """It is there and refuses: permissions, credentials."""


class QueryRejected(SourceError):
    """A query was wrong, or asks for something not supported; never answered differently."""


class QueryTimedOut(SourceError):
    """A query was given up: it took longer than it was allowed."""


class FormatError(FlatlineError):
    """A file is not what its parser reads."""


class CatalogueError(FlatlineError):
    """The installation itself is broken."""
