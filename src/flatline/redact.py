"""
Secrets are masked at the door: before a line is shown, stored or compared.

`mask` keeps the line count and the shape of the text; it is idempotent, so that `verify` can mask
what it re-reads and compare.  The shapes are those the issuing services document; a value after a
name such as `password=` or `*_TOKEN=` is masked whatever its shape.
"""

from __future__ import annotations

import re

MASK = "[masked]"
_SHAPES = re.compile(
    r"hf_[A-Za-z0-9]{16,}"  # Hugging Face user access tokens
    r"|sk-(?:ant-|proj-)?[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"  # GitHub
    r"|glpat-[A-Za-z0-9_-]{16,}"  # GitLab
    r"|xox[abprs]-[A-Za-z0-9-]{10,}"  # Slack
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"  # AWS access key ids
    r"|AIza[A-Za-z0-9_-]{30,}"  # Google API keys
    r"|ya29\.[A-Za-z0-9_-]{20,}"  # Google OAuth
    r"|nvapi-[A-Za-z0-9_-]{20,}"  # NVIDIA
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"  # JSON Web Tokens
)
_NAMED = re.compile(
    r"(?i)\b((?:[A-Z0-9_-]{0,40}(?:password|passwd|secret|api[_-]?key|access[_-]?key|"
    r"auth[_-]?token|access[_-]?token|_token|private[_-]?key)|wandb[_-]?key))"
    r"(['\"]?\s{0,2}[=:]\s{0,2}['\"]?)([^\s'\",;&\]}]{4,200})"
)
_BEARER = re.compile(r"(?i)\b((?:bearer|basic)\s)([A-Za-z0-9+/=._~-]{12,400})")
_URL = re.compile(r"(://[^\s/:@]{1,100}:)([^\s/@]{1,200})(@)")
_HINTS = re.compile(
    r"(?i)hf_|sk-|gh[pousr]_|github_pat|glpat|xox|AKIA|ASIA|AIza|ya29|nvapi|eyJ|passw|secret|"
    r"key|token|bearer|basic |://"
)


def mask(text: str) -> str:
    """The text with secrets replaced. Twice is the same as once."""
    if not _HINTS.search(text):
        return text
    text = _SHAPES.sub(MASK, text)
    text = _NAMED.sub(lambda m: m[1] + m[2] + MASK if m[3] != MASK else m[0], text)
    text = _BEARER.sub(lambda m: m[1] + MASK, text)
    return _URL.sub(lambda m: m[1] + MASK + m[3], text)
