"""The lines tracebacks are made of, and those that cannot belong to one."""

from __future__ import annotations

import re

HEAD = "Traceback (most recent call last)"
FRAME = re.compile(r'^ {0,8}File "(.{1,1000}?)", line (\d{1,9})(?:, in(?: (.{1,400})?)?)?$')
"""What stood in angle brackets is lost where a page was pasted as HTML."""
FLUSH = re.compile(FRAME.pattern.replace(" {0,8}", ""))
"""Without its indentation, which a page or a mail takes off; its code stands so too."""
IPYTHON_FRAME = re.compile(
    r"^ {0,4}File (?P<file>[^\s\"<].{0,400}?):(?P<line>\d{1,9}),? in (?P<name>[^(]{1,200})"
)
"""As IPython 8 and Spyder print it under the usual head."""
CODE = re.compile(r"^(?: {4}|\t)")
MARKS = re.compile(r"^[ \t]+[\^~][\^~ ]*$")
REPEATED = re.compile(r"^ *\[Previous line repeated \d{1,9} more times?\]$")
NESTED = re.compile(
    r"^(?:Original (?:Traceback|\S{1,200}RemoteTraceback: ?$)|.{0,200}\braised:$"
    r"|-- Process \d{1,9} terminated with the following error:)"
)
"""What introduces a traceback inside a message: torch's DataLoader and `multiprocessing.spawn`."""
QUOTE = '"""'
QUOTES = re.compile(r'RemoteTraceback: ?$|^"""$')
"""How `multiprocessing`, `concurrent.futures` and loky begin to quote what a process of theirs
raised."""
TASK = re.compile(r"ray::\S.{0,200}\(pid=\d")
"""What Ray prints for the head of a traceback (`RayTaskError.__str__`)."""
_HINTS = (
    r"For debugging|Compile with|CUDA kernel errors|Search for|Device-side|Last error|If reserved"
    r"|Exception raised from|frame #\d|-- Process \d|Please |Try |Hint|Note|See |nccl\w{4,40}: "
    r"|Additional GRPC|Set the environment|You can |Consider |To (?:fix|avoid|disable|enable|see) "
)
RESUMES = re.compile(f"(?:{_HINTS})")
"""Paragraphs that torch and others put behind a blank line of the same message."""
CONTINUES = re.compile(rf"(?:[ \t:]|{_HINTS})")
"""How lines begin that go on with a message: indented, or a known hint."""
OPEN_ENDS = (":", ",", "(", "[", "{", "\\")
FREE_FORM = re.compile(r"\bvalidation errors? for |^Error\(s\) in loading")
NEW_RECORD = re.compile(
    r"^(?:\[?\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:|\[?[IWEF]\d{3,4} \d\d:|\[rank\d|\[default\d"
    r"|\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\b[:\]| ]"
    r"|(?:srun|slurmstepd|sbatch|mpirun|prterun|wandb|bash|python3?): |\++ \S"
    r"|\s{0,4}\d{1,3}%\||\S.{0,80}: {1,4}\d{1,3}%\||Exception in thread "
    r"|Exception ignored (?:in|on|while)"
    r"|terminate called|Fatal Python error|\*\*\* |:::MLLOG|Killing subprocess|Process \S+:$"
    r"|[\w./-]{1,300}\.py:\d{1,9}: \w{1,60}Warning: )"
)
NATIVE = re.compile(r"^C\+\+ (?:Traceback \(most recent call last\)|Call Stacks\b.{0,60}):$")
SUMMARY = "Error Message Summary:"
"""Paddle's own: the frames of native code below an exception, and the heading above what failed in
them, which the exception itself leaves out (paddle/phi/core/enforce.h)."""
RULE = re.compile(r"^-{8,}$")
AT_PLACE = re.compile(r"\(at \S{1,300}:\d{1,6}\)")
"""What ends such a summary."""
_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"
_EXCEPTION = re.compile(
    r"^((?:[A-Za-z_]\w{0,100}\.|<locals>\.){0,16}([A-Za-z_]\w{0,100})(?:\([\w.]{1,200}\))?)"
    r"(?::(?: (.*))?)?$",
    re.DOTALL,
)
_USUAL = re.compile(
    r"(?:Error|Exception|Warning|Exit|Interrupt|Iteration|Group|Timeout|Fault|Failure|Failed"
    r"|Aborted|Abort|Expired|NotFound|Unsupported|Denied|Refused|Rejected|Cancelled|Killed"
    r"|Missing|Stopped|Invalid\w{0,40}|Crash(?:ed)?|Disconnected|Violation)$"
)
_LOWER_CASE = frozenset(("error", "timeout", "gaierror", "herror"))
"""Exceptions of the standard library whose names are not capitalised; always printed dotted."""


_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": ""}


def written_out(text: str) -> list[str]:
    """
    The lines of a traceback that stands in one, as a string of JSON or of Python: torchelastic's
    records of errors, logs of JSON, printed bytes.  The line itself where it holds none.
    """
    start = text.find(HEAD + ":\\n")
    if start < 0:
        return [text]
    quote = text[start - 1 : start]
    inner = text[start:]
    if quote in ("'", '"') and (end := re.search(rf"(?<!\\){quote}", inner)):
        inner = inner[: end.start()]
    lines = _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), inner).split("\n")
    return lines if lines[-1] else lines[:-1]


def relation(text: str) -> str | None:
    """How the exception behind this line follows from the one before it."""
    if _CAUSE in text:
        return "cause"
    return "context" if _CONTEXT in text else None


def exception_line(text: str, sure: bool) -> tuple[str, str] | None:
    """
    (qualified type, first line of the message) where the line ends a traceback.

    `Epoch: [3]` has the shape of an exception too: a bare name that does not end like those of
    exceptions is one only where the place is `sure`.
    """
    found = _EXCEPTION.match(text)
    if found is None or NEW_RECORD.match(text):
        return None
    name, last, message = found[1], found[2], found[3] or ""
    if "." in name:
        named = last[0].isupper() or last in _LOWER_CASE or last.startswith("_")
    else:
        named = bool(_USUAL.search(last)) and last[0] != "_" and not last.islower()
        named = named or (sure and last[0].isupper() and not last.isupper())
    return (name, message) if named else None
