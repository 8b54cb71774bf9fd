"""Secrets that are planted in a run are on no surface of its verdict, and its evidence holds."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

import planted
import recorded
from flatline.cli import Engine, answer
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.redact import MASK, mask
from flatline.render.json import document
from flatline.verify import verify

SHAPED = sorted(planted.SHAPED.items())
NAMED = sorted(planted.NAMED.items())
HF = planted.SHAPED["hugging face"]
AWS = planted.SHAPED["aws key id"]
STEPS = "".join(f"2026-03-01 04:00:{i:02d} step {i}/100 loss {5 / i:.3f}\n" for i in range(1, 30))


def shown(capfd: pytest.CaptureFixture[str], *argv: str) -> str:
    """All that a command writes, on either stream."""
    answer(argv, Engine())
    return "".join(capfd.readouterr())


def surfaces(capfd: pytest.CaptureFixture[str], target: Path, *more: str) -> str:
    """All that every surface shows of a target; verify holds of it."""
    formats = ("text", "json", "markdown", "html")
    told = [shown(capfd, "diagnose", str(target), *more, "--format", name) for name in formats]
    verdict = target.parent / "verdict.json"
    verdict.write_text(told[1])
    told.append(shown(capfd, "verify", str(verdict), str(target)))
    assert "citations hold" in told[-1] or "cites nothing" in told[-1]
    return "".join(told)


@pytest.mark.parametrize(("service", "secret"), SHAPED, ids=[name for name, _ in SHAPED])
def test_no_service_s_key_is_shown(service: str, secret: str) -> None:
    """In prose, quoted, coloured, in a name, in an address, behind an underscore."""
    joined = "" if service in ("mailgun", "modal") else f"run-{secret}"  # too plain to be told
    for line in (joined, f"Error {secret} rejected", f"['{secret}']", f"\x1b[31m{secret}\x1b[0m",
                 f"logs/job_{secret}.log", f"https://x/y?z={secret}&a=1"):  # fmt: skip
        assert secret[4:-4] not in mask(line), service


@pytest.mark.parametrize(("name", "line", "secret"), [(n, *pair) for n, pair in NAMED])
def test_no_value_of_a_secret_s_name_is_shown(name: str, line: str, secret: str) -> None:
    """As it stands, labelled, coloured, and behind a time."""
    for form in (line, f"[rank0]: {line}", f"3: \x1b[1m{line}\x1b[0m",
                 f"2026-03-01 04:00:00,123 INFO {line}"):  # fmt: skip
        assert secret not in mask(form), name
    assert mask(mask(line)) == mask(line)


@pytest.mark.parametrize("line", planted.ORDINARY)
def test_evidence_that_looks_like_a_secret_stays(line: str) -> None:
    """GPU ids, commits, digests, communicators, checkpoints, nodes."""
    assert mask(line) == line


@pytest.mark.parametrize("block", planted.PEM)
def test_lines_of_a_private_key_are_masked_one_by_one_too(block: str) -> None:
    """A log is read a line at a time; the last, short line is known by its padding alone."""
    *body, last = block.split("\n")[1:-1]

    assert [mask(line) for line in body] == [MASK] * len(body)
    assert not last.endswith("=") or mask(last) == MASK


def test_a_crash_that_prints_its_environment(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every planted line, as the message of an exception and as the last line of the log."""
    run = tmp_path / "run"
    for at, (_, (line, secret)) in enumerate(NAMED):
        folder = run.with_name(f"run{at}")
        folder.mkdir()
        crash = (
            f'Traceback (most recent call last):\n  File "/a.py", line 1, in f\n    f({line!r})\n'
        )
        (folder / "a.log").write_text(f"{STEPS}{crash}ValueError: {line}\n{line}\n")
        if at % 8 == 0:
            assert secret not in surfaces(capfd, folder)
        else:
            verdict = document(diagnose(collect(Request((str(folder),)))))
            assert secret not in repr(verdict)
            assert all(check.ok for check in verify(verdict, (str(folder),)))


def test_names_of_files_and_folders(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """They are what citations call their sources, and verify finds the files again."""
    run = tmp_path / f"run_{AWS}"
    (run / f"job-{HF}").mkdir(parents=True)
    crash = "Traceback (most recent call last):\nValueError: x\n"
    (run / f"job-{HF}" / "a.log").write_text(STEPS + crash)
    (run / f"job-{HF}x" / "b").mkdir(parents=True)
    (run / f"job-{HF}x" / "a.log").write_text(STEPS + crash)
    (run / f"pipe-{HF}").symlink_to("nowhere")
    told = surfaces(capfd, run)

    assert HF not in told
    assert AWS not in told
    assert "job-[masked]/a.log~2" in told


def test_records(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Names, comments, reasons, submit lines, nodes and paths of Slurm's rows, coloured too."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList|SubmitLine|Comment|WorkDir|Reason\n"
        f"7|\x1b[31m{HF}\x1b[0m|NODE_FAIL|1:0|2026-03-01T04:00:00|2026-03-01T05:00:00|n-{AWS}|"
        f"sbatch --export=A_TOKEN={planted.SHAPED['gitlab']} x|{HF}|/home/{HF}|{HF}\n"
    )
    (run / "job.txt").write_text(
        f"JobId=7 JobName={HF}\n   UserId=bob(1) JobState=NODE_FAIL Reason={HF} ExitCode=1:0\n"
        f"   StartTime=2026-03-01T04:00:00 EndTime=2026-03-01T05:00:00 NodeList=n-{AWS}\n"
        f"   Command=/x/{HF}.sh StdOut=/x/{HF}.out Comment={HF}\n"
    )
    told = surfaces(capfd, run)

    assert all(secret not in told for secret in (HF, AWS, planted.SHAPED["gitlab"]))


def test_labels_of_metrics(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Hosts are culprits, and their labels stand in queries."""
    run = tmp_path / "run"
    run.mkdir()
    rows = [
        f'DCGM_FI_DEV_XID_ERRORS{{gpu="0",Hostname="n-{HF}",api_key="hunter22"}} 79 {t}000'
        for t in range(1_700_000_000, 1_700_000_600, 60)
    ]
    (run / "m.prom").write_text("# TYPE DCGM_FI_DEV_XID_ERRORS gauge\n" + "\n".join(rows) + "\n")
    told = surfaces(capfd, run)

    assert HF not in told
    assert "hunter22" not in told


def test_dumps_of_a_flight_recorder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Groups, operations and files of frames are names that a program gave."""
    run = tmp_path / "run"
    run.mkdir()
    world = {"0": (f"pg_{HF}", (0, 1, 2, 3))}
    for rank in range(4):
        held = recorded.raw(
            recorded.left(6, f"nccl:{HF}", process_group=("0", f"pg_{HF}")),
            *([recorded.entry(7, f"nccl:{HF}", process_group=("0", f"pg_{HF}"))] * (rank != 2)),
            status={"0": recorded.counters(7 if rank != 2 else 6, 6)},
            config=world,
        )
        (run / f"_dump_{rank}").write_bytes(pickle.dumps(held, 2))
    told = surfaces(capfd, run)

    assert "rank 2" in told
    assert HF not in told


def test_errors_and_wrong_calls(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What was typed stands in errors, and what was read in those of verify."""
    log = tmp_path / "a.log"
    log.write_text(STEPS)
    cited = {"id": HF, "kind": "log", "source": HF, "line": 1, "text": HF}
    document_ = {"schema_version": 1, "evidence": [cited], "findings": [{"cites": [AWS]}]}
    (tmp_path / "v.json").write_text(json.dumps(document_))
    told = [
        shown(capfd, "diagnose", f"/nowhere/{HF}"),
        shown(capfd, "diagnose", str(log), f"--{HF}"),
        shown(capfd, "diagnose", str(log), "--format", HF),
        shown(capfd, "diagnose", str(log), "--start", HF),
        shown(capfd, "diagnose", str(log), "--prometheus", f"http://a:{HF}@p:9090"),
        shown(capfd, "diagnose", str(log), "--job", HF),
        shown(capfd, "diagnose", str(log), "--output", f"/{HF}/x"),
        shown(capfd, HF),
        shown(capfd, "families", HF),
        shown(capfd, "explain", HF),
        shown(capfd, "explain", f"RuntimeError: CUDA out of memory {HF}"),
        shown(capfd, "query", str(log), f'x{{a="{HF}"', "--json"),
        shown(capfd, "jobs", "--from", f"/nowhere/{HF}"),
        shown(capfd, "verify", str(tmp_path / "v.json"), str(log)),
    ]

    assert [HF in text or AWS in text for text in told] == [False] * len(told)
    assert all(told)
