"""
Python tracebacks as structures: chained, grouped, nested in messages, cut off and interrupted.

Works on the cleaned lines of one stream, which `streams` picks out of a log that mixes several.
The shapes are those of CPython's `traceback` module, 3.8 to 3.14, and of what prints tracebacks
inside messages: torch's DataLoader and `multiprocessing`, Ray, process pools.  A line that another
thread printed into a traceback is passed over; the end of the text is told from the end of the
traceback.  Where several processes without labels print their tracebacks at once, line by line,
they are read as one: the frames of all, each once, and the first exception line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from flatline.logs.tracetext import (
    AT_PLACE,
    CODE,
    CONTINUES,
    FLUSH,
    FRAME,
    FREE_FORM,
    HEAD,
    IPYTHON_FRAME,
    MARKS,
    NATIVE,
    NESTED,
    NEW_RECORD,
    OPEN_ENDS,
    QUOTE,
    QUOTES,
    REPEATED,
    RESUMES,
    RULE,
    SUMMARY,
    TASK,
    exception_line,
    relation,
)
from flatline.model import Frame

__all__ = ["RawCrash", "read_exception", "read_traceback"]

MESSAGE_CHARS = 2_000
MESSAGE_LINES = 60
MOST_FRAMES = 400
MOST_CHAINED = 32
STRAY_LINES = 12
"""So many lines of other origin in a row may stand inside a traceback."""
AHEAD = 6

Chained = tuple[str, str, str]
_MARGIN = re.compile(r"^\s*(?:\| ?|\+ )")
_MEMBER = re.compile(r"^\s*\+-[+-]?-{2,} (?:\d+|\.\.\.) -{2,}$")
_CLOSED = re.compile(r"^\s*\+-{6,}$")
_IPYTHON = re.compile(r"^([A-Za-z_]\w*) {2,}Traceback \(most recent call last\)$")
_CELL = re.compile(
    r"^(?:File )?(?P<file>[^\s:][^:]{0,400}):(?P<line>\d{1,9}), in (?P<name>[^(]{1,200})"
    r"|^(?:Cell |Input )?In ?\[(?P<cell>\d{1,9})\](?:, line (?P<at>\d{1,9}))?"
    r"|^(?P<old>(?:[/~]|[A-Z]:\\|<ipython-input-)[^:]{1,400}) in"
    r" (?P<of>[\w.<>]{1,200}(?: line: \d+>)?)(?:\(|$)"
)
_DEBUGGED = re.compile(
    r"^Exception has occurred: (?=[A-Z]|[a-z_]+\.)([\w.]{1,200})(?: {2,}\(note: .*)?\s*$"
)
"""How Visual Studio Code heads what its debugger stopped at (debugpy)."""
_LINKED = re.compile(r"^\[([^\]]{1,400})\]\(https?://localhost:\d{1,5}/#\)")
"""What a frame's file becomes where it is copied out of Colab."""
_ARROW = re.compile(r"^-{1,8}> ?(?P<line>\d{1,9}) (?P<code>.*)$")
_BOXED = re.compile(r"^[│|] (?P<file>\S.{0,400}?):(?P<line>\d{1,9}) in (?P<name>\S{1,200})")


@dataclass(frozen=True, slots=True)
class RawCrash:
    """
    A traceback before it is placed; lines are physical.

    `exception_line` is the line of the exception, `end_line` the last of its message.  Without
    an exception line it is not `complete`: `exception` is empty, unless the head names it as
    IPython's does, and both are the last line read.
    `chain` holds the exceptions before it, oldest first, then the members of a group.
    """

    head_line: int
    end_line: int
    exception: str
    message: str
    frames: tuple[Frame, ...]
    chain: tuple[Chained, ...]
    complete: bool
    exception_line: int


@dataclass(slots=True)
class _Part:
    """One exception, as far as it was read."""

    frames: list[Frame] = field(default_factory=list)
    exception: str = ""
    message: str = ""
    line: int = 0
    end: int = 0
    nested: list[Chained] = field(default_factory=list)


def read_traceback(lines: Sequence[tuple[int, str]]) -> RawCrash | None:
    """The traceback that begins on the first of these lines; None where none does."""
    if not lines:
        return None
    first = lines[0][1]
    if stopped := _DEBUGGED.match(first):
        return _debugged(lines, stopped[1])
    if HEAD not in first:
        return None
    if "Exception Group Traceback" in first and _MARGIN.match(first):
        return _group(lines)
    if found := _IPYTHON.match(first.strip()):
        return _foreign(lines, _CELL, found[1])
    if first.lstrip().startswith(("╭", "+-")):
        return _foreign(lines, _BOXED, None)
    return _Walk(lines).crash()


def read_exception(lines: Sequence[tuple[int, str]]) -> RawCrash | None:
    """An exception that stands without its traceback, its line the first of these; None where
    it is none."""
    if not lines or exception_line(lines[0][1], sure=False) is None:
        return None
    return _Walk([(lines[0][0], HEAD), *lines]).crash()


class _Walk:
    """Goes over the lines once, from the head."""

    def __init__(self, lines: Sequence[tuple[int, str]]) -> None:
        self._lines = lines
        indent = lines[0][1].partition("Traceback")[0]
        self._indent = indent if not indent.strip() else ""
        self._at = 1
        self._passed = range(0)
        self._loose = False

    def crash(self) -> RawCrash:
        last = self._exception(self._lines[0][0], NATIVE.match(self._text(0)) is not None)
        chain: list[Chained] = []
        while len(chain) < MOST_CHAINED and (how := self._follows()) is not None:
            quoted = how == "cause" and any(self._text(at) == QUOTE for at in self._passed)
            outer = self._exception(self._lines[self._at - 1][0], how == "native")
            if quoted:  # what a process of a pool raised is raised again where it was asked for
                outer.frames = [*outer.frames, *last.frames][-MOST_FRAMES:]
            if how == "native":  # what failed below the last of the frames
                outer.frames, how = last.frames, "cause"
            if quoted and last.exception and not outer.exception:
                more = self._at >= len(self._lines)
                last.frames, last.end = outer.frames, self._lines[-1][0] if more else outer.end
                break
            chain += [*last.nested, (last.exception, last.message, how)]
            last = outer
        return RawCrash(
            head_line=self._lines[0][0],
            end_line=last.end,
            exception=last.exception,
            message=last.message,
            frames=tuple(last.frames),
            chain=tuple(one for one in (*chain, *last.nested) if one[0])[-MOST_CHAINED:],
            complete=bool(last.exception),
            exception_line=last.line or last.end,
        )

    def _text(self, at: int) -> str:
        return self._lines[at][1].removeprefix(self._indent) if at < len(self._lines) else ""

    def _exception(self, head: int, native: bool = False) -> _Part:
        """From behind a head to the end of the message; of `native` code's frames, from behind the
        summary below them."""
        part = _Part(end=head)
        strays, mixed = 0, False
        if native and (at := self._summary(self._at)) is not None:
            self._at = at
        while self._at < len(self._lines) and strays <= STRAY_LINES:
            number, text = self._lines[self._at][0], self._text(self._at)
            if self._frame(text, part):
                strays = 0
                continue
            if HEAD in text and strays == 0:
                mixed = True
                self._at += 1
                continue
            if HEAD in text or relation(text):
                break
            sure = strays == 0 and not self._better_ahead()
            loose = self._loose or self._text(self._at - 1).lstrip().startswith("raise ")
            found = exception_line(text.lstrip() if loose else text, sure=sure)
            if found is not None:
                part.exception, part.line, part.end = found[0], number, number
                self._at += 1
                self._message(part, found[1], native)
                break
            self._at += 1
            strays += not text.startswith("    ")
        if mixed:
            part.frames = list({(one.file, one.line): one for one in part.frames}.values())
        return part

    def _better_ahead(self) -> bool:
        """Whether the traceback plainly goes on behind the line at hand."""
        ahead = [self._text(self._at + n) for n in range(1, AHEAD + 1)]
        for text in ahead:
            if HEAD in text or relation(text):
                return False
            if FRAME.match(text) or exception_line(text, sure=False):
                return True
        return False

    def _frame(self, text: str, part: _Part) -> bool:
        """Takes a frame, its source and its marks; False where the line is none."""
        found = FRAME.match(text) or IPYTHON_FRAME.match(text)
        if found is not None and not part.frames and (further := text.index("F") - 2) > 0:
            self._indent += " " * further  # the head stands further left than all the rest
            self._loose = True
        if found is None:
            if not (REPEATED.match(text) or (MARKS.match(text) and text.startswith("    "))):
                return False
            part.end = self._lines[self._at][0]
            self._at += 1
            return True
        part.end = self._lines[self._at][0]
        self._at += 1
        code = None
        while CODE.match(text := self._text(self._at)) and not FRAME.match(text):
            if code is None and not MARKS.match(text):
                code = text.strip()
            part.end = self._lines[self._at][0]
            self._at += 1
        if code is None and FLUSH.match(found[0]) and self._is_code_of_flush():
            code, part.end = self._text(self._at).strip(), self._lines[self._at][0]
            self._at += 1
        if len(part.frames) < MOST_FRAMES:
            part.frames.append(Frame(found[1], int(found[2]), (found[3] or "").strip(), code))
        return True

    def _is_code_of_flush(self) -> bool:
        """Whether the line at hand is a source line without its indentation: no part of a
        traceback itself, and behind it the traceback plainly goes on."""
        here, then = self._text(self._at), self._text(self._at + 1)
        if not here.strip() or HEAD in here or NEW_RECORD.match(here) or relation(here):
            return False
        if FRAME.match(here) or FRAME.match(
            then
        ):  # a call of `self._name` looks like an exception
            return not FRAME.match(here)
        return exception_line(here, sure=False) is None and bool(exception_line(then, sure=False))

    def _summary(self, at: int) -> int | None:
        """Where what failed in native code stands, whose frames begin `at`."""
        ahead = range(at, min(at + MOST_FRAMES, len(self._lines)))
        at = next((n for n in ahead if self._text(n).strip() == SUMMARY), len(self._lines))
        return None if at == len(self._lines) else at + 1 + bool(RULE.match(self._text(at + 1)))

    def _message(self, part: _Part, first: str, summary: bool = False) -> None:
        """
        What follows of a message, to a blank line, a new record or another traceback.

        A line that could be anybody's belongs to it only where the message has begun with an
        empty line or a heading, or the line before asks for more.
        """
        kept, size = [first], len(first)
        free = not first or bool(FREE_FORM.search(first) or FRAME.match(first))
        for _ in range(MESSAGE_LINES):
            if self._nested(part) or self._at >= len(self._lines) or size > MESSAGE_CHARS:
                break
            text = self._text(self._at)
            if HEAD in text or relation(text) or NEW_RECORD.match(text) or text == QUOTE:
                break
            if not text.strip() and not (summary or self._resumes()):
                break
            if text.strip():
                if not (free or CONTINUES.match(text) or kept[-1].endswith(OPEN_ENDS)):
                    break
                part.end = self._lines[self._at][0]
            kept.append(text)
            size += len(text) + 1
            self._at += 1
            if summary and AT_PLACE.search(text):
                break
        part.message = "\n".join(kept).strip()[:MESSAGE_CHARS]

    def _resumes(self) -> bool:
        """Whether a message goes on behind the blank line at hand, in a known shape."""
        following = self._text(self._at + 1)
        return bool(RESUMES.match(following))

    def _nested(self, part: _Part) -> bool:
        """Takes a traceback that is part of the message: the exception in another process."""
        at = self._nested_at("RayTaskError" in part.exception)
        if at is None:
            return False
        self._at = at
        inner = self._exception(self._lines[at - 1][0])
        part.end = max(part.end, inner.end)
        if inner.exception:
            part.nested += [*inner.nested, (inner.exception, inner.message, "cause")]
        part.frames = [*part.frames, *inner.frames][-MOST_FRAMES:]
        return True

    def _nested_at(self, remote: bool) -> int | None:
        """Where the frames of a traceback inside the message begin."""
        at = self._at
        while at < self._at + 2 and at < len(self._lines) and not self._text(at).strip():
            at += 1
        text = self._text(at)
        if remote and FRAME.match(text):
            return at
        if not NESTED.match(text):
            return None
        at += "Original " not in text
        while QUOTES.search(self._text(at)):
            at += 1
        return at + 1 if HEAD in self._text(at) else None

    def _follows(self) -> str | None:
        """How the next traceback follows from this one; stands behind its head then."""
        at = self._skip_blank(self._at)
        ruled = at + bool(RULE.match(self._text(at)))
        if NATIVE.match(self._text(ruled)) and self._summary(ruled + 1) is not None:
            self._at = ruled + 1
            return "native"
        how = relation(self._text(at))
        if how is None:
            return None
        self._passed = range(self._at, at)
        at = self._skip_blank(at + 1)
        if HEAD not in self._text(at) and not TASK.match(self._text(at)):
            return None
        self._at = at + 1
        return how

    def _skip_blank(self, at: int) -> int:
        while at < len(self._lines) and self._text(at).strip() in ("", QUOTE):
            at += 1
        return at


def _group(lines: Sequence[tuple[int, str]]) -> RawCrash:
    """An exception group: its own traceback, then its members as far down as they go."""
    blocks: list[list[tuple[int, str]]] = [[]]
    end = lines[0][0]
    for number, text in lines:
        if _MEMBER.match(text):
            blocks.append([])
        elif not _CLOSED.match(text):
            if not _MARGIN.match(text):
                break
            blocks[-1].append((number, _MARGIN.sub("", text)))
        end = number
    crash = _Walk(blocks[0]).crash()
    members: list[Chained] = []
    for block in blocks[1:]:
        if not block:
            continue
        if HEAD not in block[0][1]:
            block.insert(0, (block[0][0], HEAD))
        member = _Walk(block).crash()
        members += [*member.chain, (member.exception, member.message, "group")]
    chain = (*crash.chain, *(one for one in members if one[0]))
    return replace(crash, chain=chain[:MOST_CHAINED], end_line=max(end, crash.end_line))


def _foreign(
    lines: Sequence[tuple[int, str]], frame: re.Pattern[str], name: str | None
) -> RawCrash:
    """A traceback as IPython or rich print it: other frames, the same exception line."""
    frames: list[Frame] = []
    end = lines[0][0]
    boxed = frame is _BOXED
    for at, (number, line) in enumerate(lines[1:], 1):
        text = _LINKED.sub(r"\1", line)
        if found := frame.match(text):
            given = found.groupdict()
            place = given["file"] or given.get("old") or f"In[{given['cell']}]"
            frames.append(Frame(place, int(given["line"] or given.get("at") or 0),
                                (given["name"] or given.get("of") or "").strip()))  # fmt: skip
        elif frames and not boxed and (arrow := _ARROW.match(text)):
            frames[-1] = replace(frames[-1], line=int(arrow["line"]), code=arrow["code"].strip())
        elif HEAD in text:
            break
        elif not (boxed and text.startswith(("│", "|", "╰", "+"))):
            said = exception_line(text, sure=False)
            if said is not None and (name is None or said[0].rpartition(".")[2] == name):
                walk = _Walk([(lines[0][0], HEAD), *lines[at:]])
                return replace(walk.crash(), frames=tuple(frames[:MOST_FRAMES]))
        end = number
    return RawCrash(lines[0][0], end, name or "", "", tuple(frames[:MOST_FRAMES]), (), False, end)


def _debugged(lines: Sequence[tuple[int, str]], name: str) -> RawCrash | None:
    """An exception as a debugger shows it: message, then frames, the innermost first; None where
    no frame stands there."""
    said: list[str] = []
    frames: list[Frame] = []
    end = lines[0][0]
    for number, text in lines[1:]:
        if found := FRAME.match(text):
            frames.append(Frame(found[1], int(found[2]), (found[3] or "").strip()))
        elif frames and CODE.match(text):
            if frames[-1].code is None and not MARKS.match(text):
                frames[-1] = replace(frames[-1], code=text.strip())
        elif frames or not text.strip() or NEW_RECORD.match(text) or len(said) >= MESSAGE_LINES:
            break
        else:
            said.append(text)
        end = number
    if not frames:
        return None
    message = "\n".join(said).strip()[:MESSAGE_CHARS]
    inward = tuple(reversed(frames[:MOST_FRAMES]))
    return RawCrash(lines[0][0], end, name, message, inward, (), True, lines[0][0])
