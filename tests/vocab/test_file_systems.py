"""File systems by where they are mounted, and what clients of file servers count."""

from __future__ import annotations

from pathlib import Path

from flatline.model import Place
from flatline.sources.metrics import MetricsSource
from flatline.vocab.rewrite import Scope

T0 = 1_700_000_000
MOUNTS = (
    ("/dev/sda2", "/", "ext4", 7.0),
    ("/dev/sda2", "/var/lib/work", "ext4", 7.0),
    ("nas7:/vol", "/scratch", "nfs4", 9.0),
    ("/dev/loop3", "/snap/core/9", "squashfs", 0.0),
    ("systemd-1", "/misc", "autofs", 0.0),
)


def source(tmp_path: Path, scope: Scope | None = None) -> MetricsSource:
    lines = ["# TYPE node_filesystem_avail_bytes gauge"]
    for host in ("n1", "n2"):
        lines += [
            f'node_filesystem_avail_bytes{{instance="{host}:9100",device="{device}",fstype="{kind}"'
            f',mountpoint="{mount}"}} {left} {T0 * 1000}'
            for device, mount, kind, left in MOUNTS
        ]
        for operation, count in (("READ", 2), ("WRITE", 3)):
            for export in ("nas7:/vol", "nas8:/home"):
                lines.append(
                    f'node_mountstats_nfs_operations_major_timeouts_total{{instance="{host}:9100"'
                    f',export="{export}",protocol="tcp",mountaddr="10.0.0.7"'
                    f',operation="{operation}"}} {count} {T0 * 1000}'
                )
    file = tmp_path / "m.prom"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return MetricsSource([(file, "m.prom")], scope)


def test_a_file_system_is_told_by_its_mount(tmp_path: Path) -> None:
    """One device in two places is two; what is never written (images) is none."""
    answer = source(tmp_path).ask("filesystem_available_bytes")

    assert {row.place for row in answer.rows} == {
        Place(host=host, device=mount) for host in ("n1", "n2") for mount in
        ("/", "/var/lib/work", "/scratch")
    }  # fmt: skip


def test_one_mount_can_be_asked_for_and_cited(tmp_path: Path) -> None:
    """By the canonical label, in a query that runs where the data lives."""
    read = source(tmp_path)
    answer = read.ask('min_over_time(filesystem_available_bytes{device="/scratch"}[1m])')
    (row, _) = sorted(answer.rows, key=lambda row: row.place.host or "")
    cite = answer.cite(row, "left")

    assert (row.place, cite.value) == (Place(host="n1", device="/scratch"), 9.0)
    assert 'mountpoint="/scratch"' in cite.query
    assert read.replay(cite) == 9.0


def test_timeouts_are_told_by_export(tmp_path: Path) -> None:
    """Over all operations of a mount."""
    answer = source(tmp_path).ask("sum by (host, device) (nfs_timeouts_total)")

    assert {(row.place.device, row.last) for row in answer.rows} == {
        ("nas7:/vol", 5.0),
        ("nas8:/home", 5.0),
    }


def test_file_systems_of_other_hosts_are_left_out(tmp_path: Path) -> None:
    """Of what is asked, and of what a capsule holds."""
    read = source(tmp_path, Scope(("n1",)))
    groups = dict(read.selectors())["node_filesystem_avail_bytes"]

    assert {row.place.host for row in read.ask("filesystem_available_bytes").rows} == {"n1"}
    assert [matcher.value for group in groups for matcher in group] == ["n1:9100"]


def test_what_gpfs_says_is_mounted(tmp_path: Path) -> None:
    """By host and mount, as those of other exporters."""
    file = tmp_path / "g.prom"
    file.write_text(
        "".join(
            f'gpfs_mount_status{{instance="{host}:9303",mount="/gp"}} {state} {T0 * 1000}\n'
            for host, state in (("n1", 1), ("n2", 0))
        )
    )
    answer = MetricsSource([(file, "g.prom")], None).ask("filesystem_mounted")

    assert {(row.place, row.last) for row in answer.rows} == {
        (Place(host="n1", device="/gp"), 1.0), (Place(host="n2", device="/gp"), 0.0)
    }  # fmt: skip
