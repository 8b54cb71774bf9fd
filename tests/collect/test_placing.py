"""Hosts of lines that name none: by the names of kernel logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place, Verdict

STEPS = "".join(f"2026-03-02 04:{n:02d}:00 step {n}/900 loss {3 - n / 50:.3f}\n" for n in range(9))
KERNEL = "[Mon Mar  2 04:08:30 2026] {}\n"
BAD = KERNEL.format(
    "amdgpu 0000:9a:00.0: amdgpu: socket: 4, die: 0, 2 new uncorrectable hardware errors detected"
    " in umc block"
)


def judged(folder: Path, name: str, nodes: str = "mi[012-014]", kernel: str = BAD) -> Verdict:
    (folder / "train.log").write_text(STEPS)
    (folder / name).write_text(kernel)
    if nodes:
        (folder / "sacct.txt").write_text(
            "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
            f"77|train|FAILED|1:0|2026-03-02T04:00:00|2026-03-02T04:09:00|{nodes}\n"
        )
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("dmesg-mi014.txt", "mi014"),
        ("mi013.site.org.kern.log", "mi013"),
        ("dmesg_mi014_20260302.txt", "mi014"),
        ("mi013-dmesg-2026-03-02T0412.log", "mi013"),
        ("dmesg-2026-03-02.txt", None),
        ("dmesg-after-reset.txt", None),
        ("dmesg.txt", None),
    ],
)
def test_a_kernel_log_named_after_a_node_of_the_record(
    tmp_path: Path, name: str, host: str | None
) -> None:
    """Whatever hosts are called there; a word beside `dmesg` is none."""
    verdict = judged(tmp_path, name)

    assert verdict.code == "B2"
    assert [place.host for place in verdict.culprits] == [host]


@pytest.mark.parametrize(("folder", "host"), [("mi013", "mi013"), ("collected", None)])
def test_a_kernel_log_in_a_folder_named_after_a_node(
    tmp_path: Path, folder: str, host: str | None
) -> None:
    """The very name of a known one; folders are named after other things as well."""
    (tmp_path / folder).mkdir()
    verdict = judged(tmp_path, f"{folder}/dmesg.txt")

    assert verdict.code == "B2"
    assert [place.host for place in verdict.culprits] == [host]


EXPELLED = (
    "2026-03-02_04:08:30.636+0000: [E] Lost membership in cluster gpfs.site. Unmounting file"
    " systems.\n"
)


@pytest.mark.parametrize(("folder", "host"), [("mi013", ["mi013"]), ("collected", [])])
def test_the_log_of_gpfs_in_a_folder_named_after_a_node(
    tmp_path: Path, folder: str, host: list[str]
) -> None:
    """Its name is the same on each."""
    (tmp_path / folder).mkdir()
    verdict = judged(tmp_path, f"{folder}/mmfs.log.latest", kernel=EXPELLED)

    assert verdict.code == "C6"
    assert [place.host for place in verdict.culprits] == host


def test_a_kernel_log_of_a_host_that_the_job_did_not_hold(tmp_path: Path) -> None:
    """Its fault is another job's."""
    assert judged(tmp_path, "dmesg-mi099.txt").code != "B2"


LINK = KERNEL.format("ixgbe 0000:41:00.0 eth0: NIC Link is {}")
LOST = (
    "2026-03-02 04:{}:10 lab-a: NCCL WARN socketProgress: Connection closed by remote peer"
    " {}.uni.edu<50122>\n"
)


def cut_off(folder: Path, kernel: str, lost: str) -> Verdict:
    (folder / "metrics.prom").write_text(
        "".join(
            f'DCGM_FI_DEV_POWER_USAGE{{hostname="lab-{host}.uni.edu",gpu="0"}} 300'
            f" {1772424000 + at}\n"
            for host in "abc" for at in range(0, 600, 30)
        )
    )  # fmt: skip
    (folder / "lab-c.dmesg").write_text(kernel)
    (folder / "train.log").write_text(STEPS + lost)
    return diagnose(collect(Request((str(folder),))))


def test_a_link_that_was_down_as_the_peers_lost_that_host(tmp_path: Path) -> None:
    """Known by the metrics alone, under its full name."""
    back = LINK.format("Up 10 Gbps").replace("04:08:30", "04:14:00")
    verdict = cut_off(tmp_path, LINK.format("Down") + back, LOST.format("10", "lab-c"))

    assert (verdict.code, verdict.culprits) == ("C5", (Place(host="lab-c.uni.edu"),))
    assert verdict.confidence > 0.8


@pytest.mark.parametrize(
    ("up", "minute", "host"),
    [("04:08:34", "10", "lab-c"), ("04:59:00", "19", "lab-c"), ("04:59:00", "10", "lab-b")],
)
def test_a_link_that_had_come_back_or_is_of_another_host(
    tmp_path: Path, up: str, minute: str, host: str
) -> None:
    """Adapters flap; connections outlive seconds, and sockets do not wait for ten minutes."""
    back = LINK.format("Up 10 Gbps").replace("04:08:30", up)
    verdict = cut_off(tmp_path, LINK.format("Down") + back, LOST.format(minute, host))

    assert not (verdict.code == "C5" and verdict.confidence > 0.8)


@pytest.mark.parametrize(
    "stamp",
    ["[Mar  2 04:08:30] ", "[Mar 2 04:08] ", "[  +0.000122] ", "[Mon Mar  2 04:08:30 2026] "],
)
def test_kernel_logs_as_dmesg_shows_times(tmp_path: Path, stamp: str) -> None:
    """In full, in short, and as what passed since the line above."""
    lines = ("perf: interrupt took too long (3120 > 3117)",
             BAD.partition("] ")[2].strip())  # fmt: skip
    kernel = "".join(f"{stamp}{line}\n" for line in lines)
    verdict = judged(tmp_path, "mi013.dmesg", kernel=kernel)

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("B2", ["mi013"])


@pytest.mark.parametrize(
    ("label", "host"),
    [
        ("[mi013:{n}] ", "mi013"),
        ("[mi013.site.org:{n}] ", "mi013"),
        ("[mi013] ", "mi013"),
        ("mi013 | ", "mi013"),
        ("[loader2:{n}] ", None),  # no host of the run
        ("[train13.py:{n}] ", None),
        ("peer mi013 | ", None),
    ],
)
def test_a_label_of_a_sites_own(tmp_path: Path, label: str, host: str | None) -> None:
    (tmp_path / "slurm-77.out").write_text(
        "".join(
            label.format(n=n) + "ImportError: libcudnn.so.9: cannot open shared object file: No"
            " such file or directory\n"
            for n in range(8)
        )
    )
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        "77|train|FAILED|1:0|2026-03-02T04:00:00|2026-03-02T04:09:00|mi[012-014]\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "A1"
    assert [place.host for place in verdict.culprits] == ([host] if host else [])
