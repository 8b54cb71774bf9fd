"""A run of no record whose log stops, and whose GPUs wait for one to the end of what was read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.pace import pace
from flatline.model import Verdict

BEGAN = 1772611200
STEPS = 60
WAITS, WORKS, IDLES = 180, 410, 75


def log(last: int = STEPS) -> str:
    """A step every 20 s, the numbers of which stand on lines of their own."""
    return "".join(
        f"{datetime.fromtimestamp(BEGAN + 20 * n, UTC):%Y-%m-%dT%H:%M:%S}.{part}Z {text}\n"
        for n in range(1, last + 1)
        for part, text in (
            ("100000", f"[batch={5 * n}/9000]:"),
            ("100004", f"\t Train loss/train/total: {5 - n / 40:.4f}"),
            ("100008", f"\t Train l2_norm/grad/global: {1 + n % 3 / 9:.4f}"),
            ("100012", f"\t Train throughput/batches_per_sec: {0.25 + n % 2 / 100:.4f}"),
            ("100016", f"\t Train time/train: {n / 180:.4f}"),
        )
    )


def judged(
    folder: Path, after_s: int, then: int, odd: Mapping[tuple[str, int], int], tail: str = ""
) -> Verdict:
    """Of two hosts of four GPUs, which draw `then` watts for so long after the last step, but for
    the `odd` ones."""
    heads = "using world size: 8, data-parallel size: 8\n"
    (folder / "master-0.log").write_text(heads + log() + tail)
    ends = BEGAN + 20 * STEPS
    (folder / "metrics.prom").write_text("\n".join(
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="{gpu}",Hostname="{host}"}} {watts + gpu} {at}000'
        for host in ("n1", "n2") for gpu in range(4)
        for at in range(BEGAN - 120, ends + after_s, 30)
        for watts in (WORKS if at <= ends else odd.get((host, gpu), then),)
    ) + "\n")  # fmt: skip
    return diagnose(collect(Request((str(folder),))))


def test_one_that_idles_while_the_others_wait(tmp_path: Path) -> None:
    verdict = judged(tmp_path, 1500, WAITS, {("n2", 1): IDLES})

    assert verdict.code == "C2"
    assert verdict.confidence < 0.8
    assert [(place.host, place.gpu) for place in verdict.culprits] == [("n2", "1")]
    assert any("copy from before" in doubt for doubt in verdict.cannot_decide)


@pytest.mark.parametrize(
    ("after_s", "then", "odd", "tail"),
    [
        (600, WAITS, {("n2", 1): IDLES}, ""),
        (1500, WORKS, {("n2", 1): IDLES}, ""),
        (1500, WAITS, {}, ""),
        (1500, IDLES, {}, ""),
        (1500, WAITS, {("n2", n): IDLES for n in range(4)}, ""),
        (1500, WAITS, {("n2", 1): IDLES}, "Training completed\n"),
    ],
    ids=["a short wait", "the others work on", "none idles", "all idle", "half of them idle",
         "it said that it was done"],
)  # fmt: skip
def test_what_may_be_something_else(
    tmp_path: Path, after_s: int, then: int, odd: dict[tuple[str, int], int], tail: str
) -> None:
    assert judged(tmp_path, after_s, then, odd, tail).code != "C2"


def test_how_far_steps_are_apart_that_are_told_of_in_several_lines(tmp_path: Path) -> None:
    (tmp_path / "master-0.log").write_text(log())
    seen = pace(collect(Request((str(tmp_path),))))

    assert seen is not None
    assert seen.interval_s == pytest.approx(20)
