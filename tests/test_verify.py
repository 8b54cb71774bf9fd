"""A verdict that was tampered with does not pass, and one that was not does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.errors import UsageError
from flatline.render.json import document
from flatline.verify import Check, verify

LOG = "".join(
    f"2026-03-01 04:00:{i:02d} step {i}/100 loss {5 / (i + 1):.3f}\n" for i in range(1, 30)
) + (
    "Traceback (most recent call last):\n"
    '  File "/app/train.py", line 3, in <module>\n    main()\n'
    'ValueError: cannot use --password hunter22\n'
)  # fmt: skip
SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NodeList|SubmitLine\n"
    "7|train|FAILED|1:0|2026-03-01T04:00:00|2026-03-01T05:00:00|n1|sbatch --token abcd1234efgh x\n"
)
SUBMIT = "row 1, SubmitLine"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that crashed, with its record."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "train.log").write_text(LOG)
    (folder / "sacct.psv").write_text(SACCT)
    return folder


def judged(folder: Path) -> dict[str, Any]:
    verdict = diagnose(collect(Request((str(folder),))))
    return json.loads(json.dumps(document(verdict), default=str))  # type: ignore[no-any-return]


def checked(folder: Path, *evidence: dict[str, Any], **more: Any) -> tuple[Check, ...]:
    listed = [{"id": f"e{n}", **item} for n, item in enumerate(evidence, 1)]
    return verify({"schema_version": 1, "evidence": listed, **more}, (str(folder),))


def line(number: int = 33, text: str = "ValueError: cannot use", **more: Any) -> dict[str, Any]:
    return {"kind": "log", "source": "train.log", "line": number, "text": text, **more}


def absence(*patterns: str, files: tuple[str, ...] = ("train.log",), lines: int = 33) -> Any:
    searched = {"patterns": list(patterns), "files": list(files), "lines": lines}
    return {"kind": "absence", "source": "train.log", "searched": searched}


def record(value: Any, pointer: str = "row 1, State", source: str = "sacct.psv") -> Any:
    return {"kind": "record", "source": source, "pointer": pointer, "value": value}


def elapsed(value: float) -> list[dict[str, Any]]:
    ends = [line(1, "step 1/100", at="2026-03-01T04:00:01Z"),
            line(5, "step 5/100", at="2026-03-01T04:00:05Z")]  # fmt: skip
    derived = {"kind": "derived", "method": "elapsed@1", "inputs": ["e1", "e2"], "value": value,
               "tolerance": 0.5}  # fmt: skip
    return [*ends, derived]


def test_a_true_verdict_passes(run: Path) -> None:
    """Every citation that diagnose wrote holds."""
    checks = verify(judged(run), (str(run),))

    assert checks
    assert [check for check in checks if not check.ok] == []


def test_a_line_with_a_secret_holds_masked_and_not_bare(run: Path) -> None:
    """What is compared is masked on both sides, and so is what is said of it."""
    masked, bare = checked(run, line(text="--password [masked]"), line(text="--password hunter22"))

    assert masked.ok
    assert not bare.ok
    assert "hunter22" not in masked.said + bare.said


def test_a_record_with_a_secret_holds_masked(run: Path) -> None:
    """The secret of a submit line is shown by no check, whatever it says."""
    said = verify(judged(run), (str(run),))
    held, broken = checked(
        run, record("sbatch --token [masked] x", SUBMIT), record("another", SUBMIT)
    )

    assert (held.ok, broken.ok) == (True, False)
    assert not any("abcd1234efgh" in check.said for check in (*said, held, broken))


@pytest.mark.parametrize(
    "tampered",
    [
        line(number=32),
        line(number=34),
        line(number=0),
        line(number=-1),
        line(text="ValueError: something else"),
        line(text=""),
        {"kind": "log", "source": "train.log"},
        line(number="many"),  # type: ignore[arg-type]
        record("COMPLETED"),
        record("FAILED", "row 9, State"),
        record("FAILED", "nonsense"),
        record("FAILED", source="train.log"),
        absence("tag:oom-kill", lines=32),
        absence("tag:oom-kill", lines=34),
        absence("traceback"),
        absence("tag:there-is-no-such-tag"),
        absence("signature:none.such"),
        absence("gibberish"),
        absence(lines=33),
        absence("tag:oom-kill", files=("missing.log",)),
        {"kind": "rumour", "text": "it was the network"},
        {"kind": ["log"]},
        {"kind": "query", "source": "m", "query": "up", "value": 1.0},
        {"kind": "derived", "method": "trust-me@1", "inputs": [], "value": 1},
        {"kind": "derived", "method": "elapsed@1", "inputs": ["e9"], "value": 1},
        {"kind": "derived", "method": "elapsed@1", "inputs": [], "value": 1},
        {"kind": "dump", "source": "train.log", "pointer": "entries", "value": 1},
    ],
)
def test_evidence_that_says_something_else_fails(run: Path, tampered: dict[str, Any]) -> None:
    """With a word about what was found, and never with a traceback."""
    (check,) = checked(run, tampered)

    assert not check.ok
    assert check.said or tampered.get("text") == ""


@pytest.mark.parametrize(
    "source",
    ["../../etc/passwd", "/etc/passwd", "run/../train.log", "./train.log", "", "train.log\0"],
)
def test_no_source_leads_out_of_the_target(run: Path, source: str) -> None:
    """Only files that the target itself holds, by the name they have in it."""
    checks = checked(
        run,
        {"kind": "log", "source": source, "line": 1, "text": "r"},
        record("x", source=source),
        absence("traceback", files=(source,)),
    )

    assert [check.ok for check in checks] == [False] * 3
    assert all("is not in the target" in check.said for check in checks)


def test_absence_holds_where_all_lines_were_searched(run: Path) -> None:
    """And fails as soon as the thing stands there."""
    (held,) = checked(run, absence("tag:oom-kill", "family:B1"))
    with (run / "train.log").open("a") as file:
        file.write("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.\n")
    (broken,) = checked(run, absence("tag:oom-kill", "family:B1", lines=34))

    assert held.ok
    assert not broken.ok


def test_a_derived_value_is_computed_again(run: Path) -> None:
    """Within its tolerance, and no further."""
    assert [check.ok for check in checked(run, *elapsed(4.2))] == [True, True, True]
    assert [check.ok for check in checked(run, *elapsed(40.0))] == [True, True, False]


@pytest.mark.parametrize(
    "where",
    [
        {"verdict": {"shows": [{"text": "x", "cites": ["e77"]}]}},
        {"findings": [{"id": "f1", "cites": ["e77"]}]},
        {"ruled_out": [{"code": "A1", "cites": ["e77"]}]},
        {"run": {"attempts": [{"n": 0, "cites": ["e77"]}]}},
    ],
)
def test_a_citation_of_nothing_fails(run: Path, where: dict[str, Any]) -> None:
    """Wherever in the document it stands."""
    checks = checked(run, line(), **where)

    assert [(check.evidence, check.ok) for check in checks] == [("e1", True), ("e77", False)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"schema_version": 2, "evidence": []},
        {"evidence": []},
        {"schema_version": 1},
        {"schema_version": 1, "evidence": {}},
        {"schema_version": 1, "evidence": ["e1"]},
        {"schema_version": 1, "evidence": [{"kind": "log"}]},
        {"schema_version": 1, "evidence": [{"id": "e1"}, {"id": "e1"}]},
    ],
)
def test_what_is_no_verdict_is_refused(run: Path, wrong: dict[str, Any]) -> None:
    """As a wrong call, not as evidence that fails."""
    with pytest.raises(UsageError, match="no Flatline verdict"):
        verify(wrong, (str(run),))


def test_a_line_of_another_rank_fails(tmp_path: Path) -> None:
    """Its own label says whose it is; a number that stands in the line is its word too."""
    (tmp_path / "train.log").write_text(
        "[rank3]: ValueError: cannot use it\n[rank3]: the peer of rank 12 is gone\n" * 3
    )
    shown = {"kind": "log", "source": "train.log", "text": "ValueError: cannot use it", "line": 1}
    named = {"kind": "log", "source": "train.log", "text": "the peer of rank", "line": 2}

    def holds(item: dict[str, Any], rank: int) -> bool:
        (check,) = checked(tmp_path, {"id": "e1", **item, "place": {"rank": rank}})
        return check.ok

    assert (holds(shown, 3), holds(shown, 4)) == (True, False)
    assert (holds(named, 12), holds(named, 4)) == (True, False)
