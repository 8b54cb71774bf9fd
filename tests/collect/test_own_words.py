"""Saves and the end of a run in words of its own, told by where they stand among the steps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.facts import Facts

BEGAN = datetime(2026, 6, 3, 4, 30, tzinfo=UTC)
STEPS = 120


def facts(
    folder: Path,
    *behind: str,
    between: Callable[[int], str] | None = None,
    head: str = "",
    save_s: int = 60,
) -> Facts:
    """A loop of ten seconds a step that says something behind each tenth, and at its end."""
    at, text = BEGAN, [head] if head else []
    for n in range(1, STEPS + 1):
        at += timedelta(seconds=10)
        stamp = f"{at:%Y-%m-%d %H:%M:%S}"
        text.append(f"{stamp} step {n} loss {3 - n / 100:.4f} dt 10.0s")
        if between is not None and n % 10 == 0:
            at += timedelta(seconds=save_s)
            text.append(f"{at:%Y-%m-%d %H:%M:%S} {between(n)}")
    text += [f"{at:%Y-%m-%d %H:%M:%S} {line}" for line in behind]
    (folder / "train.log").write_text("\n".join(text) + "\n")
    return collect(Request((str(folder),)))


@pytest.mark.parametrize(
    "line",
    [
        lambda n: f"[ckpt] global_step{n} done in 60.1s (blocking); pruned global_step{n - 10}",
        lambda n: f"ckpt {n} 60.1s",
        lambda n: "snapshot written in 60.3s",
        lambda n: f"saved {n}",
        lambda n: f'{{"ev": "ckpt.end", "n": {n}, "dur_s": 60.3}}',
    ],
)
def test_saves_between_steps(tmp_path: Path, line: Callable[[int], str]) -> None:
    """One in ten steps that holds the run for six of them."""
    read = facts(tmp_path, between=line)
    saved = [m.progress.step for m in read.markers_of("checkpoint_saved")]

    assert saved == list(range(10, STEPS, 10))
    assert diagnose(read).code == "D2"


@pytest.mark.parametrize(
    "line",
    [
        lambda n: f"eval at {n}: best metrics of model 3 stored in 60.2 s",
        lambda n: f"loading checkpoint {n} done in 60.1 s",
        lambda n: f"checkpoint {n} skipped, next one written in 20 s",
        lambda n: f"wrote 64 samples to grid_{n}x.png",
        lambda n: f"async checkpoint {n} done in 60.1 s",
        lambda n: "gc took 60.1 s",
    ],
)
def test_what_is_no_save(tmp_path: Path, line: Callable[[int], str]) -> None:
    read = facts(tmp_path, between=line)

    assert read.markers_of("checkpoint_saved") == ()
    assert diagnose(read).code != "D2"


@pytest.mark.parametrize(
    "line",
    [
        f"all {STEPS} optimiser updates done, ema weights saved",
        f"pretraining complete after {STEPS} iterations",
        f"train.py: exiting after {STEPS} steps",
        f"manager closed after step {STEPS - 1}; steps={STEPS} finished.",
        f"{STEPS}/{STEPS} complete, shutting down cleanly",
        f'{{"finished": true, "u": {STEPS}, "best_ce": 1.5}}',
        f"output saved to /out; train loop complete ({STEPS} steps)",
    ],
)
def test_the_end_that_counts_the_steps(tmp_path: Path, line: str) -> None:
    read = facts(tmp_path, "writing the last weights", line)

    assert [m.progress.step for m in read.markers_of("finished")] == [STEPS]
    assert read.disposition == "completed"
    assert diagnose(read).code == "G1"


@pytest.mark.parametrize(
    "line",
    [
        f"exiting after {STEPS} steps: time limit is near",
        f"received SIGTERM at step {STEPS}, exiting",
        f"stopped early at step {STEPS}, done",
        f"finished evaluation of step {STEPS}: eval loss 2.0",
        f"checkpoint {STEPS} saved, done in 3.1 s",
        "all 12000 steps done",
        "done",
        f"10:{STEPS}:07 done",
        f"process exited with code 1 after step {STEPS}",
        f"training process died, exited after step {STEPS}",
        f"connection closed by peer at step {STEPS}",
        f"worker 3 lost, closing the run at step {STEPS}",
        f"train loop reached {STEPS}: loss threshold crossed, exiting",
        f"restarting: run ended at step {STEPS}",
    ],
)
def test_what_is_no_end(tmp_path: Path, line: str) -> None:
    """Another count, a reason to end sooner, a part of the work."""
    assert facts(tmp_path, line).markers_of("finished") == ()


@pytest.mark.parametrize(("count", "ended"), [(STEPS + 10, True), (STEPS + 30, False)])
def test_an_end_that_lies_behind_the_last_step_that_was_printed(
    tmp_path: Path, count: int, ended: bool
) -> None:
    """Each tenth was: the last may be as far behind."""
    facts(tmp_path, f"Training done: reached num_train_steps {count}")
    log = tmp_path / "train.log"
    rows = log.read_text().splitlines()
    kept = [row for row in rows if " loss " not in row or int(row.split()[3]) % 10 == 0]
    log.write_text("\n".join(kept) + "\n")

    found = collect(Request((str(tmp_path),))).markers_of("finished")
    assert [m.progress.step for m in found] == ([count] if ended else [])


def test_an_end_before_the_plan_is_none(tmp_path: Path) -> None:
    read = facts(tmp_path, f"exiting after {STEPS} steps", head="max_steps=3000")

    assert read.planned_steps == 3000
    assert read.markers_of("finished") == ()


def test_what_is_printed_between_steps_is_no_end(tmp_path: Path) -> None:
    read = facts(
        tmp_path, f"run {STEPS} reached, all shards flushed",
        between=lambda n: f"run {n} reached, all shards flushed", save_s=1,
    )  # fmt: skip

    assert read.markers_of("finished") == ()


@pytest.mark.parametrize(
    "line",
    [
        "goal: 500 steps",
        "500 updates planned, snapshot every 40 updates",
        "clip-audio: 500 batches to go",
        "plan=500 rounds",
        "training for 500 iterations",
    ],
)
def test_a_plan_in_words(tmp_path: Path, line: str) -> None:
    read = facts(tmp_path, head=line)

    assert read.planned_steps == 500
    assert not read.reached_plan


@pytest.mark.parametrize(
    "line",
    [
        "snapshot every 40 updates",
        "max 50 steps of warm-up",
        "reads 500 shards",
        "500 steps or 90 s",
    ],
)
def test_what_is_no_plan(tmp_path: Path, line: str) -> None:
    """Fewer than were made, or nothing that says so."""
    assert facts(tmp_path, head=line).planned_steps is None


def test_epochs_that_were_all_made(tmp_path: Path) -> None:
    text = "".join(
        f"epoch={n // 40} iter={25 * (n % 40)} train.loss={3 - n / 100:.4f}\n" for n in range(240)
    )
    for last, count in (("fit finished: 6 epochs", 1), ("fit finished: 60 epochs", 0)):
        (tmp_path / "train.log").write_text(f"{text}{last}\n")
        read = collect(Request((str(tmp_path),)))

        assert len(read.markers_of("finished")) == count


@pytest.mark.parametrize(
    ("line", "ended"),
    [
        (f"Checkpointed step {STEPS} and finished", True),
        (f"saved step {STEPS}, then exiting.", True),
        (f"Checkpointed step {STEPS} and finished the upload of its state", False),
        (f"saving of step {STEPS} finished", False),
        (f"Checkpointed step {STEPS - 20} and finished", False),
    ],
)
def test_a_last_save_and_the_end_in_one_line(tmp_path: Path, line: str, ended: bool) -> None:
    """What finished is the program, not its save."""
    assert bool(facts(tmp_path, line).markers_of("finished")) is ended


@pytest.mark.parametrize(
    "line",
    ["done. wall 3:08:11", "Job finished, exit 0", "*** all done (took 2h 14m) ***",
     "finished with exit code 0", "Training done in 45 min"],
)  # fmt: skip
def test_the_last_word_of_a_log(tmp_path: Path, line: str) -> None:
    """It tells the time that all of it took, or how it was left, and nothing follows."""
    read = facts(tmp_path, "best loss 1.8 at 120", "worker 2: SIGTERM, normal exit", line)

    assert len(read.markers_of("finished")) == 1
    assert diagnose(read).code == "G1"


@pytest.mark.parametrize(
    "lines",
    [
        ("done. wall 3:08:11", "step 121 loss 1.79"),
        ("received SIGTERM, saving", "Job finished, exit 0"),
        ("fold 0 of 5", "done. wall 0:20:11"),
        ("Job finished, exit 1",),
        ("done in 3.1 s",),
        ("loading the test set", "not done. wall 3:08:11"),
        ("evaluation done. wall 3:08:11",),
    ],
    ids=[
        "it goes on",
        "told to leave",
        "a part",
        "a failure",
        "too short",
        "a denial",
        "a part's",
    ],
)
def test_what_is_no_last_word(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert facts(tmp_path, *lines).markers_of("finished") == ()
