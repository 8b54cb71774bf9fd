"""
The plain words of a failure in the last lines of a log that nothing else explains.

Programs of which no signature knows a line still say in English that a port was taken, a file is
not there or the loss is NaN.  Such words prove little: they are read only where no signature, no
exception, no signal and no record of the scheduler tells how the run ended, only behind its last
step, and are never given a strength that makes a verdict confident.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from flatline.facts import LOG, METRICS, SCHEDULER, Facts
from flatline.judging.startup_class import startup_class
from flatline.model import NOWHERE, LogCite, Match, Signature

TAIL, LAST = 40, 8
"""Lines before the end of a log that are read, and those in which a bare "error" counts."""
MOST_LOGS = 64
AGAIN = 2
"""A batch without a value is skipped; such lines one after the other are a loss without one."""
_STRENGTH, _BARE = 0.5, 0.4

_ERRS = re.compile(
    r"\b(?:error|MaxRetryError|fatal|fail(?:s|ed|ure)?|exception|critical"
    r"|can(?:no|')t|could(?: no|n')t|unable"
    r"|undefined symbol|abort(?:ed|ing)?|denied|refused|panic|invalid|unreachable|nan)\b"
    r"|not (?:found|available)",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"\b(?:\w*warn(?:ing)?|retry\w*|will retry|batch[ _]?size finder|next batch"
    r"|trying (?:with |again|batch|\d)|deprecat\w*|ignor\w*|skip\w*|fall(?:ing|s)? ?back"
    r"|tensorboard|wandb|jupyter|mlflow|comet|telemetry|dashboard|prometheus|visdom|optional"
    r"|display|slack|webhook|notif\w*|e-?mail|smtp|push(?:ing)? metrics|upload\w*|rm|no longer"
    r"|(?:no|0|without) errors?|(?:error|failure|word error|character error)[ _-]rate|wer|cer"
    r"|errors?: 0|mean \w+ error|\w+_error|if you (?:see|get))\b|^\W*(?:#|//|File \"|if\b)"
    r"|^\s*\d+ \w+ not found\b|\bnot found: \d|\bleft out\b"
    r"|\bnan\b[ :=?]{1,3}(?:no|false|0)\b|\b(?:tests?|checks?)\b.{0,60}\bpassed\b"
    r"|\bNCCL INFO\b",
    re.IGNORECASE,
)
_FETCH = (
    r"https?://|\bdownload|hugging ?face|\bSSL\b|certificate|\bproxy\b|\bresolv(?:e|ing) host"
    r"|[Nn]ame or service not known|failure in name resolution"
)
_WORDS: tuple[tuple[str, str, str, str | None, str], ...] = (
    # name, (family, class) before the first step, (family, class) after it, words, meaning
    ("not-finite", "E1 non-finite", "E1 non-finite",
     r"(?i)\b(?:loss|cost|objective|perplexity|ppl|elbo|nll|grad(?:ient)?(?:[ _]norm)?)\b"
     r"[^.,;]{0,24}?[=: (]\s?[-+]?(?:nan|inf(?:inity)?)\b|\b(?:nan|non-?finite)\b.{0,24}\bloss\b",
     "A loss or gradient that is no number."),
    ("address", "C1", "A3 io",
     r"(?i)\b(?:failed|failure|cannot|can't|could not|couldn't|unable)(?: to)? bind\b|\bport:? ?"
     r"\d{2,5} (?:is )?(?:not available|unavailable|already (?:in use|used|taken|bound)|in use"
     r"|occupied|busy)\b|\baddress already in use\b",
     "An address that processes were to meet at could not be had."),
    ("gpu-memory", "B1", "B1",
     r"(?i)\b(?:out of|not enough|insufficient|exhausted) (?:the )?(?:gpu|device|cuda|video|hbm"
     r"|npu)(?:'s)? memory|\b(?:gpu|cuda|cuda?mem\w*|hbm|vram)\b.{0,60}\bout of memory"
     r"|\bfail\w* to alloc\w*.{0,120}\b(?:gpu|cuda)"
     r"|\b(?:gpu|device|cuda|video|hbm|npu) memory (?:allocation )?(?:fail(?:ed|ure)|exhausted)",
     "Memory of a GPU could not be had."),
    ("host-memory", "A2 host-oom", "A2 host-oom",
     r"(?i)\bcannot allocate memory\b|\bstd::bad_alloc\b|\bout of (?:host |system |cpu )memory\b",
     "Memory of the host could not be had."),
    ("fetch", "A1 asset", "A3 io", rf"(?:{_FETCH})",
     "Something that was to be fetched from the network did not come."),
    ("peer", "C1", "C5",
     r"(?i)\bno route to host\b|\bnetwork is unreachable\b|\bhost is (?:down|unreachable)\b"
     r"|\bconnection (?:refused|timed out|reset by peer|closed by (?:remote|peer))",
     "Another process could not be reached."),
    ("checkpoint", "E2", "E2",
     r"(?i)\b(?:fail\w*|cannot|could not|unable|error)\b.{0,40}\b(?:load|restor|resum)\w*.{0,60}\b"
     r"(?:checkpoint|ckpt|snapshot)\b|\b(?:checkpoint|snapshot)\b.{0,80}\b(?:corrupt\w*|truncated"
     r"|incompatible|mismatch\w*)\b",
     "A checkpoint could not be read."),
    ("software", "A1 env", "A3 code",
     r"(?i)\bcannot open shared object\b|\bundefined symbol\b|\bnot compiled with\b|\bno kernel "
     r"image\b|\bdriver version is insufficient\b|\bno such module\b|\bno package called\b"
     r"|\bcommand not found\b",
     "Software that the run needs is absent or does not fit."),
    ("file", "A1", "A3 io",
     r"(?i)\bno such file or directory\b|\b(?:file|path|folder|directory|images?|dataset)\b"
     r".{0,160}\b(?:not found|does(?:n't| not) exist|is missing)|\b(?:cannot|can't|could not"
     r"|couldn't|unable to|failed to) (?:open|find|read|load|access)\b",
     "Something that the run reads is not there or cannot be read."),
    ("permission", "A1 config", "A3 io",
     r"(?i)\bpermission denied\b|\boperation not permitted\b|\bread-only file system\b",
     "The run may not do what it tried to."),
    ("setting", "A1 config", "A3 code",
     r"(?i)\b(?:invalid|unknown|unrecogni[sz]ed|unsupported|missing|conflicting)\b.{0,24}\b"
     r"(?:arguments?|options?|flags?|parameters?|keys?|settings?|config\w*)\b|\bmust be (?:set"
     r"|specified|given|one of|greater|less|positive|divisible)\b",
     "A setting is refused."),
)  # fmt: skip
_BARE_WORDS = re.compile(
    r"(?i)^.{0,60}(?<!train )(?<!test )(?<!validation )(?<!val )(?<!eval )"
    r"\b(?:fatal|error|critical)\b ?[:\])]"
    r"(?!\s*(?:[a-z][\w ]{0,24}[:=]\s*)?[-+]?(?:\d+\.\d|\d+e[-+]?\d|(?:nan|inf)\b))"
    r"(?!.{0,60}\b(?:exit(?:ed)?|crashed|failed) with (?:exit ?)?(?:code|status) -?\d)"
)
"""Not an error that is measured, nor a launcher's word that a process ended."""


def _signature(name: str, early: str, late: str, words: str, meaning: str) -> Signature:
    family, _, fault_class = early.partition(" ")
    late_family, _, late_class = late.partition(" ")
    return Signature(
        id=f"last-words-{name}", pattern=words, role="root", meaning=meaning,
        not_proof="Only words in the log's last lines: what went before them was not understood.",
        source="plain English", samples=(), family=family, fault_class=fault_class or None,
        late_family=late_family, late_class=late_class or None,
        strength=_BARE if name == "bare" else _STRENGTH, origin="last-words",
    )  # fmt: skip


_RULES = tuple((re.compile(row[3] or ""), _signature(*row)) for row in _WORDS)  # type: ignore[arg-type]
_ANY = _signature("bare", "A1", "A3 code", "", "An error that no signature knows.")


def last_words(facts: Facts) -> Match | None:
    """The first line near the end of a log that says in plain words what failed."""
    if not _unexplained(facts):
        return None
    judged = any(any(track.has_loss) for track in facts.tracks)  # by its shape
    known = {(m.cite.source, m.cite.line) for m in facts.of_role("benign")}
    own = {track.source for track in facts.tracks if track.of_attempt(facts.last.n)}
    bygone = {track.source for track in facts.tracks} - own if own else set()
    named: list[Match] = []
    bare: list[Match] = []
    for read in facts.log_files(LOG)[:MOST_LOGS]:
        if read.source.endswith(".json") or read.source in bygone:
            continue  # a history: nobody said it last
        lines = list(_tail(facts, read.source, read.lines))
        for back, cite in zip(range(len(lines), 0, -1), lines, strict=True):
            if _HARMLESS.search(cite.text) or (cite.source, cite.line) in known:
                continue
            if found := _matched(cite, lines, judged):
                named.append(found)
            elif back <= LAST and _BARE_WORDS.search(cite.text):
                bare.append(_match(_ANY, cite))
    first = facts.earliest(m.cite for m in named or bare)
    found = next((m for m in named or bare if m.cite == first), None)
    if found is None:
        return None
    cite = replace(found.cite, text=facts.text(found.cite.source, found.cite.line))
    return replace(found, cite=cite, attempt=facts.last.n)


def _unexplained(facts: Facts) -> bool:
    """Whether nothing else tells of an end, and the logs are all there is."""
    if facts.disposition not in ("unknown", "failed") or facts.end_seen or facts.dumps:
        return False
    if any(read.kind in (METRICS, SCHEDULER) for read in facts.files):
        return False
    if any(event.signal for event in facts.exits):
        return False
    return not any(m.signature.role in ("root", "cascade") for m in facts.matches)


def _tail(facts: Facts, source: str, count: int) -> Iterator[LogCite]:
    stepped = (track.lines[-1] for track in facts.tracks if track.source == source and len(track))
    first = max(count - TAIL, 0, *stepped) + 1
    last = facts.last_lines.get(source)
    place = NOWHERE if last is None else last.place
    inside = [(c.head.line, c.end_line) for c in facts.crashes if c.cite.source == source]
    for line, text in enumerate(facts.lines(source, first, count - first + 1), first):
        if not any(head <= line <= end for head, end in inside):
            yield LogCite(source, line, text, place)


def _matched(cite: LogCite, lines: list[LogCite], judged: bool) -> Match | None:
    if not _ERRS.search(cite.text):
        return None
    for rule, signature in _RULES:
        if not rule.search(cite.text):
            continue
        if signature.family == "E1" and (
            judged or sum(bool(rule.search(c.text)) for c in lines) < AGAIN
        ):
            continue
        return _match(signature, cite)
    return None


def _match(signature: Signature, cite: LogCite) -> Match:
    if signature.family == "A1" and signature.fault_class is None:
        missing = "FileNotFoundError" if signature.id.endswith("-file") else ""
        kind = startup_class(missing, cite.text)
        signature = replace(signature, fault_class=kind)
    return Match(signature, cite, {})
