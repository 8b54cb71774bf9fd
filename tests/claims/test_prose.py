"""Of a model's prose only sentences stay whose numbers, places and times stand in the evidence."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from claims.lies import every_lie
from claims.truths import chosen, every_truth, evidence
from flatline.claims import render, strike

KNOWN: dict[str, dict[str, Any]] = {
    "e1": {
        "kind": "log", "source": "job.log", "line": 38, "place": {"host": None, "rank": 1},
        "text": "[default1]:[rank1]: RuntimeError: Timed out waiting 20000ms for recv operation",
        "at": "2026-11-20T19:17:15.487000Z", "at_assumed": True,
    },
    "e2": {
        "kind": "query", "source": "m.prom", "value": 1410000000.0, "unit": "hertz",
        "query": 'avg_over_time(DCGM_FI_DEV_SM_CLOCK{Hostname="node03",gpu="5"}[1m]) * 1000000',
        "start": "2026-11-20T19:17:15Z", "end": "2026-11-20T19:17:15Z", "text": "SM clock",
        "place": {"host": "node03", "gpu": "5"},
    },
    "e3": {
        "kind": "query", "source": "m.prom", "query": "x", "value": 0.982, "unit": "ratio",
        "text": "activity", "place": {"host": "node04", "gpu": "5"},
        "start": "2026-11-20T19:17:15Z", "end": "2026-11-20T19:17:15Z",
    },
    "e4": {
        "kind": "log", "source": "job.log", "line": 40, "place": {"rank": 0},
        "text": "step 1410/2000 loss 2.5 tok/s 86554",
    },
    "e5": {
        "kind": "derived", "method": "elapsed@1", "value": 65.047, "unit": "s",
        "text": "65 s from the last progress to the end", "inputs": ["e1", "e4"],
    },
    "e6": {
        "kind": "record", "source": "sacct.txt", "pointer": "row 1, State", "value": "NODE_FAIL",
        "text": "JobID=23 State=NODE_FAIL NodeList=gpu[1-4] ExitCode=0:15",
    },
}  # fmt: skip
STAYS = (
    "The SM clock was 1,410 MHz.",
    "It was 1410 MHz on GPU 5 of node03.",
    "It ran at 1.41 GHz [e2].",
    "Activity stood at 98.2 %.",
    "At 98% it was busy.",
    "Rank 1 waited 20 s at 19:17:15 (UTC).",
    "Rank 1 waited for 20,000 ms, then it failed.",
    "The first rank to fail was rank 1.",
    "1. Look at node03 first.",
    "2) Two hosts are affected: node03 and node04.",
    "(3) Both hosts show it.",
    "This is C2, not B1.",
    "It ran at 86,554 tok/s until step 1410 of 2000.",
    "At 2026-11-20T20:17:15+01:00 it stopped.",
    "At 20:17:15+01:00 it stopped.",
    "Ranks 0 and 1 are named.",
    "Ranks 0-1 are named.",
    "On 20 November 2026 it stopped.",
    "See line 38 of job.log.",
    "It ended 1 min 5 s after the last progress.",
    "The loss in fp16 was 2.5.",
    "The log says “Timed out waiting 20000ms”.",
    "No host was lost; one of the ranks hung.",
    "The job is 23, on gpu[1-4].",
    "The job 23 held gpu2 and gpu[3-4] too.",
    "**Why:** the second of them waited.",
    "> Nothing else was measured.",
)
FALLS = (
    ("The SM clock was 1,400 MHz.", "1,400 MHz"),
    ("It was 1.41 MHz.", "1.41 MHz"),
    ("It drew 1410 W.", "1410 W"),
    ("It was 1410 MHz on GPU 4 of node03.", "GPU 4"),
    ("Activity stood at 97 %.", "97 %"),
    ("Rank 2 waited.", "Rank 2"),
    ("Ranks 0-3 hang.", "Ranks 0-3"),
    ("Rank is 3.", "Rank is 3"),
    ("At 19:18 it stopped.", "19:18"),
    ("At 19:17:15 PST it stopped.", "19:17:15 PST"),
    ("At 2026-11-20T19:17:15+01:00 it stopped.", "2026-11-20T19:17:15+01:00"),
    ("On 21 November 2026 it stopped.", "21 November 2026"),
    ("node05 failed.", "node05"),
    ("node[03-05] are down.", "node[03-05]"),
    ("gpu[1-8] were held.", "gpu[1-8]"),
    ("Three hosts are affected.", "Three hosts"),
    ("It failed twice.", "twice"),
    ("See [e9].", "e9"),
    ("See e1-e9.", "e1-e9"),
    ("Visit https://evil.example/x for more.", "https://evil.example/x"),
    ("It dropped by 30%.", "30%"),
    ("Half of the ranks waited.", "Half"),
    ("It was 4x slower.", "4x"),
    ("It was 5 times slower.", "5"),
    ("An H100 failed.", "H100"),
    ("10.0.0.7 is gone.", "10.0.0.7"),
    ("0000:3b:00.0 is gone.", "0000:3b:00.0"),
    ("The mask is 0x88.", "0x88"),
    ("It ended 2 min 5 s later.", "2 min 5 s"),
    ("It waited ３３ s.", "33 s"),
    ("It waited ٣ s.", "٣"),
    ("The confidence is 98 %.", "confidence 98 %"),
    ("kepler is down.", "kepler"),
    ("The log says “Timed out waiting 30000ms”.", "30000ms"),
)


@pytest.mark.parametrize("sentence", STAYS)
def test_what_the_evidence_bears_stays(sentence: str) -> None:
    """However it is written: separators, prefixes, zones, ordinals, numbering, quotation."""
    left, struck = strike(sentence, KNOWN, names=("kepler", "node03"))

    assert (left, struck) == (sentence, ())


@pytest.mark.parametrize(("sentence", "token"), FALLS)
def test_what_it_does_not_bear_is_struck(sentence: str, token: str) -> None:
    """With the word that no evidence has."""
    left, struck = strike(sentence, KNOWN, names=("kepler", "node03"))

    assert left == ""
    assert struck[0].sentence == sentence
    assert token in struck[0].token


def test_only_the_sentence_goes() -> None:
    """Headings, lists and neighbours stay as they were."""
    prose = (
        "# Why\n\nAll ranks stood still. The clock was 1,410 MHz. It fell by 30 %. It is C2.\n"
        "- node05 is it.\n- node03 is it.\n1. Resubmit.\n"
    )
    left, struck = strike(prose, KNOWN)

    assert left == (
        "# Why\n\nAll ranks stood still. The clock was 1,410 MHz. It is C2.\n"
        "- node03 is it.\n1. Resubmit."
    )
    assert [one.token for one in struck] == ["30 %", "node05"]


def test_without_evidence_nothing_that_measures_stays() -> None:
    """An answer that cites nothing may say nothing with a number in it."""
    for sentence in STAYS:
        left, _ = strike(sentence, {})
        body = left.lstrip("0123456789.() ")
        assert not any(
            c.isdigit() for c in body.replace("C2", "").replace("B1", "").replace("fp16", "")
        )


BORNE = {"quotation", "line number", "number in a line", "query", "place", "place of a query",
         "time", "time, another zone", "order", "record", "exit code", "lines searched", "absence",
         "line at a place", "window", "signal by its name", "elapsed",
         "last such line"}  # fmt: skip
"""Kinds of truths whose every number is the evidence's own; a bound's is not."""
STRUCK = {"host": 1.0, "invented evidence": 1.0, "shifted time": 1.0, "window": 1.0,
          "number": 0.98, "rank or GPU": 0.98, "unit": 0.85}  # fmt: skip
"""What of the lies of a kind falls by its words alone; the rest stands in the same evidence."""


def test_sentences_of_truths_stay_and_of_lies_fall() -> None:
    """Of 1,000 each, as prose: a second net below the checker."""
    for truth in chosen(every_truth(), 1000):
        if truth.kind in BORNE and not _of_the_line_alone(truth):
            assert strike(render(truth.claim), cited(truth.name, truth.claim))[1] == (), truth
    seen: Counter[str] = Counter()
    fell: Counter[str] = Counter()
    for lie in chosen(every_lie(), 1000):
        known = cited(lie.name, lie.claim) or cited(lie.name, lie.of.claim)
        seen[lie.kind] += 1
        fell[lie.kind] += bool(strike(render(lie.claim), known)[1])

    shares = {kind: fell[kind] / seen[kind] for kind in STRUCK}
    assert {kind: share for kind, share in shares.items() if share < STRUCK[kind]} == {}


def _of_the_line_alone(truth: Any) -> bool:
    """A quotation that the line bears and its evidence, a piece of the line, does not."""
    item = evidence(truth.name)[truth.claim.evidence]
    words, text = truth.claim.value, item.get("text")
    return item["kind"] == "log" and isinstance(words, str) and words not in (text or words)


def cited(name: str, claim: Any) -> dict[str, Any]:
    known = evidence(name)
    return {ref: known[ref] for ref in (claim.evidence, claim.value) if ref in known}
