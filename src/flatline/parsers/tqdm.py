"""
Labelled tqdm bars of training loops: `Epoch 3:  40%|...| 12/30 [...]`, `Steps: ...`.

A bar is weak evidence.  It counts as training where its label begins with a word for training, or
where a loss stands behind it; as evaluation where the label says so (one value for each bar that
begins).  A numbered epoch's bar counts batches of that epoch: the step is counted on from epoch 0
or 1, whichever the stream begins with, and is not given where it begins elsewhere.  An epoch that
is told behind the bar (`epoch=2/9`) may be of a bar that counts all of them: batches are counted
on where the count began anew with it.

A bar that begins again once it had come to its end is the next pass over the data, and its steps
are counted on; not where its loss is again what that of the first pass had begun with: that is
another run.  A bar without label or loss that follows one with a loss to its end, and is of
another length, evaluates.

pytorch-ignite's bar (`Epoch [1/9]: [13/500]   3%|... , loss=0.5 [00:21<52:34]`) is read as well,
and a loss in the label (`Epoch 1 loss: 0.5: 3%|...`), where scripts put it that call
`set_description` at each step.

tqdm redraws at most every 0.1 s and shows a new `loss=` before it counts the step: a loss drawn
beside a count that stands still is kept without a step.  One that is not finite is told before
the first step is counted: there may be no second.

An unlabelled bar without a loss is told as a `bar`: that something advanced, and how far.

Refused: downloads, tokenising, `Map:`, shards, splits and every other preparation; bars counted in
bytes, examples or batches of examples; the bars
of Lightning (`v_num=`, `DataLoader 0`) and those a dict is glued to.

Source: tqdm 4.x `format_meter`; pytorch-ignite `handlers/tqdm_logger.py`; the examples of
accelerate, diffusers, torchtune, llama-recipes, OpenRLHF, verl.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isfinite

from flatline.model import Progress
from flatline.parsers._bars import shown_s

FORMAT = "tqdm"
FRAMEWORK = None
GENERIC = 1
TRIGGERS = (
    r"[ -?](?:it/s|s/it)",
    r"(?:img|image|sample|batch|step|update|iter)e?s?/s, ",
    r"s/(?:batch|step|update|iter)[,\]]",
    r"\] [ -?]{3}%\|",
    r"Saving final epoch checkpoint\.",
)
"""`[ -?]` holds digits, blanks and what stands between: a class of 32 is compared bit by bit, one
of ten digits is spelled out in as many texts (see docs/design/scanning.md)."""

_BAR = re.compile(
    r"([^%]{0,160}?)[0-9]{1,3}%(?:\|[^|]*\|)? +([0-9]{1,12})/([0-9]{1,12}) \[([0-9:]+)<[0-9:?]+,"
    r" *(?:([0-9.]+)|\?) ?(it/s|s/it|(?:batche?|step|update|iter)s?/s|s/(?:batch|step|update|iter)"
    r"|(?:img|image|sample)s?/s)(?:, ([^\]]*))?"
)
_OPEN = re.compile(
    r"([^%]{0,160}?):? *\b([0-9]{1,12})()it \[([0-9:]+), *(?:([0-9.]+)|\?) ?(it/s|s/it)"
    r"(?:, ([^\]]*))?"
)
_IGNITE = re.compile(
    r"([^%]{0,120}?):? ?\[([0-9]{1,12})/([0-9]{1,12})\] +[0-9]{1,3}%\|([^\[|]{0,600})"
    r"\[([0-9:]+)<[0-9:?]+\]"
)
_NUMBER = r"([-+]?(?:[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?|nan|inf))(?![\w])"
_LOSS = re.compile(
    r"([\w./ -]*loss[\w./]*)(?: \(batch\))? ?[=:] ?(?:tensor\()?" + _NUMBER
    + r"|(?:^|, )((?:(?:train(?:ing)?|total|avg|batch) )?loss) (?=\d+\.\d)" + _NUMBER + "(?=,|$)",
    re.I,
)  # fmt: skip
_LABEL_LOSS = re.compile(r"([\w./-]*loss[\w./-]*)(?: ?[=:] ?| )(?:tensor\()?" + _NUMBER, re.I)
_RATE = re.compile(r"\b(?:lr|learning_rate) ?[=:] ?" + _NUMBER, re.I)
_NORM = re.compile(r"\b(?:grad_?norm|gnorm) ?[=:] ?" + _NUMBER, re.I)
_EVALUATES = re.compile(
    r"(?:^|[^a-z])(?:eval|valid|val(?:$|[^a-z])|test|predict|infer|sanity)", re.I
)
_PREPARES = re.compile(
    r"token|download|upload|fetch|load|sav|writ|read|map|filter|generat|sampl|rollout|build|prepar"
    r"|process|convert|comput|extract|cach|pack|group|shard|split|dataset|truncat|drop|adding"
    r"|resolv|quanti|calibrat|captur|compil|merg|copy|collect|encod|embed|warm|fid\b|index|scan"
    r"|count|creat|format|chat template|label|score|scor|rewards?\b",
    re.I,
)
_TRAINS = re.compile(
    r"\W*(?:\[?rank ?[0-9]+\]?\W*)?(?:pre-?)?"
    r"(?:train|epochs?\b|steps?\b|iter(?:ation)?s?\b|finetun|optimi[sz]|episode|global step)",
    re.I,
)
_EPOCH = re.compile(r"epochs?\W{0,3}([0-9]{1,7})(?: ?/ ?([0-9]{1,7}))?", re.I)
_NUMBERED = re.compile(r"\W*train(?:ing)?[ #]{1,6}([0-9]{1,7})()\W*$", re.I)
"""RecBole's, one for each epoch."""
_EPOCHS_ONLY = re.compile(r"\W*(?:train(?:ing)? )?epochs?\W*$", re.I)
_POSTFIX_EPOCH = re.compile(
    r"(?:^|, )epochs?[=: ]{1,2}([0-9]{1,7})(?:/([0-9]{1,7}))?(?=,|$)", re.I
)
_COUNTED = re.compile(r"(?:^|, )(?:global_?)?(?:step|update)s?=([0-9]{1,12})(?=,|$)", re.I)
"""The run's own count behind an epoch's bar (F5-TTS `update=`)."""
_OF_ALL_EPOCHS = re.compile(r"epochs?\W{0,3}([0-9]{1,7}) ?/ ?([0-9]{1,7}), steps\W*$", re.I)
"""SimpleTuner's bar counts the steps of the run, of which its label names the epoch."""
_TORCHTUNE = re.compile(r"([0-9]{1,7})\|([0-9]{1,12})\|Loss: " + _NUMBER)
_OF_TORCHTUNE, _FINAL = ("torchtune", None), "Saving final epoch checkpoint."
"""Said behind the last epoch, once its model was saved."""


_TOLD = 16
_LAG = 16
_LABELS = 256
"""Labels that are remembered."""
_ALIKE = 0.05
"""Batches that are filled up to so many samples are a few more or less in each pass."""
_LEARNT = 0.1
"""Of its first loss: a smaller fall may be noise, and does not tell another run from a pass."""
_LONGEST = 4_096
"""Characters of a line that are read; terminals are narrower."""


def _number(found: re.Match[str] | None) -> float | None:
    try:
        return None if found is None else float(found[1])
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _Bar:
    label: str
    n: int
    total: int | None
    step_s: float | None
    postfix: str
    since_s: float | None = None
    samples: bool = False


@dataclass(slots=True)
class _Seen:
    """What one bar showed last."""

    n: int
    loss: str | None
    told: bool


@dataclass(slots=True)
class _Loop:
    """A bar that is drawn once a pass: the steps of the passes before this one, and its losses."""

    total: int
    n: int = 0
    base: int = 0
    first: float | None = None
    last: float | None = None

    def step(self, bar: _Bar, loss: float | None) -> int:
        """The step over all passes."""
        if bar.n < self.n:
            goes_on = self.n == self.total and not self._anew(loss)
            self.base = self.base + self.total if goes_on else 0
            self.first = self.first if goes_on else None
        self.n, self.total = bar.n, bar.total or self.total
        if loss is not None and isfinite(loss):
            self.first, self.last = loss if self.first is None else self.first, loss
        return self.base + bar.n

    def _anew(self, loss: float | None) -> bool:
        if loss is None or self.first is None or self.last is None:
            return False
        learnt = self.first - self.last > _LEARNT * abs(self.first)
        return learnt and abs(loss - self.first) < abs(loss - self.last)


def _bar(text: str) -> _Bar | None:
    found = _BAR.match(text) or _OPEN.match(text)
    if found is None:
        found = _IGNITE.match(text)
        if found is None:
            return None
        since_s = shown_s(found[5])
        return _Bar(found[1].strip(), int(found[2]), int(found[3]), None, found[4], since_s)
    try:
        rate = float(found[5] or 0)
    except ValueError:
        rate = 0.0
    step_s = None if rate <= 0 else rate if found[6].startswith("s/") else 1 / rate
    total = int(found[3]) if found[3] else None
    samples = found[6].startswith(("img", "image", "sample"))
    step_s = None if samples else step_s
    return _Bar(found[1].strip(), int(found[2]), total, step_s, found[7] or "",
                shown_s(found[4]), samples)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Clocked:
    """How far a bar without label or loss was, and the seconds that it had run by then."""

    n: int
    since_s: float
    step_s: float | None


def clocked(text: str) -> Clocked | None:
    """What such a bar at the beginning of a text says; None where none stands there."""
    bar = _bar(text) if "%" in text[:_LONGEST] else None
    if bar is None or bar.label.strip(" :\r") or bar.since_s is None or not bar.total:
        return None
    return Clocked(bar.n, bar.since_s, bar.step_s)


def _loss(postfix: str) -> tuple[str, str] | None:
    """Name and text of the training loss behind a bar."""
    for found in _LOSS.finditer(postfix):
        name = (found[1] or found[3]).strip()
        if not _EVALUATES.search(name) and "scale" not in name:
            return name, found[2] or found[4]
    return None


def _label_loss(bar: _Bar) -> tuple[_Bar, tuple[str, str] | None]:
    """The bar without what its label says of a loss, and the name and text of that loss."""
    found = _LABEL_LOSS.search(bar.label) if "loss" in bar.label.lower() else None
    if found is None or "scale" in found[1].lower():
        return bar, None
    return replace(bar, label=bar.label[: found.start()].rstrip(" ([,|:-")), (found[1], found[2])


def _drawn(text: str) -> tuple[str, ...]:
    """One from the middle and the last of several unlabelled bars on one line: what stored logs
    without carriage returns make of a bar that was drawn again and again."""
    first, last = text.find("%|"), text.rfind("%|")
    if first == last or text[: max(0, first)].strip(" 0123456789"):
        return (text,)
    middle = text.rfind("%|", 0, (first + last) // 2 + 2)
    return tuple(text[max(0, at - 3) :] for at in dict.fromkeys((middle, last)))


def _counted_on(bar: _Bar, epoch: re.Match[str], step: int) -> tuple[int, int, float] | None:
    """(step, planned, epoch) where the count behind the bar of epoch `1/9` is that of all bars so
    far; it may lag by what the bar goes on by at once, or by one a pass."""
    number, epochs, total = int(epoch[1]), int(epoch[2]), bar.total or 0
    bars = (number - 1) * total + bar.n
    lag = min(max(number, _LAG, total // 50), total - 1)
    if not 1 <= number <= epochs or not 0 <= bars - step <= lag:
        return None
    return bars, epochs * total, number - 1 + bar.n / total


class Reader:
    """Reads one stream; remembers each label's bar and how the stream numbers its epochs."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int | None], _Seen] = {}
        self._kinds: dict[str, str] = {}
        self._first_epoch: int | None = None
        self._share = -1
        self._ends: set[int] = set()
        self._passes = False
        self._behind = (-1, 0, 0)
        self._loops: dict[str, list[_Loop]] = {}
        self._loops_held = 0
        self._trained = 0

    def feed(self, text: str) -> Iterable[Progress]:
        """Mostly nothing: a bar drawn again with nothing new says nothing."""
        return [said for one in _drawn(text) for said in self._one(one[:_LONGEST])]

    def _one(self, text: str) -> Iterable[Progress]:
        if _FINAL in text:
            return (Progress("finished"),) if _OF_TORCHTUNE in self._seen else ()
        bar = _bar(text)
        glued = "{'" in text and "{'" in text.replace("={'", "")
        if bar is None or "v_num=" in text or "DataLoader " in bar.label or glued:
            return ()
        if tuned := _TORCHTUNE.search(bar.label):
            return self._torchtune(bar, tuned)
        bar, shown = _label_loss(bar)
        kind = self._kind(bar.label)
        if kind != "trains" and shown is not None and _EVALUATES.search(shown[0]):
            kind = "evaluates"
        if kind == "evaluates":
            return self._evaluates(bar)
        if kind == "prepares":
            return ()
        loss = (_loss(bar.postfix) if "loss" in bar.postfix.lower() else None) or shown
        if loss is None and bar.samples:
            return ()
        if loss is None and kind != "trains":
            return self._unknown(bar)
        return self._trains(bar, loss)

    def _unknown(self, bar: _Bar) -> Iterable[Progress]:
        """A bar without label or loss: something advances, told sixteen times on its way."""
        if bar.label.strip(" :\r") or not bar.total or not 0 < bar.n <= bar.total:
            return ()
        if self._trained and bar.total != self._trained:
            return self._evaluates(bar)
        share = bar.n * _TOLD // bar.total
        if share == self._share:
            return ()
        self._share = share
        return (Progress("bar", bar.n, bar.total, step_s=bar.step_s, since_s=bar.since_s),)

    def _kind(self, label: str) -> str:
        """What a bar of this label does: "evaluates", "prepares", "trains", or "" for any."""
        kind = self._kinds.get(label)
        if kind is not None:
            return kind
        if len(self._kinds) >= _LABELS:
            self._kinds.clear()
        kind = "trains" if label and _TRAINS.match(label) else ""
        if _EVALUATES.search(label):
            kind = "evaluates"
        elif _PREPARES.search(label):
            kind = "prepares"
        self._kinds[label] = kind
        return kind

    def _torchtune(self, bar: _Bar, tuned: re.Match[str]) -> Iterable[Progress]:
        """torchtune writes `epoch|step|Loss: x` as the label, the step counted over epochs, and
        its bar counts those of one."""
        key = _OF_TORCHTUNE
        step = int(tuned[2])
        seen = self._seen.get(key)
        if seen is not None and seen.n == step and seen.loss == tuned[3]:
            return ()
        self._seen[key] = _Seen(step, tuned[3], told=True)
        return (
            Progress(
                "train",
                step=step,
                epoch=float(tuned[1]),
                loss=float(tuned[3]),
                per_epoch=bar.total,
                step_s=bar.step_s,
                since_s=bar.since_s,
            ),
        )

    def _evaluates(self, bar: _Bar) -> Iterable[Progress]:
        key = (bar.label, bar.total)
        seen = self._seen.get(key)
        self._seen[key] = _Seen(bar.n, None, told=True)
        if seen is None or bar.n < seen.n:
            return (Progress("eval"),)
        return ()

    def _trains(self, bar: _Bar, loss: tuple[str, str] | None) -> Iterable[Progress]:
        within = _POSTFIX_EPOCH.search(bar.postfix) if "epoch" in bar.postfix.lower() else None
        key = (bar.label + (within[1] if within else ""), bar.total)
        if len(self._seen) >= _LABELS:
            self._seen.clear()
        value = loss[1] if loss else None
        seen = self._seen.get(key)
        if seen is None or bar.n < seen.n:
            if seen is not None and seen.n == bar.total:
                self._passes = True
            self._seen[key] = _Seen(bar.n, value, told=bar.n > 0 or value is None)
            lost = value is not None and not isfinite(float(value))
            return self._tell(bar, loss) if bar.n > 0 or lost else ()
        if bar.n > seen.n:
            self._seen[key] = _Seen(bar.n, value, told=True)
            return self._tell(bar, loss)
        if value == seen.loss:
            return ()
        untold, was = not seen.told, seen.loss
        self._seen[key] = _Seen(bar.n, value, told=False)
        if not untold or was is None or loss is None:
            return ()
        return (Progress("train", loss=float(was), loss_name=loss[0]),)

    def _tell(self, bar: _Bar, loss: tuple[str, str] | None) -> Iterable[Progress]:
        step, planned, epoch = self._position(bar, float(loss[1]) if loss else None)
        return (
            Progress(
                "train",
                step=step,
                planned=planned,
                epoch=epoch,
                loss=float(loss[1]) if loss else None,
                loss_name=loss[0] if loss else "loss",
                grad_norm=_number(_NORM.search(bar.postfix)),
                lr=_number(_RATE.search(bar.postfix)),
                step_s=bar.step_s,
                since_s=bar.since_s,
            ),
        )

    def _whole(self, bar: _Bar) -> int | None:
        """The bar's end as the run's; 0 (no plan) once it began anew after it, or bars of two
        lengths came to theirs: each is a pass over some data."""
        if bar.total and bar.n == bar.total:
            self._ends.add(bar.total)
        return 0 if self._passes or len(self._ends) > 1 else bar.total

    def _counted(self, bar: _Bar, loss: float | None) -> int:
        """The step of a bar without an epoch, over all passes of bars of its label and length."""
        if not bar.total:
            return bar.n
        total = bar.total
        alike = [one for one in self._loops.get(bar.label, ())
                 if abs(one.total - total) <= _ALIKE * total]  # fmt: skip
        loop = min(alike, key=lambda one: abs(one.total - total), default=None)
        if loop is None:
            loop = _Loop(total)
            if self._loops_held >= _LABELS:
                self._loops.clear()
                self._loops_held = 0
            self._loops.setdefault(bar.label, []).append(loop)
            self._loops_held += 1
        if loss is not None and bar.n == total:
            self._trained = total
        return loop.step(bar, loss)

    def _position(
        self, bar: _Bar, loss: float | None
    ) -> tuple[int | None, int | None, float | None]:
        """(step, planned, epoch) of a bar, the step over all epochs."""
        if _EPOCHS_ONLY.match(bar.label):
            return None, None, float(bar.n)
        if bar.total and (said := _OF_ALL_EPOCHS.search(bar.label)):
            return self._within(bar, bar.total, int(said[1]), int(said[2]))
        found = _EPOCH.search(bar.label) or _NUMBERED.match(bar.label)
        within = None if found or bar.samples else _POSTFIX_EPOCH.search(bar.postfix)
        if within is not None and bar.total:
            return self._within(bar, bar.total, int(within[1]), int(within[2] or 0))
        if found is None:
            if bar.samples:
                return None, None, None
            return self._counted(bar, loss), self._whole(bar), None
        counted = _COUNTED.search(bar.postfix) if bar.total and found[2] else None
        if counted is not None and (on := _counted_on(bar, found, int(counted[1]))) is not None:
            return on
        return self._of_epoch(bar, found)

    def _of_epoch(
        self, bar: _Bar, found: re.Match[str]
    ) -> tuple[int | None, int | None, float | None]:
        """The same of a bar whose label names its epoch."""
        number = int(found[1])
        if self._first_epoch is None:
            self._first_epoch = number
        if bar.total is None:
            return None, None, float(number)
        part = bar.n / bar.total if bar.total else 0.0
        if self._first_epoch > 1 or bar.samples:
            return None, None, number + part
        done = number - self._first_epoch
        planned = None
        if found[2] and self._first_epoch == 1 and int(found[2]) >= number:
            planned = int(found[2]) * bar.total
        return done * bar.total + bar.n, planned, done + part

    def _within(
        self, bar: _Bar, total: int, epoch: int, epochs: int
    ) -> tuple[int | None, int | None, float | None]:
        """The same where the epoch stands behind the bar: what it counts shows as the next begins,
        and until then no plan is told where there are several."""
        was, n, base = self._behind
        if epoch < was:
            base, n = 0, 0  # begun again
        elif 0 <= was < epoch and (bar.n < n or bar.n == n == total):
            base, self._passes = base + (epoch - was) * total, True
        self._behind = (epoch, bar.n, base)
        if base:
            planned = epochs * total or None
        else:
            planned = self._whole(bar) if epochs <= 1 or epoch > max(was, 1) else None
        return base + bar.n, planned, None
