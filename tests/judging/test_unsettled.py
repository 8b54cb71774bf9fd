"""What stood out in a run that ended well, and is not decided."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from families.fleet import facts_of, sample, stepping
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.unsettled import IDLE, LEFT_OUT, Unsettled, unsettled

STEADY = stepping(3600)


def heated(tmp_path: Path, reason: Callable[[float], int], busy: float = 99.0) -> list[Unsettled]:
    """Eight GPUs at one clock for an hour; the fourth gives a reason."""
    lines = []
    for at in range(0, 3600, 30):
        for gpu in range(8):
            label = f'Hostname="n0",gpu="{gpu}",modelName="A100"'
            lines += [
                sample("DCGM_FI_DEV_SM_CLOCK", label, 1410, at),
                sample("DCGM_FI_DEV_GPU_UTIL", label, busy, at),
                sample("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", label, reason(at) if gpu == 3 else 0,
                       at),
            ]  # fmt: skip
    return [*unsettled(facts_of(tmp_path, lines, STEADY)[0], paced=True)]


@pytest.mark.parametrize(
    ("reason", "busy", "told"),
    [
        pytest.param(lambda at: 0x40 * (at > 2400), 99.0, True, id="heat-for-a-third"),
        pytest.param(lambda at: 0x40 * (at > 3400), 99.0, False, id="heat-for-a-moment"),
        pytest.param(lambda at: 0x4, 99.0, False, id="the-soft-cap"),
        pytest.param(lambda at: 0x40, 0.0, False, id="at-rest"),
    ],
)
def test_a_gpu_that_says_it_was_held_down(
    tmp_path: Path, reason: Callable[[float], int], busy: float, told: bool
) -> None:
    (*found,) = heated(tmp_path, reason, busy)

    assert len(found) == told
    for one in found:
        assert "n0" in one.shows[0].text
        assert one.shows[0].cites


@pytest.mark.parametrize(
    ("took", "told"),
    [
        pytest.param(lambda at: 2.0 + 0.09 * (at > 2000), True, id="later"),
        pytest.param(lambda at: 2.0 + 0.03 * (at > 2000), False, id="as-repeats-differ"),
        pytest.param(lambda at: 2.0 + 0.09 * (2000 < at < 2200), False, id="shortly"),
        pytest.param(lambda at: 2.0 + 0.09 * (at < 2000), False, id="at-first"),
    ],
)
def test_a_pace_that_slipped(tmp_path: Path, took: Callable[[float], float], told: bool) -> None:
    """By less than what is told as slow."""
    facts, _ = facts_of(tmp_path, [sample("node_load1", 'instance="n0"', 1, 0)],
                        stepping(3600, took))  # fmt: skip

    assert len(unsettled(facts, paced=True)) == told
    assert not unsettled(facts, paced=False)


@pytest.mark.parametrize(
    ("took", "told"),
    [
        pytest.param(lambda at: 2.0 + 0.05 * (900 < at < 1800), True, id="slower-meanwhile"),
        pytest.param(lambda at: 2.0, False, id="as-fast"),
        pytest.param(lambda at: 2.0 + 0.05 * (2400 < at < 3300), False, id="slower-otherwise"),
    ],
)
def test_losses_that_may_have_met_slower_time(
    tmp_path: Path, took: Callable[[float], float], told: bool
) -> None:
    """A quarter of the run, by 2.4 %."""
    lines, total = [], 0
    for at in range(0, 3600, 30):
        total += 900 * (900 < at <= 1800)
        for host in range(6):
            label = f'host="n{host}",device="r0",port="1"'
            lines.append(sample("hw_rdma_tx_retx_pkts_total", label, total * (host == 2), at))
    found = unsettled(facts_of(tmp_path, lines, stepping(3600, took))[0], paced=True)

    assert len(found) == told
    for one in found:
        assert "n2" in one.question
        assert one.shows[0].cites


WELL = {"CLOCK": 1410.0, "POWER": 380.0, "LIMIT": 400.0, "TEMP": 60.0}
NAMES = {"CLOCK": "SM_CLOCK", "POWER": "POWER_USAGE", "LIMIT": "ENFORCED_POWER_LIMIT",
         "TEMP": "GPU_TEMP"}  # fmt: skip


@pytest.mark.parametrize(
    ("differs", "since", "told"),
    [
        ({"CLOCK": 1280.0, "TEMP": 80.0}, 0, "hotter than its peers"),
        ({"CLOCK": 1280.0, "TEMP": 80.0}, 1200, ""),
        ({"CLOCK": 1395.0, "TEMP": 80.0}, 0, ""),
        ({"CLOCK": 1280.0}, 0, ""),
        ({"LIMIT": 300.0, "POWER": 298.0}, 0, "at a power limit below"),
        ({"LIMIT": 300.0, "POWER": 210.0}, 0, ""),
    ],
)
def test_a_gpu_that_stands_apart_by_less_than_a_fault(
    tmp_path: Path, differs: dict[str, float], since: int, told: str
) -> None:
    """Hot and a tenth slower, or at a limit of its own; not so where it is only hot, or only
    slower as like GPUs are, does not reach the limit, or was as fast before."""
    lines = []
    for at in range(0, 3600, 30):
        for gpu in range(8):
            label = f'Hostname="n0",gpu="{gpu}",modelName="A100"'
            read = {**WELL, **(differs if gpu == 3 and at >= since else {})}
            read["CLOCK"] += gpu
            lines += [sample(f"DCGM_FI_DEV_{NAMES[k]}", label, v, at) for k, v in read.items()]
            lines.append(sample("DCGM_FI_DEV_GPU_UTIL", label, 99.0, at))
    found = unsettled(facts_of(tmp_path, lines, STEADY)[0], paced=True)

    assert [told in one.shows[0].text for one in found] == ([True] if told else [])
    assert all("GPU 3 on n0" in one.shows[0].text for one in found)


@pytest.mark.parametrize(("data_s", "told"), [(0.6, True), (0.3, False), (2.5, False)])
def test_steps_that_wait_for_data(tmp_path: Path, data_s: float, told: bool) -> None:
    """A third of each, a sixth of each, and more than they took: another clock's, or a sum."""
    track = stepping(3600)
    for at in range(len(track)):
        track.step_s[at], track.data_s[at] = 2.0, data_s
    facts, _ = facts_of(tmp_path, [sample("node_load1", 'instance="n0"', 1, 0)], track)

    assert len(unsettled(facts, paced=False)) == told


@pytest.mark.parametrize(
    ("busy", "told"),
    [
        pytest.param((50.0,), True, id="half-of-the-time"),
        pytest.param((65.0,), False, id="as-small-models-do"),
        pytest.param((30.0, 90.0), False, id="one-is-busy"),
        pytest.param((0.0,), False, id="not-these-gpus"),
    ],
)
def test_gpus_on_which_little_ran(tmp_path: Path, busy: tuple[float, ...], told: bool) -> None:
    """On the busiest of them, so that none of the others waited for it."""
    lines = [
        sample("DCGM_FI_DEV_GPU_UTIL", f'Hostname="n0",gpu="{gpu}"', busy[gpu % len(busy)], at)
        for at in range(0, 3600, 30) for gpu in range(4)
    ]  # fmt: skip
    found = unsettled(facts_of(tmp_path, lines, STEADY)[0], paced=True)

    assert [one.question for one in found] == [IDLE] * told


OUT = "2026-11-20 10:00:00 | WARNING | fairseq.trainer | OOM: Ran out of memory with exception: CUDA out of memory. Tried to allocate 1.20 GiB (GPU 0; 31.75 GiB total capacity; 28.00 GiB already allocated; 1.00 GiB free; 29.00 GiB reserved in total by PyTorch)\n2026-11-20 10:00:00 | WARNING | fairseq.trainer | attempting to recover from OOM in forward/backward pass\n"  # noqa: E501


@pytest.mark.parametrize("often", [0, 1, 8])
def test_allocations_that_fail_again_and_again(tmp_path: Path, often: int) -> None:
    rows = [
        f"2026-11-20 10:{at // 60:02d}:{at % 60:02d} | INFO | train_inner | epoch 001:   {at} /"
        f" 1000 loss={8 - at / 300:.3f}, num_updates={at}, lr=0.0001\n"
        + OUT
        * (at % 100 == 0 and at // 100 <= often)
        for at in range(10, 1001, 10)
    ]
    end = "2026-11-20 10:20:00 | INFO | fairseq_cli.train | done training in 1200.0 seconds\n"
    (tmp_path / "train.log").write_text("".join([*rows, end]))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "G1"
    told = [one for one in verdict.shows if "could not be allocated" in one.text]
    assert len(told) == (often > 1)
    assert ("did not fit" in verdict.headline) == (often > 1)
    assert (LEFT_OUT in str(verdict.cannot_decide)) == (often > 1)
