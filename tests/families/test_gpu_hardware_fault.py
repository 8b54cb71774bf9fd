"""B2 by counters: what rose, what is old, and what vanished."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copytree

import pytest

from families.fleet import T0, checked, facts_of, findings, sample, stepping
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.families.gpu_hardware_fault import judge
from flatline.model import Attempt, Finding, Place, Verdict
from scenario import ROOT, Scenario

ECC, XID, WATTS = (
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_DEV_POWER_USAGE",
)
RECOVERIES = "NVLINK_RECOVERY_ERROR_COUNT_TOTAL"
Reading = Callable[[int, float], dict[str, float]]
"""(GPU, seconds) -> what differs from a sound one; nothing at all under the key `gone`."""


def judged(
    tmp_path: Path, differs: Reading, stops_s: float = 600, **more: object
) -> tuple[Finding, ...]:
    """Two hosts of four GPUs, read every 30 s for twenty minutes."""
    lines = []
    for gpu in range(8):
        for at in range(0, 1200, 30):
            odd = differs(gpu, at)
            read = {ECC: 0.0, XID: 0.0, WATTS: 400.0 + at % 7, **odd}
            labels = f'gpu="{gpu % 4}",Hostname="n{gpu // 4}",UUID="GPU-{gpu}",job="dcgm"'
            if "gone" not in odd:
                lines += [sample(name, labels, value, at) for name, value in read.items()]
    facts, source = facts_of(tmp_path, lines, stepping(stops_s), **more)
    return findings(checked(judge(facts), source))


def test_a_rise_as_the_run_stops_is_the_cause(tmp_path: Path) -> None:
    """Named with its GPU and its time."""
    (found,) = judged(tmp_path, lambda gpu, at: {ECC: 1.0} if gpu == 5 and at > 570 else {})

    assert found.culprits == (Place(host="n1", gpu="1"),)
    assert (found.role, found.fault_class, found.ended_run) == ("cause", "memory", True)


def test_old_errors_are_a_warning(tmp_path: Path) -> None:
    """Since boot, and flat: they did not stop this run."""
    (found,) = judged(tmp_path, lambda gpu, at: {ECC: 7.0} if gpu == 5 else {})

    assert (found.role, found.onset) == ("warning", None)


def test_a_rise_long_before_the_end_is_a_warning(tmp_path: Path) -> None:
    """The run went on for minutes: it survived."""
    (found,) = judged(tmp_path, lambda gpu, at: {ECC: 1.0} if gpu == 5 and at > 200 else {})

    assert (found.role, found.ended_run) == ("warning", False)


def test_a_rise_after_the_run_had_stopped_is_nobodys_cause(tmp_path: Path) -> None:
    """The next job's, or the test that was run on the node."""
    assert judged(tmp_path, lambda gpu, at: {ECC: 1.0} if gpu == 5 and at > 1000 else {}) == ()


def test_a_rise_in_the_scrape_behind_the_runs_end_is_its_cause(tmp_path: Path) -> None:
    """The last reading within the run came before the fault; what rises minutes later is
    another's."""
    ended = datetime.fromtimestamp(T0 + 605, UTC)
    died = (Attempt(0, "failed", ended_at=ended),)

    def rises(after: float) -> Reading:
        return lambda gpu, at: {ECC: 2.0} if gpu == 5 and at > after else {}

    (found,) = judged(tmp_path, rises(605), attempts=died)

    assert (found.culprits, found.role) == ((Place(host="n1", gpu="1"),), "cause")
    assert judged(tmp_path, rises(700), attempts=died) == ()


def test_a_completed_run_was_not_ended(tmp_path: Path) -> None:
    """A rise in its last minute is a warning."""
    done = (Attempt(0, "completed"),)
    (found,) = judged(
        tmp_path, lambda gpu, at: {ECC: 1.0} if gpu == 5 and at > 570 else {}, attempts=done
    )

    assert found.role == "warning"


@pytest.mark.parametrize(("code", "kind"), [(79, "bus"), (48, "memory"), (119, "firmware")])
def test_an_xid_of_the_hardware_that_appears(tmp_path: Path, code: int, kind: str) -> None:
    """The gauge changes within the run."""
    (found,) = judged(tmp_path, lambda gpu, at: {XID: code} if gpu == 2 and at > 570 else {})

    assert (found.fault_class, found.role) == (kind, "cause")


@pytest.mark.parametrize("code", [13, 31, 43, 45, 63])
def test_an_xid_of_the_program_is_no_fault_of_the_gpu(tmp_path: Path, code: int) -> None:
    """Nor is a remapping that worked."""
    assert judged(tmp_path, lambda gpu, at: {XID: code} if gpu == 2 and at > 570 else {}) == ()


def test_an_xid_that_stays_is_no_event(tmp_path: Path) -> None:
    """The last one seen, from before the run."""
    (found,) = judged(tmp_path, lambda gpu, at: {XID: 79} if gpu == 2 else {})

    assert found.role == "warning"


def test_a_gpu_that_vanishes_beside_its_neighbours(tmp_path: Path) -> None:
    """Lost from the bus."""
    (found,) = judged(tmp_path, lambda gpu, at: {"gone": 1} if gpu == 6 and at > 590 else {})

    assert (found.fault_class, found.culprits) == ("lost", (Place(host="n1", gpu="2"),))


def test_a_host_that_vanishes_whole_is_no_gpus_fault(tmp_path: Path) -> None:
    """Its exporter, or the host."""
    assert judged(tmp_path, lambda gpu, at: {"gone": 1} if gpu > 3 and at > 590 else {}) == ()


def test_one_missed_scrape_is_no_loss(tmp_path: Path) -> None:
    """Every exporter times out once."""
    assert judged(tmp_path, lambda gpu, at: {"gone": 1} if gpu == 6 and at == 600 else {}) == ()


def test_a_rise_is_seen_whatever_else_the_exporter_labels(tmp_path: Path) -> None:
    """A difference of two queries keeps fewer labels than the counter has."""
    lines = []
    for at in range(0, 1200, 30):
        for gpu in range(4):
            labels = f'gpu="{gpu}",UUID="GPU-{gpu}",device="nvidia{gpu}",Hostname="n0"'
            rose = float(gpu == 3) * max(0, at - 300) // 100
            lines += [
                sample(f"DCGM_FI_DEV_{RECOVERIES}", labels, rose, at),
                sample(WATTS, labels, 400.0 + at % 7, at),
            ]
    facts, source = facts_of(tmp_path, lines, stepping(1190), attempts=(Attempt(0, "completed"),))

    (found,) = findings(checked(judge(facts), source))

    assert found.culprits == (Place(host="n0", gpu="3"),)
    assert (found.role, found.fault_class) == ("warning", "link")
    assert found.onset is not None


def test_a_fault_within_a_sound_run_keeps_it_from_being_surely_healthy() -> None:
    """An Xid of a link, or a link trained anew, at a steady pace: the run ended well."""
    for name in ("gpu_link_errs_at_a_steady_pace", "gpu_link_recovered_and_run_went_on"):
        folder = ROOT / name
        verdict = Scenario(folder, tomllib.loads((folder / "expect.toml").read_text())).verdict()

        assert (verdict.state, verdict.confidence < 0.8) == ("healthy", True)
        assert [(j.finding.code, j.role) for j in verdict.findings] == [("B2", "warning")]
        assert any("Whether the fault" in said for said in verdict.cannot_decide)


@pytest.mark.parametrize(("said", "warned"), [("08:05:07", True), ("07:05:07", False)])
def test_a_kernel_line_that_a_sound_run_survived(tmp_path: Path, said: str, warned: bool) -> None:
    """Within the run it is a warning; an hour before its first step the family stays open."""
    copytree(ROOT / "gpu_counters_and_kernel_log_clean" / "run", tmp_path, dirs_exist_ok=True)
    with (tmp_path / "dmesg.txt").open("a") as log:
        log.write(
            f"[Wed Mar  4 {said} 2026] NVRM: Xid (PCI:0000:9b:00): 74, pid='<unknown>',"
            " name=<unknown>, NVLink: fatal error detected on link 4(0x10000, 0x0, 0x0)\n"
        )

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.state == "healthy"
    assert (verdict.confidence < 0.8) == warned
    assert [(j.finding.code, j.role) for j in verdict.findings] == [("B2", "warning")] * warned
    assert "B2" not in {ruled.code for ruled in verdict.ruled_out}


XID_LINE = (
    "{at} n1 kernel: NVRM: Xid (PCI:0000:9d:00): 48, pid='<unknown>', name=<unknown>, An"
    " uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer\n"
)


def beside_a_kernel_log(folder: Path, stamp: str, hours: float, files: str) -> Verdict:
    """What is said of a kernel log with an Xid `hours` before the first metric, and of metrics and
    an undated log where `files` asks for them."""
    start = datetime.fromtimestamp(T0, UTC)
    at = start - timedelta(hours=hours)
    later = (start + timedelta(minutes=10)).strftime(stamp)
    (folder / "kern-n1.log").write_text(
        XID_LINE.format(at=at.strftime(stamp)) + f"{later} n1 kernel: nvidia-uvm: Loaded\n"
    )
    if "metrics" in files:
        lines = [sample(WATTS, f'gpu="{gpu}",Hostname="n1"', 400.0 + when % 7, when)
                 for gpu in range(4) for when in range(0, 1200, 30)]  # fmt: skip
        (folder / "metrics.prom").write_text("\n".join(lines) + "\n")
    if "log" in files:
        steps = "".join(f"step {n}/900 loss {9 / (n + 3):.4f}\n" for n in range(1, 200))
        (folder / "train.log").write_text(steps)
    return diagnose(collect(Request((str(folder),))))


YEARLESS, WHOLE = "%b %d %H:%M:%S", "%Y-%m-%dT%H:%M:%S+00:00"


@pytest.mark.parametrize("stamp", [YEARLESS, WHOLE])
@pytest.mark.parametrize("files", ["metrics", "metrics log"])
def test_an_xid_of_days_before_the_first_metric_is_a_warning(
    tmp_path: Path, stamp: str, files: str
) -> None:
    """Whether its stamps have a year or not; no counter has to tell of it."""
    found = beside_a_kernel_log(tmp_path, stamp, 72, files)

    assert found.code != "B2"
    (warning,) = [one for one in found.findings if one.finding.code == "B2"]
    assert warning.role == "warning"
    assert {place.host for place in warning.finding.culprits} == {"n1"}


@pytest.mark.parametrize("stamp", [YEARLESS, WHOLE])
@pytest.mark.parametrize(("hours", "files"), [(72, ""), (-0.2, "metrics"), (3, "metrics")])
def test_an_xid_that_may_be_of_the_run_is_a_fault(
    tmp_path: Path, stamp: str, hours: float, files: str
) -> None:
    """A kernel log that is all there is, one of the time of the metrics, and one that is off by no
    more than zones are."""
    found = beside_a_kernel_log(tmp_path, stamp, hours, files)

    assert (found.code, {place.host for place in found.culprits}) == ("B2", {"n1"})


def _linked(
    tmp_path: Path, took: Callable[[float], float], errors: Callable[[float], float]
) -> Finding | None:
    """What is said of a link that counts errors on one of sixteen GPUs, by a run of an hour."""
    lines = [
        sample("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
               f'Hostname="n{gpu // 8}",gpu="{gpu % 8}"', errors(at) if gpu == 5 else 0, at)
        for at in range(0, 3600, 30) for gpu in range(16)
    ]  # fmt: skip
    facts, source = facts_of(tmp_path, lines, stepping(3600, took))
    found = findings(checked(judge(facts), source))
    return next((one for one in found if one.role == "cause"), None)


def _warming(at: float) -> float:
    return 8.0 if at < 30 else 4.0


def _twice(at: float) -> bool:
    return 1200 <= at < 1800 or 2700 <= at < 3300


@pytest.mark.parametrize(
    ("took", "errors", "onset"),
    [
        pytest.param(lambda at: _warming(at) + 0.5 * (at > 1500),
                     lambda at: max(0.0, at - 1500), 1500, id="warm-up-first"),
        pytest.param(lambda at: 4.0 + 2.0 * (300 < at < 400) + 0.5 * _twice(at),
                     lambda at: sum(map(_twice, range(int(at)))), 1200,
                     id="a-worse-phase-without"),
        pytest.param(_warming, lambda at: max(0.0, at - 1500), None, id="warm-up-alone"),
        pytest.param(lambda at: _warming(at) + 0.5 * (at > 1500), lambda at: 9 * at, None,
                     id="errors-all-along"),
    ],
)  # fmt: skip
def test_a_link_slows_the_phases_in_which_it_errs(
    tmp_path: Path,
    took: Callable[[float], float],
    errors: Callable[[float], float],
    onset: float | None,
) -> None:
    """Whatever slower phase comes before it: the first steps, or one with another cause."""
    found = _linked(tmp_path, took, errors)

    assert (found is None) == (onset is None)
    if found is not None and onset is not None:
        assert (found.fault_class, [str(place) for place in found.culprits]) == (
            "link", ["GPU 5 on n0"])  # fmt: skip
        assert found.onset is not None
        assert abs(found.onset.timestamp() - T0 - onset) < 60


ERROR = (
    "Traceback (most recent call last):\n"
    '  File "/home/u/sft.py", line 129, in main\n'
    "    trainer.train()\n"
    "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
)
SEEN = (
    "2025-04-02T23:09:57.800993+00:00 {host} kernel: NVRM: Xid (PCI:0000:{bus}:00): 95,"
    " pid=311204, name=python, Uncontained: LTC TAG (0x7,0x0). RST: Yes, D-RST: No\n"
)


@pytest.mark.parametrize(
    ("kernel", "named"),
    [
        (SEEN.format(host="ax021", bus="52"), [("ax021", "PCI:0000:52:00")]),
        ("".join(SEEN.format(host="ax021", bus=bus) for bus in ("52", "c1")), []),
        (SEEN.format(host="ax021", bus="52") + SEEN.format(host="ax022", bus="52"), []),
    ],
    ids=["one card", "two cards", "two hosts"],
)
def test_the_kernel_says_which_card_the_program_speaks_of(
    tmp_path: Path, kernel: str, named: list[tuple[str, str]]
) -> None:
    """The program knows its error, and neither host nor card."""
    steps = "".join(f"step {n}/900 loss {3 - n / 50:.3f}\n" for n in range(1, 60))
    (tmp_path / "train.log").write_text(steps + ERROR)
    (tmp_path / "kern.log").write_text(kernel)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "B2"
    assert [(place.host, place.device) for place in verdict.culprits] == named


UPTIME = (
    "[{at}.008138] NVRM: Xid (PCI:0000:52:00): 94, pid=50121, name=python, Contained: SM (0x1)\n"
)


@pytest.mark.parametrize(("later", "named"), [(0, True), (60, True), (9 * 86400, False)])
def test_an_old_line_of_a_kernel_log_without_times(
    tmp_path: Path, later: int, named: bool
) -> None:
    """What the kernel wrote last is of now, at most."""
    steps = "".join(f"step {n}/900 loss {3 - n / 50:.3f}\n" for n in range(1, 60))
    (tmp_path / "train.log").write_text(steps + ERROR)
    last = f"[{920000 + later}.000001] docker0: port 3 entered disabled state\n"
    (tmp_path / "ax021.dmesg").write_text(UPTIME.format(at=920000) + (last if later else ""))
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|NodeList\n77|train|FAILED|1:0|ax[021-024]\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "B2"
    assert [place.host for place in verdict.culprits] == (["ax021"] if named else [])


@pytest.mark.parametrize(
    ("cards", "after_s", "gpu"),
    [((5,), 110, "5"), ((5, 6), 110, None), ((5,), 900, None), ((), 110, None)],
    ids=["one", "two", "much later", "none"],
)
def test_a_counter_that_is_read_again_after_the_reset(
    tmp_path: Path, cards: tuple[int, ...], after_s: int, gpu: str | None
) -> None:
    """The kernel names an address alone; the run is over before the card can be read again."""
    broke = datetime(2026, 3, 1, 10, 30, tzinfo=UTC)
    steps = "".join(
        f"{broke - timedelta(seconds=10 * (90 - n)):%Y-%m-%d %H:%M:%S} step {n}/900"
        f" loss {3 - n / 50:.3f}\n"
        for n in range(1, 90)
    )
    (tmp_path / "train.log").write_text(steps + "Fatal Python error: Aborted\n")
    (tmp_path / "kern.log").write_text(
        f"{broke:%Y-%m-%dT%H:%M:%S}.000000+00:00 n7 kernel: amdgpu 0000:9f:00.0: amdgpu: 2 new"
        " uncorrectable hardware errors detected in total in umc block\n"
    )
    (tmp_path / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
        "9|FAILED|1:0|2026-03-01T10:00:00|2026-03-01T10:30:20|1|n7\n"
    )
    rows = [
        f'{name}{{gpu_id="{card}",hostname="n7",card_model="MI300X"}} {value}'
        f" {int((broke.timestamp() + second) * 1000)}\n"
        for name in ("gpu_ecc_uncorrect_total", "gpu_average_package_power", "gpu_gfx_activity")
        for card in range(8)
        for second in range(-1800, 1200, 30)
        for value in [
            90
            if name != "gpu_ecc_uncorrect_total"
            else 2
            if card in cards and second >= after_s
            else 0
        ]
    ]
    (tmp_path / "metrics.prom").write_text("".join(rows))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "B2"
    assert [(place.host, place.gpu) for place in verdict.culprits] == [("n7", gpu)]


@pytest.mark.parametrize(("of", "at"), [("fine-worker-0", ("n2", "2")), ("fine-worker-7", None)])
def test_a_process_that_calls_its_host_by_its_pod(
    tmp_path: Path, of: str, at: tuple[str, str] | None
) -> None:
    """Whose GPUs were read under their node's name, in pieces: of one that none held, it stays."""
    held = {"n1": "fine-master-0", "n2": of}
    rows = []
    for metric in ("DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_POWER_USAGE"):
        for host, pod in held.items():
            for gpu in "0123":
                for t in range(0, 2700, 30):
                    broken = (host, gpu) == ("n2", "2") and t > 2400
                    value = (94 if broken else 0) if "XID" in metric else 400
                    mine = f',exported_pod="{pod}"' if t <= 2430 else ""
                    rows.append(sample(metric, f'gpu="{gpu}",Hostname="{host}"{mine}', value, t))
    (tmp_path / "dcgm.prom").write_text("\n".join(rows) + "\n")
    when = datetime.fromtimestamp(T0, UTC)
    (tmp_path / "fine-master-0.log").write_text("".join(
        f"{when + timedelta(seconds=10 * n):%Y-%m-%d %H:%M:%S} step {n}/900 loss {3 - n / 200}\n"
        for n in range(1, 241)))  # fmt: skip
    ended = f"{when + timedelta(seconds=2405):%Y-%m-%d_%H:%M:%S}"
    (tmp_path / "fine-worker-0.log").write_text(
        "[rank6]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
        "sft.py FAILED\nRoot Cause (first observed failure):\n[0]:\n"
        f"  time      : {ended}\n  host      : fine-worker-0\n"
        "  rank      : 6 (local_rank: 2)\n  exitcode  : 1 (pid: 131)\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))
    (place,) = verdict.culprits

    assert (verdict.code, place.rank) == ("B2", 6)
    assert (place.host, place.gpu) == (at or ("fine-worker-0", None))
