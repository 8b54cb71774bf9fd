"""
Names masked before an outside provider sees them, and restored in its answers.

Names come from the verdict's document and from what a text shows to be one: `User=ana`, a column
of sacct, `/home/ana`, an address.  One that is also a word of the trade (a user called `train`) is
masked only where the text says that it is a name: everywhere else it is the word.  What is masked
is a whole name: `node1` within `node10` is none, but `node10` is taken for a host too, since
`node1` is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Self

from flatline.claims import naming
from flatline.claims.naming import LEFT, RIGHT, WORDS, Kind, any_of, hosts_in
from flatline.errors import FormatError
from flatline.logs.hostlists import expand

Spans = list[tuple[int, int, str]]
"""(start, end, placeholder)"""
Finder = tuple[re.Pattern[str], Callable[[re.Match[str]], Spans]]
SPELLED_HOSTS = 8
"""Hosts of a list that are spelled out beside it; of longer ones their number is."""
_NAME = r"(?P<name>(?:HOSTS|HOST|DOMAIN|USER|PROJECT|PATH|IP|MAIL|TEXT)-[0-9]+)"
_PLACEHOLDER = re.compile(
    rf"{_NAME}(?P<spelled>\((?:HOST-[0-9]+(?:,HOST-[0-9]+)*|[0-9]+ hosts)\))?"
)
_LOOKALIKE = re.compile(_NAME)
_HOST_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?")
_STEM = re.compile(r"([A-Za-z](?:[A-Za-z0-9_-]*[A-Za-z_-])?)[0-9]+")


class Names:
    """
    A stable, reversible mapping: HOST-1, USER-1, PROJECT-1, PATH-1, IP-1 ...

    One object serves one conversation: the same name has the same placeholder throughout, and
    `restore(mask(text)) == text` for every text.
    """

    def __init__(self) -> None:
        self._of: dict[tuple[Kind, str], str] = {}
        self._back: dict[str, str] = {}
        self._last: dict[Kind, int] = {}
        self._known: dict[Kind, set[str]] = {"HOST": set(), "USER": set(), "PROJECT": set()}

    @classmethod
    def of(cls, document: Mapping[str, Any], more: Iterable[str] = ()) -> Self:
        """The names a verdict's document holds, and `more` hosts."""
        made = cls()
        for host in (*(document.get("run") or {}).get("hosts", ()), *more):
            made._note("HOST", str(host), sure=True)
        for item in document.get("evidence", ()):
            host = (item.get("place") or {}).get("host")
            if host:
                made._note("HOST", str(host), sure=True)
            for key in ("text", "value", "source", "query"):
                if isinstance(item.get(key), str):
                    made.learn(item[key])
        return made

    def learn(self, text: str) -> None:
        """Takes note of the names that a text shows as such (`User=ana`, `/home/ana`)."""
        for found in naming.USERS.finditer(text):
            self._note("USER", next(filter(None, found.groups())).rstrip(".-"))
        for found in naming.PROJECTS.finditer(text):
            self._note("PROJECT", next(filter(None, found.groups())).rstrip(".-"))
        for found in naming.HOSTS.finditer(text):
            for name in hosts_in(found[1]):
                self._note("HOST", name)
        for kind, name in naming.columns(text):
            for each in hosts_in(name) if kind == "HOST" else (name,):
                self._note(kind, each)

    def mask(self, text: str) -> str:
        """The text with placeholders for names; nothing else of it changes."""
        self.learn(text)
        parts: list[str] = []
        end = 0
        for start, stop, stands in self._spans(text):
            parts += [text[end:start], stands]
            end = stop
        return "".join([*parts, text[end:]])

    def restore(self, text: str) -> str:
        """The text with names for placeholders; a placeholder that stands for nothing stays."""

        def back(found: re.Match[str]) -> str:
            name, spelled = found["name"], found["spelled"] or ""
            if name.startswith("HOSTS-") and name in self._back:
                return self._back[name]
            return self._back.get(name, name) + _LOOKALIKE.sub(back_plain, spelled)

        def back_plain(found: re.Match[str]) -> str:
            return self._back.get(found["name"], found["name"])

        return _PLACEHOLDER.sub(back, text)

    def restored(self, tree: object) -> object:
        """A JSON tree, as a model's call of a tool has it, with names in all of its strings."""
        if isinstance(tree, str):
            return self.restore(tree)
        if isinstance(tree, Mapping):
            return {self.restore(str(key)): self.restored(value) for key, value in tree.items()}
        if isinstance(tree, list | tuple):
            return [self.restored(value) for value in tree]
        return tree

    # --- what is known ---

    def _note(self, kind: Kind, name: str, *, sure: bool = False) -> None:
        """`sure` where the rules call it so, and not only a text."""
        if kind == "HOST":
            name = name.partition(".")[0]
            if _HOST_NAME.fullmatch(name) is None:
                return
        if len(name) < 2 or name.lower() in naming.NOBODY or name.isdigit():
            return
        if not sure and naming.NO_NAME.fullmatch(name):
            return
        if name not in self._known[kind] and not naming.IPV4.fullmatch(name):
            self._known[kind].add(name)
            self.__dict__.pop("_finders", None)

    def _stands(self, kind: Kind, name: str) -> str:
        if (kind, name) not in self._of:
            self._last[kind] = self._last.get(kind, 0) + 1
            made = f"{kind}-{self._last[kind]}"
            self._of[kind, name] = made
            self._back[made] = name
        return self._of[kind, name]

    # --- where names stand ---

    def _spans(self, text: str) -> Spans:
        """What is replaced, in order and apart; of two that overlap the one of the earlier finder
        stays."""
        taken: Spans = []
        used = bytearray(len(text))
        for pattern, stands in self._finders:
            for found in pattern.finditer(text):
                for start, stop, name in stands(found):
                    if start < stop and not any(used[start:stop]):
                        used[start:stop] = b"\1" * (stop - start)
                        taken.append((start, stop, name))
        return sorted(taken)

    @cached_property
    def _finders(self) -> list[Finder]:
        return [
            (_LOOKALIKE, self._whole("TEXT")),
            (naming.MAIL, self._whole("MAIL")),
            (naming.SITE, self._site),
            (naming.LISTED, self._list),
            (naming.PATH, self._path),
            *self._named_hosts(),
            *self._plain("USER", naming.USERS),
            *self._plain("PROJECT", naming.PROJECTS),
            (naming.IPV4, self._address),
            (naming.IPV6, self._address),
        ]

    def _whole(self, kind: Kind) -> Callable[[re.Match[str]], Spans]:
        return lambda found: [(*found.span(), self._stands(kind, found[0]))]

    def _plain(self, kind: Kind, context: re.Pattern[str]) -> Iterator[Finder]:
        """Whole words; words of the trade only where the text says what they are."""
        words = [name for name in self._known[kind] if name.lower() not in WORDS]
        if words:
            yield re.compile(rf"{LEFT}(?:{any_of(words)}){RIGHT}"), self._whole(kind)
        yield from self._words(kind, context)

    def _words(self, kind: Kind, context: re.Pattern[str]) -> Iterator[Finder]:
        shared = {name for name in self._known[kind] if name.lower() in WORDS}

        def named(found: re.Match[str]) -> Spans:
            group = next(n for n, text in enumerate(found.groups(), 1) if text)
            if found[group] not in shared:
                return []
            return [(*found.span(group), self._stands(kind, found[group]))]

        if shared:
            yield context, named

    def _named_hosts(self) -> Iterator[Finder]:
        hosts = {name for name in self._known["HOST"] if name.lower() not in WORDS}
        stems = self._stems
        hosts = {name for name in hosts if not _numbered(name, stems)}
        shapes = [rf"(?:{any_of(stems)})[0-9]+"] if stems else []
        shapes += [any_of(hosts)] if hosts else []
        if shapes:
            # what looks like a placeholder is one of its own, and ends a domain
            other = rf"(?![A-Za-z0-9-]*{_NAME.replace('?P<name>', '?:')})"
            domain = rf"(?P<domain>(?:\.{other}[A-Za-z0-9-]*[A-Za-z][A-Za-z0-9-]*)+)"
            files = r"(?!\.(?:log|out|err|txt|json|prom|gz|py|csv|pt|pkl)\b)"
            yield (
                re.compile(
                    rf"{LEFT}(?P<host>{'|'.join(shapes)}){RIGHT}(?:{files}{domain}{RIGHT})?"
                ),
                self._host,
            )
        yield from self._words("HOST", naming.HOSTS)

    @property
    def _stems(self) -> set[str]:
        """What hosts are called before their number, unless others are called so too."""
        stems = {found[1] for name in self._known["HOST"] if (found := _STEM.fullmatch(name))}
        return {s for s in stems if s.lower() not in WORDS or s.lower() in naming.HOST_STEMS}

    def _host(self, found: re.Match[str]) -> Spans:
        spans = [(*found.span("host"), self._stands("HOST", found["host"]))]
        if found["domain"]:
            start, stop = found.span("domain")
            spans.append((start + 1, stop, self._stands("DOMAIN", found["domain"][1:])))
        return spans

    def _list(self, found: re.Match[str]) -> Spans:
        """`node[01-04]` with its hosts beside it, so that they can be told apart."""
        try:
            hosts = expand(found[0])
        except FormatError:
            return []
        stems = {stem[1] for host in hosts if (stem := _STEM.fullmatch(host))}
        if not set(hosts) & self._known["HOST"] and not stems & self._stems:
            return []
        beside = f"{len(hosts)} hosts"
        if len(hosts) <= SPELLED_HOSTS:
            beside = ",".join(self._stands("HOST", host) for host in hosts)
        return [(*found.span(), f"{self._stands('HOSTS', found[0])}({beside})")]

    def _path(self, found: re.Match[str]) -> Spans:
        """The folder of a private path: its file's name stays, and what lies in a library."""
        text = found[0]
        library = naming.LIBRARY.search(text)
        cut = library.start() if library else text.rstrip("/").rfind("/")
        folder = text[:cut]
        parts = folder.split("/")[1:]
        if (
            not parts
            or parts[0] in naming.SYSTEM
            or (len(parts) == 1 and parts[0] in naming.ROOTS)
        ):
            return []
        return [(found.start(), found.start() + cut, self._stands("PATH", folder))]

    def _site(self, found: re.Match[str]) -> Spans:
        if found[0].lower().endswith(naming.PUBLIC):
            return []
        return [(*found.span(), self._stands("DOMAIN", found[0]))]

    def _address(self, found: re.Match[str]) -> Spans:
        if naming.NOBODYS_IP.match(found[0]):
            return []
        return [(*found.span(), self._stands("IP", found[0]))]


def _numbered(name: str, stems: set[str]) -> bool:
    found = _STEM.fullmatch(name)
    return found is not None and found[1] in stems
