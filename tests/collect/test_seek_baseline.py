"""Which run is compared with where none is named."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.collect.baseline import earlier_run, sought
from flatline.diagnose import diagnose
from flatline.model import Job, RecordCite
from flatline.render.json import document
from flatline.verify import verify
from scenario import ROOT

BEGAN = datetime(2026, 3, 4, 8, tzinfo=UTC)
PORTS = ROOT / "ports_at_a_lower_rate_on_every_host"
HEAD = "JobID|JobName|User|State|ExitCode|Submit|Start|End|NNodes|NodeList|AllocTRES"


def job(number: str, ended_h: float, **more: object) -> Job:
    """A completed run of `gpt` on two nodes that ended so many hours before this one began."""
    ended = BEGAN - timedelta(hours=ended_h)
    made = Job(
        number, "gpt", "completed", "COMPLETED", RecordCite("sacct", "0", "COMPLETED", "x"),
        started_at=ended - timedelta(hours=1), ended_at=ended, node_count=2, gpus=16, user="ann",
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


THIS = replace(job("50", 0), started_at=BEGAN, ended_at=None, disposition="running")


def test_the_last_completed_run_of_the_same_name_and_shape_is_taken() -> None:
    """Neither another name, shape, user or end, nor a later one."""
    known = [
        job("41", 30),
        job("42", 20),
        job("43", 10, name="other"),
        job("44", 9, node_count=4),
        job("45", 8, gpus=8),
        job("46", 7, disposition="failed"),
        job("47", 6, user="bob"),
        job("51", -5),
        THIS,
    ]
    found = earlier_run(THIS, known)

    assert found is not None
    assert found.id == "42"


@pytest.mark.parametrize("change", [{"name": None}, {"node_count": None}, {"started_at": None}])
def test_a_run_of_unknown_shape_is_compared_with_none(change: dict[str, None]) -> None:
    """No baseline by a guess."""
    assert earlier_run(replace(THIS, **change), [job("42", 20)]) is None  # type: ignore[arg-type]


def test_no_record_no_baseline(tmp_path: Path) -> None:
    """A folder without accounting is compared with nothing, and nothing is said of it."""
    shutil.copytree(PORTS / "run", tmp_path / "run")
    facts = collect(Request((str(tmp_path / "run"),)))

    assert facts.baseline is None
    assert not any("baseline" in gap.need for gap in facts.gaps)
    assert sought((str(tmp_path),), None, ()) is None


def cluster(folder: Path) -> Path:
    """Records of four jobs and the logs of two: 41 completed, 44 runs."""
    rows = [
        HEAD,
        "41|gpt|ann|COMPLETED|0:0|2026-03-03T07:59:00|2026-03-03T08:00:00|2026-03-03T09:20:00|6"
        "|gpu-node-[10-15]|gres/gpu=12,node=6",
        "42|gpt|ann|COMPLETED|0:0|2026-03-03T09:59:00|2026-03-03T10:00:00|2026-03-03T11:20:00|3"
        "|gpu-node-[10-12]|gres/gpu=6,node=3",
        "43|gpt|ann|FAILED|1:0|2026-03-03T11:59:00|2026-03-03T12:00:00|2026-03-03T12:20:00|6"
        "|gpu-node-[10-15]|gres/gpu=12,node=6",
        "44|gpt|ann|RUNNING|0:0|2026-03-04T07:59:00|2026-03-04T08:00:00|Unknown|6"
        "|gpu-node-[10-15]|gres/gpu=12,node=6",
    ]
    folder.mkdir(exist_ok=True)
    (folder / "sacct.psv").write_text("\n".join(rows) + "\n")
    text = (PORTS / "baseline" / "job.log").read_text().replace("2026-03-04", "2026-03-03")
    (folder / "slurm-41.out").write_text(text)
    shutil.copy(PORTS / "run" / "job.log", folder / "slurm-44.out")
    return folder


def test_a_baseline_found_in_the_records_is_said_and_its_evidence_holds(tmp_path: Path) -> None:
    """The verdict names the job and how it was found; `verify` finds it there again."""
    folder = cluster(tmp_path / "logs")
    verdict = diagnose(collect(Request((str(folder),), job="44")))
    made = document(verdict)

    assert verdict.comparison is not None
    assert verdict.comparison.job == "41"
    assert "last completed run called 'gpt' on 6 nodes and 12 GPUs" in verdict.comparison.chosen
    assert verdict.comparison.pace is not None
    assert verdict.comparison.pace.loss_ratio == pytest.approx(0.138, abs=0.002)
    assert [c for c in verify(made, (str(folder),)) if not c.ok] == []


def test_the_first_run_of_its_kind_has_no_baseline(tmp_path: Path) -> None:
    """Nothing completed before job 41."""
    assert collect(Request((str(cluster(tmp_path / "logs")),), job="41")).baseline is None


def test_a_record_alone_is_no_baseline(tmp_path: Path) -> None:
    """Nothing is compared with a run of which only accounting knows."""
    folder = cluster(tmp_path / "logs")
    (folder / "slurm-41.out").unlink()
    facts = collect(Request((str(folder),), job="44"))

    assert facts.baseline is None
    assert not any("baseline" in gap.need for gap in facts.gaps)


def test_it_can_be_forgone(tmp_path: Path) -> None:
    """Who diagnoses many jobs at once reads none of them twice."""
    request = Request((str(cluster(tmp_path / "logs")),), job="44", seek_baseline=False)
    assert collect(request).baseline is None


SACCT = """#!/bin/sh
case "$*" in
  *helpformat*) echo JobID JobName User State Submit Start End NNodes NodeList AllocTRES StdOut;;
  *"-j 44"*json*) exit 1;;
  *"-j 44"*|*"-j 41"*|*"-S "*) python3 - "$@" <<'PY'
import sys
rows = open("@FOLDER@/sacct.psv").read().splitlines()
wanted = sys.argv[sys.argv.index("-j") + 1] if "-j" in sys.argv else None
kept = [r for r in rows[1:] if wanted in (None, r.split("|")[0])]
head = rows[0] + "|StdOut"
out = [head, *(f"{r}|@FOLDER@/slurm-{r.split('|')[0]}.out" for r in kept)]
print("\\n".join(out).replace("|", "|#|"))
PY
  ;;
  *) exit 1;;
esac
"""


def test_a_live_slurm_is_asked_for_the_run_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With stand-ins for its commands on the PATH: job 44 is compared with job 41."""
    folder = cluster(tmp_path / "logs")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (("sacct", SACCT.replace("@FOLDER@", str(folder))),
                       ("scontrol", "#!/bin/sh\nexit 1\n"),
                       ("sacctmgr", "#!/bin/sh\nexit 1\n")):  # fmt: skip
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    facts = collect(Request(("44",)))

    assert facts.baseline is not None
    assert facts.baseline.job is not None
    assert facts.baseline.job.id == "41"
    verdict = diagnose(facts)
    assert verdict.comparison is not None
    assert "found by itself in accounting" in verdict.comparison.chosen
    made = document(verdict)
    assert [c for c in verify(made, ("44",)) if not c.ok] == []
