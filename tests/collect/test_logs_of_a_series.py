"""With a job named, the logs of its processes lie beside its own in a folder of theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect

ROWS = "JobID|State|ExitCode|Start|End|NNodes|NodeList\n{}|FAILED|1:0|||2|n[1-2]\n"


@pytest.mark.parametrize(
    ("beside", "says", "kept"),
    [
        (("logs/gcm.00.log", "logs/gcm.01.log"), True, True),
        (("logs/gcm.00.log", "logs/gcm.01.log"), False, False),
        (("logs/gcm.00.log",), True, False),
        (("logs/gcm.00.log", "logs/gcm.01.log", "slurm-17.out"), True, False),
    ],
    ids=["a series", "of runs", "one", "beside another job's"],
)
def test_a_series_is_the_jobs_where_nothing_is_anothers(
    tmp_path: Path, beside: tuple[str, ...], says: bool, kept: bool
) -> None:
    """Each of which says which process it is: logs of some name may be of other runs."""
    for name in ("slurm-44.out", *beside):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        number = int(name[-6:-4]) if name.startswith("logs") else 0
        head = f"process {number}/2 on n{1 + number}\n" if says and number < 2 else ""
        steps = "".join(f"step {n}/90 loss 2.5\n" for n in range(1, 60))
        (tmp_path / name).write_text(head + steps)
    (tmp_path / "sacct.txt").write_text(ROWS.format(44))
    facts = collect(Request((str(tmp_path),), job="44"))

    assert ("logs/gcm.00.log" in {read.source for read in facts.log_files()}) == kept
