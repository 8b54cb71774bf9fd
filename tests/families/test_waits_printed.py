"""D1 by the loop's own count of its waits, where no GPU was measured."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from families.fleet import T0, sample
from flatline.collect import Request, collect
from flatline.diagnose import diagnose


@pytest.mark.parametrize(
    ("waits", "rest", "code"),
    [
        (lambda n: 0.228, 0.002, "D1"),
        (lambda n: 0.128, 0.002, "G1"),  # too short for a loader to have settled
        (lambda n: 0.170, 0.160, "G1"),
        # The first pass fills a cache: a third of the run, and most of its time.
        (lambda n: 3.2 if n <= 14 else 0.001, 0.002, "G1"),
    ],
)
def test_a_run_that_hardly_does_anything_but_wait(
    tmp_path: Path, waits: Callable[[int], float], rest: float, code: str
) -> None:
    """mmengine's lines; the seconds a step waited for data, and those of the rest of it."""
    lines = [
        f"2026/03/01 10:00:{n:02d} - mmengine - INFO - Epoch(train)  [1][{10 * n:>3}/400]"
        f"  lr: 2.0000e-03  eta: 0:00:{40 - n:02d}  time: {rest + waits(n):.4f}"
        f"  data_time: {waits(n):.4f}  loss: {2 / n + 0.5:.4f}\n"
        for n in range(1, 41)
    ]
    (tmp_path / "train.log").write_text("".join(lines))

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def test_the_first_step_of_an_epoch_stands_for_itself(tmp_path: Path) -> None:
    """It is printed alone, and waits for the loaders to start."""
    shown = [(0, 3.7, 4.0), (20, 0.2, 0.6), (600, 0.001, 0.3), (1240, 0.001, 0.26)]
    lines = [
        f"Epoch: [{epoch}]  [{n:>4}/1251]  eta: 0:03:00  lr: 0.0003  loss: {1 / (epoch + 1):.4f}"
        f" (0.7000)  time: {took:.4f}  data: {waited:.4f}  max mem: 7801\n"
        for epoch in range(6)
        for n, waited, took in shown
    ]
    (tmp_path / "train.log").write_text("".join(lines))

    assert diagnose(collect(Request((str(tmp_path),)))).code is None


def by_the_clock(
    tmp_path: Path, waits: Callable[[int], float], rest: Callable[[int], float], each: int = 1
) -> str | None:
    """torchtitan's lines with seconds waited for data added to each, and no step time."""
    at, lines = datetime(2026, 3, 1, 10, tzinfo=UTC), []
    for n in range(1, 201):
        at += timedelta(seconds=each * (waits(n) + rest(n) + 0.03 * (7 * n % 5)))
        lines.append(
            f"[rank0]:[titan] {at:%Y-%m-%d %H:%M:%S},000 - root - INFO - step: {each * n}"
            f"  loss: {4 / n + 1:.4f}  memory: 9.40GiB(12.00%)"
            f"  tps: {9e3 / (waits(n) + rest(n)):.0f}"
            f"  data_loading: {waits(n):.3f}s\n"
        )
    (tmp_path / "train.log").write_text("".join(lines))
    return diagnose(collect(Request((str(tmp_path),)))).code


@pytest.mark.parametrize("each", [1, 10])
def test_waits_that_grow_by_the_clock(tmp_path: Path, each: int) -> None:
    """What a step lost by the clock's whole seconds is what it waits more."""
    code = by_the_clock(tmp_path, lambda n: 2.1 if n > 90 else 0.1, lambda n: 2.6, each)

    assert code == "D1"


@pytest.mark.parametrize(
    ("waits", "rest"),
    [
        (lambda n: 0.1, lambda n: 4.6 if n > 90 else 2.6),
        (lambda n: 0.6 if n > 90 else 0.1, lambda n: 4.1 if n > 90 else 2.6),
        (lambda n: 2.1 if n % 40 == 0 else 0.1, lambda n: 4.6 if n > 90 else 2.6),
    ],
    ids=["no longer", "a little longer", "now and then"],
)
def test_steps_that_take_longer_for_something_else(
    tmp_path: Path, waits: Callable[[int], float], rest: Callable[[int], float]
) -> None:
    """Their waits for data do not account for it."""
    assert by_the_clock(tmp_path, waits, rest) != "D1"


def test_waits_of_most_of_the_time_by_the_clock(tmp_path: Path) -> None:
    """From the first step on; of lines ten steps apart a wait may be the sum of them."""
    assert by_the_clock(tmp_path, lambda n: 9.0, lambda n: 0.9) == "D1"
    assert by_the_clock(tmp_path, lambda n: 9.0, lambda n: 0.9, 10) != "D1"


@pytest.mark.parametrize(
    ("waits", "rest", "each_s", "code"),
    [
        (1.2, 0.4, 400, "D1"),
        (0.2, 1.4, 400, None),
        (1.2, 0.4, 2, None),  # half a minute
    ],
)
def test_waits_of_steps_that_nothing_counts(
    tmp_path: Path, waits: float, rest: float, each_s: int, code: str | None
) -> None:
    """ESPnet's lines of a later epoch alone: how many steps a line stands for is not known."""
    lines = []
    for n in range(12):
        at = datetime(2026, 3, 1, 10, tzinfo=UTC) + timedelta(seconds=n * each_s)
        lines.append(
            f"[g2] {at:%Y-%m-%d %H:%M:%S},006 (trainer:1) INFO: 6epoch:train:{100 * n + 1}-"
            f"{100 * n + 100}batch: iter_time={waits}, forward_time=0.1, loss={9 / (n + 1):.3f},"
            f" optim0_lr0=1.0e-04, train_time={waits + rest:.3f}\n"
        )
    (tmp_path / "train.log").write_text("".join(lines))

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


@pytest.mark.parametrize(("waits", "code"), [(0.64, "D1"), (0.55, None)])
def test_waits_of_more_than_half_of_the_time(
    tmp_path: Path, waits: float, code: str | None
) -> None:
    """Half of it small models on fast devices wait for as well."""
    (tmp_path / "train.log").write_text(
        "".join(
            f"2026/03/01 10:{n:02d}:00 - mmengine - INFO - Epoch(train)  [1][{50 * n:>4}/9000]"
            f"  lr: 2.0000e-03  eta: 3:00:00  time: 1.2000  data_time: {1.2 * waits:.4f}"
            f"  loss: {2 / n + 0.5:.4f}\n"
            for n in range(1, 41)
        )
    )

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def beside(tmp_path: Path, waits: Callable[[int], float]) -> str | None:
    """Lua Torch's lines, whose time begins when the batch is there."""
    (tmp_path / "train.log").write_text(
        "".join(
            f"Epoch: [1][{n}/10000]\t Time {1.9 + 0.01 * (n % 3):.3f} Err {8 / n:.4f} Top1-%: 0.00"
            f" LR 1e-02 DataLoadingTime {waits(n):.3f}\n"
            for n in range(1, 42)
        )
    )
    return diagnose(collect(Request((str(tmp_path),)))).code


@pytest.mark.parametrize(
    ("waits", "code"),
    [
        (lambda n: 22.0 if n % 10 == 1 else 0.05, "D1"),
        (lambda n: 58.0 if n == 1 else 0.05, None),  # the loaders start
        (lambda n: 60.0 if n in (1, 21) else 0.05, None),  # one of them after that
        (lambda n: 6.0 if n % 10 == 1 else 0.05, None),  # a fifth of the time
        (lambda n: 45.0, None),  # milliseconds, for all that the line says
    ],
)
def test_waits_in_bursts_beside_the_time_of_a_step(
    tmp_path: Path, waits: Callable[[int], float], code: str | None
) -> None:
    """Each time that what was fetched ahead is used up."""
    assert beside(tmp_path, waits) == code


@pytest.mark.parametrize(
    ("first", "lines", "waits", "above", "code"),
    [
        (14, 8, lambda n: 30.0 if n in (16, 20) else 0.002, "", "D1"),
        (14, 8, lambda n: 7.0 if n in (16, 20) else 0.002, "", None),  # too little to tell
        (14, 8, lambda n: 70.0 if n == 14 else 0.002, "", None),
        (1, 8, lambda n: 30.0 if n in (1, 3) else 0.002, "", None),  # the loaders start
        (14, 8, lambda n: 30.0 if n in (14, 16) else 0.002, "=> resumes\n" * 9, None),
    ],
)
def test_a_few_lines_from_amid_the_steps(
    tmp_path: Path, first: int, lines: int, waits: Callable[[int], float], above: str, code: str
) -> None:
    """What came before was cut off, so the first of them are no warm-up; a run that resumes
    prints much before its first."""
    rows, waited = [], 7.7 * first
    for n in range(first, first + lines):
        waited += waits(n)
        rows.append(
            f"Epoch: [0][{n}/5005]\tTime {waits(n) + 0.15:.3f} ({waited / (n + 1) + 0.15:.3f})"
            f"\tData {waits(n):.3f} ({waited / (n + 1):.3f})\tLoss {6.9 - n / 1000:.4f} (6.9)\n"
        )
    (tmp_path / "train.log").write_text(above + "".join(rows))
    verdict = diagnose(collect(Request((str(tmp_path),))))
    assert (verdict.code, verdict.confidence < 0.8) == (code, True)


@pytest.mark.parametrize(
    ("waited", "busy", "code"),
    [("74.617s", "4.856s", "D1"), ("21.617s", "4.856s", None), ("74.617s", "71.200s", None),
     ("746.170ms", "4.856s", None)],
)  # fmt: skip
def test_the_table_of_a_profiler(tmp_path: Path, waited: str, busy: str, code: str | None) -> None:
    """torch's; where the GPU was at work all the time the loop waited beside it."""
    took = f"        80.00%       {waited}"
    row = f"{took}{took}     746.170ms           100  \n"
    (tmp_path / "profile.txt").write_text(
        f"enumerate(DataLoader)#_SingleProcessDataLoaderIter._...{row}"
        f"                                           aten::conv2d{row.replace('s ', 'us ')}"
        f"Self CPU time total: 84.408s\nSelf CUDA time total: {busy}\n"
    )

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def clip(
    folder: Path, waits: Callable[[int], float], begins: str = "Start epoch 0\n"
) -> str | None:
    """OpenCLIP's lines, each the mean of ten steps."""
    at = "2023-10-26,08:{:02d}:00 | INFO | "
    lines = [
        at.format(n) + f"Train Epoch: 0 [{1024 * (1 + 10 * n):>8}/10968539 (0%)]"
        f" Data (t): {waits(n):.3f} Batch (t): {waits(n) + 0.4:.3f}, 2608.1/s, 326.0/s/gpu"
        f" LR: 0.000003 Logit Scale: 14.286 Loss: {7 - n / 50:.4f} (6.9546)\n"
        for n in range(12)
    ]
    (folder / "out.log").write_text(at.format(0) + begins + "".join(lines))
    return diagnose(collect(Request((str(folder),)))).code


def test_waits_of_openclip(tmp_path: Path) -> None:
    """Means over ten steps: what the first line of an epoch waits for is its own."""
    assert clip(tmp_path, lambda n: 5.3) == "D1"
    assert clip(tmp_path, lambda n: 27.9 if n == 0 else 0.2) is None


@pytest.mark.parametrize(
    ("burst", "code"), [(31.0, "D1"), (1.2, None)], ids=["most of the time", "hardly any of it"]
)
def test_waits_that_come_in_bursts(tmp_path: Path, burst: float, code: str | None) -> None:
    """Every sixth batch waits: their sum counts, whatever the median batch does."""
    lines, total, waited = [], 0.0, 0.0
    for n in range(40):
        wait = burst if n % 6 == 0 else 0.0
        total, waited = total + wait + 0.58, waited + wait
        lines.append(
            f"Epoch: [0][{n:>4}/1251]\tTime {max(wait, 0.58) + 0.1:6.2f} ({total / (n + 1):6.2f})"
            f"\tData {wait + 0.2 * (wait > 0):6.2f} ({waited / (n + 1):6.2f})"
            f"\tloss {8.3 - n / 100:.3f} (8.320)\n"
        )
    (tmp_path / "train.log").write_text("".join(lines))

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


@pytest.mark.parametrize(
    ("util", "wait", "told"),
    [
        (lambda card, at: 27 + at // 30 % 4, 1.4, True),
        (lambda card, at: 43 + at // 30 % 4, 1.0, True),
        (lambda card, at: 63 + at // 30 % 4, 0.7, False),  # as a small model may
        (lambda card, at: 27 if at < 2400 else 95, 1.4, False),  # some job kept them busy
        (lambda card, at: 95 if card == 3 else 27, 1.4, False),
        (lambda card, at: 0, 1.4, False),  # none was used at all: another host's
    ],
    ids=["never busy", "half busy", "waits for a third", "busy for a while", "one is busy",
         "nothing ran"],
)  # fmt: skip
def test_waits_of_undated_steps_beside_gpus(
    tmp_path: Path, util: Callable[[int, int], float], wait: float, told: bool
) -> None:
    """When the run was is not known, so GPUs tell only where none was ever busy. It ended well:
    of its waits alone, 0.7 of the time, it would only be warned."""
    (tmp_path / "train.log").write_text(
        "".join(
            f"step {n}/80 loss {2 + 4 / n:.4f} step_time 2.00s data_time {wait}{n % 5}s\n"
            for n in range(1, 81)
        )
        + "training finished\n"
    )
    (tmp_path / "metrics.prom").write_text(
        "".join(
            sample("DCGM_FI_DEV_GPU_UTIL", f'gpu="{card}",Hostname="n1"', util(card, at), at)
            + "\n"
            for card in range(4)
            for at in range(0, 3600, 30)
        )
    )
    assert (diagnose(collect(Request((str(tmp_path),)))).code == "D1") is told


@pytest.mark.parametrize(
    ("told", "code"),
    [("Train time/data_wait_s: 6.2", "D1"), ("Train time/data_wait_s: 0.3", None),
     ("Train data/tokens_s: 6.2", None), ("Train time/dataset_size: 6.2", None)],
)  # fmt: skip
def test_composers_waits_stand_on_a_line_of_their_own(
    tmp_path: Path, told: str, code: str | None
) -> None:
    """Beside that of the step's length, under the heading of the step."""
    step = (
        "[batch={n}/9000]:\n\t Train time/batch: {n}\n\t {told}\n\t Train loss/train/total:"
        " {loss:.4f}\n\t Train throughput/batches_per_sec: 0.1250\n"
    )
    text = "".join(step.format(n=n, told=told, loss=9 - n / 40) for n in range(1, 120))
    (tmp_path / "train.log").write_text(text)

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def timers(least: float, most: float) -> str:
    """Megatron's, below a step."""
    return (
        "(min, max) time across ranks (ms):\n"
        "    forward-compute ................................: (2950.10, 2999.90)\n"
        f"    batch-generator ................................: ({least:.2f}, {most:.2f})\n"
        "    optimizer ......................................: (44.10, 45.00)\n"
    )


OF_ONE_RANK = (
    "time (ms) | forward-compute: 2990.00 | batch-generator: 2700.00 | optimizer: 45.00\n"
)


@pytest.mark.parametrize(
    ("below", "busy", "every", "found"),
    [
        (timers(2700, 2810), 31, 1, True),
        (OF_ONE_RANK, 31, 1, True),
        (timers(2700, 2810), 31, 10, True),
        (timers(2700, 2810), 93, 1, False),
        (timers(0.02, 2810), 31, 1, False),
        (timers(900, 960), 31, 1, False),
        (timers(6700, 6810), 31, 1, False),
        ("", 31, 1, False),
    ],
    ids=["all ranks", "one rank", "every tenth step", "the GPUs were busy", "some rank needs none",
         "less of a step", "longer than the step", "no timers"],
)  # fmt: skip
def test_timers_of_megatron_beside_gpus(
    tmp_path: Path, below: str, busy: float, every: int, found: bool
) -> None:
    """On the lines below each step of four seconds, or some of them."""
    lines = []
    for n in range(1, 601):
        at = datetime.fromtimestamp(T0 + 4 * n, UTC)
        lines.append(
            f" [{at:%Y-%m-%d %H:%M:%S}] iteration {n:8}/     600 | consumed samples: {64 * n:12} |"
            f" elapsed time per iteration (ms): {4000 + n % 7}.0 | learning rate: 1.0E-04 |"
            f" global batch size: 64 | lm loss: {3 + 7 / n:.6E} | loss scale: 1.0 |"
            " grad norm: 0.410 |\n" + (below if n % every == 0 else "")
        )
    lines.append(f"[after training is done] datetime: {at:%Y-%m-%d %H:%M:%S}\n")
    (tmp_path / "train.log").write_text("".join(lines))
    rows = (
        sample("DCGM_FI_DEV_GPU_UTIL", f'gpu="{card}",Hostname="n1"', busy + at // 15 % 4, at)
        for card in range(4)
        for at in range(0, 2430, 15)
    )
    (tmp_path / "metrics.prom").write_text("\n".join(rows) + "\n")
    told = diagnose(collect(Request((str(tmp_path),))))

    assert (told.code == "D1") is found
    assert not found or told.confidence >= 0.8


@pytest.mark.parametrize(("wait", "code"), [(2.8, "D1"), (0.3, None)])
def test_a_callbacks_line_below_a_bar(tmp_path: Path, wait: float, code: str | None) -> None:
    """The bar has the steps, and the callback the time that they waited."""
    lines = ["Epoch 0:   0%|          | 0/2000 [00:00<?, ?it/s, v_num=5, train/loss=7.000]"]
    for n in range(1, 301):
        spent = f"{n * 4 // 60:02d}:{n * 4 % 60:02d}"
        bar = f"Epoch 0:  {n // 20:2d}%|#         | {n}/2000 [{spent}<2:00:00"
        lines += [
            f"{bar},  4.00s/it, v_num=5, train/loss={7 - n / 100:.3f}]",
            f"INFO callbacks.speed: step={n} batch_time=4.000s data_time={wait + n % 7 / 50:.3f}s",
        ]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


@pytest.mark.parametrize(("wait", "code"), [(1.9, "D1"), (0.2, None)])
def test_lines_that_a_terminal_broke(tmp_path: Path, wait: float, code: str | None) -> None:
    """Of PaddleOCR: the times of a step stand on the line below it."""
    lines = []
    for n in range(10, 610, 10):
        at = f"{9 + n * 22 // 36000:02d}:{n * 22 // 600 % 60:02d}:{n * 22 // 10 % 60:02d}"
        lines += [
            f"[2025/04/02 {at}] ppocr INFO: epoch: [1/90], global_step: {n}, lr: 0.001000,",
            f" loss: {40 - n / 40:.4f}, avg_reader_cost: {wait + n % 7 / 90:.5f} s,"
            f" avg_batch_cost: 2.2{n % 9}00 s, avg_samples: 64.0, ips: 29.",
            "01 samples/s",
        ]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")

    assert diagnose(collect(Request((str(tmp_path),)))).code == code
