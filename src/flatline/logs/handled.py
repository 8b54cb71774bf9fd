"""What a line says of an error: that the program took care of it and goes on."""

from __future__ import annotations

import re
from functools import cache

_TRIES_AGAIN = (
    r"re-?try(?:ing)? (?:in|after|with|without|once|on)\b|re-?trying\b|(?:will|to) (?:be )?re-?tr"
    r"(?:y|ied)\b(?! limit)|(?:trying|try) again (?:in|with|after|on)\b"
    r"|(?:next|another|new) attempt\b|attempting to recover"
)
_DOES_WITHOUT = (
    r"fall(?:s|ing|en)?[- ]?back\b|fell back|fallback(?:s|ing)?\b|skip(?:ped|ping)\b"
    r"|ignor(?:ed|ing)\b(?! in: )|swallow(?:ed|ing)\b|suppress(?:ed|ing)\b|tolerat(?:ed|ing)\b"
    r"|caught and \w+|handled\b|non-?fatal\b|not fatal\b|harmless\b|best[- ]effort"
    r"|(?:goes|going|carries|carrying|moving|moves) on\b|continu(?:es|ing)\b|proceeding\b"
    r"|detected uneven workload distribution\b"
    r"|(?:using|uses) \S+ instead\b|default(?:s|ing) to\b|revert(?:s|ed|ing)? to\b|recovered\b"
)
"""WeNet's workers join at the end of an epoch once one has no more batches, by a barrier that
times out."""
_OTHERWISE = r"[,;] ?(?:so )?(?:now )?(?:using|uses|(?:will|now) use) \w"
"""A bare `use` tells its reader to."""
_HANDLED = re.compile(
    rf"(?:^|[^\w'-])(?:{_TRIES_AGAIN}|{_DOES_WITHOUT})|{_OTHERWISE}", re.IGNORECASE
)
_TRIES = r"(?:retries|attempts|tries)"
_IN_VAIN = (
    rf"\b(?:gave up|giv(?:e|es|ing) up|{_TRIES} (?:are )?(?:exhausted|exceeded|used up)"
    rf"|(?:exhausted|exceeded|out of|no more|too many) (?:\w+ )?{_TRIES}|last attempt"
    rf"|after (?:all |\d+ )(?:\w+ )?{_TRIES}|fallback (?:\w+ )?(?:also |too )?failed)\b"
)
_FAILED = re.compile(
    r"\b(?:fail\w*|errors?|exceptions?|could not|cannot|can't|unable)\b", re.IGNORECASE
)
_GAVE_UP = re.compile(_IN_VAIN, re.IGNORECASE)
_NOT = re.compile(
    rf"{_IN_VAIN}|\b(?:abort(?:s|ed|ing)?|exit(?:s|ed|ing)?|fatal error|terminat(?:e|es|ed|ing)"
    r"|(?:not|n't|cannot|never|without|no|unable to|failed to|than|instead of) (?:be )?"
    r"(?:retry\w*|retried|continu\w+|recover\w*|fall(?:ing)? ?back|skip\w*|ignor\w*|handled"
    r"|proceed\w*)|un-?handled|please (?:\w+ ){0,6}(?:re-?try|try again)|and try again)\b",
    re.IGNORECASE,
)
"""Where one of these stands beside, the program did not go on."""


def handled(text: str) -> bool:
    """Whether a line says that what failed was tried again, done without or done otherwise."""
    return _HANDLED.search(text) is not None and _NOT.search(text) is None


def failed(text: str) -> bool:
    """Whether a line speaks of a failure."""
    return _FAILED.search(text) is not None


def gave_up(text: str) -> bool:
    """Whether a line says that what was tried again failed for good."""
    return _GAVE_UP.search(text) is not None


@cache
def says_so_itself(samples: tuple[str, ...]) -> bool:
    """Whether what a line is known by speaks so as well: those are a library's own words, and what
    they are worth is known."""
    return any(map(_HANDLED.search, samples))
