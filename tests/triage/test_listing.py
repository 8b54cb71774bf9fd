"""The listing as a person and a program read it, and the command around it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from cli.calls import flatline_process
from flatline.cli import Engine, answer
from flatline.model import Place
from flatline.render.text import Look
from flatline.triage import Ask, Ended, Listing, Selected, Told, document, page
from flatline.triage.judging import judge_one, judged, storage_names
from flatline.triage.listing import listing
from triage.mornings import START, failure, row, sound

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "tests" / "scenarios"


def morning() -> Listing:
    """Four undetermined failures on one node, one that is the job's, forty completed."""
    bad = [failure(i, "n900") for i in range(4)]
    own = failure(8, "n003", blames="job", at=("n003",))
    told = {line.id: line.told for line in (*bad, own)}
    ended = [line.ended for line in (*bad, own, *sound(40))]
    return listing(
        Ask(),
        selecting=lambda ask: Selected(tuple(ended), until=START),
        judging=lambda _, ends, __: tuple(
            replace(told[e.job.id], gpu_hours_lost=3.5, logs=1) for e in ends if told[e.job.id]
        ),
    )


def test_failures_come_first_then_undetermined_then_a_count() -> None:
    """With the node they share above its jobs, and its controls."""
    text = page.render(morning())
    assert "45 jobs ended" in text
    assert "4 of 4 failures touched node n900; 0 of 40 completed jobs did (p below" in text
    assert text.index("n900;") < text.index("Failed, with nothing") < text.index("40 jobs comp")
    assert "by Slurm's word" in text


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_page_keeps_to_its_width(width: int) -> None:
    """Long names and headlines are cut, wide characters counted twice."""
    made = morning()
    line = made.failed[0]
    assert line.told is not None
    job = replace(line.ended.job, name="名前" * 40, user="u" * 40, nodes=tuple("abcdefgh"))
    long = replace(line, ended=Ended((job,)), told=replace(line.told, headline="word " * 60))
    text = page.render(replace(made, failed=(long,)), Look(width))
    assert max(map(page.cells, text.splitlines())) <= width


def test_what_a_job_is_called_cannot_steer_the_terminal() -> None:
    """Names and headlines are of the run."""
    made = morning()
    line = made.failed[0]
    assert line.told is not None
    job = replace(line.ended.job, name="\x1b[2J", user="a\nb")
    evil = replace(line, ended=Ended((job,)), told=replace(line.told, headline="\x1b]0;x\x07"))
    text = page.render(replace(made, failed=(evil,)))
    assert "\x1b" not in text
    assert "\\x1b" in text


def test_the_document_is_of_its_schema() -> None:
    """Of every kind of line and group."""
    schema = json.loads((ROOT / "docs" / "jobs.schema.json").read_text())
    made = document.document(morning())
    jsonschema.validate(json.loads(document.render(morning())), schema)
    assert made["counts"] == {"failed": 1, "undetermined": 4, "healthy": 0, "cancelled": 0,
                              "completed": 40, "not_diagnosed": 0}  # fmt: skip


def test_beyond_the_limit_jobs_are_named_and_not_diagnosed() -> None:
    """The latest are diagnosed."""
    ended = tuple(failure(i, "n1").ended for i in range(9))

    def judging(_: object, ends: list[Ended], __: object) -> tuple[Told, ...]:
        assert len(ends) == 5
        return tuple(Told(e.job.id, "undetermined", "?") for e in ends)

    made = listing(Ask(limit=5), selecting=lambda ask: Selected(ended), judging=judging)
    assert (len(made.undetermined), [line.id for line in made.unread]) == (5, ["5", "6", "7", "8"])


def test_state_narrows_what_is_shown_and_not_what_is_compared() -> None:
    """The completed jobs stay the controls of the node."""
    made = morning()
    ended = (*(k.ended for k in made.undetermined), *(k.ended for k in made.completed))
    shown = listing(
        Ask(states=("F",)),
        selecting=lambda ask: Selected(ended),
        judging=lambda _, ends, __: tuple(Told(e.job.id, "undetermined", "?") for e in ends),
    )
    assert (len(shown.undetermined), len(shown.completed)) == (4, 0)
    assert shown.groups[0].of_successes == 40


def test_a_job_is_diagnosed_from_its_row_and_its_log() -> None:
    """As `flatline diagnose` would, and one without a log says so."""
    run = SCENARIOS / "slurm_bad_record" / "run"
    log = next(run.glob("slurm-*.out"))
    job = row(log.stem.split("-")[1], "failed", "gpu1")
    assert judge_one(Ended((job,), (log,))).code == "A3"
    alone = judge_one(Ended((job,)))
    assert (alone.state, alone.logs) == ("undetermined", 0)


def test_a_job_that_cannot_be_diagnosed_does_not_hide_the_others(tmp_path: Path) -> None:
    """Nine jobs, in processes of their own; the log of one is gone."""
    ended = [Ended((row(i, "failed", "n1"),)) for i in range(8)]
    ended.append(Ended((row(8, "failed", "n1"),), (tmp_path / "gone.log",)))
    told = judged(ended, (), None, processes=2)
    assert [t.id for t in told] == [str(i) for i in range(9)]
    assert "does not exist" in told[8].headline


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("OSError: [Errno 28] No space left on device: '/scratch/a/b.pt'", ["/scratch"]),
        ("OSError: [Errno 5] Input/output error: '/mnt/lfs/x/y'", ["/mnt/lfs"]),
        ("nfs: server fs01.example not responding, still trying", ["NFS server fs01.example"]),
        ("LustreError: 11-0: work1-OST0003-osc-ffff: operation failed", ["Lustre work1"]),
        ('File "/usr/lib/python3/shutil.py", line 3', []),
        ("see https://example.org/a/b", []),
    ],
)
def test_file_systems_that_a_line_names(text: str, names: list[str]) -> None:
    """Mounts, servers and Lustre names; not the interpreter's own files, not addresses."""
    assert storage_names(text) == names


@pytest.mark.parametrize(("drop", "status"), [((), 1), (("failed",), 3)])
def test_status_says_what_was_found(
    drop: tuple[str, ...], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 for a failure, 3 where nothing but undetermined ones are left, 0 for neither."""
    made = replace(morning(), **dict.fromkeys(drop, ()))
    assert answer(["jobs"], Engine(jobs=lambda ask, progress: made)) == status
    none = replace(made, failed=(), undetermined=())
    assert answer(["jobs", "--json"], Engine(jobs=lambda ask, progress: none)) == 0
    assert json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))


def test_without_slurm_and_without_a_file_the_message_says_what_to_do() -> None:
    """The commands to save the accounting where it is."""
    done = flatline_process("jobs", PATH="/nonexistent")
    assert done.returncode == 2
    assert "sacct -a -D" in done.stderr
    assert "--from" in done.stderr


def test_five_thousand_jobs_are_listed_in_seconds(tmp_path: Path) -> None:
    """Completed ones cost a row; the process as a whole."""
    head = "JobID|JobName|User|Partition|State|Start|End|NodeList\n"
    rows = [
        f"{i}|t{i}|u{i % 9}|gpu|{'FAILED' if i % 500 == 0 else 'COMPLETED'}"
        f"|2026-11-20T01:00:00|2026-11-20T02:00:00|n{i % 300:03}\n"
        for i in range(1, 5001)
    ]
    (tmp_path / "sacct.txt").write_text(head + "".join(rows))
    done = flatline_process("jobs", "--from", str(tmp_path / "sacct.txt"))
    assert done.returncode == 3
    assert "4,990 jobs completed" in done.stdout


def test_places_are_told_once() -> None:
    """A headline that names the host is not followed by it."""
    made = morning()
    line = made.failed[0]
    assert line.told is not None
    told = replace(line.told, headline="GPU 3 of n003 fell off", culprits=(Place(host="n003"),))
    text = page.render(replace(made, failed=(replace(line, told=told),)))
    assert "at n003" not in text
