"""D2 by what a log prints of saves and reductions, D6 by what it prints of the work of a step."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 5, 12, 15, 0, tzinfo=UTC)
ITERATION = (
    " iteration {n:8d}/   30000 | consumed samples: {s:12d} | elapsed time per iteration (ms):"
    " {ms:.1f} | learning rate: 2.000E-04 | global batch size:   256 | lm loss: {loss:.6E} |"
    " loss scale: 1.0 | grad norm: 0.951 | number of skipped iterations:   0 |\n"
)


def judged(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def megatron(saves_ms: float = 0.0, reduces: tuple[float, float] | None = None) -> str:
    """Undated, with Megatron's timers of saves, or of the reduction, across ranks."""
    lines = []
    for n in range(10, 701, 10):
        lines.append(ITERATION.format(n=n, s=256 * n, ms=5700 + n % 7, loss=9 - n / 150))
        if reduces is not None:
            lines.append(
                "(min, max) time across ranks (ms):\n"
                "    forward-compute ................................: (900.00, 950.00)\n"
                "    backward-allreduce .............................:"
                f" ({reduces[0]:.2f}, {reduces[1]:.2f})\n"
            )
        if saves_ms and n % 20 == 0:
            lines.append(
                f"  successfully saved checkpoint at iteration {n:7d} to /scratch/ckpts\n"
                "(min, max) time across ranks (ms):\n"
                "    save-checkpoint ................................:"
                f" ({saves_ms - 40:.2f}, {saves_ms:.2f})\n"
            )
    return "".join(lines)


@pytest.mark.parametrize(("saves_ms", "code"), [(108_000.0, "D2"), (4_000.0, None)])
def test_saves_that_megatron_times(tmp_path: Path, saves_ms: float, code: str | None) -> None:
    """Half of the time of a run by its record, or a few per cent of it."""
    ended = BEGAN + timedelta(seconds=60 + 700 * 5.7 + 35 * saves_ms / 1000)
    (tmp_path / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"9|CANCELLED|0:0|{BEGAN:%Y-%m-%dT%H:%M:%S}|{ended:%Y-%m-%dT%H:%M:%S}|1|n7\n"
    )
    verdict = judged(tmp_path, megatron(saves_ms))

    assert (verdict.code == "D2") == (code == "D2")
    if code is not None:
        assert (verdict.fault_class, verdict.confidence < 0.8) == ("checkpoint-storm", True)


@pytest.mark.parametrize(
    ("reduces", "found"), [((4300.0, 4500.0), True), ((900.0, 4500.0), False)],
    ids=["all ranks", "the one that is late waits for none"],
)  # fmt: skip
def test_the_shortest_reduction_of_all_ranks(
    tmp_path: Path, reduces: tuple[float, float], found: bool
) -> None:
    """Is what the network takes."""
    assert (judged(tmp_path, megatron(reduces=reduces)).code == "D2") == found


def loop(sync: float) -> str:
    at, lines = BEGAN, []
    for n in range(1, 301):
        at += timedelta(seconds=1.0 + sync + 0.01 * (n % 3))
        lines.append(
            f"{at:%Y-%m-%d %H:%M:%S} step {n:4d} | loss {3 - n / 300:.4f} | fwd+bwd 0.98s |"
            f" grad sync {sync:.2f}s | opt 0.06s\n"
        )
    return "".join(lines)


@pytest.mark.parametrize(("sync", "found"), [(10.5, True), (0.4, False)])
def test_a_step_that_consists_of_its_reduction(tmp_path: Path, sync: float, found: bool) -> None:
    """By the loop's own lines, whose steps the clock times; of one rank, so below 0.8."""
    verdict = judged(tmp_path, loop(sync))

    assert (verdict.code == "D2") == found
    if found:
        assert (verdict.fault_class, verdict.confidence < 0.8) == ("slow-interconnect", True)


def rows(name: str, values: tuple[int, int]) -> str:
    """JSON lines with short names of their own, and times under `at`; slower from step 1200 on."""
    at, lines = BEGAN, [json.dumps({"at": BEGAN.isoformat()[:19], "event": "config"}) + "\n"]
    for n in range(1, 2402):
        at += timedelta(seconds=6.6 if n > 1200 else 2.9)
        if n % 10 == 1:
            row = {"at": at.isoformat()[:19], "it": n, "loss": round(5 - n / 1000, 4)}
            row |= {name: values[n > 1200], "tok_per_s": 79_000 if n > 1200 else 181_000}
            lines.append(json.dumps(row) + "\n")
    return "".join(lines)


@pytest.mark.parametrize(
    "name", ["seqlen", "crop", "crop_tokens", "patch-size", "msa_depth", "resolution"]
)
def test_a_step_that_has_more_to_do(tmp_path: Path, name: str) -> None:
    """What it is called where steps are crops, images or alignments."""
    (tmp_path / "train.jsonl").write_text(rows(name, (256, 1024)))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.fault_class) == ("D6", "size")


@pytest.mark.parametrize(
    ("name", "values"),
    [("seqlen", (256, 256)), ("seqlen", (1024, 256)), ("world", (8, 32)), ("chunk", (1, 4))],
)
def test_near_misses_of_its_work(tmp_path: Path, name: str, values: tuple[int, int]) -> None:
    """Nothing moved, it became less, or it is no work of a step."""
    (tmp_path / "train.jsonl").write_text(rows(name, values))

    assert diagnose(collect(Request((str(tmp_path),)))).code != "D6"


@pytest.mark.parametrize(
    ("forward", "both", "found"),
    [(0.2, 4.4, True), (0.9, 2.6, False), (None, 4.4, False)],
    ids=["far more than is computed", "what a backward pass takes", "nothing to tell it by"],
)
def test_backward_and_its_reduction_in_one(
    tmp_path: Path, forward: float | None, both: float, found: bool
) -> None:
    whole = (forward or 0.2) + both + 0.1
    first = "" if forward is None else f"fwd {forward:.2f} "
    text = "".join(
        f"step {n} loss {6 - n / 90:.3f} {first}bwd+allreduce {both + n % 3 / 50:.2f} opt 0.10"
        f" total {whole + n % 3 / 50:.2f} s\n"
        for n in range(1, 80)
    )
    verdict = judged(tmp_path, text)

    assert (verdict.code == "D2") == found
    assert verdict.confidence < 0.8
