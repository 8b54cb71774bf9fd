"""A run that stands still, by one dated look at its GPUs long after its last line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict
from flatline.render.json import render
from flatline.verify import verify

BAR = "  0%|          | 0/629 [00:00<?, ?it/s]\n"
BANNER = "[INFO|trainer.py:1714] 2023-10-18 08:02:44,118 >> ***** Running training *****\n"
LOOKED = "Wed Oct 18 10:12:39 2023\n"


def card(n: int, *, watts: int = 85, busy: int = 100, mib: int = 29911, form: str = "On ") -> str:
    return (
        f"|   {n}  NVIDIA A800-SXM4-80GB     {form} | 00000000:1{n}:00.0 Off |            0 |\n"
        f"| N/A   34C    P0   {watts}W / 400W |  {mib}MiB / 81920MiB |   {busy}%    Default |\n"
    )


def verdict(folder: Path, log: str, look: str, **others: str) -> Verdict:
    (folder / "run.log").write_text(log)
    (folder / "look.txt").write_text(look)
    for name, text in others.items():
        (folder / f"{name}.txt").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def dated(count: int = 40, minute: int = 2) -> str:
    return "".join(
        f"2023-10-18 08:{minute:02d}:{n:02d},000 step {n}/5000 loss {8 - n * 0.01:.3f}\n"
        for n in range(1, count + 1)
    )


def undated(count: int = 10) -> str:
    return "".join(
        f"iter {10 * n} step {10 * n}: loss {2.1 - n / 20:.4f}, iter time: 611.20ms\n"
        for n in range(1, count + 1)
    )


@pytest.mark.parametrize(
    ("log", "cards", "code"),
    [
        (BANNER + BAR, card(0) + card(1), "C1"),
        ("distributed_backend=nccl\n" + BANNER + BAR, card(0) + card(1), "C2"),
        (dated(), card(0) + card(1), "C2"),
        (dated(), card(0) + card(1, busy=0, mib=3), "C3"),
        (BANNER + BAR, card(0, form="WDDM "), "C3"),
    ],
    ids=["no step", "no step of ranks that had met", "steps", "one GPU", "Windows"],
)
def test_gpus_that_wait_long_after_the_last_line(
    tmp_path: Path, log: str, cards: str, code: str
) -> None:
    """At full utilisation and little power; one look, so never sure."""
    told = verdict(tmp_path, log, LOOKED + cards)

    assert told.code == code
    assert told.confidence < 0.8


@pytest.mark.parametrize(
    ("log", "look"),
    [
        (dated(), LOOKED + card(0, watts=310) + card(1, watts=305)),
        (dated(), LOOKED + card(0) + card(1, watts=320)),
        (dated(), LOOKED + card(0) + card(1, busy=60)),
        (dated(), card(0) + card(1)),
        (dated(), "Wed Oct 18 08:04:10 2023\n" + card(0) + card(1)),
        (dated(), "Wed Oct 18 10:04:10 2023\n" + card(0) + card(1)),
        (dated(), "Wed Oct 18 07:12:39 2023\n" + card(0) + card(1)),
        (dated() + "Training completed\n", LOOKED + card(0) + card(1)),
        (dated() + "Traceback (most recent call last):\n"
         '  File "t.py", line 1, in <module>\nKeyError: 1\n', LOOKED + card(0) + card(1)),
        (BANNER + "torch.compile: compiling the model\n" + BAR, LOOKED + card(0) + card(1)),
        (BANNER + "Map:" + BAR, LOOKED + card(0) + card(1)),
        (BANNER + "tokenised\n" * 12 + BAR, LOOKED + card(0) + card(1)),
        (BANNER, LOOKED + card(0) + card(1)),
        ("[rank0]: world size 1\n" + undated(), LOOKED + card(0) + card(1)),
    ],
    ids=[
        "at work", "another's at work", "half busy", "no date", "soon after",
        "soon after by a clock of another zone", "before", "it had ended", "it had failed",
        "it compiles", "data is prepared", "the bar may be much later", "no bar", "undated",
    ],
)  # fmt: skip
def test_a_look_that_shows_no_standstill(tmp_path: Path, log: str, look: str) -> None:
    assert verdict(tmp_path, log, look).code not in ("C1", "C2", "C3")


def test_another_jobs_gpus_beside_one_of_one_rank(tmp_path: Path) -> None:
    """More GPUs than ranks: whose they are is not told."""
    one = "All distributed processes registered. Starting with 1 processes\n"

    assert verdict(tmp_path, one + dated(), LOOKED + card(0) + card(1)).code is None


NODES = (
    "$ kubectl get nodes\nNAME  STATUS  ROLES  AGE  VERSION\nn4    Ready   gpu    9d   v1.30.5\n"
)
LS = "-rw-r--r-- 1 nu nu 2207 {} {}\n"


@pytest.mark.parametrize(
    ("listing", "code"),
    [
        (LS.format("2023-10-18 08:38:03.118820000 +0800", "run.log"), "C2"),
        (LS.format("Oct 18 08:38", "run.log"), "C2"),
        (LS.format("2023-10-18 08:38:03.118820000 +0800", "last.ckpt"), "C2"),
        (LS.format("2023-10-18 10:11:03.000000000 +0800", "run.log"), None),
        (LS.format("2023-10-18 10:11:03.000000000 +0800", "last.ckpt"), None),
        (LS.format("2023-10-18 08:38:03.118820000 +0800", "other.log"), None),
        (LS.format("2023-10-18 08:38:03.118820000 +0800", "a.ckpt")
         + LS.format("2023-10-18 08:39:03.118820000 +0800", "b.ckpt"), None),
        (LS.format("2023-10-19 08:38:03.118820000 +0800", "run.log"), None),
    ],
    ids=["the log", "without a year", "its checkpoint", "written just now", "saved just now",
         "another file", "several checkpoints", "later than the look"],
)  # fmt: skip
def test_when_a_log_without_times_was_last_written(
    tmp_path: Path, listing: str, code: str | None
) -> None:
    """By `ls -l` beside the look: both speak the time of one shell."""
    look = LOOKED + card(0) + card(1) + "\n$ ls -l --full-time\n" + listing

    assert verdict(tmp_path, undated(), look).code == code


@pytest.mark.parametrize(
    ("day", "code"), [("Wed Oct 18 10:12:50", "C2"), ("Thu Oct 19 10:12:50", None)]
)
def test_a_listing_in_a_file_of_its_own(tmp_path: Path, day: str, code: str | None) -> None:
    """It counts where it says about the time of the look."""
    ls = f"$ date; ls -l\n{day} CST 2023\n" + LS.format("Oct 18 08:38", "run.log")
    look = LOOKED + card(0) + card(1)

    assert verdict(tmp_path, undated(), look, ls=ls).code == code
    assert verdict(tmp_path, undated(), look, ls=NODES + ls).code == code


STAT = "node4  Wed Oct 18 10:12:39 2023  470.57.02\n"


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("[{}] Tesla V100-SXM2-32GB | 38'C, 100 % | 21344 / 32510 MB | zh(21344M)\n", "C2"),
        ("[{}] Tesla V100-SXM2-32GB | 71'C, 100 % | 21344 / 32510 MB | zh(21344M)\n", None),
        (
            "[{}] Tesla V100-SXM2-32GB | 51'C, 100 %, 60 / 300 W | 21344 / 32510 MB | zh(9M)\n",
            "C2",
        ),
        (
            "[{}] Tesla V100-SXM2-32GB | 41'C, 100 %, 190 / 300 W | 21344 / 32510 MB | z(9M)\n",
            None,
        ),
    ],
    ids=["cool", "warm", "little power", "much power"],
)
def test_what_gpustat_shows(tmp_path: Path, row: str, code: str | None) -> None:
    """Where it shows no power, how warm the cards are."""
    told = verdict(tmp_path, dated(), STAT + row.format(2) + row.format(3))

    assert told.code == code
    assert told.confidence < 0.8


NEMO = "".join(
    f"Epoch 0: :   0%|          | {n}/100000 [00:{n // 60:02d}:{n % 60:02d}<30:04:16, v_num=2-10,"
    f" reduced_train_loss={6.9 - n / 300:.3f}, global_step={n}.0, train_step_timing in s=1.01]\n"
    for n in range(170, 190)
)
CANCELLED = (
    "slurmstepd: error: *** STEP 88120.0 ON dgx-h-11 CANCELLED AT 2023-10-18T10:{}:37 ***\n"
)


@pytest.mark.parametrize(
    ("after", "code"),
    [(CANCELLED.format(14), "C2"), ("", None), (NEMO.replace("| 1", "| 2"), None)],
    ids=["cancelled later without a step", "the log ends", "steps follow"],
)
def test_a_look_inside_the_log(tmp_path: Path, after: str, code: str | None) -> None:
    """Its steps have no times: what follows tells that none came."""
    begins = "[NeMo W 2023-10-18 08:01:02 nemo_logging:349] few workers\n"
    (tmp_path / "run.log").write_text(begins + NEMO + LOOKED + card(0) + card(1) + after)

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def test_the_evidence_holds(tmp_path: Path) -> None:
    """What is cited of a table that is read as metrics, too, stands there."""
    head = LOOKED + "+----+\n| NVIDIA-SMI 535.54.03    Driver Version: 535.54.03 |\n+----+\n"
    told = verdict(tmp_path, BANNER + BAR, head + card(0) + card(1))

    assert told.code == "C1"
    checks = verify(json.loads(render(told)), (str(tmp_path),))
    assert [check for check in checks if not check.ok] == []
