"""Loops that tell their waits by what their steps took, or by a profiler's line alone; and a
silent GPU beside a log that dates its head alone."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
BEHIND = (
    "{} | WARNING | fairseq.data.iterators | Data loading buffer is empty or nearly empty. This"
    " may indicate a data loading bottleneck, and increasing the number of workers may help.\n"
)


def judged(tmp_path: Path, **files: str) -> Verdict:
    folder = tmp_path / "run"
    folder.mkdir()
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return diagnose(collect(Request((str(folder),))))


def fairseq(train_wall: int, warnings: int, points: int = 4) -> str:
    lines = []
    for n in range(1, points + 1):
        at = BEGAN + timedelta(seconds=380 * n)
        if n <= warnings:
            lines.append(BEHIND.format(f"{at - timedelta(seconds=90):%Y-%m-%d %H:%M:%S}"))
        lines.append(
            f"{at:%Y-%m-%d %H:%M:%S} | INFO | train_inner | epoch 001:    {n}00 / 38712"
            f" loss={14 - n}.02, ppl=1518.4, wps=9810, ups=0.26, wpb=38110, bsz=1504,"
            f" num_updates={n}00, lr=1.25e-05, gnorm=3.4, train_wall={train_wall}, wall={n}380\n"
        )
    return "".join(lines)


@pytest.mark.parametrize(
    ("train_wall", "warnings", "points", "named"),
    [
        pytest.param(61, 3, 4, True, id="a sixth of the time"),
        pytest.param(300, 3, 4, False, id="most of the time"),
        pytest.param(61, 1, 4, False, id="one warning, as an epoch begins"),
        pytest.param(61, 0, 4, False, id="no warning: it may save"),
        pytest.param(61, 2, 1, False, id="one line"),
        pytest.param(9000, 3, 4, False, id="in another unit"),
    ],
)
def test_steps_that_take_a_part_of_the_time(
    tmp_path: Path, train_wall: int, warnings: int, points: int, named: bool
) -> None:
    """While the loader says that it fell behind."""
    found = judged(tmp_path, train_log=fairseq(train_wall, warnings, points))

    assert (found.code == "D1") == named
    assert found.confidence < 0.8 or not named


TABLE = "{:<56}{:>14}  {:>12}  {:>12}  {:>12}  {:>12}\n"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter._..."


@pytest.mark.parametrize(
    ("part", "seconds", "named"),
    [("91.52%", "64.730s", True), ("12.10%", "64.730s", False), ("91.52%", "2.730s", False)],
    ids=["most of it", "a tenth of it", "of seconds"],
)
def test_a_profilers_line_whose_total_is_cut_off(
    tmp_path: Path, part: str, seconds: str, named: bool
) -> None:
    """Its share stands on the line."""
    text = TABLE.format("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "# of Calls")
    text += TABLE.format(LOADER, part, seconds, part, seconds, "80")
    text += TABLE.format(
        "aten::convolution_backward", "1.60%", "1.132s", "1.99%", "1.408s", "4800"
    )

    assert (judged(tmp_path, prof_log=text).code == "D1") == named


def silent(works_s: int) -> dict[str, str]:
    """A log whose head alone is dated, with steps that take 3,000 s by its bar, and a host of
    which one card works so long and then holds its memory, the other works on."""
    head = f"{BEGAN:%m/%d/%Y %H:%M:%S} - INFO - __main__ - ***** Running training *****\n"
    bars = "".join(
        f"Steps:  {n // 100}%|█         | {n}/10000 [{n // 60:02d}:{n % 60:02d}<3:00:00,"
        f"  1.00s/it, lr=0.0001, step_loss={0.2 - n / 40000:.4f}]\n"
        for n in range(25, 3001, 25)
    )
    lines, end = [], 14_000
    for name, (work, rest) in {
        "DCGM_FI_DEV_GPU_UTIL": (96.0, 0.0),
        "DCGM_FI_DEV_POWER_USAGE": (400.0, 70.0),
        "DCGM_FI_DEV_FB_USED": (46_000.0, 0.0),
    }.items():
        lines.append(f"# TYPE {name} gauge\n")
        for gpu in (0, 1):
            for at in range(-600, end, 30):
                value = work if gpu == 1 or 0 <= at < works_s else rest
                if name.endswith("USED") and at >= 0:
                    value = work
                value += (at // 30 % 7) * 0.1 if value > 1 else 0.0
                stamp = int((BEGAN + timedelta(seconds=at)).timestamp() * 1000)
                lines.append(f'{name}{{Hostname="n1",gpu="{gpu}"}} {value} {stamp}\n')
    return {"train_log": head + bars, "metrics_prom": "".join(lines)}


@pytest.mark.parametrize(("works_s", "named"), [(3030, True), (8000, False)])
def test_a_gpu_that_worked_as_long_as_the_steps_say(
    tmp_path: Path, works_s: int, named: bool
) -> None:
    """And holds its memory on: the log's last dated line stands above all of them."""
    found = judged(tmp_path, **silent(works_s))

    assert (found.code == "C3") == named
    if named:
        assert [(place.host, place.gpu) for place in found.culprits] == [("n1", "0")]
        assert found.confidence < 0.8
