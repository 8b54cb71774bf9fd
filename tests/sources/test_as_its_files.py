"""What a server answers of a run is what its files hold: the same verdict from both."""

from __future__ import annotations

import gzip
import random
import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict
from scenario import ROOT
from sources.servers import free_port, program, running, wait_for

BEGAN = datetime(2026, 3, 4, 8, tzinfo=UTC)
MINUTES = 90
_SAMPLE = re.compile(r"(.*\}|\S+) (\S+) (\d{13})$")
UUIDS = {(host, gpu): f"{host}{gpu:011d}-77aa" for host in range(4) for gpu in range(8)}


@contextmanager
def served(folder: Path, rows: list[str]) -> Iterator[str]:
    """The address of a VictoriaMetrics that holds these samples."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [program("victoria-metrics"), f"-storageDataPath={folder / 'vm'}",
               f"-httpListenAddr=127.0.0.1:{port}", "-retentionPeriod=100y",
               "-search.latencyOffset=0s"]  # fmt: skip
    with running(command, f"{url}/api/v1/labels"):
        asked = urllib.request.Request(f"{url}/api/v1/import/prometheus", "\n".join(rows).encode())
        urllib.request.urlopen(asked, timeout=60).read()
        urllib.request.urlopen(f"{url}/internal/force_flush", timeout=30).read()
        yield url


def both(folder: Path, rows: list[str]) -> tuple[Verdict, Verdict]:
    """By the files of a folder and its metrics beside them, and by the server that holds these."""
    run = folder / "run"
    with served(folder, rows) as url:
        request = Request((str(run),), prometheus=url)
        wait_for(lambda: collect(request).window is not None)
        live = diagnose(collect(request))
    (run / "metrics.prom").write_text("\n".join(rows) + "\n")
    return diagnose(collect(Request((str(run),)))), live


def same(one: Verdict, other: Verdict) -> bool:
    return (one.code, one.fault_class, one.culprits) == (
        other.code, other.fault_class, other.culprits
    )  # fmt: skip


def slow(minute: float) -> bool:
    return 30 <= minute < 60


def leave(folder: Path, zone_h: int, *, running: bool = False) -> None:
    """The run's log and record in local time: steps of 2 s, of 2.8 in the slow half hour."""
    (folder / "run").mkdir()
    noise, at, rows, off = random.Random(4), 0.0, [], timedelta(hours=zone_h)
    for step in range(1, 100_000):
        step_s = (2.8 if slow(at / 60) else 2.0) * noise.gauss(1, 0.004)
        if (at := at + step_s) > MINUTES * 60:
            break
        stamp = f"{BEGAN + off + timedelta(seconds=at):%Y-%m-%d %H:%M:%S}"
        rows.append(f"{stamp},000 INFO step {step}/9000 loss {9 / step + 2:.4f}"
                    f" step_time_s {step_s:.3f}")  # fmt: skip
    (folder / "run" / "train.log").write_text("\n".join(rows) + "\n")
    begun, ended = (
        f"{BEGAN + off + timedelta(minutes=m):%Y-%m-%dT%H:%M:%S}" for m in (-2, MINUTES)
    )
    state, ended = ("RUNNING", "Unknown") if running else ("COMPLETED", ended)
    (folder / "run" / "sacct.txt").write_text(
        "JobID|JobName|Partition|State|ExitCode|Start|End|Elapsed|NNodes|NodeList\n"
        f"71|train|gpu|{state}|0:0|{begun}|{ended}|01:32:00|4|n[0-3]\n"
    )


def read_each_minute() -> Iterator[tuple[int, float, str]]:
    for host in range(4):
        for half in range(-4, 2 * MINUTES + 1):
            minute = half / 2
            yield host, minute, str(int((BEGAN + timedelta(minutes=minute)).timestamp() * 1000))


def contended() -> list[str]:
    """node_exporter's own metrics beside the one that names its host, and dcgm-exporter's."""
    noise, rows = random.Random(5), []
    for host, minute, at in read_each_minute():
        where = f'instance="10.0.0.{host + 1}:9100",job="node"'
        queue = 240 if host == 2 and slow(minute) else 12
        rows.append(f'node_uname_info{{{where},nodename="n{host}"}} 1 {at}')
        rows.append(f"node_procs_running{{{where}}} {queue * noise.gauss(1, 0.05):.0f} {at}")
        for gpu in range(8):
            busy = 0.6 if slow(minute) else 0.85
            rows.append(f'DCGM_FI_PROF_SM_ACTIVE{{Hostname="n{host}",gpu="{gpu}"}}'
                        f" {busy * noise.gauss(1, 0.01):.3f} {at}")  # fmt: skip
    return rows


def throttled() -> list[str]:
    """nvidia_gpu_exporter's, which names GPUs by UUID and tells their index in a metric."""
    noise, rows = random.Random(6), []
    for host, minute, at in read_each_minute():
        for gpu in range(8):
            held = (host, gpu) == (1, 6) and slow(minute)
            watts = 310 if held else 520
            where = f'{{uuid="{UUIDS[host, gpu]}",instance="n{host}:9835"}}'
            rows += [
                f"nvidia_smi_index{where} {gpu} {at}",
                f"nvidia_smi_clocks_current_sm_clock_hz{where} {1.2e9 if held else 1.9e9} {at}",
                f"nvidia_smi_power_draw_watts{where} {watts * noise.gauss(1, 0.01):.1f} {at}",
                f"nvidia_smi_utilization_gpu_ratio{where} 0.99 {at}",
                f"nvidia_smi_clocks_throttle_reasons_hw_thermal_slowdown{where} {int(held)} {at}",
            ]
    return rows


@pytest.mark.parametrize("zone_h", [0, -4])
def test_a_host_that_node_exporter_names(tmp_path: Path, zone_h: int) -> None:
    leave(tmp_path, zone_h)
    files, live = both(tmp_path, contended())
    assert files.code == "D5"
    assert [str(place) for place in files.culprits] == ["n2"]
    assert same(files, live)


def idle_before() -> list[str]:
    """What the GPUs drew in the half hour before the run took them."""
    return [
        f'nvidia_smi_{what}{{uuid="{uuid}",instance="n{host}:9835"}} {value}'
        f" {int((BEGAN + timedelta(minutes=minute)).timestamp() * 1000)}"
        for (host, gpu), uuid in UUIDS.items() for minute in range(-30, -2)
        for what, value in (("power_draw_watts", 70), ("index", gpu),
                            ("clocks_current_sm_clock_hz", 2.1e8))
    ]  # fmt: skip


@pytest.mark.parametrize("zone_h", [0, 3])
def test_a_run_that_still_goes_is_asked_for_to_where_its_record_was_taken(
    tmp_path: Path, zone_h: int
) -> None:
    """In local time it is where its GPUs took up work, and the samples end."""
    leave(tmp_path, zone_h, running=True)
    files, live = both(tmp_path, idle_before() + throttled())
    assert live.code == "B3"
    assert [str(place) for place in live.culprits] == ["GPU 6 on n1"]
    assert same(files, live)


def test_gpus_named_by_uuid(tmp_path: Path) -> None:
    leave(tmp_path, 2)
    files, live = both(tmp_path, throttled())
    assert files.code == "B3"
    assert [str(place) for place in files.culprits] == ["GPU 6 on n1"]
    assert same(files, live)


def test_hours_that_a_server_alone_tells_make_nothing_sure(tmp_path: Path) -> None:
    """Samples of the same hosts at other hours may be another job's: seen, and never surely. A log
    that states its zone is not moved."""
    leave(tmp_path, -4)
    with served(tmp_path, throttled()) as url:
        request = Request((str(tmp_path / "run"),), prometheus=url)
        wait_for(lambda: diagnose(collect(request)).code == "B3")
        moved = diagnose(collect(request))
        log = tmp_path / "run" / "train.log"
        log.write_text(log.read_text().replace(",000 INFO", "Z INFO"))
        stated = diagnose(collect(request))
    assert moved.confidence < 0.8
    assert any("zone" in said for said in moved.cannot_decide)
    assert stated.code != "B3"


@pytest.mark.parametrize(
    "name", ["gpu_throttled_one_of_many", "gpu_memory_errors_rose_as_run_stopped"]
)
def test_runs_recorded_elsewhere(tmp_path: Path, name: str) -> None:
    (tmp_path / "run").mkdir()
    for path in (ROOT / name / "run").iterdir():
        if not path.name.startswith("metrics"):
            (tmp_path / "run" / path.name).write_bytes(path.read_bytes())
    packed = next((ROOT / name / "run").glob("metrics.*"))
    data = packed.read_bytes()
    text = (gzip.decompress(data) if packed.suffix == ".gz" else data).decode()
    rows = [line for line in text.splitlines() if _SAMPLE.fullmatch(line)]
    assert rows
    assert same(*both(tmp_path, rows))


@pytest.mark.parametrize("status", ["Running", "Error"])
def test_pods_that_tell_no_end(tmp_path: Path, status: str) -> None:
    """Nothing says until when the run is to be looked at: it may have stood still since."""
    leave(tmp_path, 0)
    (tmp_path / "run" / "sacct.txt").unlink(missing_ok=True)
    (tmp_path / "run" / "pods.txt").write_text(
        "NAME         READY   STATUS    RESTARTS   AGE   IP          NODE\n"
        f"a-worker-0   1/1     {status}   0          2h    10.0.4.7    n0\n"
    )
    rows = [f'DCGM_FI_DEV_POWER_USAGE{{Hostname="n0",gpu="0"}} 400'
            f" {int((BEGAN + timedelta(seconds=n)).timestamp()) * 1000}"
            for n in range(0, MINUTES * 60, 60)]  # fmt: skip
    with served(tmp_path, rows) as url:
        request = Request((str(tmp_path / "run"),), prometheus=url)
        wait_for(lambda: collect(request).window is not None)
        facts = collect(request)

    assert facts.disposition in ("running", "failed")
    assert any("name --end" in gap.reason for gap in facts.gaps)


@pytest.mark.parametrize(
    ("age", "held_min", "gib", "until"),
    [("130m", 130, 60.0, 130), ("130m", 112, 60.0, 112), ("130m", 94, 60.0, None),
     ("95m", 130, 60.0, None), ("130m", 130, 0.5, None)],
    ids=["as old as that", "given back before", "given back as it ended", "no older than its log",
         "none held"],
)  # fmt: skip
def test_pods_whose_memory_is_held_on(
    tmp_path: Path, age: str, held_min: int, gib: float, until: int | None
) -> None:
    """They are no older than their list says, and live while they hold the memory of their GPUs;
    their log ends after 90 minutes."""
    leave(tmp_path, 0)
    (tmp_path / "run" / "sacct.txt").unlink()
    (tmp_path / "run" / "pods.txt").write_text(
        "NAME         READY   STATUS    RESTARTS   AGE   IP          NODE\n"
        f"a-worker-0   1/1     Running   0          {age}  10.0.4.7    n0\n"
    )
    rows = [f'DCGM_FI_DEV_FB_USED{{Hostname="n0",gpu="{gpu}"}}'
            f" {gib * 1024 if n < held_min * 60 else 3:.0f}"
            f" {int((BEGAN + timedelta(seconds=n)).timestamp()) * 1000}"
            for gpu in range(2) for n in range(0, 3 * 3600, 30)]  # fmt: skip
    with served(tmp_path, rows) as url:
        request = Request((str(tmp_path / "run"),), prometheus=url)
        wait_for(lambda: collect(request).window is not None)
        facts = collect(request)

    assert any("name --end" in gap.reason for gap in facts.gaps) == (until is None)
    assert facts.now is not None
    assert abs((facts.now - BEGAN).total_seconds() / 60 - (until or MINUTES)) < 2


def test_names_that_were_told_before_the_run(tmp_path: Path) -> None:
    """Of who answers at an address: a run of an hour may hold no sample of it."""
    leave(tmp_path, 0)
    before = int((BEGAN - timedelta(minutes=7)).timestamp() * 1000)
    rows = [f"{row.rpartition(' ')[0]} {before}" if row.startswith("node_uname_info") else row
            for row in contended()]  # fmt: skip

    files, live = both(tmp_path, list(dict.fromkeys(rows)))

    assert (live.code, [place.host for place in live.culprits]) == ("D5", ["n2"])
    assert same(files, live)
