"""A job that was to go on from the one before it, of the same name, and began anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.collect.parent import Span, lay_before
from flatline.diagnose import diagnose
from flatline.errors import SourceError
from flatline.facts import Facts
from flatline.judging.fresh_start import begins_where_it_saves
from flatline.model import Verdict
from flatline.render.json import render
from flatline.verify import verify

HEAD = "JobID|JobName|User|State|ExitCode|Submit|Start|End|NNodes|NodeList\n"
PARENT = (
    "700|{name}|ann|{state}|0:0|2026-03-04T07:50:00|2026-03-04T08:00:00|2026-03-04T{end}|1|n1\n"
)
CHILD = "733|pre|ann|RUNNING|0:0|2026-03-04T10:00:00|2026-03-04T10:10:00|Unknown|1|n1\n"


def steps(hour: int, first: int, last: int, plan: int) -> str:
    return "".join(
        f"2026-03-04 {hour:02d}:{n // 60:02d}:{n % 60:02d} step {n}/{plan}"
        f" loss {3 * 0.9985**n:.4f}\n"
        for n in range(first, last)
    )


def judged(
    folder: Path,
    *,
    state: str = "TIMEOUT",
    name: str = "pre",
    saved: str = "Saved checkpoint at step 900 to /ckpt/pre/step_900\n",
    plan: int = 3000,
    said: str = "No checkpoint found in /scratch2/pre, starting from scratch\n",
    first: int = 1,
    end: str = "09:00:00",
) -> Verdict:
    folder.mkdir(exist_ok=True)
    (folder / "slurm-700.out").write_text(steps(8, 1, 1000, plan) + saved)
    (folder / "slurm-733.out").write_text(said + steps(10, first, 900, 3000))
    row = PARENT.format(state=state, name=name, end=end)
    (folder / "sacct.txt").write_text(HEAD + row + CHILD)
    return diagnose(collect(Request((str(folder),), job="733")))


@pytest.mark.parametrize("state", ["TIMEOUT", "PREEMPTED", "NODE_FAIL"])
def test_the_job_before_it_left_a_checkpoint(tmp_path: Path, state: str) -> None:
    """It was found nowhere, and no error says so: told, and not with confidence."""
    verdict = judged(tmp_path, state=state)

    assert (verdict.code, verdict.resubmit) == ("E2", "fix_first")
    assert verdict.confidence < 0.8
    assert any("900" in shown.text for shown in verdict.shows)
    assert all(check.ok for check in verify(json.loads(render(verdict)), (str(tmp_path),)))


def test_a_name_that_says_that_it_goes_on(tmp_path: Path) -> None:
    """The records of the two have the same name but for that; and a fresh start in other words."""
    said = "no earlier weights under store, cold start\n"
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "slurm-700.out").write_text(
        steps(8, 1, 1000, 3000) + "Saved checkpoint at step 900 to /ckpt/pre/step_900\n"
    )
    (tmp_path / "a" / "slurm-733.out").write_text(said + steps(10, 1, 900, 3000))
    row = PARENT.format(state="TIMEOUT", name="pre", end="09:00:00")
    for name, code in (("pre-cont", "E2"), ("pre-other", "G1")):
        child = CHILD.replace("|pre|", f"|{name}|")
        (tmp_path / "a" / "sacct.txt").write_text(HEAD + row + child)
        verdict = diagnose(collect(Request((str(tmp_path / "a"),), job="733")))

        assert verdict.code == code


LIMITED = HEAD.replace("|NNodes", "|Timelimit|NNodes")


@pytest.mark.parametrize(
    ("limit", "first", "code"),
    [("01:00:00", 1, "E2"), ("02:00:00", 1, "G1"), ("01:00:00", 2002, "G1")],
    ids=["cut off", "before its limit", "done as well"],
)
def test_one_on_record_as_completed_that_ran_to_its_limit(
    tmp_path: Path, limit: str, first: int, code: str
) -> None:
    """Its checkpoints name no step, and its log is in one file with this one's."""
    said = "Saved checkpoint\nNo checkpoint found in /new/pre, starting from scratch\n"
    log = steps(8, first, first + 999, 3000) + said
    (tmp_path / "pre.log").write_text(log + steps(10, 1, 900, 3000))
    rows = PARENT.format(state="COMPLETED", name="pre", end="09:00:00")
    rows += CHILD.replace("10:10:00", "10:00:00")
    (tmp_path / "sacct.txt").write_text(LIMITED + rows.replace("|1|n1", f"|{limit}|1|n1"))
    verdict = diagnose(collect(Request((str(tmp_path),), job="733")))

    assert verdict.code == code
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "COMPLETED"},
        {"state": "CANCELLED"},
        {"state": "FAILED"},
        {"name": "other"},
        {"saved": ""},
        {"plan": 1000},
        {"said": ""},
        {"said": "Resumed from step 900\n", "first": 901},
        {"end": "11:00:00"},
    ],
    ids=["done", "ended by hand", "failed", "another", "saved nothing", "another plan",
         "looked for none", "went on", "beside it"],
)  # fmt: skip
def test_a_run_of_its_own(tmp_path: Path, changed: dict[str, object]) -> None:
    """A new beginning that is meant, or nothing that it was to go on from."""
    assert judged(tmp_path, **changed).code != "E2"  # type: ignore[arg-type]


def test_it_looked_in_the_very_folder(tmp_path: Path) -> None:
    """Then it does not matter how the one before it ended."""
    said = (
        "  load ............................................ /ckpt/pre\n"
        "    will not load any checkpoints and will start from random\n"
    )
    saved = "  successfully saved checkpoint from iteration     900 to /ckpt/pre\n"

    assert judged(tmp_path / "a", state="FAILED", said=said, saved=saved).code == "E2"
    elsewhere = said.replace("/ckpt/pre", "/ckpt/new")
    assert judged(tmp_path / "b", state="FAILED", said=elsewhere, saved=saved).code != "E2"


@pytest.mark.parametrize(
    ("said", "saved", "code"),
    [
        ("# continue pre from job 700\n", "Saved checkpoint at step 900 to /ckpt/pre\n", "E2"),
        ("resuming run of 700 ...\n", "Saved checkpoint at step 900 to /ckpt/pre\n", "E2"),
        ("# continue pre from job 690\n", "Saved checkpoint at step 900 to /ckpt/pre\n", "G1"),
        ("# continue with lr 700\n", "", "G1"),
        ("# after job 700\n", "Saved checkpoint at step 900 to /ckpt/pre\n", "G1"),
    ],
)
def test_a_script_that_says_which_job_it_goes_on_from(
    tmp_path: Path, said: str, saved: str, code: str
) -> None:
    """It looked in another folder, of which no line says that it is empty."""
    assert judged(tmp_path, said=said, saved=saved).code == code


ASKS = "+ torchrun fit.py --dir /data/exp4 --auto-resume\n"
LOOKS = (
    "looking for a checkpoint in {}\nno checkpoint found, initialising from pretrained weights\n"
)


@pytest.mark.parametrize(
    ("before", "now", "looks", "code", "sure"),
    [
        (ASKS, ASKS, "/data/exp4/states", "E2", True),
        (ASKS, ASKS, "/home/ann/exp4/ckpt", "E2", False),
        (ASKS, ASKS, "/data/exp4/ckpt", "E2", False),
        (ASKS, ASKS.replace("exp4", "exp5"), "/data/exp5/ckpt", "G1", False),
        (ASKS, ASKS.replace(" --auto-resume", ""), "/data/exp4/states", "G1", False),
        ("", "", "/data/exp4/states", "G1", False),
    ],
    ids=["another folder of the output", "elsewhere", "emptied", "another output", "not asked",
         "no command"],
)  # fmt: skip
def test_one_command_asked_both_to_go_on(
    tmp_path: Path, before: str, now: str, looks: str, code: str, sure: bool
) -> None:
    """It begins from pretrained weights only as it found nothing."""
    saved = "Saved checkpoint at step 900 to /data/exp4/ckpt/step_900\n"
    (tmp_path / "slurm-700.out").write_text(before + steps(8, 1, 1000, 3000) + saved)
    (tmp_path / "slurm-733.out").write_text(now + LOOKS.format(looks) + steps(10, 1, 900, 3000))
    row = PARENT.format(state="TIMEOUT", name="pre", end="09:00:00")
    (tmp_path / "sacct.txt").write_text(HEAD + row + CHILD)
    verdict = diagnose(collect(Request((str(tmp_path),), job="733")))

    assert (verdict.code, verdict.confidence >= 0.8) == (code, sure)
    assert all(check.ok for check in verify(json.loads(render(verdict)), (str(tmp_path),)))


@pytest.mark.parametrize(
    ("looked", "code"),
    [("/out/whisper/job_733", "E2"), ("/out/whisper/job_734", "G1"), ("/out/whisper/run_2", "E2")],
    ids=["its own id", "a number of another kind", "elsewhere"],
)
def test_a_folder_of_the_jobs_own_id(tmp_path: Path, looked: str, code: str) -> None:
    """No job finds there what another saved; folders that differ else by a number are a sweep."""
    said = f"resume=auto: no checkpoint found in {looked}, starting from the base model\n"
    saved = "Saved checkpoint at step 900 to /out/whisper/job_700/step_900\n"

    assert judged(tmp_path, said=said, saved=saved).code == code


@pytest.mark.parametrize(
    ("state", "looked", "code"),
    [("TIMEOUT", "/w/ann/seg3/seg3", "E2"), ("TIMEOUT", "seg4", "G1"), ("FAILED", "seg3", "E2"),
     ("FAILED", "/w/ann/seg3/seg3", "G1")],
    ids=["elsewhere", "of a sweep", "the very file", "begun anew once mended"],
)  # fmt: skip
def test_a_file_that_was_searched_for_in_vain(
    tmp_path: Path, state: str, looked: str, code: str
) -> None:
    """The one before it kept its last state in one file, and names no step with it."""
    said = f"resume: searched {looked}/last.pt, nothing found; starting at epoch 0\n"
    saved = "epoch 4 done, dice 0.71, saved seg3/last.pt\n"

    assert judged(tmp_path, state=state, said=said, saved=saved).code == code


@pytest.mark.parametrize(("kept", "state"), [("seg3/last.pt", "healthy"), ("", "undetermined")])
def test_the_first_of_a_chain_finds_nothing_where_it_saves(
    tmp_path: Path, kept: str, state: str
) -> None:
    """No record tells whether one came before; where it saves itself, none was to be found."""
    said = "resume: searched seg3/last.pt, nothing found; starting at epoch 0\n"
    saved = f"epoch 4 done, saved {kept}\n" if kept else ""
    (tmp_path / "train.log").write_text(said + steps(8, 1, 900, 899) + saved + "Training done\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.state == state


@pytest.mark.parametrize(
    ("looked", "code"),
    [("/out/lm7/ckpt", "E2"), ("/out/lm7/ckpts-new", "E2"), ("/out/lm8/ckpts", "G1")],
    ids=["begins as it", "goes on behind it", "of a sweep"],
)
def test_a_folder_of_which_one_above_bears_a_number(
    tmp_path: Path, looked: str, code: str
) -> None:
    """A number in the path makes no sweep where the rest of the two differs."""
    said = f"No checkpoint found in {looked}, starting from scratch\n"
    saved = "Saved checkpoint at step 900 to /out/lm7/ckpts/step_900\n"

    assert judged(tmp_path, said=said, saved=saved).code == code


DETECTRON = "+ python tools/train_net.py --resume --num-gpus 2 OUTPUT_DIR /out/rcnn/{}\n"


def iterations(job: int, hour: int, last: int, command: str) -> str:
    """Detectron2's lines, which tell no plan, and a save every 300 iterations."""
    lines = [command.format(job), f"[03/04 {hour:02d}:00:05 d2.engine.train_loop]: Starting"
             " training from iteration 0\n"]  # fmt: skip
    for n in range(20, last, 20):
        at = f"[03/04 {hour:02d}:{n // 60:02d}:{n % 60:02d}"
        lines.append(f"{at} d2.utils.events]:  eta: 5:00:00  iter: {n - 1}  total_loss:"
                     f" {3 * 0.9985**n:.4f}  time: 1.0  lr: 0.02\n")  # fmt: skip
        if n % 300 == 0:
            lines.append(f"{at} fvcore.common.checkpoint]: Saving checkpoint to"
                         f" /out/rcnn/{job}/model_{n - 1:07d}.pth\n")  # fmt: skip
    return "".join(lines)


@pytest.mark.parametrize(
    ("state", "before", "now", "code"),
    [
        ("TIMEOUT", DETECTRON, DETECTRON, "E2"),
        ("TIMEOUT", *[DETECTRON.replace(" --resume", "")] * 2, "G1"),
        ("TIMEOUT", DETECTRON, DETECTRON.replace("gpus 2", "gpus 4"), "G1"),
        ("TIMEOUT", *[DETECTRON.replace("{}", "shared")] * 2, "E2"),
        ("CANCELLED", DETECTRON, DETECTRON, "G1"),
    ],
    ids=["its own id", "not asked to go on", "another command", "in one of its own all the same",
         "ended by hand"],
)  # fmt: skip
def test_each_job_of_a_command_saves_under_its_own_id(
    tmp_path: Path, state: str, before: str, now: str, code: str
) -> None:
    """It begins at 0 without a word on a checkpoint; who does not ask for one begins anew."""
    (tmp_path / "slurm-700.out").write_text(iterations(700, 8, 1000, before))
    (tmp_path / "slurm-733.out").write_text(iterations(733, 10, 600, now))
    row = PARENT.format(state=state, name="pre", end="09:00:00")
    (tmp_path / "sacct.txt").write_text(HEAD + row + CHILD.replace("10:10:00", "10:00:00"))
    verdict = diagnose(collect(Request((str(tmp_path),), job="733")))

    assert verdict.code == code
    assert all(check.ok for check in verify(json.loads(render(verdict)), (str(tmp_path),)))


@pytest.mark.parametrize(("saved", "own"), [("/out/asr/checkpoints", True), ("/out/b", False)])
def test_nemo_looks_where_it_saves(tmp_path: Path, saved: str, own: bool) -> None:
    """`resume_if_exists` of a first run finds nothing; elsewhere one may have been due."""
    (tmp_path / "train.log").write_text(
        "[NeMo W 2026-05-06 08:00:00 exp_manager:996] There were no checkpoints found in"
        " checkpoint_dir or no checkpoint folder at checkpoint_dir :/out/asr/checkpoints. Training"
        " from scratch.\n"
        + steps(10, 1, 900, 3000)
        + f"Epoch 0, global step 900: 'val_wer' reached 0.4 (best 0.4), saving model to"
        f" '{saved}/asr--val_wer=0.4-epoch=0.ckpt' as top 3\n"
    )
    assert begins_where_it_saves(collect(Request((str(tmp_path),)))) is own


def test_an_earlier_run_that_cannot_be_read_clears_nothing(tmp_path: Path) -> None:
    """What it left is not known, and that is said."""
    (tmp_path / "slurm-733.out").write_text(
        "  load ............................................ /ckpt/pre\n"
        "    will not load any checkpoints and will start from random\n"
        + steps(10, 1, 900, 3000)
        + "  successfully saved checkpoint from iteration     900 to /ckpt/pre\n"
    )
    (tmp_path / "sacct.txt").write_text(HEAD + CHILD)
    facts = collect(Request((str(tmp_path),), job="733"))
    assert begins_where_it_saves(facts)

    def unread(targets: tuple[str, ...], job: str | None, within: Span, origin: str) -> Facts:
        raise SourceError("permission denied")

    assert facts.job is not None
    lay_before(facts, (str(tmp_path),), facts.job, (), unread)
    assert not begins_where_it_saves(facts)
    assert any("permission denied" in gap.reason for gap in facts.gaps)


LOADS = "Checkpointing is on: checkpoints are loaded from and saved to out/733/ckpt\n"


def queued(
    folder: Path,
    *,
    state: str = "TIMEOUT",
    submitted: str = "07:52:00",
    limit: str = "01:00:00",
    said: str = LOADS,
    saved: str = "checkpoint saved in 11 s\n",
    begins: str = "Training starts at step 1\n",
) -> Verdict:
    """A job of an hour that was queued with the one before it, which made 1,000 of 3,000 steps."""
    (folder / "slurm-700.out").write_text(
        steps(8, 1, 900, 3000) + saved + steps(8, 900, 1000, 3000)
    )
    (folder / "slurm-733.out").write_text(begins + said + steps(9, 1, 900, 3000))
    head = HEAD.replace("|Submit", "|Timelimit|Submit")
    day = "2026-03-04T"
    (folder / "sacct.txt").write_text(
        f"{head}700|pre|ann|{state}|0:0|01:00:00|{day}07:50:00|{day}08:00:00|{day}09:00:00|1|n1\n"
        f"733|pre|ann|RUNNING|0:0|{limit}|{day}{submitted}|{day}09:00:30|Unknown|1|n1\n"
    )
    return diagnose(collect(Request((str(folder),), job="733")))


def test_queued_with_the_job_before_it_and_too_short_alone(tmp_path: Path) -> None:
    """It looks in a folder of its own, and no line says that it found nothing there; which step
    was saved is told by the step before."""
    verdict = queued(tmp_path)

    assert (verdict.code, verdict.resubmit) == ("E2", "fix_first")
    assert verdict.confidence < 0.8
    assert any("step 899" in shown.text for shown in verdict.shows)
    assert all(check.ok for check in verify(json.loads(render(verdict)), (str(tmp_path),)))


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "FAILED"},
        {"submitted": "09:00:10"},
        {"limit": "06:00:00"},
        {"said": ""},
        {"said": LOADS + "weights initialised from out/base\n"},
        {"saved": ""},
        {"begins": ""},
    ],
    ids=["mended since", "queued since", "time enough", "loads none", "from given weights",
         "saved nothing", "says no beginning"],
)  # fmt: skip
def test_a_run_of_a_sweep_that_was_queued_at_once(tmp_path: Path, changed: dict[str, str]) -> None:
    assert queued(tmp_path, **changed).code != "E2"


@pytest.mark.parametrize(
    ("looked", "code"),
    [("/ckpt/llm-3b", "E2"), ("/ckpt/LLM_3B", "E2"), ("/ckpt/llm3.1b", "G1"),
     ("/ckpt/llm-3b-long", "G1"), ("/scratch/llm3b", "G1")],
)  # fmt: skip
def test_a_folder_that_is_spelt_in_another_way(tmp_path: Path, looked: str, code: str) -> None:
    """Whoever cancelled a job may begin anew elsewhere, but gives no folder the same name."""
    verdict = judged(
        tmp_path, state="CANCELLED by 1001",
        saved="Saved checkpoint at step 900 to /ckpt/llm3b\n",
        said="WARNING: could not find the metadata file"
        f" {looked}/latest_checkpointed_iteration.txt\n"
        "    will not load any checkpoints and will start from random\n",
    )  # fmt: skip

    assert verdict.code == code


@pytest.mark.parametrize(
    ("saved", "looked", "code"),
    [
        ("at step 1000 to /ckpt/pre_a\nexiting program at iteration 1000\n", "/ckpt/pre-a", "E2"),
        ("at step 1000 to /ckpt/pre_a\nexiting program at iteration 1000\n", "/ckpt/pre_a", "E2"),
        ("at step 1000 to /ckpt/pre_a\n", "/ckpt/pre-a", "E2"),
        ("at step 1000 to /ckpt/pre_a\nexiting program at iteration 1000\n", "/ckpt/new", None),
        ("at step 900 to /ckpt/pre_a\nexiting program at iteration 1000\n", "/ckpt/pre-a", None),
        ("at step 1000 to /ckpt/pre_a\nTraining complete\n", "/ckpt/pre-a", None),
        ("at step 1000 to /ckpt/pre_a\nTraining done at step 1000\n", "/ckpt/pre-a", None),
        ("at step 3000 to /ckpt/pre_a\n", "/ckpt/pre-a", None),
    ],
    ids=["another spelling", "emptied", "no word of its end", "elsewhere", "did not save its last",
         "was done", "was done at a step", "all that was planned"],
)  # fmt: skip
def test_a_completed_job_that_had_left_of_itself(
    tmp_path: Path, saved: str, looked: str, code: str | None
) -> None:
    """It saves in time for its limit and leaves; its record says no more than that it ended."""
    verdict = judged(
        tmp_path, state="COMPLETED", saved=f"Saved checkpoint {saved}",
        said="WARNING: could not find the metadata file"
        f" {looked}/latest_checkpointed_iteration.txt\n"
        f"  load ............................................ {looked}\n"
        "    will not load any checkpoints and will start from random\n",
    )  # fmt: skip

    assert verdict.code == code


def test_a_completed_job_without_a_log_is_taken_for_done(tmp_path: Path) -> None:
    """Its record alone says nothing of what was left to do."""
    judged(tmp_path, state="COMPLETED")
    (tmp_path / "slurm-700.out").unlink()

    assert diagnose(collect(Request((str(tmp_path),), job="733"))).code == "G1"


@pytest.mark.parametrize(
    ("begins", "code"),
    [("random weights", "E2"), ("scratch", "E2"), ("pretrained weights", "G1")],
)
def test_what_it_begins_from_where_it_misspelt_the_folder(
    tmp_path: Path, begins: str, code: str
) -> None:
    """From random weights begins who found nothing; others are begun from on purpose."""
    said = f"no checkpoint found in /CKPT/pre, initialising from {begins}\n"

    assert judged(tmp_path, said=said).code == code


@pytest.mark.parametrize(
    ("leaves", "looked", "code"),
    [
        ("segment full, leaving for the next job\n", "/ckpt/Pre_a", "E2"),
        ("segment full, leaving for the next job\n", "/ckpt/pre-a", "E2"),
        ("to be continued by the next job\n", "/other/place", "E2"),
        ("segment full, leaving for the next job\n", "/ckpt/pre-b2", "G1"),
        ("last segment, no next job in the chain\n", "/ckpt/Pre_a", "G1"),
        ("", "/ckpt/Pre_a", "G1"),
    ],
    ids=["misspelt", "emptied", "elsewhere", "of a sweep", "the last", "no word"],
)
def test_a_job_that_says_that_the_next_one_goes_on(
    tmp_path: Path, leaves: str, looked: str, code: str
) -> None:
    """Neither tells a plan, and the record says that the one before was completed."""
    folder = "/ckpt/pre-b1" if looked[-1] == "2" else "/ckpt/pre-a"
    saved = f"Saved checkpoint at step 999 to {folder}/step_999\n"
    said = f"resume is auto: no valid checkpoint found under {looked}, from scratch\n"
    before, now = (steps(hour, 1, 1000, 3000).replace("/3000", "") for hour in (8, 10))
    (tmp_path / "slurm-700.out").write_text(before + saved + leaves)
    (tmp_path / "slurm-733.out").write_text(said + now)
    row = PARENT.format(state="COMPLETED", name="pre", end="09:00:00")
    (tmp_path / "sacct.txt").write_text(HEAD + row + CHILD)
    verdict = diagnose(collect(Request((str(tmp_path),), job="733")))

    assert verdict.code == code
    assert all(check.ok for check in verify(json.loads(render(verdict)), (str(tmp_path),)))


def test_what_was_not_saved_is_not_handed_on(tmp_path: Path) -> None:
    """Its words alone leave nothing to go on from."""
    verdict = judged(
        tmp_path, state="COMPLETED",
        saved="Saved checkpoint at step 400 to /ckpt/pre_a/step_400\nexiting for the next job\n",
        said="No checkpoint found in /ckpt/pre-a, starting from scratch\n",
    )  # fmt: skip

    assert verdict.code != "E2"


BEGINS = "2026-03-04 08:14:60 Saving current state to /ckpt/pre/step_{step}\n"
NONE_MATCHES = (
    "2026-03-04 10:10:01 resume_from=latest: no checkpoint matching step_* under /ckpt/pre_v2\n"
)


@pytest.mark.parametrize(("behind", "code"), [(400, "E2"), (0, None)])
def test_a_program_that_only_says_that_it_begins_to_save(
    tmp_path: Path, behind: int, code: str | None
) -> None:
    """It made further steps behind it: that save was whole."""
    first, rest = steps(8, 1, 900, 3000), steps(8, 900, 900 + behind, 3000)
    (tmp_path / "slurm-700.out").write_text(first + BEGINS.format(step=899) + rest)
    (tmp_path / "slurm-733.out").write_text(NONE_MATCHES + steps(10, 1, 900, 3000))
    row = PARENT.format(state="TIMEOUT", name="pre", end="09:00:00")
    (tmp_path / "sacct.txt").write_text(HEAD + row + CHILD)
    verdict = diagnose(collect(Request((str(tmp_path),), job="733")))

    assert (verdict.code if verdict.code == "E2" else None) == code
    assert verdict.confidence < 0.8
    assert any("began to save step 899, went on" in one.text for one in verdict.shows) is bool(
        code
    )


def epochs(hour: int, first: int, last: int) -> str:
    """nnU-Net's, which does not say that it saves."""
    lines = []
    for n in range(first, last):
        at = f"2026-03-04 {hour:02d}:{(n - first) // 2:02d}:{(n - first) % 2 * 30:02d}.000000: "
        loss = -0.9 + 0.9 * 0.97**n
        lines += [f"{at}Epoch {n} \n", f"{at}Current learning rate: 0.001\n",
                  f"{at}train_loss {loss:.4f}\n", f"{at}val_loss {loss + 0.02:.4f}\n"]  # fmt: skip
    return "".join(lines)


CONTINUES = (
    "+ nnUNetv2_train 7 3d_fullres 4 --c\n"
    "WARNING: Cannot continue training because there seems to be no checkpoint available to"
    " continue from. Starting a new training...\n"
)


@pytest.mark.parametrize(
    ("first", "state", "code"),
    [(880, "TIMEOUT", "E2"), (0, "TIMEOUT", None), (880, "FAILED", None)],
    ids=["far", "before it had saved", "somebody may have mended it"],
)
def test_nnunet_was_to_continue(tmp_path: Path, first: int, state: str, code: str | None) -> None:
    (tmp_path / "slurm-700.out").write_text(epochs(8, first, first + 40))
    (tmp_path / "slurm-733.out").write_text(CONTINUES + epochs(10, 0, 30))
    row = PARENT.format(state=state, name="pre", end="09:00:00")
    (tmp_path / "sacct.txt").write_text(HEAD + row + CHILD)
    verdict = diagnose(collect(Request((str(tmp_path),), job="733")))

    assert (verdict.code if verdict.code == "E2" else None) == code
    assert verdict.confidence < 0.8
