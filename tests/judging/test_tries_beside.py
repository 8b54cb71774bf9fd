"""The same steps of two tries in one log, the later much slower."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

SET = "CUDA_LAUNCH_BLOCKING=1\n"
NCCL = (
    "n1:511:532 [0] NCCL INFO NET/IB : No device found.\n"
    "n1:511:532 [0] NCCL INFO Using network Socket\n"
)
ACROSS = NCCL + "n1:511:532 [7] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/Socket/0\n"


def steps(each_s: float, loss: float = 3.0) -> str:
    return "".join(
        f"step {10 * n}/9000 loss {loss * 0.99**n:.4f} step_time {each_s}s\n" for n in range(1, 61)
    )


def judged(folder: Path, *parts: str) -> Verdict:
    (folder / "train.log").write_text("".join(parts))
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("said", "kind"), [(SET, "launch-blocking"), (ACROSS, "slow-interconnect")]
)
def test_what_was_set_in_between(tmp_path: Path, said: str, kind: str) -> None:
    """Told below 0.8: the try before does not say how it was set."""
    verdict = judged(tmp_path, steps(0.3), "^C\n", said, steps(0.9))

    assert (verdict.code, verdict.fault_class) == ("D2", kind)
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    "parts",
    [
        (steps(0.3), steps(0.9)),  # nothing was set
        (SET, steps(0.3), SET, steps(0.9)),  # it was set before
        (steps(0.3), SET, steps(0.31)),  # it costs nothing
        (steps(0.3), SET, steps(0.9, loss=6.0)),  # another model
        (steps(0.3), NCCL, steps(0.9)),  # on one host
        (ACROSS, steps(0.3), ACROSS, steps(0.9)),
    ],
)
def test_what_explains_nothing(tmp_path: Path, parts: tuple[str, ...]) -> None:
    """Where the try before was so as well, or the steps are not the same."""
    assert judged(tmp_path, *parts).code != "D2"


FABRIC = (
    "n1:411:432 [0] NCCL INFO Using network AWS Libfabric\n"
    "n1:411:432 [0] NCCL INFO Channel 00/0 : 3[3] -> 4[0] [send] via NET/AWS Libfabric/3/GDRDMA\n"
)


@pytest.mark.parametrize(
    ("before", "since", "told"),
    [
        (FABRIC, ACROSS, True),
        (FABRIC, NCCL, False),  # of a single host, where no collective uses it
        (FABRIC, FABRIC, False),
        (FABRIC + ACROSS, ACROSS, False),
    ],
)
def test_a_network_that_both_tries_name(
    tmp_path: Path, before: str, since: str, told: bool
) -> None:
    """Sure where the one names a fabric alone and the other sockets alone."""
    verdict = judged(tmp_path, before, steps(0.3), since, steps(0.9))

    assert (verdict.code == "D2" and verdict.confidence >= 0.8) is told
