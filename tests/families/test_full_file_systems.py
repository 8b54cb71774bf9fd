"""File systems that ran out as a run died: beside a line that says so, and without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place, QueryCite, Verdict

START = datetime(2026, 2, 2, 18, tzinfo=UTC)
ENDS_S, EVERY_S, TIB = 3600, 30, 2.0**40
HOSTS = ("n1", "n2")
TYPES = {"/": "ext4", "/scratch": "nfs4", "/var": "ext4", "/boot": "ext4", "/snap/x": "squashfs"}
ENOSPC = "OSError: [Errno 28] No space left on device: '{}'"
Left = Callable[[str, str, float], float]
"""(host, mount, second of the run) -> part of 1 TiB, or of a million inodes, that is left."""


def filled(mount: str, at: float = ENDS_S - 60, hosts: tuple[str, ...] = HOSTS) -> Left:
    """Half of it is left until it is full."""
    return lambda host, one, second: 0.0 if (
        one == mount and host in hosts and second >= at
    ) else 0.5  # fmt: skip


HALF = filled("")
"""No mount runs out."""


def log(last: str, saves: str) -> str:
    lines = []
    for step in range(1, ENDS_S // 10):
        now = START + timedelta(seconds=10 * step)
        lines.append(f"{now:%Y-%m-%d %H:%M:%S},000 INFO step {step}/900 loss {2 + 9 / (step + 4)}")
        if step % 60 == 0 and saves:
            lines.append(
                f"{now:%Y-%m-%d %H:%M:%S},500 INFO saving checkpoint to {saves}/s{step}.pt"
            )
    if last:
        lines += [
            "Traceback (most recent call last):",
            '  File "/opt/train/train.py", line 9, in <module>',
            "    main()",
            last,
        ]
    return "\n".join(lines) + "\n"


def samples(room: Left, inodes: Left, read_only: Left) -> Iterator[str]:
    for second in range(0, ENDS_S + 120, EVERY_S):
        at = int((START.timestamp() + second) * 1000)
        for host in HOSTS:
            for mount, kind in TYPES.items():
                of = f'{{instance="{host}:9100",device="d{mount}",fstype="{kind}"'
                of += f',mountpoint="{mount}"}}'
                left = 0.0 if kind == "squashfs" else room(host, mount, second)
                yield f"node_filesystem_avail_bytes{of} {left * TIB} {at}"
                yield f"node_filesystem_size_bytes{of} {TIB} {at}"
                yield f"node_filesystem_files_free{of} {inodes(host, mount, second) * 1e6} {at}"
                yield f"node_filesystem_files{of} 1e6 {at}"
                shut = int(not read_only(host, mount, second))
                yield f"node_filesystem_readonly{of} {shut} {at}"


def verdict(
    folder: Path,
    room: Left = HALF,
    inodes: Left = HALF,
    read_only: Left = HALF,
    *,
    last: str = "",
    saves: str = "/scratch/run7/ckpt",
    state: str = "FAILED",
) -> Verdict:
    folder.mkdir(exist_ok=True)
    (folder / "slurm-18.out").write_text(log(last, saves))
    (folder / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        f"18|t|{state}|{0 if state == 'COMPLETED' else 1}:0|{START:%Y-%m-%dT%H:%M:%S}|"
        f"{START + timedelta(seconds=ENDS_S):%Y-%m-%dT%H:%M:%S}|n[1-2]\n"
    )
    (folder / "metrics.prom").write_text("\n".join(samples(room, inodes, read_only)) + "\n")
    return diagnose(collect(Request((str(folder),))))


def counted(found: Verdict) -> str:
    """What the verdict shows of file systems by their own count."""
    return " ".join(
        shown.text
        for shown in found.shows
        if any(isinstance(cite, QueryCite) and "filesystem" in cite.query for cite in shown.cites)
    )


@pytest.mark.parametrize(
    ("last", "changed", "shown"),
    [
        (ENOSPC.format("/scratch/run7/ckpt/s359.pt"), {"room": filled("/scratch")},
         "/scratch of n1 had 0 B left"),
        ("OSError: [Errno 28] No space left on device", {"room": filled("/var")},
         "/var of n1 had 0 B left"),
        (ENOSPC.format("/scratch/run7/x"), {"inodes": filled("/scratch")},
         "/scratch of n1 had 0 inodes left"),
        ("OSError: [Errno 30] Read-only file system: '/scratch/run7/x'",
         {"read_only": filled("/scratch")}, "/scratch of n1 was read-only"),
        (ENOSPC.format("/scratch/run7/x"), {"room": filled("/scratch", at=0)},
         "/scratch of n1 had 0 B left"),
    ],
    ids=["its path", "no path, one alone", "inodes", "read-only", "full all along"],
)  # fmt: skip
def test_the_count_stands_beside_the_line(
    tmp_path: Path, last: str, changed: dict[str, Left], shown: str
) -> None:
    """It says which file system, and by when."""
    found = verdict(tmp_path, **changed, last=last)  # type: ignore[arg-type]

    assert (found.code, found.confidence >= 0.8) == ("C6", True)
    assert counted(found).startswith(shown)


def test_a_path_on_a_file_system_with_room_leaves_a_doubt(tmp_path: Path) -> None:
    """/var is full, and the line names /scratch, which is not: a quota, or one of its servers."""
    found = verdict(tmp_path, filled("/var"), last=ENOSPC.format("/scratch/run7/x"))

    assert (found.code, counted(found)) == ("C6", "")
    assert any("/scratch had room" in doubt for doubt in found.cannot_decide)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"room": filled("/scratch")}, "ran out of room"),
        ({"inodes": filled("/scratch")}, "ran out of inodes"),
        ({"read_only": filled("/scratch")}, "turned read-only"),
    ],
)
def test_without_a_word_it_is_told_below_confident(
    tmp_path: Path, changed: dict[str, Left], what: str
) -> None:
    """Where the run writes to it, and had room until then."""
    found = verdict(tmp_path, **changed)  # type: ignore[arg-type]

    assert (found.code, found.domain, found.scope) == ("C6", "/scratch", "shared")
    assert 0.5 <= found.confidence < 0.75
    assert what in found.headline


def test_where_one_host_alone_has_it_full_that_host_is_named(tmp_path: Path) -> None:
    """As where the path is each host's own."""
    found = verdict(tmp_path, filled("/scratch", hosts=("n2",)))

    assert (found.code, found.culprits) == ("C6", (Place(host="n2"),))


@pytest.mark.parametrize(
    ("room", "more"),
    [
        (filled("/var"), {}),
        (filled("/boot"), {}),
        (filled("/scratch", at=0), {}),
        (filled("/scratch", at=ENDS_S - 1500), {}),
        (lambda host, mount, second: 0.0 if mount == "/scratch" and (
            600 < second < 700 or second > ENDS_S - 60) else 0.5, {}),
        (filled("/scratch", at=ENDS_S + 90), {}),
        (filled("/scratch"), {"saves": ""}),
        (filled("/scratch"), {"last": "KeyError: 'labels'"}),
        (filled("/scratch"), {"state": "CANCELLED by 7"}),
        (filled("/scratch"), {"state": "COMPLETED"}),
    ],
    ids=["a mount it does not use", "/boot", "full all along", "long before the end",
         "full before and it went on", "after the end", "no line of writing",
         "another error told", "cancelled", "completed"],
)  # fmt: skip
def test_a_full_file_system_is_no_cause_by_itself(
    tmp_path: Path, room: Left, more: dict[str, str]
) -> None:
    """At most a warning, where it happened as the run ended."""
    found = verdict(tmp_path, room, **more)  # type: ignore[arg-type]

    assert found.code != "C6"


def undated(folder: Path, room: Left, *, behind: str = "", nodes: str = "") -> Verdict:
    """A run whose lines carry no time, beside what its hosts count."""
    folder.mkdir(exist_ok=True)
    steps = "".join(f"step {step}/900 loss {2 + 9 / (step + 4)}\n" for step in range(1, 300))
    path = "/var/run7/ckpt/rank8.bin"
    said = f"[rank8]: Traceback (most recent call last):\n[rank8]: {ENOSPC.format(path)}\n"
    (folder / "train.log").write_text(steps + said + behind)
    (folder / "metrics.prom").write_text("\n".join(samples(room, HALF, HALF)) + "\n")
    if nodes:
        (folder / "sacct.txt").write_text(
            "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
            f"77|FAILED|1:0|{START:%FT%T}|{START + timedelta(seconds=ENDS_S):%FT%T}|2|{nodes}\n"
        )
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("hosts", "behind", "nodes", "host"),
    [
        (("n2",), "n2: torchrun exited with code 1\n", "", "n2"),
        (("n2",), "", "n[1-2]", "n2"),
        (("n2",), "n1: torchrun exited with code 1\n", "", None),
        (("n2",), "", "", None),
        (("n2",), "", "n[1-3]", None),
        (("n1", "n2"), "", "n[1-2]", None),
        ((), "", "n[1-2]", None),
    ],
    ids=["its launcher names it", "every host was read", "its launcher names another",
         "whose hosts", "one host was not read", "on both", "on none"],
)  # fmt: skip
def test_the_host_of_a_rank_whose_line_has_no_date(
    tmp_path: Path, hosts: tuple[str, ...], behind: str, nodes: str, host: str | None
) -> None:
    found = undated(tmp_path, filled("/var", 1800, hosts), behind=behind, nodes=nodes)

    assert found.code == "C6"
    assert [(place.rank, place.host) for place in found.culprits] == [(8, host)]
    assert found.confidence >= 0.8
