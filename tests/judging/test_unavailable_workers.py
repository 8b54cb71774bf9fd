"""What TensorFlow raises where another worker no longer answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

EPOCH = "Epoch {0}/9\n200/200 - 31s - loss: {1:.4f} - 31s/epoch - 155ms/step\n"
TRACE = (
    'Traceback (most recent call last):\n  File "fit.py", line 9, in <module>\n    net.fit(x)\n'
)
RAISED = "tensorflow.python.framework.errors_impl.{}: Graph execution error:\n\n{}\n"


@pytest.mark.parametrize(
    ("error", "said", "codes"),
    [
        (
            "UnavailableError",
            "Collective ops is aborted by: connection lost [Op:__f_1]",
            ("C2", "C5"),
        ),
        ("UnavailableError", "Socket closed", ("C2", "C5")),
        ("InvalidArgumentError", "indices[3,0] = 900 is not in [0, 800) [Op:__f_1]", ("A3",)),
    ],
)
def test_an_error_of_a_graph(
    tmp_path: Path, error: str, said: str, codes: tuple[str, ...]
) -> None:
    """Its class tells whether the program's own step failed."""
    steps = "".join(EPOCH.format(n, 2.5 - n / 5) for n in range(1, 6))
    (tmp_path / "job.log").write_text(steps + TRACE + RAISED.format(error, said))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code in codes
    assert verdict.code == "A3" or verdict.confidence < 0.8
