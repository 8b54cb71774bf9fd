"""What launches cost that wait for one another, where the log shows that they do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.throughput import pace
from flatline.judging.timeline import usual
from flatline.model import Claim, LogCite

IDLING, BUSY = 0.5, 0.6
"""Of the power limit the GPU that draws most, and of the time the median one that something ran:
one at work draws most of its limit (an H200 under load 0.9, with nothing to do 0.11: the capture
of driver 590 in nvidia_gpu_exporter); one that waits between short kernels looks busy at little
power."""
RAN = ("gpu_engine_active_ratio", "gpu_utilization_ratio")
"""Whether anything ran on a GPU; a wait in a collective counts, so that what is left are gaps."""
GAPS, LITTLE = 0.8, 0.9
"""Of the time something ran on the busiest GPU, or on each: below the first the gaps take a fifth
of every step, which is much where the setting is known to be on; above the second all of them
together cost less than a tenth."""
ALIKE = 0.9
"""Of the busiest GPU's share the least busy one's: the setting is every rank's."""
SHOWN = 3
SLOWER, HEAD, LEAST, FEWEST = 1.3, 400, 10, 3
"""Times what a log tells that the same work took elsewhere, which is far more than repeats differ
by; lines in which that is looked for, and steps of this run and of another that is shown."""
_ELSEWHERE = re.compile(
    r"(?i)\b(?:baseline|previous(?:ly)?|last (?:week|month|run|time)|usual(?:ly)?|normally"
    r"|without)\b[^\n]{0,100}?(?<![\w.])(\d{1,6}(?:\.\d{1,6})?) ?(ms|s|sec)"
    r"(?: ?/ ?| per )(?:step|it|iter(?:ation)?)\b"
)
_SHOWN_LOG = re.compile(
    r"(?:[\w.@:~/ ()\[\]-]{1,120})?[$#%>] +(?:sudo +)?(?:tail|head|grep|cat|sed|awk) (?=.*\w\.\w)"
)
"""A command of a shell that shows a file, in which the lines of another run stand."""
SHOWN_LINES = 20
_TAKEN_AWAY = re.compile(
    r"(?:unset|-u) (?:CUDA|HIP)_LAUNCH_BLOCKING|(?:LAUNCH_BLOCKING|SERIALIZE_KERNEL)=0"
)


@dataclass(frozen=True, slots=True)
class Launches:
    """
    Lines that show the setting, and what it costs: a claim that shows it, nothing known (None),
    or nothing to speak of (`cheap`).  `gaps`: it is shown by gaps on every GPU; `told`: by what
    the log says that the same took elsewhere.
    """

    said: tuple[LogCite, ...]
    costs: Claim | None = None
    gaps: bool = False
    cheap: bool = False
    told: bool = False


def launches(facts: Facts) -> Launches | None:
    """None where the log does not show the setting, or no step is timed."""
    return facts.memo("launches", _launches)


def _launches(facts: Facts) -> Launches | None:
    said = tuple(m.cite for m in facts.tagged("launch-blocking") if m.attempt == facts.last.n)
    if (known := pace(facts)) is None and (found := _than_shown(facts)) is not None:
        return found
    if not said:
        return None
    if known is None:
        costs = _than_told(facts)
        return None if costs is None else Launches(said, costs, told=True)
    begins, ends = map(int, known.span)
    window = f"[{max(1, int(ends - begins))}s]"
    found = _gaps(facts, said, window, ends)
    if found is not None and found.gaps:
        return found
    return _power(facts, said, window, ends) or found or Launches(said)


def _than_told(facts: Facts) -> Claim | None:
    """That steps take far longer than the log says, before the first of them, that they took
    without the setting or at another time."""
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    span = track.of_attempt(facts.last.n)
    each = [track.step_s[i] for i in span if isfinite(track.step_s[i])]
    first = track.lines[span[0]]
    if len(each) < LEAST or first < 2:
        return None
    begin = max(1, first - HEAD)
    for line, text in enumerate(facts.lines(track.source, begin, first - begin), begin):
        if found := _ELSEWHERE.search(text):
            seconds = float(found[1]) / (1e3 if found[2] == "ms" else 1)
            if 0 < seconds * SLOWER <= median(each):
                said = f"A step takes {median(each):.3g} s, and by the log's own words took"
                cites = LogCite(track.source, line, text), facts.point(track, span[-1]).cite
                return claim(f"{said} {seconds:.3g} s otherwise", *cites)
    return None


def _than_shown(facts: Facts) -> Launches | None:
    """That steps take far longer than in another run's log, which a shell shows above them; the
    setting stands above both, or between them, and is not taken away."""
    track, n = facts.main_track(facts.last.n), facts.last.n
    other = range(0) if track is None or n == 0 else track.of_attempt(n - 1)
    if track is None or not other or len(other) > SHOWN_LINES:
        return None
    own = track.of_attempt(n)
    shown, ends, first = (track.lines[i] for i in (other[0], other[-1], own[0]))
    command = LogCite(track.source, shown - 1, facts.text(track.source, shown - 1))
    if shown < 2 or ends - shown > SHOWN_LINES or not _SHOWN_LOG.match(command.text):
        return None
    told = [m.cite for m in facts.tagged("launch-blocking")
            if m.cite.source == track.source and m.cite.line < first]  # fmt: skip
    if not told or any(shown <= cite.line <= ends for cite in told):
        return None  # or it is the other run's
    since = facts.lines(track.source, told[-1].line + 1, first - told[-1].line - 1)
    took = [[track.step_s[i] for i in part if track.step_s[i] > 0] for part in (own, other)]
    few = len(took[0]) < LEAST or len(took[1]) < FEWEST
    if few or any(map(_TAKEN_AWAY.search, since)):
        return None
    slow, fast = map(median, took)
    if slow < SLOWER * fast:
        return None
    text = f"A step takes {slow:.3g} s, and {fast:.3g} s in the log that is shown above"
    cites = (facts.point(track, part[-1]).cite for part in (other, own))
    return Launches((told[-1],), claim(text, command, *cites), told=True)


def _gaps(facts: Facts, said: tuple[LogCite, ...], window: str, time: float) -> Launches | None:
    """By how long something ran on the busiest GPU and the least busy one."""
    signal = next(filter(facts.measured, RAN), None)
    if signal is None:
        return None
    ran = f"avg_over_time({signal}{window})"
    most = usual(facts, ran, time, "of the time something ran, the busiest GPU", "max({})")
    least = usual(facts, ran, time, "of the time something ran, the least busy GPU", "min({})")
    if most is None or least is None:
        return None
    if most.value < GAPS and least.value >= ALIKE * most.value > 0:
        text = (
            f"Steps went on and something ran on the busiest GPU {most.value:.0%} of the time, on"
            f" the least busy one {least.value:.0%}"
        )
        return Launches(said, claim(text, most, least), gaps=True)
    cheap = signal == RAN[0] and least.value >= LITTLE
    return Launches(said, cheap=True) if cheap else None


def _power(facts: Facts, said: tuple[LogCite, ...], window: str, time: float) -> Launches | None:
    """By the power that is left unused on GPUs that look busy; a GPU that draws its power runs
    long kernels.  None where it was not measured."""
    needed = ("gpu_power_watts", "gpu_power_limit_watts", "gpu_utilization_ratio")
    if not all(map(facts.measured, needed)):
        return None
    drawn = (
        f"avg_over_time(gpu_power_watts{window}) / avg_over_time(gpu_power_limit_watts{window})"
    )
    most = usual(facts, drawn, time, "of its power limit, the GPU that draws most", "max({})")
    ran = f"avg_over_time(gpu_utilization_ratio{window})"
    busy = usual(facts, ran, time, "of the time something ran, the median GPU")
    if most is None or busy is None:
        return None
    if most.value >= IDLING:
        return Launches(said, cheap=True)
    if busy.value < BUSY:
        return None
    text = (
        f"Something ran on the median GPU {busy.value:.0%} of the time, and yet none drew more"
        f" than {most.value:.0%} of its power limit"
    )
    return Launches(said, claim(text, busy, most))
