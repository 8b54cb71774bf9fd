"""What lines of hand-written loops say of how long a step took, of its parts, and of its speed."""

from __future__ import annotations

import re
from typing import NamedTuple

NUMBER = (
    r"(?>[-+]?(?:0{2,8})?(?:nan|inf(?:inity)?)\b(?!\s*[:=?]\s*(?:no|false|0)\b)"
    r"|[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]{1,3})?)"
)
_DATA = re.compile(
    r"(?<![\w/])(?:t_data|(?:time/)?data|data[ _]?time|data[ _]?load(?:ing|er)?(?:[ _]?time)?|load"
    r"[ _]time|wait[ _]data|(?:data|(?:data[ _]?)?loader|input|batch)[ _]wait(?:[ _]time)?)"
    r"(?:_(?:ms|s(?:ec)?))?\s{0,3}(?:[:=]\s{0,3})?(" + NUMBER + r") ?(s|ms|sec)?(?![\w/%])"
)
_OWN_UNIT = re.compile(r"_(ms|s|sec)[\s:=]")
_SYNC = re.compile(
    r"(?<![\w/])(?:wait[ _(]|exposed[ _]|t_)?(?:(?:grad(?:ient)?[ _-]?)?(?:sync|all[ _-]?reduce)"
    r"|comm(?:unication)?|(?:nccl|collectives?|barrier)(?=[ _](?:time|wait)|_m?s\b)"
    r"|(?<=wait[ _(])(?:nccl|collectives?|barrier))"
    r"\)?(?:[ _](?:time|wait))?(?:_(?:ms|s(?:ec)?))?"
    r"\s{0,3}(?:[:=]\s{0,3}|\s{0,5})(" + NUMBER + r") ?(s|ms|sec)?(?![\w/%])"
)
_TIME = re.compile(
    r"(?<!\w)((?:step|batch|iter(?:ation)?)[ _]time(?:_ms|_s(?:ec(?:onds)?)?)?"
    r"|(?:step|train|iter)_(?:ms|s(?:ec(?:onds)?)?)"
    r"|timing_s/step|step_avg|dt|(?:time|t)/(?:it(?:er)?|step)|time|(?:step|total|iter|batch)"
    r"(?=[ =:]{1,3}(?:[0-9]+\.[0-9]+ ?s|[0-9]+(?:\.[0-9]+)? ?ms)))"
    r"\s*[:=]?\s*([0-9]{1,12}(?:\.[0-9]+)?)\s*(ms|s|sec)?(?![\w.:])"
)
_EACH = re.compile(
    r"(?<![\w.])([0-9]{1,12}(?:\.[0-9]+)?) ?(ms|s|sec)/(?:step|it(?:er(?:ation)?)?)(?!\w)"
)
_EACH_OF = re.compile(
    r"(?<![\w/])(ms|s|sec)/(?:batch|step|it(?:er(?:ation)?)?)\s{0,3}[:=]?\s{0,3}"
    r"([0-9]{1,12}(?:\.[0-9]+)?)(?![\w.])"
)
OTHERS = r"loss|lr|rate|norm|grad|mem\w*|epoch|acc\w*|ppl|scale"
_OF_ANOTHER = re.compile(rf"(?:{OTHERS})\W{{1,3}}$")
"""The word before a number, whose value it is: the unit behind is of the next one."""
_BARE = re.compile(
    r"(?:^|[|(,;0-9])\s{0,12}(?<![\w.])([0-9]{1,12}(?:\.[0-9]+)?) ?ms\s{0,4}[|,;]?\s{0,8}"
    r"[0-9][0-9,.]{0,20}[km]?\s?(?:tok(?:en)?s?|samples?|seqs?|im(?:a)?ge?s?)/s"
)
"""Milliseconds without a name right before the throughput they make (llm.c prints them so)."""
_METERS = re.compile(
    r"(?<!\w)time[\s:=]{1,3}([0-9]+\.[0-9]+)(?:\s?\(\s{0,3}[0-9.]{1,12}\))?\W{1,4}"
    r"data[\s:=]{1,3}([0-9]+\.[0-9]+)(?![\w.])"
)
"""The meters of a step's time and of what of it the data took, side by side; a mean in brackets
may stand behind each (the ImageNet example of PyTorch)."""


_INSIDE = re.compile(r"\s{0,3}[(\[{][^()\[\]{}]{0,80}")
"""From a step's time to one of its parts, which brackets right behind it list."""

_SPEED = re.compile(
    r"(?<![\w/])(tok(?:ens)?/s(?:ec)?|tok(?:ens)?_per_s(?:ec(?:ond)?)?|tps|wps|img/s"
    r"|samples/s(?:ec)?|samples_per_s(?:ec(?:ond)?)?"
    r"|(?:it(?:er)?|steps?)(?:/s(?:ec)?|s?_per_sec(?:ond)?))(?:/(?:gpu|device|chip))?"
    r"\s*[:=]?\s*((?>[0-9][0-9,]*(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?))([km]?)(?!\w)"
    r"|(?<![.,/0-9])((?>[0-9][0-9,]*(?:\.[0-9]+)?))([km]?) ?"
    r"((?:tok(?:ens)?|img|samples|it(?:er)?s?|steps?)/s(?:ec)?)(?:/(?:gpu|device|chip))?"
    r"(?!\w| ?[:=] ?[0-9])"
)
_NOT_OF_SPEED = re.compile(rf"(?:{OTHERS}|time|dt|mfu|tflops?|_ms|_s)\W{{1,3}}$")
"""A word right before a number, which is its own: the unit behind is the next number's name."""
_NAMED = re.compile(
    r"(?<![\w/])(?!(?:speed|through?put|tput|perf|avg|average|mean|at|global|local)\W)"
    r"[a-z][\w/]{0,24}(?: ?[:=] ?| )$"
)
"""A word that names the number right behind it, unless it is one of speed."""
_NEXT = re.compile(r" {1,3}[0-9]")


class Seconds(NamedTuple):
    """Where the number stands, and by what it is divided."""

    match: re.Match[str]
    group: int
    over: float = 1.0


def step_s(low: str) -> Seconds | None:
    """Seconds of a step: the value has a unit, or its name is that of a step's time."""
    for found in _TIME.finditer(low):
        if found[3] or found[1] not in ("time", "dt"):
            return Seconds(found, 2, 1e3 if "ms" in (found[3], found[1][-2:]) else 1.0)
    each = _EACH.search(low)
    if each and not _OF_ANOTHER.search(low, max(0, each.start() - 24), each.start()):
        return Seconds(each, 1, 1e3 if each[2] == "ms" else 1.0)
    if each := _EACH_OF.search(low):
        return Seconds(each, 2, 1e3 if each[1] == "ms" else 1.0)
    if bare := _BARE.search(low):
        return Seconds(bare, 1, 1e3)
    meters = _METERS.search(low)
    return Seconds(meters, 1) if meters else None


def data_s(low: str) -> Seconds | None:
    """Seconds of a step spent waiting for data."""
    meters = _METERS.search(low)
    return Seconds(meters, 2) if meters else _part_s(low, _DATA)


def sync_s(low: str) -> Seconds | None:
    """Seconds of a step spent in collectives, waiting for others included."""
    return _part_s(low, _SYNC)


def _part_s(low: str, part: re.Pattern[str]) -> Seconds | None:
    """Seconds of a step spent so: with a unit, or in that of a step time which has none. A bare
    `time` is a step's where the part is called a time as well; what is called one and has no unit
    beside a step's seconds is of seconds, as clocks are read; waits are of the step's own unit."""
    found, whole = part.search(low), _TIME.search(low)
    timed = found is not None and "time" in found[0]
    unsure = {"dt"} if timed else {"dt", "time"}
    own = _OWN_UNIT.search(found[0]) if found else None
    shared = whole and (whole[3] if part is _SYNC else _of_brackets(low, found, whole))
    unit = found and (found[2] or (own and own[1]) or shared)
    bare = whole and not whole[3] and whole[1] not in unsure and whole[1][-3:] != "_ms"
    clocked = whole is not None and whole[3] in ("s", "sec")
    if found is None or not (unit or bare or (clocked and (timed or _meter(found, whole)))):
        return None
    return Seconds(found, 1, 1e3 if unit == "ms" else 1.0)


def _of_brackets(low: str, part: re.Match[str] | None, whole: re.Match[str]) -> str | None:
    """The unit of the whole, where the part stands in the brackets that list its parts:
    `step_ms 805.9 (data_wait 498.9 fwd 92.5 bwd 173.1)`."""
    if part is None or not _INSIDE.fullmatch(low, whole.end(), part.start()):
        return None
    if float(part[1]) > float(whole[2]):
        return None  # `(data 8 workers)`
    return whole[3] or ("ms" if whole[1][-3:] == "_ms" else None)


def _meter(part: re.Match[str], whole: re.Match[str] | None) -> bool:
    """Whether it is `Data: 0.011` beside `Time: 1.168s`, as timm prints it: a part of it, with
    decimals."""
    named = part[0].startswith(("data:", "data ")) and "." in part[1]
    return named and whole is not None and float(part[1]) <= float(whole[2])


def named_speed(low: str) -> re.Match[str] | None:
    """The first number that a unit of speed names, or stands behind, and nothing else names: in
    `data 0.011 samples/s 39.2` the unit is the name of the number behind it."""
    at = 0
    while found := _SPEED.search(low, at):
        above = max(0, found.start() - 24), found.start()
        another = _NOT_OF_SPEED.search(low, *above) or (
            _NAMED.search(low, *above) and _NEXT.match(low, found.end())
        )
        if found[1] or not another:
            return found
        at = found.end(4)
    return None
