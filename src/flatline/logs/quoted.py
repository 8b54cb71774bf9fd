"""
What a line passes on and does not say: samples and prompts, chats, commands of a shell's trace.

A program that trains a language model prints text, and the text may be about errors.  The forms
are those of published sets and templates: Alpaca (`instruction`, `input`, `### Response:`), OpenAI
(`role`, `content`), ShareGPT (`from`, `value`), ChatML (`<|im_start|>`), Llama (`[INST]`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from flatline.logs.labels import Bared
from flatline.logs.literals import DOUBTED, LOGGED, PASSED_ON, SAID, literal
from flatline.logs.selftests import ENDED, may_begin, within_a_test
from flatline.logs.shown import RECORD, shown

AROUND_LINES = 24
"""How far above a line its turn may have begun, and below it end."""
_NAMES = (
    r"prompts?|queries|query|questions?|instructions?|input_texts?|completions?|generations?"
    r"|(?:generated|decoded|sampled)(?:[ _](?:text|output|sample|answer)s?)?|samples?|examples?"
    r"|contents?|texts?|chosen|rejected|answers?|responses?|user|human|assistant|dialogues?"
)
_ROW = re.compile(rf"""["'](?:{_NAMES}|input|value)["'](?::|\] ?[:=]) *\[?["']""", re.IGNORECASE)
"""A field of a row that holds text."""
_KINDS = (
    r"(?:the|an?|my|new|raw|full|first|next|last|best|worst|random|current|original|final|system"
    r"|inputs?|outputs?|source|target|gold|reference|expected|predicted|generated|decoded|sampled"
    r"|model|user|assistant|train|training|eval|evaluation|validation|test|few-shot)"
)
_LABEL = re.compile(
    rf"(?:^|[\]:|>] )(?:{_KINDS} ){{0,2}}(?:{_NAMES})(?P<number> ?#?\d{{1,9}}| ?\[\d{{1,9}}\])?"
    r" ?(?:[:>|]|->|=>) ?",
    re.IGNORECASE,
)
"""What a program prints before a text: `Question: ...`, `sample 3 | prompt: "..."`; what it does
to a sample (`skipped sample 3: ...`) and a server's response (`response: 503`) are none."""
_SPEAKER = re.compile(r"\W{0,2}(user|human|assistant|system|bot|gpt)\W{0,2} ?: ?", re.IGNORECASE)
_REMARK = re.compile(r"#|\s*$")
_DELIMITS = " :|>]\"'`"
"""A pattern may begin with what stands before its words."""
_PREAMBLE = re.compile(
    r"[\W\d]*(?:(?:ERROR|FATAL|CRITICAL|WARN(?:ING)?|INFO)\b[\W\d]*)?(?:[\w.]{1,120}: )*"
)
"""What a logger or an interpreter writes before a message, and a person hardly."""
_STATUS = re.compile(r"(?:HTTP \S{1,12} ?)?[45]\d\d\b")
_FAILED = re.compile(r"\b(?:error|fail\w*|exception|cannot|could not|unable)\b", re.IGNORECASE)
"""`Error processing sample 3: ...` is about the sample, and no text of it."""
_TOKEN = re.compile(
    r"\[/?INST\]|<\|(?:im_start|im_end|user|assistant|system|endoftext|end|eot_id|start_header_id"
    r"|begin_of_text)\|>|<bos>"
    r"|<(?:start|end)_of_turn>|</?s>(?:\s|$)|^### (?:Instruction|Input|Question|Response|Human)"
)
_RAISED = re.compile(r"[\w.]{1,120}(?:Error|Exception)\b")
_TRACE = re.compile(r"(?:\+{1,4}|#) (?!\s)")
"""What bash puts before a command (`set -x`), and a comment."""
_LITERAL = re.compile(r"\b\w{1,60} ?(?:=|:) ?[\[({] ?(?:[\"'][^\"']{0,200}[\"'], ?)*[\"'][^\"']*$")
"""A list of strings that a name is given."""
_CONDITION = re.compile(r"\s*(?:if|elif|while|grep|egrep|awk|sed|case)\b.{0,80}[\"'/][^\"'/]*$")
_TURN = re.compile(
    r"^\s*(?:<\|begin_of_text\|>|<bos>|<s>|\[INPUT\])?\s*"
    r"(?:### (?:Instruction|Input|Prompt|Question|Human|Response)\b|\[INST\]"
    r"|<\|(?:im_start|start_header_id)\|>|<\|(?:user|assistant|system)\|>|<start_of_turn>"
    rf"|(?:{_NAMES}) ?[:=] ?\"\"\"$)",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"^\s*\W{0,12}(?:generat(?:ed|ions?)|decoded|sampled|prompt|completion)\b[^:]{0,40}?"
    r"([=:*-])\1{1,99}\s*$",
    re.IGNORECASE,
)
_END = re.compile(r"<\|(?:im_end|end|endoftext|eot_id)\|>|\[/INST\]|<end_of_turn>|</s>|^\"\"\"")
_PART = re.compile(
    rf"^(?:(?P<name>{_NAMES}|inputs|labels?|label_ids|rewards?|expected|extracted|prediction|target"
    r"|ground[_ ]truth|gold|score)(?: ?#?\d{1,9})? ?:(?: |$)"
    r"|\[(?P<tag>prompt|response|ground_truth|score|input|input_ids|labels|labels_ids)\])",
    re.IGNORECASE,
)
"""A part of a sample, as LLaMA-Factory, ms-swift and verl print them and programs by hand."""
_RULE = re.compile(r"^([=*-])\1{7,}$")
_LAUNCHER = re.compile(r"\bFAILED$|^(?:Primary job|mpirun|MPI_ABORT|srun|prterun|orterun)\b")
"""What a launcher writes of a death below a rule of its own."""


def left_of(text: str, start: int, above: Bared, below: Bared, behind: Bared) -> float:
    """
    What is left of what begins at `start` of a line that stands between others, the nearest first:
    where fewer follow than could, the log ends with them.  `behind` reaches as far up as a command
    may stand that shows a file, and is empty where none does.

    A log does not end with a comment on an error that its run did not meet, a chat does not have
    one turn alone, and a program whose test has passed does not fail right then; but what stands
    so need not be the run's own word.
    """
    if passed_on(text, start):
        end = len(below) < AROUND_LINES
        if end and text.startswith("# ") and all(map(_REMARK.match, below)):
            return DOUBTED
        return _of_a_turn(text, start, above, below)
    tested = may_begin(above.raw) and within_a_test(above, below)
    if within_a_turn(above, below) or tested:
        return DOUBTED if tested and any(map(ENDED.search, below)) else PASSED_ON
    start += len(text[start:]) - len(text[start:].lstrip(_DELIMITS))
    left = min(literal(text, start, above), shown(text, start, above, below, behind))
    return min(left, DOUBTED) if left and between_parts(above, below) else left


def _of_a_turn(text: str, start: int, above: Sequence[str], below: Sequence[str]) -> float:
    """Of a line whose label names a speaker: what a logger's line may begin with as well."""
    label = _SPEAKER.match(text)
    if label is None or not _PREAMBLE.fullmatch(text, label.end(), max(start, label.end())):
        return PASSED_ON
    near = [turn[1].lower() for one in (*above, *below) if (turn := _SPEAKER.match(one))]
    if any(who != label[1].lower() for who in near):
        return PASSED_ON
    return SAID if near else DOUBTED


def passed_on(text: str, start: int) -> bool:
    """Whether what begins at `start` of a line, its labels removed, is text that it passes on."""
    start += len(text[start:]) - len(text[start:].lstrip(_DELIMITS))
    before = text[:start]
    if _TRACE.match(text) and start > 0:
        return True
    quotes = '"' in text or "'" in text
    if (quotes or "(" in text) and LOGGED.search(text):
        return False
    if quotes and (_ROW.search(before) or _LITERAL.search(before)):
        return True
    if _CONDITION.match(before):
        return True
    marked = "<" in text or "INST]" in text or text.startswith("### ")
    if marked and (_TOKEN.search(before) or (not _RAISED.match(text) and _TOKEN.search(text))):
        return True
    named = ":" in before or ">" in before or "|" in before
    label = _LABEL.search(before) if named and _FAILED.search(before) is None else None
    if label is None:
        return False
    raised = label["number"] and _RAISED.match(text, label.end())
    return not (raised or _STATUS.match(text, label.end()))


def within_a_turn(above: Iterable[str], below: Iterable[str]) -> bool:
    """Whether a line between others, the nearest first, stands in a chat's turn, or under the
    heading of a text. The end has to be seen, by a mark of the same kind: a run may end while it
    prints one, and launchers draw rules as well."""
    for text in above:
        if _TURN.search(text):
            return any(_END.search(end) or _TURN.search(end) for end in _undated(below))
        if heading := _HEADING.search(text):
            return _ruled_off(heading[1], [*_undated(below)])
        if _END.search(text) or _RULE.search(text) or RECORD.search(text):
            return False
    return False


def between_parts(above: Iterable[str], below: Iterable[str]) -> bool:
    """Whether a line stands between two parts of a sample, by lines that name them."""
    for text in above:
        if RECORD.search(text) or _RULE.search(text):
            return False
        if part := _PART.match(text):
            names = {(found["name"] or found["tag"]).lower() for one in _undated(below)
                     if (found := _PART.match(one))}  # fmt: skip
            return bool(names - {(part["name"] or part["tag"]).lower()})
    return False


def _ruled_off(drawn: str, below: Sequence[str]) -> bool:
    """Whether a heading follows, or a rule drawn as this one is that is no launcher's."""
    for text, after in zip(below, (*below[1:], ""), strict=False):
        if _HEADING.search(text):
            return True
        if rule := _RULE.search(text):
            return rule[1] == drawn and _LAUNCHER.search(after) is None
    return False


def _undated(lines: Iterable[str]) -> Iterator[str]:
    return takewhile(lambda text: RECORD.search(text) is None, lines)
