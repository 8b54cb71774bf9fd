"""Fuzzed runs, sealed: a capsule is made or refused, holds no secret and is judged alike."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from hypothesis import strategies as st

from flatline.capsule.sealing import seal
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.errors import UsageError
from flatline.render.json import document
from flatline.verify import verify
from fuzz.campaign import campaign, folder
from fuzz.hostile_files import SECRET, dumps, json_records, metrics, packed, text_records
from fuzz.hostile_logs import logs

CRASH = b"step 1/9 loss 3\nstep 2/9 loss 2\nTraceback (most recent call last):\nValueError: x\n"
Files = list[tuple[str, bytes]]
FILES = st.lists(
    st.one_of(json_records(), text_records(), dumps(), metrics(),
              packed(logs()).map(lambda data: ("x.log.gz", data))),
    min_size=1, max_size=3,
)  # fmt: skip


def quiet(stage: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""


def sealed_alike(at: Path) -> None:
    run, made = at / "run", at / "made"
    seal(Request((str(run),)), made, False, quiet)
    for path in made.rglob("*"):
        assert SECRET not in path.name
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    one, other = (diagnose(collect(Request((str(target),)))) for target in (run, made))
    assert (one.state, one.code, one.culprits) == (other.state, other.code, other.culprits)
    said = json.loads(json.dumps(document(other), default=str))
    assert [check for check in verify(said, (str(made),)) if not check.ok] == []


def test_runs() -> None:
    """A log, and records, dumps, metrics and archives that are nearly what they should be."""

    def sealed(files: Files) -> None:
        """Sealed:"""
        with folder() as at:
            (at / "run").mkdir()
            (at / "run" / "job.log").write_bytes(CRASH)
            for name, data in files:
                (at / "run" / name).write_bytes(data)
            with contextlib.suppress(UsageError):
                sealed_alike(at)

    campaign(FILES, 0.1, sealed)
