"""Resubmission: only where the verdict says that it helps, and a bounded number of times."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from examples.stand_ins import SCRIPTS, program, ran


def verdict(
    resubmit: str, *hosts: str, confidence: float = 0.9, headline: str = "it broke"
) -> str:
    actions = [
        {"kind": "exclude", "text": "t", "command": "touch ran; rm -rf x", "targets": list(hosts)}
    ]
    return json.dumps(
        {"verdict": {"code": "F1", "headline": headline, "resubmit": resubmit,
                     "confidence": confidence, "actions": actions if hosts else []}}
    )  # fmt: skip


def submitted(
    folder: Path, *verdicts: str, statuses: str = "1 1 1 1 1 1", own: str = "(null)", more=()
) -> tuple[CompletedProcess[str], list[str]]:
    """The outcome, and the arguments of each sbatch; job n has the n-th status and verdict."""
    for n, text in enumerate(verdicts, 1):
        (folder / f"{n}.json").write_text(text)
    program(
        folder,
        "sbatch",
        f"""
n=$(($(wc -l < {folder}/calls 2>/dev/null || echo 0) + 1))
echo "$*" >> {folder}/calls; echo "$n;cluster"; s=({statuses}); exit "${{s[$((n - 1))]}}" """,
    )
    program(folder, "scontrol", f"echo 'JobId=1 ExcNodeList={own} x=y'")
    program(folder, "flatline", f'cat "{folder}/$2.json" || exit 4; exit 1')
    argv = [
        sys.executable,
        str(SCRIPTS / "resubmit.py"),
        "--settle",
        "0",
        *more,
        "--",
        "-N2",
        "t.sh",
    ]
    done = ran(folder, argv)
    calls = (folder / "calls").read_text().splitlines()
    return done, calls


@pytest.mark.parametrize("way", ["fix_first", "wait", "unnecessary", "unknown", "something new"])
def test_what_does_not_say_yes_ends_it(way: str, tmp_path: Path) -> None:
    """One submission; the status is the job's."""
    done, calls = submitted(tmp_path, verdict(way, "n1"), statuses="7")
    assert (done.returncode, calls) == (7, ["--parsable --wait -N2 t.sh"])
    assert f"the verdict says {way!r}" in done.stderr


def test_the_accused_are_left_out_and_add_up(tmp_path: Path) -> None:
    """With what the job left out itself; nothing of the document is run."""
    done, calls = submitted(
        tmp_path, verdict("exclude", "n1"), verdict("exclude", "n2", headline="another"),
        statuses="1 1 0", own="n[8-9]",
    )  # fmt: skip
    assert done.returncode == 0
    assert calls[1:] == [
        "--parsable --wait --exclude=n[8-9],n1 -N2 t.sh",
        "--parsable --wait --exclude=n[8-9],n1,n2 -N2 t.sh",
    ]
    assert not (tmp_path / "ran").exists()


def test_a_job_that_completes_is_not_diagnosed(tmp_path: Path) -> None:
    """Status 0 at once."""
    done, calls = submitted(tmp_path, statuses="0")
    assert (done.returncode, len(calls)) == (0, 1)


@pytest.mark.parametrize(
    ("verdicts", "more", "tries", "said"),
    [
        ([verdict("as_is")] * 2, (), 2, "the same verdict again"),
        ([verdict("as_is", headline=str(n)) for n in range(5)], (), 3, "last of 3 tries"),
        ([verdict("as_is", confidence=0.79)], (), 1, "not confident"),
        ([verdict("exclude")], (), 1, "names no node"),
        ([verdict("exclude", "n1;reboot")], (), 1, "names no node"),
        ([verdict("exclude", "--reservation=x")], (), 1, "names no node"),
        ([verdict("exclude", *"abcde")], (), 1, "more than 4 nodes"),
        (["not json"], (), 1, "no verdict"),
        ([], (), 1, "Flatline ended with 4"),
    ],
)
def test_it_is_bounded(
    verdicts: list[str], more: tuple[str, ...], tries: int, said: str, tmp_path: Path
) -> None:
    """Tries, nodes, repeats, doubt, and host names that are none."""
    done, calls = submitted(tmp_path, *verdicts, more=more)
    assert (done.returncode, len(calls)) == (1, tries)
    assert said in done.stderr


def test_a_refused_submission_is_the_end(tmp_path: Path) -> None:
    """sbatch's own status and words."""
    program(tmp_path, "sbatch", "echo 'invalid partition' >&2; exit 1")
    done = ran(tmp_path, [sys.executable, str(SCRIPTS / "resubmit.py"), "t.sh"])
    assert (done.returncode, "invalid partition" in done.stderr) == (1, True)
