"""Steps of loops in words that no format knows; and what counts upwards and trains nothing."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.facts import Facts
from flatline.parsers import unnamed
from flatline.tracks import Track

BEGAN = datetime(2026, 6, 3, 4, 30, tzinfo=UTC)
Line = Callable[[int], str]


def loss(n: float) -> float:
    return 3 - n / 25 + 0.01 * (n % 3)


def facts(folder: Path, line: Line, *, count: int = 40, name: str = "train.log",
          head: str = "", dated: bool = True) -> Facts:  # fmt: skip
    """A log of such lines, one in twenty seconds."""
    text = [head] if head else []
    for n in range(count):
        at = BEGAN + timedelta(seconds=20 * n)
        text.append(f"{at:%Y-%m-%d %H:%M:%S} | INFO | {line(n)}" if dated else line(n))
    (folder / name).write_text("\n".join(text) + "\n")
    return collect(Request((str(folder),)))


def only(read: Facts) -> Track:
    (track,) = read.tracks
    return track


LOOPS: dict[str, tuple[Line, dict[str, float]]] = {
    "bars": (
        lambda n: f"iter {50 * n + 50:06d}/2000 | silog {loss(n):.4f} | lr 1e-4",
        {"planned": 2000, "step": 2000, "loss": loss(39), "lr": 1e-4},
    ),
    "short names": (
        lambda n: f"s   {5 * n} | ce  {loss(n):.3f} | gn  0.50 |   4.01 s | compute  3.1 s"
        f" | reduce-scatter+gather  0.71 s |  {2_100_000 + n} tok/s",
        {"step": 195, "loss": loss(39), "grad_norm": 0.5, "step_s": 4.01, "sync_s": 0.71,
         "throughput": 2_100_039},
    ),
    "key=value": (
        lambda n: f"rank=0 phase=train n={10 * n} n_max=9000 xent={loss(n):.4f} secs=1.9"
        " fwd_bwd=1.5 data=0.02 tok_s=347135",
        {"step": 390, "planned": 9000, "loss": loss(39), "step_s": 1.9, "data_s": 0.02},
    ),
    "prose": (
        lambda n: f"after {10 * n} updates: bits/byte {loss(n):.4f}; clip norm 0.8; 1.95 s each",
        {"step": 390, "loss": loss(39), "grad_norm": 0.8, "step_s": 1.95},
    ),
    "no words": (
        lambda n: f"[coot] {5 * n}/750 lm {loss(n):.4f} dt 3.9 mfu 0.33",
        {"step": 195, "planned": 750, "loss": loss(39), "step_s": 3.9},
    ),
    "glued": (
        lambda n: f"E0 B{3 * n:04d}/0900 L={loss(n):.5f} lr=2.0e-05 6.6s",
        {"step": 117, "loss": loss(39), "lr": 2e-5, "step_s": 6.6},
    ),
    "milliseconds": (
        lambda n: f"upd {20 * n} fwd+bwd 500ms allreduce_wait {300 + n}ms data 21ms",
        {"step": 780, "sync_s": 0.339, "data_s": 0.021},
    ),
    "a time whose name says nothing": (
        lambda n: f"sweep={100 * n} logloss={loss(n):.5f} tick_ms=198.6 own_ms=120.5 gate_ms=78.1",
        {"step": 3900, "loss": loss(39), "step_s": 0.1986, "sync_s": 0.0781},
    ),
    "parts alone": (
        lambda n: f"E00 B{40 * n:05d}  L {loss(n):.4f}  dl 0.031  fb 0.425",
        {"step": 1560, "loss": loss(39), "data_s": 0.031, "step_s": 0.456},
    ),
    "a loss that nothing names": (
        lambda n: f"round {n} of 900 closed, H={loss(n) + (n * 7 % 5) / 60:.4f}, elapsed 19.9",
        {"step": 39, "planned": 900, "loss": loss(39) + 3 / 60, "step_s": 19.9},
    ),
    "its unit is its name": (
        lambda n: f"host-7|iter {2 * n}/950|{loss(n):.4f} nats|gnorm 3.08|9.9 sec",
        {"step": 78, "planned": 950, "loss": loss(39), "step_s": 9.9},
    ),
    "rewards": (
        lambda n: f"rollout {n} of 64 :: rewards={n / 3:.2f} entropy=0.31",
        {"step": 39, "planned": 64},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_in_its_own_words(tmp_path: Path, name: str) -> None:
    line, said = LOOPS[name]
    track = only(facts(tmp_path, line))
    read = {
        "step": track.steps[-1], "planned": track.planned, "loss": track.loss[-1],
        "grad_norm": track.grad_norm[-1], "lr": track.lr[-1], "step_s": track.step_s[-1],
        "data_s": track.data_s[-1], "sync_s": track.sync_s[-1],
        "throughput": track.throughput[-1],
    }  # fmt: skip

    assert track.format == "unnamed"
    assert len(track) == 40
    assert track.at[1] - track.at[0] == 20
    assert {what: read[what] for what in said} == pytest.approx(said, abs=1e-3)
    assert not any(track.has_loss) or "loss" in said


@pytest.mark.parametrize("name", LOOPS)
def test_lines_that_are_cut_say_what_lines_that_are_read_do(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Column by column: most lines of a loop differ from another in digits alone."""
    line, _ = LOOPS[name]
    cut = only(facts(tmp_path, line, count=200))
    monkeypatch.setattr(unnamed.Reader, "columns", lambda self, text: None)
    read = only(facts(tmp_path, line, count=200))

    for column in fields(Track):
        mine, its = getattr(cut, column.name), getattr(read, column.name)
        if isinstance(mine, array):
            assert list(mine) == pytest.approx(list(its), nan_ok=True)
        else:
            assert mine == its


def test_rows_below_a_heading(tmp_path: Path) -> None:
    """The heading names what the rows do not."""
    head = (
        "| update |   time   |  train nll | grad | lr       | s/upd |\n|---|---|---|---|---|---|"
    )

    def line(n: int) -> str:
        at = BEGAN + timedelta(seconds=44 * n)
        return f"| {10 * n + 10:6d} | {at:%H:%M:%S} | {loss(n):10.5f} | 0.58 | 5.00e-06 |  4.39 |"

    track = only(facts(tmp_path, line, head=head, dated=False))

    assert list(track.steps[:3]) == [10, 20, 30]
    assert track.loss_name == "train nll"
    assert (track.step_s[0], track.grad_norm[0], track.lr[0]) == (4.39, 0.58, 5e-6)


def test_data_that_is_counted_numbers_no_steps(tmp_path: Path) -> None:
    """When it was counted tells how the run went on all the same."""
    track = only(facts(tmp_path, lambda n: f"poses_seen={51_200 * n} rmse={loss(n):.3f} kcal/mol"))

    assert set(track.steps) == {-1}
    assert track.at[1] - track.at[0] == 20
    assert track.loss_name == "rmse"


def test_ranks_that_print_in_turn(tmp_path: Path) -> None:
    """Without a label: each step stands there once for each of them."""
    track = only(
        facts(
            tmp_path, lambda n: f"it {n // 8 * 10} of 400 (r{n % 8}) nll={loss(n):.3f}", count=160
        )
    )

    assert (track.steps[0], track.steps[-1]) == (0, 190)
    assert len(track) == 160


def test_a_schedule_is_no_loss(tmp_path: Path) -> None:
    track = only(facts(tmp_path, lambda n: f"iter {n} of 64 | tau {3 - n / 25:.4f} | lr 1e-4"))

    assert not any(track.has_loss)


def test_times_that_a_hand_written_loop_says_in_its_own_words(tmp_path: Path) -> None:
    """They are put beside what is read of it; so are those of a table."""
    track = only(
        facts(tmp_path, lambda n: f"step {20 * n} loss {loss(n):.3f} u_ms=990 grad_xchg_ms=3 "
              "wait_batch_ms=400")
    )  # fmt: skip

    assert track.format == "plain"
    assert (track.step_s[5], track.data_s[5]) == (0.99, 0.4)


def test_rows_between_commas(tmp_path: Path) -> None:
    """In a file that is named as tables of data are; nothing of it is taken for thousands."""
    track = only(
        facts(
            tmp_path,
            lambda n: f"{1780461000 + 20 * n}.5,{30 * n},{loss(n):.4f},0.66,0.41,0",
            head="#unix,k,ctc,total_s,blocked_s,queue_len",
            name="log.csv",
            dated=False,
        )
    )

    assert (track.steps[-1], track.loss_name) == (1170, "ctc")
    assert (track.step_s[-1], track.data_s[-1]) == (0.66, 0.41)
    assert track.at[1] - track.at[0] == 20


def test_rows_of_json(tmp_path: Path) -> None:
    """In a file that is named as data sets are."""

    def line(n: int) -> str:
        at = BEGAN + timedelta(seconds=56 * n)
        row = {"t": f"{at:%H:%M:%S}", "u": 10 * n, "of": 4400, "ce": loss(n), "sec": 5.6}
        return json.dumps(row | {"fetch": 0.009})

    track = only(facts(tmp_path, line, name="run.jsonl", dated=False))

    assert (track.steps[-1], track.planned, track.step_s[-1]) == (390, 4400, 5.6)


def test_a_data_set_is_none(tmp_path: Path) -> None:
    def line(n: int) -> str:
        return json.dumps({"id": n, "text": f"the loss of {n} men", "label": n % 2})

    assert facts(tmp_path, line, name="train.jsonl", dated=False).tracks == ()


def test_a_loss_that_is_no_number(tmp_path: Path) -> None:
    track = only(
        facts(tmp_path, lambda n: f"iter {n}/40 | silog {'nan' if n > 30 else 0.5} | lr 1e-4")
    )

    assert track.loss_name == "silog"
    assert math.isnan(track.loss[-1])
    assert track.has_loss[-1]


def test_what_a_step_took_agrees_with_the_clock(tmp_path: Path) -> None:
    """A time of something else is none of the step's."""
    track = only(facts(tmp_path, lambda n: f"iter {n} | nll {loss(n)} | t 0.21 s"))

    assert not any(map(math.isfinite, track.step_s))


def test_what_has_passed_dates_steps_that_nothing_dates(tmp_path: Path) -> None:
    track = only(
        facts(
            tmp_path, lambda n: f"{20.0 * n:8.1f}s | k= {5 * n} | eps-MSE {loss(n)}", dated=False
        )
    )

    assert [track.since_s[i] for i in (0, 1, 39)] == [0.0, 20.0, 780.0]


@pytest.mark.parametrize(
    "line",
    [
        lambda n: f"eval iter {n}/40 | recon 0.02 | 31.2 clips/s",
        lambda n: f"warmup iter {n}/40 | 31.2 clips/s | lr 1e-4",
        lambda n: f"iter {n}/40 | 310.2 MB/s",
        lambda n: f"batch {n}/40 of files | 310 docs/s",
        lambda n: f"[{n}/40] nvcc --threads 4 fused_backward.cu -O3 -DGRAD=1",
        lambda n: f"downloading batch {n}/40 for train 3",
        lambda n: f"decoding batch {n}/40 | 35 tokens/s",
        lambda n: f"iter {40 - n}/40 | lr 1e-4",
        lambda n: "iter 7/40 | lr 1e-4",
        lambda n: f"request {n} took {n} ms",
        lambda n: f"backup piece {n} took 19.8 s",
        lambda n: f"n7:44:45 [2] NCCL INFO Channel {n:02d}/40 : 6[2] -> 7[3] via P2P, lr 1e-4",
        lambda n: f"[17.2] [n7:44:0] ucp_worker.c:1855 UCX  INFO  ep_cfg[{n}]: tag(rc), lr 1e-4",
        lambda n: f"used {n} GB of 40 GB, train 3",
        lambda n: f"elapsed {n * n % 7 + 30 * n} s, lr 1e-4",
        lambda n: f"{7 * n * n % 40} of 40 done, lr 1e-4",
    ],
)
def test_what_counts_and_trains_nothing(tmp_path: Path, line: Line) -> None:
    """Evaluations, builds, downloads; counts that fall, stand still or jump."""
    assert facts(tmp_path, line).tracks == ()


def test_a_loop_that_times_its_collectives_is_one(tmp_path: Path) -> None:
    track = only(facts(tmp_path, lambda n: f"upd {n}/40 | nccl 0.31 s | xent {loss(n):.3f}"))

    assert len(track) == 40


def test_only_where_nothing_else_told_of_a_step(tmp_path: Path) -> None:
    known = only(
        facts(tmp_path, lambda n: f"step {n} loss 0.5" if n % 2 else f"prof it {n} fwd 3ms")
    )

    assert known.format == "plain"
    assert len(known) == 20


def test_of_the_ranks_beside_one_that_prints_losses_the_waits_are_kept(tmp_path: Path) -> None:
    """Each in a log of its own: the one that waits least is waited for."""

    def part(rank: int, wait: Callable[[int], int]) -> Line:
        return lambda n: f"[r{rank:02d}] prof it {200 * n} fwd+bwd 39ms allreduce_wait {wait(n)}ms"

    for rank in range(1, 9):
        wait = (lambda n: 4 + n % 2) if rank == 6 else (lambda n: 43 + n % 5)
        facts(tmp_path, part(rank, wait), name=f"rank_{rank:02d}.log")
    read = facts(
        tmp_path,
        lambda n: f"[r00] it {200 * n} loss {3 - n / 50:.3f} iter 0.1s",
        name="rank_00.log",
    )
    verdict = diagnose(read)

    assert len(read.tracks) == 9
    assert verdict.code == "D3"
    assert [place.rank for place in verdict.culprits] == [6]


def test_a_wait_for_nobody_knows_what_is_for_the_others(tmp_path: Path) -> None:
    """Beside what is computed. The logs are named after the job's hosts."""
    for host in range(6):
        late = host == 3

        def line(n: int, late: bool = late) -> str:
            work, wait = (190 + n % 3, 2) if late else (120 + n % 5, 70 + n % 7)
            return f"sweep={100 * n}/9000 score={loss(n):.4f} compute_ms={work} wait_ms={wait}"

        facts(tmp_path, line, name=f"diff_foehn-g{host:02d}.txt")
    (tmp_path / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        "44|ens|RUNNING|0:0|2026-06-03T04:29:00|Unknown|6|foehn-g[00-05]\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "D3"
    assert [place.host for place in verdict.culprits] == ["foehn-g03"]


def test_beside_a_log_that_prints_losses_other_counts_are_left_out(tmp_path: Path) -> None:
    facts(tmp_path, lambda n: f"rollout {n} | rewards 3.{n}", name="actor.log")
    read = facts(tmp_path, lambda n: f"step {n} loss 0.5")

    assert only(read).format == "plain"


def test_a_count_beside_which_nothing_changes(tmp_path: Path) -> None:
    """srun's labels in their order, before a line of all tasks whose path names training."""
    line = "{n}: pyxis: creating container filesystem: /images/train-24.10.sqsh"
    assert not facts(tmp_path, lambda n: line.format(n=n), dated=False).tracks


def test_steps_beside_the_saves_that_a_format_reads(tmp_path: Path) -> None:
    """Lightning's words on its checkpoints tell a few steps, and no loss."""
    saved = "Epoch {}, global step {}: 'val_wmse' was not in top 1"

    def line(n: int) -> str:
        text = (
            f"epoch {n // 40} step {n % 40 * 10}/400 global_step {n * 10} train_wmse_step="
            f"{loss(n / 3):.5f} step_time=1.836s lr=6.250e-05"
        )
        return f"{text}\n{saved.format(n // 40, n * 10)}" if n % 40 == 39 else text

    read = facts(tmp_path, line, count=120)
    track = read.main_track(0)

    assert track is not None
    assert (track.format, len(track)) == ("unnamed", 120)
    assert {other.format for other in read.tracks} == {"unnamed", "lightning"}


def test_steps_a_second_are_no_seconds(tmp_path: Path) -> None:
    """One over them is what a step took; a rate of nothing says nothing."""
    rates = [f"1.{n % 7}0" if n != 150 else "0.00" for n in range(1, 200)]
    (tmp_path / "train.log").write_text(
        "".join(
            f"upd {n} of 900 | objective {9 - n / 60:.3f} | {rate} it/s | lr 1e-4\n"
            for n, rate in enumerate(rates, 1)
        )
    )
    track = only(collect(Request((str(tmp_path),))))

    assert list(track.step_s[:3]) == [pytest.approx(1 / float(rate)) for rate in rates[:3]]
    assert math.isnan(track.step_s[149])
