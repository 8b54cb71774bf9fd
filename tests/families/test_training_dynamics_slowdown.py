"""The work of a step that grew: what is quoted of it, and what is advised."""

from __future__ import annotations

import gzip
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.families.training_dynamics_slowdown import (
    _SAMPLES,
    _TOKENS,
    _fewer,
    _Move,
    _unlike,
)
from flatline.judging.left_level import left_level
from flatline.judging.printed_sizes import _BALANCE
from flatline.judging.throughput import Course, Slow
from flatline.model import LogCite, Verdict

SLOW_MS = 1_772_619_000_000
EXPERTS = Path(__file__).parents[1] / "scenarios" / "experts_out_of_balance_as_pace_falls" / "run"
LONGER = Path(__file__).parents[1] / "scenarios" / "sequences_longer_as_pace_falls" / "run"


def test_the_line_right_before_the_change_is_quoted() -> None:
    """Step 1190 stands at the old size and 1200 at the new one; nothing lies between them."""
    verdict = diagnose(collect(Request((str(LONGER),))))
    before, after = verdict.shows[0].cites[:2]

    assert isinstance(before, LogCite)
    assert isinstance(after, LogCite)
    assert (verdict.code, verdict.fault_class) == ("D6", "size")
    assert ("step 1190/" in before.text, "step 1200/" in after.text) == (True, True)
    assert after.line == before.line + 1


def test_steps_of_another_size_are_compared_at_the_same_size() -> None:
    """Tokens a second as printed may be reckoned by the size that was set, not by the real one."""
    verdict = diagnose(collect(Request((str(LONGER),))))

    assert "same size" in verdict.actions[0].text
    assert "tokens a second" not in verdict.actions[0].text


@pytest.mark.parametrize(
    ("size", "took_ms", "code"),
    [
        ("seq length: {n}", 6800.0, "D6"),
        ("seq length: {n}", 6000.0, "D6"),
        ("global batch size: {n}", 6000.0, "G1"),
        ("global batch size: {n}", 6800.0, "D6"),
    ],
)
def test_work_a_second_that_holds_hides_no_longer_steps(
    tmp_path: Path, size: str, took_ms: float, code: str
) -> None:
    """TFLOP/s count the longer sequence as work; batches that grow are meant to, unless steps grow
    by more."""
    at, lines = datetime(2026, 3, 27, 8, tzinfo=UTC), []
    for step in range(5, 605, 5):
        long = step > 300
        took = took_ms if long else 4000.0 + step % 7
        at += timedelta(milliseconds=5 * took)
        lines.append(
            f" [{at:%Y-%m-%d %H:%M:%S}] iteration {step:8d}/     600 | elapsed time per iteration"
            f" (ms): {took:.1f} | throughput per GPU (TFLOP/s/GPU): {390 + step % 3}.0 |"
            f" {size.format(n=12288 if long else 8192)} | lm loss: {2 + 40 / step:.6E} |"
        )
    lines.append(f"[after training is done] datetime: {at:%Y-%m-%d %H:%M:%S}")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def rows(folder: Path, *, length: float, took_s: float, more: str = "") -> Verdict:
    """600 steps in rows of JSON, of 2,048 tokens a sequence and from step 301 on of another mean;
    `more` may count the tokens."""
    at, lines = datetime(2026, 6, 2, 9, tzinfo=UTC), []
    for step in range(5, 605, 5):
        long = step > 300
        took, mean = (took_s, length) if long else (3.0, 2048.0)
        mean, took = mean + step % 11 - 5.5, took + 0.01 * (step % 3)
        at += timedelta(seconds=5 * took)
        said = {"time": f"{at:%Y-%m-%dT%H:%M:%S}Z", "step": step, "loss": 2 + 40 / step,
                "avg_seq_len": mean, "step_time_s": took}  # fmt: skip
        lines.append(json.dumps({**said, **({more: round(256 * mean / took)} if more else {})}))
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


def test_a_mean_length_in_rows_of_json(tmp_path: Path) -> None:
    """With a fraction, as means have."""
    verdict = rows(tmp_path, length=3600.0, took_s=5.1)

    assert (verdict.code, verdict.fault_class, verdict.onset_step) == ("D6", "size", 305)
    assert "the avg seq len" in verdict.headline


@pytest.mark.parametrize(
    ("length", "took_s"), [(2700.0, 9.0), (1100.0, 4.2), (2048.0, 4.2)],
    ids=["a third more and three times as long", "shorter", "as long as before"],
)  # fmt: skip
def test_lengths_that_do_not_explain_the_pace(
    tmp_path: Path, length: float, took_s: float
) -> None:
    assert rows(tmp_path, length=length, took_s=took_s).code != "D6"


def test_tokens_a_second_that_hold_are_no_loss(tmp_path: Path) -> None:
    """Twice the length in twice the time: as much is learnt from."""
    verdict = rows(tmp_path, length=4096.0, took_s=6.0, more="tokens_per_sec")

    assert verdict.code is None
    assert [one.role for one in verdict.findings if one.finding.code == "D6"] == ["warning"]


@pytest.mark.parametrize(
    ("state", "took_s", "length", "code"),
    [("RUNNING", 6.0, 4096.0, "D6"), ("TIMEOUT", 6.0, 4096.0, "D6"),
     ("RUNNING", 3.5, 2390.0, "G1"), ("COMPLETED", 6.0, 4096.0, "G1")],
    ids=["still going", "at its limit", "by a sixth", "done"],
)  # fmt: skip
def test_a_plan_in_steps_is_late_though_tokens_hold(
    tmp_path: Path, state: str, took_s: float, length: float, code: str
) -> None:
    """Said with little confidence: as much is learnt from, and one that is done lost nothing."""
    last_s = 300 * 3 + 300 * took_s
    ended = datetime(2026, 6, 2, 9, tzinfo=UTC) + timedelta(seconds=last_s + 20)
    elapsed = str(timedelta(seconds=int(last_s + 80))).zfill(8)
    (tmp_path / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|Elapsed\n3|"
        f"{state}|0:0|2026-06-02T08:59:00|"
        f"{'Unknown' if state == 'RUNNING' else f'{ended:%FT%T}'}|{elapsed}\n"
    )
    verdict = rows(tmp_path, length=length, took_s=took_s, more="tokens_per_sec")

    assert verdict.code == code
    assert verdict.confidence < 0.8
    assert code == "G1" or "held" in verdict.headline


@pytest.mark.parametrize(("longer_from", "code"), [(15, "D6"), (20, None), (10, None)])
def test_few_long_steps(tmp_path: Path, longer_from: int, code: str | None) -> None:
    """30 of them, of reinforcement learning, slow from the fifteenth on: most of the time is slow,
    but the lengths move at that very step."""
    at, lines = datetime(2026, 6, 2, 9, tzinfo=UTC), []
    for step in range(1, 31):
        took = (240 if step >= 15 else 62) + 0.5 * (step % 3)
        at += timedelta(seconds=took)
        length = (5900 if step >= longer_from else 1150) + 7 * (step % 4)
        lines.append(
            f"{at:%Y-%m-%d %H:%M:%S} step:{step} - actor/pg_loss:0.0{step} - critic/rewards/mean:"
            f"0.{300 + 5 * step} - response_length/mean:{length} - timing_s/step:{took:.3f}"
        )
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


@pytest.mark.parametrize("rate", ["tok/s {}", "tokens_per_second: {:.1f}", "{:,} tokens/s"])
@pytest.mark.parametrize(("then", "code"), [(801067, "D6"), (1880000, None)])
def test_fewer_tokens_beside_flops_that_hold(
    tmp_path: Path, rate: str, then: int, code: str | None
) -> None:
    """FLOPs count the attention of longer sequences as work done; the tokens are what it learns
    from."""
    at, lines = datetime(2026, 3, 27, 8, tzinfo=UTC), []
    for step in range(10, 1210, 10):
        long = step > 600
        took = (5.2 if long else 2.2) + step % 7 / 1000
        at += timedelta(seconds=10 * took)
        said = rate.format((then if long else 1906500) + step % 11)
        lines.append(
            f"{at:%Y-%m-%d %H:%M:%S} [INFO] step {step}/4000 loss {2 + 40 / step:.4f} seq_len"
            f" {16384 if long else 4096} step_time {took:.3f}s tflops(hw) {438 + step % 3} {said}"
        )
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


@pytest.mark.parametrize(
    ("before", "after", "fewer"),
    [
        ("tok/s 1906500", "tok/s 801067", True),
        ("tok/s 1906500", "tok/s 1880000", False),
        ("tokens/s: 950k", "tokens/s: 1.1M", False),
        ("950k tok/s", "1.1M tok/s", False),
        ("tok/s 1906500", "loss 2.1", False),
    ],
)
def test_tokens_are_fewer_by_plain_numbers_alone(before: str, after: str, fewer: bool) -> None:
    first, last = (LogCite("train.log", n, f"step {n} {t}") for n, t in ((0, before), (1, after)))

    assert _fewer(_TOKENS, move(first, last)) is fewer


def move(first: LogCite, last: LogCite) -> _Move:
    return _Move("the seq len", 0.0, 0.01, first, last, (4096.0, 16384.0))


@pytest.mark.parametrize(
    ("before", "after", "fewer"),
    [
        ("docs/s 212.0", "docs/s 71.3", True),
        ("samples_per_second: 1,024", "samples_per_second: 256", True),
        ("imgs/sec=40", "imgs/sec=39.9", False),
        ("sequences per s: 40", "loss 2.1", False),
        ("sampled/s: 40", "sampled/s: 20", False),
    ],
)
def test_samples_are_fewer(before: str, after: str, fewer: bool) -> None:
    first, last = (LogCite("train.log", n, f"step {n} {t}") for n, t in ((0, before), (1, after)))

    assert _fewer(_SAMPLES, move(first, last)) is fewer


@pytest.mark.parametrize(("docs", "code"), [(72, "D6"), (211, None)])
def test_fewer_documents_beside_tokens_that_hold(
    tmp_path: Path, docs: int, code: str | None
) -> None:
    """As many tokens a second are learnt from, but what was planned in documents is late."""
    at, lines = datetime(2026, 5, 4, 8, tzinfo=UTC), []
    for step in range(10, 1210, 10):
        long = step > 600
        took = (6.4 if long else 2.2) + step % 7 / 1000
        at += timedelta(seconds=10 * took)
        lines.append(
            f"{at:%Y-%m-%d %H:%M:%S} step {step}/4000 loss {2 + 40 / step:.4f} seqlen mean"
            f" {5950 if long else 2050} step_time {took:.3f}s tok/s {881000 + step % 11}"
            f" docs/s {docs if long else 212}.{step % 9}"
        )
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


@pytest.mark.parametrize(("then", "named"), [(1.96, True), (1.18, False)])
def test_what_a_router_prints_tells_of_its_balance(
    tmp_path: Path, then: float, named: bool
) -> None:
    """Beside system signals that hold; the balance loss itself was not recorded."""
    lines: list[str] = []
    for line in (EXPERTS / "job.log").read_text().splitlines():
        step = re.search(r"completed step: (\d+),", line)
        load = then if step and int(step[1]) >= 252 else 1.18
        lines.append(f"{line}, expert load max/mean: {load + len(lines) % 3 / 100:.2f}")
    (tmp_path / "job.log").write_text("\n".join(lines) + "\n")
    read = gzip.decompress((EXPERTS / "metrics.prom.gz").read_bytes()).decode().splitlines()
    kept = [line for line in read if "moe_lb_loss" not in line]
    (tmp_path / "metrics.prom").write_text("\n".join(kept) + "\n")

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code == "D6") is named
    assert not named or "balance of the experts" in verdict.headline


@pytest.mark.parametrize(
    ("name", "told"),
    [("expert load max/mean: ", True), ("max_expert_load=", True), ("moe loss: ", True),
     ("aux_balance_loss=", True), ("load_balancing_loss: ", True), ("router/balance_loss=", True),
     ("aux_loss=", False), ("gpu load: ", False)],
)  # fmt: skip
def test_what_routers_call_it(name: str, told: bool) -> None:
    assert (_BALANCE.search(f"step=4 loss=2.1 {name}1.25 lr=2e-4") is not None) is told


@pytest.mark.parametrize(
    ("hosts", "code"),
    [(("chi41", "chi42", "chi43", "chi44", "chi45", "chi46"), "D6"), (("chi41",), None)],
    ids=["every GPU draws less", "those of one host do"],
)
def test_power_that_falls_as_the_gpus_wait(
    tmp_path: Path, hosts: tuple[str, ...], code: str | None
) -> None:
    """They wait for the most loaded expert, all of them; where some draw less, that may be why."""
    (tmp_path / "job.log").write_bytes((EXPERTS / "job.log").read_bytes())
    read = gzip.decompress((EXPERTS / "metrics.prom.gz").read_bytes()).decode().splitlines()
    lines = []
    for name, value, at in (line.split() for line in read if not line.startswith("#")):
        own = name.startswith("hw_gpu_power_watts") and any(f'"{host}"' in name for host in hosts)
        less = 0.7 if own and int(at) > SLOW_MS else 1.0
        lines.append(f"{name} {less * float(value)} {at}")
    (tmp_path / "metrics.prom").write_text("\n".join(lines) + "\n")

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def moves(values: list[float]) -> bool:
    """Whether a metric of 100 stretches began to move where throughput did, at the fortieth."""
    slow = Slow(400.0, 1000.0, 0.7, 0.7, (40, 100))
    best = Slow(0.0, 400.0, 1.0, 1.0, (0, 40))
    times = [10.0 * n for n in range(100)]
    paces = [1.0] * 40 + [0.7] * 60
    run = SimpleNamespace(
        best=best,
        slow=(slow,),
        phases=(best, slow),
        pace=SimpleNamespace(times=times, values=paces, interval_s=10.0),
    )
    return (
        left_level(cast(Course, run), list(zip(times, values, strict=True)), lambda _: 40.0, 1)
        is not None
    )


@pytest.mark.parametrize(
    ("values", "moved"),
    [
        pytest.param([1.0] * 40 + [1.9] * 60, True, id="at-once"),
        pytest.param([1.0] * 40 + [1 + 0.015 * n for n in range(60)], True, id="by-and-by"),
        pytest.param([1.0] * 40 + [1 + 0.002 * n for n in range(60)], False, id="by-a-tenth"),
        pytest.param([1.0] * 70 + [1.9] * 30, False, id="much-later"),
        pytest.param([1 + 0.015 * n for n in range(100)], False, id="from-the-start"),
        pytest.param(
            [2.2 - 0.2 * n for n in range(6)] + [1.0] * 34 + [1.9] * 60,
            True,
            id="once-it-had-settled",
        ),
        pytest.param([2.2 - 0.2 * n for n in range(6)] + [1.0] * 94, False, id="settles-alone"),
        pytest.param([1.0] * 9 + [1.9] * 5 + [1.0] * 26 + [1.9] * 60, False, id="again"),
    ],
)
def test_a_metric_that_moves_by_and_by(values: list[float], moved: bool) -> None:
    """It begins to leave its level where the pace does, and comes a quarter away from it."""
    scattered = [value + 0.002 * (n * 7 % 5 - 2) for n, value in enumerate(values)]
    assert moves(scattered) is moved


def told(folder: Path, line: str, at_step: int, slow_from: int, took_s: float = 4.4) -> Verdict:
    """600 dated steps of 3 s, longer from one on, with a line before another."""
    at, lines = datetime(2026, 6, 2, 9, tzinfo=UTC), []
    for step in range(5, 605, 5):
        took = (took_s if step > slow_from else 3.0) + 0.01 * (step % 3)
        if step == at_step:
            lines.append(f"{at:%Y-%m-%d %H:%M:%S} INFO {line}")
        at += timedelta(seconds=5 * took)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S} INFO step {step}/600 loss {2 + 40 / step:.4f}"
                     f" step_time {took:.2f}s")  # fmt: skip
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


RAISED = "curriculum: seq_len 4096 -> 8192, micro_batch 4 (unchanged)"


@pytest.mark.parametrize(
    "line", [RAISED, "Data stage 2 starts at iteration 305: sequence_length 4096 -> 8192,"
             " global_batch_size 1024 -> 512", "progressive resizing: resolution from 256 to 384"],
)  # fmt: skip
def test_a_size_that_a_line_raises(tmp_path: Path, line: str) -> None:
    """Between the last fast step and the first slow one."""
    verdict = told(tmp_path, line, 305, 300)

    assert (verdict.code, verdict.fault_class, verdict.onset_step) == ("D6", "size", 305)
    assert any(cite.text.endswith(line) for one in verdict.shows for cite in one.cites
               if isinstance(cite, LogCite))  # fmt: skip


@pytest.mark.parametrize(
    ("line", "at_step", "slow_from", "took_s"),
    [
        (RAISED, 150, 300, 4.4),
        (RAISED.replace("4096 -> 8192", "8192 -> 4096"), 305, 300, 4.4),
        (RAISED.replace("4096 -> 8192", "4096 -> 4352"), 305, 300, 4.4),
        ("seq_len 4096, hidden 8192", 305, 300, 4.4),
        ("eval: context_length 4096 -> 8192", 305, 300, 4.4),
        ("vllm rollout seq_len 4096 -> 8192", 305, 300, 4.4),
        ("video resolution 480 -> 720 (source), resized to 256 crop", 305, 300, 4.4),
        (RAISED, 280, 300, 4.4),
    ],
    ids=[
        "long before",
        "made shorter",
        "a little longer",
        "no change",
        "evaluation's",
        "rollout's",
        "the source's",
        "as fast behind it",
    ],
)
def test_near_misses_of_a_size_that_a_line_raises(
    tmp_path: Path, line: str, at_step: int, slow_from: int, took_s: float
) -> None:
    """It costs nothing then, or not as much."""
    assert told(tmp_path, line, at_step, slow_from, took_s).code != "D6"


FALLS = 300
"""The last step before the pace falls."""


def drifted(
    folder: Path, *, jumps: int = FALLS, prompts: int | None = None, length: float = 3600.0
) -> Verdict:
    """600 steps, 4 % longer from step 201 on and far longer from step 301 on; responses, and maybe
    prompts, of another mean length behind a step of their own."""
    at, lines = datetime(2026, 6, 2, 9, tzinfo=UTC), []
    for step in range(2, 602, 2):
        took = (5.1 if step > FALLS else 3.12 if step > 200 else 3.0) + 0.01 * (step % 3)
        mean = (length if step > jumps else 2048.0) + step % 11
        at += timedelta(seconds=2 * took)
        said = {"time": f"{at:%Y-%m-%dT%H:%M:%S}Z", "step": step, "loss": 2 + 40 / step,
                "step_time_s": took, "response_length/mean": mean}  # fmt: skip
        if prompts is not None:
            said["prompt_length/mean"] = (900.0 if step > prompts else 512.0) + step % 7
        lines.append(json.dumps(said))
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("prompts", [None, FALLS])
def test_a_sharp_fall_behind_a_drift(tmp_path: Path, prompts: int | None) -> None:
    """Responses are longer from there on, and the prompts that they answer."""
    verdict = drifted(tmp_path, prompts=prompts)

    assert (verdict.code, verdict.fault_class) == ("D6", "size")
    assert verdict.onset_step == FALLS + 2


@pytest.mark.parametrize(
    ("jumps", "prompts", "length"),
    [
        (200, None, 3600.0),
        (250, None, 3600.0),
        (350, None, 3600.0),
        (FALLS, 100, 3600.0),
        (FALLS, None, 2200.0),
        (FALLS, None, 1200.0),
    ],
    ids=["as it drifted", "between the two", "later", "prompts change at another step",
         "little longer", "shorter"],
)  # fmt: skip
def test_near_misses_of_a_fall_behind_a_drift(
    tmp_path: Path, jumps: int, prompts: int | None, length: float
) -> None:
    """The one does not explain the other, or chance might: of two that change one is met twice as
    often."""
    assert drifted(tmp_path, jumps=jumps, prompts=prompts, length=length).code != "D6"


def sizes(*jumps: int) -> list[tuple[str, list[int], list[float]]]:
    """As many sizes as there are steps at which one of them changes most."""
    return [
        (f"size {n}", [*range(20)], [100.0 + at % 3 + (50.0 if at >= jump else 0.0)
                                     for at in range(20)])
        for n, jump in enumerate(jumps)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("jumps", "tries"), [((), 0), ((9,), 1), ((9, 9, 9), 1), ((9, 12), 2), ((9, 12, 9), 2)]
)
def test_sizes_that_jump_together_are_one_try(jumps: tuple[int, ...], tries: int) -> None:
    """Prompts, their responses and both together change at one step."""
    assert _unlike(sizes(*jumps)) == tries


def test_a_size_that_only_scatters_is_no_try() -> None:
    """It never goes as far as a move, and so meets no fall by chance."""
    scatters = ("prompts", [*range(20)], [100.0 + 7 * (at * 3 % 4) for at in range(20)])

    assert _unlike([*sizes(9), scatters]) == 1
    assert _unlike([scatters]) == 0


@pytest.mark.parametrize(("moves_at", "code"), [(20, "D6"), (25, None), (14, None)])
@pytest.mark.parametrize("prompts", [4, 100])
def test_responses_that_grow_over_some_steps(
    tmp_path: Path, moves_at: int, prompts: int, code: str | None
) -> None:
    """36 steps, longer and longer from the 20th on and then as long; where the prompts change at a
    step of their own, chance may have it so."""
    at, lines = datetime(2026, 6, 2, 9, tzinfo=UTC), []
    for step in range(1, 37):
        took = 80 + 22 * min(max(step - 19, 0), 6) + 0.4 * (step % 3)
        length = 900 + 330 * min(max(step - moves_at + 1, 0), 6) + 9 * (step % 4)
        asked = 210 + 3 * (step % 3) + (prompts if step > 11 else 0)
        at += timedelta(seconds=took)
        lines.append(
            f"{at:%Y-%m-%d %H:%M:%S} step:{step} - actor/pg_loss:0.0{step} - critic/rewards/mean:"
            f"0.{300 + 5 * step} - response_length/mean:{length} - prompt_length/mean:{asked}"
            f" - timing_s/step:{took:.3f}"
        )
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    found = diagnose(collect(Request((str(tmp_path),)))).code

    assert found == (code if prompts == 4 else None)
