"""With a job named, the logs of its processes lie beside its own in a folder of theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect

ROWS = "JobID|State|ExitCode|Start|End|NNodes|NodeList\n{}|FAILED|1:0|||2|n[1-2]\n"


@pytest.mark.parametrize(
    ("beside", "kept"),
    [
        (("logs/gcm.00.log", "logs/gcm.01.log"), True),
        (("logs/gcm.00.log",), False),
        (("logs/gcm.00.log", "logs/gcm.01.log", "slurm-17.out"), False),
    ],
    ids=["a series", "one", "beside another job's"],
)
def test_a_series_is_the_jobs_where_nothing_is_anothers(
    tmp_path: Path, beside: tuple[str, ...], kept: bool
) -> None:
    """A single log of some name may be of any run."""
    for name in ("slurm-44.out", *beside):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("".join(f"step {n}/90 loss 2.5\n" for n in range(1, 60)))
    (tmp_path / "sacct.txt").write_text(ROWS.format(44))
    facts = collect(Request((str(tmp_path),), job="44"))

    assert ("logs/gcm.00.log" in {read.source for read in facts.log_files()}) == kept
