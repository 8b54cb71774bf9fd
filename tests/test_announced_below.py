"""A traceback that a line above it announces, and the number of an error in its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

JOB = "Error executing job with overrides: ['trainer.devices=4']\n"
HINT = "\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
BODY = (
    "Traceback (most recent call last):\n"
    '  File "/app/tune.py", line 31, in main\n    net = restore(cfg)\n'
    '  File "/app/nets/start.py", line 12, in restore\n    raise {}(why)\n{}: {}\n'
)


def raised(kind: str, why: str) -> str:
    return BODY.format(kind, kind, why)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (JOB + raised("FileNotFoundError", "Can't find /m/large.nemo") + HINT, "asset"),
        (JOB + raised("ModuleNotFoundError", "No module named 'apex'") + HINT, "env"),
        (JOB + raised("ValueError", "devices must divide 3") + HINT, "config"),
        (JOB + "loading\n" * 40 + raised("FileNotFoundError", "Can't find /m/a.nemo"), "config"),
        (JOB + HINT, "config"),
    ],
)
def test_the_exception_below_tells_its_class(tmp_path: Path, text: str, wanted: str) -> None:
    """The line says only that something was raised."""
    (tmp_path / "train.log").write_text(text)
    found = diagnose(collect(Request((str(tmp_path),))))

    assert (found.code, found.fault_class) == ("A1", wanted)


@pytest.mark.parametrize(
    ("number", "code"), [("[Errno 116] ", "C6"), ("[Errno 22] ", "A3"), ("", "A3")]
)
def test_the_number_of_a_stale_handle(tmp_path: Path, number: str, code: str) -> None:
    """HDF5 keeps the number and puts its own words in the place of the system's."""
    steps = "".join(f"step {n}/900 loss {3 * 0.9985**n:.4f}\n" for n in range(1, 300))
    text = (
        "Traceback (most recent call last):\n"
        '  File "/app/train.py", line 31, in <module>\n    for batch in loader:\n'
        "OSError: Caught OSError in DataLoader worker process 2.\nOriginal Traceback (most recent"
        ' call last):\n  File "/app/set.py", line 9, in __getitem__\n    f = h5py.File(self.at)\n'
        f"OSError: {number}Can't synchronously read data (file read failed: time = Wed Jan 22\n"
    )
    (tmp_path / "train.log").write_text(steps + text)

    assert diagnose(collect(Request((str(tmp_path),)))).code == code
