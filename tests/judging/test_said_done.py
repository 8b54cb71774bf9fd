"""A result that could not be sent, of a run whose training was done."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import LogCite, Verdict

STEPS = "".join(f"step {n}/600 loss {3 * 0.9985**n:.4f}\n" for n in range(1, 601))
EARLY = STEPS.replace("step 301/", "Saved checkpoint at step 300 to /out/300\nstep 301/")
DONE = "Training complete\n"
SAVED = "Saved checkpoint at step 600 to /out/final\n"
SENDS = "uploading /out/final to s3://models/run-7\n"
ERROR = (
    "Traceback (most recent call last):\n"
    '  File "/w/push.py", line 31, in <module>\n'
    "    client.upload_file(path, bucket, key)\n"
    "{}\n"
)
EXPIRED = ERROR.format("boto3.exceptions.S3UploadFailedError: Failed to upload x: ExpiredToken")
REPORTS = (
    "Traceback (most recent call last):\n"
    '  File "/w/report.py", line 3, in <module>\n'
    "    write(metrics)\n"
    "KeyError: 'val_acc'\n"
)
FULL = REPORTS.replace(
    "KeyError: 'val_acc'",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to"
    " allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB",
)
ROW = ("JobID|State|ExitCode|Start|End\n"
       "7|FAILED|1:0|2026-03-04T08:00:00|2026-03-04T09:00:00\n")  # fmt: skip


def judged(folder: Path, *parts: str) -> Verdict:
    (folder / "train.log").write_text("".join(parts))
    (folder / "sacct.txt").write_text(ROW)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    "last",
    [EXPIRED, ERROR.format("botocore.exceptions.EndpointConnectionError: Could not connect to the"
                           ' endpoint URL: "https://s3.example/models"')],
    ids=["a token", "an endpoint"],
)  # fmt: skip
def test_training_was_done(tmp_path: Path, last: str) -> None:
    """It is a warning beside a sound run, and not sure."""
    verdict = judged(tmp_path, STEPS, SAVED, DONE, SENDS, last)

    assert (verdict.code, verdict.state) == ("G1", "healthy")
    assert verdict.confidence < 0.8
    assert "could not be sent" in verdict.headline
    failed = [cite.text for cite in verdict.shows[0].cites if isinstance(cite, LogCite)][-1]
    assert failed.startswith(last.splitlines()[-1][:60])
    assert [f.finding.role for f in verdict.findings if f.finding.code in ("A3", "C6")] == [
        "warning"
    ]


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ((STEPS[:9000], SAVED, SENDS, EXPIRED), "A3"),
        ((STEPS, DONE, SENDS, EXPIRED), "A3"),
        ((EARLY, DONE, SENDS, EXPIRED), "A3"),
        ((STEPS, SAVED, DONE, "wandb: uploading artifact run-7-history\n", REPORTS), "A3"),
        ((STEPS, SAVED, DONE, REPORTS), "A3"),
        ((STEPS, SAVED, DONE, SENDS, EXPIRED, FULL),
         None),
    ],
    ids=["amid the steps", "nothing was saved", "saved long before", "sent beside it",
         "nothing is sent", "another failure"],
)  # fmt: skip
def test_near_misses(tmp_path: Path, parts: tuple[str, ...], code: str | None) -> None:
    verdict = judged(tmp_path, *parts)

    assert verdict.state != "healthy"
    assert code is None or verdict.code == code
