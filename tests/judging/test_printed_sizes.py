"""What a step works on, as loops print it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.printed_sizes import printed_balance, printed_sizes, sized_track


@pytest.mark.parametrize(
    ("line", "name", "values"),
    [
        (lambda n, size: f"step {n}/400 seq {size} loss 3.1 400 ms/step", "the seq", {512, 1024}),
        (lambda n, size: f"step:{n} - global_seqlen/mean:{size + n % 7}.5 - actor/pg_loss:0.1"
         " - perf/time_per_step:58.7", "the global seqlen/mean", None),
        (lambda n, size: f"step {n} loss 2.1 response_length/mean {size + n % 5} step_time 2.0s",
         "the response length/mean", None),
        (lambda n, size: f"epoch 0 step {n}/400 loss 0.93 avg_frames {size + n % 40} batch 16",
         "the avg frames", None),
        (lambda n, size: f"{{'loss': 1.2, 'tokens_per_sample': {size + n % 30}.4, 'epoch': 0.1}}",
         "the tokens per sample", None),
        (lambda n, size: f"step={n} loss=1.93 tokens/sample={size + n % 30}.4 time/step=0.841",
         "the tokens/sample", None),
        (lambda n, size: f"step={n} loss=1.93 max_token_len={size} tokens/s=130508",
         "the max token len", {512, 1024}),
        (lambda n, size: f"step={n} loss=2.91 step_time=0.92 max_len={size} tok/s=357508",
         "the max len", {512, 1024}),
        (lambda n, size: f"iter {n} rollout {size // 512} loss 0.114 mem 38.2G 1.118 s/iter",
         "the rollout", {1, 2}),
        (lambda n, size: f"step {n} loss 0.2 autoregressive_steps={size // 512} 1.1 s/it",
         "the autoregressive steps", {1, 2}),
        (lambda n, size: f" iteration {n}/ 400 | consumed samples: {512 * n} | consumed tokens:"
         f" {512 * (512 * min(n, 100) + 1024 * max(n - 100, 0))} | elapsed time per iteration"
         f" (ms): 900.0 | lm loss: 3.0 |", "the tokens of a sample", {512, 1024}),
    ],
)  # fmt: skip
def test_sizes_of_several_words(
    tmp_path: Path, line: Callable[[int, int], str], name: str, values: set[int] | None
) -> None:
    rows = [line(n, 512 if n <= 100 else 1024) for n in range(1, 201)]
    (tmp_path / "train.log").write_text("\n".join(rows) + "\n")
    facts = collect(Request((str(tmp_path),)))
    track = facts.main_track(0)

    assert track is not None
    found = {said: set(read) for said, _, read in printed_sizes(facts, track)}
    assert name in found
    assert values is None or found[name] == values


@pytest.mark.parametrize("said", ["rollout {}.5", "rollout {}s", "rollout: {} ms", "rollout {}%"])
def test_what_a_rollout_took_is_no_size(tmp_path: Path, said: str) -> None:
    rows = [f"step {n}/400 loss 2.1 {said.format(1 + n // 100)} 2.0 s/it" for n in range(1, 201)]
    (tmp_path / "train.log").write_text("\n".join(rows) + "\n")
    facts = collect(Request((str(tmp_path),)))
    track = facts.main_track(0)

    assert track is not None
    assert printed_sizes(facts, track) == []


def test_a_size_on_another_line_of_the_step(tmp_path: Path) -> None:
    """Megatron-DeepSpeed prints three lines of a step; the length stands on the last of them."""
    rows = [
        text
        for n in range(1, 401)
        for text in (
            f"steps: {n} loss: {3 - n / 900:.4f} iter time (s): {2 if n <= 200 else 4:.3f}"
            f" samples/sec: {200 if n <= 200 else 100:.3f}",
            f" iteration {n:8d}/ 4000 | consumed samples: {512 * n:12d} | elapsed time per"
            f" iteration (ms): {2000.0 if n <= 200 else 4000.0} | lm loss: {3 - n / 900:.6E} |"
            f" actual seqlen: {1024 if n <= 200 else 2048:5d} | number of nan iterations: 0 |",
        )
    ]
    (tmp_path / "train.log").write_text("\n".join(rows) + "\n")
    facts = collect(Request((str(tmp_path),)))
    (verdict, track) = diagnose(facts), facts.main_track(0)

    assert track is not None
    assert printed_sizes(facts, track) == []
    assert [name for name, *_ in printed_sizes(facts, sized_track(facts, track))] == ["the seqlen"]
    assert verdict.code == "D6"


def test_a_count_that_goes_up_is_no_size(tmp_path: Path) -> None:
    rows = [f"step {n} seq {n} loss 2.1 step_time 2.0s" for n in range(1, 201)]
    (tmp_path / "train.log").write_text("\n".join(rows) + "\n")
    facts = collect(Request((str(tmp_path),)))
    track = facts.main_track(0)

    assert track is not None
    assert printed_sizes(facts, track) == []


@pytest.mark.parametrize(
    ("said", "values"),
    [
        ("expert load max/mean: {:.2f}", {1.18, 1.96}),
        ("moe/load_imbalance={:.2f}", {1.18, 1.96}),
        ("max_vio: {:.2f}", {1.18, 1.96}),
        ("'router_load_max/mean': {:.2f}", {1.18, 1.96}),
        ("aux_loss: {:.2f}", None),
        ("load: {:.2f}", None),
        ("expert parallel size {:.2f}", None),
    ],
)
def test_how_evenly_experts_share_the_work(
    tmp_path: Path, said: str, values: set[float] | None
) -> None:
    """Words of routers; another loss beside the main one, or the load of a host, is none."""
    rows = [
        f"step {n}/400 loss 3.1 {said.format(1.18 if n <= 100 else 1.96)} 400 ms/step"
        for n in range(1, 201)
    ]
    (tmp_path / "train.log").write_text("\n".join(rows) + "\n")
    facts = collect(Request((str(tmp_path),)))
    track = facts.main_track(0)
    assert track is not None

    found = printed_balance(facts, track)

    assert (None if found is None else set(found[1])) == values


@pytest.mark.parametrize("rate", ["tokens_per_sec", "tokens_per_s", "tokens_per_gpu_sec"])
def test_a_rate_is_no_size(tmp_path: Path, rate: str) -> None:
    rows = [f"step {n}/400 loss 2.1 {rate}: {90_000 if n < 100 else 50_000}" for n in range(200)]
    (tmp_path / "train.log").write_text("\n".join(rows) + "\n")
    facts = collect(Request((str(tmp_path),)))
    track = facts.main_track(0)

    assert track is not None
    assert printed_sizes(facts, track) == []


@pytest.mark.parametrize("bars", [1, 2, 3, 4, 5, 9])
def test_a_size_in_dicts_between_redrawn_bars(tmp_path: Path, bars: int) -> None:
    """The bar gives many points more, so that its lines alone would be read anew."""
    rows = ["***** Running training *****", "  Total optimization steps = 9000"]
    for n in range(300):
        steps = range(10 * n + 1, 10 * n + 1 + bars)
        drawn = (f"  3%|▎         | {s}/9000 [{s // 60:02d}:{s % 60:02d}<1:00:00,  1.00s/it]"
                 for s in steps)  # fmt: skip
        rows.append("\r" + "\r".join(drawn))
        rows.append(f"{{'loss': 1.2, 'max_seq_len': {512 if n < 150 else 1024}, 'epoch': 0.1}}")
    (tmp_path / "train.log").write_text("\n".join(rows) + "\n")
    facts = collect(Request((str(tmp_path),)))
    track = facts.main_track(0)

    assert track is not None
    assert [(name, set(read)) for name, _, read in printed_sizes(facts, track)] == [
        ("the max seq len", {512, 1024})
    ]
