"""
The canonical signals: what families may ask numbers of, whoever exports them.

A family names these in PromQL (`avg_over_time(gpu_power_watts[5m])`); a vocabulary says what
carries each of them at a site.  A name ends in its unit, a counter in `_total`; ratios are 0..1.
The labels of a signal are all a query may group or match by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntFlag
from types import MappingProxyType
from typing import Literal

Kind = Literal["gauge", "counter"]

GPU = ("host", "gpu")
PORT = ("host", "device", "port")
DEVICE = ("host", "device")
HOST = ("host",)
SCRAPE = ("host", "exporter")
CLUSTER: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Signal:
    """One canonical signal: a gauge's value, or a counter that only rises until it is reset."""

    name: str
    unit: str
    kind: Kind
    labels: tuple[str, ...]
    meaning: str


_TABLE = (
    # --- a GPU's work ---
    Signal("gpu_sm_active_ratio", "ratio", "gauge", GPU,
           "share of time with a warp resident on an SM (CU), averaged over all of them"),
    Signal("gpu_engine_active_ratio", "ratio", "gauge", GPU,
           "share of time the compute engine was busy; a kernel that spins in a wait counts"),
    Signal("gpu_utilization_ratio", "ratio", "gauge", GPU,
           "share of time any kernel ran; stays near 1 while a collective spins"),
    Signal("gpu_tensor_active_ratio", "ratio", "gauge", GPU,
           "share of cycles the matrix units were busy"),
    Signal("gpu_dram_active_ratio", "ratio", "gauge", GPU,
           "share of cycles the device memory moved data"),
    # --- power, temperature, clocks ---
    Signal("gpu_power_watts", "watts", "gauge", GPU, "power drawn by the board or socket"),
    Signal("gpu_power_limit_watts", "watts", "gauge", GPU, "power the device is allowed to draw"),
    Signal("gpu_energy_joules_total", "joules", "counter", GPU, "energy drawn"),
    Signal("gpu_temperature_celsius", "celsius", "gauge", GPU,
           "core temperature (the hotspot where only that is measured)"),
    Signal("gpu_memory_temperature_celsius", "celsius", "gauge", GPU,
           "temperature of the device memory"),
    Signal("gpu_sm_clock_hertz", "hertz", "gauge", GPU, "clock of the SMs (CUs) now"),
    Signal("gpu_sm_clock_max_hertz", "hertz", "gauge", GPU, "highest SM clock the device has"),
    Signal("gpu_memory_clock_hertz", "hertz", "gauge", GPU, "clock of the device memory now"),
    Signal("gpu_clock_event_reasons", "bitmask", "gauge", GPU,
           "why the clock stands below what was asked for, as the bits of `ClockEvent`"),
    *(Signal(f"gpu_clock_event_{event}", "flag", "gauge", GPU, f"one of those bits: {words}")
      for event, words in (
          ("software_power_cap", "held by the power limit in force"),
          ("hardware_slowdown", "slowed by heat, a power brake or a surge"),
          ("hardware_thermal_slowdown", "slowed by the device for its heat"),
          ("software_thermal_slowdown", "slowed by the driver for its heat"),
          ("power_brake", "slowed by the host's power supply"),
      )),
    Signal("gpu_throttled_power_seconds_total", "seconds", "counter", GPU,
           "time with the clock held down by a power limit"),
    Signal("gpu_throttled_thermal_seconds_total", "seconds", "counter", GPU,
           "time with the clock held down by heat"),
    # --- PCIe ---
    Signal("gpu_pcie_link_width", "count", "gauge", GPU, "lanes the PCIe link runs with now"),
    Signal("gpu_pcie_link_width_max", "count", "gauge", GPU,
           "most lanes the PCIe link of the device and its slot has"),
    Signal("gpu_pcie_link_generation", "count", "gauge", GPU,
           "PCIe generation the link runs at now; an idle one lowers it"),
    # --- memory ---
    Signal("gpu_memory_used_bytes", "bytes", "gauge", GPU, "device memory in use"),
    Signal("gpu_memory_total_bytes", "bytes", "gauge", GPU, "device memory there is"),
    # --- faults ---
    Signal("gpu_xid", "code", "gauge", GPU,
           "last NVIDIA Xid seen; a state that stays until the driver is reloaded, no event"),
    Signal("gpu_xid_errors_total", "count", "counter", GPU,
           "NVIDIA Xids counted by code; a code's series begins with its first error"),
    Signal("gpu_ecc_corrected_total", "count", "counter", GPU, "corrected memory errors"),
    Signal("gpu_ecc_uncorrectable_total", "count", "counter", GPU, "uncorrectable memory errors"),
    Signal("gpu_row_remap_uncorrectable_total", "count", "counter", GPU,
           "memory rows remapped after uncorrectable errors"),
    Signal("gpu_row_remap_pending", "flag", "gauge", GPU,
           "1 while a remapping waits for the device's reset"),
    Signal("gpu_row_remap_failed", "flag", "gauge", GPU, "1 once a remapping failed"),
    Signal("gpu_pcie_replay_total", "count", "counter", GPU, "PCIe packets sent again"),
    Signal("gpu_nvlink_crc_errors_total", "count", "counter", GPU,
           "checksum errors on the links between GPUs"),
    Signal("gpu_nvlink_replay_errors_total", "count", "counter", GPU,
           "packets sent again on the links between GPUs"),
    Signal("gpu_nvlink_recovery_errors_total", "count", "counter", GPU,
           "times a link between GPUs had to be trained again"),
    Signal("gpu_engine_uncorrectable_total", "count", "counter", GPU,
           "uncorrectable errors in the compute engines (AMD RAS, block gfx)"),
    Signal("gpu_link_uncorrectable_total", "count", "counter", GPU,
           "uncorrectable errors on the links between GPUs (AMD RAS, block xgmi_wafl)"),
    Signal("gpu_pcie_fatal_total", "count", "counter", GPU, "fatal PCIe errors (AER)"),
    # --- fabric ---
    Signal("rdma_port_up", "flag", "gauge", PORT, "1 while the port is active"),
    Signal("rdma_port_rate_bytes_per_second", "bytes/s", "gauge", PORT,
           "rate the link was trained to"),
    Signal("rdma_link_downed_total", "count", "counter", PORT, "times the link went down"),
    Signal("rdma_link_recoveries_total", "count", "counter", PORT,
           "times the link was trained again without going down"),
    Signal("rdma_symbol_errors_total", "count", "counter", PORT, "symbols received in error"),
    Signal("rdma_transmit_wait_total", "count", "counter", PORT,
           "ticks in which a port had data to send and no credits to send it"),
    Signal("rdma_receive_errors_total", "count", "counter", PORT, "packets received in error"),
    Signal("rdma_retransmits_total", "count", "counter", PORT, "RDMA packets sent again"),
    Signal("rdma_retries_exceeded_total", "count", "counter", PORT,
           "requests given up after their last retry"),
    Signal("rdma_ack_timeouts_total", "count", "counter", PORT,
           "packets sent again because no acknowledgement came"),
    Signal("rdma_out_of_sequence_total", "count", "counter", PORT,
           "packets received out of sequence: loss in the fabric, or adaptive routing"),
    Signal("rdma_sequence_errors_total", "count", "counter", PORT,
           "sequence errors the other end reported: loss in the fabric, or adaptive routing"),
    Signal("rdma_receiver_not_ready_total", "count", "counter", PORT,
           "requests the other end was not ready for: a slow host, not a bad link"),
    Signal("rdma_congestion_notices_total", "count", "counter", PORT,
           "notices of congestion that told this end to slow down"),
    Signal("rdma_transmit_bytes_total", "bytes", "counter", PORT, "bytes sent over RDMA"),
    Signal("rdma_receive_bytes_total", "bytes", "counter", PORT, "bytes received over RDMA"),
    Signal("network_transmit_bytes_total", "bytes", "counter", DEVICE, "bytes sent"),
    Signal("network_receive_bytes_total", "bytes", "counter", DEVICE, "bytes received"),
    Signal("network_speed_bytes", "bytes", "gauge", DEVICE, "bytes a second the link carries"),
    Signal("network_receive_errors_total", "count", "counter", DEVICE,
           "packets received in error: checksums, frames, overruns"),
    Signal("tcp_retransmits_total", "count", "counter", HOST, "TCP segments sent again"),
    # --- host ---
    Signal("host_procs_running", "count", "gauge", HOST, "tasks running or waiting for a CPU"),
    Signal("host_threads", "count", "gauge", HOST, "threads there are, whatever they do"),
    Signal("host_procs_blocked", "count", "gauge", HOST, "tasks in uninterruptible sleep"),
    Signal("host_context_switches_total", "count", "counter", HOST, "context switches"),
    Signal("host_cpu_frequency_hertz", "hertz", "gauge", HOST, "how fast the CPUs are clocked"),
    Signal("host_cpu_throttles_total", "count", "counter", HOST,
           "times the CPUs slowed themselves down for heat"),
    Signal("host_memory_available_bytes", "bytes", "gauge", HOST,
           "memory that could be had without swapping"),
    Signal("host_memory_total_bytes", "bytes", "gauge", HOST, "memory there is"),
    Signal("host_memory_dirty_bytes", "bytes", "gauge", HOST,
           "memory that waits to be written to storage"),
    Signal("host_oom_kills_total", "count", "counter", HOST, "processes killed for memory"),
    Signal("host_cpu_pressure_seconds_total", "seconds", "counter", HOST,
           "time some task waited for a CPU"),
    Signal("host_io_pressure_seconds_total", "seconds", "counter", HOST,
           "time some task waited for storage"),
    Signal("host_memory_pressure_seconds_total", "seconds", "counter", HOST,
           "time some task waited for memory"),
    Signal("host_io_pressure_ratio", "ratio", "gauge", HOST,
           "share of the last seconds in which some task waited for storage"),
    Signal("host_boot_time_seconds", "seconds", "gauge", HOST, "when the host booted"),
    Signal("host_clock_offset_seconds", "seconds", "gauge", HOST,
           "how far the host's clock is off, as its time daemon says"),
    # --- file systems, and the servers behind them ---
    Signal("filesystem_available_bytes", "bytes", "gauge", DEVICE,
           "room a file system has for programs; `device` is where it is mounted"),
    Signal("filesystem_size_bytes", "bytes", "gauge", DEVICE, "room it has in all"),
    Signal("filesystem_free_inodes", "count", "gauge", DEVICE, "files it has room for"),
    Signal("filesystem_inodes", "count", "gauge", DEVICE,
           "files it has room for in all; 0 where it makes inodes as it needs them"),
    Signal("filesystem_read_only", "flag", "gauge", DEVICE, "1 while nothing may be written"),
    Signal("filesystem_mounted", "flag", "gauge", DEVICE,
           "1 while it is mounted where the host is to have it"),
    Signal("nfs_retransmits_total", "count", "counter", HOST,
           "requests to NFS servers sent again"),
    Signal("nfs_timeouts_total", "count", "counter", DEVICE,
           "requests an NFS server gave no answer to in time; `device` is its export"),
    Signal("lustre_drops_total", "count", "counter", HOST,
           "messages from and to Lustre servers that were dropped"),
    # --- scrapes, scheduler ---
    Signal("exporter_up", "flag", "gauge", SCRAPE,
           "1 while the exporter answers: tells a dead exporter from a lost device"),
    Signal("slurm_nodes_down", "count", "gauge", CLUSTER, "nodes of the cluster that are down"),
    Signal("slurm_nodes_draining", "count", "gauge", CLUSTER, "nodes that are drained"),
    Signal("slurm_jobs_running", "count", "gauge", CLUSTER, "jobs that run"),
    Signal("slurm_jobs_pending", "count", "gauge", CLUSTER, "jobs that wait"),
    # --- training, as the program reports it ---
    Signal("training_step", "step", "gauge", HOST, "the step last completed"),
    Signal("training_step_seconds", "seconds", "gauge", HOST, "how long the last step took"),
    Signal("training_tokens_per_second", "1/s", "gauge", HOST, "tokens a second and device"),
    Signal("training_loss", "value", "gauge", HOST, "the loss"),
    Signal("training_gradient_norm", "value", "gauge", HOST, "norm of the gradient"),
    Signal("training_balance_loss", "value", "gauge", HOST,
           "how unevenly a mixture of experts spreads its tokens"),
)  # fmt: skip


class ClockEvent(IntFlag):
    """Bits of `gpu_clock_event_reasons` (NVML, nvmlClocksEventReasons; DCGM field 112)."""

    IDLE = 0x1
    APPLICATION_CLOCKS = 0x2
    SOFTWARE_POWER_CAP = 0x4
    HARDWARE_SLOWDOWN = 0x8
    SYNC_BOOST = 0x10
    SOFTWARE_THERMAL_SLOWDOWN = 0x20
    HARDWARE_THERMAL_SLOWDOWN = 0x40
    POWER_BRAKE = 0x80
    DISPLAY_CLOCKS = 0x100


def clock_events(mask: int) -> str:
    """`0x88 (hardware slowdown, power brake)`."""
    words = [str(event.name).lower().replace("_", " ") for event in ClockEvent if mask & event]
    return f"0x{mask:x} ({', '.join(words) or 'none'})"


SIGNALS: Mapping[str, Signal] = MappingProxyType({signal.name: signal for signal in _TABLE})

GPUS_HELD = "the GPUs the job held"
"""What is to be known of a node that other jobs use as well."""
CLOCK = "the clock of log and metrics"
"""What is to be known where a log states no zone, and metrics of another time may be another's."""
JOB_ASKED = "logs of the job that was asked for"
ACTIVITY = ("gpu_sm_active_ratio", "gpu_engine_active_ratio", "gpu_utilization_ratio")
"""How busy a GPU is, best first: each after the first also counts waiting as work."""

RESTLESS = (
    "gpu_power_watts",
    "gpu_energy_joules_total",
    "gpu_sm_active_ratio",
    "gpu_memory_used_bytes",
    "rdma_transmit_bytes_total",
    "network_transmit_bytes_total",
    "host_context_switches_total",
    "host_memory_available_bytes",
)
"""Signals of a host that never all stand still while it is at work."""

LOSS = ("rdma_retransmits_total", "rdma_ack_timeouts_total", "rdma_sequence_errors_total")
"""Counters of RDMA traffic that was lost and sent again: adapters have one or another."""
LINK = (
    "rdma_link_downed_total",
    "rdma_link_recoveries_total",
    "rdma_receive_errors_total",
    "rdma_port_up",
)
"""What tells a bad link from a lossy path."""
PACE = ("training_tokens_per_second", "training_step_seconds")
"""How fast training advances, as the program reports it."""

NEEDS: Mapping[str, tuple[tuple[str, ...], ...]] = MappingProxyType(
    {
        "GPU clock and power metrics": (("gpu_sm_clock_hertz",), ("gpu_power_watts",)),
        "GPU memory metrics": (("gpu_memory_used_bytes",),),
        "GPU activity metrics": (ACTIVITY,),
        "GPU activity and power metrics": (ACTIVITY, ("gpu_power_watts",)),
        "GPU activity, memory and power metrics": (
            ACTIVITY,
            ("gpu_memory_used_bytes",),
            ("gpu_power_watts",),
        ),
        "GPU power metrics of the accused": (("gpu_power_watts",),),
        "GPU health metrics (XID, ECC, row remap, NVLink)": (
            ("gpu_xid", "gpu_xid_errors_total", "gpu_engine_uncorrectable_total"),
            ("gpu_ecc_uncorrectable_total",),
            (
                "gpu_row_remap_uncorrectable_total",
                "gpu_row_remap_failed",
                "gpu_link_uncorrectable_total",
            ),
            (
                "gpu_nvlink_crc_errors_total",
                "gpu_nvlink_replay_errors_total",
                "gpu_nvlink_recovery_errors_total",
                "gpu_link_uncorrectable_total",
            ),
        ),
        "RDMA and link counters per host": (LOSS, LINK),
        "network and storage metrics": (
            LOSS,
            ("host_io_pressure_seconds_total", "host_io_pressure_ratio"),
        ),
        "file-system and pressure metrics": (
            ("filesystem_available_bytes",),
            ("host_io_pressure_seconds_total", "host_io_pressure_ratio"),
        ),
        "training metrics": (("training_balance_loss", "training_gradient_norm"),),
        "GPU, host and network metrics": (
            ("gpu_power_watts",),
            ("gpu_sm_clock_hertz",),
            ("host_procs_running",),
            LOSS,
        ),
        "host metrics (run queue, pressure, memory)": (
            ("host_procs_running",),
            ("host_cpu_pressure_seconds_total", "host_context_switches_total"),
        ),
        "training throughput over time": (PACE,),
    }
)
"""What a family's need in words comes to: of each group one signal must be carried."""
