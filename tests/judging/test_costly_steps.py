"""What saves cost, by lines that only say that one begins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose


@pytest.mark.parametrize(("cost_s", "code"), [(30.0, "D2"), (1.0, None)])
def test_saves_that_only_begin_are_timed(tmp_path: Path, cost_s: float, code: str | None) -> None:
    """Half of the time, or a fiftieth; the last save alone is said to have ended."""
    at, lines = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for step in range(1, 201):
        at += timedelta(seconds=3.0)
        loss = 2 + 40 / step
        lines.append(f"{at:%Y-%m-%d %H:%M:%S},000 INFO step {step}/900 loss {loss:.4f}")
        if step % 10 == 0:
            lines.append(f"{at:%Y-%m-%d %H:%M:%S},000 saving checkpoint to /ckpt/step{step}")
            at += timedelta(seconds=cost_s)
    lines.append(f"{at:%Y-%m-%d %H:%M:%S},000 INFO checkpoint saved at step 200")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))
    assert verdict.code == code
    if code:
        assert verdict.fault_class == "checkpoint-storm"
        assert "saving checkpoint" in str(verdict.shows[0].cites[0])


EVALUATED = "{at} ***** Running Evaluation *****"
SAVING = "{at} Saving model checkpoint to ./out/checkpoint-{step}"
SAVED = "{at} INFO checkpoint saved at step {step}"
ANEW = (
    "[rank0]:V0304 08:01:11.104 2211 torch/_dynamo/guards.py:2813] [0/3] [__recompiles]"
    " Recompiling function forward in /app/model.py:188"
)
COMPILED = "I0304 pxla.py:1234] Finished XLA compilation of jit(train_step) in {seconds} sec"


@pytest.mark.parametrize(
    ("lines", "fault_class"),
    [
        ([SAVING], "checkpoint-storm"),
        ([EVALUATED, SAVING], None),
        ([EVALUATED, SAVED], None),
        (["{at} val_loss 2.31 at step {step}", SAVING], None),
        (["{at} Not saving checkpoint: 2.31 is no better"], None),
        (["{at} Skip saving checkpoint"], None),
        ([ANEW], "recompilation"),
        ([EVALUATED, ANEW], None),
        ([COMPILED.replace("{seconds}", "28.3791505315")], "recompilation"),
        ([COMPILED.replace("{seconds}", "0.0107")], None),
    ],
)
def test_what_takes_the_time_of_steps(
    tmp_path: Path, lines: list[str], fault_class: str | None
) -> None:
    """Half a minute after every twentieth step: it is charged to a save or a compiler only where
    no evaluation lies between, and to a compiler no more than it states."""
    at, log = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for step in range(1, 201):
        at += timedelta(seconds=1.5)
        log.append(f"{at:%Y-%m-%d %H:%M:%S} INFO step {step}/900 loss {2 + 40 / step:.4f}")
        if step % 20 == 0:
            log += [line.format(at=f"{at:%Y-%m-%d %H:%M:%S}", step=step) for line in lines]
            at += timedelta(seconds=30.0)
    (tmp_path / "train.log").write_text("\n".join(log) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))
    assert verdict.fault_class == fault_class


@pytest.mark.parametrize("dated", [True, False])
@pytest.mark.parametrize(
    ("done", "code"),
    [
        ("within", "D6"),
        ("beside", None),  # in a thread of its own: no step is longer for it
        ("evaluated", None),
    ],
)
def test_a_compiler_may_be_heard_after_its_step(
    tmp_path: Path, dated: bool, done: str, code: str | None
) -> None:
    """The line stands after that of the step which took as long as it says, not before it."""
    at, log = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for step in range(1, 201):
        compiled = step > 40 and step % 10 == 0
        at += timedelta(seconds=1.5 + (28.0 if compiled and done != "beside" else 0.0))
        stamp = f"{at:%Y-%m-%d %H:%M:%S}"
        if compiled and done == "evaluated":
            log.append(EVALUATED.format(at=stamp))
        log.append(f"{stamp} INFO step {step}/900 loss {2 + 40 / step:.4f}")
        if compiled:
            log.append((f"{stamp} " if dated else "") + COMPILED.format(seconds=27.9))
    (tmp_path / "train.log").write_text("\n".join(log) + "\n")

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


COLLECTED = "[GC] Performing periodic GC collection took {:.2f} seconds"
NEMO = "Running garbage collection at train global_step: {}"


@pytest.mark.parametrize(
    ("line", "cost_s", "beside", "code"),
    [
        pytest.param(COLLECTED.format(20), 20.0, None, "D2", id="as-it-says"),
        pytest.param(
            "[gc] generation 2 collected 225600 objects in 19.71s on all ranks",
            20.0,
            None,
            "D2",
            id="named-in-brackets",
        ),
        pytest.param(NEMO, 20.0, None, "D2", id="by-the-clock"),
        pytest.param(COLLECTED.format(20), 2.0, None, None, id="cheap-by-the-clock"),
        pytest.param(COLLECTED.format(0.1), 20.0, None, None, id="cheap-as-it-says"),
        pytest.param(NEMO, 20.0, "checkpoint saved at step {}", None, id="beside-a-save"),
    ],
)
def test_garbage_is_blamed_for_what_it_takes(
    tmp_path: Path, line: str, cost_s: float, beside: str | None, code: str | None
) -> None:
    """A fifth of the time, in intervals in which nothing else is said to be done."""
    at, lines = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for step in range(1, 401):
        at += timedelta(seconds=2.0 + 0.01 * (step * 7 % 5))
        stamp = f"{at:%Y-%m-%d %H:%M:%S}"
        lines.append(f"{stamp},{at.microsecond // 1000:03d} INFO step {step}/900 loss"
                     f" {2 + 40 / step:.4f}")  # fmt: skip
        if step % 40 == 0:
            at += timedelta(seconds=cost_s)
            lines.append(line.format(step))
            lines += [beside.format(step)] if beside else []
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    if code:
        assert verdict.fault_class == "garbage-collection"
        assert "took 18% of the run's time" in verdict.headline
        stated = line != NEMO  # what else is done every forty steps nothing says
        assert (verdict.confidence >= 0.8) is stated
        assert any("something else" in one for one in verdict.cannot_decide) is not stated


@pytest.mark.parametrize(
    ("took_s", "code"),
    [(4.0, "D2"), (0.2, None), (60.0, None)],  # the last in a process of its own
)
def test_garbage_that_is_collected_between_any_two_lines(
    tmp_path: Path, took_s: float, code: str | None
) -> None:
    """No interval is without it to compare with: its own word is all there is."""
    at, lines = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for step in range(1, 401):
        at += timedelta(seconds=2.0 + (4.0 if step % 9 == 0 else 0.0))
        if step % 9 == 0:
            lines.append(f"{at:%Y-%m-%d %H:%M:%S} gc: generation 2 took {took_s:.2f}s")
        if step % 10 == 0:
            lines.append(f"{at:%Y-%m-%d %H:%M:%S} INFO step {step}/900 loss {2 + 40 / step:.4f}")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    ("saved", "step_s", "code"),
    [
        ("in 0.66s", 0.3, "D2"),
        ("in 0.66s", 0.96, None),  # beside the steps, which are as long without it
        ("in 0.02s", 0.3, None),
        ("", 0.3, None),
    ],
)
def test_a_save_after_every_step_is_told_by_what_it_says_it_took(
    tmp_path: Path, saved: str, step_s: float, code: str | None
) -> None:
    at, lines = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for step in range(1, 121):
        at += timedelta(seconds=0.96)
        stamp = f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}"
        lines.append(
            f"{stamp} INFO step {step}/900 loss {2 + 40 / step:.4f} step {step_s:.3f}s/it"
        )
        lines.append(f"{stamp} INFO saved checkpoint ckpts/step_{step:06d}.pt {saved}")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


@pytest.mark.parametrize(("save_s", "code"), [(60.0, "D2"), (0.4, None)])
def test_undated_saves_are_laid_beside_the_record(
    tmp_path: Path, save_s: float, code: str | None
) -> None:
    """What saves say they took is time of the run where its record holds it beside the steps."""
    lines, spent = [], 30.0
    for step in range(200):
        lines.append(
            f"Training epoch 0, iteration {step}/199 | lr: 0.0003 | global_step: {step} |"
            f" reduced_train_loss: {2 + 40 / (step + 9):.3f} | train_step_timing in s: 5.0"
        )
        spent += 5.0
        if step % 10 == 9:
            lines.append(f"checkpoint step {step + 1} saved in {save_s}s")
            spent += save_s
    lines.append("`Trainer.fit` stopped: `max_steps=200` reached.")
    (tmp_path / "slurm-18.out").write_text("\n".join(lines) + "\n")
    start = datetime(2026, 3, 4, 8, tzinfo=UTC)
    end = start + timedelta(seconds=spent)
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        f"18|t|COMPLETED|0:0|{start:%Y-%m-%dT%H:%M:%S}|{end:%Y-%m-%dT%H:%M:%S}|n1\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))
    assert verdict.code in ((code,) if code else ("G1", None))
    if code:
        assert "the record of the run" in verdict.shows[0].text


def test_saves_that_no_clock_weighs_are_a_warning(tmp_path: Path) -> None:
    """They may have been written beside the steps: healthy, but not surely."""
    lines = []
    for step in range(200):
        lines.append(
            f"Training epoch 0, iteration {step}/199 | lr: 0.0003 | global_step: {step} |"
            f" reduced_train_loss: {2 + 40 / (step + 9):.3f} | train_step_timing in s: 5.0"
        )
        if step % 10 == 9:
            lines.append(f"checkpoint step {step + 1} saved in 60.0s")
    lines.append("`Trainer.fit` stopped: `max_steps=200` reached.")
    (tmp_path / "slurm-18.out").write_text("\n".join(lines) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))
    assert verdict.code == "G1"
    assert verdict.confidence < 0.8
    assert any(f.finding.code == "D2" and f.finding.role == "warning" for f in verdict.findings)


def test_a_time_of_an_evaluation_beside_a_save_is_not_the_saves(tmp_path: Path) -> None:
    """NeMo's line on both."""
    lines = []
    for step in range(400):
        lines.append(
            f"Training epoch 0, iteration {step}/399 | lr: 0.0003 | global_step: {step} |"
            f" reduced_train_loss: {2 + 40 / (step + 9):.3f} | train_step_timing in s: 5.0"
        )
        if step % 100 == 99:
            lines.append(
                f"Epoch 0, global step {step + 1}: val_loss reached 2.1; gen_eval set-a 0.24"
                f" (398 s); saving model to '/out/step={step + 1}.ckpt' as top 2"
            )
    lines.append("`Trainer.fit` stopped: `max_steps=400` reached.")
    (tmp_path / "slurm-18.out").write_text("\n".join(lines) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "G1"
    assert not any(f.finding.code == "D2" for f in verdict.findings)


@pytest.mark.parametrize(
    ("save_s", "said", "code"),
    [
        pytest.param(38, True, "D2", id="between-steps"),
        pytest.param(1, True, "G1", id="beside-steps"),
        pytest.param(38, False, "G1", id="untold"),
        pytest.param(3, True, "G1", id="cheap"),
    ],
)
def test_saves_are_timed_by_a_lightning_bars_clock(
    tmp_path: Path, save_s: int, said: bool, code: str
) -> None:
    """The bar runs on through them; a step that follows one soon after did not take as long."""
    log, clock = [], 0
    for step in range(1, 201):
        clock += 6
        shown = f"{clock // 3600}:{clock // 60 % 60:02d}:{clock % 60:02d}"
        log.append(f"Epoch 0: {step // 2}%|# | {step}/200 [{shown}<0:00:00, 0.16it/s, v_num=4,"
                   f" train_loss={2 + 9 / step:.3f}]")  # fmt: skip
        if step % 8 == 0:
            clock += save_s
            took = 38 if save_s == 1 else save_s
            log += [f"Checkpoint step {step} saved in {took}.00 seconds"] if said else []
    log.append("`Trainer.fit` stopped: `max_steps=200` reached.")
    (tmp_path / "train.log").write_text("\n".join(log) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.confidence >= 0.8) == (code, code == "D2")


def test_a_bar_that_one_date_stands_before_tells_of_no_save(tmp_path: Path) -> None:
    """Passes of a bar that are drawn over one another are one line to whoever dates the lines."""
    at, lines = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for first in range(1, 601, 100):
        drawn = (f"Steps: {n // 6:3d}%|###  | {n}/600 [{n * 3 // 60:02d}:{n * 3 % 60:02d}<30:00,"
                 f"  3.00s/it, lr=0.0001, step_loss={0.1 + 4 / n:.4f}]"
                 for n in range(first, first + 100))  # fmt: skip
        at += timedelta(seconds=300)
        lines.append(f"{at:%Y-%m-%dT%H:%M:%S}.000000000Z " + "\r".join(drawn))
        lines.append(f"{at:%Y-%m-%dT%H:%M:%S}.100000000Z {at:%m/%d/%Y %H:%M:%S} - INFO - __main__"
                     f" - Saved state to /out/checkpoint-{first + 99}")  # fmt: skip
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.fault_class != "checkpoint-storm"


def test_a_pause_beside_one_save_is_no_habit(tmp_path: Path) -> None:
    """The job was preempted and went on half an hour later; its saves take next to nothing."""
    at, lines = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for step in range(20, 5001, 20):
        at += timedelta(seconds=17.0) + timedelta(minutes=31) * (step == 3520)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S} [I] step {step}/5000 loss {2 + 40 / step:.4f}")
        if step % 500 == 0 or step == 3500:
            lines.append(f"{at:%Y-%m-%d %H:%M:%S} [I] checkpoint saved at step {step}")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")

    assert diagnose(collect(Request((str(tmp_path),)))).fault_class != "checkpoint-storm"


def test_saves_of_which_some_take_long(tmp_path: Path) -> None:
    """Two in five meet a busy storage: most are quick, and half of the time is lost to them."""
    at, lines = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for step in range(20, 2001, 20):
        at += timedelta(seconds=17.0) + timedelta(seconds=420) * (step % 500 in (120, 220))
        lines.append(f"{at:%Y-%m-%d %H:%M:%S} [I] step {step}/5000 loss {2 + 40 / step:.4f}")
        if step % 100 == 0:
            lines.append(f"{at:%Y-%m-%d %H:%M:%S} [I] checkpoint saved at step {step}")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")

    assert diagnose(collect(Request((str(tmp_path),)))).fault_class == "checkpoint-storm"
