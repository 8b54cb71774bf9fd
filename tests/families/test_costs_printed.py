"""D2: what a program's own words tell of its saves and of its reductions."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict


def read(folder: Path, lines: list[str]) -> Verdict:
    (folder / "train.log").write_text("".join(f"{line}\n" for line in lines))
    return diagnose(collect(Request((str(folder),))))


def step(at: int, n: int) -> str:
    clock = f"2026-03-04 {8 + at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d},118"
    return (f"[rank0]:{clock} - root - INFO - step: {n:4d}  loss:  {4 - n / 999:.4f}  memory:"
            " 70.02GiB(88.41%)  tps: 5,120  tflops: 365.71  mfu: 36.57%")  # fmt: skip


def saved(at: int, seconds: float) -> str:
    clock = f"2026-03-04 {8 + at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d},645"
    return (f"[rank0]:{clock} - root - INFO - Finished saving the checkpoint (or staging if async"
            f" is enabled)in {seconds:.2f} seconds.")  # fmt: skip


def torchtitan(seconds: int, *, beside: bool) -> list[str]:
    """Two saves, each after ten lines of a minute's steps; `beside` the steps or instead of
    them."""
    lines, at, n = [], 0, 0
    for _ in range(2):
        for _ in range(10):
            at, n = at + 60, n + 10
            lines.append(step(at, n))
        if beside:
            for _ in range(seconds // 60):
                at, n = at + 60, n + 10
                lines.append(step(at, n))
        else:
            at += seconds
        lines.append(saved(at, seconds))
    return [*lines, step(at + 60, n + 10)]


def test_two_saves_of_minutes(tmp_path: Path) -> None:
    found = read(tmp_path, torchtitan(430, beside=False))

    assert (found.code, found.fault_class) == ("D2", "checkpoint-storm")
    assert found.confidence < 0.8


@pytest.mark.parametrize(("seconds", "beside"), [(430, True), (40, False)])
def test_saves_that_cost_little(tmp_path: Path, seconds: int, *, beside: bool) -> None:
    """Written while steps go on, or in seconds."""
    assert read(tmp_path, torchtitan(seconds, beside=beside)).code != "D2"


def deepspeed(forward: float, inner: float, reduced: float, *, count: int = 6) -> list[str]:
    lines = []
    for n in range(1, count + 1):
        of = (f"time (ms) | fwd: {forward:.2f} | bwd: {inner + reduced:.2f} | bwd_inner:"
              f" {inner:.2f} | bwd_allreduce: {reduced:.2f} | step: 90.00")  # fmt: skip
        micro = of.replace("wd:", "wd_microstep:").replace("allreduce:", "allreduce_microstep:")
        lines += [
            f"steps: {n} loss: {4 - n / 50:.4f} iter time (s): 1.0 samples/sec: 32.0",
            *[micro.replace(f"allreduce_microstep: {reduced:.2f}", "allreduce_microstep: 0.01")]
            * 3,
            of,
        ]
    return lines


def test_steps_that_reduce_more_than_they_compute(tmp_path: Path) -> None:
    """By the line of a whole step: most micro-steps reduce nothing."""
    found = read(tmp_path, deepspeed(150, 410, 13400))

    assert (found.code, found.fault_class) == ("D2", "slow-interconnect")
    assert found.confidence < 0.8
    assert any("late one" in one for one in found.cannot_decide)


@pytest.mark.parametrize(
    ("forward", "inner", "reduced", "count"),
    [(635.9, 1948.5, 567.2, 6), (150, 410, 13400, 2), (0.0, 0.0, 0.0, 6)],
)
def test_reductions_that_say_nothing(
    tmp_path: Path, forward: float, inner: float, reduced: float, count: int
) -> None:
    """A quarter of a step, two steps of which the first is the warm-up, timers that are off."""
    assert read(tmp_path, deepspeed(forward, inner, reduced, count=count)).code != "D2"


@pytest.mark.parametrize(("step_s", "found"), [(14.1, True), (2.0, False)])
def test_one_line_of_parts_that_the_steps_bear_out(
    tmp_path: Path, step_s: float, *, found: bool
) -> None:
    """14 s of which 13 reduce; where most steps took two, it was no usual one."""
    steps = [f"step {n}/900 loss {4 - n / 50:.4f} step_time {step_s:.2f}s" for n in range(1, 40)]
    verdict = read(tmp_path, [*steps, deepspeed(150, 410, 13400)[-1]])

    assert (verdict.code == "D2", verdict.confidence < 0.8) == (found, True)


def megatron(shortest: float) -> list[str]:
    lines = []
    for n in range(1, 7):
        lines += [
            f" iteration {n:8d}/   1000 | consumed samples: {n * 512} | elapsed time per iteration"
            f" (ms): 1000.0 | learning rate: 1.0E-04 | global batch size:   512 | lm loss:"
            f" {9 - n / 9:.6E} | loss scale: 1.0 | number of skipped iterations:   0 |",
            "(min, max) time across ranks (ms):",
            "    forward-backward ...............................: (300.10, 310.20)",
            f"    all-grads-sync .................................: ({shortest:.2f}, 640.05)",
        ]
    return lines


@pytest.mark.parametrize(("shortest", "slow"), [(610.5, True), (0.7, False)])
def test_the_rank_that_waits_least(tmp_path: Path, shortest: float, *, slow: bool) -> None:
    """A rank that comes last waits for none: what it spends is the network's."""
    found = read(tmp_path, megatron(shortest))

    assert (found.code == "D2") is slow


def maxtext(saves: int, extra_s: float, each_s: float = 10.0) -> list[str]:
    """Undated steps of which each twentieth pays for the save before it."""
    lines = []
    for n in range(20 * saves + 10):
        paid = extra_s if n and n % 20 == 0 else 0.0
        lines.append(
            f"0: completed step: {n}, seconds: {each_s + paid:.3f}, TFLOP/s/device: 335.198,"
            f" Tokens/s/device: 3290.450, total_weights: 1572864, loss: {4 + 8 / (n + 2):.3f}"
        )
        if n % 20 == 19:
            lines.append(f"0: Saved a checkpoint at step {n}.")
    return lines


RECORD = (
    "JobID|JobName|State|ExitCode|Start|End|Elapsed|NNodes|NodeList\n"
    "71|t|COMPLETED|0:0|2026-03-04T08:00:00|2026-03-04T{end}|{took}|1|n1\n"
)


@pytest.mark.parametrize(
    ("saves", "extra_s", "code"),
    [(15, 62.0, "D2"), (15, 20.0, "G1"), (5, 62.0, "G1"), (15, 90.0, "D2")],
    ids=["a quarter", "a tenth", "a trial", "a third"],
)
def test_saves_between_steps_that_each_take_long(
    tmp_path: Path, saves: int, extra_s: float, code: str
) -> None:
    """From a sixth of a run of half an hour on, below confident; of a shorter one a quarter."""
    lines = maxtext(saves, extra_s)
    total = int((20 * saves + 10) * 10 + saves * extra_s) + 60
    took = f"{total // 3600:02d}:{total // 60 % 60:02d}:{total % 60:02d}"
    end = f"{8 + total // 3600:02d}:{total // 60 % 60:02d}:{total % 60:02d}"
    (tmp_path / "sacct.txt").write_text(RECORD.format(end=end, took=took))
    verdict = read(tmp_path, lines)

    assert verdict.code == code
    assert extra_s != 62.0 or code != "D2" or verdict.confidence < 0.8


@pytest.mark.parametrize(
    "line",
    ["0: Running validation on 512 batches", "0: Generating 64 samples for FID",
     "0: Loading next data shard 17"],
)  # fmt: skip
def test_what_else_is_done_beside_a_save(tmp_path: Path, line: str) -> None:
    """Which of the two took the time nothing tells."""
    lines = [part for one in maxtext(15, 62.0)
             for part in ((one, line) if "Saved a checkpoint" in one else (one,))]  # fmt: skip
    (tmp_path / "sacct.txt").write_text(RECORD.format(end="09:07:20", took="01:07:20"))

    assert read(tmp_path, lines).code != "D2"


def test_one_save_that_stood_still_is_no_habit(tmp_path: Path) -> None:
    """Fifteen saves of which one took the time of all."""
    lines = maxtext(15, 1.0)
    at = next(i for i, line in enumerate(lines) if "step: 100," in line)
    lines[at] = lines[at].replace("seconds: 11.000", "seconds: 811.000")
    (tmp_path / "sacct.txt").write_text(RECORD.format(end="09:05:30", took="01:05:30"))

    assert read(tmp_path, lines).code != "D2"


def lerobot(each_s: float, data_s: float, interval_s: int, *, saves: bool = True) -> list[str]:
    """A hundred steps a line, behind each of them a checkpoint."""
    lines = []
    for n in range(1, 60):
        at = interval_s * n
        clock = f"INFO 2026-03-04 {8 + at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d}"
        lines.append(
            f"{clock} ot_train.py:352 step:{100 * n} smpl:{3 * n}K ep:7 epch:0.10"
            f" loss:{0.4 * 0.99**n:.3f} grdn:2.195 lr:1.0e-05 updt_s:{each_s:.3f}"
            f" data_s:{data_s:.3f}"
        )
        if saves:
            lines.append(f"{clock} ot_train.py:378 Checkpoint policy after step {100 * n}")
    return lines


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (lerobot(0.51, 0.007, 78), True),
        (lerobot(0.51, 0.007, 54), False),
        (lerobot(0.51, 0.2, 110), False),
        (lerobot(0.51, 0.007, 78, saves=False), False),
    ],
    ids=["saves take a third", "saves take little", "it waits for data as well", "no saves"],
)
def test_a_save_behind_every_line(tmp_path: Path, lines: list[str], found: bool) -> None:
    """No line is without one: what a step takes by its own word is what is left to compare."""
    told = read(tmp_path, lines)

    assert (told.fault_class == "checkpoint-storm") is found
    assert not found or told.confidence < 0.8
