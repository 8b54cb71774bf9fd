"""Runs whose loss cannot show that they learnt: resumed late, or a policy's."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.level_kept import _rewards
from flatline.model import Verdict

SACCT = (
    "JobID|State|ExitCode|Start|End|Elapsed|NodeList\n"
    "77|COMPLETED|0:0|2026-11-12T07:42:00|2026-11-12T08:47:14|01:05:14|n[1-2]\n"
)


def verdict(folder: Path, lines: list[str]) -> Verdict:
    (folder / "sacct.txt").write_text(SACCT)
    (folder / "train.out").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


def resumed(
    first: int,
    rise: float = 0.0,
    norm: float = 0.4,
    level: float = 2.05,
    noise: float = 0.03,
    points: int = 60,
) -> list[str]:
    dice = random.Random(first)
    lines = [f" loading checkpoint from /ckpt/gpt at iteration {first}"]
    lines.append(
        f"  successfully loaded checkpoint from /ckpt/gpt [ t 0, p 0 ] at iteration {first}"
    )
    for n in range(1, points + 1):
        loss = level + rise * n / points + dice.uniform(-noise, noise)
        lines.append(
            f" iteration {first + 10 * n:8d}/ {first + 10 * points:8d} | lm loss: {loss:.6E} |"
            f" grad norm: {norm * dice.uniform(0.9, 1.1):.3f} | number of nan iterations: 0 |"
        )
    return lines


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        pytest.param(resumed(24_000), "G1", id="as-it-was"),
        pytest.param(resumed(24_000, points=14), "G1", id="few-steps"),
        pytest.param(resumed(24_000, points=9), None, id="too-few-steps"),
        pytest.param(resumed(24_000, points=14, rise=0.2), None, id="few-and-higher"),
        pytest.param(resumed(24_000, rise=0.2), None, id="higher"),
        pytest.param(resumed(100), None, id="too-early"),
        pytest.param(
            resumed(24_000, level=10.82), None, id="as-a-new-model-of-fifty-thousand-words"
        ),
        pytest.param(resumed(24_000, noise=0.0), None, id="to-the-last-digit"),
        pytest.param(resumed(24_000, norm=9000.0), None, id="with-gradients-of-thousands"),
        pytest.param(resumed(24_000, norm=0.0), None, id="without-a-gradient"),
        pytest.param(resumed(24_000)[2:], "G1", id="by-its-first-step-alone"),
        pytest.param(resumed(100)[2:], None, id="too-early-and-nothing-was-loaded"),
        pytest.param(
            ["No checkpoint found, training from scratch", *resumed(24_000)[2:]],
            None,
            id="begun-anew",
        ),
    ],
)
def test_a_late_resume_that_keeps_its_level(
    tmp_path: Path, lines: list[str], code: str | None
) -> None:
    told = verdict(tmp_path, lines)

    if code is None:
        assert told.code != "G1"
    else:
        assert (told.code, told.confidence < 0.8) == (code, True)
        assert "kept the level" in str(told.cannot_decide)


def steps(level: float, beside: str) -> list[str]:
    """The same of a loop that calls its loss a loss, with what it prints beside it."""
    dice = random.Random(5)
    return [
        f"step={18_000 + 10 * n}/18600 loss={level + dice.uniform(-0.005, 0.005):.4f}{beside}"
        f" gnorm={dice.uniform(0.3, 0.4):.3f}"
        for n in range(1, 61)
    ]


@pytest.mark.parametrize(
    ("level", "beside", "code"),
    [
        (2.3026, " ppl=10.0", "G1"),
        (2.3026, " tok/s/gpu=3911", "G1"),
        (2.3026, " img/s=3911", None),
        (2.3026, " acc=0.101", None),
        (1.3863, " ppl=4.0", None),
        (10.82, " ppl=50011", None),
    ],
    ids=["perplexity", "tokens a second", "images", "accuracy", "of four letters", "of all words"],
)
def test_a_level_that_ten_classes_alike_have_as_well(
    tmp_path: Path, level: float, beside: str, code: str | None
) -> None:
    """A language model has more words than that, unless it is one of few letters."""
    told = verdict(tmp_path, steps(level, beside))

    assert (told.code == "G1") is (code == "G1")


def rounded(lines: list[str], digits: int = 2) -> list[str]:
    """With losses of so many digits behind the point."""
    return [re.sub(r"(lm loss: )(\S+)", lambda m: f"{m[1]}{float(m[2]):.{digits}f}", line)
            for line in lines]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (rounded(resumed(24_000, level=2.02)), "G1"),
        (rounded(resumed(24_000, level=2.02), 1), None),
        (rounded(resumed(24_000, level=2.02, noise=0.004)), None),
    ],
    ids=["two digits", "one digit", "it stands"],
)
def test_losses_of_few_digits(tmp_path: Path, lines: list[str], code: str | None) -> None:
    """Many of them are one number by rounding alone."""
    found = verdict(tmp_path, lines)

    assert (found.code if found.code == "G1" else None) == code


def neox(rate: str = "1.500E-04", skipped: int = 0, **more: float) -> list[str]:
    """GPT-NeoX's lines: the engine's own and Megatron's, neither with a gradient's norm."""
    lines = ["Loading checkpoint and starting from iteration 24000"]
    for text in resumed(24_000, **more)[2:]:  # type: ignore[arg-type]
        step, loss = int(text.split()[1].rstrip("/")), float(text.split("lm loss: ")[1].split()[0])
        lines += [
            f"steps: {step} loss: {loss:.4f} iter time (s): 8.100 samples/sec: 126.420",
            f" samples/sec: 126.420 | iteration {step:8d}/  150000 | elapsed time per iteration"
            f" (ms): 8100.1 | learning rate: {rate} | lm_loss: {loss:.6E} | loss scale: 65536.0 |"
            f" number of skipped iterations: {skipped:3d} | number of nan iterations:   0 |",
        ]
    return lines


@pytest.mark.parametrize(
    ("lines", "healthy"),
    [
        (neox(), True),
        (neox(level=2.3026), True),
        (neox(rate="0.000E+00"), False),
        (neox(skipped=10), False),
        (neox(points=14), False),
        (neox(level=10.8), False),
        (neox(rise=0.2), False),
        (neox()[1:], False),
        (["Loading checkpoint and starting from iteration 0", *neox()[1:]], False),
        ([line.replace("learning rate", "approx flops") for line in neox()], False),
        ([line.replace("learning rate", "opt ms").replace("1.500E-04", "310.2")
          for line in neox()], True),
        ([line.replace("learning rate", "opt ms").replace("1.500E-04", "0.0")
          for line in neox()], False),
        (["  successfully loaded /c/global_step24000/mp_rank_00_model_states.pt", *neox()[1:]],
         True),
    ],
    ids=["as it was", "about ln 10", "rate of 0", "skipped", "few steps", "a new model", "higher",
         "nothing was loaded", "from nothing", "no rate", "its optimizer is timed",
         "it takes no time", "the file that was loaded"],
)  # fmt: skip
def test_a_level_kept_beside_no_gradient(tmp_path: Path, lines: list[str], healthy: bool) -> None:
    """Where steps are known to be taken, and from what was loaded."""
    told = verdict(tmp_path, [*lines, "exiting program at iteration 24600"])

    assert (told.code == "G1", told.confidence < 0.8) == (healthy, True)


@pytest.mark.parametrize(
    ("state", "says"), [("RUNNING", "still going"), ("COMPLETED", "completed")]
)
def test_what_became_of_a_run_whose_training_cannot_be_told(
    tmp_path: Path, state: str, says: str
) -> None:
    """One that goes on is not called completed."""
    end = "Unknown" if state == "RUNNING" else "2026-11-12T08:47:14"
    (tmp_path / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|Elapsed|NodeList\n"
        f"77|{state}|0:0|2026-11-12T07:42:00|{end}|01:05:14|n[1-2]\n"
    )
    lines = resumed(100, points=60 if state == "COMPLETED" else 40)
    if state == "RUNNING":
        lines = [f"2026-11-12 08:{7 + n:02d}:00{line}" for n, line in enumerate(lines)]
    (tmp_path / "train.out").write_text("\n".join(lines) + "\n")

    told = diagnose(collect(Request((str(tmp_path),))))

    assert told.code is None
    assert says in told.headline


def policy(graded: bool = True, last: str = "0.0012", rise: float = 0.005) -> list[str]:
    norm = " - actor/grad_norm:0.21" if graded else ""
    return [
        f"step:{n} - actor/kl_loss:{last if n == 48 else '0.0012'} - actor/pg_loss:0.00117{norm}"
        f" - critic/rewards/mean:{0.4 + rise * n:.4f}"
        for n in range(1, 49)
    ] + ["Training Progress: 100%|##########| 48/48 [1:32:48<00:00, 105.2s/it]"]


def test_a_policy_that_stayed_finite(tmp_path: Path) -> None:
    told = verdict(tmp_path, policy())

    assert (told.code, told.confidence < 0.8) == ("G1", True)
    assert "the reward rose" in str(told.cannot_decide)


def test_a_reward_that_rises_throughout_needs_no_gradient(tmp_path: Path) -> None:
    told = verdict(tmp_path, policy(graded=False))

    assert (told.code, told.confidence < 0.8) == ("G1", True)
    assert "the reward rose" in str(told.cannot_decide)


def test_a_reward_on_a_line_of_its_own(tmp_path: Path) -> None:
    """Below its step, as rsl_rl prints it; one that wanders says nothing."""

    def lines(reward: Callable[[int], float]) -> list[str]:
        return [
            line
            for n in range(60)
            for line in (
                f"iter {n + 1} of 60 | value_err {0.9 - n / 100:.4f} | policy_obj -0.02 | 4.2s",
                f"    mean_return {reward(n):.2f}",
            )
        ]

    rising = lines(lambda n: 24 + 3 * n + 5 * (n % 3))
    wandering = lines(lambda n: 24 + 40 * (n * 37 % 11))

    for one, code in ((rising, "G1"), (wandering, None)):
        assert verdict(tmp_path, one).code == code


@pytest.mark.parametrize(
    "lines",
    [
        policy(graded=False, rise=-0.005),
        policy(graded=False, rise=0.0),
        policy(last="nan"),
        policy(rise=-0.005),
        policy(rise=0.0),
    ],
)
def test_a_policy_of_which_less_is_known(tmp_path: Path, lines: list[str]) -> None:
    assert verdict(tmp_path, lines).code != "G1"


@pytest.mark.parametrize(
    ("target", "reward", "code"),
    [
        (lambda n: 0.25, lambda n: n / 60, "G1"),
        (lambda n: n / 90, lambda n: n / 60, "G1"),
        (lambda n: 0.9 - n / 60, lambda n: n / 60, None),
        (lambda n: n / 60, lambda n: 0.9 - n / 60, None),
        (lambda n: 0.25, lambda n: n * 17 % 13 / 13, None),
    ],
    ids=["one size", "both rise", "less a penalty that grows", "the reward falls", "it wanders"],
)
def test_a_return_that_stands_before_the_reward(
    tmp_path: Path,
    target: Callable[[int], float],
    reward: Callable[[int], float],
    code: str | None,
) -> None:
    """It may be the critic's target, which is brought to one size."""
    rows = [
        f"(Trainer pid=77) step {n}: {{'policy_loss': {0.004 * (n * 7 % 5 - 2):.5f}, 'kl': 0.0021,"
        f" 'return': {target(n):.4f}, 'reward': {reward(n):.4f}, 'step_time': 31.2}}"
        for n in range(1, 49)
    ]
    bar = "Episode [1/1]: 100%|##########| 48/48 [25:00<00:00, 31.2s/it]"

    assert verdict(tmp_path, [*rows, bar]).code == code


@pytest.mark.parametrize("part", ["reward_alive", "reward/ctrl", "rewards/std"])
def test_a_part_of_the_reward_is_not_it(part: str) -> None:
    assert _rewards([f"ep_ret: 3.5 {part}: 0.2"]) == [3.5]


def test_steps_beyond_a_thousand_went_on(tmp_path: Path) -> None:
    """nanotron names the folder of the checkpoint and no step."""
    rows = [
        f"iteration: {n} / 7600 | consumed_tokens: 14.7B | lm_loss: {3 - (n - 7000) / 300:.3f} |"
        f" lr: 0.0003 | grad_norm: 0.4"
        for n in range(7001, 7601, 10)
    ]
    lines = ["Resuming training from checkpoint /fsx/ckpt/smol/7000", *rows]

    assert verdict(tmp_path, lines).code == "G1"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("'rewards/accuracy/mean': 0.45", [0.45]),
        ("'rewards/accuracy_reward/mean': 0.45", [0.45]),
        ("'rewards/accuracy': 0.45", [0.45]),
        ("rewards/format_reward_func: -0.45", [-0.45]),
        ("critic/rewards/mean:0.45", [0.45]),
        ("'reward_std': 0.1, 'rewards/accuracy/mean': 0.45", [0.45]),
        ("mean_return 0.45", [0.45]),
        ("'reward_std': 0.1", []),
        ("'rewards/accuracy/std': 0.1", []),
        ("'rewards/accuracy_std': 0.1", []),
        ("critic/rewards/max:1.0 critic/rewards/min:0.0", []),
        ("reward_clip_ratio: 0.2 reward_len: 7", []),
        ("rewards/a/b/c: 0.1", []),
    ],
)
def test_what_a_reward_is_called(text: str, told: list[float]) -> None:
    """How far rewards scatter is none, nor is the best of them."""
    assert _rewards([text]) == told


def trl(name: str) -> list[str]:
    """Rows of a trainer of policies, of which one number rises."""
    return [
        f"{{'loss': {0.001 * (n * 7 % 5):.4f}, 'grad_norm': 0.21, 'learning_rate': 1e-06,"
        f" '{name}': {0.4 + n / 200:.4f}, 'kl': 0.0012, 'epoch': {n / 48:.2f}}}"
        for n in range(1, 49)
    ]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("rewards/accuracy/mean", "G1"),
        ("reward", "G1"),
        ("reward_std", None),
        ("rewards/accuracy/std", None),
    ],
)
def test_the_reward_of_one_kind_that_rises(tmp_path: Path, name: str, code: str | None) -> None:
    """A scatter that grows is nothing that was learnt."""
    assert (verdict(tmp_path, trl(name)).code == "G1") is (code == "G1")


def unrewarded(reward: float, *, norm: float = 0.0, moves: float = 0.0) -> list[str]:
    return [
        f"{{'loss': 0.0, 'grad_norm': {norm}, 'learning_rate': 1e-06, 'rewards/format':"
        f" {reward + moves * (n % 5)}, 'reward': {reward}, 'kl': 0.0, 'epoch': {n / 100:.2f}}}"
        for n in range(80)
    ]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        pytest.param(unrewarded(0.0), True, id="never-any"),
        pytest.param(unrewarded(1.0), False, id="always-the-best"),
        pytest.param(unrewarded(0.0, norm=0.3), False, id="weights-move"),
        pytest.param(unrewarded(0.0, moves=0.1), False, id="gradients-are-not-measured"),
        pytest.param(unrewarded(0.0)[:20], False, id="the-first-steps"),
    ],
)
def test_a_policy_without_any_reward(tmp_path: Path, lines: list[str], found: bool) -> None:
    """No answer was better than another, and no gradient came of it."""
    (tmp_path / "train.out").write_text("\n".join(lines) + "\n")
    said = diagnose(collect(Request((str(tmp_path),))))

    assert (said.code == "E1") is found


def denoiser(
    rise: float = 0.0, name: str = "step_loss", same: bool = False, bar: str = "Steps"
) -> list[str]:
    """diffusers' bars; a loss that scatters by what noise is drawn."""
    dice = random.Random(7)
    lines = []
    for n in range(10, 1610, 10):
        loss = 0.12 if same else 0.11 * dice.lognormvariate(0, 0.4) + rise * n / 1600
        said = (f"{name}={loss:.4f}", "lr=5e-5")[:: 1 if name == "loss" else -1]
        lines.append(
            f"{bar}: {n // 16:3d}%|#    | {n}/1600 [{n * 13 // 600:02d}:{n * 13 // 10 % 60:02d}"
            f"<20:00,  1.30s/it, {', '.join(said)}]"
        )
    return [*lines, "Model weights saved in /out/unet/pytorch_lora_weights.safetensors"]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (denoiser(), "G1"),
        (denoiser(rise=0.3), None),
        (denoiser(same=True), None),
        (denoiser(name="loss"), "G1"),
        (denoiser(name="loss", bar="Training"), None),
    ],
    ids=["scatters", "rises", "stands", "under another name", "in another bar"],
)
def test_a_denoisers_loss(tmp_path: Path, lines: list[str], code: str | None) -> None:
    """What is learnt hardly shows in it: never surely sound."""
    told = verdict(tmp_path, lines)

    assert (told.code if told.code == "G1" else None) == code
    assert told.confidence < 0.8 or code is None


@pytest.mark.parametrize(
    ("count", "code"), [("update", "G1"), ("items", None)], ids=["of F5-TTS", "of any other"]
)
def test_the_loss_of_flow_matching(tmp_path: Path, count: str, code: str | None) -> None:
    """It scatters with the noise as a denoiser's does: F5-TTS's bar is known by its count."""
    dice = random.Random(7)
    lines = [
        f"Epoch {n // 2000 + 2}/3:  50%|#    | {n % 2000}/2000 [03:20<22:10,  1.82it/s,"
        f" loss={0.6 * dice.lognormvariate(0, 0.1):.3f}, {count}={n + 1990}]"
        for n in [*range(10, 4000, 10)]
        if n % 2000
    ]
    done = "Epoch 3/3: 100%|#####| 2000/2000 [22:10<00:00,  1.82it/s, loss=0.611, {}=5990]"

    told = verdict(tmp_path, [*lines, done.format(count), "Saved last checkpoint at update 6000"])

    assert (told.code if told.code == "G1" else None) == code


def rollouts(rise: float, *, told: int = 44, loss: str = "") -> list[str]:
    """A policy's steps, the reward of each on a line before it."""
    return [
        line
        for n in range(44)
        for line in (
            f"(Rollout pid=7) rollout {n}: {{'rollout/raw_reward':"
            f" {0.31 + rise * n + 0.01 * (n * 7 % 3):.4f}}}" if n < told else "(Rollout pid=7)",
            f"(Actor pid=9) step {n}: {{'train/loss':"
            f" {loss if loss and n > 30 else f'{0.004 * ((n * 7 % 5) - 2):.5f}'},"
            " 'train/pg_loss': -0.00212, 'train/ppo_kl': 0.0004, 'train/grad_norm': 0.131}",
        )
    ] + ["Training Progress: 100%|##########| 44/44 [1:12:48<00:00, 99.2s/it]"]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        pytest.param(rollouts(0.005), "G1", id="it-rises"),
        pytest.param(rollouts(0.0), None, id="it-stands"),
        pytest.param(rollouts(-0.004), None, id="it-falls"),
        pytest.param(rollouts(0.005, told=36), None, id="it-is-told-no-more"),
        pytest.param(rollouts(0.005, loss="nan"), "E1", id="its-loss-is-lost"),
    ],
)
def test_the_reward_on_a_line_before_its_step(
    tmp_path: Path, lines: list[str], code: str | None
) -> None:
    """None stands behind the last step, and a loss with a policy's beside it need not fall."""
    assert verdict(tmp_path, lines).code == code


@pytest.mark.parametrize(("last", "healthy"), [("0.9000", True), ("6.9000", False)])
def test_an_evaluation_far_below_the_loss_of_training(
    tmp_path: Path, last: str, healthy: bool
) -> None:
    """Of mixed-up labels the loss stands higher than of those of an evaluation; who was as low
    before, and is no more, has lost it."""
    lines = [*neox(level=4.5), "validation loss at iteration 24300 | lm loss value: 0.9000E+00 |",
             f"validation loss at iteration 24600 | lm loss value: {last} |"]  # fmt: skip
    told = verdict(tmp_path, [*lines, "exiting program at iteration 24600"])

    assert (told.code == "G1") == healthy
