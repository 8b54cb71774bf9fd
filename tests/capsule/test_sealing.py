"""A run sealed: the same verdict anywhere, no secret in it, nothing written where it was."""

from __future__ import annotations

import gzip
import json
import pickle
import shutil
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

import planted
from flatline.capsule.sealing import Sealed, seal
from flatline.capsule.texts import hidden, masked_record
from flatline.collect import Request, collect
from flatline.collect.stores import Question, ask
from flatline.diagnose import diagnose
from flatline.errors import FormatError, UsageError
from flatline.model import Verdict
from flatline.render.json import document
from flatline.series.promql.evaluate import Matrix
from flatline.verify import verify
from scenario import Scenario, scenarios
from sources.servers import exporter, free_port, program, running, scraping, wait_for

HF = planted.SHAPED["hugging face"]
STEPS = "".join(
    f"2026-03-01 04:00:{i:02d} step {i}/59 loss {5 / (i + 1):.3f}\n" for i in range(60)
)
TSDB = Path(__file__).parent.parent / "fixtures" / "tsdb" / "db"


def quiet(stage: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""


def sealed(target: Path, output: Path, **asked: object) -> Sealed:
    request = Request((str(target),), **asked)  # type: ignore[arg-type]
    return seal(request, output, output.suffix == ".capsule", quiet)


def judged(target: Path, **asked: object) -> Verdict:
    facts = collect(Request((str(target),), **asked))  # type: ignore[arg-type]
    facts.strict = True
    return diagnose(facts)


def gist(verdict: Verdict) -> dict[str, object]:
    """All that a verdict says but where it was looked for."""
    said: dict[str, object] = json.loads(json.dumps(document(verdict), default=str))
    run = said["run"]
    assert isinstance(run, dict)
    del run["target"]
    return said


# --- the same verdict ---------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda s: s.name)
def test_a_capsule_is_judged_as_its_run_was(scenario: Scenario, tmp_path: Path) -> None:
    """The whole document is the same: verdict, findings, what is ruled out, gaps, evidence; with
    nothing said of the job again; and what was cited of the run holds of the capsule."""
    path = tmp_path / "run.capsule"
    request = scenario.request()
    seal(Request(request.targets, job=request.job), path, True, quiet)
    beside = scenario.baseline
    original, again = scenario.verdict(), judged(path, baseline=beside)

    assert gist(again) == gist(original)
    for verdict in (original, again):
        checks = verify(document(verdict), (str(path),), None, beside)
        assert [check for check in checks if not check.ok] == []


def test_what_was_asked_for_is_asked_again(tmp_path: Path) -> None:
    """A folder of several jobs is sealed for one, and judged as that one."""
    run = tmp_path / "runs"
    run.mkdir()
    rows = ["JobID|JobName|State|ExitCode|Start|End|NodeList"]
    for job in ("41", "42"):
        rows.append(f"{job}|train|FAILED|1:0|2026-03-01T04:00:00|2026-03-01T05:00:00|n{job}")
        (run / f"slurm-{job}.out").write_text(STEPS + f"ValueError: of {job}\n")
    (run / "sacct.psv").write_text("\n".join(rows) + "\n")
    sealed(run, tmp_path / "x.capsule", job="42", hosts=("n42",))
    facts = collect(Request((str(tmp_path / "x.capsule"),)))

    assert facts.job is not None
    assert facts.job.id == "42"
    assert {file.source for file in facts.files} == {"sacct.psv", "slurm-42.out"}


def test_metrics_of_a_database_are_narrowed_and_answer_alike(tmp_path: Path) -> None:
    """A TSDB folder beside a log: its samples of the run's time, asked as there."""
    run = tmp_path / "run"
    shutil.copytree(TSDB, run / "metrics")
    (run / "job.log").write_text(STEPS)
    first = datetime(2026, 11, 20, 16, 30, tzinfo=UTC)
    sealed(run, tmp_path / "x.capsule", start=first, end=first + timedelta(minutes=30))
    capsule = (str(tmp_path / "x.capsule"),)
    query = "DCGM_FI_DEV_SM_CLOCK"
    at = first + timedelta(minutes=20)
    one, other = (ask(Question(query, target, at=at)).found for target in ((str(run),), capsule))

    assert isinstance(one, Matrix)
    assert isinstance(other, Matrix)
    assert one.values.tolist() == other.values.tolist()
    assert set(one.labels) == set(other.labels)
    late = ask(Question(query, capsule, at=first + timedelta(hours=3))).found
    assert isinstance(late, Matrix)
    assert len(late.labels) == 0


def scraped(url: str) -> int:
    """How often a Prometheus has scraped its exporter."""
    query = "count_over_time(DCGM_FI_DEV_SM_CLOCK[5m])"
    with urllib.request.urlopen(f"{url}/api/v1/query?query={query}") as reply:
        found = json.load(reply)["data"]["result"]
    return min((int(item["value"][1]) for item in found), default=0)


def test_samples_of_a_server_are_fetched(tmp_path: Path) -> None:
    """Those of the run's time that Flatline reads, raw; the capsule then needs no server."""
    prometheus = program("prometheus")
    run = tmp_path / "run"
    run.mkdir()
    began = datetime.now(UTC)
    with exporter() as port:
        mine = free_port()
        command = [prometheus, f"--config.file={scraping(tmp_path, port)}",
                   f"--storage.tsdb.path={tmp_path / 'tsdb'}",
                   f"--web.listen-address=127.0.0.1:{mine}"]  # fmt: skip
        url = f"http://127.0.0.1:{mine}"
        with running(command, f"{url}/-/ready"):
            wait_for(lambda: scraped(url) >= 4)
            (run / "job.log").write_text(f"{began:%Y-%m-%d %H:%M:%S} step 1/1 loss 2.0\n")
            ended = datetime.now(UTC)
            made = sealed(run, tmp_path / "x.capsule", prometheus=url, start=began, end=ended)
    query = "count_over_time(DCGM_FI_DEV_SM_CLOCK[5m])"
    reply = ask(Question(query, (str(made.path),), at=ended))
    assert isinstance(reply.found, Matrix)
    names = {dict(labels)["gpu"] for labels in reply.found.labels}

    assert names == {"0", "1"}
    assert reply.found.values.min() >= 3
    assert "requests_total" not in reply.metrics
    facts = collect(Request((str(made.path),)))
    assert len(facts.series("gpu_sm_clock_hertz").rows) == 2


# --- secrets ------------------------------------------------------------------------------------


def everything(folder: Path) -> Iterator[bytes]:
    for path in folder.rglob("*"):
        yield path.name.encode()
        if path.is_file():
            yield path.read_bytes()


def test_no_secret_is_in_a_capsule(tmp_path: Path) -> None:
    """Every service's key, every named one, a private key: in logs, archives, records, labels,
    names of files; the lines keep their numbers."""
    run = tmp_path / "run"
    run.mkdir()
    lines = [f"line {n}: using {secret}" for n, secret in enumerate(planted.SHAPED.values())]
    lines += [line for _, (line, _) in planted.NAMED.items()]
    (run / "job.log").write_text(STEPS + "\n".join(lines) + "\nRuntimeError: boom\n")
    (run / "old.log.gz").write_bytes(gzip.compress((STEPS + f"token {HF}\n").encode()))
    (run / f"key_{HF}.log").write_text(STEPS)
    (run / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|SubmitLine|Start\n"
        f"7|train|FAILED|1:0|sbatch --export=HF_TOKEN={HF} x.sh|2026-03-01T04:00:00\n"
    )
    (run / "m.prom").write_text(
        f'# TYPE up gauge\nup{{url="https://x/?key={HF}"}} 1 1772337600000\n'
    )
    made = sealed(run, tmp_path / "folder")
    held = b"\0".join(everything(made.path))

    assert made.masked_lines > len(planted.SHAPED)
    assert HF.encode() not in held
    for name, secret in planted.SHAPED.items():
        assert secret.encode() not in held, name
    for name, (_, secret) in planted.NAMED.items():
        assert secret.encode() not in held, name
    log = next(made.path.glob("files/*/job.log")).read_text().split("\n")
    assert len(log) == len((run / "job.log").read_text().split("\n"))
    assert log[:59] == STEPS.split("\n")[:59]
    assert log[-2] == "RuntimeError: boom"


def test_a_private_key_is_masked_as_a_block(tmp_path: Path) -> None:
    """Its last line, which looks like nothing, as well; the lines around it stand."""
    body = ["c2hvcnQ" + letter * 57 for letter in "abcdefgh"]
    key = [
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        *body,
        "dGFpbA",
        "-----END OPENSSH PRIVATE KEY-----",
    ]
    (tmp_path / "job.log").write_text("\n".join(["before", *key, "after", *STEPS.split("\n")]))
    made = sealed(tmp_path / "job.log", tmp_path / "out")
    lines = next(made.path.glob("files/*/job.log")).read_text().split("\n")

    assert (lines[0], lines[len(key) + 1]) == ("before", "after")
    assert set(lines[1 : len(key) + 1]) == {"[masked]"}


def test_a_line_without_a_secret_is_kept_byte_for_byte() -> None:
    """Colours, carriage returns and bytes that are no text."""
    for line in (b"\x1b[31mred\x1b[0m\n", b"a\rb\rc\n", b"\xff\xfe\x00 x\r\n", b""):
        assert hidden(line) is line
    assert hidden(f"10%\rtoken {HF}\rdone\n".encode()) == b"10%\rtoken [masked]\rdone\n"


def test_a_record_that_masking_would_change_is_left_out() -> None:
    """What it says is compared before and after; rubbish is no record."""
    table = b"JobID|JobName|State|Start\n7|train|FAILED|2026-03-01T04:00:00\n"

    assert masked_record("sacct.psv", table) == table
    with pytest.raises(FormatError):
        masked_record("sacct.psv", b"rubbish\n")


def test_a_field_of_terminal_escapes_alone_says_nothing() -> None:
    """A record that holds one is sealed: an escape is no word that masking takes away."""
    squeue = Path(__file__).parents[1] / "fixtures" / "slurm" / "squeue-22.05.json"
    record = json.loads(squeue.read_text("utf-8"))
    record["jobs"][0]["state_reason"] = "\x1b[31m"
    kept = json.loads(masked_record(squeue.name, json.dumps(record).encode()))

    assert kept["jobs"][0] == record["jobs"][0] | {"state_reason": ""}
    assert kept["jobs"][1:] == record["jobs"][1:]


def test_a_dump_is_kept_as_json(tmp_path: Path) -> None:
    """No pickle is in a capsule, no secret of it, and the dump reads as it did."""
    run = tmp_path / "run"
    run.mkdir()
    for rank in range(2):
        entry = {
            "record_id": 0, "pg_id": 0, "process_group": ("0", "default_pg"),
            "collective_seq_id": 1, "p2p_seq_id": 0, "op_id": 1, "is_p2p": False,
            "profiling_name": "nccl:all_reduce", "time_created_ns": 1772337600000000000,
            "input_sizes": ((4, 5),), "input_dtypes": ["Float"], "output_sizes": ((4, 5),),
            "state": "scheduled", "retired": False,
            "frames": [{"name": f"login('{HF}')", "filename": "train.py", "line": 3}],
        }  # fmt: skip
        dump = {
            "version": "2.4", "entries": [entry],
            "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
            "pg_status": {"0": {"last_enqueued_collective": 1, "last_started_collective": 1,
                              "last_completed_collective": -1}},
        }  # fmt: skip
        (run / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump))
    (run / "job.log").write_text(STEPS)
    made = sealed(run, tmp_path / "folder")
    files = sorted(made.path.glob("files/*/nccl_trace_rank_*"))
    before, after = (collect(Request((str(target),))).dumps for target in (run, made.path))

    assert len(files) == 2
    assert all(orjson.loads(file.read_bytes())["version"] == "2.4" for file in files)
    assert HF.encode() not in b"".join(everything(made.path))
    assert before == after
    assert [dump.rank for dump in after] == [0, 1]


# --- where it is written ------------------------------------------------------------------------


def listing(folder: Path) -> list[tuple[str, int, int]]:
    return sorted(
        (str(path), path.stat().st_mtime_ns, path.stat().st_size)
        for path in (folder, *folder.rglob("*"))
    )


def test_nothing_is_written_into_the_target(tmp_path: Path) -> None:
    """Not a file, not a time."""
    run = tmp_path / "run"
    shutil.copytree(TSDB, run / "metrics")
    (run / "job.log").write_text(STEPS)
    before = listing(run)
    time.sleep(0.01)
    made = sealed(run, tmp_path / "x.capsule")
    judged(made.path)

    assert listing(run) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "x.capsule"]


@pytest.mark.parametrize("name", ["x.capsule", "folder"])
def test_what_came_there_meanwhile_is_not_overwritten(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place is taken only when all is written, and only if it is free."""
    (tmp_path / "job.log").write_text(STEPS)

    def taken(stage: str, done: int, total: int) -> None:
        (tmp_path / name).write_text("mine")

    with pytest.raises(UsageError, match="nothing is overwritten"):
        seal(Request((str(tmp_path / "job.log"),)), tmp_path / name, name.endswith("e"), taken)
    assert (tmp_path / name).read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["job.log", name])


def test_a_capsule_of_a_capsule_is_the_same(tmp_path: Path) -> None:
    """Sealed again it holds the same files, records what was missing, and masks nothing twice."""
    run = next(s for s in scenarios() if s.name == "gpu_throttled_one_of_many").run
    one = sealed(run, tmp_path / "one").path
    two = sealed(one, tmp_path / "two").path

    def held(folder: Path) -> dict[str, bytes]:
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and path.name != "manifest.json"
        }

    assert held(one) == held(two)
