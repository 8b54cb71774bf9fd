"""
How much work a step has, where a loop prints it: sequence length, batch size, crop; and how evenly
its experts share it.
"""

from __future__ import annotations

import re

from flatline.facts import Facts, Track

MOST_POINTS = 600
"""Lines that are read anew; a curriculum changes a handful of times."""
STAGES = 12
LARGER = 1.25
"""Times the first one: less is another draw of what is packed or generated.  A judgement."""
_MEANS = re.compile(
    r"^(?:avg|mean|average)\b|seq\w* ?len|context|batch|response|completion|output|generation"
    r"|prompt|tok(?:en)?s?(?: per |/)(?:sample|example|seq|doc|record|item|batch|micro|step)"
)
"""What is packed, padded or generated may be another in each step; a count of frames so far is no
size."""
_SIZE = re.compile(
    r"(?<![\w.])((?:max_?|avg_?|mean_?|average[_ ]?|cur(?:rent)?[_ ]?|global_)?"
    r"(?:seq(?:uence)?(?:[_ -]?len(?:gth)?)?(?:/(?:mean|avg))?"
    r"|(?:response|completion|output|generation|prompt)s?[_ /](?:mean_|avg_)?len(?:gth)?s?"
    r"(?:/(?:mean|avg))?|(?:context|ctx|window)(?:[_ -]?len(?:gth)?)?|crop|bucket"
    r"|(?:crop|patch|chunk|segment|clip|video|sample)[_ -]?(?:size|len(?:gth)?|tokens|atoms"
    r"|frames)"
    r"|(?:num[_ ]|n[_ ])?(?:rollout|autoregressive|ar)[_ -]?(?:steps?|len(?:gth)?|horizon)"
    r"|rollout(?=[\"']?\s{0,3}[=: ]\s{0,8}[1-9]\d{0,3}(?![\w.,/%]|,? ?m?s\b))"
    r"|(?<=max_)len(?:gth)?|residues|patches|horizon|unroll|tokens_per_(?!s\b|\w{0,8}sec)\w{1,12}"
    r"|tok(?:en)?s?/(?:sample|example|seq|doc|record|item)|token[_ ]len(?:gth)?"
    r"|(?:num[_ ]|n[_ ])?frames"
    r"|(?:max|num|n)[_ ](?:residues|atoms|templates|recycl\w{1,10}))"
    r"|(?:image|img|input)[_ ]?(?:size|res(?:olution)?)|resolution|msa(?:[_ ](?:depth|size|seqs))?"
    r"|(?:global[_ ]|micro[_ ]|local[_ ]|train[_ ])?batch[_ ]?size)(?:[ _](?:mean|avg))?"
    r"(?:[\"']?\s{0,3}[=:]\s{0,8}|\s{1,3})"
    r"([0-9](?:[0-9]|,(?=[0-9]{3})){0,11}(?:\.[0-9]{1,9})?)(?![\w.])",
    re.IGNORECASE,
)
"""Means of what was packed or padded are fractions; rows of JSON quote their names.  A rollout by
itself is the steps that a forecast feeds back; what it took, or its share, is none."""
_CONSUMED = re.compile(
    r"consumed samples:\s+(\d{1,15})\b.{0,20}?\bconsumed tokens:\s+(\d{1,18})\b"
)
"""Of Megatron-DeepSpeed, whose curriculum makes the samples longer."""


_BALANCE = re.compile(
    r"(?i)(?<![\w.])(?:"
    r"(?:max[ _])?(?:expert|router|moe)s?[ _/](?:load|imbalance|balance|aux|lb)\w{0,20}"
    r"(?:[ _/](?:max/mean|max_over_mean|imbalance|ratio|loss))?|moe[ _]loss|load[ _]imbalance"
    r"|max[_ ]?vio(?:lation)?"
    r"|(?:(?:(?:aux|router|moe)[_ ])?(?:load[_ ])?balanc\w{1,4}|lb)[ _]loss"
    r")[\"']?\s{0,3}[=: ]\s{0,8}([0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]{1,3})?)(?![\w.])"
)
"""Of routers: most loaded expert beside the mean, and losses that even them out.  A helper's loss
of another kind says nothing of the work."""


def printed_balance(facts: Facts, track: Track) -> tuple[list[int], list[float]] | None:
    """Points and values of the first such number that the step lines print."""
    span = track.of_attempt(facts.last.n)
    told = [
        (index, float(found[1]))
        for index in _sampled(track, span)
        if (found := _BALANCE.search(facts.point(track, index).cite.text)) is not None
    ]
    return ([index for index, _ in told], [value for _, value in told]) if told else None


def _sampled(track: Track, span: range) -> list[int]:
    """Points whose lines are read anew.  Those with a loss and those without are thinned apart:
    where bars and dicts come in turns, one stride over both may meet the one kind alone."""
    kinds = [[i for i in span if bool(track.has_loss[i]) is kind] for kind in (True, False)]
    return sorted(i for kind in kinds for i in kind[:: max(1, len(kind) // MOST_POINTS)])


def printed_sizes(facts: Facts, track: Track) -> list[tuple[str, list[int], list[float]]]:
    """(name, points, values) of every size that the step lines print and that changes."""
    span = track.of_attempt(facts.last.n)
    found: dict[str, tuple[list[int], list[float]]] = {}
    before: tuple[int, int] | None = None
    for index in _sampled(track, span):
        text = facts.point(track, index).cite.text
        if told := _CONSUMED.search(text):
            samples, tokens = int(told[1]), int(told[2])
            if before is not None and samples > before[0]:
                at, values = found.setdefault("tokens of a sample", ([], []))
                at.append(index)
                values.append(round((tokens - before[1]) / (samples - before[0]), 1))
            before = samples, tokens
        for name, value in _SIZE.findall(text):
            at, values = found.setdefault(" ".join(re.split(r"[_ -]", name.lower())), ([], []))
            at.append(index)
            values.append(float(value.replace(",", "")))
    return [
        (f"the {name}", *read)
        for name, read in found.items()
        if len(set(read[1])) > 1 and (_MEANS.search(name) or len(set(read[1])) <= STAGES)
    ]


def sized_track(facts: Facts, track: Track) -> Track:
    """The track of the same log whose lines print a size that changes, where those of `track` do
    not: a loop may print several lines of a step."""
    beside = (t for t in facts.tracks if t.source == track.source and t is not track)
    return next((one for one in (track, *beside) if printed_sizes(facts, one)), track)


def resized(facts: Facts) -> str | None:
    """A size that the steps print and that grew: longer steps have more to do then."""
    track = facts.main_track(facts.last.n)
    sized = [] if track is None else printed_sizes(facts, sized_track(facts, track))
    return next((name for name, _, values in sized if max(values) >= LARGER * values[0] > 0), None)
