"""Lines and tables of libraries that train agents and robots."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan
from pathlib import Path

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import RISING, Progress
from flatline.parsers import (
    audiotools,
    ding,
    dowel,
    mappo,
    pymarl,
    robomimic,
    tdmpc,
    torchbeast,
    vits,
)


def told(points: Iterable[object]) -> list[Progress]:
    return [point for point in points if isinstance(point, Progress)]


def judged(folder: Path, text: str) -> tuple[str | None, float]:
    (folder / "train.log").write_text(text)
    verdict = diagnose(collect(Request((str(folder),))))
    return verdict.code, verdict.confidence


BEAST = "[INFO:7 monobeast:509 2024-03-02 09:{m:02}:00,000] Steps {n} @ 9120.4 SPS. Loss {loss}. {back}Stats:"  # noqa: E501


def beast(n: int, loss: str, back: float | None) -> str:
    reward = "" if back is None else f"Return per episode: {back:.1f}. "
    return BEAST.format(n=n * 4_000, m=n, loss=loss, back=reward)


def test_torchbeast() -> None:
    """Before the first batch was learnt from there is no loss, which is printed as `inf`."""
    reader = torchbeast.Reader()
    none, some, lost = (
        told(reader.feed(beast(n, loss, back)))[0]
        for n, loss, back in ((1, "inf", None), (2, "30.2", -19.5), (3, "nan", -19.5))
    )
    assert (none.step, none.loss) == (4_000, None)
    assert (some.loss, some.loss_name, some.falling) == (-19.5, RISING, False)
    assert isnan(lost.loss or 0.0)
    (end,) = reader.feed("[INFO:7 monobeast:519 x] Learning finished after 8000 steps.")
    assert end == Progress("finished", 8_000)


def test_a_few_returns_that_rise(tmp_path: Path) -> None:
    """Of a dozen returns a rise is no chance where hardly one lies below one before it."""
    rows = [beast(n, "3.5", -20 + 2.9 * n) for n in range(1, 14)]
    end = "[INFO:7 monobeast:519 2024-03-02 09:20:00,000] Learning finished after 52000 steps."
    assert judged(tmp_path, "\n".join([*rows, end, ""]))[0] == "G1"


def test_a_few_returns_that_scatter(tmp_path: Path) -> None:
    rows = [beast(n, "3.5", -20 + 7 * (n * 5 % 13)) for n in range(1, 14)]
    end = "[INFO:7 monobeast:519 2024-03-02 09:20:00,000] Learning finished after 52000 steps."
    assert judged(tmp_path, "\n".join([*rows, end, ""]))[0] is None


def epoch_of_robot(n: int, loss: float) -> list[str]:
    return [f"Train Epoch {n}", "{", f'    "Log_Likelihood": {-loss},', f'    "Loss": {loss},',
            '    "Policy_Grad_Norms": 7.25,', '    "Time_Epoch": 0.5', "}"]  # fmt: skip


def rows_of(reader: robomimic.Reader | pymarl.Reader, lines: list[str]) -> list[object]:
    """What a table says whose head is the first of these."""
    return [*reader.feed(lines[0]), *(said for _, said in reader.rows(enumerate(lines[1:])))]


def test_robomimic() -> None:
    reader = robomimic.Reader()
    assert not told(reader.feed("finished run successfully!"))
    (point,) = told(rows_of(reader, epoch_of_robot(3, -5.5)))
    assert (point.kind, point.epoch, point.loss, point.grad_norm, point.step_s) == (
        "train", 3.0, -5.5, 7.25, 30.0,
    )  # fmt: skip
    held_out = ["Validation Epoch 3", "{", '    "Loss": -4.5', "}"]
    (eval_,) = told(rows_of(reader, held_out))
    assert (eval_.kind, eval_.loss) == ("eval", -4.5)
    assert reader.feed("finished run successfully!") == (Progress("finished"),)
    assert not told(rows_of(reader, ["Train Epoch 4", "loss below", "{"]))


def test_robomimic_to_its_end(tmp_path: Path) -> None:
    lines = [line for n in range(1, 41) for line in epoch_of_robot(n, 9 - n * 0.4 + n % 3 * 0.1)]
    assert judged(tmp_path, "\n".join([*lines, ""]))[0] is None
    assert judged(tmp_path, "\n".join([*lines, "finished run successfully!", ""]))[0] == "G1"


def test_mappo() -> None:
    """The on-policy code counts from 0, HARL from 1."""
    lines = (
        " Map 3m Algo rmappo Exp a updates 0/625 episodes, total num timesteps 3200/2000000,"
        " FPS 310.",
        "average episode rewards is 2.75",
        "Some episodes done, average episode reward is 504.2.",
        "Evaluation average episode reward is 8.5.",
    )  # fmt: skip
    first, *measured = (told(mappo.Reader().feed(line))[0] for line in lines)
    assert (first.step, first.planned, first.throughput) == (0, 625, 310.0)
    assert [one.loss for one in measured] == [2.75, 504.2, 8.5]
    assert measured[0].loss_name == measured[1].loss_name != measured[2].loss_name


def stats(n: int, loss: str, back: float) -> list[str]:
    return [
        f"[INFO 17:47:25] my_main t_env: {n} / 2050000",
        f"[INFO 17:47:25] my_main Recent Stats | t_env: {n:>10} | Episode:     1001",
        f"ep_length_mean:           47.7436\tgrad_norm:                 0.1820\tloss: {loss:>25}",
        f"return_mean: {back:>20.4f}\treturn_std:                0.2083",
        "[INFO 17:47:26] my_main t_env: 9 / 2050000",
        "loss: 7.5",
    ]


def test_pymarl() -> None:
    reader = pymarl.Reader()
    first, *table = stats(50_050, "0.0198", 0.125)
    assert not told(reader.feed(first))
    step, back = told(rows_of(reader, table))
    assert (step.step, step.planned, step.loss, step.grad_norm, step.falling) == (
        50_050, 2_050_000, 0.0198, 0.182, False,
    )  # fmt: skip
    assert (back.kind, back.loss, back.loss_name) == ("eval", 0.125, "return_mean")
    assert told(reader.feed("[INFO 22:42:53] my_main Finished Training"))


def test_pymarl_that_diverged(tmp_path: Path) -> None:
    rows = [line for n in range(1, 30)
            for line in stats(n * 50_000, "0.02" if n < 15 else "nan", 0.1)[:4]]  # fmt: skip
    assert judged(tmp_path, "\n".join([*rows, ""]))[0] == "E1"


def test_tdmpc() -> None:
    """With its colours a name is not filled up, without them it is."""
    for line in (
        " train   E: 992          I: 496,000      R: 171.7        T: 9:45:23   ",
        " train           E: 992          I: 496,000      R: 171.7        T: 9:45:23",
    ):
        (point,) = told(tdmpc.Reader().feed(line))
        assert (point.kind, point.step, point.loss, point.loss_name) == (
            "train", 496_000, 171.7, RISING,
        )  # fmt: skip
    (eval_,) = told(tdmpc.Reader().feed(" eval    E: 1,000   I: 500,000   R: 168.3   T: 9:47:43"))
    assert (eval_.kind, eval_.loss) == ("eval", 168.3)


GRID = """\
+-------+------------+----------------+
| Name  | cur_lr_avg | total_loss_avg |
+-------+------------+----------------+
| Value | 0.003000   | {loss:<14} |
+-------+------------+----------------+
"""


def test_ding() -> None:
    """Where one stream prints both, one point of an iteration has step and loss."""
    reader = ding.Reader()
    text = "".join(
        f"=== Training Iteration {n}00 Result ===   learner_hook.py:232\n" + GRID.format(loss=loss)
        for n, loss in ((1, 5.5), (2, 4.5), (3, "nan"))
    )
    points = told(one for line in text.splitlines() for one in reader.feed(line))
    assert [point.step for point in points] == [100, 100, 200, 300]
    assert [point.loss for point in points[1:3]] == [5.5, 4.5]
    assert isnan(points[3].loss or 0.0)


def test_ding_of_two_streams(tmp_path: Path) -> None:
    """The grid bears no rank; a return that is to be reached tells that it learnt."""
    rows = [
        f"[01-15 10:{n:02}:43] INFO     [RANK0]: === Training Iteration {n}00 Result ===\n"
        + GRID.format(loss=9.5 - n * 0.1)
        for n in range(40)
    ]
    end = (
        "[01-15 10:43:50] INFO     [LightZero serial pipeline] Current episode_return: {}"
        " is greater than stop_value: 0.9, so your MCTS/RL agent is converged, see"
    )
    assert judged(tmp_path, "\n".join([*rows, ""]))[0] is None
    assert judged(tmp_path, "\n".join([*rows, end.format("0.96"), ""]))[0] == "G1"


def test_audiotools() -> None:
    """The first table of an iteration is the training's, the second of what is held out."""
    reader = audiotools.Reader()
    lines = (
        "│ Iteration (train) 1000/25000 ━━━━━━━ 0:10:20 / 4:08:00 │",
        "┃                  Iteration 1000                  ┃",
        "│ mel/loss                   3.140556     3.146837 │",
        "  mel/loss                 │   3.250556 │   3.250837",
        "Iteration: 2000 / 25000  ━━━━━━━━  8%  20:40 / 3:57:40",
        "│ adv/disc_loss              8.442019     8.458903 │",
        "│ mel/loss                   2.940556     2.946837 │",
    )
    points = told(one for line in lines for one in reader.feed(line))
    assert [(one.kind, one.step, one.loss) for one in points] == [
        ("train", 1000, 3.140556), ("eval", 1000, 3.250556), ("train", 2000, 2.940556),
    ]  # fmt: skip
    assert points[0].planned == 25_000


def test_dowel() -> None:
    """rllab's lines and garage's; one return of an iteration."""
    reader = dowel.Reader()
    lines = (
        "AverageReturn       3.5",
        "2023-06-14 13:29:03 | [trpo_ant] epoch #29 | Saved",
        "2023-06-14 13:29:03 | [trpo_ant] epoch #29 | EpochTime 14.24 s",
        "Evaluation/AverageReturn                         1419.46",
        "Task/AverageReturn                                  2.5",
        "2017-06-14 13:29:03.1 UTC | itr #30 | fitting baseline...",
        "AverageReturn                                       7.5",
    )
    first, second = told(one for line in lines for one in reader.feed(line))
    assert (first.step, first.loss, first.loss_name, first.step_s) == (29, 1419.46, RISING, 14.24)
    assert (second.step, second.loss, second.step_s) == (30, 7.5, None)


def voice(n: int, mel: float, plan: int = 30) -> str:
    rows = [f"{{'train': {{'log_interval': 200, 'seed': 1, 'epochs': {plan}, 'lr': 0.1}}}}"] * (
        n == 1
    )
    losses = f"[2.06, 3.0, 14.57, {mel}, 2.23, 0.5, {n * 200}, 0.00016]"
    rows += [f"Train Epoch: {n} [40%]", losses, f"====> Epoch: {n}"]
    return "".join(f"2026-01-03 10:{n:02}:11,000\tljs\tINFO\t{row}\n" for row in rows)


def test_the_list_of_a_voice_s_losses(tmp_path: Path) -> None:
    """Its fourth is the distance of the spectra, its last two are step and rate; the line of the
    last epoch that is planned is the end."""
    text = "".join(voice(n, 60 / n + n % 3) for n in range(1, 31))
    (tmp_path / "a").mkdir()
    assert judged(tmp_path / "a", text)[0] == "G1"
    (track,) = collect(Request((str(tmp_path / "a"),))).tracks
    assert (list(track.steps)[-2:], track.loss[-1], track.lr[-1]) == ([5800, 6000], 2.0, 0.00016)
    (tmp_path / "b").mkdir()
    assert judged(tmp_path / "b", text.replace("'epochs': 30", "'epochs': 31"))[0] is None


def test_a_voice_that_is_no_number() -> None:
    """A generator that is lost tells no less where the spectra are still compared."""
    line = "Losses: [2.1, nan, 8.7, 22.5, 1.1], step: 6000, lr: 9.9e-05, reference_loss: nan"
    (point,) = told(vits.Reader().feed(line))
    assert point.step == 6000
    assert isnan(point.loss or 0.0)
    assert not told(vits.Reader().feed("Losses: [2.1, 3.0, 8.7, 22.5, 1.1]"))


def test_a_voice_that_begins_anew(tmp_path: Path) -> None:
    """Its checkpoint could not be loaded; on its first start there was none."""
    line = "Losses: [2.1, 1.9, 8.7, {}, 1.1], step: {}, lr: 9.9e-05, reference_loss: 40.5"

    def run(epochs: int) -> list[str]:
        rows = ["load old checkpoint failed..."]
        for n in range(epochs):
            rows += [f"INFO:44k:Train Epoch: {n + 1} [40%]"]
            rows += ["INFO:44k:" + line.format(20 + 30 / (n + 1), n * 200)]
            rows += [f"INFO:44k:Saving model and optimizer state at iteration {n + 1} to ./G.pth"]
            rows += [f"INFO:44k:====> Epoch: {n + 1}, cost 70 s"]
        return rows

    (tmp_path / "a").mkdir()
    assert judged(tmp_path / "a", "\n".join([*run(30), *run(20), ""]))[0] == "E2"
    (tmp_path / "b").mkdir()
    assert judged(tmp_path / "b", "\n".join([*run(30), ""]))[0] is None
