"""A completed job whose last printed step is one printing interval short of the plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

HEAD = "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"


def judged(
    folder: Path, last: int = 195, ended: str = "08:17:10", code: str = "COMPLETED|0:0"
) -> Verdict:
    """Steps of 5 s, of which each fifth is printed; the last, 195, at 08:16:15."""
    lines = []
    for step in range(5, last + 1, 5):
        at = 5 * step
        lines.append(
            f"2026-03-04 08:{at // 60:02d}:{at % 60:02d},000 [INFO] iteration: {step} / 200 |"
            f" consumed_tokens: 21M | elapsed_time_per_iteration_ms: 5.0K | lm_loss:"
            f" {10 * 0.99**step:.3f} | grad_norm: 1.1\n"
        )
    (folder / "job.log").write_text("".join(lines))
    (folder / "sacct.psv").write_text(
        f"{HEAD}44|lm|{code}|2026-03-04T08:00:00|2026-03-04T{ended}|1|n1\n"
    )
    return diagnose(collect(Request((str(folder),))))


def test_it_went_on_for_long_enough(tmp_path: Path) -> None:
    verdict = judged(tmp_path)

    assert verdict.code == "G1"
    assert verdict.confidence < 0.8
    assert any("5 are missing up to the plan" in shown.text for shown in verdict.shows)


@pytest.mark.parametrize(
    "changed",
    [{"last": 190}, {"ended": "08:16:25"}, {"code": "FAILED|1:0"}],
    ids=["two intervals", "it ended at once", "it failed"],
)
def test_near_misses(tmp_path: Path, changed: dict[str, str]) -> None:
    assert judged(tmp_path, **changed).code != "G1"  # type: ignore[arg-type]
