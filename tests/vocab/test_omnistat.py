"""AMD Omnistat: its GPUs, its hosts, and the counters of their Slingshot adapters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from families.fleet import T0, checked, facts_of, sample, stepping
from flatline.families import clock_throttling, network_degradation
from flatline.model import Cleared, Finding, Place
from flatline.vocab import bind, vocabularies

OWN = next(v for v in vocabularies() if v.name == "omnistat")
GPU, HOST = 'card="3",instance="x1:8001"', 'instance="x1:8001"'
CXI = 'interface="cxi2",counter="{}",instance="x1:8001"'


@pytest.mark.parametrize(
    ("metric", "labels", "value", "signal", "canonical"),
    [
        ("rocm_utilization_percentage", GPU, 97, "gpu_utilization_ratio", 0.97),
        ("rocm_average_socket_power_watts", GPU, 410, "gpu_power_watts", 410),
        ("rocm_power_cap_watts", GPU, 560, "gpu_power_limit_watts", 560),
        ("rocm_energy_joules", GPU, 9e6, "gpu_energy_joules_total", 9e6),
        ("rocm_sclk_clock_mhz", GPU, 1700, "gpu_sm_clock_hertz", 1.7e9),
        ("rocm_mclk_clock_mhz", GPU, 1600, "gpu_memory_clock_hertz", 1.6e9),
        ("rocm_vram_total_bytes", GPU, 2**36, "gpu_memory_total_bytes", 2**36),
        ("rocm_ras_umc_correctable_count", GPU, 4, "gpu_ecc_corrected_total", 4),
        ("rocm_ras_umc_uncorrectable_count", GPU, 1, "gpu_ecc_uncorrectable_total", 1),
        ("rocm_ras_gfx_uncorrectable_count", GPU, 1, "gpu_engine_uncorrectable_total", 1),
        ("rocm_ras_xgmi_wafl_uncorrectable_count", GPU, 1, "gpu_link_uncorrectable_total", 1),
        ("rocm_temperature_celsius", GPU + ',location="junction"', 71, "gpu_temperature_celsius",
         71),
        ("omnistat_mem_available_bytes", HOST, 2**38, "host_memory_available_bytes", 2**38),
        ("omnistat_mem_total_bytes", HOST, 2**39, "host_memory_total_bytes", 2**39),
        ("omnistat_host_boot_time_seconds", HOST, 1.7e9, "host_boot_time_seconds", 1.7e9),
        ("omnistat_network_cxi_telemetry", CXI.format("hni_pcs_uncorrected_cw"), 8,
         "rdma_receive_errors_total", 8),
        ("omnistat_network_cxi_telemetry", CXI.format("pct_retry_srb_requests"), 8,
         "rdma_retransmits_total", 8),
        ("omnistat_network_cxi_telemetry", CXI.format("pct_spt_timeouts"), 8,
         "rdma_ack_timeouts_total", 8),
        ("omnistat_network_tx_bytes", HOST + ',device_class="cxi",interface="cxi0"', 5,
         "rdma_transmit_bytes_total", 5),
        ("omnistat_network_rx_bytes", HOST + ',device_class="net",interface="eth0"', 5,
         "network_receive_bytes_total", 5),
    ],
)  # fmt: skip
def test_what_it_carries(
    tmp_path: Path, metric: str, labels: str, value: float, signal: str, canonical: float
) -> None:
    """Its names, its labels and its units, by its own documentation."""
    _, source = facts_of(tmp_path, [sample(metric, labels, value, 0)])
    rows = source.ask(signal).rows

    assert [(row.place.host, row.last) for row in rows] == [("x1", canonical)]
    assert all(row.place.gpu == "3" for row in rows if "card" in labels)


def test_it_is_told_by_its_metrics() -> None:
    """A host's alone, and a GPU's; not by AMD's other exporters'."""
    for metric in ("omnistat_mem_total_bytes", "rocm_utilization_percentage"):
        assert bind(OWN, {metric: frozenset({"instance"})}) is not None
    for metric in ("gpu_package_power", "amd_gpu_power"):
        assert bind(OWN, {metric: frozenset({"instance"})}) is None


def test_a_corrected_codeword_is_no_error(tmp_path: Path) -> None:
    """Every link has them; nor is what the link sent again by itself."""
    lines = [sample("omnistat_network_cxi_telemetry", CXI.format(counter), 9, 0)
             for counter in ("hni_pcs_corrected_cw", "hni_llr_tx_replay_event")]  # fmt: skip
    _, source = facts_of(tmp_path, lines)

    for signal in ("rdma_receive_errors_total", "rdma_retransmits_total"):
        assert source.ask(signal).rows == ()


def test_two_dies_that_are_held_down_for_their_heat(tmp_path: Path) -> None:
    """One module of dies of which the first tells the power of both: what it drew stands beside
    what modules draw, not beside the zeros of their second dies."""
    well = {"rocm_sclk_clock_mhz": 1600.0, "rocm_utilization_percentage": 98.0}
    lines = []
    for gpu in range(32):
        for n in range(40):
            slow = gpu in (10, 11) and n > 14
            read = {**well, "rocm_average_socket_power_watts": 0.0 if gpu % 2 else 400.0,
                    'rocm_temperature_celsius': 102.0 if slow else 61.0}  # fmt: skip
            if slow:
                read["rocm_sclk_clock_mhz"] = 900.0
                read["rocm_average_socket_power_watts"] *= 0.6
            labels = f'card="{gpu % 8}",instance="x{gpu // 8}"'
            lines += [sample(name, labels + (',location="edge"' if "temp" in name else ""),
                             value + gpu % 3 * (value > 0), 30 * n)
                      for name, value in read.items()]  # fmt: skip
    facts, source = facts_of(tmp_path, lines, stepping(1170))
    answer = checked(clock_throttling.judge(facts), source)

    assert isinstance(answer, Finding)
    assert answer.fault_class == "thermal"
    assert set(answer.culprits) == {Place("x1", "2"), Place("x1", "3")}
    drew = next(one for one in answer.shows if one.text.startswith("It drew"))
    assert "the median of the GPUs at work 40" in drew.text


@pytest.mark.parametrize(("cap", "clock"), [(330.0, 1330.0), (330.0, 1590.0), (500.0, 1330.0)])
def test_two_dies_under_one_cap(tmp_path: Path, cap: float, clock: float) -> None:
    """The first die of a module tells the cap of both. A sixth less clock is no fault under the
    cap of all, and neither is a cap under which it clocks as they do; but a clock that lies so low
    is not cleared either."""
    lines = []
    for gpu in range(24):
        for n in range(40):
            own = gpu in (12, 13)
            read = {"rocm_sclk_clock_mhz": clock if own else 1600.0,
                    "rocm_utilization_percentage": 98.0, "rocm_temperature_celsius": 61.0,
                    "rocm_average_socket_power_watts": 0.0 if gpu % 2 else 325.0 if own else 440.0,
                    "rocm_power_cap_watts": 0.0 if gpu % 2 else cap if own else 500.0}  # fmt: skip
            labels = f'card="{gpu % 8}",instance="x{gpu // 8}"'
            noise = {name: (gpu + n) % 3 if value and "cap" not in name else 0
                     for name, value in read.items()}  # fmt: skip
            lines += [sample(name, labels, value + noise[name], 30 * n)
                      for name, value in read.items()]  # fmt: skip
    facts, source = facts_of(tmp_path, lines, stepping(1170))
    answer = checked(clock_throttling.judge(facts), source)

    if cap < 500.0 and clock < 1500.0:
        assert isinstance(answer, Finding)
        assert answer.fault_class == "power-limit"
        assert set(answer.culprits) == {Place("x1", "4"), Place("x1", "5")}
        assert any("330 W, its peers' 500 W" in one.text for one in answer.shows)
    else:
        assert not isinstance(answer, Finding) or answer.strength < 0.8
        assert isinstance(answer, Cleared) == (clock > 1500.0)


def network(
    tmp_path: Path, grew: Callable[[int, int], float], counter: str = "hni_pcs_uncorrected_cw"
) -> object:
    """The verdict on four hosts whose steps took 3 s instead of 2 twice, with what a counter of
    one adapter grew by in each half minute (host, second)."""
    lines, levels = [], dict.fromkeys(range(4), 100.0)
    for at in range(0, 3601, 30):
        for host in range(4):
            levels[host] += grew(host, at)
            for port in ("cxi0", "cxi1"):
                value = levels[host] if port == "cxi1" else 0.0
                labels = f'interface="{port}",counter="{counter}",instance="x{host}"'
                lines.append(sample("omnistat_network_cxi_telemetry", labels, value, at))
    track = stepping(3600, lambda at: 3.0 if slow(at) else 2.0)
    facts, source = facts_of(tmp_path, lines, track)
    return checked(network_degradation.judge(facts), source)


def slow(at: float) -> bool:
    return 900 <= at < 1400 or 2300 <= at < 2800


def test_bursts_of_lost_codewords_beside_slow_steps(tmp_path: Path) -> None:
    """On one host's adapter alone."""
    answer = network(tmp_path, lambda host, at: 400.0 if host == 2 and slow(at) else 0.0)

    assert isinstance(answer, Finding)
    assert answer.culprits == (Place("x2"),)
    assert answer.onset is not None
    assert abs(answer.onset.timestamp() - T0 - 900) <= 60


@pytest.mark.parametrize(
    ("grew", "counter"),
    [
        (lambda host, at: 400.0 if host == 2 and slow(at) else 0.0, "hni_pcs_corrected_cw"),
        (lambda host, at: 3.0, "hni_pcs_uncorrected_cw"),
        (lambda host, at: 400.0 if host == 2 and 1500 <= at < 2200 else 0.0,
         "pct_retry_srb_requests"),
    ],
)  # fmt: skip
def test_near_misses_of_lost_codewords(
    tmp_path: Path, grew: Callable[[int, int], float], counter: str
) -> None:
    """Corrected ones, the same few everywhere, and bursts while steps were fast."""
    answer = network(tmp_path, grew, counter)

    assert answer is None or isinstance(answer, Cleared)
