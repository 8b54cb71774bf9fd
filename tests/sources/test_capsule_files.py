"""A capsule read as a target: what is damaged is a gap, what is hostile leads nowhere."""

from __future__ import annotations

import io
import os
import random
import shutil
import tarfile
import tempfile
from pathlib import Path

import orjson
import pytest

from flatline.capsule.archive import pack
from flatline.capsule.sealing import seal
from flatline.collect import Request, collect
from flatline.collect.files import walk
from flatline.diagnose import diagnose
from flatline.model import Gap
from flatline.sources import capsule

STEPS = "".join(
    f"2026-03-01 04:00:{i:02d} step {i}/59 loss {5 / (i + 1):.3f}\n" for i in range(60)
)
METRICS = "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n" + "".join(
    f'DCGM_FI_DEV_GPU_TEMP{{Hostname="n1",gpu="{gpu}"}} {60 + n % 3} {1772337600000 + 1000 * n}\n'
    for gpu in range(4)
    for n in range(60)
)


def quiet(stage: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""


def sealed(tmp_path: Path, name: str = "run.capsule") -> Path:
    run = tmp_path / "run"
    if not run.exists():
        run.mkdir()
        (run / "job.log").write_text(STEPS)
        (run / "metrics.prom").write_text(METRICS)
    output = tmp_path / name
    return seal(Request((str(run),)), output, output.suffix == ".capsule", quiet).path


def held(path: Path) -> tuple[set[str], list[Gap]]:
    gaps: list[Gap] = []
    capsule._OPENED.clear()  # a file written twice within a tick of the clock looks the same
    return {found.source for found in walk((str(path),), gaps)}, gaps


@pytest.mark.parametrize("name", ["run.capsule", "folder"])
def test_a_capsule_is_a_target(tmp_path: Path, name: str) -> None:
    """One file or a folder; its files are called as they were."""
    found, gaps = held(sealed(tmp_path, name))

    assert (found, gaps) == ({"job.log", "metrics.prom"}, [])
    assert diagnose(collect(Request((str(tmp_path / name),)))).state == "healthy"


def test_what_is_no_capsule_is_none(tmp_path: Path) -> None:
    """A folder with a manifest of something else, a tar of something else, a name that is gone."""
    (tmp_path / "manifest.json").write_text('{"version": 1}')
    (tmp_path / "log").write_text("flatline-capsule\n")
    with tarfile.open(tmp_path / "x.tar", "x:") as tar:
        tar.add(tmp_path / "log", "log")

    assert not any(
        capsule.recognise(path)
        for path in (tmp_path, tmp_path / "log", tmp_path / "x.tar", tmp_path / "gone")
    )


def test_a_capsule_in_a_folder_is_pointed_at(tmp_path: Path) -> None:
    """It is a run of its own."""
    path = sealed(tmp_path)
    (tmp_path / "beside").mkdir()
    path.rename(tmp_path / "beside" / "x.capsule")
    facts = collect(Request((str(tmp_path / "beside"),)))

    assert any("name it as the TARGET" in gap.reason for gap in facts.gaps)


def test_one_file_and_folder_hold_the_same_bytes(tmp_path: Path) -> None:
    """And the same folder packs to the same file."""
    folder = sealed(tmp_path, "folder")
    for name in ("one.tar", "two.tar"):
        pack(folder, tmp_path / name)

    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    with tarfile.open(tmp_path / "one.tar") as tar:
        assert tar.getnames()[0] == "manifest.json"
        assert all(member.isreg() for member in tar)


# --- damage -------------------------------------------------------------------------------------


def test_a_changed_file_is_left_out_and_said(tmp_path: Path) -> None:
    """One bit in a log: it is no evidence any more."""
    folder = sealed(tmp_path, "folder")
    log = next(folder.glob("files/*/job.log"))
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    found, gaps = held(folder)

    assert found == {"metrics.prom"}
    assert [(gap.need, gap.where) for gap in gaps] == [("job log", "job.log")]
    assert "does not match its hash" in gaps[0].reason


@pytest.mark.parametrize("how", ["gone", "cut", "link"])
def test_a_file_that_is_not_there_as_sealed_is_a_gap(tmp_path: Path, how: str) -> None:
    """Missing, cut off, or a link in its place: what it leads to is not read."""
    folder = sealed(tmp_path, "folder")
    log = next(folder.glob("files/*/job.log"))
    data = log.read_bytes()
    log.unlink()
    if how == "cut":
        log.write_bytes(data[:50])
    elif how == "link":
        (tmp_path / "elsewhere").write_bytes(data)
        log.symlink_to(tmp_path / "elsewhere")
    found, gaps = held(folder)

    assert found == {"metrics.prom"}
    assert len(gaps) == 1
    assert gaps[0].where == "job.log"


def test_a_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """Nor a link above a file."""
    folder = sealed(tmp_path, "folder")
    shutil.move(folder / "files", tmp_path / "files")
    (folder / "files").symlink_to(tmp_path / "files")

    assert held(folder)[0] == {"metrics.prom"}


@pytest.mark.parametrize("name", ["chunks.parquet", "part-00000.parquet"])
def test_damaged_metrics_leave_the_rest(tmp_path: Path, name: str) -> None:
    """The run is judged by its log, and the gap is in the verdict."""
    folder = sealed(tmp_path, "folder")
    path = next(folder.glob(f"metrics/*/{name}"))
    path.write_bytes(path.read_bytes()[:-9])
    verdict = diagnose(collect(Request((str(folder),))))

    assert verdict.state == "healthy"
    assert any(name in gap.reason for gap in verdict.gaps)


def test_a_file_that_is_cut_anywhere_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """Never an error; what is whole is there, and a gap says that it is cut."""
    path = sealed(tmp_path)
    whole = path.read_bytes()
    for size in random.Random(1).sample(range(600, len(whole)), 60):
        path.write_bytes(whole[:size])
        found, gaps = held(path)
        assert gaps or found == {"job.log", "metrics.prom"}, size
        assert found <= {"job.log", "metrics.prom"}


def test_flipped_bytes_are_never_evidence(tmp_path: Path) -> None:
    """Whatever is read of a damaged capsule has the hash its manifest gives."""
    path = sealed(tmp_path)
    whole = path.read_bytes()
    dice = random.Random(2)
    for _ in range(80):
        data = bytearray(whole)
        for _ in range(dice.choice((1, 1, 4, 64))):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data)
        if not capsule.recognise(path):
            continue
        gaps: list[Gap] = []
        capsule._OPENED.clear()
        for found in walk((str(path),), gaps):
            if found.source == "job.log":
                assert found.path.read_text() == STEPS


# --- hostile ------------------------------------------------------------------------------------


def tarred(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    """A capsule with further members, in any format of tar."""
    manifest = {
        "flatline-capsule": 1, "gaps": [], "files": [], "metrics": [],
        "asked": {"job": None, "named": None, "start": None, "end": None, "hosts": []},
    }  # fmt: skip
    head = tarfile.TarInfo("manifest.json")
    text = orjson.dumps(manifest)
    with tarfile.open(path, "w:", format=tarfile.GNU_FORMAT) as tar:
        head.size = len(text)
        tar.addfile(head, io.BytesIO(text))
        for item, data in members:
            item.size = len(data) if item.isreg() else 0
            tar.addfile(item, io.BytesIO(data))
    raw = bytearray(path.read_bytes())
    raw[257:265] = b"ustar\x0000"
    raw[148:156] = b"%06o\0 " % (sum(raw[:148]) + 8 * 32 + sum(raw[156:512]))
    path.write_bytes(raw)
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


@pytest.mark.parametrize(
    "hostile",
    [
        member("../escaped"), member("/tmp/escaped"), member("files/0/../../../escaped"),
        member("files/0/.."), member("metrics/0-text/../../escaped.parquet"),
        member("files/0/x", tarfile.SYMTYPE, "/etc/passwd"),
        member("files/0/x", tarfile.LNKTYPE, "manifest.json"),
        member("files/0/x", tarfile.CHRTYPE), member("files/0/x", tarfile.FIFOTYPE),
        member("files/0/x", tarfile.DIRTYPE), member("files/0/x", tarfile.GNUTYPE_SPARSE),
        member("files/0/" + "x" * 300), member("manifest.json"), member("elsewhere/x"),
    ],
    ids=lambda m: f"{m.type!r} {m.name[:40]}",
)  # fmt: skip
def test_a_member_with_no_place_ends_the_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hostile: tarfile.TarInfo
) -> None:
    """Escapes, links, devices, sparse files, names of other formats: none is made, and nothing
    lies outside the folder a capsule is unpacked into."""
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(inside))
    path = tarred(tmp_path / "x.capsule", (hostile, b"content"))

    assert capsule.recognise(path)

    found, gaps = held(path)

    assert found == set()
    assert any("damaged" in gap.reason for gap in gaps)
    made = [Path(folder, name) for folder, _, names in os.walk(inside) for name in names]
    assert [file.name for file in made] == ["manifest.json"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["inside", "x.capsule"]


def test_a_size_beyond_the_file_makes_nothing_large(tmp_path: Path) -> None:
    """A header may announce 8 GiB; no more is written than there is."""
    path = sealed(tmp_path)
    raw = bytearray(path.read_bytes())
    at = raw.index(b"files/0/job.log\0")
    raw[at + 124 : at + 135] = b"7" * 11
    raw[at + 148 : at + 156] = b"%06o\0 " % (
        sum(raw[at : at + 148]) + 8 * 32 + sum(raw[at + 156 : at + 512])
    )
    path.write_bytes(raw)
    found, gaps = held(path)

    assert any("cut off" in gap.reason for gap in gaps)
    assert "job.log" not in found


@pytest.mark.parametrize(
    "change",
    [
        {"flatline-capsule": 2}, {"files": 3}, {"files": [{}]}, {"metrics": [{"path": "x"}]},
        {"asked": None}, {"gaps": [1]}, {"asked": {"job": 3}},
        {"files": [{"path": "/etc/passwd"}]},
        {"metrics": [{"path": "metrics/0-text", "source": "x", "files": {"../a": {}}}]},
        {"files": [{"path": "files/0/..", "source": "x", "kind": "job log", "bytes": 1,
                    "sha256": ""}]},
        {"files": [{"path": "files/0/x", "source": "x" * 9999, "kind": "job log", "bytes": 1,
                    "sha256": ""}]},
    ],
)  # fmt: skip
def test_a_manifest_that_says_something_else_is_a_gap(
    tmp_path: Path, change: dict[str, object]
) -> None:
    """Other versions, other types, other places."""
    folder = sealed(tmp_path, "folder")
    manifest = folder / "manifest.json"
    said = orjson.loads(manifest.read_bytes()) | change
    manifest.write_bytes(orjson.dumps(said))
    found, gaps = held(folder)

    assert found == set()
    assert [gap.need for gap in gaps] == ["every file"]
    assert "manifest" in gaps[0].reason


def test_what_a_manifest_says_is_masked(tmp_path: Path) -> None:
    """It comes from anybody: a token in a gap or a name is not shown."""
    folder = sealed(tmp_path, "folder")
    manifest = folder / "manifest.json"
    said = orjson.loads(manifest.read_bytes())
    secret = "hf_" + "b" * 30 + "A1"
    said["gaps"] = [{"need": "x", "reason": f"the key {secret}", "where": secret}]
    said["files"][0]["source"] = f"{secret}.log"
    said["asked"] |= {"named": secret, "hosts": [secret]}
    manifest.write_bytes(orjson.dumps(said))
    found, gaps = held(folder)
    again = seal(Request((str(folder),)), tmp_path / "again.capsule", True, quiet).path

    assert not any(secret in text for text in (*found, str(gaps)))
    assert secret.encode() not in again.read_bytes()


def test_without_room_to_unpack_it_is_one_gap_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The capsule is sound then: nothing is said to be damaged."""
    path = sealed(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    found, gaps = held(path)

    assert found == set()
    assert len(gaps) == 1
    assert "could not be unpacked into" in gaps[0].reason
    assert "tar -xf" in gaps[0].reason


def test_opening_is_told_byte_by_byte(tmp_path: Path) -> None:
    """A large capsule takes seconds to unpack and check: who waits sees how far it is."""
    path = sealed(tmp_path)
    told: list[tuple[int, int]] = []
    capsule._OPENED.clear()
    capsule.opened(path, lambda done, total: told.append((done, total)))
    capsule.opened(path, lambda done, total: pytest.fail("it is opened once"))

    assert told == sorted(told)
    assert told[-1][1] == 2 * path.stat().st_size
    assert told[-1][0] > path.stat().st_size / 2
