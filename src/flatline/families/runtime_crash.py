"""
An exception ended the run after training had begun.

Symptom:
    Steps were made, then one rank (or all of them at the same step) printed a traceback and the
    launcher ended the rest.

Mechanism:
    The training program met something it does not handle: a bug on a path taken late (code), a
    record it cannot use (data), a CUDA error such as a device assert or an illegal access (cuda),
    a file it could not read or write (io).  The other ranks lose their peer and print errors of
    their own, which are echoes.

Told apart from:
    A1 startup-crash: no training step had been made.
    A2 signal-kill: the process was ended by a signal and printed no traceback of its own.
    C2 collective-hang: every traceback says that a peer did not answer, none says why.
    B2 gpu-hardware-fault: the kernel log names an XID or ECC error under the CUDA error.
    C6 storage-stall: the file system did not answer, or was full.

Do:
    Fix the error on the rank that failed first and resume from the last checkpoint.  A CUDA
    device assert names its true line only with CUDA_LAUNCH_BLOCKING=1.

References:
    CUDA Runtime API, error codes 700 and 710; PyTorch notes on asynchronous CUDA errors.
"""

from __future__ import annotations

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.echoes import echo_claim
from flatline.judging.leads import fix, lead, not_found, of_the_one_that_told, raised, shows
from flatline.judging.said_done import once_done
from flatline.model import Finding, Judgement
from flatline.tracks import LEARNED

CODE = "A3"
NAME = "runtime-crash"
NEEDS = ("job log to its end",)
DECIDED_BY = (
    "the traceback of the rank that failed first (its own stderr), behind a step it printed"
)
EXPLAINS = {
    "C2": "the rank that raised left the collective its peers were waiting in",
    "C5": "peers see the connection of the rank that raised close",
    "A2": "the launcher ends the other ranks once one has failed",
    "C1": "after a restart the surviving ranks cannot reach the one that failed",
    "F3": "ranks left waiting for the one that raised hold the allocation to the wall",
}
_KINDS = {
    "code": "The training program met a case it does not handle; the cluster did not cause it.",
    "data": "A record or a batch was not what the program expects.",
    "cuda": "A kernel failed on the device; the line it is reported at is often a later one.",
    "io": "A file or a remote service could not be read or written.",
}


COUNTED = "Whether what counted before it was training: no loss stands beside the count."
DOUBTED = 0.79


def _counts_alone(facts: Facts) -> bool:
    """Whether all steps that were read are of a loop whose words no format knows, and which names
    no loss: what prepares data counts as well."""
    made = [track for track in facts.tracks if len(track)]
    return bool(made) and all(t.format == LEARNED and not any(t.has_loss) for t in made)


def judge(facts: Facts) -> Judgement:
    """Blame the first exception after a step; of several ranks, the first that raised."""
    found = lead(facts, CODE)
    if found is None:
        return not_found(facts, CODE, ["traceback", "family:A3"], "no exception in any log")
    if found.first.fault_class == "cuda":
        found = of_the_one_that_told(facts, found)
    first = found.first
    implies = [claim(_KINDS.get(first.fault_class or "", first.what), first.cite)]
    echoes = echo_claim(facts, first)
    if echoes is not None:
        implies.append(echoes)
    done = once_done(facts, first.cite, first.attempt) if facts.reached_plan else None
    if done is not None:
        text = "Training was done by then: all planned steps were made, and the program said so."
        implies.append(claim(text, done, first.cite))
    cannot = []
    if first.fault_class == "cuda":
        cannot.append(
            "Which kernel failed: CUDA reports errors late. The kernel log (XID) would tell an"
            " application fault from a failing GPU."
        )
    if not facts.has_progress:
        cannot.append(
            "How far training had come: no step was read; "
            + (
                "its frames or a bar show that it was under way."
                if first.started
                else "it may have come before the first."
            )
        )
    elif _counts_alone(facts):
        cannot.append(COUNTED)
    elif first.started is None:
        cannot.append("How far training had come: no step of this stream can be dated.")
    return Finding(
        code=CODE,
        summary=raised(found) + ("" if done is None else ", once training was done"),
        fault_class=first.fault_class,
        attribution=first.attribution if first.attribution != "unknown" else "job",
        strength=first.strength,
        most=DOUBTED if _counts_alone(facts) or done is not None else 1.0,
        shows=(shows(found),),
        implies=tuple(implies),
        culprits=found.culprits,
        scope=found.scope,
        onset=first.cite.at,
        onset_step=facts.last_step,
        order=(first.cite.source, first.cite.line),
        attempt=first.attempt,
        cannot_decide=tuple(cannot),
        actions=(fix(found, "Fix the error, then resume from the last checkpoint."),),
        resubmit="fix_first",
    )
