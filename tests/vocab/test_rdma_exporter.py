"""rdma_exporter: the kernel's own names of an adapter's counters."""

from __future__ import annotations

from pathlib import Path

import pytest

from families.fleet import facts_of, sample
from flatline.vocab import bind, vocabularies

OWN = next(v for v in vocabularies() if v.name == "rdma_exporter")
PORT = 'device="mlx5_1",port="1",instance="n1:9879"'


@pytest.mark.parametrize(
    ("metric", "value", "signal", "canonical"),
    [
        ("rdma_local_ack_timeout_err_total", 7, "rdma_ack_timeouts_total", 7),
        ("rdma_packet_seq_err_total", 7, "rdma_sequence_errors_total", 7),
        ("rdma_symbol_error_total", 7, "rdma_symbol_errors_total", 7),
        ("rdma_port_xmit_data_total", 250, "rdma_transmit_bytes_total", 1000),
    ],
)
def test_what_it_carries(
    tmp_path: Path, metric: str, value: float, signal: str, canonical: float
) -> None:
    """Data are counted in words of four bytes."""
    _, source = facts_of(tmp_path, [sample(metric, PORT, value, 0)])

    assert [(row.place.host, row.last) for row in source.ask(signal).rows] == [("n1", canonical)]


def test_it_is_told_by_its_metrics() -> None:
    assert bind(OWN, {"rdma_port_info": frozenset({"instance"})}) is not None
    assert bind(OWN, {"rdma_tx_ucast_pkts": frozenset({"hostname"})}) is None
