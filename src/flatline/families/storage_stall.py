"""
Storage stopped serving the run.

Symptom:
    The file server does not respond, handles go stale, the disk or the quota is full, processes
    stand in uninterruptible sleep.  The run ends of it, or stands still and goes on.  Without a
    kernel log the host shows it that the others wait for: its GPUs rest, its tasks cannot be
    woken, and some of them wait for storage all the time.  A file system that ran out of room or
    of inodes, or turned read-only, says so by its own count; clients of NFS and Lustre count the
    requests that had no answer.

Mechanism:
    Reads of data or writes of checkpoints block or fail.  One rank that blocks in a checkpoint
    holds all others in the next collective.

Told apart from:
    A3 runtime-crash (io): one file was missing or unreadable, the file system itself served.
    D2 throughput-bound (checkpoint-storm): slow because too much is written, not because
    storage fails.
    A run that went on: its kernels' lines count where they lie in pauses between its steps, are
    of its own hosts, and cost it time.  A server that is silent for a moment, a line beside every
    pause, one in an evaluation as long as the run's others, and one time-out of a disk are none.
    A full file system is none by itself: another's, one that was full all along, or one that let
    the run go on.  Where no line tells of a failed write, the run must write to it and have ended
    as it ran out.  Clients count requests since boot and for all programs of a host: they must
    have gone unanswered far more often while the run stood still than in its rest.  Neither is
    ever confident.

Do:
    Free space or raise the quota; have the server and the mount checked; resubmit when it serves.

References:
    errno 28 (ENOSPC), 122 (EDQUOT), 116 (ESTALE), 5 (EIO); Linux NFS client and hung-task
    messages; nfs(5); nvme_core.io_timeout in the kernel's parameters; Lustre operations manual.
"""

from __future__ import annotations

import os.path
import re
from dataclasses import replace
from datetime import UTC, datetime
from shlex import quote

from flatline.facts import KERNEL, Facts
from flatline.judging.all_asleep import all_asleep
from flatline.judging.blocked import BLOCKED, PROCS, TIMES, Blocked, blocked
from flatline.judging.claims import claim, name_places
from flatline.judging.crashes import Failure
from flatline.judging.filesystems import (
    OF_THE_HOST,
    PATH,
    has_room,
    mount_of,
    mounts,
    on_its_host,
    ran_out,
    spent,
    spent_at_all,
    written,
)
from flatline.judging.idle_power import idle
from flatline.judging.leads import Lead, fix, lead, lead_of, shows
from flatline.judging.over_a_link import cut_off
from flatline.judging.pace import pace
from flatline.judging.pauses import SILENT_S, Stalled, longest_of, stalled
from flatline.judging.signed import signed
from flatline.judging.steering import leave_out
from flatline.judging.timeline import by_host, instant
from flatline.judging.unserved import resent, unserved
from flatline.model import Action, Claim, Finding, Judgement, Place

CODE = "C6"
NAME = "storage-stall"
NEEDS = ("kernel log", "file-system and pressure metrics")
DECIDED_BY = (
    "processes in state D and what they wait in, or the kernel's words on the mount (ps -eo "
    "stat,wchan, dmesg)"
)
EXPLAINS = {
    "A3/io": "the failed read or write surfaces as an exception in the program",
    "A3/data": "what was not read whole surfaces as bad data in the program",
    "A1": "the failed read or write at start-up surfaces as an exception in the program",
    "C2": "a rank that blocks on storage does not enter the collective its peers wait in",
    "E2": "a checkpoint that could not be written whole cannot be loaded",
    "A2": "the program aborts when its files cannot be written",
    "C4": "a process that blocks on storage does not send its heartbeats",
    "F3": "ranks blocked on storage hold the allocation to the wall",
    "D1": "loaders that wait for their disk leave the GPUs without input",
    "D2/checkpoint-storm": "a save that waits for its server takes the time of many",
    "D3": "the rank whose host waits for its disk is the one the others wait for",
    "D5/io-pressure": "tasks that wait for a disk that does not answer are its pressure",
}


_SERVER = (
    "Have the server and this host's mount and link to it checked; see whether other clients of"
    " it were hit, and resume once it serves."
)
_FREE = "Free space or raise the quota, then resume."
_DISK = (
    "Have the disk of that host replaced or checked; keep data and checkpoints elsewhere until"
    " then."
)
_ADVICE = {
    r"quota|full|space|less room|fewer bytes": _FREE,
    r"block-device|local disk": _DISK,
    r"object store": "See whether the store was throttled or down, lower the number of requests at"
    " a time, and let the client try longer.",
    r"barrier": "See which process was slow to write, and why; give the save more time.",
}
"""By words of the signature's id and meaning."""
_READ_ONLY = re.compile(r"read-only file ?system|\[Errno 30\]", re.IGNORECASE)
WEAK, DOUBTED = 0.7, 0.79
"""A line that does not name what a task waits in (the kernel's hung-task watch, 0.65) stays short
of confident: a driver of a GPU can hold it as well."""
TOLD_LATE, LATE_S = "told-late", 180.0
"""NFS after 60 s and two tries more (nfs(5)), tasks and Lustre after 120 and 100 s by default,
GPFS once a lease of 35 s is over and pings went unanswered for up to 120 (mmchconfig)."""
UNREAD = 0.75
"""What a kernel counts of its tasks' waits does not say which storage they are for."""
SILENT, UNUSED = 0.65, 0.35
"""What ran out as the run ended, and was written to, need not have ended it where no line says so;
of what nothing shows that the run writes there it is a coincidence to be named.  A judgement."""
_GOES_ON = ("completed", "running", "cancelled", "unknown")
"""Of a run that failed or came to its limit others say why."""
_SHOWN = 3
_OPEN = "Whether other jobs on the same storage were hit: its own log would tell."


def judge(facts: Facts) -> Judgement:
    """Blame the first line by which the file system itself says that it does not serve, or those
    of a run that stood still meanwhile and went on."""
    first = lead(facts, CODE)
    if first is None and facts.disposition in _GOES_ON:
        if (waited := stalled(facts, CODE)) is not None:
            return _stood_still(facts, waited)
        if (apart := blocked(facts, CODE)) is not None:
            return _waited(facts, apart)
    if first is None:
        return (_asleep(facts) or unserved(facts, CODE, _SERVER) or _all_wait(facts)
                or _ran_out(facts))  # fmt: skip
    found = _said(facts, first)
    asleep = _all_wait(facts, first) if _of_another_time(facts, first) else None
    if asleep is not None:
        return asleep
    return found and cut_off(facts, _by_its_count(facts, found, first), first)


def _said(facts: Facts, told: Lead) -> Finding | None:
    """What the lines of the run and of its kernels say."""
    found = signed(
        facts,
        CODE,
        implies="The storage under the run failed it; the model code did not cause it.",
        cannot_decide=(
            "Whether other jobs on the same file system were hit: the server's log would tell.",
        ),
        advice=_advice(told.first),
        resubmit="fix_first",
    )
    late = told.first.signature is not None and TOLD_LATE in told.first.signature.tags
    found = replace(found, onset_within_s=LATE_S) if found is not None and late else found
    places = {(f.place.host, f.place.rank, f.place.task) for f in told.group}
    if found is None or len(places) < 2:
        return found if found is None else _not_it_alone(facts, found, told)
    shared = _shared(told)
    if (shared is not None and OF_THE_HOST.match(shared)) or (
        shared is None and not found.culprits
    ):
        return found
    unknown = () if shared else ("What the places that failed share: no line names it.",)
    where = f"{len(places)} places" + (f", all under {shared}" if shared else "")
    return replace(
        found,
        summary=f"{told.first.what.rstrip('.')} ({where})",
        culprits=(),
        scope="shared",
        domain=shared,
        cannot_decide=(*found.cannot_decide, *unknown),
    )


def _advice(first: Failure) -> str:
    """What to do about this kind of fault, where its signature has no advice of its own."""
    said = first.signature
    about = f"{said.id} {said.meaning}".lower() if said is not None else ""
    return next((advice for words, advice in _ADVICE.items() if re.search(words, about)), _SERVER)


def _shared(told: Lead) -> str | None:
    """The server or the folder that every line names; None where they name none in common."""
    servers = {f.match.groups["peer"] for f in told.group if f.match and "peer" in f.match.groups}
    if len(servers) == 1:
        return servers.pop()
    paths = [found[1] for f in told.group if (found := PATH.search(f.cite.text))]
    if len(paths) < len(told.group):
        return None
    common = os.path.commonpath(paths)
    return common if common.count("/") and common != "/" else None


def _not_it_alone(facts: Facts, found: Finding, told: Lead) -> Finding:
    """A kernel that says a server is silent bears witness: its host is not to blame where tasks of
    most other hosts of the run sleep as long."""
    server, since = _shared(told), told.first.cite.at
    ends = facts.last.ended_at or (facts.window[1] if facts.window else None)
    if server is None or server.startswith("/") or since is None or ends is None or ends <= since:
        return found
    if not facts.measured(PROCS) or [p.gpu for p in found.culprits] != [None]:
        return found
    time = float(int(ends.timestamp()))
    window = f"[{max(1, int((ends - since).total_seconds()))}s]"
    read = by_host(instant(facts, f"avg by (host) (avg_over_time({PROCS}{window}))", time))
    now = {} if read is None else {h: v for h, v in read.at(time).items()
                                   if facts.node_of(h) in facts.hosts}  # fmt: skip
    asleep = sorted(host for host, tasks in now.items() if tasks >= BLOCKED)
    others = [host for host in asleep if facts.node_of(host) != found.culprits[0].host]
    if read is None or not others or 2 * len(asleep) <= len(now):
        return found
    cites = [c for host in others[:_SHOWN] if (c := read.cite(host, time, "tasks asleep"))]
    return replace(
        found,
        summary=f"{told.first.what.rstrip('.')} ({server})",
        shows=(*found.shows,
               claim(f"On {len(asleep)} of {len(now)} hosts tasks stood in uninterruptible sleep"
                     " from then on", *cites)),
        culprits=(),
        scope="shared",
        domain=server,
    )  # fmt: skip


# --- it stood still and went on -----------------------------------------------------------------


def _stood_still(facts: Facts, waited: Stalled) -> Finding:
    """The pauses, what the kernels said in them, and whose tasks waited then."""
    told, first = lead_of(facts, waited.told), waited.pauses[0]
    hosts = sorted({facts.node_of(f.place.host) for f in waited.told if f.place.host})
    server, tasks = _shared(told), _waiting(facts, waited)
    local = told.first.signature is not None and "local-disk" in told.first.signature.tags
    wide = len(hosts) > 1 or (server is not None and tasks is not None and tasks[1])
    shared = wide and not local
    culprits = () if shared else tuple(Place(host=host) for host in hosts)
    times = len(waited.pauses)
    longest = max(waited.pauses, key=lambda pause: pause.lost_s)
    counted = resent(facts, (longest.begins, longest.ends + SILENT_S))
    still = _spell(waited.lost_s) + (f" in {times} pauses" if times > 1 else "")
    onset = first.begins if not waited.stood.off_s else _first_line(told)
    unread = not shared and tasks is None and len(facts.log_files(KERNEL)) < len(facts.hosts)
    return Finding(
        code=CODE,
        summary=f"The run stood still for {still}: {told.first.what.rstrip('.')}"
        f" ({server or name_places(culprits) or f'{len(hosts)} hosts'})",
        attribution="infrastructure",
        shows=(
            shows(told, f"{name_places([Place(host=h) for h in hosts]) or 'The kernel'}:"
                        f" {told.first.what}"),
            longest_of(facts, waited),
            *((tasks[0],) if tasks is not None else ()),
            *((counted.shows,) if counted is not None else ()),
        ),
        implies=(
            claim(f"The steps that had to wait for it cost {waited.share:.0%} of the run's time;"
                  " the model code did not cause it.", told.first.cite),
        ),
        strength=told.first.strength,
        most=DOUBTED if told.first.strength < WEAK else 1.0,
        role="warning" if waited.got_over(facts) else "cause",
        severity="degraded",
        took_s=(waited.lost_s, waited.stood.wall_s),
        culprits=culprits,
        scope="shared" if shared else "place" if culprits else "none",
        domain=server if shared else None,
        onset=datetime.fromtimestamp(onset, UTC),
        onset_step=max(0, waited.stood.track.steps[first.at[0]]),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(
            *((_OPEN,) if shared else ()),
            *(("Whether the other hosts were hit as well: no kernel log of theirs was read.",)
              if unread else ()),
            *(("What the places that waited share: no line names it.",)
              if shared and server is None else ()),
        ),
        actions=(fix(told, _advice(told.first)),),
        resubmit="unnecessary" if shared else "exclude",
    )  # fmt: skip


def _waited(facts: Facts, apart: Blocked) -> Finding:
    """Hosts whose tasks and GPUs wait while their disk or their server does not answer."""
    told = lead_of(facts, apart.told)
    culprits = () if apart.host is None else (Place(host=apart.host),)
    hosts = sorted({facts.node_of(f.place.host) for f in apart.told if f.place.host})
    where = name_places([Place(host=host) for host in hosts]) or "The kernel"
    return Finding(
        code=CODE,
        summary=apart.summary,
        attribution="infrastructure",
        shows=(shows(told, f"{where}: {told.first.what}"), *apart.shows),
        implies=(
            claim("Processes waited for storage, and with them every rank of the run.",
                  told.first.cite, *(cite for shown in apart.shows for cite in shown.cites)),
        ),
        strength=told.first.strength,
        most=DOUBTED,
        role="warning" if apart.got_over else "cause",
        severity="degraded",
        culprits=culprits,
        scope="place" if culprits else "shared",
        domain=apart.server,
        onset=datetime.fromtimestamp(_first_line(told), UTC),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("What it cost: no step shows the pause by itself.",),
        actions=(fix(told, _advice(told.first)),),
        resubmit="exclude" if culprits else "unnecessary",
    )  # fmt: skip


def _asleep(facts: Facts) -> Finding | None:
    """One host that rests while all others wait for it, whose tasks wait for storage by the count
    of its kernel, where no line of it was read."""
    end = facts.last.ended_at or facts.lived[1]
    if end is None or facts.disposition in ("completed", "running"):
        return None
    resting, known = idle(facts, end.timestamp()), pace(facts)
    if resting is None or resting.storage is None:
        return None
    host = Place(host=resting.places[0].host)
    return Finding(
        code=CODE,
        summary=f"Processes on {host} waited for storage, and the other hosts for them",
        attribution="infrastructure",
        strength=UNREAD,
        most=DOUBTED,
        shows=(resting.storage, resting.why),
        implies=(
            claim("A process that waits for storage enters no collective: the others waited in one"
                  " for it.", *resting.storage.cites),
        ),
        culprits=(host,),
        onset=None if known is None else known.at,
        onset_step=facts.last_step,
        attempt=facts.last.n,
        cannot_decide=("What they waited for: the kernel log of that host would tell.",),
        actions=(
            leave_out(facts, (str(host.host),)),
            Action("escalate", _SERVER, "dmesg -T; cat /proc/mounts", (str(host.host),)),
        ),
        resubmit="exclude",
    )  # fmt: skip


def _of_another_time(facts: Facts, told: Lead) -> bool:
    """Whether the first line is dated after the run: its clock may be that of another zone."""
    at, (_, ended) = told.first.cite.at, facts.lived
    return at is not None and not told.first.cite.at_assumed and ended is not None and at > ended


def _all_wait(facts: Facts, told: Lead | None = None) -> Finding | None:
    """Tasks of most hosts that wait for storage from the last step on, where no line of its time
    says so."""
    found = all_asleep(facts)
    if found is None:
        return None
    said = () if told is None else (
        shows(told, f"A kernel says, by a clock that is ahead of the run's: {told.first.what}"),
    )  # fmt: skip
    return Finding(
        code=CODE,
        summary=f"The run stood still as tasks on {found.hosts} of {found.of} hosts waited for"
        " storage",
        attribution="infrastructure",
        strength=UNREAD,
        most=DOUBTED,
        shows=(found.still, found.shows, *said),
        implies=(
            claim("What waits in a collective sleeps otherwise: they waited for a disk or a server"
                  " that they share.", *found.shows.cites),
        ),
        scope="shared",
        domain=None if told is None else _shared(told),
        onset=found.since,
        onset_step=facts.last_step,
        attempt=facts.last.n,
        cannot_decide=("Which storage it was: kernel logs of the hosts would name it.", _OPEN),
        actions=(Action("escalate", _SERVER, "dmesg -T; cat /proc/mounts"),),
        resubmit="fix_first",
    )  # fmt: skip


# --- what file systems say of themselves --------------------------------------------------------


def _by_its_count(facts: Facts, found: Finding, told: Lead) -> Finding:
    """The finding, with what the file system that the lines name, or the only one of which it is
    true, had left by its own count; in doubt where that one had room."""
    first = told.first
    full = first.signature is not None and "disk-full" in first.signature.tags
    dated = first.cite.at if first.cite.at is not None and not first.cite.at_assumed else None
    until = dated or facts.last.ended_at or facts.lived[1]
    if not full and (until is None or not _READ_ONLY.search(first.cite.text)):
        return found
    here = [one for one in (() if until is None else spent(facts, until.timestamp(), told=True))
            if (one.lacks != "writes") is full]  # fmt: skip
    here = here or ([*spent_at_all(facts)] if dated is None and full else [])
    every = mounts(facts)
    named = {mount for f in told.group for path in PATH.findall(f.cite.text)
             if (mount := mount_of(path, every))}  # fmt: skip
    meant = [one for one in here if (one.mount in named if named else written(facts, one.mount))]
    if not meant and not named and len({one.mount for one in here}) == 1:
        meant = here
    if meant:
        own = next((one for one in meant if one.host == first.place.host), meant[0])
        found = replace(found, shows=(*found.shows, own.shows))
        return on_its_host(facts, found, [one for one in meant if one.mount == own.mount])
    with_room = [mount for mount in sorted(named)
                 if until is not None and has_room(facts, mount, until.timestamp())]  # fmt: skip
    if not with_room or not full or "quota" in first.cite.text.lower():
        return found
    doubt = f"What was full: {with_room[0]} had room by its own count, so that a quota, one of the"
    doubt += " servers behind it, or what was removed again may have been."
    return replace(found, cannot_decide=(*found.cannot_decide, doubt))


def _ran_out(facts: Facts) -> Finding | None:
    """A file system that ran out as the run ended, where no line says of what it died: by numbers
    alone never sure, and a warning where nothing shows that the run writes there."""
    out = ran_out(facts)
    if out is None:
        return None
    first, used, same = out.first, out.used, out.hosts
    own = OF_THE_HOST.match(first.mount + "/") is not None or first.mount == "/"
    culprits = tuple(Place(host=host) for host in same) if own or len(same) == 1 else ()
    what = "turned read-only" if first.lacks == "writes" else f"ran out of {first.lacks}"
    where = name_places([Place(host=host) for host in same])
    implied = "What writes there fails from then on, and may end without a word."
    advice = _FREE if first.lacks != "writes" else _DISK if culprits else _SERVER
    return Finding(
        code=CODE,
        summary=f"{first.mount} ({where}) {what} as the run ended",
        attribution="infrastructure",
        strength=SILENT if used else UNUSED,
        most=SILENT,
        role="cause" if used else "warning",
        severity="fatal" if used else "warning",
        shows=(first.shows, *((claim("The run writes there", used),) if used else ())),
        implies=(claim(implied, *first.shows.cites),),
        culprits=culprits,
        scope="place" if culprits else "shared",
        domain=None if culprits else first.mount,
        onset=datetime.fromtimestamp(first.at, UTC),
        onset_step=facts.last_step,
        attempt=facts.last.n,
        ended_run=used is not None,
        cannot_decide=(
            "Whether it ended the run: no line says so.",
            *(() if used else (f"Whether the run writes to {first.mount}: no line says so.",)),
        ),
        actions=(
            Action("fix", advice,
                   f"df -h {quote(first.mount)}; df -i {quote(first.mount)}; dmesg -T"),
        ),
        resubmit="fix_first" if used else "unknown",
    )  # fmt: skip


def _spell(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


def _first_line(told: Lead) -> float:
    """Where steps are dated by their sum, the kernel's word is the nearest that is dated."""
    return min(f.cite.at.timestamp() for f in told.group if f.cite.at is not None)


def _waiting(facts: Facts, waited: Stalled) -> tuple[Claim, bool] | None:
    """Tasks in uninterruptible sleep from the first pause to the end of the last, and whether
    more than half of the hosts had them; None where it was not measured or nobody did."""
    begins, ends = int(waited.pauses[0].begins), float(int(waited.pauses[-1].ends))
    query = f"avg by (host) (avg_over_time({PROCS}[{max(1, int(ends) - begins)}s]))"
    read = by_host(instant(facts, query, ends)) if facts.measured(PROCS) else None
    now = {} if read is None else read.at(ends)
    if read is None or len(now) < 2:
        return None
    order = sorted(now, key=lambda host: (-now[host], host))
    most, least = order[0], order[-1]
    wide = sum(value >= BLOCKED for value in now.values()) > len(now) / 2
    if now[most] < BLOCKED or not (wide or now[most] >= TIMES * now[order[1]]):
        return None
    other = least if wide else order[1]
    cites = [read.cite(host, ends, f"tasks in uninterruptible sleep on {host}")
             for host in (most, other)]  # fmt: skip
    text = f"Meanwhile {now[most]:.1f} tasks stood in uninterruptible sleep on {most}"
    text += f", and no fewer than {now[least]:.1f} on any host" if wide else (
        f", on no other host more than {now[other]:.1f}")  # fmt: skip
    return claim(text, *cites), wide
