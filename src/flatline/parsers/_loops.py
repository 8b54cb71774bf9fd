"""
What the shape of a hand-written step line says: where in it stand step, plan, epoch and losses.

Logs repeat one shape with other numbers.  `learn` reads a shape once, carefully, and gives the
slots its numbers stand in; a `Slot` then takes a value out of any line of that shape.  A line is
cut into text and numbers alternately (`cut`); its shape is the text alone.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from dataclasses import dataclass, replace

from flatline.parsers._durations import NUMBER as _NUMBER
from flatline.parsers._durations import Seconds, data_s, named_speed, step_s, sync_s
from flatline.parsers._loss_names import ADVERSARY, BESIDE, HELD_SMALL, MEL

_FOREIGN = re.compile(
    r"'(?:eval_\w{0,40})?loss(?:/policy_avg)?': |'(?:train|eval)_runtime': "
    r"|%(?:\|| +[0-9]+/[0-9]+ \[)|[━╸█](?!.{0,200}\bstep: [0-9]+ loss: [0-9])"
    r"|:::MLLOG|\bcompleted step: "
    r"|(?:metrics|summary|average loss) after step|TrainOutput\(|/\? \[[0-9:]+<"
    r"|elapsed time per iteration|consumed samples|skipped iterations"
    r"|iter time \(s\):|\[[=>.]{3,}\]|s/(?:step|epoch) - |^\s*[0-9]+/(?:[0-9]+|Unknown) +- "
    r"|it \[[0-9:]+, |, global step [0-9]+: |OVERFLOW!|Training epoch [0-9]+, iteration"
    r"|loss at (?:iteration +[0-9]+|the end)[^|]*\||[Pp][Pp][Oo][ _][Ee]p|^\s*- [0-9]+m?s - "
    r"|Invalid loss, term"
)
"""Lines that other formats read."""
_NOT_A_LOG = re.compile(
    r"Namespace\(|Arguments\(|Config\(|config\.py|[Cc]onfig(?:uration)?\b\W{0,2}[:=]"
    r"|\bh(?:yper)?params?\b|\.{4,}|(?:^|\s)--[a-z]|^\s*\++ |^\s*wandb:|usage:|^\s*#|^\s*File \""
    r"|^\s*(?:def|class|return|assert|raise|import|from|if|for|while|print|self|logger)\b[ .(]"
    r"|\bf['\"]|\{[a-z_.]+(?:[:!][^ }]*)?\}|^\s{2,}[a-z_][\w.]* = [a-z_][\w.]*\("
)
_CHECKPOINT = re.compile(r"check ?point|ckpt|\bresum|\brestor")

_PREPARES = re.compile(
    r"\b(?:caching|tokeni[sz]ing|pre-?processing|downloading|encoding|extracting|indexing"
    r"|quanti[sz]ing|calibrating|deduplicating|filtering) "
)
"""What counts up before any training does."""

_AFTER_LOSS = re.compile(
    r"([\w/@-]*)['\"]?(?: (?:train|value|total|\(batch\)))?(?:\s*(?:[:=]|\bis\b)\s*|\s+)[(\[]?\s*"
    r"(?:[a-z.]{0,12}\(\[?)?(" + _NUMBER + r")(?![\w%])"
)
_AT_STEP = re.compile(
    r"()\s+(?:at|after|on|for)\s+(?:global |training )?(?:step|iter(?:ation)?|epoch|batch)\s*"
    r"#?[0-9]{1,12}\s*[:=]\s*(" + _NUMBER + r")(?![\w%])"
)
_NAMED_LOSS = re.compile(
    r"(?<![\w/@.-])((?:train[_/])?(?:dice_?)?(?:mse|rmse|mae|nll|ctc|bce|ce|elbo|huber))"
    r"(?: *[:=] *| +)(" + _NUMBER + r")(?![\w%])"
)
"""Losses by what they are: read where no word of the line is \"loss\"."""
_COST = re.compile(
    r"(?<![\w/.-])(?<!time )(cost)(?:()\s*[:=]\s*([0-9]{1,12}\.[0-9]{5,}|nan)(?![\w%])"
    r"(?! ?(?:ms|s(?:ec(?:onds)?)?|usd|eur)\b)"
    r"| (after|at) (?:iteration|epoch|step) +[0-9]{1,12} *: *(" + _NUMBER + r")(?![\w%]))"
)
"""A cost in so many decimals, or at a step: in fewer it is what time one took."""
CONFIG_TAIL = re.compile(
    r"[_/]?(?:scal|fn|func|weight|type|coef|mask|alpha|beta|less|limit|thresh|interval|every|mode"
    r"|ratio|delta|diff|step|freq|history|curve|smooth|spike|window|aware)"
)
_HELD_OUT = {"val", "valid", "validation", "validate", "eval", "evaluation", "test", "dev"}
SUMMARY = {"best", "lowest", "min", "minimum", "target", "prev", "previous", "initial", "final"}
SUMMARY |= {"expected", "max", "maximum"}
NO_MODELS = {"packet", "packets", "stop", "weight"}
"""What else is lost: by networks, at exchanges, by patients."""
ASIDE = {"aux", "auxiliary", "moe", "z", "balance", "balancing", "router", "reg", "mtp"}
_MAIN = {"train", "training", "total", "lm", "step", "batch", "average", "avg", "mean", "running"}
_SIDES = {"gen", "disc", "generator", "discriminator", "adv", "actor", "critic", "policy", "kl"}
_AVERAGE = {"average", "avg", "mean", "total", "set", "epoch"}
_EVAL_HEAD = re.compile(r"(?:^|[^a-z])(?:val|valid(?:ation)?|eval(?:uation)?|test|dev)[^a-z]*$")
UNFALLING = re.compile(
    r"pg|polic|actor|critic|value|kl|entrop|ppo|adv|(?:^|[_/ ])[dg](?:$|[_/ ])|disc|gen|surr|vf"
)
REWARDS = (
    "reward",
    "critic/",
    "advantage",
    "ep_rew",
    "ep_ret",
    "episode_return",
    "pg_loss",
    "ppo_kl",
)
_INTEGER = r"([0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,12})"
_COUNT = _INTEGER + r"(?!\w|,[0-9]{3}|\.[0-9]*[1-9])(?:\.0*)?"
_OF = r"(?: *(?:/|of|out of) *" + _INTEGER + r"(?![\w.]))?"
_STEP = re.compile(
    r"(?<![\w./-])(?:(global|train(?:ing)?|optim(?:izer)?|current)[ _/]?)?"
    r"(step|iter(?:ation)?|(?<!total )(?<!num )(?<!max )steps(?= ?:)"
    r"|update|num_updates"
    r"|it(?= ?[:=]| {1,8}[0-9]{1,12}(?:/| {0,2}[|,:;]? +(?:[a-z]{1,8}[ _/])?loss\b)))"
    r"(?: *[:=#] *#?| +#?)\[? *"
    + _COUNT + r"(?! ?m?s(?:ec)?\b)" + _OF
)  # fmt: skip
_PLANNED = re.compile(
    r"(?<!\w)(?:max|total|num|planned)_(?:train_)?(?:steps|iters|iterations)(?: *[:=] *| +)"
    + _INTEGER
    + r"(?![\w.])"
)
_BATCH = re.compile(r"(?<![\w./-])batch(?:_idx)?(?: *[:=#] *| +)\[? *" + _COUNT + _OF)
_BATCHES = re.compile(r"(?<![\w.])([0-9]{1,12}) */ *([0-9]{1,12}) batches")
_EPOCH = re.compile(
    r"(?<![\w./-])(?:epoch|ep(?=[ :=#]{1,3}[0-9]{1,9}(?:/[0-9]{1,9})?[\] ,|:]{1,4}"
    r"(?:it(?:er(?:ation)?)?|step|batch)\b))(?: *[:=#] *| +)\[? *([0-9]{1,9}(?:\.[0-9]+)?)(?!\w)"
    r"(?: *(?:/|of) *([0-9]{1,9}))?"
)
_NESTED = re.compile(
    r"(?:\b(epoch) ?(?:\(train\))?|\btrain(?:ing)?):? *\[? *([0-9]{1,9})(?:/([0-9]{1,9}))?"
    r" *\]?:? *\[ *([0-9]{1,12}) */ *([0-9]{1,12})( \([ 0-9.]{1,6}%\))?"
)
_TWO = re.compile(r"(?:^|\s)()\[([0-9]{1,9})/([0-9]{1,9})\] ?\[([0-9]{1,12})/([0-9]{1,12})\]()")
_INNER = re.compile(
    r"(?:^|[\s\]])(ep|epoch) ([0-9]{1,9})(?:/([0-9]{1,9}))?[,:|]? +([0-9]{1,12})/([0-9]{1,12})()"
    r"[ ,|:]{1,4}(?:train[ _/])?loss\b"
)
_PAIR = re.compile(r"(?:^|[\s:])\[ *([0-9]{1,9}), +([0-9]{1,12})\] +loss")
_ONE = re.compile(r"(?:^|\s)\[ *([0-9]{1,12}) */ *([0-9]{1,12}) *\]")
_PLACE_IN_CODE = re.compile(r"(?<=\| )[\w.<>]{1,80}:[\w<>]{1,80}:[0-9]{1,9}(?= - )")
"""Where a line was logged, as loguru puts it before the message: a function may be `step`."""
_CLU = re.compile(r"(?:logging|metrics?)_writers?\.py:[0-9]+\] \[([0-9]{1,12})\]()")
_HEADER = re.compile(r"\[(?:step|batch)=([0-9]{1,12})/([0-9]{1,12})[^\]]{0,80}\]:?\s*$")
_BELOW = re.compile(
    r"\s*(?:train )?(?:train/)?(loss/train/total|crossentropyloss|ce loss)[:=] *(" + _NUMBER + ")"
)
_NON_FINITE = re.compile(r"\b(nan|inf)\b(?: train(?:ing)?)? loss\b")
_BARE = re.compile(r"[\s*!]*(?:error: |warning: )?loss is ([-+]?(?:nan|inf))\b")

_NORM = re.compile(
    r"(?<!\w)(?:(?:total_|global_)?grad(?:ient)?[ _]?norm|gnorm|norm|grad)\s*[:=]?\s*("
    + _NUMBER
    + r")(?!\w)"
)
_RATE = re.compile(r"(?<!\w)(?:lr|learning[ _]rate)\s*[:=]?\s*(" + _NUMBER + r")(?!\w)")
_CUT = re.compile(r"([0-9.]+)")
_DIGITS = 40
"""A longer run of digits is no number that a loop prints."""


def cut(low: str) -> list[str]:
    """Text and numbers alternately, text first; the shape is every other one."""
    return _CUT.split(low)


@dataclass(frozen=True, slots=True)
class Slot:
    """Where in a cut line a number stands, and what it is multiplied by and divided by; or the
    value that every line of the shape has there (a NaN is text)."""

    first: int
    last: int
    factor: float = 1.0
    over: float = 1.0
    always: float | None = None

    def value(self, parts: list[str]) -> float | None:
        """The number, or None where what stands there is none after all."""
        if self.always is not None:
            return self.always
        text = parts[self.first]
        if self.last > self.first:
            text = "".join(parts[self.first : self.last + 1]).replace(",", "")
        try:
            return float(text) * self.factor / self.over if len(text) <= _DIGITS else None
        except ValueError:
            return None

    def count(self, parts: list[str]) -> int | None:
        """The number, where it is whole."""
        value = self.value(parts)
        return int(value) if value is not None and value.is_integer() else None

    def place(self, parts: list[str]) -> tuple[int, int, float, float] | None:
        """(from, to, factor, divisor) of the number; None where it is none or stands nowhere."""
        if self.always is not None or self.value(parts) is None:
            return None
        start = sum(map(len, parts[: self.first]))
        end = start + sum(map(len, parts[self.first : self.last + 1]))
        return start, end, self.factor, self.over


@dataclass(frozen=True, slots=True)
class Loss:
    name: str
    slot: Slot
    at: int
    held_out: bool
    rank: int
    falling: bool = True


@dataclass(frozen=True, slots=True)
class Position:
    """Where a line says how far it is. `own`: the counter is its epoch's; None: not said.
    `samples`: step and plan count samples of the epoch, which are no steps.  `bare`: a counter
    without a word, which an epoch's own line above may explain."""

    at: int
    step: Slot | None = None
    of: Slot | None = None
    epoch: Slot | None = None
    epochs: Slot | None = None
    own: bool | None = None
    samples: bool = False
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """What a line of one shape says. `kind`: "line", "eval" (its counter is the evaluation's),
    "header" and "below" (a step above, its loss in a line of its own), "bare" (a loss alone)."""

    kind: str
    position: Position | None = None
    train: Loss | None = None
    held_out: Loss | None = None
    norm: Slot | None = None
    rate: Slot | None = None
    step_s: Slot | None = None
    data_s: Slot | None = None
    sync_s: Slot | None = None
    speed: Slot | None = None
    speed_unit: str | None = None


class _Line:
    """A line in lower case, with the places of its numbers."""

    def __init__(self, low: str, parts: list[str]) -> None:
        self.low = low
        self._starts: list[int] = []
        at = 0
        for index, part in enumerate(parts):
            if index % 2:
                self._starts.append(at)
            at += len(part)

    def slot(
        self, found: re.Match[str], group: int, factor: float = 1.0, over: float = 1.0
    ) -> Slot | None:
        """The slot of a group that holds a number; None where it holds nothing."""
        text, start = found[group], found.start(group)
        if not text:
            return None
        if text[0] in "+-":
            factor, text, start = (-factor if text[0] == "-" else factor), text[1:], start + 1
        if (kind := text.lstrip("0")[:1]) and kind in "ni":  # padded with noughts: `0000nan`
            value = math.nan if kind == "n" else math.copysign(math.inf, factor)
            return Slot(0, 0, always=value)
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, start + len(text) - 1) - 1
        if first < 0 or self._starts[first] != start:
            return None
        return Slot(2 * first + 1, 2 * last + 1, factor, over)


# --- losses -------------------------------------------------------------------------------------


def _name_start(low: str, at: int) -> int:
    """Where the word that ends at `at` begins, 32 characters back at most."""
    start = at
    while start > max(0, at - 32) and (low[start - 1].isalnum() or low[start - 1] in "_/.-@"):
        start -= 1
    return start


def _words_before(low: str, start: int) -> list[str]:
    """The word before a loss's name, and the one before that where the first says little."""
    words = low[max(0, start - 24) : start].replace(": {", " ").split()[-2:]
    if len(words) == 2 and words[1] not in _AVERAGE | _HELD_OUT | _MAIN:
        words = words[1:]
    return [word.strip("([|,:") for word in words]


def _loss(line: _Line, at: int, after: re.Match[str], rewarded: bool) -> Loss | None:
    """The loss named at `at`; None where it is a summary or a setting."""
    slot = line.slot(after, 2)
    if slot is None or CONFIG_TAIL.match(after[1]):
        return None
    start = _name_start(line.low, at)
    name = line.low[start : at + 4] + after[1]
    before = _words_before(line.low, start)
    parts = {*re.split(r"[_/.@-]", name), *before}
    if parts & (SUMMARY | NO_MODELS):
        return None
    if before and before[-1] in _HELD_OUT | _MAIN | _SIDES:
        name = f"{before[-1]} {name}"
    aside = parts & ASIDE or (BESIDE in parts and line.low.count("loss") > 1)
    rank = 2 if aside else 0 if name == "loss" or parts & _MAIN else 1
    if before and before[-1] == "mel":
        name = f"mel {name}"
    falling = not (rewarded or UNFALLING.search(name))
    return Loss(name, slot, start, bool(parts & _HELD_OUT), rank, falling)


def _losses(line: _Line) -> list[Loss]:
    """Every loss of a line in order, at most 16."""
    low = line.low
    found: list[Loss] = []
    rewarded = any(word in low for word in REWARDS)
    at = low.find("loss")
    while at >= 0 and len(found) < 16:
        after = _AFTER_LOSS.match(low, at + 4) or _AT_STEP.match(low, at + 4)
        loss = _loss(line, at, after, rewarded) if after else None
        if loss is not None:
            found.append(loss)
        at = low.find("loss", at + 4)
    at = low.find("xent")
    if not found and at >= 0 and (after := _AFTER_LOSS.match(low, at + 4)):
        slot = line.slot(after, 2)
        if slot is not None:
            found.append(Loss("xent", slot, at, False, 0))
    if not found and (other := _COST.search(low)):
        slot = line.slot(other, 3 if other[3] else 5)
        if slot is not None:
            found.append(Loss("cost", slot, other.start(1), False, 0))
    if not found and (other := _NAMED_LOSS.search(low)) and not rewarded:
        slot = line.slot(other, 2)
        if slot is not None:
            found.append(Loss(other[1], slot, other.start(1), False, 0))
    sides = {side for loss in found for one in ADVERSARY.finditer(loss.name)
             for side in one.groups() if side}  # fmt: skip
    if sides >= {"d", "g"}:  # what they sum to falls no more than they do
        return [loss if MEL.search(loss.name) else replace(loss, falling=False) for loss in found]
    return found


def _chief(losses: list[Loss], held_out: bool) -> Loss | None:
    """The loss that speaks for the line; None where only side losses stand there."""
    wanted = [loss for loss in losses if loss.held_out == held_out and loss.rank < 2]
    return min(wanted, key=_speaks, default=None)


def _speaks(loss: Loss) -> tuple[int, bool, bool]:
    """How much a loss says of its line: what holds a policy or a code where it is says least."""
    return loss.rank, MEL.search(loss.name) is None, HELD_SMALL.search(loss.name) is not None


# --- positions ----------------------------------------------------------------------------------


def _nested(line: _Line) -> Position | None:
    shapes = (_NESTED, _TWO, _INNER) if "[" in line.low else (_INNER,)
    found = next(filter(None, (shape.search(line.low) for shape in shapes)), None)
    if found is None:
        return None
    epoch, epochs, n, of = (line.slot(found, group) for group in (2, 3, 4, 5))
    samples = bool(found[1] and found[6])
    return Position(found.start(), n, of, epoch, epochs, own=True, samples=samples)


def _counter(line: _Line, epoch: bool) -> Position | None:
    """The best counter that stands in the line."""
    best: re.Match[str] | None = None
    rank = 9
    for found in _STEP.finditer(line.low):
        this = 0 if found[1] == "global" else 1 if found[2] == "step" else 2
        if this < rank:
            best, rank = found, this
    if best is not None:
        whole = False if rank == 0 else None
        of = line.slot(best, 4)
        if of is None and (planned := _PLANNED.search(line.low)):
            of = line.slot(planned, 1)
        return Position(best.start(), line.slot(best, 3), of, own=whole)
    others = [(_BATCHES, True), (_CLU, False), (_ONE, None)]
    if epoch:
        others.append((_BATCH, True))
    for pattern, own in others:
        if seen := pattern.search(line.low):
            step, of, bare = line.slot(seen, 1), line.slot(seen, 2), pattern is _ONE
            return Position(seen.start(), step, of, own=own, bare=bare)
    return None


def _position(line: _Line) -> Position | None:
    if (found := _nested(line)) is not None:
        return found
    if "[" in line.low and (pair := _PAIR.search(line.low)):
        step, epoch = line.slot(pair, 2), line.slot(pair, 1)
        return Position(pair.start(), step, epoch=epoch, own=True)
    named = _EPOCH.search(line.low) if "ep" in line.low else None
    counter = _counter(line, named is not None)
    if named is None:
        return counter
    epoch, epochs = line.slot(named, 1), line.slot(named, 2)
    if counter is None:
        return Position(named.start(), epoch=epoch, epochs=epochs)
    at = min(counter.at, named.start())
    return Position(at, counter.step, counter.of, epoch, epochs, counter.own)


# --- whole lines --------------------------------------------------------------------------------


def learn(text: str, low: str, parts: list[str]) -> Shape | None:
    """What lines of this shape say; None where they say nothing of a training loop."""
    if _FOREIGN.search(text) or _NOT_A_LOG.search(text):
        return None
    low = _PLACE_IN_CODE.sub(lambda found: " " * len(found[0]), low)
    line = _Line(low, parts)
    if header := _HEADER.search(low):
        at = Position(header.start(), line.slot(header, 1), line.slot(header, 2), own=False)
        return Shape("header", at)
    if below := _BELOW.match(low):
        return _alone("below", below[1], line.slot(below, 2))
    losses = _losses(line)
    if not losses:
        return _without_loss(line)
    position = _position(line)
    if position is None:
        bare = _BARE.match(low)
        return _alone("bare", "loss", line.slot(bare, 1) if bare else None)
    first = min(position.at, losses[0].at)
    spoken = _CHECKPOINT.search(low) or _PREPARES.search(low)
    if spoken and spoken.start() < first:
        return None
    train, held_out = _chief(losses, held_out=False), _chief(losses, held_out=True)
    if train is None and held_out is None:
        return None
    if position.at == first and _EVAL_HEAD.search(low[max(0, first - 12) : first]):
        return Shape("eval", held_out=held_out or train)
    return _with_rates(line, position, train, held_out)


def _alone(kind: str, name: str, slot: Slot | None) -> Shape | None:
    return Shape(kind, train=Loss(name, slot, 0, False, 0)) if slot else None


def _without_loss(line: _Line) -> Shape | None:
    """A non-finite loss told in words, or torchvision's line of a model that logs none."""
    if found := _NON_FINITE.search(line.low):
        position, slot = _position(line), line.slot(found, 1)
        if position is None or position.step is None or slot is None:
            return None
        return Shape("line", position, Loss("loss", slot, found.start(), False, 0))
    if " eta:" in line.low and (nested := _nested(line)):
        return Shape("line", nested)
    return None


def _with_rates(
    line: _Line, position: Position, train: Loss | None, held_out: Loss | None
) -> Shape:
    norm, rate = (pattern.search(line.low) for pattern in (_NORM, _RATE))
    speed = named_speed(line.low)
    return Shape(
        "line",
        position,
        train,
        held_out,
        norm=line.slot(norm, 1) if norm else None,
        rate=line.slot(rate, 1) if rate else None,
        step_s=_seconds(line, step_s(line.low)),
        data_s=_seconds(line, data_s(line.low)),
        sync_s=_seconds(line, sync_s(line.low)),
        speed=_speed(line, speed) if speed else None,
        speed_unit=_speed_unit(speed[1] or speed[6]) if speed else None,
    )


def _seconds(line: _Line, found: Seconds | None) -> Slot | None:
    return None if found is None else line.slot(found.match, found.group, over=found.over)


def _speed(line: _Line, found: re.Match[str]) -> Slot | None:
    thousand = {"": 1.0, "k": 1e3, "m": 1e6}[found[3] or found[5] or ""]
    return line.slot(found, 2 if found[2] else 4, thousand)


def _speed_unit(name: str) -> str:
    if name.startswith("tok") or name in ("tps", "wps"):
        return "tokens/s"
    return "images/s" if name.startswith("img") else "samples/s"
