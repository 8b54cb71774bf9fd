"""Composer's own clock tells when its steps were made, with the dated lines between them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.own_clock import own_clock

BEGAN = datetime(2026, 2, 8, 3, tzinfo=UTC)


def log(steps: int, step_s: float, save_s: float, every: int) -> tuple[str, datetime]:
    at, text = BEGAN, []
    for n in range(1, steps + 1):
        at += timedelta(seconds=step_s)
        hours = (at - BEGAN).total_seconds() / 3600
        text.append(f"[batch={n}/4800]:\n\t Train loss/train/total: {9 - n / 100:.4f}\n"
                    f"\t Train throughput/batches_per_sec: {1 / step_s:.4f}\n"
                    f"\t Train time/train: {hours:.4f}")  # fmt: skip
        if n % every == 0:
            text.append(
                f"{at:%F %T},100: rank0[7][MainThread]: DEBUG: composer.checkpoint.state:"
                f" Saving checkpoint to /ckpt/ep0-ba{n}"
            )
            at += timedelta(seconds=save_s)
            text.append(f"{at:%F %T},100: rank0[7][MainThread]: INFO:"
                        " composer.callbacks.checkpoint_saver: Checkpoint locally saved to"
                        f" /ckpt/ep0-ba{n}/__0_0.distcp")  # fmt: skip
    return "\n".join(text) + "\n", at


@pytest.mark.parametrize(("save_s", "storm"), [(160.0, True), (4.0, False)])
def test_what_saves_cost(tmp_path: Path, save_s: float, storm: bool) -> None:
    text, ended = log(300, 4.0, save_s, 25)
    (tmp_path / "train.log").write_text(text)
    (tmp_path / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End\n"
        f"7|CANCELLED by 5|0:0|{BEGAN:%FT%T}|{ended + timedelta(minutes=1):%FT%T}\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert ((verdict.code, verdict.fault_class) == ("D2", "checkpoint-storm")) is storm


@pytest.mark.parametrize(("silent_min", "code"), [(0, "G1"), (40, None)])
def test_whether_a_run_still_advances(tmp_path: Path, silent_min: int, code: str | None) -> None:
    text, last = log(290, 9.4, 60.0, 100)
    (tmp_path / "train.log").write_text(text)
    lasted = int((last + timedelta(minutes=silent_min) - BEGAN).total_seconds())
    elapsed = f"{lasted // 3600:02d}:{lasted // 60 % 60:02d}:{lasted % 60:02d}"
    (tmp_path / "sacct.txt").write_text(
        f"JobID|State|ExitCode|Start|End|Elapsed\n7|RUNNING|0:0|{BEGAN:%FT%T}|Unknown|{elapsed}\n"
    )

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def test_lines_behind_a_stamp(tmp_path: Path) -> None:
    """A launcher may put one before every line, those of the metrics as well."""
    text, at, lines = log(300, 4.0, 4.0, 50)[0], BEGAN, []
    for line in text.splitlines():
        at += timedelta(seconds=4.0 * line.startswith("[batch="))
        lines.append(f"[{at:%F %T}] {line}" if line[0] in "[\t" else line)
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    facts = collect(Request((str(tmp_path),)))
    track = facts.main_track()

    assert track is not None
    assert sum(track.has_loss) == 300


@pytest.mark.parametrize("kinds", [("train", "val", "total"), ("total",), ("total", "train")])
def test_one_clock_of_two(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    """After an evaluation the total is ahead of training's own."""
    lines = []
    for n in range(1, 41):
        ran = {"train": 5.0 * n, "val": 60.0 * (n // 10), "total": 5.0 * n + 60.0 * (n // 10)}
        lines.append(f"[batch={n}/900]:\n\t Train loss/train/total: {9 - n / 100:.4f}\n")
        lines += (f"\t Train wall_clock/{kind}: {ran[kind]:.4f}\n" for kind in kinds)
    (tmp_path / "train.log").write_text("".join(lines))
    track = collect(Request((str(tmp_path),))).main_track()

    assert track is not None
    clocked = own_clock(track, range(len(track.steps)))
    assert [*clocked.values()][-1] == (200.0 if kinds[0] == "train" else 440.0)
