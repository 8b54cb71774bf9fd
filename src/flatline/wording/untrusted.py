"""Text out of a run is untrusted: what could steer a terminal, hide or reorder is spelled out."""

from __future__ import annotations

import re

# C0 and C1 controls; zero-width, joining and direction marks (Unicode TR36, section 3); line and
# paragraph separators; interlinear annotation; variation-like tags; surrogates UTF-8 cannot carry.
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code == 0x09:
        return "    "
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def neutral(text: str) -> str:
    """The text with every character that steers rather than shows spelled out; one line."""
    return _STEERING.sub(_visible, text)


# Words by which a chat template, a tool protocol or our own quotation tells who speaks, and fences
# of code: a language model may take them for the end of what is quoted.
_SPEAKER = re.compile(
    r"<(?=[/|!]|<SYS|(?:system|user|human|assistant|developer|tool|function|instruction|result|"
    r"document|thinking|antml|invoke|run-text|s>|bos|eos|start_of|end_of)[\w:-]{0,40})"
    r"|\[(?=/?INST\])",
    re.IGNORECASE,
)


def defanged(text: str) -> str:
    """One line that a language model can be shown: `neutral`, and nothing in it opens or closes a
    turn, a tag or a fence."""
    return _SPEAKER.sub("‹", neutral(text).replace("```", "'''"))


def sentence(text: str) -> str:
    """Prose on one line: runs of white space are one space, the rest is `neutral`."""
    return neutral(" ".join(text.split()))


def wrapped(text: str, source: str, more: str, most: int = 4_000) -> str:
    """
    A text of the run as a language model may be given it, many lines too.

    It stands between `<run-text>` tags that nothing in it can close, each line behind `| ` and
    `defanged`.  What is beyond `most` characters is left out and said so, with `more` as the way
    to it.
    """
    raise NotImplementedError
