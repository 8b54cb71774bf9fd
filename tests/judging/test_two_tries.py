"""D2 by a second try in the same log, which shows what the first one lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

COMMAND = "+ torchrun --nproc_per_node 8 pretrain.py --config c.yaml\n"
SET, UNSET = "+ export CUDA_LAUNCH_BLOCKING=1\n", "+ unset NCCL_DEBUG CUDA_LAUNCH_BLOCKING\n"
SOCKETS = "".join(
    f"n{host}:7{host}1:9{host}4 [0] NCCL INFO Using network {{}}\n" for host in range(1, 3)
)
RAISED = (
    'Traceback (most recent call last):\n  File "pretrain.py", line 88, in <module>\n    main()\n'
    '  File "pretrain.py", line 61, in main\n    loss.backward()\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
    " capacity of 79.15 GiB of which 1.10 GiB is free.\n"
)


def steps(took_ms: float, count: int = 30) -> str:
    return "".join(f"iter {n}: loss {9 - n / 20:.4f}, time {took_ms + n % 3:.2f}ms\n"
                   for n in range(count))  # fmt: skip


def judged(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def test_without_the_setting(tmp_path: Path) -> None:
    verdict = judged(tmp_path, SET + COMMAND + steps(900) + "^C\n" + UNSET + COMMAND + steps(400))

    assert (verdict.code, verdict.fault_class) == ("D2", "launch-blocking")
    assert verdict.confidence < 0.8


SAME, LARGER = "\n# yesterday, the same commit\n", "\n# yesterday, the larger model\n"


def parts(took_ms: float) -> str:
    """Steps whose parts are told beside a rate, which is no time."""
    return "".join(
        f"step {n} | nll {9 - n / 20:.4f} | data 2.1 ms | fwd+bwd {took_ms + n % 3:.1f} ms | opt"
        f" {took_ms / 9:.1f} ms | {900 / took_ms:.1f} it/s\n" for n in range(30)
    )  # fmt: skip


@pytest.mark.parametrize("line", [steps, parts])
def test_an_earlier_run_beside_it(tmp_path: Path, line: Callable[[float], str]) -> None:
    verdict = judged(tmp_path, SET + COMMAND + line(900) + "^C\n" + SAME + line(400))

    assert (verdict.code, verdict.fault_class) == ("D2", "launch-blocking")
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    "text",
    [SET + COMMAND + steps(900) + LARGER + steps(400),
     COMMAND + steps(900) + SAME + steps(400),
     SET + COMMAND + steps(900) + SAME + SET + steps(400),
     SET + COMMAND + steps(900) + SAME + steps(400).replace("loss ", "loss 1")],
    ids=["another model", "it never was", "set in both", "it learnt another thing"],
)  # fmt: skip
def test_an_earlier_run_that_tells_nothing(tmp_path: Path, text: str) -> None:
    assert judged(tmp_path, text).code != "D2"


@pytest.mark.parametrize(
    "text",
    [SET + COMMAND + steps(900) + COMMAND + steps(400),
     COMMAND + steps(900) + UNSET + COMMAND + steps(400),
     SET + COMMAND + steps(900) + UNSET + COMMAND.replace("c.y", "small.y") + steps(400),
     SET + COMMAND + steps(500) + UNSET + COMMAND + steps(400),
     SET + COMMAND + steps(900) + UNSET + COMMAND + steps(400, 6)],
    ids=["it stays set", "it never was", "another program", "little faster", "hardly begun"],
)  # fmt: skip
def test_what_weighs_no_setting(tmp_path: Path, text: str) -> None:
    assert judged(tmp_path, text).code != "D2"


def test_what_raised_stays_the_cause(tmp_path: Path) -> None:
    """It was set to find the error."""
    text = SET + COMMAND + steps(900) + RAISED + UNSET + COMMAND + steps(400)

    assert judged(tmp_path, text).code == "B1"


def test_one_host_alone(tmp_path: Path) -> None:
    text = SOCKETS.format("Socket", "Socket") + steps(2800) + "\n# on a single node:\n"
    verdict = judged(tmp_path, text + steps(300))

    assert (verdict.code, verdict.fault_class) == ("D2", "slow-interconnect")
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    ("networks", "said", "took_ms"),
    [(("IB", "IB"), "# on a single node:", 300), (("Socket", "Socket"), "# again:", 300),
     (("Socket", "Socket"), "# on a single node:", 1900)],
    ids=["by a fabric", "nothing tells of one", "half the work"],
)  # fmt: skip
def test_what_weighs_no_network(
    tmp_path: Path, networks: tuple[str, str], said: str, took_ms: float
) -> None:
    text = SOCKETS.format(*networks) + steps(2800) + f"\n{said}\n" + steps(took_ms)

    assert judged(tmp_path, text).code != "D2"


WORLD = "n1:71:90 [0] NCCL INFO Using network {}\n"


def by_the_clock(each_s: int, rate: int, loss: float = 4.0) -> str:
    begun = datetime(2026, 5, 4, 9, tzinfo=UTC)
    return "".join(
        f"{begun + timedelta(seconds=each_s * n):%Y-%m-%d %H:%M:%S} step={n * 10}"
        f" loss={loss - n / 50:.4f} tokens/s={rate}\n" for n in range(1, 21)
    )  # fmt: skip


ONE = "== one node\n" + WORLD.format("Socket") + by_the_clock(20, 9000)
TWO = "== on 2 nodes, same yaml\n" + WORLD.format("Socket")


def test_several_hosts_after_one(tmp_path: Path) -> None:
    """By the dates of the steps, where lines tell only of rank 0's host."""
    verdict = judged(tmp_path, ONE + TWO + by_the_clock(120, 3000))

    assert (verdict.code, verdict.fault_class) == ("D2", "slow-interconnect")
    assert "takes 12 s; on one alone it takes 2" in verdict.headline
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    "text",
    [ONE + TWO.replace("Socket", "IB") + by_the_clock(120, 3000),
     ONE + TWO.replace("2 nodes", "2 datasets") + by_the_clock(120, 3000),
     ONE + TWO + by_the_clock(120, 9500),
     ONE + TWO + by_the_clock(120, 3000, 9.0),
     ONE + TWO + by_the_clock(30, 6100),
     ONE.replace("one node", "small") + TWO + by_the_clock(120, 3000)],
    ids=["by a fabric", "of one host both", "more work in a step", "another model",
         "little slower", "nothing tells of one"],
)  # fmt: skip
def test_several_hosts_that_lose_nothing_by_sockets(tmp_path: Path, text: str) -> None:
    assert judged(tmp_path, text).code != "D2"
