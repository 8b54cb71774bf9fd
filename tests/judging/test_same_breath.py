"""B2: the port errs as its card falls off the bus."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

PORT = (
    "Mar 02 22:57:{} gx09 kernel: [905231.009137] pcieport 0000:3a:01.0: AER: Uncorrected (Fatal)"
    " error received: 0000:3a:01.0\n"
)
CARD = (
    "Mar 02 22:57:{} gx09 kernel: [905232.213469] NVRM: Xid (PCI:0000:4c:00): 79, pid=91877,"
    " name=python, GPU has fallen off the bus.\n"
)
SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
    "4|t|FAILED|1:0|2026-03-02T21:30:00|2026-03-02T22:58:40|1|gx09\n"
)


def judged(folder: Path, *lines: str) -> Verdict:
    (folder / "kern.log").write_text("".join(lines))
    (folder / "sacct.psv").write_text(SACCT)
    return diagnose(collect(Request((str(folder),))))


def test_the_card_is_what_failed(tmp_path: Path) -> None:
    """The port's line stands first, in the same second."""
    verdict = judged(tmp_path, PORT.format("32"), CARD.format("32"))

    assert verdict.code == "B2"
    assert [place.device for place in verdict.culprits] == ["PCI:0000:4c:00"]


@pytest.mark.parametrize("second", ["45", "58"])
def test_a_port_that_erred_before(tmp_path: Path, second: str) -> None:
    """Which of the two is the fault is open: the first leads."""
    verdict = judged(tmp_path, PORT.format("20"), CARD.format(second))

    assert [place.device for place in verdict.culprits] == ["0000:3a:01.0"]
