"""
Which process a signal ended first, and whether that signal was the cause or the clean-up.

A launcher that loses one rank ends the others: with SIGTERM, then SIGKILL for those that do not
answer.  So a SIGKILL is clean-up where a failure of another kind stands before it, and a SIGABRT
is an echo where the same rank reported a timeout or an exception first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from flatline.facts import Facts
from flatline.judging.all_aborted import unheard
from flatline.judging.claims import distinct, number, same_rank
from flatline.judging.crashes import failures
from flatline.judging.described import above_its_log
from flatline.judging.echoes import echoes_of
from flatline.judging.killed_earlier import killed_earlier, short_earlier
from flatline.judging.killed_first import killed_first
from flatline.judging.launched_order import killed_by_kernel
from flatline.judging.rank_monitors import ended_by_monitor
from flatline.judging.said_done import once_done
from flatline.judging.tailed import outlived
from flatline.judging.wrappers import is_wrapper
from flatline.model import Cite, Crash, LogCite, Match, Place, ProcessExit

NAMES = {
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    15: "SIGTERM",
}
_CLASSES = {4: "segv", 6: "abort", 7: "bus", 8: "segv", 9: "kill-unknown", 11: "segv"}
TERMINATED, OUTLIVED = 15, 0.62
"""A cancelled job's launcher has the signal as well and raises for no child: where it does, the
child alone was ended, by whom is not said."""
BY_LAUNCHER = ("-closed", "-forced")
"""Reporters of processes that the launcher ended; see `flatline.parsers.exits_torchelastic`."""
GONE, WATCHDOG = "process-gone", "nccl-watchdog-terminated"
HELPER, WRAPPED_BY = 0.6, "kaldi-job-failed"
"""A recipe of Kaldi runs hundreds of jobs: that one was killed does not say that training was."""
_TRAINS = re.compile(r"(?i)train|acc-(?:stats|tree|lda|mllt)|gmm-est|nnet\d?-(?:combine|average)")
_COMMAND = re.compile(
    r"^# (?P<command>\S.{0,600})|\b(?:Killed|Segmentation fault).{0,40}?\(\s(?P<sub>.{0,600})"
)
_PROCESS = re.compile(r"\((?:pid|process ID): (\d{1,9})\)")
"""An agent tells of each twice: as it sees it end, and in the summary that no time is put to."""
_Process = tuple[str, int, str]
_RUNS_OTHERS = re.compile(
    r"(?:^|/)(?:python|perl|bash|sh|env|nice|torchrun|accelerate)[\d.]{0,5}$"
)
WRAPPED_LINES, BESIDE_LINES = 5, 10
DOWN_LINES = 20
ONCE_DONE = 0.7
"""A process that is killed after it said that its training was over may have lost nothing."""
IN_ITS_OUTPUT = ("lsf", "pbs")
"""Batch systems that write into the output of the job they speak of."""
ENDED_BY_SCHEDULER = ("time-limit", "cancelled", "node-failure", "preempted")


@dataclass(frozen=True, slots=True)
class Kill:
    """One process ended by a signal; `why_not` names what ended the run before it."""

    cite: Cite
    place: Place
    signal: int | None
    at: datetime | None
    attempt: int
    fatal: bool = True
    why_not: str = ""
    strength: float = 0.85
    done: bool = False
    """Whether its own file said before that the training was over."""
    helper: bool = False
    """Whether it was a job of a recipe that is not known to train."""
    gone: str = ""
    """What the line means where it shows no signal: only that the process is no longer there."""
    told: LogCite | None = None
    """Where the launcher's agent first told of this process."""

    @property
    def how(self) -> str:
        if self.signal is None:
            return "the kernel's out-of-memory killer"
        return f"{self.name} (signal {self.signal})"

    @property
    def name(self) -> str:
        """The kernel's own kills are made with SIGKILL."""
        return NAMES.get(self.signal or 9, f"signal {self.signal}")

    @property
    def position(self) -> tuple[str, int] | None:
        return (self.cite.source, self.cite.line) if isinstance(self.cite, LogCite) else None


@dataclass(frozen=True, slots=True)
class Kills:
    """The first kill with what corroborates it."""

    first: Kill
    same: tuple[Kill, ...]
    oom: str | None
    oom_cites: tuple[Cite, ...]
    echoes: tuple[Match, ...]
    fault_class: str
    told: tuple[Cite, ...] = ()
    """Other root lines of the same attempt that say the same."""
    unheard: bool = False
    """Whether several tasks aborted and nothing that their program printed was read, or all did
    and none said why: a watchdog or a coordination service aborts all of them."""

    @property
    def places(self) -> tuple[Place, ...]:
        """Of those that were killed; where none is known, of the one host whose kernel told."""
        known = distinct(kill.place for kill in self.same)
        hosts = {getattr(cite, "place", Place()).host for cite in self.oom_cites} - {None}
        return known or tuple(Place(host=host) for host in hosts if len(hosts) == 1)

    @property
    def cites(self) -> tuple[Cite, ...]:
        found: dict[object, Cite] = {}
        for cite in (*(kill.cite for kill in self.same), *self.told):
            where = (cite.source, cite.line) if isinstance(cite, LogCite) else cite
            found.setdefault(where, cite)
        return tuple(found.values())

    @property
    def strength(self) -> float:
        sure = min(0.97, self.first.strength + (0.08 if self.oom else 0.0))
        sure = min(sure, HELPER) if self.first.helper or self.unheard else sure
        return min(sure, ONCE_DONE) if self.first.done else sure


def kills(facts: Facts) -> Kills | None:
    """The kill that speaks for the run: the first fatal one, else the first; None without any."""
    return facts.memo("kills", _kills)


def _kills(facts: Facts) -> Kills | None:
    found = [*_from_exits(facts), *_from_lines(facts)]
    oom, oom_cites = _oom(facts)
    alone = any(kill.fatal for kill in found)
    sole = () if alone else killed_first(facts, [kill.cite for kill in found], oom_cites)
    if oom is not None and (sole or (oom_cites and not found)):
        found = [_from_oom(facts, sole or oom_cites)]
    if not found:
        return None
    fatal = [kill for kill in found if kill.fatal] or found
    attempt = max(kill.attempt for kill in fatal)
    fatal = _placed(_ranked(facts, [kill for kill in fatal if kill.attempt == attempt]))
    first = _earliest(facts, fatal, oom_cites)
    same = [kill for kill in fatal if kill is first or _alike(facts, kill, first)]
    fault_class = _CLASSES.get(first.signal or 9, "kill-unknown")
    if fault_class == "kill-unknown" and oom is not None:
        fault_class = oom
    echoes = echoes_of(facts, first.place, attempt) if first.place else ()
    used = oom_cites if fault_class in ("host-oom", "cgroup-oom") else ()
    told = tuple(
        m.cite
        for m in facts.of_role("root")
        if m.signature.family == "A2"
        and m.attempt == attempt
        and m.signature.fault_class in (fault_class, "kill-unknown")
    )
    listed = killed_by_kernel(facts, attempt)
    if listed is not None and listed.place == first.place:
        told = (listed, *told)
    tasks = {kill.place.task for kill in fatal}
    quiet = fault_class == "abort" and len(fatal) > 1 and unheard(facts, told, tasks)
    return Kills(first, tuple(same), oom if used else None, used, echoes, fault_class, told, quiet)


def _ranked(facts: Facts, found: list[Kill]) -> list[Kill]:
    """The same, with the rank that the kernel killed where only its launcher's death is told."""
    if any(kill.place.rank is not None for kill in found):
        return found
    listed = killed_by_kernel(facts, found[0].attempt)
    return found if listed is None else [
        replace(kill, place=listed.place) if kill.signal in (9, None) else kill for kill in found
    ]  # fmt: skip


def _placed(found: list[Kill]) -> list[Kill]:
    """Where one report of a signal names the rank, reports of it without one say nothing more."""
    named = {kill.signal for kill in found if number(kill.place) is not None}
    return [k for k in found if number(k.place) is not None or k.signal not in named] or found


def _alike(facts: Facts, kill: Kill, first: Kill) -> bool:
    """Another report of the same death; a second rank only where it is known to be no later."""
    if kill.signal not in (first.signal, None) and first.signal is not None:
        return False
    a, b = number(kill.place), number(first.place)
    if a is not None and a == b:
        return True
    if a is None or b is None:
        return a is None and b is None and kill.place == first.place
    return kill.at is not None and kill.at == first.at and kill.strength == first.strength


def _earliest(facts: Facts, found: list[Kill], oom: Iterable[Cite]) -> Kill:
    """Where no order is known, that of the host whose kernel told of a kill goes before."""
    hosts = {getattr(cite, "place", Place()).host for cite in oom} - {None}

    def weight(kill: Kill) -> tuple[bool, float]:
        of_kernel = kill.signal in (9, None) and facts.on_host(kill.place).host in hosts
        return of_kernel, kill.strength

    best = found[0]
    for kill in found[1:]:
        a, b = best.told or best.cite, kill.told or kill.cite
        if isinstance(a, LogCite) and isinstance(b, LogCite):
            later = facts.after(a, b)
            if later is True or (later is None and weight(kill) > weight(best)):
                best = kill
    return best


def _process(event: ProcessExit) -> _Process | None:
    """Which of the processes that its launcher numbers."""
    pid = _PROCESS.search(event.cite.text)
    return (event.cite.source, event.attempt, pid[1]) if pid else None


def _from_exits(facts: Facts) -> Iterable[Kill]:
    first: dict[_Process, LogCite] = {}
    ranked = {_process(event): event.place for event in facts.exits
              if number(event.place) is not None}  # fmt: skip
    for event in facts.exits:
        alone = event.signal == TERMINATED and event.reporter == "subprocess"
        told = first.setdefault(own, event.cite) if (own := _process(event)) else None
        place = ranked.get(own, event.place) if event.place == Place() and own else event.place
        if event.signal in _CLASSES or alone:
            why_not = _before(facts, replace(event, cite=told or event.cite, place=place))
            named = event.first or event.reporter == "srun"
            sure = OUTLIVED if alone else 0.9 if named else 0.85
            yield Kill(
                cite=event.cite,
                place=event.place,
                signal=event.signal,
                at=event.at,
                attempt=event.attempt,
                fatal=not why_not and not outlived(facts, event),
                why_not=why_not or "training went on",
                strength=min(event.share, sure),
                done=once_done(facts, event.cite, event.attempt) is not None,
                helper=event.reporter == "run.pl"
                and not _trains(facts.text(event.cite.source, 1)),
                told=told,
            )


def _from_lines(facts: Facts) -> Iterable[Kill]:
    """Root lines of A2: a shell's `Killed`, a fatal Python error, a killed data-loader worker."""
    told = {(event.cite.source, event.cite.line): event.place for event in facts.exits
            if isinstance(event.cite, LogCite)}  # fmt: skip
    for failure in failures(facts):
        if failure.family != "A2" or failure.match is None:
            continue
        if "oom-kill" in failure.match.signature.tags:
            continue
        signal = {"segv": 11, "abort": 6, "bus": 7}.get(failure.fault_class or "", 9)
        place = failure.place or told.get((failure.cite.source, failure.cite.line), Place())
        event = ProcessExit("line", failure.cite, place, attempt=failure.attempt,
                            signal=6 if signal == 6 else None)  # fmt: skip
        gone = GONE in failure.match.signature.tags
        why_not = _before(facts, event)
        if gone and failure.match.signature.origin == "ray" and not why_not:
            why_not = _timed_out_beside(facts, event)
        yield Kill(
            cite=failure.match.cite,
            place=place,
            signal=signal,
            at=failure.cite.at,
            attempt=failure.attempt,
            fatal=failure.fatal and not why_not,
            why_not=why_not or "training went on",
            strength=failure.strength,
            done=once_done(facts, event.cite, event.attempt) is not None,
            helper=_wrapped(facts, failure.cite) and not _trains(failure.cite.text),
            gone=failure.what if gone else "",
        )


def _trains(text: str) -> bool:
    """Whether a program that was run, as `run.pl` or the shell spells it, is one of training: its
    own name, for all of them read the data of training."""
    found = _COMMAND.search(text)
    for run in re.split(r"[|;&]", (found["command"] or found["sub"] or "") if found else ""):
        words = run.split()[:4]
        if words and _RUNS_OTHERS.search(words[0]):
            words = [word for word in words[1:] if not word.startswith("-")]
        if words and _TRAINS.search(words[0].rpartition("/")[2]):
            return True
    return False


def _wrapped(facts: Facts, cite: LogCite) -> bool:
    """Whether a script that runs the jobs of a recipe says right below that one failed, or above
    which one it was."""
    below = facts.at_line(cite.source, cite.line, cite.line + WRAPPED_LINES)
    return any(match.signature.id == WRAPPED_BY for match in below) or any(
        event.reporter == "run.pl"
        and event.cite.source == cite.source
        and 0 < event.cite.line - cite.line <= WRAPPED_LINES
        for event in facts.exits
    )


def _before(facts: Facts, event: ProcessExit) -> str:
    """What ended the run, or this rank, before this signal; "" where nothing is known to have."""
    if event.reporter.endswith(BY_LAUNCHER):
        return "the launcher itself sent it"
    if ended_by_monitor(facts, event):
        return "its rank's monitor had given it up before"
    for tag in ENDED_BY_SCHEDULER:
        if any(
            _no_later(facts, match, event) and not (tag == "cancelled" and _limited(facts, match))
            for match in facts.standing(tag)
        ):
            return "the scheduler ended it"
    if _step_came_down(facts, event):
        return "srun had begun to end the step after another task's exit"
    return _failed_before(facts, event)


def _limited(facts: Facts, cancelled: Match) -> bool:
    """Whether the memory limit was said to be overrun before this cancel, which it led to."""
    return any(
        match.cite.source == cancelled.cite.source and facts.after(cancelled.cite, match.cite)
        for match in facts.standing("oom-kill")
    )


def _failed_before(facts: Facts, event: ProcessExit) -> str:
    for failure in failures(facts):
        if failure.attempt != event.attempt or not failure.fatal or failure.family == "A2":
            continue
        own = same_rank(failure.place, event.place)
        if own and failure.crash is not None and event.signal in (6, 9, None):
            return "the rank had raised before"
        after = facts.after(event.cite, failure.cite)
        waited = "timeout" in _tags(failure.match)
        if waited and after is not False and not killed_earlier(facts, event, failure.cite):
            return "its peers had reported the wait before"
        if not own and after is True and not short_earlier(facts, event, failure.cite):
            return "another rank had failed before"
    if event.signal == 6 and any(
        m.attempt == event.attempt and facts.after(event.cite, m.cite) is not False
        for m in facts.tagged("watchdog-abort")
    ):
        return "the collective library's watchdog took the process down"
    if event.signal == 6 and _own_watchdog(facts, event):
        return "its own watchdog had ended with an exception before"
    if (event.signal in (6, 11) or event.reporter == "line") and _had_lost_a_peer(facts, event):
        return "the rank had lost its peer before"
    if event.signal == 6 and any(_own_echo(facts, c, event) for c in facts.crashes):
        return "the rank had lost its peer before"
    return ""


def _own_watchdog(facts: Facts, event: ProcessExit) -> bool:
    """Whether the same rank said before that its watchdog's thread ended with an exception: none
    catches it, so the process aborts, of whatever that exception told."""
    return any(
        match.signature.id == WATCHDOG
        and match.attempt == event.attempt
        and number(match.cite.place) == number(event.place) is not None
        and len({match.cite.place.host, event.place.host} - {None}) < 2
        and facts.after(event.cite, match.cite) is not False
        for match in facts.matches
    )


def _timed_out_beside(facts: Facts, event: ProcessExit) -> str:
    """That a watchdog's report stands beside it: one that waited out its timeout takes its process
    down, and Ray prints the lines of its processes in no order of their own."""
    cite = event.cite
    if _oom(facts)[0] is not None or getattr(cite, "at_assumed", True) is False:
        return ""  # its end is told otherwise, or it has a time of its own
    beside = any(
        isinstance(cite, LogCite)
        and match.cite.source == cite.source
        and match.attempt == event.attempt
        and abs(match.cite.line - cite.line) <= BESIDE_LINES
        and match.signature.family == "C2"
        for match in facts.tagged("timeout")
    )
    return "a collective had timed out, and its watchdog ends the process" if beside else ""


def _had_lost_a_peer(facts: Facts, event: ProcessExit) -> bool:
    """Whether the same rank said just before, in the same file, that a peer of it was gone: as its
    communicator is taken down native code fails."""
    return any(
        match.attempt == event.attempt
        and match.cite.source == event.cite.source
        and 0 < event.cite.line - match.cite.line <= DOWN_LINES
        and match.signature.role == "cascade"
        and same_rank(match.cite.place, event.place)
        for match in facts.tagged("lost-peer")
    )


def _step_came_down(facts: Facts, event: ProcessExit) -> bool:
    """Whether srun said that it takes the step down before it told of this kill, and another
    task had left with an exit code of its own."""
    if event.signal not in (9, None) or "srun: " not in event.cite.text:
        return False
    announced = any(
        m.attempt == event.attempt and facts.after(event.cite, m.cite) is True
        for m in facts.tagged("step-aborted")
    )
    return announced and any(
        other.reporter == "srun"
        and other.attempt == event.attempt
        and other.exit_code
        and not other.signal
        and other.place != event.place
        for other in facts.exits
    )


def _own_echo(facts: Facts, crash: Crash, event: ProcessExit) -> bool:
    return same_rank(crash.cite.place, event.place) and not is_wrapper(crash)


def _tags(match: Match | None) -> tuple[str, ...]:
    return match.signature.tags if match is not None else ()


def _no_later(facts: Facts, match: Match, event: ProcessExit) -> bool:
    """Whether a scheduler's line came first; where the order is unknown, it did: the scheduler
    signals every task it ends."""
    later = facts.after(match.cite, event.cite)
    if "cancelled" in match.signature.tags:  # srun cancels the step itself once a task has died
        return later is False
    if later is True and match.cite.source == event.cite.source:
        return match.cite.line - event.cite.line < 4
    return later is not True


def _oom(facts: Facts) -> tuple[str | None, tuple[Cite, ...]]:
    """("host-oom" or "cgroup-oom", citations) where kernel, scheduler or log show an OOM kill."""
    cites: list[Cite] = []
    kind: str | None = None
    shown = [m for m in facts.tagged("oom-kill") if above_its_log(facts, m)]
    for match in (*facts.standing("oom-kill"), *shown):
        pod = match.signature.origin == "kubernetes"
        if pod and match.signature.role == "marker":  # of the container before this one
            continue
        cites.append(match.cite)
        if kind != "cgroup-oom":
            kind = match.signature.fault_class or kind or "host-oom"
    job = facts.job
    if job is not None:
        for step in job.steps:
            if step.disposition == "out_of_memory":
                cites.append(step.cite)
                kind = "cgroup-oom"
        if job.disposition == "out_of_memory":
            cites.append(job.cite)
            kind = "cgroup-oom"
    return kind, tuple(dict.fromkeys(cites))


def _from_oom(facts: Facts, cites: tuple[Cite, ...]) -> Kill:
    """An OOM kill that only the kernel or the scheduler reports."""
    cite = cites[0]
    place = getattr(cite, "place", Place())
    at = getattr(cite, "at", None)
    # A helper that met the limit after the program had said that it was done ended no training.
    fatal = facts.disposition not in ("completed", "running") and not facts.end_seen
    told = (m.attempt for m in facts.standing("oom-kill")
            if m.cite == cite and m.signature.origin in IN_ITS_OUTPUT)  # fmt: skip
    n = next(told, facts.last.n)
    return Kill(cite, place, None, at, n, fatal, "training was over", 0.9)
