"""
What a line passes on and does not say: samples and prompts, chats, commands of a shell's trace.

A program that trains a language model prints text, and the text may be about errors.  The forms
are those of published sets and templates: Alpaca (`instruction`, `input`, `### Response:`), OpenAI
(`role`, `content`), ShareGPT (`from`, `value`), ChatML (`<|im_start|>`), Llama (`[INST]`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile

AROUND_LINES = 24
"""How far above a line its turn may have begun, and below it end."""
_NAMES = (
    r"prompts?|queries|query|questions?|instructions?|input_texts?|completions?|generations?"
    r"|(?:generated|decoded|sampled)(?:[ _](?:text|output|sample|answer)s?)?|samples?|examples?"
    r"|contents?|texts?|chosen|rejected|answers?|responses?|user|human|assistant|dialogues?"
)
_ROW = re.compile(rf"""["'](?:{_NAMES}|input|value)["']: *\[?["']""", re.IGNORECASE)
"""A field of a row that holds text."""
_LABEL = re.compile(
    rf"(?:^|[\]:|>] )(?:[a-z]{{1,12}} ){{0,2}}(?:{_NAMES})(?: ?#?\d{{1,9}}| ?\[\d{{1,9}}\])?"
    r" ?(?:[:>|]|->|=>) ?",
    re.IGNORECASE,
)
"""What a program prints before a text: `Question: ...`, `sample 3 | prompt: "..."`."""
_FAILED = re.compile(r"\b(?:error|fail\w*|exception|cannot|could not|unable)\b", re.IGNORECASE)
"""`Error processing sample 3: ...` is about the sample, and no text of it."""
_TOKEN = re.compile(
    r"\[/?INST\]|<\|(?:im_start|im_end|user|assistant|system|endoftext|end|eot_id)\|>"
    r"|<(?:start|end)_of_turn>|</?s>(?:\s|$)|^### (?:Instruction|Input|Question|Response|Human)"
)
_LOGGED = re.compile(
    r"\"(?:level|level_?name|severity|lvl|log_?level)\":|(?:Error|Exception|Exit|Warning)\([\"'\d]",
    re.IGNORECASE,
)
"""What a logger writes beside its message, and no sample holds; an exception as Python
shows it."""
_TRACE = re.compile(r"(?:\+{1,4}|#) (?!\s)")
"""What bash puts before a command (`set -x`), and a comment."""
_LITERAL = re.compile(r"\b\w{1,60} ?(?:=|:) ?[\[({] ?(?:[\"'][^\"']{0,200}[\"'], ?)*[\"'][^\"']*$")
"""A list of strings that a name is given."""
_CONDITION = re.compile(r"^\s*(?:if|elif|while|grep|egrep|awk|sed|case)\b.{0,80}[\"'/][^\"'/]*$")
_TURN = re.compile(
    r"^\s*(?:### (?:Instruction|Input|Prompt|Question|Human|Response)\b|\[INST\]"
    r"|<\|(?:im_start|start_header_id)\|>|<\|(?:user|assistant|system)\|>|<start_of_turn>"
    rf"|\W{{0,12}}(?:generated|decoded|sampled|prompt|completion)\b[^:]{{0,40}}[=:*-]{{2,}}\s*$"
    rf"|(?:{_NAMES}) ?[:=] ?\"\"\"$)",
    re.IGNORECASE,
)
_END = re.compile(
    r"<\|(?:im_end|end|endoftext|eot_id)\|>|\[/INST\]|<end_of_turn>|</s>|^\"\"\"|^[=*-]{8,}$"
)
_RECORD = re.compile(r"^\W{0,2}\d{4}-\d\d-\d\d[ T]\d\d:|\bstep[ =:]{0,3}\d|\d+/\d+ \[")
"""A line that a logger dated or a program counted."""


def passed_on(text: str, start: int) -> bool:
    """Whether what begins at `start` of a line, its labels removed, is text that it passes on."""
    start += len(text[start:]) - len(text[start:].lstrip("\"'`"))
    before = text[:start]
    if _TRACE.match(text) and start > 0:
        return True
    if _LOGGED.search(text):
        return False
    if _ROW.search(before) or _LITERAL.search(before) or _CONDITION.search(before):
        return True
    if _TOKEN.search(text):
        return True
    label = None if _FAILED.search(before) else _LABEL.search(before)
    return label is not None and (label.end() < start or before[label.end() :] == "")


def within_a_turn(above: Iterable[str], below: Iterable[str]) -> bool:
    """Whether a line between others, the nearest first, stands in a chat's turn. Its end has to be
    seen: a run may end while it prints one."""
    for text in above:
        if _TURN.search(text):
            return any(_END.search(end) or _TURN.search(end) for end in _undated(below))
        if _END.search(text) or _RECORD.search(text):
            return False
    return False


def _undated(lines: Iterable[str]) -> Iterator[str]:
    return takewhile(lambda text: _RECORD.search(text) is None, lines)
