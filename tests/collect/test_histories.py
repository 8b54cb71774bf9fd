"""The history that transformers' Trainer keeps in its checkpoints, where no log was kept."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.render.json import render
from flatline.verify import verify

KEPT = Path(__file__).parent.parent / "fixtures" / "trainer_state"


def test_the_last_history_holds_all_others() -> None:
    facts = collect(Request((str(KEPT / "sound"),)))

    assert [(t.source, len(t), t.steps[0], t.steps[-1]) for t in facts.tracks] == [
        ("trainer_state.json", 48, 5, 240)
    ]
    assert [m.progress.step for m in facts.markers_of("eval")] == [60, 120, 180, 240]
    verdict = diagnose(facts)
    assert verdict.state == "healthy"
    assert verdict.confidence < 0.8
    assert all(c.ok for c in verify(json.loads(render(verdict)), (str(KEPT / "sound"),)))


def test_a_run_of_which_checkpoints_are_left_is_not_told_to_have_ended(tmp_path: Path) -> None:
    for name in ("checkpoint-80", "checkpoint-160"):
        shutil.copytree(KEPT / "sound" / name, tmp_path / name)
    facts = collect(Request((str(tmp_path),)))

    assert [t.source for t in facts.tracks] == ["checkpoint-160/trainer_state.json"]
    assert (facts.last_step, facts.planned_steps) == (160, 240)
    assert diagnose(facts).state == "undetermined"


def test_a_loss_that_is_no_number_is_told_without_a_log() -> None:
    verdict = diagnose(collect(Request((str(KEPT / "diverged"),))))

    assert (verdict.code, verdict.fault_class) == ("E1", "non-finite")


def test_beside_a_log_with_losses_it_is_not_needed(tmp_path: Path) -> None:
    shutil.copytree(KEPT / "diverged", tmp_path / "out")
    lines = "".join(
        f"2026-01-02 10:{n:02d}:00 step {n} loss {3 - n / 20:.3f}\n" for n in range(20)
    )
    (tmp_path / "train.log").write_text(lines)

    assert {t.source for t in collect(Request((str(tmp_path),))).tracks} == {"train.log"}


def test_a_history_that_is_cut_or_hostile_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = (KEPT / "diverged" / "trainer_state.json").read_text()
    deep = "[" * 50_000
    for text in (whole[:900], whole.replace('"loss": NaN', '"loss": 1e999'), deep, "", "\0\0"):
        (tmp_path / "trainer_state.json").write_text(text)
        facts = collect(Request((str(tmp_path),)))
        diagnose(facts)
    (tmp_path / "trainer_state.json").write_text(whole[:900])
    assert len(collect(Request((str(tmp_path),))).tracks[0]) == 4


STARTUP = (
    "starting\nTraceback (most recent call last):\n"
    '  File "train.py", line 3, in <module>\n    import flash_attn\n'
    "ModuleNotFoundError: No module named 'flash_attn'\n"
)


def bar(of: int) -> str:
    return "".join(
        f"{n / of:4.0%}|##  | {n}/{of} [00:{n % 60:02d}<05:00,  3.10s/it]\n"
        for n in range(1, of + 1)
    )


def test_the_history_of_the_model_it_begins_with_is_not_the_runs(tmp_path: Path) -> None:
    shutil.copytree(KEPT / "diverged", tmp_path / "base_model")
    (tmp_path / "train.log").write_text(STARTUP)
    facts = collect(Request((str(tmp_path),)))
    verdict = diagnose(facts)

    assert (verdict.code, verdict.fault_class, facts.tracks) == ("A1", "env", ())
    assert [gap.where for gap in facts.gaps if gap.need == "loss"] == [
        "base_model/trainer_state.json"
    ]


@pytest.mark.parametrize(("more", "own"), [(0, True), (7, False)])
def test_a_log_without_losses_tells_its_history_by_the_plan(
    tmp_path: Path, more: int, own: bool
) -> None:
    shutil.copytree(KEPT / "diverged", tmp_path / "out")
    plan = json.loads((KEPT / "diverged" / "trainer_state.json").read_text())["max_steps"]
    (tmp_path / "train.log").write_text(bar(plan + more))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code == "E1") == own


def test_of_several_runs_histories_none_is_taken(tmp_path: Path) -> None:
    for name, kept in (("run-0", "diverged"), ("run-1", "sound")):
        shutil.copytree(KEPT / kept, tmp_path / name)

    facts = collect(Request((str(tmp_path),)))

    assert facts.tracks == ()
    assert diagnose(facts).state == "undetermined"


@pytest.mark.parametrize("name", ["reward", "kl", "objective/kl", "policy/approxkl_avg"])
def test_a_loss_beside_rewards_is_not_meant_to_fall(tmp_path: Path, name: str) -> None:
    entry = '    {\n      "loss": 0.5,\n      "%s": 0.1,\n      "step": 5\n    }\n'
    (tmp_path / "trainer_state.json").write_text('{\n  "log_history": [\n' + entry % name)
    (track,) = collect(Request((str(tmp_path),))).tracks

    assert not track.falling


def test_a_baselines_history_is_its_own(tmp_path: Path) -> None:
    shutil.copytree(KEPT / "sound", tmp_path / "run")
    shutil.copytree(KEPT / "sound", tmp_path / "before")
    facts = collect(Request((str(tmp_path / "run"),), baseline=str(tmp_path / "before")))

    assert len(facts.tracks) == 1
    assert facts.baseline is not None
    assert len(facts.baseline.tracks) == 1


def of_detectron2(steps: int = 9000) -> str:
    rows = []
    for at in range(19, steps, 20):
        row = {"data_time": 0.0034, "eta_seconds": 0.3 * (8999 - at), "iteration": at,
               "loss_cls": 0.4, "lr": 4e-4, "time": 0.285, "total_loss": 4 - at / 9e3}  # fmt: skip
        rows.append(json.dumps(row, sort_keys=True))
        if at % 2000 == 1999:
            rows.append(json.dumps({"bbox/AP": 31.2, "iteration": at}, sort_keys=True))
    return "\n".join(rows) + "\n"


def of_mmcv(runner: str = "epoch") -> str:
    rows = [json.dumps({"env_info": "sys.platform: linux\nPython: 3.8", "seed": 0})]
    for epoch in range(1, 13):
        for at in range(50, 1251, 50):
            step = at if runner == "epoch" else (epoch - 1) * 1250 + at
            row = {"mode": "train", "epoch": epoch, "iter": step, "lr": 0.002, "memory": 3779,
                   "data_time": 0.05, "loss_cls": 0.5, "loss": 1 + 3 / (epoch + at / 1250),
                   "grad_norm": 3.2, "time": 0.3}  # fmt: skip
            rows.append(json.dumps(row))
        val = {"mode": "val", "epoch": epoch, "iter": 625, "lr": 0.002, "bbox_mAP": 0.2}
        rows.append(json.dumps(val))
    return "\n".join(rows) + "\n"


def of_mmengine() -> str:
    rows = []
    for step in range(50, 15001, 50):
        row = {"lr": 0.002, "data_time": 0.05, "loss": 1 + 3 / (1 + step / 1250), "time": 0.3,
               "epoch": 1 + (step - 1) // 1250, "iter": step % 1250 or 1250, "memory": 3779,
               "step": step}  # fmt: skip
        rows.append(json.dumps(row))
        if step % 1250 == 0:
            val = {"coco/bbox_mAP": 0.2, "data_time": 0.002, "time": 0.03, "step": step // 1250}
            rows.append(json.dumps(val))
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("name", "text", "points", "last", "each"),
    [
        ("metrics.json", of_detectron2(), 450, 8999, (0.285, 0.0034)),
        ("20260101_101010.log.json", of_mmcv(), 300, 15000, (0.3, 0.05)),
        ("20260101_101010.log.json", of_mmcv("iter"), 300, 15000, (0.3, 0.05)),
        ("vis_data/scalars.json", of_mmengine(), 300, 15000, (0.3, 0.05)),
    ],
    ids=["detectron2", "mmcv", "mmcv without epochs", "mmengine"],
)
def test_rows_that_a_trainer_keeps_beside_its_log(
    tmp_path: Path, name: str, text: str, points: int, last: int, each: tuple[float, float]
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    track = collect(Request((str(tmp_path),))).main_track(0)

    assert track is not None
    assert (len(track), track.steps[-1], track.source) == (points, last, name)
    assert (track.step_s[-1], track.data_s[-1]) == each
    assert list(track.steps) == sorted(set(track.steps))

    (tmp_path / "train.log").write_text(
        "".join(f"step {n} loss {3 - n / 20:.3f}\n" for n in range(20))
    )
    assert {t.source for t in collect(Request((str(tmp_path),))).tracks} == {"train.log"}


def test_two_copies_of_the_rows_of_one_run_are_one(tmp_path: Path) -> None:
    kept = tmp_path / "20260101_101010" / "vis_data"
    kept.mkdir(parents=True)
    for name in ("scalars.json", "20260101_101010.json"):
        (kept / name).write_text(of_mmengine())

    assert len(collect(Request((str(tmp_path),))).tracks) == 1


def test_rows_of_several_starts_are_nobodys(tmp_path: Path) -> None:
    for name in ("20260101_101010.log.json", "20260102_101010.log.json"):
        (tmp_path / name).write_text(of_mmcv())
    facts = collect(Request((str(tmp_path),)))

    assert not facts.tracks
    assert len([gap for gap in facts.gaps if "history" in gap.reason]) == 2


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"iteration": 5, "accuracy": 0.9}, indent=1),
        '{"iteration": 5, "accuracy": 0.9}\n',
        of_detectron2()[:-40],
        "{" * 50_000,
        '{"mode": "train", "epoch": 1, "iter": 50, "loss": 1e999, "time": -1}\n',
    ],
    ids=["one object", "no loss", "cut", "deep", "out of range"],
)
def test_rows_that_are_none_or_cut(tmp_path: Path, text: str) -> None:
    for name in ("metrics.json", "a.log.json"):
        (tmp_path / name).write_text(text)
        diagnose(collect(Request((str(tmp_path),))))
