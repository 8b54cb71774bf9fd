"""
A loop that looked for a checkpoint, found none and begins anew, in whatever words.

    resume=auto: no checkpoint matched /runs/v3/checkpoint/*.ckpt, initialising a new run
    Could not find a checkpoint in /runs/v3; training from scratch
    Checkpoint /runs/v3/last.ckpt does not exist, starting at step 0
    resume: no file at /runs/v3/last.ckpt, starting fresh
    looking for checkpoints in /runs/v3
    none found, starting at step 0

Guaranteed: the line says both, in this order: that none is there, and that it begins; or that an
automatic resume found none in a place.  "None found" is of checkpoints where one of the few lines
above says that it looks for them.  `markers` reads those that say one of them alone, in words
that leave no doubt.

Refused: what would be done, and what is said of other weights than the run's own.

Source: loops of public repositories and of issues quoted there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.model import Progress

FORMAT = "begun_anew"
FRAMEWORK = None
GENERIC = 1
TRIGGERS = (
    r"(?i:no [a-z ]{0,24}(checkpoint|ckpt|snapshot|restore point|previous run|earlier run))",
    r"(?i:no (such )?(file|folder|directory)[^\n]{0,240}(ckpt|checkpoint|snapshot|\.pth?))",
    r"(?i:0 (checkpoints|ckpts|snapshots|previous runs) )",
    r"(?i:(find|locate) [a-z ]{0,24}(checkpoint|ckpt|snapshot|previous run))",
    r"(?i:(checkpoint|ckpt|snapshot|\.pth?)[^\n]{0,240}( not found|n[o']t exist|is empty))",
    r"(?i:nothing [^\n]{0,60}to (resume|restore|load))",
    r"(?i:(checkpoint|ckpt|snapshot)( step)?[:=] ?none[;,. ])",
    r"(?i:(look|search|check|scan)(s|ed|ing)? for [^\n]{0,32}(checkpoint|ckpt|snapshot))",
    r"(?i:(none|nothing) (was |were )?found[,;:. ][^\n]{0,40}(start|begin|train|init))",
)
_KEPT = (
    r"(?:checkpoints?|ckpts?|snapshots?|restore points?|saved states?|(?:previous|earlier) runs?"
    r"|[\w.-]{0,80}\.(?:ckpt|pth?)|(?:last|latest)\.\w{2,12})"
)
_OWN_FILE = (
    r"(?:[\w.-]{0,80}\.ckpt|(?:last|latest|checkpoint|ckpt|snapshot|epoch|step|model)[\w.-]{0,40}\.pth?"
    r"|checkpoints?|ckpts?|snapshots?)"
)
"""By its name alone: weights of others are files as well."""
_NONE = re.compile(
    rf"(?i)\b(?:no|zero|0) (?:[\w-]{{1,20}} ){{0,3}}{_KEPT}(?![\w-])"
    rf"|\bno (?:such )?(?:file|folder|directory)(?: (?:found|there))?(?: (?:at|named|under|in)|:)"
    rf" ['\"]?(?:[\w.~-]{{0,80}}/[^\s'\"]{{0,240}}?)?\b{_OWN_FILE}(?![\w./-])"
    rf"|\b(?:could ?n[o']t|cannot|can't|did ?n[o']t|unable to|failed to) (?:find|locate)\b"
    rf"[^\n]{{0,40}}?\b{_KEPT}(?![\w-])"
    rf"|\b{_KEPT}(?![\w-])[^\n]{{0,240}}?\b(?:not found|do(?:es)? ?n[o']t exist|not exist(?:ing)?"
    r"|(?:is|was|are) (?:empty|missing|absent)|not there|not present)(?![\w-])"
    rf"|\b(?:nothing|none) (?:found |there |at \S{{1,240}} )?to (?:resume|restore|load)\b"
    rf"|\b{_KEPT}(?: step)?[:=] ?None\b"
)
_SOUGHT = re.compile(
    r"(?i)\bauto[-_ ]?resume\b[=: ]{1,3}[^\n]{0,60}?\bno (?:[\w-]{1,20} ){0,3}"
    rf"(?:{_KEPT}|(?:checkpoint|ckpt)[\w*.?-]{{1,40}})"
    r" (?:(?:was |were )?found|under|in|at|match\w*)\b"
)
_BEGINS = re.compile(
    r"(?i)(?<![\w-])(?:start|begin|train|initiali[sz]|creat|init|launch)\w{0,5}\b[^\n]{0,40}?"
    r"\b(?:scratch|fresh|anew|afresh|over|random(?:ly)?|seed|(?:an? )?new (?:run|training|one)"
    r"|(?:at|from|with) (?:global[_ ])?(?:step|epoch|iter(?:ation)?)[ =:]?[01])\b"
    r"|(?<![\w-])(?:fresh start|fresh run|new run)\b"
    r"|(?<![\w-])initiali[sz](?:ed|es|ing) (?:the |all |its )?(?:model )?(?:weights|parameters)"
    r"\s{0,4}[.!]?\s*$"
    r"|(?<![\w-])(?:start|begin|train)\w{0,4} (?:a )?new\b(?! (?:model|epoch|stage|phase|fold))"
)
_WOULD = re.compile(
    r"(?i)\b(?:if|unless|when|whenever|would|should|may(?![ ,/-]{1,2}[0-9])|might|can be"
    r"|in case|otherwise|error|raise|exit\w*|abort\w*|skip\w*|ignor\w*|usage"
    r"|default|set|use|pass)\b|(?:^|\s)--[a-z]"
)
_OF_OTHERS = re.compile(
    r"(?i)\b(?:pre-?train\w*|teacher|backbone|vae|tokenizer|ema|lora|adapter|base model|encoder"
    r"|decoder|critic|discriminator|reward model|optimi[sz]er|schedulers?|scaler|embeddings?|head"
    r"|cache|index|vocab\w*)\b"
)
_LOOKS = re.compile(
    r"(?i)\b(?:look|search|check|scan)(?:s|ed|ing)? for "
    r"(?:an? |the |existing |previous |latest ){0,2}(?:checkpoints?|ckpts?|snapshots?)\b"
)
_FOUND_NONE = re.compile(r"(?i)(?<![\w-])(?:none|nothing) (?:was |were )?found\b")
_SOON = 3
"""Lines below in which it says what it found: other ranks may print in between."""
_LONGEST = 1_000


class Reader:
    """Each line speaks for itself, but for one that says what was found where it looked."""

    def __init__(self) -> None:
        self._looked = 0

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        text = text[:_LONGEST]
        if (sought := _SOUGHT.search(text)) is not None:
            return () if _WOULD.search(text, 0, sought.end()) else (Progress("fresh"),)
        none = _NONE.search(text) or (_FOUND_NONE.search(text) if self._looked else None)
        looks = _LOOKS.search(text) is not None and not _WOULD.search(text)
        self._looked = _SOON if looks else max(0, self._looked - 1)
        begins = _BEGINS.search(text, none.end()) if none is not None else None
        if none is None or begins is None:
            return ()
        said = text[: begins.end()]
        if _WOULD.search(said) or _OF_OTHERS.search(said) or "{" in said:
            return ()
        return (Progress("fresh"),)
