"""What the smi tools print in their other forms; `tests/fixtures/smi` has a file a form."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.errors import FormatError
from flatline.model import Gap
from flatline.series.smi import form_of, forms, read_smi
from flatline.series.storage import NAME, SeriesBuilder, each
from flatline.sources.metrics import MetricsSource, recognise

FIXTURES = Path(__file__).parents[1] / "fixtures" / "smi"
REAL = Path(__file__).parents[2].parent / "shared" / "realdata"
T0 = datetime(2026, 11, 20, 10, tzinfo=UTC).timestamp()
Found = Mapping[tuple[str, str], list[tuple[float, float]]]
"""Seconds after T0 and values, by metric and GPU."""


def read(path: Path) -> tuple[dict[tuple[str, str], list[tuple[float, float]]], tuple[Gap, ...]]:
    builder = SeriesBuilder()
    gaps = read_smi(path, path.name, builder)
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for labels, times, values in each(builder.build()):
        of = dict(labels)
        points = zip((times - T0).round(3).tolist(), values.tolist(), strict=True)
        found.setdefault((of[NAME], of.get("pid", of["gpu"])), []).extend(points)
    return found, gaps


def of(name: str) -> Found:
    return read(FIXTURES / f"{name}.txt")[0]


def text(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text("utf-8")


MI300 = {
    "amdsmi_power_watts": 612.0,
    "amdsmi_utilization_ratio": 0.99,
    "amdsmi_memory_activity_ratio": 0.41,
    "amdsmi_temperature_celsius": 66.0,
    "amdsmi_memory_temperature_celsius": 58.0,
    "amdsmi_gfx_clock_hertz": 2.1e9,
    "amdsmi_memory_used_bytes": 171000 * 2.0**20,
    "amdsmi_memory_total_bytes": 196592 * 2.0**20,
}
H100 = {
    "smi_power_watts": 412.0,
    "smi_utilization_ratio": 0.99,
    "smi_temperature_celsius": 61.0,
    "smi_memory_used_bytes": 70210 * 2.0**20,
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvidia_dmon", {**H100, "smi_sm_clock_hertz": 1.755e9, "smi_memory_clock_hertz": 2.619e9,
                         "smi_memory_temperature_celsius": 74.0, "smi_ecc_corrected_total": 0.0,
                         "smi_ecc_uncorrectable_total": 2.0, "smi_pcie_replay_total": 0.0}),
        ("nvidia_table", {**H100, "smi_power_limit_watts": 700.0,
                          "smi_memory_total_bytes": 81559 * 2.0**20,
                          "smi_ecc_uncorrectable_total": 0.0}),
        ("nvidia_text", {
            "smi_power_watts": 412.5, "smi_power_limit_watts": 700.0,
            "smi_utilization_ratio": 0.99, "smi_temperature_celsius": 87.0,
            "smi_memory_temperature_celsius": 94.0, "smi_sm_clock_hertz": 9e8,
            "smi_sm_clock_max_hertz": 1.98e9, "smi_memory_clock_hertz": 2.619e9,
            "smi_memory_used_bytes": 70210 * 2.0**20, "smi_memory_total_bytes": 81559 * 2.0**20,
            "smi_clock_event_reasons": float(0x4 | 0x8 | 0x40), "smi_pcie_replay_total": 4.0,
            "smi_ecc_corrected_total": 6.0, "smi_ecc_uncorrectable_total": 2.0,
            "smi_row_remap_uncorrectable_total": 1.0, "smi_row_remap_pending": 1.0,
            "smi_row_remap_failed": 0.0}),
        ("rocm_table", {"amdsmi_power_watts": 612.0, "amdsmi_temperature_celsius": 66.0,
                        "amdsmi_gfx_clock_hertz": 2.1e9, "amdsmi_memory_clock_hertz": 1.3e9,
                        "amdsmi_power_limit_watts": 750.0, "amdsmi_utilization_ratio": 1.0}),
        ("rocm_json", {"amdsmi_power_watts": 236.0, "amdsmi_power_limit_watts": 300.0,
                       "amdsmi_utilization_ratio": 0.98, "amdsmi_temperature_celsius": 53.0,
                       "amdsmi_memory_temperature_celsius": 58.0,
                       "amdsmi_gfx_clock_hertz": 1.7e9, "amdsmi_memory_clock_hertz": 1.6e9,
                       "amdsmi_memory_used_bytes": 6.8e10,
                       "amdsmi_memory_total_bytes": 68702699520.0}),
        ("rocm_csv", {"amdsmi_power_watts": 236.0, "amdsmi_utilization_ratio": 0.98,
                      "amdsmi_temperature_celsius": 53.0, "amdsmi_gfx_clock_hertz": 1.7e9,
                      "amdsmi_memory_used_bytes": 6.8e10,
                      "amdsmi_memory_total_bytes": 68702699520.0,
                      "amdsmi_pcie_replay_total": 7.0}),
        ("amd_text", {**MI300, "amdsmi_memory_clock_hertz": 1.3e9,
                      "amdsmi_gfx_clock_max_hertz": 2.1e9, "amdsmi_ecc_corrected_total": 3.0,
                      "amdsmi_ecc_uncorrectable_total": 1.0}),
        ("amd_json", {**MI300, "amdsmi_memory_clock_hertz": 1.3e9,
                      "amdsmi_gfx_clock_max_hertz": 2.1e9, "amdsmi_ecc_corrected_total": 3.0,
                      "amdsmi_ecc_uncorrectable_total": 1.0}),
        ("amd_csv", {**MI300, "amdsmi_memory_clock_hertz": 1.3e9,
                     "amdsmi_gfx_clock_max_hertz": 2.1e9}),
        ("amd_monitor", {**MI300, "amdsmi_memory_used_bytes": 166.9 * 2.0**30,
                         "amdsmi_memory_total_bytes": 192 * 2.0**30,
                         "amdsmi_ecc_corrected_total": 3.0}),
        ("amd_monitor_csv", MI300),
    ],
)  # fmt: skip
def test_the_first_gpu_has_these_values(name: str, expected: dict[str, float]) -> None:
    """In base units, at the time that is said; and no value that is not there."""
    found = of(name)

    assert {metric: points[0] for (metric, gpu), points in found.items() if gpu == "0"} == {
        metric: (0.0, pytest.approx(value)) for metric, value in expected.items()
    }


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("nvidia_dmon", {"smi_memory_temperature_celsius", "smi_ecc_uncorrectable_total"}),
        ("nvidia_table", {"smi_power_watts", "smi_temperature_celsius", "smi_utilization_ratio"}),
        ("nvidia_text", {"smi_power_watts", "smi_utilization_ratio", "smi_clock_event_reasons"}),
        ("rocm_table", {"amdsmi_power_watts", "amdsmi_power_limit_watts"}),
        ("rocm_json", {"amdsmi_power_watts", "amdsmi_utilization_ratio"}),
        ("rocm_csv", {"amdsmi_power_watts"}),
        ("amd_text", {"amdsmi_power_watts", "amdsmi_utilization_ratio"}),
        ("amd_json", {"amdsmi_power_watts", "amdsmi_utilization_ratio"}),
        ("amd_csv", {"amdsmi_power_watts", "amdsmi_utilization_ratio"}),
        ("amd_monitor", {"amdsmi_power_watts"}),
    ],
)
def test_what_is_not_available_is_no_value(name: str, missing: set[str]) -> None:
    """Neither 0 nor anything else: `N/A`, `-`, `ERR!`."""
    assert not {metric for metric, gpu in of(name) if gpu == "1"} & missing


def test_the_edges_temperature_goes_before_the_hotspots() -> None:
    """Where it is measured."""
    assert of("amd_csv")["amdsmi_temperature_celsius", "1"] == [(0.0, 40.0)]
    assert of("rocm_csv")["amdsmi_temperature_celsius", "1"] == [(0.0, 41.0)]


@pytest.mark.parametrize(
    ("name", "metric", "points"),
    [
        ("nvidia_dmon", "smi_power_watts", [(0.0, 412.0), (1.0, 415.0)]),
        ("nvidia_table", "smi_power_watts", [(0.0, 412.0), (5.0, 415.0)]),
        ("rocm_table", "amdsmi_power_watts", [(0.0, 612.0), (10.0, 615.0)]),
        ("rocm_json", "amdsmi_power_watts", [(0.0, 236.0), (10.0, 240.0)]),
        ("rocm_csv", "amdsmi_power_watts", [(0.0, 236.0), (10.0, 240.0)]),
        ("amd_monitor", "amdsmi_power_watts", [(0.0, 612.0), (5.0, 615.0)]),
    ],
)
def test_a_loop_is_a_series(name: str, metric: str, points: list[tuple[float, float]]) -> None:
    """By the form's own times, or by the dates between the documents."""
    assert of(name)[metric, "0"] == points


def test_processes_are_told_apart() -> None:
    """A GPU that nobody uses has none; a command keeps its blanks."""
    found = of("nvidia_pmon")
    assert found["smi_process_utilization_ratio", "41122"] == [(0.0, 0.97), (1.0, 0.96)]
    assert found["smi_process_memory_bytes", "41999"] == [(1.0, 12 * 2.0**20)]
    assert len({gpu for _, gpu in found}) == 2


@pytest.mark.parametrize("name", ["rocm_table", "rocm_json", "rocm_csv", "nvidia_table"])
def test_without_a_date_nothing_is_a_series(name: str, tmp_path: Path) -> None:
    """However many documents there are: a snapshot says nothing of when."""
    marks = ("2026-11-20T10:00", "Fri Nov 20", "17951688")
    kept = [line for line in text(name).split("\n") if not line.startswith(marks)]
    path = tmp_path / "smi.txt"
    path.write_text("\n".join(kept), "utf-8")

    found, gaps = read(path)
    assert found == {}
    assert "carry no time, and are no series" in gaps[0].reason


def test_counters_of_a_snapshot_are_a_lower_bound(tmp_path: Path) -> None:
    """They were no less by the end; the gap says so of the place."""
    found, gaps = read(FIXTURES / "nvidia_dmon_undated.txt")
    assert found == {}
    assert "they show at least 3 ecc_uncorrectable on GPU 1" in gaps[0].reason


@pytest.mark.parametrize("option", ["D", "T"])
def test_half_a_time_is_none(option: str, tmp_path: Path) -> None:
    """`-o T` lacks the day, `-o D` the hour."""
    drop = 0 if option == "T" else 1
    lines = []
    for line in text("nvidia_dmon").splitlines():
        words = line.replace("#", "# ", 1).split() if line.startswith("#") else line.split()
        at = 1 if line.startswith("#") else 0
        del words[at + drop]
        lines.append(" ".join(words).replace("# ", "#", 1))
    path = tmp_path / "dmon.txt"
    path.write_text("\n".join(lines) + "\n")

    found, gaps = read(path)
    assert found == {}
    assert "carry no time" in gaps[0].reason


def test_a_column_in_another_unit_is_not_read(tmp_path: Path) -> None:
    """A power in milliwatts would be a thousand times too high."""
    path = tmp_path / "dmon.txt"
    path.write_text(text("nvidia_dmon").replace("Idx      W", "Idx     mW"))
    assert ("smi_power_watts", "0") not in read(path)[0]
    assert ("smi_temperature_celsius", "0") in read(path)[0]


def test_a_zone_that_is_said_is_heeded(tmp_path: Path) -> None:
    """One that is not is a gap, as it is for the tools that print local time."""
    path = tmp_path / "smi.json"
    path.write_text(
        text("rocm_json").replace("Fri Nov 20 10:00:00 UTC 2026", "2026-11-20 12:00:00+02:00")
    )
    found, gaps = read(path)
    assert found["amdsmi_power_watts", "0"][0] == (0.0, 236.0)
    assert gaps == ()
    path.write_text(text("rocm_json").replace("UTC ", ""))
    assert [gap.need for gap in read(path)[1]] == ["time zone"]


@pytest.mark.parametrize("path", sorted(FIXTURES.iterdir()), ids=lambda p: p.stem)
def test_a_log_that_begins_so_stays_a_log(path: Path) -> None:
    """What the job said behind it must not be lost; nor is a table that was cut off one less."""
    raw = path.read_bytes()
    assert recognise("job.out", raw)
    if "json" not in path.stem:
        assert not recognise("job.out", raw + b"\nLoading the model\nstep 1 loss 2.0\n")
        cut = raw[: raw.rstrip().rindex(b"\n") + 5]
        assert form_of(cut) is form_of(raw)


def test_each_form_is_recognised_by_one(tmp_path: Path) -> None:
    """And each has a fixture."""
    seen = set()
    for path in FIXTURES.iterdir():
        head = path.read_bytes().lstrip()
        owners = [form for form in forms() if form.recognise(head)]
        assert len(owners) == 1, (path.name, owners)
        seen.add(owners[0])
    assert len(forms()) - len(seen) == 2  # CSV and XML of nvidia-smi have theirs in test_smi


@pytest.mark.parametrize("path", sorted(FIXTURES.iterdir()), ids=lambda p: p.stem)
def test_a_file_cut_anywhere_is_read_as_far_as_it_goes(path: Path, tmp_path: Path) -> None:
    """Nothing that was not there comes out of it, and no error that is not ours."""
    raw = path.read_bytes()
    whole, _ = read(path)
    cut = tmp_path / path.name
    for size in range(0, len(raw), max(1, len(raw) // 60)):
        cut.write_bytes(raw[:size])
        try:
            found, _ = read(cut)
        except FormatError:
            continue
        for key, points in found.items():
            assert len(points) <= len(whole.get(key, points)), (size, key)


def test_canonical_signals_come_of_amds_tools() -> None:
    """Through their vocabulary."""
    path = FIXTURES / "amd_monitor.txt"
    metrics = MetricsSource([(path, path.name)])
    found = metrics.ask("gpu_power_watts", step_s=0)
    assert [(row.place.gpu, row.last) for row in found.rows] == [("0", 615.0)]
    assert metrics.replay(found.cite(found.rows[0], "power")) == 615.0


@pytest.mark.skipif(not REAL.is_dir(), reason="no recorded captures beside the project")
def test_what_real_cards_printed_is_read(tmp_path: Path) -> None:
    """An H200's table, -q, dmon and pmon, and rocm-smi's JSON of an MI100."""
    capture = (
        REAL / "nvidia_gpu_exporter/internal/demodata/linux-x86_64__nvidia-h200__590.48.01.txt"
    )
    sections = capture.read_text("utf-8").split("# $ nvidia-smi")
    seen = {}
    for section in sections:
        command, _, body = section.partition("\n")
        body = body.partition("\n")[2].partition("\n#####")[0]
        form = form_of(body.encode())
        if command.split()[:1] in ([], ["-q"], ["dmon"], ["pmon"]) and len(body) > 200:
            assert form is not None, command
            rows = list(form.read(body))
            seen[command.strip()] = rows[-1].values if rows else {}
    assert seen[""]["smi_power_watts"] == 628
    assert seen["-q"]["smi_memory_total_bytes"] == 143771 * 2.0**20
    assert seen["dmon -c 5"]["smi_utilization_ratio"] == 1
    for path in sorted((REAL / "telegraf-gpu/amd_rocm_smi/testdata").glob("*.json")):
        form = form_of(path.read_bytes()[:65536])
        assert form is not None, path.name
        rows = list(form.read(path.read_text()))
        assert all("amdsmi_temperature_celsius" in row.values for row in rows)
