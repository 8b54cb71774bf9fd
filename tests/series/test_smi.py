"""What nvidia-smi printed into a file is metrics: tables and documents, once or in a loop."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.model import Place
from flatline.sources.metrics import MetricsSource, recognise

HEADER = "timestamp, index, uuid, power.draw [W], utilization.gpu [%], clocks.current.sm [MHz]"
TABLE = (
    HEADER
    + """
2026/11/20 10:00:00.250, 0, GPU-a, 310.50 W, 98 %, 1410 MHz
2026/11/20 10:00:00.250, 1, GPU-b, 120.00 W, 100 %, [N/A]
2026/11/20 10:00:05.250, 0, GPU-a, 311.50 W, 97 %, 1400 MHz
2026/11/20 10:00:05.250, 1, GPU-b, 119.00 W"""
)
DOCUMENT = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <timestamp>Fri Nov 20 10:00:0{second} 2026</timestamp>
  <attached_gpus>2</attached_gpus>
  <gpu id="00000000:01:00.0"><product_name>NVIDIA H100</product_name><uuid>GPU-a</uuid>
    <utilization><gpu_util>98 %</gpu_util></utilization>
    <gpu_power_readings><power_draw>310.5 W</power_draw></gpu_power_readings>
    <fb_memory_usage><used>1024 MiB</used></fb_memory_usage></gpu>
  <gpu id="00000000:02:00.0"><uuid>GPU-b</uuid>
    <utilization><gpu_util>N/A</gpu_util></utilization></gpu>
</nvidia_smi_log>
"""


def source(tmp_path: Path, text: str) -> MetricsSource:
    path = tmp_path / "smi.csv"
    path.write_text(text)
    assert recognise(path.name, text.encode())
    return MetricsSource([(path, path.name)])


def test_a_table_in_a_loop_is_a_series_a_gpu(tmp_path: Path) -> None:
    """In base units; N/A is no value, and the line that is still written is left."""
    metrics = source(tmp_path, TABLE)
    at = datetime(2026, 11, 20, 10, 0, 6, tzinfo=UTC)
    watts = metrics.ask("gpu_power_watts", end=at, step_s=0)
    first = watts.of(Place(gpu="0"))

    assert first is not None
    assert first.last == 311.5
    assert [row.last for row in metrics.ask("gpu_sm_clock_hertz", end=at, step_s=0).rows] == [
        1.4e9
    ]
    assert metrics.ask("gpu_utilization_ratio", end=at, step_s=0).rows[0].last == 0.97
    assert metrics.replay(watts.cite(first, "power")) == 311.5


def test_without_units_the_header_has_them(tmp_path: Path) -> None:
    """As `nounits` prints."""
    rows = TABLE.partition("\n")[2]
    bare = rows.replace(" W", "").replace(" %", "").replace(" MHz", "")
    metrics = source(tmp_path, f"{HEADER}\n{bare}")
    at = datetime(2026, 11, 20, 10, 0, 6, tzinfo=UTC)

    assert metrics.ask("gpu_utilization_ratio", end=at, step_s=0).rows[0].last == 0.97


def test_documents_one_after_another_are_read(tmp_path: Path) -> None:
    """`-q -x -l`: each has its own time."""
    text = DOCUMENT.replace("{second}", "1") + DOCUMENT.replace("{second}", "3")
    metrics = source(tmp_path, text)

    assert metrics.window is not None
    assert (metrics.window[1] - metrics.window[0]).total_seconds() == 2
    assert metrics.ask("gpu_memory_used_bytes", step_s=0).rows[0].last == 1 << 30
    assert metrics.ask("gpu_power_watts", step_s=0).rows[0].place == Place(gpu="0")


def test_local_time_without_a_zone_is_told(tmp_path: Path) -> None:
    """And so is a table without a time."""
    assert "time zone" in {gap.need for gap in source(tmp_path, TABLE).gaps}

    text = "index, power.draw [W]\n0, 310.50 W\n"
    assert "carry no time" in " ".join(gap.reason for gap in source(tmp_path, text).gaps)


@pytest.mark.parametrize(
    "text",
    (
        TABLE + "\nLoading the model\nstep 1 loss 2.0\n",
        DOCUMENT + "Traceback (most recent call last):\n",
        "memory, loss, step\n1, 2, 3\nTraceback (most recent call last):\n",
        HEADER + "\n",
        "",
    ),
)
def test_a_log_that_begins_with_a_table_stays_a_log(text: str) -> None:
    """What the job said after it must not be lost."""
    assert not recognise("job.out", text.encode())


def test_a_document_that_defines_entities_is_refused(tmp_path: Path) -> None:
    """They can grow without end."""
    text = DOCUMENT.replace("{second}", "1").replace("<gpu id", "<!ENTITY a 'b'><gpu id", 1)

    assert "entities" in " ".join(gap.reason for gap in source(tmp_path, text).gaps)
