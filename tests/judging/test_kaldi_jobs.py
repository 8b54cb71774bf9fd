"""Jobs of a Kaldi recipe that were killed or failed, as `run.pl` and the shell tell of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict
from flatline.parsers import Reported, exits_kaldi

STARTED = "# {}\n# Started at Sat Dec 12 03:10:40 GMT 2020\n#\n"
ENDED = (
    "# Accounting: time=309 threads=1\n"
    "# Ended (code {}) at Sat Dec 12 03:15:49 GMT 2020, elapsed time 309 seconds\n"
)
TRAINS = "nnet3-train --use-gpu=yes exp/a.raw ark:egs.1.ark exp/b.raw"
LEARNT = "".join(
    "LOG (nnet3-train[5.5]:PrintStatsForThisPhase():nnet-training.cc:278) Average objective"
    f" function for 'output' for minibatches {n * 10}-{n * 10 + 9} is -{4 - n * 0.1:.3f} over 6400"
    " frames.\n"
    for n in range(20)
)
KILLED = "bash: line 1: 22710 Killed                  ( {} )\n"
FAILED = "run.pl: job failed, log is in exp/mono/log/x.1.log\n"


def verdict(folder: Path, text: str) -> Verdict:
    (folder / "x.1.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    "command",
    [
        TRAINS,
        "python3 -m espnet2.bin.asr_train --ngpu 1",
        "gmm-acc-stats-ali exp/mono/1.mdl x",
        "gunzip -c ali.1.gz | gmm-acc-tree x",
    ],
)
def test_a_job_that_trains_was_killed(tmp_path: Path, command: str) -> None:
    """Its end is that of the run."""
    for text in (STARTED.format(command) + ENDED.format(137), KILLED.format(command) + FAILED):
        told = verdict(tmp_path, text)
        assert (told.code, told.fault_class, told.confidence >= 0.8) == (
            "A2",
            "kill-unknown",
            True,
        )


@pytest.mark.parametrize(
    "command",
    [
        "gmm-latgen-faster --beam=11.0 exp/graph/HCLG.fst ark:-",
        "compute-mfcc-feats --verbose=2 scp:data/train/wav.scp ark:- | copy-feats ark:- ark:x",
        "python3 steps/diagnostic/analyze_lattice_depth_stats.py data/train",
    ],
)
def test_a_job_that_helps_was_killed(tmp_path: Path, command: str) -> None:
    """That training ended by it is not known, though the data it reads is called after that."""
    head, tail, line = STARTED.format(command), ENDED.format(137), KILLED.format(command)
    for text in (head + tail, line + FAILED, head + line + tail):
        told = verdict(tmp_path, text)
        assert (told.code, told.confidence < 0.8) == ("A2", True)
        assert any("a job of a recipe" in one for one in told.cannot_decide)


def test_a_program_that_no_recipe_started(tmp_path: Path) -> None:
    """The shell's word on it alone is as sure as ever."""
    assert verdict(tmp_path, LEARNT + KILLED.format("decode --beam=11")).confidence >= 0.8


@pytest.mark.parametrize(
    ("status", "code", "fault_class"),
    [
        ("137", "A2", "kill-unknown"),
        ("0; signal 9", "A2", "kill-unknown"),
        ("139", "A2", "segv"),
        ("0; signal 11", "A2", "segv"),
        ("1", None, None),
        ("255", None, None),
    ],
)
def test_the_status_tells_a_kill_from_a_failure(
    tmp_path: Path, status: str, code: str | None, fault_class: str | None
) -> None:
    """A status of the program's own says nothing of why."""
    told = verdict(tmp_path, STARTED.format(TRAINS) + LEARNT + ENDED.format(status))

    assert (told.code, told.fault_class) == (code, fault_class)


@pytest.mark.parametrize(("learnt", "code"), [(LEARNT, "A3"), ("", "A1")])
def test_an_error_of_the_programs_own_goes_with_its_status(
    tmp_path: Path, learnt: str, code: str
) -> None:
    said = "ERROR (nnet3-train[5.5.1~1-71f3]:Read():nnet-nnet.cc:566) Expected token </Nnet3>\n"
    told = verdict(tmp_path, STARTED.format(TRAINS) + learnt + said + ENDED.format(255))

    assert (told.code, told.confidence < 0.8) == (code, True)


def test_a_signal_beside_a_code_of_nought() -> None:
    """As `run.pl` prints what ended the shell itself."""
    line = "# Ended (code 0; signal 9) at Sat Dec 12 03:15:49 GMT 2020, elapsed time 9 seconds"

    assert list(exits_kaldi.Reader().feed(line)) == [Reported("run.pl", signal=9)]
    assert list(exits_kaldi.Reader().feed(line.replace("; signal 9", ""))) == []
