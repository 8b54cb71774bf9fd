"""A trainer that PaddlePaddle's launcher saw end, with the end of its log printed below."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

SAID = (
    "LAUNCH INFO 2026-03-09 23:58:52,611 Pod failed\n"
    "LAUNCH ERROR 2026-03-09 23:58:52,617 Container failed !!!\n"
    "Container rank 1 status failed cmd ['python', '-u', 'train.py'] code -9 log"
    " log/workerlog.1 \n"
)
TAIL = "".join(
    f"[2026/03/09 23:5{n}:40] ppocr INFO: epoch: [2/90], global_step: {900 + 10 * n}, lr: 0.001,"
    f" loss: {4 - n / 10:.6f}, avg_reader_cost: 0.001 s, avg_batch_cost: 0.41 s,"
    " avg_samples: 96.0, ips: 230.1 samples/s, eta: 1:14:50\n"
    for n in range(1, 8)
)
LEFT = "LAUNCH INFO 2026-03-09 23:59:01,118 Exit code {}\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (SAID + TAIL + LEFT.format(-9), "A2"),
        (SAID + TAIL, None),
        (LEFT.format(-9) + SAID + TAIL, None),
        (SAID + TAIL + LEFT.format(0), None),
    ],
    ids=["it left", "it may have begun again", "it had left before", "it left well"],
)
def test_steps_below_a_failed_trainer(tmp_path: Path, text: str, code: str | None) -> None:
    (tmp_path / "train.log").write_text(text)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    assert code is None or [place.rank for place in verdict.culprits] == [1]
