"""
What a hand-written loop says of its checkpoints, its start and its end, where it is unambiguous.

Resume: "Resuming from checkpoint ... step 1000", "Resumed training at epoch 3", torchtitan's
"Training starts at step 1001". Fresh: "No checkpoint found", "training from scratch", "Training
starts at step 1". Saved: the past tense with the word checkpoint, or of a weights file named after
its step or "last". Loaded: the same with a step or an epoch, for weights to start from are called
checkpoints too. Finished: "Training complete" or "Finished Training" as the whole message, which
may name its loop, or before where its result was saved, unless the run was called off before; that
ignite's or Ultralytics' handler stopped it early, or Lightning's at its time; "Finished." of a
module named train; a time of its own that a program reached, where it says that it ends with
status 0; the bare word, where the process group is taken down with it.

Refused: intentions and conditions ("will resume", "to resume, run", "if no checkpoint", options,
configuration), beginnings ("Saving checkpoint", "Loading checkpoint"), failures to do so,
pretrained weights, a model that is new ("Training new model from scratch" says nothing of the
run), and the lines that the formats of a framework read.

Source: the print statements of torchtitan, nanoGPT, timm, torchvision's, NeMo's checkpoint
callbacks and many public loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.model import Progress

FORMAT = "markers"
FRAMEWORK = None
GENERIC = 1
TRIGGERS = (
    r"(?i:resum(ing|ed) )",
    r"(?i:continuing [a-z ]{0,16}(at|from) (global[_ ]?)?(step|iter))",
    r"(?i:(loaded|restored|saved|wrote) [^\n]{0,60}(checkpoint|ckpt))",
    r"(?i:checkpoint [^\n]{0,80}(loaded|restored|saved))",
    r"(?i:(ckpt|checkpoint): (loaded|restored|saved|wrote) )",
    r"(?i:checkpoint save [^\n]{0,120}(took|save duration ?:) [0-9])",
    r"(?i:checkpoint save for step [0-9][^\n]{0,400} finalized)",
    r"(?i:ckpt[-_ :][^\n]{0,60}written in [0-9])",
    r"(?i:checkpoint[-_ :][^\n]{0,60}written in [0-9])",
    r"(?i:checkpoint[-_ ][^\n]{0,60} [GMT]i?B in [0-9])",
    r"[Ss]aved [^\n]{0,120}(step|iter|epoch)[-_=]?[0-9]+[^\n]{0,20}\.(pt|pth|ckpt)",
    r"[Ss]aved [^\n]{0,120}(last|latest)\.(pt|pth|ckpt)",
    r"(?i:: async save -> )",
    r"(?i:: save -> )",
    r"(?i:no [a-z ]{0,24}checkpoints? )",
    r"(?i:no (earlier|previous|prior|existing|saved) (weights|state|snapshots?) )",
    r"(?i:(training|starting|start) [^\n]{0,30}from scratch)",
    r"(?i:nothing to (load|resume|restore))",
    r"(?i:(nothing|none) (was |is )?(found|there)[^\n]{0,12}(start|begin|train))",
    r"Training starts at step [0-9]",
    r"(?i:train(ing)? from (step|iteration) [0-9])",
    r"(?i:train(ing)? (loop )?(is |has |was )?(been )?(complete|finished|done))",
    r"(?i:run (?:canceled|cancelled)(,| due to ))",
    r"Finished [Tt]raining",
    r"train\.py:[0-9]+\] Finished\.",
    r"EarlyStopping: (Stop training|Training stopped early)",
    r"Time limit reached\. Elapsed time is [0-9]",
    r"(?i:(reached|exceeded|exhausted)[^\n]{0,60} (code|status) 0)",
    r"(?i:(finished|completed|reached) [0-9]+ [a-z ]{0,12}(steps|iterations|updates|epochs))",
    r"(?i:(finished|completed|reached) [0-9]+ ?/ ?[0-9]+ [a-z ]{0,12}(steps|updates|epochs))",
    r"(?i:(training|finished|completed|done):? (steps|updates|epochs) [0-9]+ ?/"
    r" ?[0-9])",
    r"(?i:(max(imum)?|total|target)[ _](train(ing)?[ _])?(time)?"
    r"(steps|epochs|iterations|updates|frames) reached)",
    r"(?i:(hit|reached) (the )?(max(imum)?|total|target)[ _](train(ing)?[ _])?(time)?"
    r"(steps|epochs|iterations|updates|frames))",
    r"(?i:done:? [0-9]+ [a-z ]{0,12}(steps|iterations|updates|epochs))",
    r"(fit|train)\(\) (is )?(done|finished|complete)",
    r"(?i:(done|finished|completed?)[,;.:] (destroying|tearing down|cleaning up)"
    r" [a-z ]{0,8}process group)",
    r"(?i:all (training )?(steps|iterations|epochs) (are )?(done|finished|complete))",
    r"Final validation metrics: \{",
    r"\"event\": ?\"(done|finished|train_end|training_end|training_complete|end)\"",
)

_FOREIGN = re.compile(
    r"successfully (?:saved|loaded) checkpoint .*iteration|aved a checkpoint at step [0-9]"
    r"|\[[Tt]orch\]|global_step[0-9]|from this run's directory|not restoring checkpoint"
    r"|Restor(?:ed all|ing) states from the checkpoint|Checkpoint detected, resuming"
    r"|Do not forget to share|zero checkpoint|after training is done|, global step [0-9]+: "
)
_NOT_SAID = re.compile(
    r"\b(?:not|never|cannot|can't|couldn't|unable|fail(?:ed|ure|s)?|error|if|will|would|should"
    r"|may(?![ ,/-]{1,2}[0-9])|might|can|each|every|when|until|once|unless|todo|skip(?:ping|ped)?"
    r"|without|instead of"
    r"|in order to|to (?:avoid|resume)|pre-?trained|base model|new model|model weights)\b"
    r"|(?:^|\s)--[a-z]"
    r"|^\s*(?:wandb:|\+|#|def |return |print\(|raise |assert |File \")"
    r"|[=:] *(?:None|null|False|True)\b"
    r"|\{[a-z_.]+\}|\.{4,}",
    re.I,
)
_RESUME = re.compile(
    r"\bresum(?:ing|ed|es)\b(?= *(?:from|training|at|checkpoint|optimi[sz]er|step|epoch|:|\())"
    r".*?(?:from|at|checkpoint|ckpt|step|epoch|iter)"
    r"|\bresum(?:ing|ed) (?!down|up|transf|data|stream)\S{1,80} from "
    r"(?=[^\n]{0,200}\b(?:step|iter(?:ation)?|epoch)[ _=-]?[0-9])"
    r"|\bat (?:step|iteration|epoch) [0-9]{1,12}\b[^\n]{0,40}"
    r"\bresum(?:ing|ed) (?:the )?(?:run|job|train)",
    re.I,
)
_GOES_ON = re.compile(
    r"\b(?:continuing|resuming) (?:training |the run )?(?:at|from) (?:global[_ ]?)?"
    r"(?:step|iter(?:ation)?)[ _:=#]{0,3}([0-9]{1,12})\s*[.!]?\s*$",
    re.I,
)
_DENIED = re.compile(r"(?i)\b(?:not|never|without|if|would|will|false|none|null|off)\b")
_STARTS = re.compile(
    r"Training starts at step ([0-9]{1,12})\b(?:.*\btotal steps ([0-9]{1,12}))?"
    r"|(?:^|\bINFO[:\] |-]{1,4}|[0-9]:[0-9]{2}(?:[.,][0-9]{1,9})?Z?[\] ]{1,3})"
    r"(?:start(?:ing)? )?train(?:ing)? from (?:step|iteration) ([0-9]{1,12}) to"
    r"(?: step| iteration)? ([0-9]{1,12})\.?\s*$",
    re.I,
)
_LOADED = re.compile(
    r"\b(?:loaded|restored)\b[^\n]{0,60}?\b(?:checkpoint|ckpt)"
    r"|\bcheckpoint\b[^\n]{0,80}?\b(?:loaded|restored)\b|\bckpt: (?:loaded|restored) ",
    re.I,
)
_SAVED = re.compile(
    r"\b(?:saved|wrote)\b[^\n]{0,60}?\b(?:checkpoint|ckpt)"
    r"|\bsaved\b[^\n]{0,120}?(?:step|iter|epoch)[-_=]?[0-9]{1,12}[^\n]{0,20}\.(?:pt|pth|ckpt)\b"
    r"|^(?!.*\b(?:load|read|restor|fetch|cop[iy]|mov)).*?"
    r"\bsaved (?:(?:to|as|in) )?['\"]?(?:[\w.~-]*/\S{0,200})?\b(?:last|latest)\.(?:pt|pth|ckpt)\b"
    r"|\bcheckpoint\b[^\n]{0,80}?\bsaved\b|\b(?:ckpt|checkpoint): (?:saved|wrote) "
    r"|\b(?:ckpt|checkpoint): (?:async )?sav(?:e|ing) (?:->|to) \S{1,200}(?:step|iter)[-_=]?[0-9]"
    r"|\bcheckpoint save\b[^\n]{0,120}?\b(?:took|save duration ?:) [0-9]"
    r"|\bcheckpoint save for step [0-9][^\n]{0,400}? finalized successfully"
    r"|^(?!.*\b(?:load|read|restor|fetch|(?:up|down)load|cop[iy]|mov))"
    r".{0,120}?\b(?:checkpoint|ckpt)[-_ :][^\n]{0,60}?"
    r"(?:\bwritten|: [0-9.]{1,8} [GMT]i?B) in [0-9.]{1,8} ?s(?:ec(?:onds?)?)?\b",
    re.I,
)
_FRESH = re.compile(
    r"\bno (?:(?:existing|previous|prior|valid|saved|latest|training|resumable) )*checkpoints? "
    r"(?:was |were |is |are )?(?:found|exists?|available|detected|present|to resume)"
    r"|\bno checkpoints? (?:match(?:ing|es|ed)? \S{1,80} )?(?:in|at|under) \S{1,200}"
    r"(?:[,;:] (?:start|begin|train)|\s*$)"
    r"|\bno (?:earlier|previous|prior|existing|saved) (?:weights|state|snapshots?) "
    r"(?:found|available|present|under|in|at)\b"
    r"|\b(?:training|starting|start)\b[^\n.]{0,30}?\bfrom scratch\b"
    r"|\b(?:auto[-_ ]?resume|ckpt|checkpoint): (?:[\w -]{1,24}: )?"
    r"nothing to (?:load|resume|restore)\b"
    r"|(?:\bresum(?:e|ing)|\b(?:checkpoints?|ckpts?|snapshots?)|\.(?:pt|pth|ckpt))\b[^\n]{0,240}?"
    r"\b(?:nothing|none) (?:was |is )?(?:found|there)[,;:.() -]{1,4}"
    r"(?:start|begin|train)(?:s|ing|ning)? (?:anew|over|afresh|(?:\w+ )?(?:at|from|with) "
    r"(?:scratch|(?:epoch|step|iteration) [01]\b))",
    re.I,
)
_INSTEAD = re.compile(
    r"\bno (?:(?:existing|previous|prior|valid|saved|latest|training|resumable) )*checkpoints? "
    r"(?:was |were |is |are )?(?:found|available|detected|present)"
    r"(?: (?:in|at|under) \S{1,200}?)?\s{0,2}[,;:(-]",
    re.I,
)
"""That none is there, before what the program does instead: begin with other weights, say."""
_GIVES_UP = re.compile(
    r"(?i)\b(?:errors?|cannot|can't|fail\w*|abort\w*|exit\w*|skip\w*|evaluat\w*|test\w*|not)\b"
)
_FINISHED = re.compile(
    r"(?:^|[\]>:|*=#!-]|\s{2}|\bINFO\b|:[0-9]{2}(?:[.,][0-9]{1,9})?Z?(?=\s))[\s\W]{0,40}"
    r"(?:train(?:ing)?(?: run| loop)? (?:is |has |was )?(?:been )?(?:completed?|finished|done)"
    r"|finished training|(?<=train\.py:)[0-9]{1,5}\] finished(?=\.\s*$))"
    r"(?: successfully)?(?: (?:in|after):? [0-9][^,;]{0,60}"
    r"| at (?:global )?(?:step|iteration|epoch) [0-9]{1,12}|[,.;] best [^\n]{1,80}"
    r"|: [0-9][0-9,]{0,14} (?:steps|iterations|updates|epochs)\b[^\n]{0,120}"
    r"|(?:[:;,]| [-(]) ?(?:reached|at|after) (?:the )?(?:last|final|max(?:imum)?|planned|target)"
    r"[ _](?:step|iteration|update|epoch)s?\b[^\n]{0,60})?"
    r"(?:[,;.]? (?:exiting|bye|shutting down|good ?bye|cleaning up|the program is closed)"
    r"(?: now)?)?[\s.!:*=#-]*$",
    re.I,
)
_CALLED_OFF = re.compile(r"(?i)\brun (?:canceled|cancelled)(?: due to |, stopping in [0-9])")
"""By OLMo, whose loop then ends in the words of its planned end."""
_STOPPED_EARLY = re.compile(r"\bEarlyStopping: (?:Stop training|Training stopped early\b)")
"""By handlers of ignite and Ultralytics.  A hand-written loop may say so of a fold or a stage."""
_SAVED_BEHIND = re.compile(
    r"(?:^|[\]>|*=#!-]|\s{2}|\bINFO\b|:[0-9]{2}(?:[.,][0-9]{1,9})?Z?(?=\s))[\s\W]{0,40}"
    r"(?:train(?:ing)?(?: run)? (?:is |has |was )?(?:been )?(?:completed?|finished|done)"
    r"|finished training)(?: (?:in|after):? [0-9][\w:. ]{0,40}?)?(?:[,;.:!]| [-(]) ?"
    r"(?:(?:the )?(?:(?:final|last|best|trained) )?"
    r"(?:models?|weights|checkpoints?|adapters?|results?|outputs?) )?(?:is |was |were )?"
    r"(?:saved|written|stored|exported) (?:to|in|at|under|as) ['\"]?[\w./~$]\S{0,400}[\s.!)]*$",
    re.I,
)
_FINAL_MODEL = re.compile(
    r"\btrain(?:ing)? (?:is |has |was )?(?:been )?(?:completed?|finished|done)[,;.:] "
    r"(?:the )?final (?:model|weights|checkpoint)(?: (?:is|was))?(?: in| at| as| to|:)? ['\"]?"
    r"[\w./~$][^\s'\"]{0,400}['\"]?[\s.!]*$",
    re.I,
)
"""Whatever part is named before it: a part leaves no final one."""
_OWN_TIME = re.compile(
    r"\bTime limit reached\. Elapsed time is [0-9][\w:., ]{0,40}\. Signaling Trainer to stop"
    r"|(?:^|[\]>:|*=#!-]|\s{2}|\bINFO\b|:[0-9]{2}(?:[.,][0-9]{1,9})?Z?(?=\s))[\s\W]{0,40}"
    r"(?:--)?(?:max(?:imum)?[ _-]?(?:train(?:ing)?[ _-])?(?:wall[ _-]?)?"
    r"(?:time|duration|runtime|hours|minutes)|(?:training )?(?:time|duration) (?:limit|budget))"
    r" (?:is |was |has been )?(?:reached|exceeded|exhausted)[,;.: -]{1,3}"
    r"(?:(?:stopping|saving|saved)\b[^,;\n]{0,60}[,;.] )?"
    r"exit(?:ing|s)?(?: cleanly)? with (?:(?:exit )?(?:code|status)) 0[\s.!]*$",
    re.I,
)
_AT_THE_END = re.compile(
    r"(?:^|[\]>:|*=#!-]|\s{2}|\bINFO\b|:[0-9]{2}(?:[.,][0-9]{1,9})?Z?(?=\s))[\s\W]{0,40}"
    r"(?:(?:finished|completed|reached|done:?) ([0-9]{1,12}) (?:optimi[sz]er |training |train )?"
    r"(?:steps|iterations|updates|epochs)(?:, \w{1,12})?"
    r"|(?:fit|train)\(\) (?:is )?(?:done|finished|complete)[^\n]{0,60}"
    r"|(?:all )?(?:done|finished|completed?)[,;.:] (?:destroying|tearing down|cleaning up)"
    r" (?:the |our )?process groups?"
    r"|all (?:training )?(?:steps|iterations|epochs) (?:are )?(?:done|finished|completed?))"
    r"[\s.!]*$"
    r"|\"event\": ?\"(?:done|finished|train_end|training_end|training_complete|end)\"",
    re.I,
)
_ALL_OF = re.compile(
    r"(?:^|[\]>:|*=#!-]|\s{2}|\bINFO\b|:[0-9]{2}(?:[.,][0-9]{1,9})?Z?(?=\s))[\s\W]{0,40}"
    r"(?:(?:train(?:ing)?|run|job) )?(?:finished|completed?|reached|done)(?: training)?:? "
    r"(?:(?:all )?([0-9]{1,12}) ?/ ?([0-9]{1,12}) (?:\w{1,12} )?"
    r"(steps|updates|epochs)\b"
    r"|(steps|updates|epochs):? ([0-9]{1,12}) ?/ ?([0-9]{1,12})(?![\w.]*[0-9]))"
    r"[^\n]{0,160}$",
    re.I,
)
"""Of as many as there are: fewer are how far it is."""
_OF_PART = re.compile(
    r"\b(?:eval\w*|valid\w*|val|test\w*|warm\w*|generat\w*|sampl\w*|preproc\w*|tokeni\w*"
    r"|profil\w*|calibrat\w*|stage|phase|reward|critic|epoch)\b",
    re.I,
)
"""What else is done in steps, and parts of a run."""
_ALL = (
    r"(?:max(?:imum)?|total|target)[ _](?:train(?:ing)?[ _])?(?:time)?"
    r"(?:steps|epochs|iterations|updates|frames)"
)
_MOST = re.compile(
    r"(?:^|[\]>:|*=#!-]|\s{2}|\bINFO\b|:[0-9]{2}(?:[.,][0-9]{1,9})?Z?(?=\s))[\s\W]{0,40}"
    r"(?:max(?:imum)?[ _]steps reached(?:[ :(]{1,3}([0-9]{1,12})\)?)?"
    rf"|{_ALL} reached|(?:hit|reached) (?:the )?{_ALL}(?: this instance)?)"
    r"(?:[,.;] (?:(?:the )?(?:final|last) (?:checkpoint|model|weights)\b[^\n]{0,200}|\w{1,20}))?"
    r"[\s.!]*$",
    re.I,
)
_BEST = re.compile(r"(?i)[,.;] best ")
"""What follows is of another step."""
_LAST_VALIDATION = re.compile(r"[\"']Final validation metrics: \{")
"""verl's trainer says so behind its last step, and returns; `pprint` puts it in quotes, in which
no loop over folds has it."""
_ENDS = (_FINISHED, _STOPPED_EARLY, _SAVED_BEHIND, _FINAL_MODEL, _OWN_TIME, _LAST_VALIDATION)
_MORE = re.compile(
    r"\b(?:of|for) (?:stage|phase|epoch)|\(\w*(?:reward|critic|stage|phase|epoch)|next", re.I
)
SEVERAL = 2
_STEP = re.compile(
    r"(?<![a-z])(?:global[ _]?)?(?:steps?|iter(?:ation)?s?)[ _:=#(-]{0,3}"
    r"([0-9]{1,12})(?![0-9]|\.[0-9])",
    re.I,
)
_PATH = re.compile(r"(?:checkpoint|ckpt|model|step|iter)[-_]([0-9]{1,12})(?![0-9])", re.I)
_EPOCH = re.compile(r"(?<![a-z])epoch[ _:=#(-]{0,3}([0-9]{1,9})(?![0-9])", re.I)


def _position(text: str) -> tuple[int | None, float | None]:
    """(step, epoch) that a line about a checkpoint names, in words or in its path."""
    step = _STEP.search(text) or _PATH.search(text)
    epoch = _EPOCH.search(text)
    return int(step[1]) if step else None, float(epoch[1]) if epoch else None


def _stated(text: str) -> tuple[Progress, ...]:
    """Where training begins, in words that hold whatever else is on the line."""
    if found := _STARTS.search(text):
        at, to = (found[1], found[2]) if found[1] else (found[3], found[4])
        step, planned = int(at), int(to) if to else None
        if step <= 1:
            return (Progress("fresh", step=step, planned=planned),)
        return (Progress("resume", step=step - 1, planned=planned),)
    if (found := _GOES_ON.search(text)) and not _DENIED.search(text, 0, found.start()):
        return (Progress("resume", step=int(found[1])),)
    return ()


def _whole(text: str) -> tuple[Progress, ...]:
    """The end, where a line says that all of so many steps or epochs were made."""
    if (most := _MOST.search(text)) and not _OF_PART.search(text):
        count = int(most[1]) if most[1] else None
        return (Progress("finished", step=count, planned=count),)
    found = _ALL_OF.search(text)
    if found is None or _OF_PART.search(text, 0, found.end(3 if found[3] else 6)):
        return ()
    made, of = int(found[1] or found[5]), int(found[2] or found[6])
    if made != of or not of:
        return ()
    if _MORE.search(text, found.end(3 if found[3] else 6)):
        return ()
    if (found[3] or found[4]).lower() == "epochs":
        return (Progress("finished", epoch=float(made)),)
    return (Progress("finished", step=made, planned=of),)


class Reader:
    """Each line speaks for itself, but for an end that tells a count, where a loop that tells
    another one later tells how far it is, and for one after the run was called off, up to where
    one is loaded anew."""

    def __init__(self) -> None:
        self._counts: set[int] = set()
        self._called_off = False

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line, and none where it is not the plain statement of a fact."""
        text = text[:2_000]
        off = self._called_off or _CALLED_OFF.search(text) is not None
        self._called_off = off and _LOADED.search(text) is None
        if stated := _stated(text):
            return stated
        if (none := _INSTEAD.search(text)) and not _NOT_SAID.search(text, 0, none.end()):
            return () if _GIVES_UP.search(text, none.end()) else (Progress("fresh"),)
        if _FOREIGN.search(text) or _NOT_SAID.search(text):
            return ()
        if begun := self._begins(text):
            return begun
        if whole := _whole(text):
            return whole
        step_, epoch = _position(text)
        if _SAVED.search(text):
            saved = Progress("checkpoint_saved", step=step_, epoch=epoch)
            done = _SAVED_BEHIND.search(text) is not None
            return (saved, Progress("finished", step=step_)) if done else (saved,)
        if (step_ is not None or epoch is not None) and _LOADED.search(text):
            return (Progress("checkpoint_loaded", step=step_, epoch=epoch),)
        if self._called_off or not self._ends(text):
            return ()
        step_, epoch = _position(_BEST.split(text, maxsplit=1)[0])
        return (Progress("finished", step=step_, epoch=epoch),)

    def _begins(self, text: str) -> tuple[Progress, ...]:
        if _FRESH.search(text):
            return (Progress("fresh"),)
        found = _RESUME.search(text)
        if found is None:
            return ()
        named = _position(text[found.start() :])
        step, epoch = named if named != (None, None) else _position(text)
        return (Progress("resume", step=step, epoch=epoch),)

    def _ends(self, text: str) -> bool:
        if any(p.search(text) for p in _ENDS):
            return True
        ended = _AT_THE_END.search(text)
        return ended is not None and self._final(ended[1])

    def _final(self, count: str | None) -> bool:
        """Whether no other count was told before."""
        self._counts |= {int(count)} if count and len(self._counts) < SEVERAL else set()
        return len(self._counts) < SEVERAL
