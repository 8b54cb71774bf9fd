"""
What a log shows of other files: the output of `cat`, `tail`, `grep` and `git log`, quoted lines,
what `pip` prints of the builds it starts, an earlier run's last lines, a verdict.

A script that traces itself (`set -x`) names the file; bash writes such a line before each command
(Bash manual, "The Set Builtin"), so the next one ends what was shown.  What was shown is doubted
alone, and never dropped: other processes write into the same log meanwhile.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from flatline.logs.literals import DOUBTED, SAID

BACK_LINES = 100
"""How far above a line the command may stand that showed it."""
_TRACE = re.compile(r"(?:\+{1,4}|\$) (?=\S)")
_SHOWS = re.compile(
    r"(?:sudo |srun |time )?(?P<tool>cat|bat|head|tail|less|more|tac|nl|sed|grep|egrep|zgrep"
    r"|zcat|rg|git (?:-C \S+ |--no-pager )?(?:log|diff|show|blame)|flatline|diff|printenv|env"
    r"|declare|set|dmesg|journalctl)"
    r"\b(?P<args>.*)"
)
_ALONE = ("git", "flatline", "dmesg", "journalctl")
"""What shows something without a file; the rest are filters then, of a program's output."""
_SETTINGS = ("env", "printenv", "declare", "set")
"""What shows settings where it is asked for nothing else: `env A=1 python ...` runs a program."""
_RUNS = re.compile(
    r"\+{1,4} (?:\S*/)?(?:python|srun|mpirun|torchrun|accelerate|deepspeed|bash|sh|singularity"
    r"|apptainer|docker|env|numactl|time)\S* "
)
_COUNT = re.compile(r"(?:^| )-(?:n ?)?(\d{1,6})\b|--lines=(\d{1,6})\b")
_DEFAULT = 10
"""Lines that head and tail print where no count is asked for (GNU coreutils manual)."""
RECORD = re.compile(
    r"^\W{0,2}\d{4}-\d\d-\d\d[ T]\d\d:|\bstep[ =:]{0,3}\d|(?<!\d)\d{1,12}/\d{1,12} \["
)
"""A line that a logger dated or a program counted."""
_EARLIER = re.compile(
    r"\b(?:previous|earlier|prior|old|last|failed) (?:run|job|attempt|try|log|execution)\b"
    r"(?!.{0,80}\b(?:resum|restor|load|continu|checkpoint))",
    re.IGNORECASE,
)
_OPENS = re.compile(r":\s*$|[-=*#]{3,}\s*$|<==$")
_VERDICT = re.compile(r"^[✗✓?] (?:FAULT|HEALTHY|UNDETERMINED)\b")
_COMMIT = re.compile(r"^diff --git |^Author: .{1,200}<\S{1,200}>$")
_SCRIPT = re.compile(r"^#!/\S|^#(?:SBATCH|PBS|BSUB|\$) ")
_PRINTED = re.compile(
    r"(?:FATAL|ERROR|INFO|WARNING|srun|slurmstepd|sbatch|mpirun|[\w/.-]{0,80}python3?): {1,4}\S"
)
"""What no line of a shell begins with."""
_USAGE = re.compile(r"^usage: \S")
_FENCE = re.compile(r"^\s{0,3}(?:```|~~~)")
_BUILD = re.compile(
    r"\[\d{1,6} lines of output\]$|^\s+ERROR: Command errored out with exit status"
)
_BUILT = re.compile(r"\[end of output\]|^\s+-{30,}$")
_GREPPED = re.compile(r"(?P<file>[\w./@-]{1,200}\.(?:out|err|log|txt)(?:\.\d+)?)[:-]\d{1,9}[:-]")
_QUOTED = re.compile(r"(?:>|\*{1,3}) ")
MAY_SHOW = re.compile(
    rb"(?:^|[:\]>] )(?:\+{1,4}|\$) \S|(?:[Pp]revious|[Ee]arlier|[Pp]rior|[Oo]ld|[Ll]ast|[Ff]ailed"
    rb"|PREVIOUS|LAST|FAILED) (?:[Rr]un|[Jj]ob|[Aa]t{2}empt|[Tt]ry|[Ll]og|[Ee]xec|RUN|JOB|ATTEMPT)"
    rb"|\xe2\x9c[\x93\x97] |\? UNDETERMINED|diff --git|Author: |#!/|#SBATCH|#PBS|#BSUB"
    rb"|```|~~~|usage: |lines of output\]|Command errored"
)
"""In every line by which something is shown."""
_FIXED = (
    b"ious ", b"lier ", b"rior ", b"ld ", b"ast ", b"iled ", b"IOUS ", b"AST ", b"ILED ",
    b"diff --git", b"Author: ", b"usage: ", b"lines of output]", b"Command errored",
)  # fmt: skip
_WITH = {
    b"+": (b"+ ",), b"$": (b"$ ",), b"#": (b"#!/", b"#SBATCH", b"#PBS", b"#BSUB"), b"`": (b"```",),
    b"~": (b"~~~",), b"?": (b"? UNDETERMINED",), b"\xe2": (b"\xe2\x9c",),
}  # fmt: skip
"""One of these stands in each of them, and is found in a tenth of the time; a byte that few lines
hold in a tenth of that."""


def showing(lines: Sequence[bytes]) -> list[int]:
    """Which of these lines may be such."""
    whole = b"\n".join(lines)
    there = [text for text in _FIXED if text in whole]
    there += [text for byte, of in _WITH.items() if byte in whole for text in of if text in whole]
    if not there:
        return []
    return [
        n
        for n, raw in enumerate(lines)
        if any(text in raw for text in there) and MAY_SHOW.search(raw)
    ]


def shown(
    text: str, start: int, above: Sequence[str], below: Sequence[str], behind: Sequence[str]
) -> float:
    """What is left of what begins at `start` of a line that stands between others, the nearest
    first, by whether it is a line of something that was shown by one `behind`."""
    left = _marked(text, start, above, below)
    return left if left < SAID or not behind else _of_what_stands_above(text, behind, below)


def _marked(text: str, start: int, above: Sequence[str], below: Sequence[str]) -> float:
    """Of a line that is marked itself, by the file it was found in or as mail marks what it
    answers to, where its neighbours are not: a log may be kept so."""
    if _VERDICT.match(text):
        return DOUBTED
    for mark in (_GREPPED, _QUOTED):
        found = mark.match(text)
        if found is not None and 0 < found.end() <= start:
            near = [*above, *below]
            if 2 * sum(mark.match(one) is not None for one in near) < len(near):
                return DOUBTED
    return SAID


def _of_what_stands_above(text: str, above: Sequence[str], below: Sequence[str]) -> float:
    left, dated = SAID, False
    for at, one in enumerate(above):
        if command := _TRACE.match(one):
            if _within_a_string(one, above[:at]):
                return DOUBTED
            if one[0] == "$" and not any(map(_TRACE.match, below)):
                return left  # a person's terminal: the log begins there
            if at + 1 < len(above) and _RUNS.match(above[at + 1]):
                return left  # both of one pipe: bash traces them as they start
            return min(left, _by_command(one[command.end() :], at, dated, below))
        for opens, of in () if dated else _BLOCKS:
            if opens.search(one):
                left = min(left, of(text, one, at, below))
        dated = dated or RECORD.search(one) is not None
    return left


def _within_a_string(command: str, between: Sequence[str]) -> bool:
    """Whether a string of a command that was traced goes on over the lines below it."""
    return _quotes(command) % 2 == 1 and not any(_quotes(one) % 2 for one in between)


def _by_command(command: str, at: int, dated: bool, below: Sequence[str]) -> float:
    """Of a line `at` lines below a command that a script traced."""
    shows = _SHOWS.match(command)
    if shows is None:
        return SAID
    tool, args = shows["tool"], _args(shows["args"])
    files = [one for one in args if not (one.startswith("-") or one.isdecimal())]
    files = files[1:] if "grep" in tool or tool in ("rg", "sed") else files
    alone = tool.startswith(_ALONE)
    if (bool(args) if tool in _SETTINGS else not (files or alone)) or ">" in shows["args"]:
        return SAID
    ended = any(map(_TRACE.match, below))
    if tool in ("head", "tail"):
        asked = _COUNT.search(shows["args"])
        if at >= (int(asked[1] or asked[2]) if asked else _DEFAULT) or {"-f", "-F"} & set(args):
            return SAID
    elif dated and not ended:
        return SAID
    return DOUBTED


def _args(args: str) -> list[str]:
    try:
        return shlex.split(args.split(" | ")[0])
    except ValueError:
        return args.split()


def _earlier(text: str, one: str, at: int, below: Sequence[str]) -> float:
    return DOUBTED if _OPENS.search(one) and at < _LINES else SAID


def _judged(text: str, one: str, at: int, below: Sequence[str]) -> float:
    """A verdict's evidence is indented."""
    return DOUBTED if text.startswith("  ") else SAID


def _committed(text: str, one: str, at: int, below: Sequence[str]) -> float:
    """A message of a commit is indented, a line of a change marked."""
    return DOUBTED if text[:1] in (" ", "+", "-", "@") and at < _LINES else SAID


def _scripted(text: str, one: str, at: int, below: Sequence[str]) -> float:
    return DOUBTED if at < _LINES and _PRINTED.match(text) is None else SAID


def _fenced(text: str, one: str, at: int, below: Sequence[str]) -> float:
    return DOUBTED if any(map(_FENCE.match, _undated(below))) and at < _LINES else SAID


def _helped(text: str, one: str, at: int, below: Sequence[str]) -> float:
    """What options are for is indented, and why they were refused is not."""
    return DOUBTED if text.startswith("  ") else SAID


def _built(text: str, one: str, at: int, below: Sequence[str]) -> float:
    """What a build printed that pip started: pip may do without it, or try another way."""
    return DOUBTED if any(map(_BUILT.search, below)) else SAID


def _quotes(text: str) -> int:
    return text.replace("'\\''", "").count("'")


_LINES = 24
_BLOCKS = (
    (_EARLIER, _earlier),
    (_VERDICT, _judged),
    (_COMMIT, _committed),
    (_SCRIPT, _scripted),
    (_FENCE, _fenced),
    (_USAGE, _helped),
    (_BUILD, _built),
)


def _undated(lines: Iterable[str]) -> list[str]:
    got = []
    for one in lines:
        if RECORD.search(one):
            break
        got.append(one)
    return got
