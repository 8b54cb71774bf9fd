"""G1 of a run that still goes: undated steps, records in local time beside logs and metrics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

NOW = datetime(2026, 7, 8, 19, 30, tzinfo=UTC)
EACH_S = 9.5


def going(
    folder: Path,
    *,
    records_h: float = 0.0,
    logs_h: float = 0.0,
    silent_s: float = 20.0,
    dated: bool = True,
    host: str = "k01",
    taken_s: float = 0.0,
    slower: float = 1.0,
) -> Verdict:
    """NeMo's log of the last hour of a run of five: undated steps between saves that are dated, by
    clocks so many hours before UTC; `taken_s` from the metrics' end to the record."""
    began, last = NOW - timedelta(hours=5), NOW - timedelta(seconds=silent_s)
    lines = []
    for step in range(1500, 1860, 10):
        each = EACH_S * (slower if step > 1700 else 1.0)
        lines.append(
            f"Training epoch 0, iteration {step - 1}/9999 | lr: 0.0001 | global_step: {step - 1} |"
            f" reduced_train_loss: {2 + 100 / step:.3f} | train_step_timing in s: {each:.2f}"
        )
        left_s = (1850 - max(step, 1700)) * EACH_S * slower + max(0, 1700 - step) * EACH_S
        at = last - timedelta(seconds=left_s) + timedelta(hours=logs_h)
        if dated and step % 100 == 0:
            saved = f"[NeMo I {at:%Y-%m-%d %H:%M:%S} nemo_logging:393] Async checkpoint save for"
            lines.append(f"{saved} step {step} (/out/step={step}.ckpt) finalized successfully.")
    (folder / "nemo_log.txt").write_text("\n".join(lines) + "\n")
    start = began + timedelta(hours=records_h)
    elapsed = f"{(NOW - began + timedelta(seconds=taken_s)).total_seconds() / 3600:.0f}:00:00"
    if taken_s:
        elapsed = f"05:{int(taken_s // 60):02d}:00"
    (folder / "scontrol.txt").write_text(
        "JobId=41 JobName=nemo\n   JobState=RUNNING Reason=None ExitCode=0:0\n"
        f"   RunTime={elapsed} TimeLimit=1-00:00:00\n"
        f"   StartTime={start:%Y-%m-%dT%H:%M:%S} EndTime=Unknown\n   NodeList=k01 NumNodes=1\n"
    )
    read = [
        f'DCGM_FI_DEV_POWER_USAGE{{Hostname="{host}",gpu="{gpu}"}} 610'
        f" {int((NOW - timedelta(seconds=ago)).timestamp() * 1000)}"
        for gpu in range(4)
        for ago in range(4200, -1, -30)
    ]
    (folder / "metrics.prom").write_text("\n".join(read) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("records_h", [0.0, 2.0, -7.0, 5.5])
@pytest.mark.parametrize("apart", [False, True])
def test_a_record_of_a_clock_of_its_own(tmp_path: Path, records_h: float, *, apart: bool) -> None:
    """Slurm prints local time; its containers' logs are in that, or in UTC."""
    verdict = going(tmp_path, records_h=records_h, logs_h=0.0 if apart else records_h)

    assert verdict.code == "G1"
    assert "still going and advances" in verdict.headline
    assert verdict.confidence < 0.8


def test_steps_that_stopped_well_before_now(tmp_path: Path) -> None:
    assert going(tmp_path, silent_s=1500.0).code != "G1"
    assert going(tmp_path, silent_s=1500.0, records_h=2.0).code != "G1"


def test_nothing_dates_the_steps(tmp_path: Path) -> None:
    """A log that may have been copied at any time."""
    assert going(tmp_path, dated=False).code != "G1"


def test_metrics_of_other_hosts_move_no_record(tmp_path: Path) -> None:
    assert going(tmp_path, records_h=2.0, host="z9").code != "G1"


def test_a_record_taken_later_than_the_metrics_end(tmp_path: Path) -> None:
    """By no offset in use: the run may have stopped since."""
    assert going(tmp_path, taken_s=2400.0).code != "G1"


@pytest.mark.parametrize(("slower", "code"), [(1.05, "G1"), (1.4, None)])
def test_one_that_is_slow_to_its_end_is_not_sound(
    tmp_path: Path, slower: float, code: str | None
) -> None:
    """Whatever slows it goes on; what that is was not read."""
    verdict = going(tmp_path, slower=slower)

    assert verdict.code == code
    assert code or "fell by 2" in verdict.headline


@pytest.mark.parametrize(
    ("silent_s", "below", "code"),
    [(40, True, "G1"), (900, True, None), (40, False, None)],
    ids=["goes on", "stands still", "nothing dates its steps"],
)
def test_steps_each_with_a_dated_line_below(
    tmp_path: Path, silent_s: float, below: bool, code: str | None
) -> None:
    """As of a trainer that prints its numbers bare, and a timer that says when."""
    lines = ["[2026-07-08 18:00:01] loading the policy"]
    for step in range(1, 61):
        lines.append(
            f"(TaskRunner pid=8411) step:{step} - actor/pg_loss:0.0{step} - actor/grad_norm:"
            f"0.2{step % 7} - critic/rewards/mean:0.{400 + 4 * step} - timing_s/step:70.{step}"
        )
        at = NOW - timedelta(seconds=silent_s + 73 * (60 - step))
        if below:
            lines.append(f"(TaskRunner pid=8411) {at:%Y-%m-%d %H:%M:%S},538 [INFO] timer: done")
    (tmp_path / "slurm-41.out").write_text("\n".join(lines) + "\n")
    (tmp_path / "scontrol.txt").write_text(
        "JobId=41 JobName=grpo\n   JobState=RUNNING Reason=None ExitCode=0:0\n"
        "   RunTime=01:30:00 TimeLimit=1-00:00:00\n"
        f"   StartTime={NOW - timedelta(minutes=90):%Y-%m-%dT%H:%M:%S} EndTime=Unknown\n"
        "   NodeList=k01 NumNodes=1\n"
    )

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


@pytest.mark.parametrize(
    ("each_s", "code"), [(114.0, "G1"), (70.0, None)], ids=["goes on", "stood still for long"]
)
def test_undated_steps_that_fill_the_time_of_the_job(
    tmp_path: Path, each_s: float, code: str | None
) -> None:
    """Counted from its start on record they end too early, never too late."""
    lines = []
    for step in range(1, 22):
        lines += [f"========================= Step {step}/1000 =========================",
                  "📊 Training Results:", f"  • Loss: 0.000{step % 7}",
                  f"  • Avg Reward: 0.{3800 + 60 * step}",
                  "⏱️  Timing:", f"  • Total step time: {each_s + step % 3:.2f}s"]  # fmt: skip
    (tmp_path / "slurm-41.out").write_text("\n".join(lines) + "\n")
    start = NOW - timedelta(seconds=2760)
    (tmp_path / "scontrol.txt").write_text(
        "JobId=41 JobName=grpo\n   JobState=RUNNING Reason=None ExitCode=0:0\n"
        "   RunTime=00:46:00 TimeLimit=1-00:00:00\n"
        f"   StartTime={start:%Y-%m-%dT%H:%M:%S} EndTime=Unknown\n   NodeList=k01 NumNodes=1\n"
    )

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


@pytest.mark.parametrize(("ago_s", "code"), [(15, "G1"), (1500, None)])
def test_a_bar_that_began_late_and_a_save_since(
    tmp_path: Path, ago_s: float, code: str | None
) -> None:
    """The first steps took minutes, so that the bar tells of too early; the save is dated, and
    steps are as far apart as the bar says."""
    began = datetime(2026, 7, 9, 6, tzinfo=UTC)
    lines = [f"[INFO|trainer.py:2415] {began:%F %T},000 >>   Total optimization steps = 900"]
    for n in range(10, 310, 10):
        took = 240 + 4 * n
        lines.append(
            f" {n // 9}%|#   | {n}/900 [{took // 60:02d}:{took % 60:02d}<55:00,  4.00s/it]"
        )
        lines.append(f"{{'loss': {2 - n / 500}, 'learning_rate': 1e-05, 'epoch': {n / 900:.2f}}}")
    saved = began + timedelta(seconds=240 + 4 * 300 + 3)
    lines.append(f"[INFO|trainer.py:3984] {saved:%F %T},000 >> Saving model checkpoint to"
                 " /out/checkpoint-300")  # fmt: skip
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    lasted = int((saved - began).total_seconds() + ago_s + 60)
    start = began - timedelta(seconds=60)
    elapsed = f"{lasted // 3600:02d}:{lasted // 60 % 60:02d}:{lasted % 60:02d}"
    (tmp_path / "sacct.txt").write_text(
        f"JobID|State|ExitCode|Start|End|Elapsed\n7|RUNNING|0:0|{start:%FT%T}|Unknown|{elapsed}\n"
    )

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


@pytest.mark.parametrize(
    ("silent_s", "drawn", "code"), [(180, True, "G1"), (180, False, None), (260, True, None)]
)
def test_a_bar_that_began_below_a_dated_line(
    tmp_path: Path, silent_s: int, drawn: bool, code: str | None
) -> None:
    """What it had run at its first line after 00:00 counts as well; where it may have begun above
    the dated line it does not."""
    saved = NOW - timedelta(seconds=400 + silent_s)
    lines = ["Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/4"]
    for epoch in range(2):
        for step in range(0 if drawn else 20, 401 if epoch == 0 else 201, 20):
            ran, loss = (
                f"{step * 2 // 60:02d}:{step * 2 % 60:02d}",
                3 / (epoch * 20 + step / 20 + 2),
            )
            lines.append(f"Epoch {epoch}: {step // 4:3d}%|##        | {step}/400 [{ran}<09:00,"
                         f"  0.50it/s, v_num=1, train_loss_step={loss:.4f}]")  # fmt: skip
        if epoch == 0:
            lines.append(f"[{saved:%F %T},000][diagnostics][INFO] - Rollout evaluation, epoch 0")
    (tmp_path / "train.out").write_text("\n".join(lines) + "\n")
    start = NOW - timedelta(seconds=2400)
    (tmp_path / "scontrol.txt").write_text(
        "JobId=41 JobName=bars\n   JobState=RUNNING Reason=None ExitCode=0:0\n"
        "   RunTime=00:40:00 TimeLimit=1-00:00:00\n"
        f"   StartTime={start:%Y-%m-%dT%H:%M:%S} EndTime=Unknown\n   NodeList=k01 NumNodes=1\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code if verdict.code == "G1" else None) == code
