"""A checkpoint that was looked for and was not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

STEPS = "".join(
    f"2026-03-04 08:{n // 60:02d}:{n % 60:02d} step {n}/600 loss {3 * 0.9985**n:.4f}\n"
    for n in range(1, 601)
)
ROW = (
    "JobID|JobName|State|ExitCode|Start|End|NodeList|Restarts\n"
    "42|train|COMPLETED|0:0|2026-03-04T08:00:00|2026-03-04T08:11:00|gpu-003|{}\n"
)


def verdict(folder: Path, said: str, restarts: int | None = None) -> Verdict:
    (folder / "train.log").write_text(f"{said}\n{STEPS}Training completed\n")
    if restarts is not None:
        (folder / "sacct.txt").write_text(ROW.format(restarts))
    return diagnose(collect(Request((str(folder),))))


def test_a_place_that_a_first_try_names(tmp_path: Path) -> None:
    """With the record of a job that follows no other there was nothing to go on from."""
    assert verdict(tmp_path, "No existing checkpoints found in ./ckpt", 0).state == "healthy"


@pytest.mark.parametrize("restarts", [None, 0])
@pytest.mark.parametrize(
    "said",
    [
        "No existing checkpoints found",
        "No checkpoint found, training from scratch",
        "auto_resume: True\nresume_from_checkpoint: latest\nNo existing checkpoints found",
    ],
)
def test_a_program_that_always_looks(tmp_path: Path, said: str, restarts: int | None) -> None:
    """Nothing asked for a resume: that there was none yet contradicts no sound run."""
    assert verdict(tmp_path, said, restarts).state == "healthy"


@pytest.mark.parametrize(
    ("said", "restarts"),
    [
        ("=> no checkpoint found at 'model_17.pth.tar'", None),
        ("no checkpoint in ckpt-v2, starting from step 0", None),
        ("Namespace(resume_from_checkpoint='/c/step_500')\nNo existing checkpoints found", None),
        ("resume_from_checkpoint: /c/step_500\nNo existing checkpoints found", 0),
        ("No existing checkpoints found", 1),
    ],
)
def test_one_that_was_due(tmp_path: Path, said: str, restarts: int | None) -> None:
    """It was named, or the job had run before: whether it should have been there is open."""
    told = verdict(tmp_path, said, restarts)

    assert told.state != "healthy"
    assert told.code != "E2"


@pytest.mark.parametrize(("parent_looked", "state"), [(False, "found"), (True, "undetermined")])
def test_a_longer_run_beside_a_whole_one(tmp_path: Path, parent_looked: bool, state: str) -> None:
    """A program that looks for a checkpoint each time it begins was not asked to go on."""
    said = "No checkpoint found, training from scratch\n"
    (tmp_path / "a.log").write_text(
        said * parent_looked
        + "".join(
            f"2026-03-04 07:{n // 60:02d}:{n % 60:02d} step {n}/300 loss {3 * 0.9985**n:.4f}\n"
            for n in range(1, 301)
        )
        + "saved checkpoint ckpts/step_000300.pt\nTraining completed\n"
    )

    found = verdict(tmp_path, said.strip())

    assert found.state == state
    assert found.code == ("E2" if state == "found" else None)


FAIRSEQ = """\
2024-05-03 09:00:01 | INFO | fairseq_cli.train | {settings}
2024-05-03 09:00:05 | INFO | fairseq.trainer | Loaded checkpoint ck/last.pt ({place} updates)
2024-05-03 09:00:06 | INFO | fairseq.trainer | begin training epoch 7
2024-05-03 09:01:05 | INFO | train_inner | epoch 007:    100 / 5211 loss=9.9, num_updates={n}
"""


@pytest.mark.parametrize(
    ("settings", "place", "n", "lost"),
    [
        ("task: TranslationTask", "epoch 7 @ 0", 100, True),
        ("task: TranslationTask", "epoch 7 @ 31200", 31300, False),
        ("Namespace(reset_optimizer=True)", "epoch 7 @ 0", 100, False),
        ("fairseq-train bin --reset-optimizer --lr 1e-5", "epoch 7 @ 0", 100, False),
        ("Namespace(reset_optimizer=False)", "epoch 7 @ 0", 100, True),
        ("task: TranslationTask", "epoch 1 @ 0", 100, False),
    ],
)
def test_a_checkpoint_without_its_count(
    tmp_path: Path, settings: str, place: str, n: int, lost: bool
) -> None:
    (tmp_path / "train.log").write_text(FAIRSEQ.format(settings=settings, place=place, n=n))
    found = diagnose(collect(Request((str(tmp_path),))))
    assert (found.code == "E2") is lost
    assert found.confidence < 0.8


COMMAND = "+ python train.py -work_dir ./work -num_epochs 1000{}\n"
RESUME = " -resume ./work/run-0821/latest.pth"
LIMIT = (
    "slurmstepd: error: *** JOB 771820 ON g2 CANCELLED AT 2024-12-02T08:20:14 DUE TO TIME LIMIT"
    " ***\n"
)


def epochs(first: int, count: int = 3) -> str:
    return "".join(
        f"Time: 20241202-{n % 24:02d}11, Epoch: {n}, Loss: {0.5 / (n + 1):.6f}\n"
        for n in range(first, first + count)
    )


def jobs(folder: Path, first: str, second: str) -> Verdict:
    (folder / "slurm-771820.out").write_text(first)
    (folder / "slurm-772644.out").write_text(second)
    return diagnose(collect(Request((str(folder),))))


def test_a_later_job_was_told_to_go_on_and_did_not(tmp_path: Path) -> None:
    """Undated logs of two jobs: the number of the one that goes on tells that it is the later."""
    told = jobs(
        tmp_path, COMMAND.format("") + epochs(496) + LIMIT, COMMAND.format(RESUME) + epochs(0)
    )

    assert told.code == "E2"
    assert told.confidence < 0.8
    assert "epoch 0" in str(told)
    assert [one.disposition for one in told.run.attempts] == ["timeout", "unknown"]


@pytest.mark.parametrize(
    ("option", "first"),
    [
        (RESUME, 499),
        ("", 0),
        (" -resume auto", 0),
        (" -pretrained ./sam/tiny.pt", 0),
        (" -resume ./work/epoch_1.pth", 1),
        (" -resume ./work/best.pth", 40),
    ],
    ids=[
        "it went on",
        "a new run",
        "no checkpoint is named",
        "weights of another model",
        "an early checkpoint is meant",
        "one of the middle",
    ],
)
def test_a_later_job_that_was_not_told_or_went_on(tmp_path: Path, option: str, first: int) -> None:
    told = jobs(
        tmp_path, COMMAND.format("") + epochs(496) + LIMIT, COMMAND.format(option) + epochs(first)
    )

    assert told.code != "E2"


def test_steps_that_are_counted_within_each_epoch(tmp_path: Path) -> None:
    def logged(epochs: range) -> str:
        return "".join(
            f"epoch {epoch} step {step} loss {3 - epoch / 10:.4f}\n"
            for epoch in epochs
            for step in range(0, 500, 100)
        )

    resumed = COMMAND.format(" -resume ./work/best.pth")
    told = jobs(tmp_path, COMMAND.format("") + logged(range(10)), resumed + logged(range(10, 14)))

    assert told.code != "E2"


def test_a_command_that_names_a_checkpoint_of_a_short_run(tmp_path: Path) -> None:
    """One job alone: what it was to go on from is not known."""
    (tmp_path / "slurm-772644.out").write_text(COMMAND.format(RESUME) + epochs(0))

    assert diagnose(collect(Request((str(tmp_path),)))).code != "E2"


MEGATRON = (
    "------------------------ arguments ------------------------\n"
    "  load ............................................ /lustre/ckpt/ab\n"
    "WARNING: could not find the metadata file /lustre/ckpt/ab/latest_checkpointed_iteration.txt\n"
    "    will not load any checkpoints and will start from random\n"
)
SAVED = "  successfully saved checkpoint from iteration     500 to {} [ t 1/1, p 1/1 ]"


def first_of_a_chain(folder: Path, place: str, restarts: int | None = 0) -> Verdict:
    steps = STEPS.splitlines()
    log = [MEGATRON, *steps[:500], SAVED.format(place), *steps[500:], "Training completed"]
    (folder / "train.log").write_text("\n".join(log) + "\n")
    (folder / "sacct.txt").write_text(ROW.format(restarts))
    return diagnose(collect(Request((str(folder),))))


def test_none_where_the_run_saves_itself(tmp_path: Path) -> None:
    """As the first of jobs that go on from one another: sound, as far as is known."""
    verdict = first_of_a_chain(tmp_path, "/lustre/ckpt/ab")

    assert (verdict.state, verdict.confidence < 0.8) == ("healthy", True)
    assert any("began anew" in text for text in verdict.cannot_decide)


@pytest.mark.parametrize(
    ("place", "restarts"),
    [("/lustre/ckpt/ab-2", 0), ("/lustre/ckpt/a", 0), ("/scratch/ab", 0), ("/lustre/ckpt/ab", 1)],
)
def test_none_where_another_run_may_have_left_one(
    tmp_path: Path, place: str, restarts: int
) -> None:
    """It looked elsewhere, or had run before."""
    assert first_of_a_chain(tmp_path, place, restarts).state != "healthy"


def mmengine(epoch: int, n: int) -> str:
    return (
        f"03/03 03:{n:02d}:41 - mmengine - INFO - Epoch(train)  [{epoch}][{10 * n}/600]"
        f"  lr: 8.1e-04  eta: 1 day, 8:11:20  time: 0.4  loss: {7 - epoch / 9:.4f}\n"
    )


LOOKED = "03/03 11:28:12 - mmengine - INFO - Did not find last_checkpoint to be resumed.\n"


@pytest.mark.parametrize(
    ("first", "looked", "code"),
    [
        ((17, ""), LOOKED, "E2"),
        ((17, ""), "", "undetermined"),  # nothing was looked for
        ((1, ""), LOOKED, "undetermined"),  # nothing need have been saved
        ((17, LOOKED), LOOKED, "undetermined"),  # such a program always looks
    ],
)
def test_a_try_that_was_far_and_one_that_finds_nothing(
    tmp_path: Path, first: tuple[int, str], looked: str, code: str
) -> None:
    """In one log, with no line on what the first one saved."""
    epoch, said = first
    parts = [said, *(mmengine(epoch, n) for n in range(20, 50)), "\n", looked]
    parts += [mmengine(1, n) for n in range(1, 15)]
    (tmp_path / "train.log").write_text("".join(parts))
    found = diagnose(collect(Request((str(tmp_path),))))

    assert (found.code or "undetermined") == code
    assert found.confidence < 0.8


BEGINS_TO_SAVE = (
    "[2026-03-04 09:00:00,100] [INFO] [logging.py:96:log_dist] [Rank 0] [Torch] Checkpoint"
    " global_step400 is about to be saved!\n"
)
NONE_NAMED = (
    "[2026-03-04 11:00:00,100] [WARNING] [engine.py:2700:load_checkpoint] Unable to find latest"
    " file at /out/a/latest, if trying to load latest checkpoint please ensure this file exists.\n"
)


def counted(first: int, last: int) -> list[str]:
    return [f"epoch 0 step {n} loss {4 * 0.998**n:.4f}\n" for n in range(first, last + 1, 10)]


@pytest.mark.parametrize(
    ("before", "saves", "looked", "second", "code"),
    [
        ("", BEGINS_TO_SAVE, NONE_NAMED, (10, 150), "E2"),
        ("", "", NONE_NAMED, (10, 150), "undetermined"),  # nothing need have been saved
        ("", BEGINS_TO_SAVE, "", (10, 150), "undetermined"),
        (NONE_NAMED, BEGINS_TO_SAVE, NONE_NAMED, (10, 150), "undetermined"),  # it always looks
        ("", BEGINS_TO_SAVE, NONE_NAMED, (410, 550), "undetermined"),
        ("", BEGINS_TO_SAVE.replace("400", "4000"), NONE_NAMED, (10, 150), "undetermined"),
    ],
)
def test_a_try_that_began_to_save(
    tmp_path: Path, before: str, saves: str, looked: str, second: tuple[int, int], code: str
) -> None:
    """Whether that save is whole or was cut short, its steps are lost."""
    ended = (
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-04T09:00:09 DUE TO TIME LIMIT"
        " ***\n"
    )
    parts = [before, *counted(10, 400), saves, ended, looked, *counted(*second)]
    (tmp_path / "train.log").write_text("".join(parts))
    found = diagnose(collect(Request((str(tmp_path),))))

    assert (found.code or "undetermined") == code
    assert found.confidence < 0.8


def dated(*lines: str) -> str:
    """With the year, which mmengine prints and mmcv does not."""
    return "".join(lines).replace("03/03 ", "2026/03/03 ")


SAVES = "03/03 03:30:00 - mmengine - INFO - Saving checkpoint at 1 epochs\n"


@pytest.mark.parametrize(
    ("said", "saves", "epochs", "looked", "code"),
    [
        ("", SAVES, (1, 2), LOOKED, "E2"),
        ("", SAVES, (1, 2), "", "undetermined"),  # nothing was looked for
        ("", SAVES, (1,), LOOKED, "undetermined"),  # it ended as it saved
        ("", "", (1, 2), LOOKED, "undetermined"),
        (LOOKED, SAVES, (1, 2), LOOKED, "undetermined"),  # such a program always looks
    ],
)
def test_a_try_that_saved_and_one_that_finds_nothing(
    tmp_path: Path, said: str, saves: str, epochs: tuple[int, ...], looked: str, code: str
) -> None:
    """In two logs, with no more than that a save began and training went on behind it."""
    parts = [said, *(mmengine(1, n) for n in range(10, 20)), saves]
    parts += [mmengine(e, n) for e in epochs[1:] for n in range(30, 50)]
    (tmp_path / "train_1.log").write_text(dated(*parts))
    parts = [looked, *(mmengine(1, n).replace("03/03 03", "03/03 05") for n in range(1, 15))]
    (tmp_path / "train_2.log").write_text(dated(*parts))
    found = diagnose(collect(Request((str(tmp_path),))))

    assert (found.code or "undetermined") == code
    assert found.confidence < 0.8


def test_a_try_of_another_length_is_of_another_program(tmp_path: Path) -> None:
    parts = [*(mmengine(1, n) for n in range(10, 20)), SAVES, mmengine(2, 30), mmengine(2, 31)]
    (tmp_path / "train_1.log").write_text(dated(*parts).replace("/600", "/900"))
    parts = [mmengine(1, n).replace("03/03 03", "03/03 05") for n in range(1, 15)]
    (tmp_path / "train_2.log").write_text(dated(LOOKED, *parts))

    assert diagnose(collect(Request((str(tmp_path),)))).code is None


NO_LATEST = (
    "[2026-03-04 08:00:00,100] [WARNING] [engine.py:2806:load_checkpoint] Unable to find latest"
    " file at /c/r5/latest, if trying to load latest checkpoint please ensure this file exists or"
    " pass an explicit checkpoint tag when loading a checkpoint.\n"
)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("resume=True: continuing from iteration 0", "E2"),
        ("resume=False: not continuing from iteration 0", None),
        ("continuing from iteration 0 of the warm-up table", None),
    ],
)
def test_a_program_that_says_it_goes_on_from_nothing(
    tmp_path: Path, said: str, code: str | None
) -> None:
    """It may say so at its first start as well: no confident verdict."""
    found = verdict(tmp_path, NO_LATEST + said)
    assert found.code == code or (code is None and found.code != "E2")
    assert code is None or found.confidence < 0.8


NONE_THERE = (
    "WARNING: could not find the metadata file /w/gpt/latest_checkpointed_iteration.txt\n"
    "    will not load any checkpoints and will start from random\n"
)
CAME = "=== segment 3/9, segment 2 was job 5120: last saved iteration 4200\n"
ON = "=== continuing from the newest checkpoint\n"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (CAME + ON + NONE_THERE, "E2"),
        ("previous job 5120 hit its limit and reached step 4,200\n" + ON + NONE_THERE, "E2"),
        ("previous job 5120 hit its limit and got to step 4200\n" + ON + NONE_THERE, "E2"),
        ("[run.sh] resuming from the latest checkpoint: iteration 4200\n" + NONE_THERE, "E2"),
        ("=== continuation 2 of 9, the one before stopped at step 4200\n" + NONE_THERE, "E2"),
        ("=== continuation 2 of 9, the one before stopped at step 4200\n", None),
        (
            "[chain] segment 1 done, starting 2, resume expected at iteration 4200\n" + NONE_THERE,
            "E2",
        ),
        ("resume expected at iteration 4200 if the save is whole\n" + NONE_THERE, None),
        (
            "link: going on, continuing after job 51, newest saved step was 4200\n" + NONE_THERE,
            "E2",
        ),
        ("link: continuing after job 51, newest saved step was 0\n" + NONE_THERE, None),
        ("link: after job 51, newest saved step was 4200\n" + NONE_THERE, None),
        ("=== no continuation 2 as it stopped at step 4200\n" + NONE_THERE, None),
        ("=== continuation of the paragraph stopped at 4200\n" + NONE_THERE, None),
        ("resuming gpt-13b (part 4), previous job 88 wrote global_step4200\n" + NONE_THERE, "E2"),
        ("resuming gpt-13b, previous job 88 wrote global_step4200\n", None),
        ("gpt-13b (part 4), previous job 88 wrote global_step4200\n" + NONE_THERE, None),
        ("not resuming gpt-13b, previous job 88 saved step4200\n" + NONE_THERE, None),
        ("continuing gpt-13b, stage 2; previous job 88 wrote step4200\n" + NONE_THERE, None),
        ("resuming gpt-13b, previous job 88 wrote weights of step4200\n" + NONE_THERE, None),
        (CAME + NONE_THERE, None),  # a new stage of training may begin anew
        (ON + NONE_THERE, None),  # so the first of a chain says, too
        (CAME + ON, None),  # nothing says that none was there
        (CAME.replace("4200", "0") + ON + NONE_THERE, None),
        (CAME + "=== continuing from the newest checkpoint if there is one\n" + NONE_THERE, None),
        (CAME + "=== not continuing from that checkpoint\n" + NONE_THERE, None),
    ],
)
def test_a_script_that_says_how_far_the_run_before_had_come(
    tmp_path: Path, said: str, code: str | None
) -> None:
    found = verdict(tmp_path, said)

    assert (found.code if found.code == "E2" else None) == code
    assert code is None or found.confidence > 0.8


def test_a_run_that_goes_on_from_where_the_script_says(tmp_path: Path) -> None:
    """What was not found was something else."""
    steps = "".join(line for line in STEPS.splitlines(keepends=True)[300:])
    said = CAME.replace("4200", "300") + ON + NONE_THERE
    (tmp_path / "train.log").write_text(said + steps + "Training completed\n")

    assert diagnose(collect(Request((str(tmp_path),)))).code != "E2"


@pytest.mark.parametrize(("restarts", "code"), [(1, "E2"), (0, None), (None, None)])
def test_a_try_that_left_of_itself_and_was_queued_again(
    tmp_path: Path, restarts: int | None, code: str | None
) -> None:
    """It looked for a checkpoint as well, as such a program does; the record tells that both are
    one run."""
    looked = "No checkpoint found in {}, training from scratch\n"
    rows = [f"2026-03-04 07:{n // 60:02d}:{n % 60:02d} step {n}/3000 loss {3 * 0.9985**n:.4f}\n"
            for n in range(1, 601)]  # fmt: skip
    again = [row.replace(" 07:", " 08:") for row in rows[:300]]
    (tmp_path / "train.log").write_text(
        looked.format("/c/r0") + "".join(rows)
        + "Saved checkpoint at step 600 to /c/r0/step_600\nTraining completed\n"
        + looked.format("/c/r1") + "".join(again)
    )  # fmt: skip
    if restarts is not None:
        (tmp_path / "sacct.txt").write_text(
            "JobID|JobName|State|ExitCode|Start|End|Restarts|NodeList\n"
            f"9|gpt|RUNNING|0:0|2026-03-04T08:00:00|Unknown|{restarts}|n1\n"
        )

    told = diagnose(collect(Request((str(tmp_path),))))

    assert (told.code == "E2") is (code == "E2")


@pytest.mark.parametrize(
    ("said", "sure"),
    [("Training starts at step 1", False),
     ("No checkpoint found in /c/r0, training from scratch", True)],
)  # fmt: skip
def test_a_try_that_somebody_stopped_and_began_anew(tmp_path: Path, said: str, sure: bool) -> None:
    """Whoever stops a run and starts it once more may mean a new one."""
    rows = [f"2026-03-04 07:{n // 60:02d}:{n % 60:02d} step {n}/3000 loss {3 * 0.9985**n:.4f}\n"
            for n in range(1, 601)]  # fmt: skip
    (tmp_path / "train.log").write_text(
        "".join(rows) + "Saved checkpoint at step 600 to /c/r0/step_600\n"
        'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    main()\n'
        f"KeyboardInterrupt\n{said}\n" + "".join(row.replace(" 07:", " 08:") for row in rows[:300])
    )

    told = diagnose(collect(Request((str(tmp_path),))))

    assert told.code == "E2"
    assert (told.confidence >= 0.8) is sure


NNUNET = (
    "WARNING: Cannot continue training because there seems to be no checkpoint available to"
    " continue from. Starting a new training...\n"
)


@pytest.mark.parametrize(("restarts", "code"), [(None, "E2"), (0, None), (2, "E2")])
def test_nnunet_that_was_told_to_continue(
    tmp_path: Path, restarts: int | None, code: str | None
) -> None:
    """A script may always say so: a job that follows no other had nothing to go on from."""
    found = verdict(tmp_path, NNUNET, restarts)

    assert found.code == code or (code is None and found.state == "healthy")
    assert code is None or found.confidence < 0.8


@pytest.mark.parametrize(
    ("first", "above", "sound"),
    [(3, "", True), (4, "", True), (0, "", False),
     (3, "No checkpoint found in /ckpt, training from scratch\n", False)],
)  # fmt: skip
def test_a_resume_that_names_its_epoch(
    tmp_path: Path, first: int, above: str, sound: bool
) -> None:
    """open_clip's samples count within an epoch."""
    text = (
        above
        + "2026-04-02,13:01:20 | INFO | => resuming checkpoint '/ckpt/epoch_3.pt' (epoch 3)\n"
    )
    for n in range(1, 60):
        done = n * 327680
        text += (
            f"2026-04-02,13:{n:02d}:30 | INFO | Train Epoch: {first} [{done:9d}/128000000"
            f" ({n // 4}%)] Data (t): 0.012 Batch (t): 1.428, 11472.6/s, 1434/s/gpu LR: 0.00047"
            f" Logit Scale: 38.050 Contrastive_loss: {3.9 - n / 90:.4f} ({3.9 - n / 90:.4f})"
            f" Loss: {3.9 - n / 90:.4f} ({3.9 - n / 90:.4f})\n"
        )
    (tmp_path / "out.log").write_text(text)
    found = diagnose(collect(Request((str(tmp_path),))))

    assert any(out.code == "E2" for out in found.ruled_out) is sound
